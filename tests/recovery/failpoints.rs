//! Crashes at every failpoint of sending; the same command resumes the run.

use super::witness::{Tally, Witness};
use crate::support::{Draft, Finished, Folder, Process, campaign, note_on_failure, phone};

/// The number of recipients of each campaign, in envelopes of 1, 4 and 4.
const RECIPIENTS: usize = 9;
/// The size of the largest envelope.
const LARGEST: usize = 4;
/// The maximum number of starts until a run ends after a crash.
const STARTS: usize = 3;

/// Runs the binary with a failpoint active, and returns whether it died there.
fn run_dies(sale: &Folder, arguments: &[&str], (point, pass): (&str, u32)) -> bool {
    let mut command = sale.command(arguments);
    command.env("CAMPAIGN_FAILPOINT", format!("{point}:{pass}"));
    let finished = Process::start(command).finish();
    let fired = finished.stderr.contains(&format!("failpoint {point} went off"));
    assert_eq!(fired, finished.code().is_none(), "{}", finished.details());
    fired
}

const RUN: [&str; 3] = ["run", "sale.yaml", "--no-wait"];

/// Repeats the command until the run ends.
fn resume_to_end(sale: &Folder) -> Finished {
    for _ in 0..STARTS {
        let finished = sale.run(&[]);
        if matches!(finished.code(), Some(0 | 3 | 4)) {
            return finished;
        }
    }
    panic!("the run did not end in {STARTS} starts");
}

fn nine_recipients(is_asynchronous: bool) -> Draft {
    let draft = campaign().to(RECIPIENTS).batches_of(LARGEST).one_at_a_time();
    if is_asynchronous { draft.asynchronous() } else { draft }
}

/// The passes of a failpoint at which runs are killed: every `step`-th, from `first`.
#[derive(Clone, Copy)]
struct Passes {
    first: u32,
    step: usize,
}

const EVERY_PASS: Passes = Passes { first: 1, step: 1 };
/// The stories of the synchronous endpoint cover odd passes, and those of the asynchronous endpoint even ones.
const ODD_PASSES: Passes = Passes { first: 1, step: 2 };
const EVEN_PASSES: Passes = Passes { first: 2, step: 2 };

/// Kills a new run at each of these passes of a failpoint, and returns the first pass that the run does not reach.
fn die_at_passes(point: &str, is_asynchronous: bool, passes: Passes) -> u32 {
    for pass in (passes.first..).step_by(passes.step) {
        let _case = note_on_failure(format!("case: {point}:{pass}, asynchronous: {is_asynchronous}"));
        let witness = Witness::start();
        let draft = nine_recipients(is_asynchronous);
        // Only runs with a consent rule have evidence to store.
        let has_consents = point.starts_with("consents.");
        let draft = if has_consents { draft.recipients("consent: { column: name, source: name }") } else { draft };
        let sale = draft.through(&witness).write();
        if !run_dies(&sale, &RUN, (point, pass)) {
            return pass;
        }
        resume_to_end(&sale);
        let recipients = (2..RECIPIENTS + 2).map(phone);
        assert_eq!(witness.tally(&sale, recipients), Tally::default());
        let doubts = witness.doubts(&sale);
        assert!(doubts.len() <= LARGEST, "only one envelope was open: {doubts:?}");
        assert!(doubts.is_empty() || can_leave_doubt(point), "no envelope was open: {doubts:?}");
        assert!(!doubts.is_empty() || !always_leaves_doubt(point), "the open envelope must be in doubt");
        sale.run(&[]).exits(if doubts.is_empty() { 0 } else { 4 });
        assert_eq!(witness.arrivals() + doubts.len(), RECIPIENTS);
    }
    0
}

/// Whether a crash at this point can leave an envelope in doubt, because its intent is on the disk.
fn can_leave_doubt(point: &str) -> bool {
    always_leaves_doubt(point) || point == "commit.after" || point.starts_with("mark.")
}

/// Whether a crash at this point always leaves an envelope in doubt.
fn always_leaves_doubt(point: &str) -> bool {
    matches!(point, "intent.kept" | "envelope.leaves")
}

/// Checks each failpoint on one endpoint, and that it fires the expected number of times.
fn check_points(points: &[(&str, std::ops::RangeInclusive<u32>)], is_asynchronous: bool, passes: Passes) {
    for (point, expected) in points {
        let unreached = die_at_passes(point, is_asynchronous, passes);
        let possible_counts = (unreached - passes.step as u32)..unreached;
        assert!(
            possible_counts.into_iter().any(|times| expected.contains(&times)),
            "{point} was not reached at {unreached}"
        );
    }
}

