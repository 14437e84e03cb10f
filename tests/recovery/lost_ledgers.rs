//! Restored, deleted and foreign ledgers, and the high-water mark that detects them however a run ends.

use std::fs;

use super::state::{copy_folder, count_commits, is_log_empty, restore_folder};
use super::witness::Witness;
use crate::support::{Answer, Finished, Folder, Gateway, Process, campaign, in_files, note_on_failure, until};

/// The number of recipients of each campaign, one per envelope.
const RECIPIENTS: usize = 11;

fn write_sale(witness: &Witness) -> Folder {
    campaign().to(RECIPIENTS).batches_of(1).one_at_a_time().through(witness).write()
}

/// Runs the binary with its ledger in another state folder.
fn run_with_other_ledger(sale: &Folder, arguments: &[&str]) -> Finished {
    let mut command = sale.command(arguments);
    command.env("CAMPAIGN_STATE_DIR", sale.path("of-root"));
    Process::start(command).finish()
}

/// A campaign sent to all recipients, with a copy of its state folder from before each message.
fn sent_with_copies() -> (Witness, Folder) {
    let witness = Witness::start();
    let sale = write_sale(&witness);
    let (state, moments, mut number) = (sale.path("state"), sale.path("moments"), 0);
    witness.observe(move |_| {
        let moment = moments.join(number.to_string());
        copy_folder(&state, &moment);
        // A copy made during a write can be torn, which is a different kind of damage. A torn copy is made again.
        while matches!(count_commits(&moment), (ledger, mark) if ledger < mark) {
            restore_folder(&state, &moment);
        }
        number += 1;
    });
    sale.run(&[]).exits(0);
    assert_eq!(witness.arrivals(), RECIPIENTS);
    (witness, sale)
}

#[test]
fn state_folder_restored_from_any_moment_sends_nothing() {
    let _files = in_files();
    let (witness, sale) = sent_with_copies();
    // The last copy has an intent for every recipient, so a run from it would send nothing.
    for moment in 0..RECIPIENTS - 1 {
        let _case = note_on_failure(format!("case: restored from before message {moment}"));
        restore_folder(&sale.path(&format!("moments/{moment}")), &sale.path("state"));
        for _ in 0..2 {
            sale.run(&[]).exits(74).says("results/sale.csv").says("--new-ledger");
        }
        for command in [
            &["status"][..],
            &["status", "sale"],
            &["check", "sale.yaml"],
            &["preview", "sale.yaml"],
            &["show", "sale", "--row", "2"],
        ] {
            sale.campaign(command).exits(74).says("does not contain all messages");
        }
        let before = fs::read(sale.results_file()).expect("results");
        sale.campaign(&["results", "sale", "--out", "results/sale.csv"]).exits(74).says("nothing was written");
        assert_eq!(fs::read(sale.results_file()).expect("results"), before, "newer results were replaced");
    }
    assert_eq!(witness.arrivals(), RECIPIENTS);
}

#[test]
fn read_only_commands_warn_about_a_restored_ledger() {
    let _files = in_files();
    let (_, sale) = sent_with_copies();
    // Only the ledger is restored; its high-water mark reveals that.
    fs::copy(sale.path("moments/4/ledger.sqlite"), sale.path("state/ledger.sqlite")).expect("a copy");
    fs::copy(sale.path("moments/4/ledger.sqlite-wal"), sale.path("state/ledger.sqlite-wal")).expect("a copy");
    fs::remove_dir_all(sale.path("results")).expect("the results");
    for command in [
        &["status"][..],
        &["status", "sale"],
        &["results", "sale", "--out", "-"],
        &["show", "sale", "--row", "2"],
        &["check", "sale.yaml"],
        &["preview", "sale.yaml"],
        &["run", "sale.yaml", "--dry-run"],
    ] {
        let _case = note_on_failure(format!("case: {command:?}"));
        sale.campaign(command).exits(74).says("older copy");
        let object = sale.campaign(&[command, &["--json"]].concat()).exits(74);
        let line = object.stdout.lines().last().expect("an object");
        if command[0] != "preview" {
            let object: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert!(
                object["exit"] == 74 && object["error"].as_str().is_some_and(|why| why.contains("older")),
                "{line}"
            );
        }
    }
    sale.campaign(&["stop", "sale"]).exits(74);
}

#[test]
fn stale_state_copy_from_any_moment_sends_nothing() {
    let _files = in_files();
    let (witness, sale) = sent_with_copies();
    for moment in 0..RECIPIENTS - 1 {
        let state = sale.path(&format!("moments/{moment}"));
        let mut command = sale.command(&["run", "sale.yaml", "--no-wait"]);
        command.env("CAMPAIGN_STATE_DIR", &state);
        Process::start(command).finish().exits(74).says("another ledger");
    }
    assert_eq!(witness.arrivals(), RECIPIENTS);
}

