//! Resource limits: full disks, too few open files, too little memory, and panics.

use std::collections::BTreeSet;

use serde_json::Value;

use super::witness::{Tally, Witness};
use crate::support::{
    Finished, Folder, Gateway, KEY, Process, Reachable, campaign, in_files, note_on_failure, phone, until,
};

/// The number of recipients of each campaign, in envelopes of 1, 4, 4 …
const RECIPIENTS: usize = 41;

/// A campaign that soon gives up if it cannot connect.
fn write_sale(witness: &Witness) -> Folder {
    let draft = campaign().to(RECIPIENTS).batches_of(4).one_at_a_time();
    draft.delivery("stop_after: { unreachable: 1s }").through(witness).write()
}

/// Runs the campaign from a shell that runs these commands first.
fn run_after(sale: &Folder, prepare: &str) -> Finished {
    start_after(sale, prepare, &["run", "sale.yaml", "--no-wait"]).finish()
}

fn start_after(sale: &Folder, prepare: &str, arguments: &[&str]) -> Process {
    Process::start(sale.command_after(prepare, arguments))
}

/// Repeats the command without the limit until the run ends, and checks the results.
fn finish_run(witness: &Witness, sale: &Folder) {
    let last = (0..3).map(|_| sale.run(&[])).find(|run| matches!(run.code(), Some(0 | 3 | 4)));
    assert!(last.is_some(), "the run did not end in three starts");
    assert_eq!(witness.tally(sale, (2..RECIPIENTS + 2).map(phone)), Tally::default());
    witness.doubts(sale);
}

/// How far a run gets on a full disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    Nobody,
    Some,
    All,
}

/// Runs the campaign with this file size limit, then finishes the run without it. Returns how far the first run got.
fn run_on_full_disk(kilobytes: u32) -> Reached {
    let _case = note_on_failure(format!("case: no file may be larger than {kilobytes} KB"));
    let witness = Witness::start();
    let sale = write_sale(&witness);
    // The unit is 512 bytes; a write beyond the limit fails instead of ending the process.
    let run = run_after(&sale, &format!("ulimit -f {}", kilobytes * 2));
    let reached = match (run.code(), witness.arrivals()) {
        (Some(74), 0) => Reached::Nobody,
        (Some(74), _) => Reached::Some,
        (Some(0), RECIPIENTS) => Reached::All,
        _ => panic!("{}", run.details()),
    };
    finish_run(&witness, &sale);
    reached
}

/// Finds a limit that stops the run before its first message and one that stops no run, then runs with the limits
/// between them, in steps of `step` KB.
fn fill_the_disk_midway(step: usize) {
    let _files = in_files();
    let sizes: Vec<(u32, Reached)> = (0..640).step_by(32).map(|size| (size, run_on_full_disk(size))).collect();
    let sizes_reaching =
        |wanted: Reached| sizes.iter().filter(move |(_, reached)| *reached == wanted).map(|(size, _)| *size);
    let (Some(too_small), Some(enough)) = (sizes_reaching(Reached::Nobody).max(), sizes_reaching(Reached::All).min())
    else {
        panic!("every size is large enough, or none is");
    };
    // The sizes in between are the interesting ones. They span only a few pages of the ledger's log.
    let between = (too_small + 1..enough).step_by(step);
    let midway = between.filter(|size| run_on_full_disk(*size) == Reached::Some).count();
    assert!(midway > 0, "no size from {too_small} to {enough} KB ends the run midway");
}

#[test]
fn disk_that_fills_midway_leaves_no_message_unrecorded() {
    // The log is written in pages of 4 KB, one at a time, so steps of 3 KB still hit every page.
    fill_the_disk_midway(3);
}

#[test]
#[ignore = "takes a minute"]
fn full_disk_at_any_point_leaves_no_message_unrecorded() {
    fill_the_disk_midway(1);
}

