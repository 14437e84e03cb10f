//! Several machines on one ledger: runs, opt-outs, leases and ownership.

use serde_json::json;

use super::{expire_leases, ledger_address, run_elsewhere, start_elsewhere, write_in_database};
use crate::support::{Answer, Clock, Cluster, Gateway, Results, campaign, phone, until};

#[test]
fn run_from_one_machine_can_be_viewed_and_resumed_on_another() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::accepting();
    let sale = write_in_database(cluster, campaign().to(20).through(&gateway));
    sale.run(&["--limit", "8"]).exits(0);
    let summary = run_elsewhere(&sale, &["status", "sale", "--json"]).exits(5).json();
    assert_eq!(summary["counts"], json!({ "accepted": 8, "planned": 12 }));
    let results = run_elsewhere(&sale, &["results", "sale", "--out", "-"]).exits(0);
    assert_eq!(Results::parse(&results.stdout).states()[..8], ["accepted"; 8]);
    run_elsewhere(&sale, &["run", "sale.yaml"]).exits(0).says("resuming sale@1");
    assert_eq!(gateway.phones(), (2..22).map(phone).collect::<Vec<_>>());
    let copies = cluster.run_sql(ledger_address(&sale), "SELECT count(*) FROM campaign.copies");
    assert_eq!(copies, "1");
}

#[test]
fn second_machine_sees_the_first_run_and_resends_nothing() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
    let sale = write_in_database(cluster, campaign().to(10).through(&gateway));
    let first = sale.start(&[]);
    until("the second envelope is on its way", || gateway.requests().len() == 2);
    run_elsewhere(&sale, &["run", "sale.yaml"]).exits(6).says("another process");
    run_elsewhere(&sale, &["stop", "sale"]).exits(0);
    gateway.release();
    first.finish();
    run_elsewhere(&sale, &["run", "sale.yaml"]).exits(0);
    sale.run(&[]).exits(0);
    let mut phones = gateway.phones();
    phones.sort_unstable();
    assert_eq!(phones, (2..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn opt_out_on_one_machine_applies_on_another() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::accepting();
    let sale = write_in_database(cluster, campaign().to(5).through(&gateway));
    sale.run(&["--limit", "1"]).exits(0);
    run_elsewhere(&sale, &["suppress", "add", &format!("+{}", phone(4))]).exits(0);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 3, 5, 6].map(phone));
}

#[test]
fn run_of_a_lost_machine_resumes_after_its_lease_expires() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
    let sale = write_in_database(cluster, campaign().to(12).batches_of(5).one_at_a_time().through(&gateway));
    let first = sale.start(&[]);
    until("the second envelope is on its way", || gateway.requests().len() == 2);
    drop(first.kill());
    // Another machine cannot see that the process ended.
    run_elsewhere(&sale, &["run", "sale.yaml"]).exits(6).says("another process");
    expire_leases(cluster, &sale);
    run_elsewhere(&sale, &["run", "sale.yaml", "--no-wait"]).exits(4).says("1 request");
    gateway.release();
    let mut phones = gateway.phones();
    phones.sort_unstable();
    assert_eq!(phones, (2..14).map(phone).collect::<Vec<_>>());
}

#[test]
fn killed_run_resumes_at_once_on_the_same_machine() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
    let sale = write_in_database(cluster, campaign().to(12).batches_of(5).one_at_a_time().through(&gateway));
    let first = sale.start(&[]);
    until("the second envelope is on its way", || gateway.requests().len() == 2);
    drop(first.kill());
    sale.run(&[]).exits(4).says("1 request");
    gateway.release();
    let files = std::fs::read_dir(sale.path("state")).expect("the folder").flatten();
    let files: Vec<_> = files.filter(|file| file.file_name().to_string_lossy().contains("process")).collect();
    assert!(files.is_empty(), "{files:?}");
}

#[test]
fn machine_that_slept_past_its_lease_sends_nothing() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
    let sale = write_in_database(cluster, campaign().to(30).batches_of(5).one_at_a_time().through(&gateway));
    let mut old = sale.start(&[]);
    until("the second envelope is on its way", || gateway.requests().len() == 2);
    old.signal("STOP");
    expire_leases(cluster, &sale);
    let other = run_elsewhere(&sale, &["run", "sale.yaml", "--no-wait"]);
    assert!(matches!(other.code(), Some(4)), "{}", other.details());
    let sent = gateway.requests().len();
    gateway.release();
    assert!(old.is_running());
    old.signal("CONT");
    old.finish().exits(6).says("another process has taken over the run");
    assert_eq!(gateway.requests().len(), sent, "the next envelope is not sent");
    let results = run_elsewhere(&sale, &["results", "sale", "--out", "-"]).exits(0);
    assert_eq!(Results::parse(&results.stdout).states(), ["accepted"; 30], "the late answer counts");
}

#[cfg(target_os = "linux")]
#[test]
fn clocks_an_hour_apart_do_not_affect_ownership() {
    let Some(cluster) = Cluster::shared() else { return };
    let (gateway, clock) = (Gateway::answering([Answer::Accept, Answer::Held]), Clock::new());
    let sale = write_in_database(cluster, campaign().to(12).batches_of(5).one_at_a_time().through(&gateway));
    let ahead = clock.set_to(jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1));
    let run = ["run", "sale.yaml", "--no-wait"];
    let first = crate::support::Process::start(sale.command_after(&ahead, &run));
    until("the second envelope is on its way", || gateway.requests().len() == 2);
    run_elsewhere(&sale, &run).exits(6).says("another process");
    gateway.release();
    first.finish().exits(0);
    let behind = clock.set_to(jiff::Timestamp::now() - jiff::SignedDuration::from_hours(1));
    crate::support::Process::start(sale.command_after(&behind, &run)).finish().exits(0);
    assert_eq!(gateway.phones().len(), 12);
}

#[test]
fn file_ledger_keeps_a_campaign_out_of_the_shared_ledger() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::accepting();
    let sale = campaign().to(5).through(&gateway).write();
    let run_with_file_ledger = |arguments: &[&str]| {
        let mut command = sale.command(arguments);
        command.env_remove("CAMPAIGN_LEDGER");
        crate::support::Process::start(command).finish()
    };
    run_with_file_ledger(&["run", "sale.yaml", "--limit", "2"]).exits(0);
    let ledger = cluster.create_database();
    run_with_file_ledger(&["run", "sale.yaml", "--ledger", &ledger]).exits(74).says("sale@1").says("--new-ledger");
    assert_eq!(gateway.phones().len(), 2);
    // An empty variable counts as unset.
    let mut command = sale.command(&["run", "sale.yaml"]);
    command.env("CAMPAIGN_LEDGER", "");
    crate::support::Process::start(command).finish().exits(0);
    assert_eq!(gateway.phones().len(), 5);
}

#[test]
fn two_simultaneous_starts_on_a_new_database_create_one_ledger() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::accepting();
    let sale = write_in_database(cluster, campaign().to(40).through(&gateway));
    let rivals = [sale.start(&["--yes"]), start_elsewhere(&sale, &["run", "sale.yaml", "--yes"])];
    let codes = rivals.map(|rival| rival.finish().code());
    assert!(codes.contains(&Some(0)) && codes.iter().all(|code| matches!(code, Some(0 | 6))), "{codes:?}");
    let mut phones = gateway.phones();
    phones.sort_unstable();
    assert_eq!(phones, (2..42).map(phone).collect::<Vec<_>>());
}