/// The steps of an envelope; each of the three envelopes passes them once.
const ENVELOPE_POINTS: [(&str, std::ops::RangeInclusive<u32>); 4] =
    [("intent.kept", 3..=3), ("envelope.leaves", 3..=3), ("answer.came", 3..=3), ("outcome.kept", 3..=3)];

/// The commits of a run: create, open, claim, end, and an intent and an outcome for each envelope.
const COMMIT_POINTS: [(&str, std::ops::RangeInclusive<u32>); 3] =
    [("commit.before", 8..=16), ("commit.after", 8..=16), ("mark.written", 8..=16)];

/// The start and the end of a run.
const RUN_POINTS: [(&str, std::ops::RangeInclusive<u32>); 10] = [
    ("run.created", 1..=1),
    ("run.frozen", 1..=1),
    ("run.named", 1..=1),
    ("consents.kept", 1..=1),
    ("run.opened", 1..=1),
    ("run.claimed", 1..=1),
    ("results.written", 1..=1),
    ("results.renamed", 1..=1),
    ("run.marked", 1..=1),
    ("mark.created", 1..=1),
];

#[test]
fn run_killed_at_any_step_of_an_envelope_resumes_safely() {
    check_points(&ENVELOPE_POINTS, false, EVERY_PASS);
}

#[test]
fn asynchronous_run_killed_at_any_step_resumes_safely() {
    check_points(&ENVELOPE_POINTS, true, EVERY_PASS);
}

#[test]
fn run_killed_around_any_commit_resumes_safely() {
    check_points(&COMMIT_POINTS, false, ODD_PASSES);
}

#[test]
fn asynchronous_run_killed_around_any_commit_resumes_safely() {
    check_points(&COMMIT_POINTS, true, EVEN_PASSES);
}

#[test]
#[ignore = "takes a minute"]
fn run_killed_around_every_commit_resumes_on_both_endpoints() {
    check_points(&COMMIT_POINTS, false, EVERY_PASS);
    check_points(&COMMIT_POINTS, true, EVERY_PASS);
}

#[test]
fn run_killed_at_its_start_or_end_resumes_safely() {
    check_points(&RUN_POINTS, false, EVERY_PASS);
}

#[test]
fn asynchronous_run_killed_at_start_or_end_resumes_safely() {
    check_points(&RUN_POINTS, true, EVERY_PASS);
}

#[test]
fn killed_reconciliation_is_repeated_and_sends_nothing() {
    for point in ["inquiries.kept", "events.kept", "commit.before", "commit.after"] {
        for pass in 1..=3 {
            let _case = note_on_failure(format!("case: {point}:{pass}"));
            let witness = Witness::start();
            let sale = nine_recipients(false).through(&witness).write();
            assert!(run_dies(&sale, &RUN, ("answer.came", 2)), "the second envelope's answer is lost");
            let fires_only_once = point.ends_with("kept");
            if fires_only_once && pass > 1 {
                continue;
            }
            assert!(run_dies(&sale, &RUN, (point, pass)), "the run reaches the failpoint while it reconciles");
            resume_to_end(&sale).exits(0);
            assert_eq!(witness.tally(&sale, (2..RECIPIENTS + 2).map(phone)), Tally::default());
        }
    }
}

#[test]
fn retry_requested_before_a_crash_is_performed_once() {
    let order_points = [("retry.ordered", 1), ("commit.before", 1), ("commit.before", 2), ("commit.after", 1)];
    let later_points =
        [("commit.after", 2), ("intent.kept", 1), ("answer.came", 1), ("outcome.kept", 1), ("run.marked", 1)];
    for (point, pass) in order_points.into_iter().chain(later_points) {
        let _case = note_on_failure(format!("case: {point}:{pass}"));
        let witness = Witness::rejecting((4..7).map(phone));
        let sale = nine_recipients(false).through(&witness).write();
        sale.run(&["--keep-going"]).exits(3);
        assert_eq!((witness.rejections(), witness.arrivals()), (3, RECIPIENTS - 3));
        assert!(run_dies(&sale, &["retry", "sale@1"], (point, pass)), "the retry reaches the failpoint");
        // If the killed command did not record the retry, the second command does. Otherwise, the recorded retry is
        // resumed.
        if sale.campaign(&["retry", "sale@1"]).code() == Some(2) {
            resume_to_end(&sale);
        }
        assert_eq!(witness.tally(&sale, (2..RECIPIENTS + 2).map(phone)), Tally::default());
        let doubts = witness.doubts(&sale).len();
        assert_eq!(witness.arrivals() + doubts, RECIPIENTS, "each rejected message is sent once more or is in doubt");
    }
}
