//! Edge cases that could send a duplicate message or lose track of a message in doubt.

use super::waiting::{reconcile_repeatedly, sale_never_executed};
use super::{SECOND_ENVELOPE, sale_in_doubt, states, ten_recipients};
use crate::support::{
    Answer, Folder, Gateway, Process, Results, campaign, change_ledger, in_files, note_on_failure, phone, rejected,
    until,
};

/// Adds one recipient to the list.
fn add_recipient(sale: &Folder) {
    let list = std::fs::read_to_string(sale.path("sale.csv")).expect("the list");
    sale.write("sale.csv", &format!("{list}{},Person 12\n", phone(12)));
}

fn expected_phones(rows: std::ops::Range<usize>) -> Vec<u64> {
    rows.map(phone).collect()
}

/// The numbers that got messages, sorted.
fn sorted_phones(gateway: &Gateway) -> Vec<u64> {
    let mut phones = gateway.phones();
    phones.sort_unstable();
    phones
}

#[test]
fn run_on_another_day_skips_recipients_of_the_previous_day() {
    let gateway = Gateway::accepting();
    let edition = "edition: \"{{ today }}\"";
    // Kiritimati is always at least one day ahead of Pago Pago.
    let sale = campaign().to(10).top(edition).top("timezone: Pacific/Kiritimati").through(&gateway).write();
    sale.run(&["--limit", "5"]).exits(0);
    sale.replace("sale.yaml", "Pacific/Kiritimati", "Pacific/Pago_Pago");
    sale.run(&[]).exits(2).says("`timezone`");
    sale.run(&["--accept-changes"]).exits(0);
    assert_eq!(sorted_phones(&gateway), expected_phones(2..12));
    sale.run(&[]).exits(0).says("10 accepted");
}

#[test]
fn new_edition_skips_recipients_of_the_run_it_replaces() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).top("edition: spring").through(&gateway).write();
    sale.run(&["--limit", "5"]).exits(0);
    sale.replace("sale.yaml", "edition: spring", "edition: summer");
    sale.run(&["--accept-changes"]).exits(0);
    assert_eq!(sorted_phones(&gateway), expected_phones(2..12));
}

#[test]
fn message_in_doubt_rejected_on_resend_stays_in_doubt() {
    let refuse = || Answer::items(|operation| rejected(operation, "Duplicate id"));
    let script = [Answer::Accept, Answer::CloseRead, Answer::Accept, Answer::Accept].into_iter();
    let gateway = Gateway::answering(script.chain(std::iter::repeat_with(refuse).take(9)));
    let sale = ten_recipients(&gateway).write();
    sale.run(&[]).exits(4);
    let again = ["resolve", "sale", "--all", "--as", "send-again", "--i-accept-duplicates", "4"];
    sale.campaign(&again).exits(5);
    sale.run(&["--keep-going"]).exits(4);
    assert_eq!(states(&sale), "addddaaaaa");
    assert!(sale.results().rows[1]["reason"].contains("Duplicate id"), "{:?}", sale.results().rows[1]);
    sale.campaign(&["retry", "sale"]).exits(4).says("no rows to retry");
    sale.run(&[]).exits(4).says("campaign reconcile sale@1");
    assert_eq!(gateway.phones().len(), 14, "ten messages, and four resent");
}

#[test]
fn resend_if_not_found_does_not_apply_after_a_list_change() {
    let (gateway, sale) = sale_never_executed(|draft| draft.delivery("on_in_doubt: resend_if_not_found"));
    assert_eq!(reconcile_repeatedly(&sale, 3, 61), 4);
    add_recipient(&sale);
    sale.run(&[]).exits(0).says("4 rows in sale@1 are still in doubt: campaign reconcile sale@1");
    assert_eq!(gateway.phones()[10..], [phone(12)]);
    sale.run(&["--accept-changes"]).exits(4);
    assert_eq!(gateway.phones().len(), 11);
}

#[test]
fn run_without_frozen_copies_can_be_replaced_without_resending() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&["--limit", "5"]).exits(0);
    std::fs::remove_file(sale.path("state/runs/sale@1/frozen.json")).expect("the copy");
    sale.run(&[]).exits(2).says("missing or damaged").says("--accept-changes");
    sale.run(&["--accept-changes"]).exits(0);
    assert_eq!(sorted_phones(&gateway), expected_phones(2..12));
}

#[test]
fn missing_frozen_copy_of_a_finished_run_blocks_no_new_run() {
    let _files = in_files();
    let (gateway, sale) = sale_in_doubt();
    std::fs::remove_file(sale.path("state/runs/sale@1/frozen.json")).expect("the copy");
    add_recipient(&sale);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones()[10..], [phone(12)]);
    // The decision is recorded, but the results of the first run, `sale@1.csv`, cannot be written without the copies.
    let resolved = sale.campaign(&["resolve", "sale@1", "--all", "--as", "sent"]).exits(74);
    resolved.says("resolved 4 rows as sent").says("results were not updated");
}

