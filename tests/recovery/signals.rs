//! Signals and closed output pipes: a run that is interrupted once or twice, or whose output is not read.

use std::time::Duration;

use serde_json::json;

use crate::support::{Answer, Folder, Gateway, Process, SandboxProcess, campaign, phone, until};

/// Checks that no number got two messages, and returns how many got one.
fn count_single_messages(sandbox: &SandboxProcess) -> usize {
    let messages = sandbox.messages();
    assert!(messages.values().all(|&times| times == 1), "{messages:?}");
    messages.len()
}

/// Raises the rate of a campaign that was slow so that it could be interrupted.
fn raise_rate(sale: &Folder) {
    sale.replace("sale.yaml", "rate: 100/s", "rate: 100000/s");
}

#[test]
fn interrupted_run_writes_results_and_next_run_sends_the_rest() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let sandbox = SandboxProcess::start();
        let sale = campaign().to(400).through(&sandbox).delivery("rate: 100/s").batches_of(10).write();
        let mut run = sale.start(&["--json"]);
        until("some messages were sent", || count_single_messages(&sandbox) > 5);
        run.signal(signal);
        let summary = run.finish().exits(code).json();
        let accepted = count_single_messages(&sandbox);
        assert_eq!(summary["counts"], json!({ "accepted": accepted, "planned": 400 - accepted }), "SIG{signal}");
        assert_eq!(sale.results().counts()["accepted"] as usize, accepted);
        raise_rate(&sale);
        sale.run(&[]).exits(0);
        assert_eq!(count_single_messages(&sandbox), 400);
    }
}

#[test]
fn signal_waits_for_open_requests() {
    let gateway = Gateway::answering([Answer::Held]);
    let sale = campaign().to(30).through(&gateway).write();
    let mut run = sale.start(&[]);
    until("the gateway has the first envelope", || !gateway.requests().is_empty());
    run.signal("INT");
    until("the run is stopping", || run.stderr().contains("stopping"));
    assert!(run.is_running());
    gateway.release();
    run.finish().exits(130);
    assert_eq!(sale.results().counts(), [("accepted".to_owned(), 1), ("planned".to_owned(), 29)].into());
}

#[test]
fn second_signal_ends_a_run_at_once_with_messages_in_doubt() {
    let gateway = Gateway::answering([Answer::Silence]);
    let sale = campaign().to(30).through(&gateway).write();
    let mut run = sale.start(&[]);
    until("the gateway has the first envelope", || !gateway.requests().is_empty());
    run.signal("TERM");
    until("the run is stopping", || run.stderr().contains("stopping"));
    run.signal("TERM");
    run.finish_within(Duration::from_secs(1)).exits(143).says("interrupted twice while 1 message was being sent");
    sale.campaign(&["status", "sale"]).exits(5).says("1 in doubt");
    sale.run(&[]).exits(4);
    assert_eq!(gateway.phones(), (2..32).map(phone).collect::<Vec<_>>(), "the row in doubt is not sent again");
    assert_eq!(sale.results().states()[0], "in_doubt");
}

#[test]
fn second_signal_leaves_no_waiting_envelope_in_doubt() {
    let gateway = Gateway::answering([Answer::status_with(429, &["Retry-After: 600"])]);
    let sale = campaign().through(&gateway).profile("trust_status: [429]").write();
    let text = std::fs::read_to_string(sale.path("sale.yaml")).expect("the campaign");
    sale.write("other.yaml", &text.replace("name: sale", "name: other"));
    let mut other = Process::start(sale.command(&["run", "other.yaml"]));
    until("the gateway delays the account", || other.stderr().contains("waiting"));
    other.signal("INT");
    other.finish().exits(130);
    let mut run = sale.start(&[]);
    until("an intent waits for the account", || sale.campaign(&["status", "sale"]).stdout.contains("1 sending"));
    run.signal("INT");
    run.signal("TERM");
    let ended = run.finish_within(Duration::from_secs(1));
    assert!(matches!(ended.code(), Some(130 | 143)), "{}", ended.details());
    assert_eq!(gateway.requests().len(), 1, "only the other campaign sent");
    let status = sale.campaign(&["status", "sale"]);
    assert!(status.stdout.contains("3 planned") && !status.stdout.contains("in doubt"), "{}", status.details());
}

#[test]
fn envelopes_waiting_for_the_rate_are_not_in_doubt_after_crash() {
    let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
    let sale = campaign().to(8).through(&gateway).batches_of(1).delivery("rate: 2/s").delivery("in_flight: 4").write();
    let mut run = sale.start(&[]);
    until("the gateway has the second envelope", || gateway.requests().len() == 2);
    run.signal("KILL");
    run.finish();
    gateway.release();
    sale.replace("sale.yaml", "rate: 2/s", "rate: 100000/s");
    sale.run(&[]).exits(4);
    let mut sent = gateway.phones();
    sent.sort_unstable();
    assert_eq!(sent, (2..10).map(phone).collect::<Vec<_>>());
    assert_eq!(sale.results().counts(), [("accepted".to_owned(), 7), ("in_doubt".to_owned(), 1)].into());
}

#[test]
fn signal_ends_the_wait_for_an_unreachable_gateway() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    drop(gateway);
    let mut run = sale.start(&[]);
    until("the run waits", || run.stderr().contains("connection refused by 127.0.0.1:"));
    run.signal("INT");
    run.finish_within(Duration::from_secs(10)).exits(130);
    assert_eq!(sale.results().states(), ["planned"; 3]);
}

#[test]
fn run_completes_even_if_its_output_is_not_read() {
    for arguments in [&["run", "sale.yaml"][..], &["run", "sale.yaml", "-vv"], &["run", "sale.yaml", "--json"]] {
        let gateway = Gateway::accepting();
        let sale = campaign().to(100).through(&gateway).write();
        Process::start_unread(sale.command(arguments)).finish().exits(0);
        assert_eq!(gateway.phones().len(), 100, "{arguments:?}");
        assert_eq!(sale.results().states(), ["accepted"; 100]);
    }
}
