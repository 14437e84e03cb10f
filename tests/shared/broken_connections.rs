//! Database connections that break at any message of a command, before or after the server processes it.

use crate::support::{Answer, Cluster, Cut, CuttingProxy, Folder, Gateway, campaign, phone, rejected};

/// The step after `step` in the tests that sample the steps. The ignored test cuts at every step.
fn next_sampled_step(step: usize) -> usize {
    step + 1 + step / 4
}

/// Repeats a story with the connections cut at a later message each time, until the command has no more messages. Each
/// call of `story` gets a new database and plans the cut at the right moment.
fn cut_at_each_message(cut: Cut, next_step: impl Fn(usize) -> usize, story: impl Fn(&str, &dyn Fn())) {
    let Some(cluster) = Cluster::shared() else { return };
    let proxy = CuttingProxy::in_front_of(cluster);
    let mut step = 1;
    loop {
        let database = cluster.create_database();
        story(&proxy.address(&database), &|| proxy.cut_at(step, cut));
        cluster.drop_database(&database);
        if proxy.cancel_cut() {
            assert!(step > 10, "{cut:?}: the command has fewer than {step} messages");
            return;
        }
        step = next_step(step);
    }
}

fn check_run(ledger: &str, plan_cut: &dyn Fn()) {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).batches_of(1).through(&gateway).write().with_database(ledger);
    plan_cut();
    sale.run(&[]).exits(0);
    assert_eq!(sorted_phones(&gateway), [phone(2), phone(3), phone(4)]);
    assert_eq!(sale.results().counts()["accepted"], 3);
}

/// The phone numbers of all messages, sorted.
fn sorted_phones(gateway: &Gateway) -> Vec<u64> {
    let mut phones = gateway.phones();
    phones.sort_unstable();
    phones
}

/// A campaign with one unsent row.
fn partly_sent_campaign(gateway: &Gateway, ledger: &str) -> Folder {
    let sale = campaign().to(3).batches_of(1).one_at_a_time().through(gateway).write().with_database(ledger);
    sale.run(&["--limit", "2"]).exits(0);
    sale
}

fn check_resumed_run(ledger: &str, plan_cut: &dyn Fn()) {
    let gateway = Gateway::accepting();
    let sale = partly_sent_campaign(&gateway, ledger);
    plan_cut();
    sale.run(&[]).exits(0);
    assert_eq!(sorted_phones(&gateway), [phone(2), phone(3), phone(4)]);
}

fn check_other_commands(ledger: &str, plan_cut: &dyn Fn()) {
    let gateway = Gateway::accepting();
    let sale = partly_sent_campaign(&gateway, ledger);
    let text =
        std::fs::read_to_string(sale.path("sale.yaml")).expect("a campaign").replace("name: sale", "name: monthly");
    sale.write("monthly.yaml", &format!("{text}\ntimezone: UTC\nschedule: {{ every: 1st 10:00 }}\n"));
    plan_cut();
    sale.campaign(&["status", "sale"]).exits(5);
    sale.campaign(&["schedule", "add", "monthly.yaml"]).exits(0);
    sale.campaign(&["schedule", "list"]).exits(0);
    sale.campaign(&["suppress", "add", "+380501999999"]).exits(0);
    assert_eq!(gateway.phones().len(), 2);
}

fn check_retry(ledger: &str, plan_cut: &dyn Fn()) {
    let gateway = Gateway::answering([Answer::items(|operation| rejected(operation, "No route"))]);
    let sale = campaign().to(1).through(&gateway).write().with_database(ledger);
    sale.run(&[]);
    plan_cut();
    sale.campaign(&["retry", "sale", "--yes"]).exits(0);
    assert_eq!(gateway.phones(), [phone(2); 2]);
}

#[test]
fn run_reconnects_when_its_connection_breaks_at_any_point() {
    cut_at_each_message(Cut::Message, next_sampled_step, check_run);
    cut_at_each_message(Cut::Answer, next_sampled_step, check_run);
}

#[test]
fn resumed_run_reconnects_when_its_connection_breaks() {
    cut_at_each_message(Cut::Answer, next_sampled_step, check_resumed_run);
}

#[test]
fn retry_reconnects_when_its_connection_breaks() {
    cut_at_each_message(Cut::Answer, next_sampled_step, check_retry);
}

#[test]
fn other_commands_reconnect_when_their_connection_breaks() {
    cut_at_each_message(Cut::Message, next_sampled_step, check_other_commands);
}

/// A test for each command, so that they run at the same time.
mod at_every_message {
    use super::*;

    fn cut_at_every_message(story: impl Fn(&str, &dyn Fn())) {
        cut_at_each_message(Cut::Message, |step| step + 1, &story);
        cut_at_each_message(Cut::Answer, |step| step + 1, &story);
    }

    #[test]
    #[ignore = "takes some minutes"]
    fn run_reconnects_after_a_cut_at_any_message() {
        cut_at_every_message(check_run);
    }

    #[test]
    #[ignore = "takes some minutes"]
    fn resumed_run_reconnects_after_a_cut_at_any_message() {
        cut_at_every_message(check_resumed_run);
    }

    #[test]
    #[ignore = "takes some minutes"]
    fn retry_reconnects_after_a_cut_at_any_message() {
        cut_at_every_message(check_retry);
    }

    #[test]
    #[ignore = "takes some minutes"]
    fn other_commands_reconnect_after_a_cut_at_any_message() {
        cut_at_every_message(check_other_commands);
    }
}
