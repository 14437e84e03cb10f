//! Suppression files in a shared run: every worker rereads them, or sends nothing.

use std::fs;

use super::{check_no_duplicates, check_one_message_each, sent_count, small_shard_campaign, start_worker, stop_worker};
use crate::support::{Answer, Folder, Gateway, Process, phone, until};

/// Starts a shared run with a worker, and kills the process that started the run after some messages. Only the worker
/// can notice later changes of the suppression file.
fn leave_run_to_worker(gateway: &Gateway) -> (Folder, Process) {
    let sale = small_shard_campaign(200).recipients("suppress: [stop.csv]").through(gateway).write();
    sale.write("stop.csv", "phone\n");
    let worker = start_worker(&sale);
    let run = sale.start(&["--shared"]);
    until("the worker joins the run", || worker.stdout().contains("sale@1: joined the run"));
    until("some messages are sent", || gateway.phones().len() > 40);
    drop(run.kill());
    (sale, worker)
}

#[test]
fn worker_skips_numbers_added_to_a_suppression_file() {
    let gateway = Gateway::accepting();
    let (sale, worker) = leave_run_to_worker(&gateway);
    let numbers: String = (150..202).map(|row| format!("{}\n", phone(row))).collect();
    sale.write("stop.csv", &format!("phone\n{numbers}"));
    until("no shards are left", || worker.stdout().contains("no shards are left"));
    assert!(check_no_duplicates(&gateway).into_iter().all(|number| number < phone(150)));
    let status = sale.campaign(&["status", "sale", "--json"]).json();
    assert_eq!(status["counts"]["skipped"], 52, "{status}");
    assert!(sent_count(&stop_worker(worker)) > 0);
}

#[test]
fn worker_leaves_a_run_if_a_suppression_file_disappears() {
    let gateway = Gateway::accepting();
    let (sale, worker) = leave_run_to_worker(&gateway);
    fs::remove_file(sale.path("stop.csv")).expect("a file");
    let file = sale.path("stop.csv").display().to_string();
    let stop = format!("stopped: cannot use the suppression list `{file}`");
    until("the worker leaves the run", || worker.stdout().contains(&stop));
    drop(stop_worker(worker));
    assert!(gateway.phones().len() < 200);
    // The run is not stopped for other processes.
    let status = sale.campaign(&["status", "sale", "--json"]).json();
    assert_eq!(status["state"], "interrupted", "{status}");
    sale.write("stop.csv", "phone\n");
    let resumed = sale.run(&[]);
    assert!(matches!(resumed.code(), Some(0 | 4)), "{}", resumed.details());
    check_no_duplicates(&gateway);
}

#[test]
fn worker_without_a_suppression_file_sends_nothing() {
    let gateway = Gateway::answering([Answer::Held]);
    let sale = small_shard_campaign(60).one_at_a_time().recipients("suppress: [stop.csv]").through(&gateway).write();
    sale.write("stop.csv", "phone\n");
    // The profile of one worker names a file that does not exist.
    let profile = fs::read_to_string(sale.path("gateways.yaml")).expect("a profile");
    sale.write_secret("other.yaml", &format!("{profile}  policy: {{ suppress: [house.csv] }}\n"));
    let run = sale.start(&["--shared"]);
    until("the first message is on its way", || gateway.sends().len() == 1);
    let other = Process::start(sale.command(&["worker", "--gateways", "other.yaml"]));
    until("a worker lacks the file of its profile", || other.stdout().contains("house.csv"));
    fs::remove_file(sale.path("stop.csv")).expect("a file");
    let worker = start_worker(&sale);
    let file = sale.path("stop.csv").display().to_string();
    until("a worker lacks the file of the campaign", || worker.stdout().contains(&file));
    sale.write("stop.csv", "phone\n");
    gateway.release();
    run.finish().exits(0);
    assert_eq!(sent_count(&stop_worker(worker)) + sent_count(&stop_worker(other)), 0);
    check_one_message_each(&gateway, 60);
}
