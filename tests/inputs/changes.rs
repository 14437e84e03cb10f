//! Inputs that changed after a run started.

use serde_json::json;

use crate::support::{Draft, Folder, Gateway, campaign, phone};

/// A campaign with five of ten messages sent.
fn half_sent_campaign(gateway: &Gateway) -> Folder {
    let sale = campaign().to(10).through(gateway).write();
    sale.run(&["--limit", "5"]).exits(0);
    sale
}

/// Words that report a changed input, and the change.
type Change = (&'static str, fn(Draft) -> Draft);

#[test]
fn run_with_changed_inputs_is_refused_and_changes_are_listed() {
    let gateway = Gateway::accepting();
    let changes: [Change; 6] = [
        ("the list `", |draft| draft.to(11)),
        ("the channels or their messages", |draft| draft.channels("  - sms: { signature: OlenaCo, message: Bye }")),
        ("`endpoint`", Draft::asynchronous),
        ("`vars`", |draft| draft.top("vars: { shop: Olena }")),
        ("`recipients.region`", |draft| draft.recipients("region: UA")),
        ("`recipients.duplicates`", |draft| draft.recipients("duplicates: allow")),
    ];
    for (words, change) in changes {
        let sale = half_sent_campaign(&gateway);
        let before = std::fs::read(sale.results_file()).expect("results");
        let sent = gateway.phones().len();
        change(campaign().to(10)).through(&gateway).rewrite(&sale);
        sale.run(&["--yes"]).exits(2).says(words).says("--accept-changes");
        assert_eq!(gateway.phones().len(), sent, "{words}");
        assert_eq!(std::fs::read(sale.results_file()).expect("results"), before);
        campaign().to(10).through(&gateway).rewrite(&sale);
        sale.run(&[]).exits(0);
        assert_eq!(gateway.phones().len(), sent + 5, "with the inputs restored, the run resumes");
    }
}

#[test]
fn run_is_refused_if_a_template_file_changed() {
    let gateway = Gateway::accepting();
    let sms = "  - sms: { signature: OlenaCo, message: { file: sale.sms.txt } }";
    let sale = campaign().channels(sms).through(&gateway).write();
    sale.write("sale.sms.txt", "Hello");
    sale.run(&["--limit", "1"]).exits(0);
    sale.write("sale.sms.txt", "Good bye");
    sale.run(&[]).exits(2).says("the channels or their messages");
    assert_eq!(gateway.phones(), [phone(2)]);
}

#[test]
fn accepted_changes_are_sent_only_to_remaining_recipients() {
    let gateway = Gateway::accepting();
    let sale = half_sent_campaign(&gateway);
    campaign().to(12).channels("  - sms: { signature: OlenaCo, message: Bye }").through(&gateway).rewrite(&sale);
    let summary = sale.run(&["--accept-changes", "--json"]).exits(0).json();
    assert_eq!(summary["counts"], json!({ "accepted": 7, "skipped": 5 }));
    assert_eq!(summary["run"], "sale@2");
    assert_eq!(gateway.phones(), (2..14).map(phone).collect::<Vec<_>>());
    let texts = gateway.sends().into_iter().flat_map(|request| request.operations());
    assert_eq!(texts.filter(|operation| operation["sms_message"] == "Bye").count(), 7);
    sale.run(&[]).exits(0);
    sale.campaign(&["status"]).exits(0).says("replaced by a later run");
}

#[test]
fn run_without_its_list_is_refused_but_results_are_written() {
    let gateway = Gateway::accepting();
    let sale = half_sent_campaign(&gateway);
    std::fs::remove_file(sale.path("sale.csv")).expect("removed");
    sale.run(&[]).exits(2).says("sale.csv");
    assert_eq!(sale.campaign(&["results", "sale", "--out", "-"]).exits(0).stdout.lines().count(), 11);
}

#[test]
fn inputs_changed_while_sending_do_not_affect_the_run() {
    let gateway = Gateway::answering([crate::support::Answer::Held]);
    let sale = campaign().to(10).through(&gateway).write();
    let run = sale.start(&[]);
    crate::support::until("the gateway has the first envelope", || !gateway.requests().is_empty());
    campaign().to(20).channels("  - sms: { signature: OlenaCo, message: Bye }").through(&gateway).rewrite(&sale);
    gateway.release();
    run.finish().exits(0);
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
    let texts = gateway.sends().into_iter().flat_map(|request| request.operations());
    assert!(texts.into_iter().all(|operation| operation["sms_message"] != "Bye"));
}