#[test]
fn ledger_deleted_with_its_high_water_mark_sends_nothing() {
    let _files = in_files();
    let witness = Witness::start();
    let sale = write_sale(&witness);
    for moment in 1..=RECIPIENTS {
        let _case = note_on_failure(format!("case: deleted after message {moment}"));
        sale.run(&["--limit", "1"]);
        assert_eq!(witness.arrivals(), moment);
        copy_folder(&sale.path("state"), &sale.path("kept"));
        for file in ["ledger.sqlite", "ledger.mark"] {
            fs::remove_file(sale.path("state").join(file)).expect("a file");
        }
        sale.campaign(&["status"]).exits(74).says("sale@1");
        sale.run(&[]).exits(74).says("sale@1").says("--new-ledger");
        // Only the files in the campaign's folder are left.
        fs::remove_dir_all(sale.path("state")).expect("a folder");
        sale.run(&[]).exits(74).says("results/sale.csv");
        sale.campaign(&["check", "sale.yaml"]).exits(74).says("results/sale.csv");
        assert_eq!(witness.arrivals(), moment);
        copy_folder(&sale.path("kept"), &sale.path("state"));
    }
}

#[test]
fn another_ledger_resends_nothing_unless_a_person_confirms() {
    let _files = in_files();
    let witness = Witness::start();
    let sale = write_sale(&witness);
    sale.run(&[]).exits(0);
    run_with_other_ledger(&sale, &["run", "sale.yaml"]).exits(74).says("11 unknown messages").says("another user");
    assert!(!sale.path("of-root").exists(), "a refused run creates no ledger");
    assert_eq!(witness.arrivals(), RECIPIENTS);
    // A rehearsal asks for no confirmation and replaces no live results.
    run_with_other_ledger(&sale, &["run", "sale.yaml", "--gateway", "sandbox"]).exits(0);
    run_with_other_ledger(&sale, &["run", "sale.yaml", "--new-ledger"]).exits(0).says("sale.old-1.csv");
    assert_eq!(witness.arrivals(), 2 * RECIPIENTS);
    // Now the first ledger does not contain the messages in the results.
    sale.run(&[]).exits(74).says("results/sale.csv");
}

#[test]
fn plans_and_checks_refuse_another_ledger() {
    let _files = in_files();
    let witness = Witness::start();
    let sale = write_sale(&witness);
    let planned = run_with_other_ledger(&sale, &["plan", "sale.yaml", "--json"]).exits(0).json();
    let digest = planned["digest"].as_str().expect("a digest");
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("is ready");
    sale.run(&[]).exits(0);
    for refused in [&["plan", "sale.yaml"][..], &["approve", digest]] {
        run_with_other_ledger(&sale, refused).exits(74).says("11 unknown messages").says("another user");
    }
    let checked = run_with_other_ledger(&sale, &["check", "sale.yaml"]).exits(74).says("might not be ready");
    assert!(!checked.stdout.contains("is ready") && !checked.stdout.contains("next:"), "{}", checked.stdout);
}

#[test]
fn schedules_are_not_activated_with_another_ledger() {
    let _files = in_files();
    let witness = Witness::start();
    let draft = campaign().to(RECIPIENTS).top("timezone: Europe/Kyiv").top("schedule: { every: Mon 10:00 }");
    let sale = draft.through(&witness).write();
    run_with_other_ledger(&sale, &["schedule", "add", "sale.yaml"]).exits(0);
    sale.run(&["--now"]).exits(0);
    run_with_other_ledger(&sale, &["schedule", "pause", "sale"]).exits(0);
    for refused in [&["schedule", "add", "sale.yaml"][..], &["schedule", "resume", "sale"]] {
        run_with_other_ledger(&sale, refused).exits(74).says("11 unknown messages").says("another user");
    }
    assert_eq!(
        run_with_other_ledger(&sale, &["schedule", "list", "--json"]).exits(0).json_list()[0]["state"],
        "paused"
    );
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
}

#[test]
fn spreadsheet_with_damaged_identifiers_is_not_recognized() {
    let witness = Witness::start();
    let sale = write_sale(&witness);
    sale.run(&["--limit", "1"]);
    let results = fs::read_to_string(sale.results_file()).expect("results");
    let id = results.lines().nth(1).and_then(|row| row.split(',').nth(1)).expect("an identifier").to_owned();
    fs::remove_dir_all(sale.path("state")).expect("a folder");
    sale.write("results/sale.csv", &results.replace(&id, "1.78E+14"));
    sale.run(&[]).exits(0);
}

