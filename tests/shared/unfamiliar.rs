//! `unfamiliar-ledger`: an empty state folder cannot detect a restored snapshot of a ledger with live runs.

use serde_json::{Value, json};

use super::{run_elsewhere, write_in_database};
use crate::support::{Cluster, Finished, Folder, Gateway, Process, campaign, live};

const RULE: &str = "unfamiliar-ledger";

/// A campaign through a public gateway that one machine started to send.
fn started_campaign(cluster: &Cluster) -> Folder {
    let sale = live().with_database(&cluster.create_database());
    sale.run(&["--yes"]);
    sale.campaign(&["status", "sale"]).says("sale@1");
    sale
}

fn rule_names(finished: &Finished) -> Vec<Value> {
    let findings = finished.json()["findings"].as_array().expect("findings").clone();
    findings.into_iter().map(|finding| finding["rule"].clone()).collect()
}

#[test]
fn empty_state_folder_causes_a_warning_if_there_are_live_runs() {
    let Some(cluster) = Cluster::shared() else { return };
    let sale = started_campaign(cluster);
    assert!(!sale.campaign(&["check", "sale.yaml"]).details().contains(RULE), "it has its high-water mark");
    for _ in 0..2 {
        let finished = run_elsewhere(&sale, &["check", "sale.yaml", "--json"]);
        assert!(rule_names(&finished).contains(&json!(RULE)), "{}", finished.details());
    }
    // `check --online` updates the account's rate limit in the ledger, which must not hide the warning.
    run_elsewhere(&sale, &["check", "sale.yaml", "--online"]).says(RULE);
    run_elsewhere(&sale, &["check", "sale.yaml"]).says(RULE).says("sale@1").says("campaign status");
    run_elsewhere(&sale, &["status"]).exits(0);
    run_elsewhere(&sale, &["check", "sale.yaml"]).says(RULE);
    // The run prints the warning before it sends.
    let run = run_elsewhere(&sale, &["run", "sale.yaml", "--yes", "--no-wait"]);
    run.says(RULE);
    assert!(!run_elsewhere(&sale, &["check", "sale.yaml"]).details().contains(RULE), "it has its high-water mark now");
    assert!(!run_elsewhere(&sale, &["run", "sale.yaml", "--yes", "--no-wait"]).details().contains(RULE));
    sale.campaign(&["explain", RULE]).exits(0).says("snapshot");
}

#[test]
fn empty_state_folder_causes_no_warning_without_live_runs() {
    let Some(cluster) = Cluster::shared() else { return };
    let sale = live().with_database(&cluster.create_database());
    assert!(!run_elsewhere(&sale, &["check", "sale.yaml"]).details().contains(RULE), "no ledger");
    sale.campaign(&["suppress", "add", "+380500000099"]).exits(0);
    sale.run(&["--gateway", "sandbox"]).exits(0);
    assert!(!run_elsewhere(&sale, &["check", "sale.yaml"]).details().contains(RULE), "a rehearsal");
    let gateway = Gateway::accepting();
    let local = write_in_database(cluster, campaign().through(&gateway));
    local.run(&[]).exits(0);
    assert!(!run_elsewhere(&local, &["check", "sale.yaml"]).details().contains(RULE), "a gateway on this machine");
    let old = started_campaign(cluster);
    let at = "1700000000000000";
    cluster.run_sql(
        old.ledger().expect("a database"),
        &format!("UPDATE campaign.runs SET progress = 'finished', ended_at = {at}"),
    );
    assert!(!run_elsewhere(&old, &["check", "sale.yaml"]).details().contains(RULE), "it ended years ago");
}

#[test]
fn run_after_restoring_a_snapshot_sends_nothing_twice() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let gateway = Gateway::accepting();
    let sale = write_in_database(&cluster, campaign().to(20).through(&gateway));
    sale.run(&["--limit", "7"]).exits(0);
    cluster.stop_server();
    cluster.copy_data("snapshot");
    assert!(cluster.start_server());
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 20);
    cluster.stop_server();
    cluster.restore_data("snapshot");
    assert!(cluster.start_server());
    // The machine that sent the messages notices the restore; a machine with an empty state folder does not.
    sale.run(&[]).exits(74);
    run_elsewhere(&sale, &["ledger", "backup", "saved"]).exits(0);
    let other = cluster.create_database();
    let run_restored = |arguments: &[&str]| {
        let mut command = sale.command(&[arguments, &["--state-dir", "elsewhere"]].concat());
        command.env("CAMPAIGN_LEDGER", &other);
        Process::start(command).finish()
    };
    run_restored(&["ledger", "restore", "saved"]).exits(4);
    run_restored(&["run", "sale.yaml", "--no-wait"]).exits(4).says("in doubt");
    assert_eq!(gateway.phones().len(), 20, "no second messages");
}
