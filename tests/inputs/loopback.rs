//! Profiles that move between loopback and a live host: trusted hosts and separate message counts.

use serde_json::json;

use crate::support::{Answer, Folder, Gateway, Reachable as _, campaign, note_on_failure, unreachable_url};

/// A sale to three recipients through this gateway on loopback.
fn sale_through(gateway: &Gateway) -> Folder {
    let draft = campaign().delivery("rate: 100/s").delivery("stop_after: { unreachable: 1s }").through(gateway);
    draft.profile("rate: 100/s").profile("account: main").write()
}

/// Moves the profile to a live host that tests cannot reach.
fn move_to_live_host(sale: &Folder, gateway: &Gateway) {
    sale.replace("gateways.yaml", &gateway.base_url(), "https://gateway.invalid");
    sale.replace("gateways.yaml", "account: main\n", &format!("account: main\n  proxy: {}\n", unreachable_url()));
}

#[test]
fn live_run_ignores_messages_sent_through_loopback() {
    for arguments in [&[][..], &["--limit", "1"]] {
        let _case = note_on_failure(format!("case: {arguments:?}"));
        let gateway = Gateway::accepting();
        let sale = sale_through(&gateway);
        sale.run(arguments).exits(0);
        move_to_live_host(&sale, &gateway);
        let refused = sale.run(&["--offline", "--yes"]).exits(2).says("campaign gateway trust local");
        refused.says("was on this machine (loopback) and is now at gateway.invalid");
        sale.campaign(&["gateway", "trust", "local"]).exits(0).says("at gateway.invalid is now trusted");
        sale.run(&["--offline", "--yes"]).exits(5);
        let status = sale.campaign(&["status", "sale@2", "--json"]).exits(5).json();
        assert_eq!(status["counts"], json!({ "planned": 3 }), "no recipient counts as reached: {status}");
    }
}

#[test]
fn all_loopback_addresses_are_one_trusted_host() {
    let (first, second) = (Gateway::accepting(), Gateway::accepting());
    let sale = campaign().through(&first).write();
    sale.run(&[]).exits(0);
    sale.replace("gateways.yaml", &first.base_url(), &second.base_url().replace("127.0.0.1", "localhost"));
    sale.replace("sale.yaml", "name: sale\n", "name: sale\nedition: second\n");
    sale.run(&[]).exits(0);
    assert_eq!((first.phones().len(), second.phones().len()), (3, 3));
}

#[test]
fn profile_moved_to_loopback_must_be_trusted_again() {
    let gateway = Gateway::accepting();
    let sale = sale_through(&gateway);
    move_to_live_host(&sale, &gateway);
    sale.run(&["--offline", "--yes"]).exits(5);
    let profile = std::fs::read_to_string(sale.path("gateways.yaml")).expect("the profile");
    let lines = profile.lines().filter(|line| !line.contains("proxy:"));
    let local: String =
        lines.map(|line| format!("{}\n", line.replace("https://gateway.invalid", &gateway.base_url()))).collect();
    sale.write("gateways.yaml", &local);
    for arguments in [
        &["run", "sale.yaml"][..],
        &["reconcile", "sale"],
        &["gateway", "balance"],
        &["test", "sale.yaml", "--to", "+380501234567"],
    ] {
        let _case = note_on_failure(format!("case: {arguments:?}"));
        let output = sale.campaign(arguments);
        if arguments[0] != "reconcile" {
            output.exits(2).says("was at gateway.invalid and is now on this machine (loopback)");
        }
    }
    assert_eq!(gateway.requests().len(), 0, "neither the key nor the list goes to the new host");
    sale.campaign(&["gateway", "trust", "local"]).exits(0).says("on this machine (loopback)");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 3);
    let status = sale.campaign(&["status", "sale@1", "--json"]).exits(5).json();
    assert_eq!(status["counts"], json!({ "planned": 3 }), "the live run stays as it was: {status}");
}

#[test]
fn reconcile_does_not_ask_a_live_gateway_about_a_loopback_run() {
    let gateway = Gateway::answering([Answer::CloseRead]);
    let sale = sale_through(&gateway);
    sale.run(&[]).exits(4);
    move_to_live_host(&sale, &gateway);
    sale.campaign(&["gateway", "trust", "local"]).exits(0);
    let refused = sale.campaign(&["reconcile", "sale"]).exits(2);
    refused.says("sale@1 was sent through a gateway on this machine").says("restore the profile's address");
}