#[test]
fn lookup_on_a_full_disk_is_unsent_or_reported_as_charged() {
    let _files = in_files();
    const LOOKUP: [&str; 3] = ["gateway", "lookup", "380501234567"];
    let gateway = Gateway::accepting();
    let folder = campaign().through(&gateway).write();
    let (mut unsent, mut unrecorded, mut complete) = (0, 0, 0);
    for kilobytes in (0..160).step_by(4) {
        let _case = note_on_failure(format!("case: no file may be larger than {kilobytes} KB"));
        // This lookup completes the ledger and empties its log.
        folder.campaign(&LOOKUP).exits(0);
        let before = gateway.requests().len();
        let lookup = start_after(&folder, &format!("ulimit -f {}", kilobytes * 2), &LOOKUP).finish();
        let output = format!("{}{}", lookup.stdout, lookup.stderr);
        let requests = gateway.requests().len() - before;
        match (lookup.code(), requests) {
            (Some(74), 0) => unsent += 1,
            (Some(74), 1) => {
                unrecorded += 1;
                assert!(output.contains("might have been processed and charged"), "{output}");
                assert!(output.contains("next: campaign show gateway.lookup@1 --row"), "{output}");
                assert!(!output.contains("the same command again") && !output.contains("lookup PHONE"), "{output}");
            }
            (Some(0), 1) => complete += 1,
            _ => panic!("{} after {requests} requests", lookup.details()),
        }
        assert!(requests == 1 || !output.contains("might have been processed"), "{output}");
    }
    let all = [unsent, unrecorded, complete];
    assert!(all.iter().all(|cases| *cases > 0), "unsent, sent but not recorded, complete: {all:?}");
}

