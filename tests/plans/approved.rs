//! Typed approvals: an approval answers the confirmation prompt of one run.

use serde_json::Value;

use super::{EARLIER, LATER, plan, run_in, use_daily_edition};
use crate::support::{Folder, Server, Terminal, http_get, in_files, live, with_ledger};

/// Approves a plan at a terminal.
fn approve(sale: &Folder, digest: &str) {
    approve_in(sale, "UTC", digest);
}

/// Approves a plan at a terminal, on the date of a time zone.
fn approve_in(sale: &Folder, zone: &str, digest: &str) {
    let mut command = sale.command(&["approve", digest]);
    command.env("TZ", zone);
    let terminal = Terminal::start(command);
    terminal
        .shows("Approve one run of sale through local (gateway.invalid)?")
        .shows("3 of 3")
        .shows("at most 2.40")
        .shows("Hello, Person 2");
    terminal.shows("one run of this plan, to at most 3 recipients").shows("Type yes to approve").types("yes");
    terminal.shows("approved ");
    terminal.finish().exits(0);
}

/// Counts the uses of approvals.
fn count_uses(sale: &Folder) -> i64 {
    let mut uses = 0;
    with_ledger(sale, async |ledger| {
        let counted = sqlx::query_scalar("SELECT count(*) FROM approval_uses").fetch_one(ledger).await;
        uses = counted.expect("a number");
    });
    uses
}

#[test]
fn approval_can_be_given_only_at_a_terminal() {
    let sale = live();
    let digest = plan(&sale, &[]);
    sale.campaign(&["approve", &digest]).exits(2).says("the approver must confirm the approval at a terminal");
    sale.campaign(&["approve", &digest, "--yes"]).exits(2).says("--yes");
    let terminal = Terminal::start(sale.command(&["approve", &digest]));
    terminal.shows("Type yes").types("3");
    terminal.finish().exits(2);
    sale.run(&["--offline", "--plan", &digest]).exits(2).says("`--yes`");
    approve(&sale, &digest[..16]);
    sale.campaign(&["approve", &digest]).exits(2).says("has already been approved");
    sale.campaign(&["approve", "0123"]).exits(2).says("there is no plan");
}

#[test]
fn approval_replaces_confirmation_of_one_run_until_it_ends() {
    let _files = in_files();
    let sale = live();
    use_daily_edition(&sale);
    let digest = plan(&sale, &[]);
    approve(&sale, &digest);
    sale.run(&["--offline"]).exits(2).says("`--yes`");
    // The gateway is unreachable, so the run begins and stops.
    run_in(&sale, EARLIER, &["--offline", "--plan", &digest]).exits(5).says("approved by");
    sale.campaign(&["status", "sale"]).says("  approved by ");
    sale.campaign(&["results", "sale", "--out", "mine.csv"]).says("  approved by ");
    let status = sale.campaign(&["status", "sale", "--json"]).json();
    assert_eq!(status["approved"].as_array().map(Vec::len), Some(1), "{status}");
    sale.write_secret("token", "t0ken-of-the-plans-77");
    let server = Server::start(&sale, &["--token-file", "token"]);
    let bearer = [("Authorization", "Bearer t0ken-of-the-plans-77")];
    let run: Value = serde_json::from_str(&http_get(&server.address(), "/api/runs/sale", &bearer).body).expect("a run");
    assert_eq!(run["approved"], status["approved"]);
    drop(server);
    run_in(&sale, EARLIER, &["--offline", "--plan", &digest]).exits(5);
    assert_eq!(count_uses(&sale), 1, "the resumed run uses its first approval");
    sale.campaign(&["stop", "sale@1", "--for-good", "--yes"]).exits(0);
    run_in(&sale, LATER, &["--offline", "--plan", &digest]).exits(2).says("`--yes`");
    approve_in(&sale, LATER, &digest);
    run_in(&sale, LATER, &["--offline", "--plan", &digest]).exits(5);
    assert_eq!(count_uses(&sale), 2);
}

#[test]
fn run_started_without_an_approval_resumes_with_one() {
    let _files = in_files();
    let sale = live();
    let digest = plan(&sale, &[]);
    sale.run(&["--offline", "--yes"]).exits(5);
    sale.run(&["--offline", "--plan", &digest]).exits(2).says("`--yes`");
    approve(&sale, &digest);
    sale.run(&["--offline", "--plan", &digest]).exits(5);
    assert_eq!(count_uses(&sale), 1);
}

#[test]
fn only_one_of_two_simultaneous_runs_gets_the_approval() {
    let _files = in_files();
    let sale = live();
    let digest = plan(&sale, &[]);
    approve(&sale, &digest);
    let start = || sale.start(&["--offline", "--plan", &digest]);
    let (one, other) = (start(), start());
    let codes = [one.finish().code(), other.finish().code()];
    assert!(codes.contains(&Some(5)), "{codes:?}");
    assert!(
        codes.iter().all(|code| matches!(code, Some(5 | 6))),
        "{codes:?}: the second process was busy or resumed the run"
    );
    assert_eq!(count_uses(&sale), 1);
}

#[test]
fn changed_plan_and_rehearsal_plan_cannot_be_approved() {
    let sale = live();
    let digest = plan(&sale, &[]);
    sale.replace("sale.yaml", "Hello", "Goodbye");
    sale.campaign(&["approve", &digest]).exits(2).says("the text `channels[0].sms.message` changed");
    let rehearsal = plan(&sale, &["--gateway", "sandbox"]);
    sale.campaign(&["approve", &rehearsal]).exits(2).says("needs no approval");
}

#[test]
fn plan_and_confirmation_say_that_a_new_round_repeats_messages() {
    const REPEATS: &str = "`--again`: recipients who already got this message will get it again";
    let sale = live();
    assert!(!sale.campaign(&["plan", "sale.yaml"]).exits(0).details().contains(REPEATS));
    let planned = sale.campaign(&["plan", "sale.yaml", "--again", "3", "--json"]).exits(0).json();
    sale.campaign(&["plan", "sale.yaml", "--again", "3"]).exits(0).says(REPEATS);
    let digest = planned["digest"].as_str().expect("a digest").to_owned();
    for command in [&["approve", &digest][..], &["run", "sale.yaml", "--offline", "--again", "3"]] {
        let terminal = Terminal::start(sale.command(command));
        terminal.shows(REPEATS).types("no");
        terminal.finish().exits(2);
    }
}
