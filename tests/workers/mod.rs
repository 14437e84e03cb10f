//! Workers: several processes send one run together, and no recipient gets a second message.

mod kills;
mod metrics_endpoint;
mod stopping;
mod suppression;
mod takeover;

use std::collections::BTreeSet;

use crate::support::{Draft, Folder, Gateway, Process, campaign, phone, until};

/// A campaign with shards of 60 rows, which takes one process several seconds.
fn small_shard_campaign(number: usize) -> Draft {
    campaign().to(number).batches_of(5).delivery("rate: 30/s")
}

/// Starts a worker and waits until it looks for runs.
pub(crate) fn start_worker(sale: &Folder) -> Process {
    start_worker_with(sale, &[])
}

fn start_worker_with(sale: &Folder, environment: &[(&str, &str)]) -> Process {
    let mut command = sale.command(&["worker"]);
    command.envs(environment.iter().copied());
    let worker = Process::start(command);
    until("the worker looks for runs", || worker.stdout().contains("ready to send shards of runs"));
    worker
}

/// Stops a worker, which gives its shards back. Returns the worker's output.
pub(crate) fn stop_worker(mut worker: Process) -> String {
    worker.signal("TERM");
    worker.finish().exits(0).stdout
}

/// The number of messages that a worker reported as sent.
fn sent_count(output: &str) -> usize {
    let counts =
        output.lines().filter_map(|line| line.split_once(": sent ")?.1.split(' ').next()?.parse::<usize>().ok());
    counts.sum()
}

/// Asserts that every recipient got exactly one message.
fn check_one_message_each(gateway: &Gateway, number: usize) {
    assert_eq!(check_no_duplicates(gateway), (2..2 + number).map(phone).collect(), "missing or unknown recipients");
}

/// Asserts that no recipient got two messages; returns the recipients.
pub(crate) fn check_no_duplicates(gateway: &Gateway) -> BTreeSet<u64> {
    let phones = gateway.phones();
    let distinct: BTreeSet<u64> = phones.iter().copied().collect();
    assert_eq!(phones.len(), distinct.len(), "duplicate messages");
    distinct
}

#[test]
fn worker_takes_shards_and_each_recipient_gets_one_message() {
    let gateway = Gateway::accepting();
    let sale = small_shard_campaign(200).through(&gateway).write();
    let worker = start_worker(&sale);
    let run = sale.start(&["--shared"]);
    until("both have shards", || {
        let status = sale.campaign(&["status", "sale", "--json"]).json();
        status["senders"].as_array().is_some_and(|senders| senders.len() == 2)
    });
    assert!(sale.campaign(&["status", "sale"]).details().contains(" rows, since "));
    run.finish().exits(0).says("200");
    check_one_message_each(&gateway, 200);
    assert_eq!(sale.results().states(), ["accepted"; 200]);
    until("the worker finds no more shards", || worker.stdout().contains("no shards are left"));
    let sent = sent_count(&stop_worker(worker));
    assert!((1..200).contains(&sent), "{sent}");
}

#[test]
fn shared_run_without_workers_is_sent_by_its_starter() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(120).batches_of(7).through(&gateway).write();
    sale.run(&["--shared"]).exits(0);
    check_one_message_each(&gateway, 120);
    let sizes: Vec<usize> = gateway.sends().iter().map(|request| request.operations().len()).collect();
    assert_eq!((sizes[0], sizes.iter().max()), (1, Some(&7)), "warm-up with a single message: {sizes:?}");
    sale.run(&[]).exits(0).says("no recipients are left");
}

#[test]
fn unshared_run_does_not_use_workers() {
    let gateway = Gateway::accepting();
    let sale = small_shard_campaign(30).through(&gateway).write();
    let worker = start_worker(&sale);
    sale.run(&[]).exits(0);
    assert_eq!(sent_count(&stop_worker(worker)), 0);
    check_one_message_each(&gateway, 30);
}

#[test]
fn rate_is_shared_by_all_processes() {
    let gateway = Gateway::accepting();
    let sale = small_shard_campaign(180).through(&gateway).write();
    let (one, two) = (start_worker(&sale), start_worker(&sale));
    let started_at = std::time::Instant::now();
    sale.start(&["--shared"]).finish().exits(0);
    let minimum = std::time::Duration::from_millis((180 - 30) * 1_000 / 30);
    assert!(started_at.elapsed() >= minimum, "{:?}", started_at.elapsed());
    check_one_message_each(&gateway, 180);
    let sent = sent_count(&stop_worker(one)) + sent_count(&stop_worker(two));
    assert!(sent > 0, "{sent}");
}

#[test]
fn waiting_envelope_is_not_in_doubt_after_a_kill() {
    let gateway = Gateway::accepting();
    let draft = campaign().to(300).batches_of(10).delivery("rate: 50/s").delivery("in_flight: 4");
    let sale = draft.through(&gateway).profile("rate: 50/s").write();
    let mut run = sale.start(&["--shared"]);
    until("the warm-up is complete", || gateway.sends().len() >= 14);
    run.signal("KILL");
    run.finish();
    let counts = sale.campaign(&["status", "sale@1", "--json"]).json()["counts"].clone();
    let doubt = counts["in_doubt"].as_u64().unwrap_or_default();
    assert!(doubt <= 10, "more than one envelope was started: {counts}");
}

#[test]
fn shared_run_needs_a_gateway() {
    campaign().to(3).write().run(&["--shared"]).exits(2).says("`--shared` needs a gateway");
}

#[test]
fn worker_without_the_profile_of_a_run_says_so() {
    let gateway = Gateway::accepting();
    let sale = small_shard_campaign(90).through(&gateway).write();
    sale.write_secret("others.yaml", "other:\n  base_url: http://127.0.0.1:9\n  api_key: { env: KEY }\n  rate: 1/s\n");
    let worker = Process::start(sale.command(&["worker", "--gateways", "others.yaml"]));
    until("the worker looks for runs", || worker.stdout().contains("ready to send shards of runs"));
    let run = sale.start(&["--shared"]);
    until("the worker finds the run", || worker.stdout().contains("sale@1: "));
    run.finish().exits(0);
    let output = stop_worker(worker);
    assert!(output.contains("there is no gateway `local`"), "{output}");
    assert_eq!(sent_count(&output), 0);
    check_one_message_each(&gateway, 90);
}