#[test]
fn full_disk_during_copying_is_not_reported_as_a_bad_list() {
    let _files = in_files();
    let witness = Witness::start();
    let sale = campaign().to(60_000).through(&witness).write();
    let run = run_after(&sale, "ulimit -f 2048").exits(74);
    run.says("the recipients cannot be copied to the state folder: File too large");
    assert_eq!(witness.arrivals(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn run_memory_is_hidden_from_core_dumps_and_other_processes() {
    let witness = Witness::start();
    let sale = campaign().to(RECIPIENTS).delivery("rate: 1/s").through(&witness).write();
    let mut run = Process::start(sale.command(&["run", "sale.yaml", "--no-wait"]));
    until("a message is sent", || witness.arrivals() > 0);
    let limits = run.read_proc_file("limits");
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).expect("a limit");
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
    // If this test runs as root, root owns the process memory anyway; a unit test covers other users.
    assert_eq!(run.memory_owner(), 0);
    run.signal("INT");
    run.finish().exits(130);
}

#[test]
fn low_open_file_limit_ends_a_run_with_a_reason_and_no_loss() {
    let mut too_low = 0;
    for files in [4, 6, 7, 9].into_iter().chain((10..44).step_by(3)) {
        let _case = note_on_failure(format!("case: {files} open files"));
        let witness = Witness::start();
        let sale = write_sale(&witness);
        let run = run_after(&sale, &format!("ulimit -n {files}"));
        // With the lowest limits, the system cannot even load the program.
        let is_started = !run.stderr.contains("shared librar");
        // The error must not blame an input.
        assert!(!is_started || matches!(run.code(), Some(0 | 4 | 5 | 74)), "{}", run.details());
        assert!(!run.stderr.contains("panicked"), "{}", run.details());
        too_low += usize::from(is_started && run.code() != Some(0));
        finish_run(&witness, &sale);
    }
    assert!(too_low > 2, "only {too_low} limits were too low");
}

#[test]
fn file_handle_shortage_is_not_reported_as_invalid_input() {
    let mut unopened = 0;
    for files in 8..16 {
        let _case = note_on_failure(format!("case: {files} open files"));
        let sale = campaign().to(3).write();
        let check = start_after(&sale, &format!("ulimit -n {files}"), &["check", "sale.yaml", "--json"]).finish();
        assert!(matches!(check.code(), Some(0 | 74)), "{}", check.details());
        assert_eq!(check.json()["exit"], check.code().expect("a code"));
        unopened += usize::from(check.stdout.contains("see `ulimit -n`"));
    }
    assert!(unopened > 0, "the campaign file was opened at every limit");
}

/// Runs with this number of MiB of address space. Returns the exit code, or `None` if the process could report nothing.
#[cfg(target_os = "linux")]
fn run_in_memory(mebibytes: u32) -> Option<i32> {
    let _case = note_on_failure(format!("case: {mebibytes} MiB of addresses"));
    let witness = Witness::start();
    let sale = write_sale(&witness);
    let run = run_after(&sale, &format!("ulimit -v {}", mebibytes * 1024));
    let reported = run.code().filter(|code| matches!(code, 0 | 4 | 5 | 74));
    // With the lowest limit, the system cannot load the program.
    let words = ["shared librar", "memory allocation of", "an alternative stack", "out of memory"];
    let is_explained = run.stderr.is_empty() || words.iter().any(|word| run.stderr.contains(word));
    assert!(reported.is_some() || is_explained, "{}", run.details());
    finish_run(&witness, &sale);
    reported
}

/// Runs with more and more memory until it is enough, then with sizes just below that, in steps of this many MiB.
#[cfg(target_os = "linux")]
fn limit_memory(step: u32) {
    let mut codes = Vec::new();
    let mut is_enough = |size| {
        codes.push(run_in_memory(size));
        codes.last() == Some(&Some(0))
    };
    let enough = (64..=512).step_by(16).find(|size| is_enough(*size)).expect("512 MiB are enough");
    // The interesting limits lie just below what the program needs.
    codes.extend((enough - 15..enough).step_by(step as usize).map(run_in_memory));
    assert!(codes.iter().any(|code| matches!(code, Some(4 | 5 | 74))), "no run reported too little memory");
}

#[cfg(target_os = "linux")]
#[test]
fn too_little_memory_ends_a_run_and_loses_nothing() {
    limit_memory(3);
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "takes 15 seconds"]
fn running_out_of_memory_anywhere_ends_a_run_and_loses_nothing() {
    limit_memory(1);
}

/// A sandbox with little disk space for its journal.
struct SmallDisk {
    sandbox: Process,
    folder: Folder,
}

impl SmallDisk {
    fn start() -> Self {
        let folder = campaign().write();
        let arguments = ["sandbox", "--listen", "127.0.0.1:0", "--json", "--key", KEY, "--journal", "journal.jsonl"];
        let sandbox = start_after(&folder, "ulimit -f 8", &arguments);
        until("the sandbox listens", || sandbox.stdout().ends_with('\n'));
        Self { sandbox, folder }
    }

    fn address(&self, name: &str) -> String {
        let listening: Value = serde_json::from_str(&self.sandbox.stdout()).expect("one JSON object");
        listening[name].as_str().expect("an address").to_owned()
    }

    /// The numbers in the complete lines of its journal.
    fn phones(&self) -> BTreeSet<String> {
        let journal = std::fs::read_to_string(self.folder.path("journal.jsonl")).expect("a journal");
        let lines = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter_map(|line| Some(line["phone"].as_str()?.to_owned())).collect()
    }
}

impl Reachable for SmallDisk {
    fn base_url(&self) -> String {
        self.address("base_url")
    }

    fn async_url(&self) -> String {
        self.address("async_url")
    }
}

#[test]
fn sandbox_without_journal_space_says_so_and_stops_answering() {
    let mut small_disk = SmallDisk::start();
    let sale = campaign().to(RECIPIENTS).batches_of(4).one_at_a_time().through(&small_disk).write();
    let run = sale.run(&[]);
    assert!(matches!(run.code(), Some(4 | 5)), "{}", run.details());
    let results = sale.results();
    let accepted: BTreeSet<String> =
        results.rows.iter().filter(|row| row["state"] == "accepted").map(|row| row["phone"].clone()).collect();
    assert!(!accepted.is_empty() && accepted.len() < RECIPIENTS, "{}", run.details());
    assert!(accepted.is_subset(&small_disk.phones()), "{}", run.details());
    assert!(small_disk.sandbox.is_running() && small_disk.sandbox.stderr().contains("cannot write the journal"));
    small_disk.sandbox.signal("INT");
    small_disk.sandbox.finish().exits(130);
}

#[test]
fn panic_at_any_step_is_reported_and_loses_no_messages() {
    let failpoints = [
        ("run.claimed", 1, 1),
        ("intent.kept", 2, 1),
        ("envelope.leaves", 2, 1),
        ("answer.came", 3, 1),
        ("outcome.kept", 2, 1),
        ("results.written", 1, 1),
        // The panic ends the task that writes, so nothing can be recorded afterwards.
        ("commit.before", 6, 74),
        ("commit.after", 6, 74),
    ];
    for (failpoint, pass, code) in failpoints {
        let _case = note_on_failure(format!("case: {failpoint}:{pass}"));
        let witness = Witness::start();
        let sale = write_sale(&witness);
        let mut command = sale.command(&["run", "sale.yaml", "--no-wait", "--json"]);
        command.env("CAMPAIGN_FAILPOINT", format!("{failpoint}:{pass}:panic"));
        let run = Process::start(command).finish().exits(code).says(&format!("failpoint {failpoint} went off"));
        assert_eq!(run.json()["exit"], code);
        assert!(run.json()["error"].is_string());
        finish_run(&witness, &sale);
    }
}
