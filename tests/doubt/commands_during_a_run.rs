//! Commands during a run: read-only commands change nothing, and decisions are refused until the run stops.

use super::{count_commits, ten_recipients};
use crate::support::{Answer, Gateway, Results, campaign, in_files, phone, until};

#[test]
fn run_in_progress_is_read_only_for_other_processes() {
    let _files = in_files();
    let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
    let sale = campaign().to(10).batches_of(4).one_at_a_time().through(&gateway).write();
    let run = sale.start(&[]);
    until("the gateway has the second envelope", || gateway.requests().len() == 2);
    let before = count_commits(&sale);
    sale.campaign(&["status"]).exits(0).says("sending");
    let output = sale.campaign(&["status", "sale"]).exits(6).says("to stop the run: campaign stop sale@1");
    assert_eq!(
        output.stdout.lines().last(),
        Some("next: campaign status sale@1"),
        "the suggested command changes nothing"
    );
    let results = Results::parse(&sale.campaign(&["results", "sale", "--out", "-"]).exits(0).stdout);
    let mut expected = vec!["accepted"];
    expected.extend(["sending"; 4].iter().chain(&["planned"; 5]));
    assert_eq!(results.states(), expected);
    sale.campaign(&["show", "sale", "--row", "4"]).exits(0).says("sending");
    let busy: [&[&str]; 4] = [
        &["reconcile", "sale"],
        &["resolve", "sale", "--all", "--as", "sent"],
        &["resolve", "sale", "--rows", "3-6", "--as", "send-again", "--i-accept-duplicates", "4"],
        &["retry", "sale"],
    ];
    for command in busy {
        sale.campaign(command).exits(6).says("another process");
    }
    assert_eq!(count_commits(&sale), before, "the ledger is unchanged");
    assert!(!sale.results_file().exists());
    gateway.release();
    run.finish().exits(0);
    assert_eq!(sale.results().counts(), [("accepted".to_owned(), 10)].into());
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn resent_message_is_shown_as_sending_on_every_surface() {
    let script = [Answer::Accept, Answer::CloseRead, Answer::Accept, Answer::Accept, Answer::Held];
    let gateway = Gateway::answering(script);
    let sale = ten_recipients(&gateway).write();
    sale.run(&[]).exits(4);
    let again = ["resolve", "sale", "--rows", "4", "--as", "send-again", "--i-accept-duplicates", "1"];
    sale.campaign(&again).exits(5);
    let run = sale.start(&[]);
    until("the gateway has the row again", || gateway.sends().len() == 5);
    sale.campaign(&["status", "sale"]).exits(6).says("1 sending");
    sale.campaign(&["show", "sale", "--row", "4"]).exits(0).says("row 4 to").says("· sending");
    let results = Results::parse(&sale.campaign(&["results", "sale", "--out", "-"]).exits(0).stdout);
    assert_eq!(results.states()[1..6], ["in_doubt", "sending", "in_doubt", "in_doubt", "accepted"]);
    let row = results.rows.iter().find(|result| result["row"] == "4").expect("the row");
    assert_eq!((row["state"].as_str(), row["reason"].as_str()), ("sending", ""));
    gateway.release();
    run.finish().exits(4);
}

#[test]
fn reading_a_killed_run_leaves_its_intent_unchanged() {
    let gateway = Gateway::answering([Answer::Accept, Answer::Silence]);
    let sale = campaign().to(10).batches_of(4).one_at_a_time().through(&gateway).write();
    let run = sale.start(&[]);
    until("the gateway has the second envelope", || gateway.requests().len() == 2);
    assert_eq!(run.kill().code(), None);
    let before = count_commits(&sale);
    sale.campaign(&["status", "sale"]).exits(5).says("4 in doubt");
    let results = Results::parse(&sale.campaign(&["results", "sale", "--out", "-"]).exits(0).stdout);
    assert_eq!(results.counts()["in_doubt"], 4);
    sale.campaign(&["show", "sale", "--row", "4"]).exits(0).says("in doubt");
    assert_eq!(count_commits(&sale), before);
}
