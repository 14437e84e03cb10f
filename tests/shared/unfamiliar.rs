//! A machine with an empty state folder meets a ledger in which others have sent. It cannot tell a snapshot that was put back.

use serde_json::{Value, json};

use super::{elsewhere, over};
use crate::support::{Cluster, Finished, Folder, Gateway, Process, campaign, live};

const RULE: &str = "unfamiliar-ledger";

/// A campaign through a gateway on the internet, which one machine began to send.
fn begun(cluster: &Cluster) -> Folder {
    let sale = live().over(&cluster.database());
    sale.run(&["--yes"]);
    sale.campaign(&["status", "sale"]).says("sale@1");
    sale
}

fn rules(checked: &Finished) -> Vec<Value> {
    let findings = checked.json()["findings"].as_array().expect("findings").clone();
    findings.into_iter().map(|finding| finding["rule"].clone()).collect()
}

#[test]
fn empty_state_folder_is_warned_of_live_runs_until_it_sends() {
    let Some(cluster) = Cluster::shared() else { return };
    let sale = begun(cluster);
    assert!(!sale.campaign(&["check", "sale.yaml"]).told().contains(RULE), "it has its mark");
    for _ in 0..2 {
        let checked = elsewhere(&sale, &["check", "sale.yaml", "--json"]);
        assert!(rules(&checked).contains(&json!(RULE)), "{}", checked.told());
    }
    // A job that asks the gateway changes the rate of the account, and hides nothing.
    elsewhere(&sale, &["check", "sale.yaml", "--online"]).says(RULE);
    elsewhere(&sale, &["check", "sale.yaml"]).says(RULE).says("sale@1").says("campaign status");
    elsewhere(&sale, &["status"]).exits(0);
    elsewhere(&sale, &["check", "sale.yaml"]).says(RULE);
    // The run itself says it before anything is sent.
    let run = elsewhere(&sale, &["run", "sale.yaml", "--yes", "--no-wait"]);
    run.says(RULE);
    assert!(!elsewhere(&sale, &["check", "sale.yaml"]).told().contains(RULE), "it has its mark now");
    assert!(!elsewhere(&sale, &["run", "sale.yaml", "--yes", "--no-wait"]).told().contains(RULE));
    sale.campaign(&["explain", RULE]).exits(0).says("snapshot");
}

#[test]
fn empty_state_folder_is_not_warned_without_live_runs() {
    let Some(cluster) = Cluster::shared() else { return };
    let sale = live().over(&cluster.database());
    assert!(!elsewhere(&sale, &["check", "sale.yaml"]).told().contains(RULE), "no ledger");
    sale.campaign(&["suppress", "add", "+380500000099"]).exits(0);
    sale.run(&["--gateway", "sandbox"]).exits(0);
    assert!(!elsewhere(&sale, &["check", "sale.yaml"]).told().contains(RULE), "a rehearsal");
    let gateway = Gateway::accepting();
    let near = over(cluster, campaign().through(&gateway));
    near.run(&[]).exits(0);
    assert!(!elsewhere(&near, &["check", "sale.yaml"]).told().contains(RULE), "a gateway on this machine");
    let old = begun(cluster);
    let at = "1700000000000000";
    cluster.say(
        old.ledger().expect("a database"),
        &format!("UPDATE campaign.runs SET progress = 'finished', ended_at = {at}"),
    );
    assert!(!elsewhere(&old, &["check", "sale.yaml"]).told().contains(RULE), "it ended years ago");
}

#[test]
fn snapshot_that_is_restored_as_a_backup_sends_nothing_twice() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let gateway = Gateway::accepting();
    let sale = over(&cluster, campaign().to(20).through(&gateway));
    sale.run(&["--limit", "7"]).exits(0);
    cluster.end();
    cluster.copy("snapshot");
    assert!(cluster.begin());
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 20);
    cluster.end();
    cluster.put_back("snapshot");
    assert!(cluster.begin());
    // The machine that sent notices it; one with an empty state folder does not.
    sale.run(&[]).exits(74);
    elsewhere(&sale, &["ledger", "backup", "saved"]).exits(0);
    let other = cluster.database();
    let restored = |arguments: &[&str]| {
        let mut command = sale.command(&[arguments, &["--state-dir", "elsewhere"]].concat());
        command.env("CAMPAIGN_LEDGER", &other);
        Process::start(command).finish()
    };
    restored(&["ledger", "restore", "saved"]).exits(4);
    restored(&["run", "sale.yaml", "--no-wait"]).exits(4).says("in doubt");
    assert_eq!(gateway.phones().len(), 20, "nobody gets a second message");
}
