//! Campaign identity: the name identifies a campaign, and a file selects the runs that were started from it.

use super::write_campaign_in;
use crate::support::{Folder, Gateway, Results, phone};

/// Runs the campaign in this file.
fn run(home: &Folder, file: &str, arguments: &[&str]) -> crate::support::Finished {
    home.campaign(&[&["run", file, "--no-wait"], arguments].concat())
}

#[test]
fn same_name_in_another_file_is_refused_before_sending() {
    let (gateway, home) = (Gateway::accepting(), Folder::new(true));
    write_campaign_in(&home, &gateway, "a", "Autumn", 3);
    write_campaign_in(&home, &gateway, "b", "Winter", 5);
    run(&home, "a/sale.yaml", &[]).exits(0);
    for arguments in [&[][..], &["--yes"], &["--accept-changes"], &["--again", "5"], &["--dry-run"]] {
        let refused = run(&home, "b/sale.yaml", arguments).exits(2).says("a/sale.yaml").says("sale@1");
        refused.says("change its `name`").says("--moved");
    }
    home.campaign(&["check", "b/sale.yaml"]).exits(2).says("cannot be sent: 1 error").says("--moved");
    assert_eq!(gateway.phones(), [2, 3, 4].map(phone));
    home.replace("b/sale.yaml", "name: sale", "name: winter");
    run(&home, "b/sale.yaml", &[]).exits(0);
    assert_eq!(gateway.phones().len(), 8);
}

#[test]
fn file_selects_the_runs_that_were_started_from_it() {
    let (gateway, home) = (Gateway::accepting(), Folder::new(true));
    write_campaign_in(&home, &gateway, "a", "Autumn", 3);
    write_campaign_in(&home, &gateway, "b", "Winter", 5);
    run(&home, "a/sale.yaml", &[]).exits(0);
    // Rehearsals reach no recipients, so they are never refused.
    run(&home, "b/sale.yaml", &["--gateway", "sandbox"]).exits(0).says("sale@2");
    home.campaign(&["status", "a/sale.yaml"]).exits(0).says("sale@1");
    home.campaign(&["status", "b/sale.yaml"]).exits(0).says("sale@2");
    let results = home.campaign(&["results", "b/sale.yaml", "--out", "-"]).exits(0);
    assert_eq!(Results::parse(&results.stdout).rows.len(), 5);
    // A file with the campaign's name does not hide its runs.
    home.write("sale", "notes");
    home.campaign(&["status", "sale"]).exits(0).says("sale@1");
    write_campaign_in(&home, &gateway, "c", "Spring", 2);
    for command in ["status", "results", "stop", "retry", "reconcile"] {
        home.campaign(&[command, "c/sale.yaml"]).exits(2).says("no run was started from this file");
    }
}

#[test]
fn moved_campaign_needs_the_moved_option_only_once() {
    let (gateway, home) = (Gateway::accepting(), Folder::new(true));
    write_campaign_in(&home, &gateway, "a", "Autumn", 3);
    write_campaign_in(&home, &gateway, "b", "Winter", 5);
    run(&home, "a/sale.yaml", &[]).exits(0);
    run(&home, "b/sale.yaml", &["--moved"]).exits(2).says("`edition`");
    // The refused command does not record the move.
    home.campaign(&["status", "a/sale.yaml"]).exits(0).says("sale@1");
    home.campaign(&["status", "b/sale.yaml"]).exits(2).says("a/sale.yaml");
    run(&home, "b/sale.yaml", &["--moved", "--accept-changes"]).exits(0).says("3 skipped");
    run(&home, "b/sale.yaml", &[]).exits(0).says("no recipients are left");
    run(&home, "a/sale.yaml", &[]).exits(2).says("b/sale.yaml");
    home.campaign(&["status", "b/sale.yaml"]).exits(0).says("sale@2");
    assert_eq!(gateway.phones(), (2..7).map(phone).collect::<Vec<_>>());
}

#[test]
fn copy_with_a_longer_list_is_the_same_campaign() {
    let (gateway, home) = (Gateway::accepting(), Folder::new(true));
    write_campaign_in(&home, &gateway, "a", "Autumn", 3);
    write_campaign_in(&home, &gateway, "b", "Autumn", 4);
    run(&home, "a/sale.yaml", &[]).exits(0);
    run(&home, "b/sale.yaml", &[]).exits(0).says("3 skipped");
    assert_eq!(gateway.phones(), (2..6).map(phone).collect::<Vec<_>>());
}
