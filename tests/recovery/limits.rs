//! A process that runs out of room on the disk, of open files, or of a part of itself.

use std::process::Command;

use super::witness::{Tally, Witness};
use crate::support::{Finished, Folder, Process, campaign, phone, telling, until};

/// How many people the campaigns here go to, in envelopes of 1, 4, 4 …
const PEOPLE: usize = 41;

/// A campaign that gives up soon when it cannot connect.
fn sale(witness: &Witness) -> Folder {
    let draft = campaign().to(PEOPLE).batches_of(4).one_at_a_time();
    draft.delivery("stop_after: { unreachable: 1s }").through(witness).write()
}

/// The run, started by a shell after it did this.
fn run_after(sale: &Folder, prepare: &str) -> Finished {
    let run = sale.command(&["run", "sale.yaml", "--no-wait"]);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("{prepare}; exec \"$0\" \"$@\"")]).arg(run.get_program()).args(run.get_args());
    shell.current_dir(run.get_current_dir().expect("the folder")).env_clear();
    shell.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Process::start(shell).finish()
}

/// Without the limit the same command comes to its end, and what it says is true.
fn comes_to_its_end(witness: &Witness, sale: &Folder) {
    let last = (0..3).map(|_| sale.run(&[])).find(|run| matches!(run.code(), Some(0 | 4 | 6)));
    assert!(last.is_some(), "not at its end after three starts");
    assert_eq!(witness.tally(sale, (2..PEOPLE + 2).map(phone)), Tally::default());
    witness.doubts(sale);
}

#[test]
fn a_disk_that_is_full_at_any_size_stops_the_run_before_anything_is_sent_that_is_not_recorded() {
    let (mut before, mut midway, mut through) = (0, 0, 0);
    for kilobytes in (0..900).step_by(36) {
        let _case = telling(format!("case: no file may be larger than {kilobytes} KB"));
        let witness = Witness::start();
        let sale = sale(&witness);
        // In blocks of 512 bytes; a write beyond it fails instead of ending the process.
        let run = run_after(&sale, &format!("ulimit -f {}", kilobytes * 2));
        match (run.code(), witness.arrived()) {
            (Some(74), 0) => before += 1,
            (Some(74), _) => midway += 1,
            (Some(0), PEOPLE) => through += 1,
            _ => panic!("{}", run.told()),
        }
        comes_to_its_end(&witness, &sale);
    }
    assert!(before > 0 && midway > 2 && through > 0, "{before} before the first send, {midway} midway, {through} fine");
}

#[test]
fn a_disk_that_is_full_while_the_list_is_copied_is_not_taken_for_a_list_that_cannot_be_read() {
    let witness = Witness::start();
    let sale = campaign().to(60_000).through(&witness).write();
    let run = run_after(&sale, "ulimit -f 2048").exits(74);
    run.says("the recipients cannot be copied to the state folder: File too large");
    assert_eq!(witness.arrived(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn no_core_file_and_no_other_process_gets_at_the_memory_of_a_run() {
    let witness = Witness::start();
    let sale = campaign().to(PEOPLE).delivery("rate: 1/s").through(&witness).write();
    let mut run = Process::start(sale.command(&["run", "sale.yaml", "--no-wait"]));
    until("something is sent", || witness.arrived() > 0);
    let limits = run.told_by_the_system("limits");
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).expect("a limit");
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
    // This shows something where the tests are run by anybody but the superuser.
    assert_eq!(run.owner_of_its_memory(), 0);
    run.signal("INT");
    run.finish().exits(130);
}

#[test]
fn too_few_open_files_end_a_run_with_a_reason_and_lose_nothing() {
    let mut refused = 0;
    for files in [4, 6, 7].into_iter().chain((10..44).step_by(3)) {
        let _case = telling(format!("case: {files} open files"));
        let witness = Witness::start();
        let sale = sale(&witness);
        let run = run_after(&sale, &format!("ulimit -n {files}"));
        // The lowest numbers are too few for the system to load the program at all.
        let started = !run.stderr.contains("shared librar");
        assert!(!started || matches!(run.code(), Some(0 | 2..=5 | 74)), "{}", run.told());
        assert!(!run.stderr.contains("panicked"), "{}", run.told());
        refused += usize::from(started && run.code() != Some(0));
        comes_to_its_end(&witness, &sale);
    }
    assert!(refused > 2, "only {refused} were too few");
}

#[test]
fn a_panic_anywhere_ends_the_run_as_a_bug_and_loses_nothing() {
    let places = [
        ("run.claimed", 1, 1),
        ("intent.kept", 2, 1),
        ("envelope.leaves", 2, 1),
        ("answer.came", 3, 1),
        ("outcome.kept", 2, 1),
        ("results.written", 1, 1),
        // The task that writes is gone with it, and nothing can be recorded any more.
        ("commit.before", 6, 74),
        ("commit.after", 6, 74),
    ];
    for (place, pass, code) in places {
        let _case = telling(format!("case: {place}:{pass}"));
        let witness = Witness::start();
        let sale = sale(&witness);
        let mut command = sale.command(&["run", "sale.yaml", "--no-wait", "--json"]);
        command.env("CAMPAIGN_FAILPOINT", format!("{place}:{pass}:panic"));
        let run = Process::start(command).finish().exits(code).says(&format!("failpoint {place} went off"));
        assert_eq!(run.json()["exit"], code);
        assert!(run.json()["error"].is_string());
        comes_to_its_end(&witness, &sale);
    }
}
