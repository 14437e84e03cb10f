//! The process dies at each step of a message's way, whichever envelope it is; the same command goes on from there.

use super::witness::{Tally, Witness};
use crate::support::{Draft, Finished, Folder, Process, campaign, phone, telling};

/// How many people the campaigns here go to: envelopes of 1, 4 and 4.
const PEOPLE: usize = 9;
/// The most rows of an envelope here.
const LARGEST: usize = 4;
/// The most starts that a run may need after it died.
const STARTS: usize = 3;

/// Runs the binary with a failpoint armed; tells whether it died there.
fn dies(sale: &Folder, arguments: &[&str], (point, pass): (&str, u32)) -> bool {
    let mut command = sale.command(arguments);
    command.env("CAMPAIGN_FAILPOINT", format!("{point}:{pass}"));
    let finished = Process::start(command).finish();
    let fired = finished.stderr.contains(&format!("failpoint {point} went off"));
    assert_eq!(fired, finished.code().is_none(), "{}", finished.told());
    fired
}

const RUN: [&str; 3] = ["run", "sale.yaml", "--no-wait"];

/// Starts the run by the same command until it is at its end.
fn goes_on(sale: &Folder) -> Finished {
    for _ in 0..STARTS {
        let finished = sale.run(&[]);
        if matches!(finished.code(), Some(0 | 3 | 4)) {
            return finished;
        }
    }
    panic!("not at its end after {STARTS} starts");
}

fn draft(asynchronous: bool) -> Draft {
    let draft = campaign().to(PEOPLE).batches_of(LARGEST).one_at_a_time();
    if asynchronous { draft.asynchronous() } else { draft }
}

/// Has a run die at each pass of a failpoint, until it is passed no more; gives the number of deaths.
fn dies_at_every_pass(point: &str, asynchronous: bool) -> u32 {
    for pass in 1.. {
        let _case = telling(format!("case: {point}:{pass}, asynchronous: {asynchronous}"));
        let witness = Witness::start();
        let sale = draft(asynchronous).through(&witness).write();
        if !dies(&sale, &RUN, (point, pass)) {
            return pass - 1;
        }
        goes_on(&sale);
        let people = (2..PEOPLE + 2).map(phone);
        assert_eq!(witness.tally(&sale, people), Tally::default());
        let doubts = witness.doubts(&sale);
        assert!(doubts.len() <= LARGEST, "one envelope was open when it died: {doubts:?}");
        assert!(doubts.is_empty() || never_left(point), "nothing was open when it died: {doubts:?}");
        assert!(!doubts.is_empty() || !leaves_doubt(point), "nothing proves that these were not sent");
        sale.run(&[]).exits(if doubts.is_empty() { 0 } else { 4 });
        assert_eq!(witness.arrived() + doubts.len(), PEOPLE);
    }
    0
}

/// Whether an envelope that did not leave may be open at that point: only its intent is on the disk.
fn never_left(point: &str) -> bool {
    leaves_doubt(point) || point == "commit.after" || point.starts_with("mark.")
}

fn leaves_doubt(point: &str) -> bool {
    matches!(point, "intent.kept" | "envelope.leaves")
}

/// Judges each of these failpoints on one endpoint; each goes off as often as is told.
fn judge(points: &[(&str, std::ops::RangeInclusive<u32>)], asynchronous: bool) {
    for (point, passes) in points {
        let deaths = dies_at_every_pass(point, asynchronous);
        assert!(passes.contains(&deaths), "{point} went off {deaths} times");
    }
}

/// Every step of an envelope: it is passed once by each of the three.
const ENVELOPE: [(&str, std::ops::RangeInclusive<u32>); 4] =
    [("intent.kept", 3..=3), ("envelope.leaves", 3..=3), ("answer.came", 3..=3), ("outcome.kept", 3..=3)];

/// Every commit: the run is created, opened, claimed, ended, and each envelope has an intent and an outcome.
const COMMITS: [(&str, std::ops::RangeInclusive<u32>); 3] =
    [("commit.before", 8..=16), ("commit.after", 8..=16), ("mark.written", 8..=16)];

/// The beginning and the end of a run.
const ENDS: [(&str, std::ops::RangeInclusive<u32>); 9] = [
    ("run.created", 1..=1),
    ("run.frozen", 1..=1),
    ("run.named", 1..=1),
    ("run.opened", 1..=1),
    ("run.claimed", 1..=1),
    ("results.written", 1..=1),
    ("results.renamed", 1..=1),
    ("run.marked", 1..=1),
    ("mark.created", 1..=1),
];

#[test]
fn run_killed_at_any_step_of_an_envelope_resumes_safely() {
    judge(&ENVELOPE, false);
}

#[test]
fn asynchronous_run_killed_at_any_step_resumes_safely() {
    judge(&ENVELOPE, true);
}

#[test]
fn run_killed_around_any_commit_resumes_safely() {
    judge(&COMMITS, false);
}

#[test]
fn asynchronous_run_killed_around_any_commit_resumes_safely() {
    judge(&COMMITS, true);
}

#[test]
fn run_killed_at_its_begin_or_end_resumes_safely() {
    judge(&ENDS, false);
}

#[test]
fn asynchronous_run_killed_at_begin_or_end_resumes_safely() {
    judge(&ENDS, true);
}

#[test]
fn run_killed_while_reconciling_asks_again_and_sends_nothing() {
    for point in ["questions.kept", "events.kept", "commit.before", "commit.after"] {
        for pass in 1..=3 {
            let _case = telling(format!("case: {point}:{pass}"));
            let witness = Witness::start();
            let sale = draft(false).through(&witness).write();
            assert!(dies(&sale, &RUN, ("answer.came", 2)), "the second envelope's answer is lost");
            let asks_once = point.ends_with("kept");
            if asks_once && pass > 1 {
                continue;
            }
            assert!(dies(&sale, &RUN, (point, pass)), "it asks");
            goes_on(&sale).exits(0);
            assert_eq!(witness.tally(&sale, (2..PEOPLE + 2).map(phone)), Tally::default());
        }
    }
}

#[test]
fn resend_order_given_before_a_crash_is_executed_once() {
    let orders = [("retry.ordered", 1), ("commit.before", 1), ("commit.before", 2), ("commit.after", 1)];
    let later = [("commit.after", 2), ("intent.kept", 1), ("answer.came", 1), ("outcome.kept", 1), ("run.marked", 1)];
    for (point, pass) in orders.into_iter().chain(later) {
        let _case = telling(format!("case: {point}:{pass}"));
        let witness = Witness::refusing((4..7).map(phone));
        let sale = draft(false).through(&witness).write();
        sale.run(&["--keep-going"]).exits(3);
        assert_eq!((witness.refused(), witness.arrived()), (3, PEOPLE - 3));
        assert!(dies(&sale, &["retry", "sale@1"], (point, pass)), "it sends again");
        // Whatever was not ordered before it died is ordered now; what was ordered is gone on with.
        if sale.campaign(&["retry", "sale@1"]).code() == Some(2) {
            goes_on(&sale);
        }
        assert_eq!(witness.tally(&sale, (2..PEOPLE + 2).map(phone)), Tally::default());
        let doubts = witness.doubts(&sale).len();
        assert_eq!(witness.arrived() + doubts, PEOPLE, "each of the refused goes out once more, or is in doubt");
    }
}
