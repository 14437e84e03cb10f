//! A stop is the run's: whoever it comes from, all that send it begin nothing more.

use super::{ended, everybody_once, in_small_shares, worker};
use crate::support::{Answer, Gateway, Process, campaign, rejected, until};

#[test]
fn stop_stops_all_senders_of_a_run_and_it_resumes_later() {
    let gateway = Gateway::accepting();
    let sale = in_small_shares(200).through(&gateway).write();
    let worker = worker(&sale);
    let run = sale.start(&["--shared"]);
    until("the worker sends it", || worker.stdout().contains("sale@1: joined the run"));
    until("something went out", || gateway.phones().len() > 40);
    sale.campaign(&["stop", "sale"]).exits(0);
    run.finish().exits(5).says("asked to stop");
    until("the worker stops", || worker.stdout().contains("stopped: asked to stop"));
    let sent = gateway.phones().len();
    assert!(sent < 200);
    drop(ended(worker));
    assert_eq!(gateway.phones().len(), sent);
    sale.run(&[]).exits(0);
    everybody_once(&gateway, 200);
}

#[test]
fn interrupt_of_the_starter_stops_its_workers_too() {
    let gateway = Gateway::accepting();
    let sale = in_small_shares(200).through(&gateway).write();
    let worker = worker(&sale);
    let mut run = sale.start(&["--shared"]);
    until("the worker sends it", || worker.stdout().contains("sale@1: joined the run"));
    until("something went out", || gateway.phones().len() > 40);
    run.signal("INT");
    run.finish().exits(130);
    let sent = gateway.phones().len();
    until("the worker stops", || worker.stdout().contains("stopped: interrupted"));
    drop(ended(worker));
    assert_eq!(gateway.phones().len(), sent, "what was in flight was waited for");
    sale.run(&[]).exits(0);
    everybody_once(&gateway, 200);
}

#[test]
fn three_doubtful_requests_in_a_row_stop_all_senders() {
    // The first is taken; then nothing is known of any.
    let gateway = Gateway::answering_then([Answer::Accept, Answer::Accept], Answer::CloseRead);
    let sale = in_small_shares(200).one_at_a_time().through(&gateway).write();
    let worker = worker(&sale);
    let told = sale.run(&["--shared"]).exits(5);
    assert!(told.told().contains("requests in a row are in doubt"), "{}", told.told());
    // The third is seen while another may be on its way.
    let doubtful = gateway.sends().len() - 2;
    assert!((3..=4).contains(&doubtful), "{doubtful}");
    drop(ended(worker));
}

#[test]
fn rejected_first_messages_stop_a_run_before_any_worker_sends() {
    let gateway = Gateway::always(Answer::items(|operation| rejected(operation, "No route")));
    let sale = in_small_shares(200).through(&gateway).write();
    let worker = worker(&sale);
    sale.run(&["--shared"]).exits(5).says("messages in a row were rejected");
    assert_eq!(gateway.phones().len(), 4, "as by one process alone");
    drop(ended(worker));
}

#[test]
fn worker_with_another_key_leaves_a_run_to_others() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).write();
    let mut command = sale.command(&["worker"]);
    command.env_remove(crate::support::KEY_VARIABLE);
    let worker = Process::start(command);
    until("the worker looks for runs", || worker.stdout().contains("sends shards of runs"));
    in_small_shares(100).through(&gateway).rewrite(&sale);
    let run = sale.start(&["--shared"]);
    until("the worker is told of the run", || worker.stdout().contains("sale@1: "));
    run.finish().exits(0);
    let told = ended(worker);
    assert!(told.contains("key"), "{told}");
    everybody_once(&gateway, 100);
}
