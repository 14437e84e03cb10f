//! Program versions on a shared ledger: upgrade on request, and older versions send nothing afterwards.

use crate::support::{Answer, Cluster, Gateway, Process, campaign, until};

/// Marks a ledger as upgraded by a newer version.
fn mark_as_newer_version(cluster: &Cluster, ledger: &str) {
    let newest = "(SELECT max(version) FROM campaign._sqlx_migrations)";
    cluster.run_sql(ledger, &format!("UPDATE campaign._sqlx_migrations SET version = 1000 WHERE version = {newest}"));
}

#[test]
fn ledger_of_a_newer_version_is_refused() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::accepting();
    let ledger = cluster.create_database();
    let sale = campaign().to(3).through(&gateway).write().with_database(&ledger);
    sale.run(&["--limit", "1"]).exits(0);
    mark_as_newer_version(cluster, &ledger);
    sale.run(&[]).exits(74).says("newer version");
    sale.campaign(&["status"]).exits(74).says("newer version");
    assert_eq!(gateway.phones().len(), 1);
}

#[test]
fn older_version_sends_nothing_after_an_upgrade() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
    let draft = campaign().to(30).batches_of(5).one_at_a_time().through(&gateway);
    let sale = draft.write().with_database(&cluster.create_database());
    let run = sale.start(&[]);
    until("the second envelope is on its way", || gateway.requests().len() == 2);
    let ledger = sale.ledger().expect("a database").to_owned();
    mark_as_newer_version(cluster, &ledger);
    gateway.release();
    run.finish().exits(74).says("newer version");
    assert_eq!(gateway.requests().len(), 2);
}

#[test]
fn upgrade_of_a_current_ledger_changes_nothing() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).write().with_database(&cluster.create_database());
    sale.campaign(&["ledger", "upgrade"]).exits(2).says("no ledger yet");
    sale.run(&[]).exits(0);
    sale.campaign(&["ledger", "upgrade"]).exits(0).says("nothing changed");
    let report = sale.campaign(&["ledger", "upgrade", "--json"]).exits(0).json();
    assert_eq!(report["upgraded"], false);
    let mut command = sale.command(&["ledger", "upgrade"]);
    command.env_remove("CAMPAIGN_LEDGER");
    Process::start(command).finish().exits(2).says("no ledger yet");
}
