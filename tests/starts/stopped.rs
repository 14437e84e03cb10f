//! Recipients of a run that was stopped for good: later runs skip them, and a prompt says so beforehand.

use serde_json::json;

use crate::support::{Answer, Folder, Gateway, Terminal, campaign, phone, rejected};

/// Creates a campaign to ten recipients, of which three have a message and seven were cancelled.
fn stopped_campaign(gateway: &Gateway, edition: &str) -> Folder {
    let sale = campaign().to(10).top(edition).through(gateway).write();
    sale.run(&["--limit", "3"]).exits(0);
    sale.campaign(&["stop", "sale", "--for-good", "--yes"]).exits(0).says("7 rows cancelled");
    sale
}

#[test]
fn cancelled_recipients_are_skipped_in_the_same_edition() {
    let gateway = Gateway::accepting();
    for edition in ["", "edition: first"] {
        let sale = stopped_campaign(&gateway, edition);
        let before = gateway.phones().len();
        let output = sale.run(&["--json"]).exits(0).json();
        assert_eq!((&output["sent"], &output["counts"]), (&json!(0), &json!({ "skipped": 10 })), "{output}");
        assert_eq!(output["why"], "no recipients are left to send to");
        let notes = output["notes"].to_string();
        assert!(
            notes.contains("7 skipped: cancelled earlier")
                && notes.contains("recipients cancelled in sale@1 are skipped"),
            "{output}"
        );
        assert!(notes.contains("--again 10"), "{output}");
        for command in [&["check", "sale.yaml"][..], &["plan", "sale.yaml"], &["run", "sale.yaml", "--dry-run"]] {
            let counts = sale.campaign(&[command, &["--json"]].concat()).exits(0).json()["counts"].clone();
            assert_eq!(counts, json!({ "skipped": 10 }), "{command:?}");
        }
        sale.run(&["--accept-changes"]).exits(0).says("no recipients are left");
        assert_eq!(gateway.phones().len(), before);
    }
}

#[test]
fn cancelled_recipients_appear_in_results_with_a_reason() {
    let gateway = Gateway::accepting();
    let sale = stopped_campaign(&gateway, "");
    let list = std::fs::read_to_string(sale.path("sale.csv")).expect("a list");
    sale.write("sale.csv", &format!("{list}{},New\n", phone(12)));
    sale.run(&[]).exits(0).says("sale@2").says("10 skipped").says("recipients cancelled in sale@1");
    assert_eq!(gateway.phones(), [2, 3, 4, 12].map(phone));
    let results = sale.results();
    assert_eq!(results.column("reason")[..3], ["already sent"; 3]);
    assert_eq!(results.column("reason")[3..10], ["cancelled earlier"; 7]);
    assert_eq!(results.counts().values().sum::<u64>(), 11, "each row has one state");
    // The recipients stay cancelled after later runs.
    sale.run(&[]).exits(0).says("no recipients are left");
    assert_eq!(gateway.phones().len(), 4);
}

#[test]
fn another_round_or_edition_includes_cancelled_recipients() {
    let gateway = Gateway::accepting();
    let sale = stopped_campaign(&gateway, "edition: first");
    sale.run(&["--again", "10"]).exits(0).says("10 accepted");
    assert_eq!(gateway.phones().len(), 13);
    let sale = stopped_campaign(&gateway, "edition: first");
    sale.replace("sale.yaml", "edition: first", "edition: second");
    sale.run(&[]).exits(0).says("10 accepted");
    // Only the latest round of an edition counts.
    sale.run(&["--again", "10", "--limit", "1"]).exits(0);
    sale.campaign(&["stop", "sale", "--for-good", "--yes"]).exits(0).says("9 rows cancelled");
    assert_eq!(sale.run(&["--json"]).exits(0).json()["counts"], json!({ "skipped": 10 }));
}

#[test]
fn rows_that_were_rejected_before_the_stop_are_not_cancelled() {
    let gateway = Gateway::answering([Answer::Accept, Answer::items(|operation| rejected(operation, "No route"))]);
    let sale = campaign().to(10).batches_of(2).one_at_a_time().through(&gateway).write();
    sale.run(&["--limit", "4"]).exits(3);
    sale.campaign(&["stop", "sale", "--for-good", "--yes"]).exits(3).says("6 rows cancelled");
    let refused = sale
        .campaign(&["retry", "sale", "--yes"])
        .exits(2)
        .says("sale@1 was cancelled and can no longer send messages");
    refused.says("help: to retry the run's rejected and unsent rows: `campaign run sale.yaml --gateway local`");
    sale.run(&[]).exits(0).says("2 accepted").says("8 skipped");
    assert_eq!(gateway.phones(), [2, 3, 4, 5, 3, 4].map(phone));
}

