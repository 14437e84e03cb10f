//! Snapshots of commands that send and track messages.

use super::winter_sale::{after_rehearsal, winter, with_live_gateway, with_local_gateway};
use super::{compare, compare_with_input};
use crate::support::Gateway;

#[test]
fn rehearsal_ends_with_a_summary() {
    compare("rehearsal", winter, &["run", "winter.yaml"]);
}

#[test]
fn second_run_sends_nothing() {
    let gateway = Gateway::accepting();
    let send = || {
        let folder = with_local_gateway(&gateway);
        folder.campaign(&["run", "winter.yaml", "--yes", "--no-wait"]).exits(3);
        folder
    };
    compare("run-again", send, &["run", "winter.yaml", "--yes", "--no-wait"]);
}

#[test]
fn live_confirmation_can_be_cancelled() {
    let typed = [("Enter to cancel", "")];
    compare_with_input("run-cancelled", with_live_gateway, &["run", "winter.yaml", "--offline"], &typed);
}

#[test]
fn confirmation_of_a_limited_run_shows_its_counts() {
    let typed = [("Enter to cancel", "no")];
    compare_with_input("run-part", with_live_gateway, &["run", "winter.yaml", "--offline", "-n", "2"], &typed);
}

#[test]
fn run_through_an_unknown_gateway_is_refused_with_help() {
    compare("run-unknown-gateway", winter, &["run", "winter.yaml", "--gateway", "production"]);
}

#[test]
fn status_of_an_empty_ledger_names_the_first_step() {
    compare("status-empty", winter, &["status"]);
}

#[test]
fn status_lists_runs() {
    compare("status-list", after_rehearsal, &["status"]);
}

#[test]
fn status_shows_a_run() {
    compare("status-run", after_rehearsal, &["status", "winter"]);
}

#[test]
fn status_suggests_a_similar_run() {
    compare("status-unknown", after_rehearsal, &["status", "wintr"]);
}

#[test]
fn show_prints_one_message_with_its_history() {
    compare("show", after_rehearsal, &["show", "winter", "--row", "2"]);
}

#[test]
fn results_command_names_the_written_file() {
    compare("results", after_rehearsal, &["results", "winter", "--out", "again.csv"]);
}

#[test]
fn find_lists_the_messages_to_a_number() {
    compare("find", after_rehearsal, &["find", "+380500000102"]);
}

#[test]
fn retry_without_rejected_rows_says_so() {
    compare("retry-nothing", after_rehearsal, &["retry", "winter"]);
}

#[test]
fn resolve_without_rows_in_doubt_says_so() {
    compare("resolve-nothing", after_rehearsal, &["resolve", "winter", "--all", "--as", "sent"]);
}

#[test]
fn stop_says_that_the_run_has_finished() {
    compare("stop-finished", after_rehearsal, &["stop", "winter"]);
}

#[test]
fn report_names_its_file() {
    compare("report", after_rehearsal, &["report", "winter"]);
}
