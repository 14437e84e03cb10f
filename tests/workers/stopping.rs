//! Stopping a shared run: a stop command, a signal or a failure stops all its senders.

use super::{check_one_message_each, small_shard_campaign, start_worker, stop_worker};
use crate::support::{Answer, Gateway, Process, campaign, rejected, until};

#[test]
fn stop_command_stops_all_senders_and_the_run_can_resume() {
    let gateway = Gateway::accepting();
    let sale = small_shard_campaign(200).through(&gateway).write();
    let worker = start_worker(&sale);
    let run = sale.start(&["--shared"]);
    until("the worker joins the run", || worker.stdout().contains("sale@1: joined the run"));
    until("some messages are sent", || gateway.phones().len() > 40);
    sale.campaign(&["stop", "sale"]).exits(0);
    run.finish().exits(5).says("asked to stop");
    until("the worker stops", || worker.stdout().contains("stopped: asked to stop"));
    let sent = gateway.phones().len();
    assert!(sent < 200);
    drop(stop_worker(worker));
    assert_eq!(gateway.phones().len(), sent);
    sale.run(&[]).exits(0);
    check_one_message_each(&gateway, 200);
}

#[test]
fn interrupting_the_starter_stops_its_workers_too() {
    let gateway = Gateway::accepting();
    let sale = small_shard_campaign(200).through(&gateway).write();
    let worker = start_worker(&sale);
    let mut run = sale.start(&["--shared"]);
    until("the worker joins the run", || worker.stdout().contains("sale@1: joined the run"));
    until("some messages are sent", || gateway.phones().len() > 40);
    run.signal("INT");
    run.finish().exits(130);
    let sent = gateway.phones().len();
    until("the worker stops", || worker.stdout().contains("stopped: interrupted"));
    drop(stop_worker(worker));
    assert_eq!(gateway.phones().len(), sent, "messages sent after the stop");
    sale.run(&[]).exits(0);
    check_one_message_each(&gateway, 200);
}

#[test]
fn three_requests_in_doubt_in_a_row_stop_all_senders() {
    // The warm-up requests are accepted; all later ones end in doubt.
    let gateway = Gateway::answering_then([Answer::Accept, Answer::Accept], Answer::CloseRead);
    let sale = small_shard_campaign(200).one_at_a_time().through(&gateway).write();
    let worker = start_worker(&sale);
    let finished = sale.run(&["--shared"]).exits(5);
    assert!(finished.details().contains("requests in a row are in doubt"), "{}", finished.details());
    // Another request might already be on its way when the third one turns out to be in doubt.
    let doubtful = gateway.sends().len() - 2;
    assert!((3..=4).contains(&doubtful), "{doubtful}");
    drop(stop_worker(worker));
}

#[test]
fn rejected_warm_up_stops_a_run_before_any_worker_sends() {
    let gateway = Gateway::always(Answer::items(|operation| rejected(operation, "No route")));
    let sale = small_shard_campaign(200).through(&gateway).write();
    let worker = start_worker(&sale);
    sale.run(&["--shared"]).exits(5).says("messages in a row were rejected");
    assert_eq!(gateway.phones().len(), 4, "the warm-up of a single process");
    drop(stop_worker(worker));
}

#[test]
fn worker_without_the_key_leaves_a_run_to_others() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).write();
    let mut command = sale.command(&["worker"]);
    command.env_remove(crate::support::KEY_VARIABLE);
    let worker = Process::start(command);
    until("the worker looks for runs", || worker.stdout().contains("ready to send shards of runs"));
    small_shard_campaign(100).through(&gateway).rewrite(&sale);
    let run = sale.start(&["--shared"]);
    until("the worker finds the run", || worker.stdout().contains("sale@1: "));
    run.finish().exits(0);
    let output = stop_worker(worker);
    assert!(output.contains("key"), "{output}");
    check_one_message_each(&gateway, 100);
}
