//! End time of a run (`delivery.until`): no messages are sent after it, and the remaining recipients are skipped.

use serde_json::json;

use crate::support::{Clock, Draft, Folder, Gateway, Process, campaign, note_on_failure};

/// Drafts a campaign to forty recipients, at four a second, until one second after the start.
fn one_second_campaign(gateway: &Gateway) -> Draft {
    campaign().to(40).batches_of(2).through(gateway).delivery("rate: 4/s").delivery("until: 1s")
}

/// Returns the numbers of accepted and of expired recipients. Fails if a recipient is neither accepted nor skipped.
#[track_caller]
fn count_outcomes(sale: &Folder, gateway: &Gateway) -> (u64, usize) {
    let results = sale.results();
    let expired = results.rows.iter().filter(|row| row["reason"] == "expired");
    let expired = expired.inspect(|row| assert_eq!(row["state"], "skipped")).count();
    let counts = results.counts();
    assert_eq!(counts["accepted"] + counts["skipped"], 40, "{counts:?}");
    assert_eq!(gateway.phones().len() as u64, counts["accepted"], "each at most once");
    (counts["accepted"], expired)
}

#[test]
fn remaining_recipients_are_skipped_after_the_end_time() {
    let gateway = Gateway::accepting();
    let sale = one_second_campaign(&gateway).write();
    let output = sale.run(&["--json"]).exits(3).json();
    assert_eq!(output["stopped"], "until");
    let (accepted, expired) = count_outcomes(&sale, &gateway);
    assert!((1..=8).contains(&accepted) && expired as u64 == 40 - accepted, "{accepted}");
    assert_eq!(output["counts"], json!({ "accepted": accepted, "skipped": expired }));
    let status = sale.campaign(&["status", "sale", "--json"]).exits(3).json();
    assert_eq!(status["counts"], output["counts"]);
    sale.campaign(&["status", "sale"]).exits(3).says("before `delivery.until`");
}

#[test]
fn run_does_not_begin_if_its_window_opens_after_the_end_time() {
    let gateway = Gateway::accepting();
    let draft = campaign().to(40).through(&gateway).top("timezone: Pacific/Apia").delivery("until: 1h");
    // The window opens only on yesterday's weekday, which is at least five days away.
    let now = jiff::Timestamp::now().in_tz("Pacific/Apia").expect("a zone");
    let yesterday = now.yesterday().expect("a day").strftime("%a").to_string().to_lowercase();
    let sale = draft.delivery(&format!("window: {{ hours: 00:00-24:00, days: {yesterday} }}")).write();
    sale.run(&[]).exits(2).says("error[never-sends]: no messages can be sent");
    assert!(gateway.sends().is_empty());
    // No recipient was skipped for good.
    sale.campaign(&["status"]).exits(0).says("no runs yet");
    sale.replace("sale.yaml", "until: 1h", "until: 7d");
    sale.run(&[]).exits(5);
}

#[test]
fn end_time_of_an_unfinished_run_counts_from_its_start() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let sale = campaign().to(9).through(&gateway).delivery("until: 1h").write();
    sale.run(&["--limit", "3"]).exits(0);
    sale.campaign(&["check", "sale.yaml"]).exits(0);
    let later = clock.set_to(jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2));
    for command in [&["check", "sale.yaml"][..], &["plan", "sale.yaml"], &["run", "sale.yaml", "--dry-run"]] {
        let checked = Process::start(sale.command_after(&later, command)).finish();
        checked.exits(2).says("`until` has passed");
    }
    assert_eq!(gateway.phones().len(), 3);
}

#[test]
fn unfinished_run_does_not_shift_end_times_of_scheduled_runs() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let schedule = "schedule: { every: daily 10:00 }\ntimezone: UTC";
    let sale = campaign().to(9).through(&gateway).top(schedule).delivery("until: 1h").write();
    sale.run(&["--now", "--limit", "3"]).exits(0);
    let later = clock.set_to(jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2));
    Process::start(sale.command_after(&later, &["check", "sale.yaml"])).finish().exits(0);
}

#[test]
fn run_resumed_after_the_end_time_sends_nothing_more() {
    for point in ["intent.kept:2", "expired.kept:1", "outcome.kept:2"] {
        let _case = note_on_failure(format!("case: {point}"));
        let gateway = Gateway::accepting();
        let sale = one_second_campaign(&gateway).write();
        let mut command = sale.command(&["run", "sale.yaml", "--no-wait"]);
        command.env("CAMPAIGN_FAILPOINT", point);
        let started_at = std::time::Instant::now();
        let died = Process::start(command).finish();
        assert!(died.stderr.contains("went off"), "{}", died.details());
        let sent = gateway.phones().len();
        crate::support::until("the end time has passed", || {
            started_at.elapsed() > std::time::Duration::from_millis(1_500)
        });
        let again = sale.run(&[]);
        assert!(matches!(again.code(), Some(3 | 4)), "{}", again.details());
        assert_eq!(gateway.phones().len(), sent);
        let counts = sale.results().counts();
        assert_eq!(counts.get("planned"), None, "{counts:?}");
        assert!(sale.results().rows.iter().filter(|row| row["reason"] == "expired").count() >= 30);
    }
}