#[test]
fn stop_request_takes_effect_while_an_envelope_waits() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).delivery("rate: 1/min").through(&gateway).write();
    let run = sale.start(&[]);
    until("the run is being sent", || sale.campaign(&["status", "sale"]).code() == Some(6));
    sale.campaign(&["stop", "sale@1"]).exits(0);
    run.finish().exits(5).says("asked to stop");
    assert!(gateway.requests().is_empty());
}

#[test]
fn clock_set_back_does_not_shorten_the_wait_after_a_resend() {
    let (gateway, sale) = sale_never_executed(|draft| draft.delivery("on_in_doubt: resend_if_not_found"));
    assert_eq!(reconcile_repeatedly(&sale, 3, 61), 4);
    let hour = 3_600_000_000_i64;
    change_ledger(
        &sale,
        &format!(
            "UPDATE questions SET first_at = first_at + {hour}, last_at = last_at + {hour},
             negative_at = negative_at + {hour}"
        ),
    );
    drop(gateway);
    let denied = |_: &serde_json::Value| serde_json::json!({ "success": false, "error": "no such message" });
    let silent = Gateway::answering([Answer::CloseRead, Answer::CloseRead]).with_statuses(denied);
    ten_recipients(&silent).delivery("on_in_doubt: resend_if_not_found").rewrite(&sale);
    sale.run(&[]).exits(4);
    let sent = silent.phones().len();
    for _ in 0..2 {
        sale.run(&[]).exits(4);
    }
    assert_eq!(silent.phones().len(), sent, "denials of the second attempt do not count yet");
}

#[test]
fn reconciliation_respects_the_batch_limit_of_the_gateway() {
    for limit in [1, 2, 3, 5] {
        let _case = note_on_failure(format!("case: {limit}"));
        let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
        let sale = campaign().to(10).one_at_a_time().through(&gateway).profile(&format!("batch_limit: {limit}"));
        let sale = sale.batches_of(limit).write();
        sale.run(&[]).exits(4);
        let sizes: Vec<usize> = gateway.requests().iter().map(|request| request.operations().len()).collect();
        assert!(sizes.iter().all(|size| *size <= limit), "{sizes:?}");
        assert!(sizes.len() > 10 / limit, "the run also sent inquiries: {sizes:?}");
    }
}

#[test]
fn retry_of_an_older_run_skips_recipients_of_a_later_run() {
    let refuse = |operation: &serde_json::Value| rejected(operation, "No route");
    let gateway = Gateway::answering([Answer::Accept, Answer::items(refuse)]);
    let sale = campaign().to(3).batches_of(1).one_at_a_time().through(&gateway).write();
    sale.run(&["--keep-going"]).exits(3);
    sale.run(&["--again", "3"]).exits(0);
    sale.campaign(&["retry", "sale@1"]).exits(3).says("in another run");
    assert_eq!(gateway.phones().len(), 6);
}

#[test]
fn signal_interrupts_reconciliation_and_rows_stay_in_doubt() {
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
    let sale = ten_recipients(&gateway).delivery("on_in_doubt: assume_sent").write();
    let mut run = Process::start(sale.command(&["run", "sale.yaml"]));
    until("the run reconciles", || run.stderr().contains("asking the gateway about 4 rows"));
    run.signal("INT");
    run.finish().exits(130);
    assert_eq!(states(&sale), "addddaaaaa");
    sale.run(&[]).exits(0);
    assert_eq!(states(&sale), "assssaaaaa");
    assert_eq!(gateway.phones().len(), 10);
}

#[test]
fn decision_about_an_older_run_keeps_newer_results() {
    let (_gateway, sale) = sale_in_doubt();
    add_recipient(&sale);
    sale.run(&[]).exits(0);
    let newest = std::fs::read_to_string(sale.results_file()).expect("the results");
    let resolved = sale.campaign(&["resolve", "sale", "--all", "--as", "sent"]).exits(0);
    resolved.says("sale@1: resolved 4 rows");
    assert_eq!(std::fs::read_to_string(sale.results_file()).expect("the results"), newest);
    let older_results = sale.results_file().with_file_name("sale@1.csv");
    let count_decided =
        || Results::read(&older_results).states().iter().filter(|state| **state == "assumed_sent").count();
    assert_eq!(count_decided(), 4, "the older results are updated");
    sale.campaign(&["results", "sale@1"]).exits(0).says("sale@1.csv");
    assert_eq!(count_decided(), 4);
}

#[test]
fn newer_run_does_not_hide_doubt_in_an_older_run() {
    let (gateway, sale) = sale_in_doubt();
    sale.run(&[]).exits(4).says("4 rows in sale@1 are still in doubt").says("next: campaign reconcile sale@1");
    add_recipient(&sale);
    sale.run(&[]).exits(0).says("4 rows in sale@1 are still in doubt: campaign reconcile sale@1");
    sale.campaign(&["reconcile", "sale"]).exits(4).says("sale@1: ");
    sale.campaign(&["resolve", "sale", "--rows", "3-6", "--as", "sent"]).exits(0);
    sale.campaign(&["resolve", "sale", "--all", "--as", "sent"]).exits(0).says("sale@2 has no messages in doubt");
    assert_eq!(gateway.phones().len(), 11);
    assert_eq!(SECOND_ENVELOPE.len(), 4);
}
