//! Ledger addresses: the accepted forms, and a password that is never printed.

use crate::support::{Cluster, Folder, Gateway, Process, campaign, note_on_failure};

#[test]
fn unusable_address_is_reported_without_its_password() {
    for (address, code, words) in [
        ("s3cret", 2, "postgres://USER@HOST"),
        ("mysql://me:s3cret@db/c", 2, "postgres://USER@HOST"),
        ("postgres://me:s3cret@127.0.0.1:1/c?sslmod=s3cret", 2, "`sslmod`"),
        ("postgres://me:s3cret@127.0.0.1:1/c", 74, "postgres://me@127.0.0.1:1/c"),
        ("postgres://me@127.0.0.1:1/c?password=s3cret", 74, "postgres://me@127.0.0.1:1/c"),
    ] {
        let _case = note_on_failure(format!("case: {address}"));
        let gateway = Gateway::accepting();
        let sale = campaign().to(3).through(&gateway).write();
        for arguments in [
            &["run", "sale.yaml", "-vv", "--ledger", address][..],
            &["status", "--ledger", address],
            &["ledger", "check", "--json", "--ledger", address],
        ] {
            let finished = sale.campaign(arguments).exits(code).says(words);
            assert!(!format!("{}{}", finished.stdout, finished.stderr).contains("s3cret"), "{}", finished.details());
        }
        let mut command = sale.command(&["status"]);
        command.env("CAMPAIGN_LEDGER", address);
        let finished = Process::start(command).finish().exits(code).says(words);
        assert!(!format!("{}{}", finished.stdout, finished.stderr).contains("s3cret"), "{}", finished.details());
        let help = sale.campaign(&["run", "--help", "--ledger", address]);
        assert!(!help.stdout.contains("s3cret"));
        assert_eq!(gateway.requests().len(), 0);
    }
}

#[test]
fn suggested_command_names_the_ledger_without_its_password() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).write();
    let address = cluster.create_database().replace("story@", "story:s3cret@");
    let run = sale.campaign(&["run", "sale.yaml", "--limit", "1", "--ledger", &address]).exits(0);
    run.says("--ledger 'postgres://story@");
    for arguments in [
        &["status"][..],
        &["status", "sale"],
        &["ledger", "check"],
        &["connector", "--stdio", "--print-config", "--gateway", "local"],
    ] {
        let finished = sale.campaign(&[arguments, &["--ledger", &address]].concat());
        let finished = finished.says("--ledger");
        assert!(!format!("{}{}", finished.stdout, finished.stderr).contains("s3cret"), "{}", finished.details());
    }
}

#[test]
fn read_only_commands_create_no_ledger() {
    let Some(cluster) = Cluster::shared() else { return };
    let (sale, ledger) = (Folder::new(false), cluster.create_database());
    let sale = sale.with_database(&ledger);
    sale.campaign(&["status"]).exits(0).says("no runs yet");
    sale.campaign(&["ledger", "check"]).exits(0).says("no ledger yet");
    assert_eq!(cluster.run_sql(&ledger, "SELECT to_regnamespace('campaign') IS NULL"), "t");
}
