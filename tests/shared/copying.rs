//! Moving a ledger from its file to a database: everything is known there, and the file sends nothing any more.

use serde_json::json;

use crate::support::{Answer, Cluster, Finished, Folder, Gateway, Process, Server, campaign, phone, until};

/// Runs the binary with its ledger in the file, whatever stories are told over.
fn in_the_file(sale: &Folder, arguments: &[&str]) -> Finished {
    start_in_the_file(sale, arguments, &[]).finish()
}

fn start_in_the_file(sale: &Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Process {
    let mut command = sale.command(arguments);
    command.env_remove("CAMPAIGN_LEDGER").envs(variables.iter().copied());
    Process::start(command)
}

/// A sale of which four were sent and four are in doubt, two opted out, and a lookup was made.
fn begun(gateway: &Gateway) -> Folder {
    let sale = campaign().to(20).batches_of(4).one_at_a_time().delivery("timeout: 10s").through(gateway).write();
    in_the_file(&sale, &["suppress", "add", &format!("+{}", phone(19))]).exits(0);
    in_the_file(&sale, &["run", "sale.yaml", "--no-wait", "--limit", "9"]);
    in_the_file(&sale, &["gateway", "lookup", "+380501234567", "--gateway", "local", "--yes"]).exits(0);
    sale
}

#[test]
fn moved_ledger_continues_and_its_old_file_sends_nothing() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
    let (sale, ledger) = (begun(&gateway), cluster.database());
    let told = |finished: &Finished| (finished.code(), finished.stdout.clone());
    let questions: [&[&str]; 6] = [
        &["status", "--json", "--all"],
        &["status", "sale", "--json"],
        &["results", "sale", "--out", "-"],
        &["show", "sale", "--row", "4"],
        &["suppress", "list"],
        &["find", "+380501000002", "--json"],
    ];
    let before = questions.map(|question| told(&in_the_file(&sale, question)));
    let copied = in_the_file(&sale, &["ledger", "copy", "--to", &ledger, "--json"]).exits(0).json();
    assert_eq!((&copied["runs"], &copied["without_copies"]), (&json!(2), &json!(0)), "{copied}");
    let shared = |arguments: &[&str]| {
        let mut command = sale.command(arguments);
        command.env("CAMPAIGN_LEDGER", &ledger);
        Process::start(command).finish()
    };
    let after = questions.map(|question| told(&shared(question)));
    assert_eq!(before, after);
    shared(&["ledger", "check"]).exits(0).says("is sound");
    let sent = gateway.requests().len();
    in_the_file(&sale, &["run", "sale.yaml"]).exits(74).says("it was copied to a database").says("add `--ledger`");
    assert_eq!(gateway.requests().len(), sent);
    shared(&["run", "sale.yaml", "--no-wait"]);
    let mut phones = gateway.phones();
    phones.sort_unstable();
    let expected: Vec<u64> = (2..22).filter(|&row| row != 19).map(phone).collect();
    assert_eq!(phones.into_iter().filter(|phone| *phone != 380_501_234_567).collect::<Vec<_>>(), expected);
    // New records get keys behind those that came along.
    shared(&["suppress", "add", "+380501999999"]).exits(0);
    shared(&["ledger", "check"]).exits(0);
    // Whoever says it again hears that it is so.
    in_the_file(&sale, &["ledger", "copy", "--to", &ledger]).exits(0);
    in_the_file(&sale, &["ledger", "copy", "--to", &cluster.database()]).exits(74).says("it was copied to a database");
}

#[test]
fn ledger_is_moved_whole_and_only_to_an_empty_place() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
    let (sale, ledger) = (begun(&gateway), cluster.database());
    let copy = ["ledger", "copy", "--to", &ledger];
    // It dies when everything is there, and nobody has heard of it.
    start_in_the_file(&sale, &copy, &[("CAMPAIGN_FAILPOINT", "ledger.copied:1")]).finish();
    in_the_file(&sale, &copy).exits(0);
    in_the_file(&sale, &["run", "sale.yaml"]).exits(74);
    let others = Gateway::accepting();
    let other = begun(&others);
    in_the_file(&other, &copy).exits(74).says("another ledger");
    in_the_file(&other, &["status", "sale"]).exits(5);
    let places = [("s3cret", 2), ("postgres://me:s3cret@127.0.0.1:1/c", 74)];
    for (place, code) in places {
        let told = in_the_file(&other, &["ledger", "copy", "--to", place]).exits(code);
        assert!(!told.stderr.contains("s3cret"), "{}", told.told());
    }
    in_the_file(&other, &["run", "sale.yaml"]).exits(0);
}

#[test]
fn ledger_is_not_moved_while_a_run_sends() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
    let (sale, ledger) = (campaign().to(10).through(&gateway).write(), cluster.database());
    let run = start_in_the_file(&sale, &["run", "sale.yaml"], &[]);
    until("the second envelope is on its way", || gateway.requests().len() == 2);
    in_the_file(&sale, &["ledger", "copy", "--to", &ledger]).exits(74).says("is using the ledger");
    gateway.release();
    run.finish().exits(0);
    assert_eq!(cluster.say(&ledger, "SELECT to_regnamespace('campaign') IS NULL"), "t");
    in_the_file(&sale, &["ledger", "copy", "--to", &ledger]).exits(0).says("1 run with 10 rows");
}

#[test]
fn ledger_of_a_running_server_is_not_moved() {
    let Some(cluster) = Cluster::shared() else { return };
    let (sale, ledger) = (campaign().write().over(""), cluster.database());
    in_the_file(&sale, &["suppress", "add", "+380501999999"]).exits(0);
    let server = Server::start(&sale, &[]);
    until("it is ready", || server.get("/readyz").status == 200);
    let copy = ["ledger", "copy", "--to", &ledger];
    until("it has its turn", || in_the_file(&sale, &copy).code() == Some(74));
    in_the_file(&sale, &copy).exits(74).says("another process, such as a run or `campaign serve`, is using the ledger");
    server.end("TERM").exits(0);
    in_the_file(&sale, &copy).exits(0);
}
