//! Backups of a database ledger, restored in another database or file.

use serde_json::json;

use crate::support::{Cluster, Finished, Folder, Gateway, Process, campaign, phone};

fn run_with_ledger(sale: &Folder, ledger: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Finished {
    let mut command = sale.command(arguments);
    command.env("CAMPAIGN_LEDGER", ledger).envs(variables.iter().copied());
    Process::start(command).finish()
}

#[test]
fn shared_ledger_restored_elsewhere_repeats_no_message() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::accepting();
    let (sale, ledger, other) =
        (campaign().to(20).through(&gateway).write(), cluster.create_database(), cluster.create_database());
    let run_with_first = |arguments: &[&str]| run_with_ledger(&sale, &ledger, &[], arguments);
    let run_with_second = |arguments: &[&str]| run_with_ledger(&sale, &other, &[], arguments);
    run_with_first(&["suppress", "add", &format!("+{}", phone(19))]).exits(0);
    run_with_first(&["run", "sale.yaml", "--no-wait", "--limit", "7"]).exits(0);
    run_with_first(&["ledger", "backup", "saved"]).exits(0);
    let stdout = |finished: Finished| {
        let finished = finished.exits(0);
        finished.stdout
    };
    let before = stdout(run_with_first(&["results", "sale", "--state", "accepted", "--out", "-"]));
    run_with_first(&["run", "sale.yaml", "--no-wait"]).exits(0);
    let sent = gateway.phones().len();
    // After an interrupted restore, the database contains a backup that cannot be used for sending.
    let interrupted =
        run_with_ledger(&sale, &other, &[("CAMPAIGN_FAILPOINT", "restore.doubted:1")], &["ledger", "restore", "saved"]);
    assert_eq!(interrupted.code(), None, "{}", interrupted.details());
    run_with_second(&["run", "sale.yaml", "--no-wait"]).exits(74).says("that has not been restored");
    let restored = run_with_second(&["ledger", "restore", "saved", "--json"]).exits(4).json();
    assert_eq!(restored["in_doubt"], json!([{ "run": "sale@1", "rows": 12 }]));
    run_with_second(&["ledger", "check"]).exits(0);
    assert_eq!(stdout(run_with_second(&["results", "sale", "--state", "accepted", "--out", "-"])), before);
    run_with_second(&["run", "sale.yaml", "--no-wait"]).exits(4);
    assert_eq!(gateway.phones().len(), sent);
    run_with_second(&["ledger", "restore", "saved"]).exits(74).says("already contains another ledger");
    run_with_first(&["status", "sale"]).exits(0);
}

#[test]
fn backup_can_move_a_ledger_between_file_and_database() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::accepting();
    let (sale, ledger) = (campaign().to(9).through(&gateway).write().with_database(""), cluster.create_database());
    sale.run(&["--limit", "4"]).exits(0);
    sale.run(&[]).exits(0);
    sale.campaign(&["ledger", "backup", "of-the-file"]).exits(0);
    run_with_ledger(&sale, &ledger, &[], &["ledger", "restore", "of-the-file"]).exits(0);
    run_with_ledger(&sale, &ledger, &[], &["ledger", "backup", "of-the-database"]).exits(0);
    sale.campaign(&["ledger", "restore", "of-the-database"]).exits(0);
    sale.campaign(&["ledger", "check"]).exits(0).says("1 run with 9 rows");
    sale.campaign(&["status", "sale"]).exits(0);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 9);
}
