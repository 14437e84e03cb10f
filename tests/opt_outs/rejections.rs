//! Rejections that mean an opt-out, and runs that stop because too many recipients opt out.

use serde_json::json;

use super::{entries, opt_out};
use crate::receipts::{Hooked, operations};
use crate::support::{Answer, Browser, Gateway, Html, SandboxProcess, accepted, campaign, phone, rejected, until};

const STOP_LIST: &str = "Number is in stop list";
const PROFILE: &str = "opt_out_errors: [Number is in stop list]";

/// An answer that rejects the messages to these rows.
fn reject_rows(rows: &'static [usize], error: &'static str) -> Answer {
    Answer::items(move |operation| match rows.iter().any(|row| operation["phone"] == json!(phone(*row))) {
        true => rejected(operation, error),
        false => accepted(operation),
    })
}

#[test]
fn rejection_with_a_configured_error_opts_the_recipient_out() {
    let gateway = Gateway::answering_then([], reject_rows(&[3, 4], STOP_LIST));
    let sale = campaign().to(4).through(&gateway).profile(PROFILE).write();
    sale.run(&[]).exits(3);
    let listed = entries(&sale);
    let values = |key: &str| listed.iter().map(|entry| entry[key].clone()).collect::<Vec<_>>();
    assert_eq!(values("phone"), [3, 4].map(|row| json!(phone(row).to_string())));
    assert_eq!((&listed[0]["scope"], &listed[0]["source"]), (&json!("marketing"), &json!("rejected in sale@1")));
    assert_eq!(listed[0]["reason"], format!("the gateway rejected a message: {STOP_LIST}"));
    assert_eq!(listed[0]["gateways"], "loopback");
    let before = gateway.phones().len();
    sale.campaign(&["retry", "sale"]).says("opted out");
    sale.replace("sale.yaml", "name: sale\n", "name: sale\nedition: next\n");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones()[before..], [2, 5].map(phone));
}

#[test]
fn rejection_by_webhook_opts_the_recipient_out() {
    let gateway = Gateway::accepting();
    let draft = campaign().to(5).asynchronous().through(&gateway).profile(PROFILE);
    let hooked = Hooked::write(draft);
    let (sale, server) = (&hooked.sale, hooked.serve());
    sale.run(&["--offline"]);
    let messages = operations(&gateway);
    let with_type = json!({ "success": false, "status": "REJECTED", "type": "sms", "error": STOP_LIST });
    let others = [
        json!({ "success": false, "status": "REJECTED", "error": STOP_LIST }),
        json!({ "success": false, "status": "REJECTED", "error": "No route" }),
        json!({ "success": true, "status": "DELIVERED", "error": STOP_LIST }),
    ];
    for (message, receipt) in messages.iter().zip([with_type].iter().chain(&others)) {
        assert_eq!(hooked.post(message, &receipt.to_string()), 200);
    }
    let listed = entries(sale);
    let values = |key: &str| listed.iter().map(|entry| entry[key].clone()).collect::<Vec<_>>();
    assert_eq!(values("phone"), [2, 3].map(|row| json!(phone(row).to_string())));
    for entry in &listed {
        assert_eq!((&entry["scope"], &entry["source"]), (&json!("marketing"), &json!("rejected in sale@1")));
        assert_eq!(entry["reason"], format!("the gateway rejected a message: {STOP_LIST}"));
        assert_eq!(entry["gateways"], "loopback");
    }
    let before = gateway.phones().len();
    sale.campaign(&["retry", "sale", "--yes", "--no-wait"]).says("opted out");
    assert_eq!(gateway.phones()[before..], [phone(4)]);
    server.end("TERM").exits(0);
}

#[test]
fn other_rejections_and_rehearsals_opt_out_no_recipients() {
    let gateway = Gateway::answering_then([], reject_rows(&[3], "No route"));
    let sale = campaign().to(3).through(&gateway).profile(PROFILE).write();
    sale.run(&[]).exits(3);
    let scenario = "faults:\n  - { when: { suffix: \"003\" }, item_error: Number is in stop list }\n";
    sale.write("scenario.yaml", scenario);
    sale.run(&["--gateway", "sandbox", "--scenario", "scenario.yaml"]).exits(3);
    assert_eq!(entries(&sale).len(), 0);
}

#[test]
fn sandbox_can_simulate_a_gateway_stop_list() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("scenario.yaml");
    let faults = "faults:\n  - { when: { suffix: \"003\" }, item_error: Number is in stop list }\n";
    std::fs::write(&scenario, faults).expect("a file");
    let sandbox = SandboxProcess::start_with(&["--scenario", scenario.to_str().expect("a path")]);
    let sale = campaign().to(3).top("purpose: service").through(&sandbox).profile(PROFILE).write();
    sale.run(&[]).exits(3);
    let listed = entries(&sale);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((&listed[0]["phone"], &listed[0]["scope"]), (&json!(phone(3).to_string()), &json!("all")));
}

