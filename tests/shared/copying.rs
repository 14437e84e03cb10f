//! `ledger copy` moves a ledger from its file to a database. Afterwards, commands that use the old file send nothing.

use serde_json::json;

use crate::support::{Answer, Cluster, Finished, Folder, Gateway, Process, Server, campaign, phone, until};

/// Runs the binary with the ledger file and ignores `STORIES_OVER`.
fn run_with_file_ledger(sale: &Folder, arguments: &[&str]) -> Finished {
    start_with_file_ledger(sale, arguments, &[]).finish()
}

/// Starts the binary with the ledger file and these environment variables.
fn start_with_file_ledger(sale: &Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Process {
    let mut command = sale.command(arguments);
    command.env_remove("CAMPAIGN_LEDGER").envs(variables.iter().copied());
    Process::start(command)
}

/// A campaign with nine sent rows, an opt-out and a number lookup. If the gateway does not answer the second request,
/// four of the rows are in doubt.
fn partly_sent_campaign(gateway: &Gateway) -> Folder {
    let sale = campaign().to(20).batches_of(4).one_at_a_time().delivery("timeout: 10s").through(gateway).write();
    run_with_file_ledger(&sale, &["suppress", "add", &format!("+{}", phone(19))]).exits(0);
    run_with_file_ledger(&sale, &["run", "sale.yaml", "--no-wait", "--limit", "9"]);
    run_with_file_ledger(&sale, &["gateway", "lookup", "+380501234567", "--gateway", "local", "--yes"]).exits(0);
    sale
}

#[test]
fn moved_ledger_works_and_its_old_file_sends_nothing() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
    let (sale, ledger) = (partly_sent_campaign(&gateway), cluster.create_database());
    let outcome = |finished: &Finished| (finished.code(), finished.stdout.clone());
    let commands: [&[&str]; 6] = [
        &["status", "--json", "--all"],
        &["status", "sale", "--json"],
        &["results", "sale", "--out", "-"],
        &["show", "sale", "--row", "4"],
        &["suppress", "list"],
        &["find", "+380501000002", "--json"],
    ];
    let before = commands.map(|command| outcome(&run_with_file_ledger(&sale, command)));
    let copied = run_with_file_ledger(&sale, &["ledger", "copy", "--to", &ledger, "--json"]).exits(0).json();
    assert_eq!((&copied["runs"], &copied["without_copies"]), (&json!(2), &json!(0)), "{copied}");
    assert_eq!(copied["rows"], json!(21), "a lookup is a row");
    let run_with_database = |arguments: &[&str]| {
        let mut command = sale.command(arguments);
        command.env("CAMPAIGN_LEDGER", &ledger);
        Process::start(command).finish()
    };
    let after = commands.map(|command| outcome(&run_with_database(command)));
    assert_eq!(before, after);
    run_with_database(&["ledger", "check"]).exits(0).says("is sound");
    let sent = gateway.requests().len();
    run_with_file_ledger(&sale, &["run", "sale.yaml"])
        .exits(74)
        .says("it was copied to a database")
        .says("add `--ledger`");
    assert_eq!(gateway.requests().len(), sent);
    run_with_database(&["run", "sale.yaml", "--no-wait"]);
    let mut phones = gateway.phones();
    phones.sort_unstable();
    let expected: Vec<u64> = (2..22).filter(|&row| row != 19).map(phone).collect();
    assert_eq!(phones.into_iter().filter(|phone| *phone != 380_501_234_567).collect::<Vec<_>>(), expected);
    // New records get keys after the copied ones.
    run_with_database(&["suppress", "add", "+380501999999"]).exits(0);
    run_with_database(&["ledger", "check"]).exits(0);
    // A repeated copy succeeds.
    run_with_file_ledger(&sale, &["ledger", "copy", "--to", &ledger]).exits(0);
    run_with_file_ledger(&sale, &["ledger", "copy", "--to", &cluster.create_database()])
        .exits(74)
        .says("it was copied to a database");
}

#[test]
fn ledger_is_moved_completely_and_only_to_an_empty_target() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
    let (sale, ledger) = (partly_sent_campaign(&gateway), cluster.create_database());
    let copy = ["ledger", "copy", "--to", &ledger];
    // The process is killed after the copy is complete, before it reports success.
    start_with_file_ledger(&sale, &copy, &[("CAMPAIGN_FAILPOINT", "ledger.copied:1")]).finish();
    run_with_file_ledger(&sale, &copy).exits(0);
    run_with_file_ledger(&sale, &["run", "sale.yaml"]).exits(74);
    let other_gateway = Gateway::accepting();
    let other = partly_sent_campaign(&other_gateway);
    run_with_file_ledger(&other, &copy).exits(74).says("another ledger");
    run_with_file_ledger(&other, &["status", "sale"]).exits(5);
    let addresses = [("s3cret", 2), ("postgres://me:s3cret@127.0.0.1:1/c", 74)];
    for (address, code) in addresses {
        let finished = run_with_file_ledger(&other, &["ledger", "copy", "--to", address]).exits(code);
        assert!(!finished.stderr.contains("s3cret"), "{}", finished.details());
    }
    run_with_file_ledger(&other, &["run", "sale.yaml"]).exits(0);
}

#[test]
fn ledger_is_not_moved_while_a_run_sends() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
    let (sale, ledger) = (campaign().to(10).through(&gateway).write(), cluster.create_database());
    let run = start_with_file_ledger(&sale, &["run", "sale.yaml"], &[]);
    until("the second envelope is on its way", || gateway.requests().len() == 2);
    run_with_file_ledger(&sale, &["ledger", "copy", "--to", &ledger]).exits(74).says("is using the ledger");
    gateway.release();
    run.finish().exits(0);
    assert_eq!(cluster.run_sql(&ledger, "SELECT to_regnamespace('campaign') IS NULL"), "t");
    run_with_file_ledger(&sale, &["ledger", "copy", "--to", &ledger]).exits(0).says("1 run with 10 rows");
}

#[test]
fn ledger_of_a_running_server_is_not_moved() {
    let Some(cluster) = Cluster::shared() else { return };
    let (sale, ledger) = (campaign().write().with_database(""), cluster.create_database());
    run_with_file_ledger(&sale, &["suppress", "add", "+380501999999"]).exits(0);
    let server = Server::start(&sale, &[]);
    until("the server is ready", || server.get("/readyz").status == 200);
    let copy = ["ledger", "copy", "--to", &ledger];
    until("the server uses the ledger", || run_with_file_ledger(&sale, &copy).code() == Some(74));
    run_with_file_ledger(&sale, &copy)
        .exits(74)
        .says("another process, such as a run or `campaign serve`, is using the ledger");
    server.end("TERM").exits(0);
    run_with_file_ledger(&sale, &copy).exits(0);
}