/// Asserts that the high-water mark equals the number of commits in the ledger, and that the ledger is closed.
fn assert_closed(sale: &Folder) {
    let (ledger, mark) = count_commits(&sale.path("state"));
    assert_eq!(mark, ledger, "the mark differs from the ledger");
    assert!(is_log_empty(&sale.path("state")), "the ledger was not closed");
}

#[test]
fn high_water_mark_is_up_to_date_however_a_command_ends() {
    let _files = in_files();
    let witness = Witness::start();
    let sale = write_sale(&witness);
    sale.run(&["--limit", "2"]);
    assert_closed(&sale);
    let mut panicking_run = sale.command(&["run", "sale.yaml", "--no-wait"]);
    panicking_run.env("CAMPAIGN_FAILPOINT", "outcome.kept:2:panic");
    Process::start(panicking_run).finish().exits(1);
    assert_closed(&sale);
    let mut panicking_run = sale.command(&["run", "sale.yaml", "--no-wait"]);
    panicking_run.env("CAMPAIGN_FAILPOINT", "run.claimed:1:panic");
    Process::start(panicking_run).finish().exits(1);
    assert_closed(&sale);
    sale.run(&[]);
    assert_closed(&sale);
    for command in
        [&["status"][..], &["results", "sale"], &["resolve", "sale", "--all", "--as", "sent"], &["stop", "sale"]]
    {
        sale.campaign(command);
        assert_closed(&sale);
    }
    let leftovers: Vec<_> = fs::read_dir(sale.path("state"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter(|name| name.starts_with("ledger.mark") && name != "ledger.mark")
        .collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

#[test]
fn second_signal_leaves_the_high_water_mark_up_to_date() {
    let _files = in_files();
    let gateway = Gateway::always(Answer::Silence);
    let sale = campaign().to(RECIPIENTS).through(&gateway).write();
    let mut run = sale.start(&[]);
    until("a request arrived", || !gateway.requests().is_empty());
    run.signal("INT");
    until("the run is stopping", || run.stderr().contains("stopping"));
    run.signal("INT");
    run.finish().exits(130);
    assert_closed(&sale);
}

#[test]
fn killed_run_leaves_a_high_water_mark_matching_its_ledger() {
    let _files = in_files();
    // Only points where the process itself writes the ledger: at others, the next commit might be under way.
    for point in ["commit.heard:1", "commit.heard:6", "commit.heard:7", "commit.heard:12", "commit.heard:15"] {
        let _case = note_on_failure(format!("case: {point}"));
        let witness = Witness::start();
        let sale = write_sale(&witness);
        let mut command = sale.command(&["run", "sale.yaml", "--no-wait"]);
        command.env("CAMPAIGN_FAILPOINT", point);
        Process::start(command).finish().says("went off");
        let (ledger, mark) = count_commits(&sale.path("state"));
        assert_eq!(mark, ledger, "a reported commit is not marked");
    }
}

/// A process suspended in the middle of a commit, while it holds the ledger.
#[cfg(unix)]
#[test]
fn process_suspended_in_a_commit_blocks_no_reader_and_is_named() {
    let _files = in_files();
    let witness = Witness::start();
    let sale = write_sale(&witness);
    let mut command = sale.command(&["run", "sale.yaml", "--no-wait"]);
    command.env("CAMPAIGN_FAILPOINT", "commit.before:7:stay");
    let mut run = Process::start(command);
    until("the run is inside a commit", || run.stderr().contains("went off"));
    run.signal("STOP");
    let limit = std::time::Duration::from_secs(20);
    let run_soon = |arguments: &[&str]| Process::start(sale.command(arguments)).finish_within(limit);
    run_soon(&["status", "sale"]).exits(6).says("to stop the run: ");
    run_soon(&["results", "sale", "--out", "-"]).exits(0).says("accepted");
    run_soon(&["show", "sale", "--row", "2"]).exits(0);
    run_soon(&["check", "sale.yaml"]).exits(0);
    let refused = run_soon(&["stop", "sale"]).exits(74);
    if cfg!(target_os = "linux") {
        let process = run.read_proc_file("stat");
        let process = process.split(' ').next().expect("a process number");
        refused.says(&format!("process {process} is using the ledger and is suspended"));
    }
    run.kill();
    sale.run(&[]);
    assert_eq!(witness.messages().len(), RECIPIENTS);
    assert!(witness.messages().values().all(|times| *times == 1));
}