#[test]
fn report_counts_recipients_who_opted_out_because_of_a_run() {
    let gateway = Gateway::answering_then([], reject_rows(&[3], STOP_LIST));
    let hooked = Hooked::write(campaign().to(5).through(&gateway).profile(PROFILE));
    let (sale, server) = (&hooked.sale, hooked.serve());
    sale.run(&[]).exits(3);
    let browser = Browser::signed_in(&server);
    let read_figures = || {
        let report = sale.campaign(&["report", "sale", "--out", "report.html", "--json"]).exits(0).json();
        let numbers = |page: Html| {
            let figures = page.with_class("figures");
            figures.iter().find(|list| list.attribute("id") == "run-numbers").expect("the figures").words()
        };
        let file = std::fs::read_to_string(sale.path("report.html")).expect("a page");
        let (before, rest) = file.split_once("<script").expect("its numbers");
        let (_, after) = rest.split_once("</script>").expect("their end");
        let file_figures = numbers(Html::read(&format!("{before}{after}")));
        // A page shows cached figures for at most one second.
        until("the page shows the figures", || numbers(browser.page("/runs/sale@1")) == file_figures);
        (report["figures"]["opted_out"].as_u64(), file_figures)
    };
    let (first, numbers) = read_figures();
    assert!(first == Some(1) && numbers.contains("Opted out 1 20%"), "{numbers}");
    let receipt = json!({ "status": "REPLIED", "replies": [{ "message": "STOP" }] });
    for operation in operations(&gateway).iter().filter(|operation| operation["phone"] == json!(phone(4))) {
        assert_eq!(hooked.post(operation, &receipt.to_string()), 200);
    }
    // An opt-out added by hand is not attributed to the run.
    opt_out(sale, 5, &[]);
    assert_eq!(read_figures().0, Some(2));
    sale.run(&["--gateway", "sandbox"]).exits(0);
    let rehearsal = sale.campaign(&["report", "sale@2", "--out", "other.html", "--json"]).exits(0).json();
    assert_eq!(rehearsal["figures"]["opted_out"], json!(null));
    server.end("TERM").exits(0);
}

#[test]
fn run_stops_when_webhooks_report_many_rejections() {
    let gateway = Gateway::accepting();
    let draft = campaign().to(600).batches_of(10).one_at_a_time().delivery("rate: 50/s").asynchronous();
    let draft = draft.delivery("stop_after: { rejected: 10% }").through(&gateway);
    let hooked = Hooked::write(draft);
    let server = hooked.serve();
    let run = hooked.sale.start(&[]);
    until("220 messages are sent", || gateway.phones().len() >= 220);
    for operation in operations(&gateway).iter().take(100) {
        assert_eq!(hooked.post(operation, &json!({ "status": "REJECTED" }).to_string()), 200);
    }
    run.finish().exits(5).says("messages were rejected; use `--keep-going`");
    let sent = gateway.phones().len();
    assert!(sent < 600, "{sent}");
    // Rejections from before the resume do not stop the run again.
    hooked.sale.run(&[]).exits(3);
    assert_eq!(gateway.phones().len(), 600);
    server.end("TERM").exits(0);
}

#[test]
fn run_stops_when_too_many_recipients_opt_out() {
    let gateway = Gateway::accepting();
    let draft = campaign().to(600).batches_of(10).one_at_a_time().delivery("rate: 50/s");
    let draft = draft.delivery("stop_after: { opted_out: 1% }").through(&gateway);
    let hooked = Hooked::write(draft);
    let server = hooked.serve();
    let run = hooked.sale.start(&[]);
    until("220 messages are sent", || gateway.phones().len() >= 220);
    for operation in operations(&gateway).iter().take(6) {
        let receipt = json!({ "status": "REPLIED", "replies": [{ "message": "STOP" }] });
        assert_eq!(hooked.post(operation, &receipt.to_string()), 200);
    }
    run.finish().exits(5).says("opted out because of this run");
    let sent = gateway.phones().len();
    assert!(sent < 600, "{sent}");
    // The limit applies to the whole run, so a resumed run stops again.
    hooked.sale.run(&[]).exits(5);
    assert!(gateway.phones().len() <= sent + 10, "{sent}");
    hooked.sale.replace("sale.yaml", "opted_out: 1%", "opted_out: 50%");
    hooked.sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 600);
    server.end("TERM").exits(0);
}