#[test]
fn rows_that_were_in_doubt_before_the_stop_stay_in_doubt() {
    let gateway = Gateway::answering([Answer::CutBody]);
    let sale = campaign().to(4).through(&gateway).write();
    sale.run(&["--limit", "1"]).exits(4);
    sale.campaign(&["stop", "sale", "--for-good", "--yes"]).exits(4).says("1 in doubt").says("3 skipped");
    let output = sale.run(&["--json"]).json();
    assert_eq!(output["counts"], json!({ "skipped": 4 }));
    let notes = output["notes"].to_string();
    assert!(notes.contains("1 skipped: already sent") && notes.contains("3 skipped: cancelled earlier"), "{output}");
    assert_eq!(gateway.phones(), [phone(2)]);
}

#[test]
fn shared_run_skips_recipients_that_a_stop_cancelled() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&["--limit", "3"]).exits(0);
    sale.campaign(&["stop", "sale", "--for-good", "--yes"]).exits(0);
    let list = std::fs::read_to_string(sale.path("sale.csv")).expect("a list");
    sale.write("sale.csv", &format!("{list}{},New\n", phone(12)));
    sale.run(&["--shared"]).exits(0).says("1 accepted").says("10 skipped");
    assert_eq!(gateway.phones(), [2, 3, 4, 12].map(phone));
}

#[test]
fn stop_shows_the_run_and_needs_confirmation() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&["--limit", "3"]).exits(0);
    let stop = || sale.command(&["stop", "sale", "--for-good"]);
    for typed in ["", "y", "7"] {
        let terminal = Terminal::start(stop());
        terminal.shows("Stop sale@1 for good and cancel 7 rows?").shows("through local · 10 rows: ").shows("7 planned");
        terminal.shows("campaign stop sale@1").shows("Type yes to cancel 7 rows, or press Enter").types(typed);
        terminal.shows("Cancelled. The run is unchanged.");
        terminal.finish().exits(2);
    }
    let refused = sale.campaign(&["stop", "sale", "--for-good"]).exits(2);
    refused
        .says("cancelling 7 rows in sale@1 needs confirmation")
        .says("nothing was changed")
        .says("help: run the command at a terminal to see what will change, or add `--yes`");
    let refused = sale.campaign(&["stop", "sale", "--for-good", "--json"]).exits(2).json();
    assert!(refused["error"].is_string() && refused["help"].is_string(), "{refused}");
    sale.campaign(&["stop", "sale", "--yes"]).exits(2);
    let terminal = Terminal::start(stop());
    terminal.shows("or press Enter").types("yes");
    terminal.shows("7 rows cancelled");
    terminal.finish().exits(0);
    sale.campaign(&["stop", "sale", "--for-good"]).exits(2).says("has already ended");
}

#[test]
fn stop_names_the_schedule_that_stays_active() {
    let gateway = Gateway::accepting();
    let schedule = "schedule: { every: Mon 10:00 }";
    let sale = campaign().to(4).top("timezone: Europe/Kyiv").top(schedule).through(&gateway).write();
    sale.run(&["--now", "--limit", "1"]).exits(0);
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    let notice = "The schedule `sale` remains active and sends messages at its next scheduled time.";
    let remove = "To remove it: campaign schedule remove sale";
    let terminal = Terminal::start_on(200, sale.command(&["stop", "sale", "--for-good"]));
    terminal.shows(notice).shows(remove).shows("or press Enter").types("");
    terminal.finish().exits(2);
    sale.campaign(&["stop", "sale", "--for-good", "--yes"]).exits(0).says("3 rows cancelled").says(notice).says(remove);
    sale.replace("sale.yaml", "name: sale\n", "name: sale\nedition: second\n");
    sale.run(&["--now", "--limit", "1"]).exits(0);
    sale.campaign(&["schedule", "pause", "sale"]).exits(0);
    let paused = sale.campaign(&["stop", "sale", "--for-good", "--yes"]).exits(0).details();
    assert!(!paused.contains("remains active"), "{paused}");
}
