//! Commands that send messages and follow them.

use super::winter::{live, local, rehearsed, winter};
use super::{compare, compare_typed};
use crate::support::Gateway;

#[test]
fn rehearsal_ends_with_a_summary() {
    compare("rehearsal", winter, &["run", "winter.yaml"]);
}

#[test]
fn second_run_sends_nothing() {
    let gateway = Gateway::accepting();
    let sent = || {
        let folder = local(&gateway);
        folder.campaign(&["run", "winter.yaml", "--yes", "--no-wait"]).exits(3);
        folder
    };
    compare("run-again", sent, &["run", "winter.yaml", "--yes", "--no-wait"]);
}

#[test]
fn live_question_can_be_cancelled() {
    let typed = [("Enter to cancel", "")];
    compare_typed("run-cancelled", live, &["run", "winter.yaml", "--offline"], &typed);
}

#[test]
fn part_of_a_list_is_asked_about_by_its_own_figures() {
    let typed = [("Enter to cancel", "no")];
    compare_typed("run-part", live, &["run", "winter.yaml", "--offline", "-n", "2"], &typed);
}

#[test]
fn live_run_without_a_terminal_answer_is_refused() {
    compare("run-unknown-gateway", winter, &["run", "winter.yaml", "--gateway", "production"]);
}

#[test]
fn status_of_an_empty_ledger_names_the_first_step() {
    compare("status-empty", winter, &["status"]);
}

#[test]
fn status_lists_runs() {
    compare("status-list", rehearsed, &["status"]);
}

#[test]
fn status_shows_a_run() {
    compare("status-run", rehearsed, &["status", "winter"]);
}

#[test]
fn status_suggests_a_similar_run() {
    compare("status-unknown", rehearsed, &["status", "wintr"]);
}

#[test]
fn show_follows_one_message() {
    compare("show", rehearsed, &["show", "winter", "--row", "2"]);
}

#[test]
fn results_name_their_file() {
    compare("results", rehearsed, &["results", "winter", "--out", "again.csv"]);
}

#[test]
fn find_lists_the_messages_of_a_number() {
    compare("find", rehearsed, &["find", "+380500000102"]);
}

#[test]
fn retry_without_rejected_rows_says_so() {
    compare("retry-nothing", rehearsed, &["retry", "winter"]);
}

#[test]
fn resolve_without_rows_in_doubt_says_so() {
    compare("resolve-nothing", rehearsed, &["resolve", "winter", "--all", "--as", "sent"]);
}

#[test]
fn stop_of_a_finished_run_says_so() {
    compare("stop-finished", rehearsed, &["stop", "winter"]);
}

#[test]
fn report_names_its_file() {
    compare("report", rehearsed, &["report", "winter"]);
}
