//! Snapshots of commands for writing a campaign.

use super::winter_sale::{winter, with_mistakes};
use super::{compare, compare_with_input};
use crate::support::{Folder, KEY_VARIABLE};

#[test]
fn init_lists_the_files_that_it_wrote() {
    compare("init", || Folder::new(false), &["init", "spring"]);
}

#[test]
fn init_lists_the_files_of_an_example() {
    compare("init-example", || Folder::new(false), &["init", "spring", "--example", "survey"]);
}

#[test]
fn check_reports_a_list_with_mistakes() {
    compare("check-list", winter, &["check", "winter.yaml"]);
}

#[test]
fn check_reports_mistakes_in_the_campaign_file() {
    compare("check-mistaken", with_mistakes, &["check", "winter.yaml"]);
}

#[test]
fn check_names_a_file_that_does_not_exist() {
    compare("check-missing", winter, &["check", "wintr.yaml"]);
}

#[test]
fn explain_lists_all_rules() {
    compare("explain-list", winter, &["explain"]);
}

#[test]
fn explain_describes_a_rule() {
    compare("explain-rule", winter, &["explain", "empty-cell"]);
}

#[test]
fn explain_suggests_a_similar_rule() {
    compare("explain-unknown", winter, &["explain", "empty-cel"]);
}

#[test]
fn preview_shows_the_first_messages() {
    compare("preview", winter, &["preview", "winter.yaml"]);
}

#[test]
fn dry_run_shows_counts_and_sends_nothing() {
    compare("dry-run", winter, &["run", "winter.yaml", "--dry-run"]);
}

#[test]
fn gateway_add_prompts_for_missing_settings() {
    let typed = [
        ("URL of the gateway", "http://127.0.0.1:9"),
        ("press Enter for sync", ""),
        ("Type yes to add the line", "yes"),
    ];
    let arguments = ["gateway", "add", "production", "--key-env", KEY_VARIABLE, "--offline", "--rate", "10/s"];
    compare_with_input("gateway-add", winter, &arguments, &typed);
}
