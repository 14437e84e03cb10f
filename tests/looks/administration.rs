//! Snapshots of commands for recipients, schedules and the ledger.

use super::winter_sale::{after_rehearsal, winter, with_live_gateway};
use super::{compare, compare_with_input};
use crate::support::Folder;

fn with_opt_out() -> Folder {
    let folder = winter();
    folder.campaign(&["suppress", "add", "+380500000102", "--reason", "called us"]).exits(0);
    folder
}

fn with_schedule() -> Folder {
    let folder = with_live_gateway();
    folder.replace("winter.yaml", "edition: winter-2026\n", "timezone: Europe/Kyiv\nschedule: { every: day 10:00 }\n");
    folder
}

#[test]
fn suppress_add_confirms_the_entry() {
    compare("suppress-add", winter, &["suppress", "add", "+380500000102"]);
}

#[test]
fn suppress_list_shows_each_entry() {
    compare("suppress-list", with_opt_out, &["suppress", "list"]);
}

#[test]
fn suppress_remove_asks_for_confirmation() {
    let typed = [("Enter", "")];
    compare_with_input("suppress-remove", with_opt_out, &["suppress", "remove", "+380500000102"], &typed);
}

#[test]
fn suppress_add_reports_an_invalid_number() {
    compare("suppress-wrong", winter, &["suppress", "add", "12"]);
}

#[test]
fn forget_asks_for_confirmation() {
    let typed = [("Enter", "")];
    compare_with_input("forget", after_rehearsal, &["forget", "+380500000102"], &typed);
}

#[test]
fn purge_without_old_runs_says_so() {
    compare("purge-nothing", after_rehearsal, &["purge", "--older-than", "400d"]);
}

#[test]
fn schedule_add_asks_for_confirmation() {
    let typed = [("Enter to", "")];
    compare_with_input("schedule-add", with_schedule, &["schedule", "add", "winter.yaml"], &typed);
}

#[test]
fn schedule_list_without_schedules_says_so() {
    compare("schedule-list-empty", winter, &["schedule", "list"]);
}

#[test]
fn plan_describes_what_would_be_sent() {
    compare("plan", with_live_gateway, &["plan", "winter.yaml"]);
}

#[test]
fn ledger_check_reports_a_sound_ledger() {
    compare("ledger-check", after_rehearsal, &["ledger", "check"]);
}

#[test]
fn ledger_backup_names_its_folder() {
    compare("ledger-backup", after_rehearsal, &["ledger", "backup", "copy"]);
}

#[test]
fn unknown_command_suggests_a_similar_one() {
    compare("unknown-command", winter, &["send", "winter.yaml"]);
}

#[test]
fn unknown_option_is_named() {
    compare("unknown-option", winter, &["run", "winter.yaml", "--quick"]);
}
