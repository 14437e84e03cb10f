//! Reconciliation over time: three "not found" answers, each after a wait, and the end of inquiries after a day.

use super::{Memory, SECOND_ENVELOPE, message_ids, result_cell, states, ten_recipients};
use crate::support::{Answer, Draft, Folder, Gateway, change_ledger, note_on_failure, phone};

/// Moves the recorded times of envelopes and inquiries this many seconds into the past.
fn backdate_records(sale: &Folder, seconds: i64) {
    let past = seconds * 1_000_000;
    // The changed records lose their checksums, so they are treated as records from before checksums existed.
    change_ledger(
        sale,
        &[
            format!(
                "UPDATE envelopes SET begun_at = begun_at - {past}, settled_at = settled_at - {past}, rows_sum = NULL,
                 outcomes_sum = NULL"
            ),
            format!(
                "UPDATE questions SET first_at = first_at - {past}, last_at = last_at - {past},
                 negative_at = negative_at - {past}"
            ),
        ]
        .join("; "),
    );
}

/// A gateway that never executed the second envelope, and a finished run in which that envelope is in doubt.
pub(super) fn sale_never_executed(draft: impl Fn(Draft) -> Draft) -> (Gateway, Folder) {
    let gateway = Memory::default().gateway(Answer::CloseRead);
    let sale = draft(ten_recipients(&gateway)).write();
    sale.run(&[]).exits(4);
    (gateway, sale)
}

/// Reconciles this many times, each after this many seconds, and returns the number of unknown messages in the last
/// answer.
pub(super) fn reconcile_repeatedly(sale: &Folder, times: usize, seconds: i64) -> u64 {
    let mut not_found = 0;
    for _ in 0..times {
        backdate_records(sale, seconds);
        let report = sale.campaign(&["reconcile", "sale", "--json"]).exits(4).json();
        assert!(report["asked"] != 0 && report["blind"] == false && report["unclear"] == 0, "{report}");
        not_found = report["not_found"].as_u64().expect("a count");
    }
    not_found
}

#[test]
fn three_not_found_replies_are_reported_without_a_resend() {
    let (gateway, sale) = sale_never_executed(|draft| draft);
    assert_eq!(reconcile_repeatedly(&sale, 2, 61), 0);
    assert_eq!(reconcile_repeatedly(&sale, 1, 30), 0, "an early denial does not count");
    assert_eq!(reconcile_repeatedly(&sale, 1, 31), 4);
    assert_eq!(states(&sale), "addddaaaaa");
    assert!(result_cell(&sale, 3, "reason").contains("not found"), "{}", result_cell(&sale, 3, "reason"));
    sale.run(&[]).exits(4);
    assert_eq!(gateway.phones().len(), 10);
}

#[test]
fn unknown_message_is_resent_only_if_the_campaign_allows_it() {
    let (gateway, sale) = sale_never_executed(|draft| draft.delivery("on_in_doubt: resend_if_not_found"));
    let before: Vec<String> = SECOND_ENVELOPE.iter().map(|row| result_cell(&sale, *row, "id")).collect();
    assert_eq!(reconcile_repeatedly(&sale, 2, 61), 0);
    sale.run(&[]).exits(4);
    assert_eq!(gateway.phones().len(), 10, "two denials are not enough");
    assert_eq!(reconcile_repeatedly(&sale, 1, 61), 4);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones()[10..], SECOND_ENVELOPE.map(phone));
    for (row, before) in SECOND_ENVELOPE.into_iter().zip(before) {
        assert_eq!(message_ids(&gateway, row), [before.parse::<u64>().expect("an id"); 2], "the same message");
    }
    assert_eq!(states(&sale), "a".repeat(10));
    sale.run(&[]).exits(0);
}

#[test]
fn resent_row_in_doubt_waits_before_another_resend() {
    let memory = Memory::default();
    let gateway = memory.gateway(Answer::CloseUnread);
    let sale = ten_recipients(&gateway).delivery("on_in_doubt: resend_if_not_found").write();
    sale.run(&[]).exits(4);
    assert_eq!(reconcile_repeatedly(&sale, 3, 61), 4);
    drop(gateway);
    let script = std::iter::once(Answer::CloseRead).chain(std::iter::repeat_with(|| memory.accept_all()).take(9));
    let responder = memory.clone();
    let silent = Gateway::answering(script).with_statuses(move |query| responder.answer_query(query));
    ten_recipients(&silent).delivery("on_in_doubt: resend_if_not_found").rewrite(&sale);
    sale.run(&[]).exits(4);
    assert_eq!(states(&sale), "adaaaaaaaa");
    for _ in 0..2 {
        assert_eq!(reconcile_repeatedly(&sale, 1, 61), 0, "inquiries about the previous attempt do not count");
        sale.run(&[]).exits(4);
    }
    assert_eq!(silent.phones(), SECOND_ENVELOPE.map(phone));
}

/// A channel, and a draft that sends through it.
type Case = (&'static str, fn(Draft) -> Draft);

#[test]
fn resend_if_not_found_is_refused_for_unsafe_campaigns() {
    const TELEGRAM: &str = "  - telegram: { message: \"4821\" }";
    const VOICE: &str = "  - voice: { message: Hello, gender: female, language: uk-UA, name: uk-UA-Standard-A }";
    let cases: [Case; 5] = [
        ("asynchronous", Draft::asynchronous),
        ("telegram", |draft| draft.channels(TELEGRAM)),
        ("voice", |draft| draft.channels(VOICE)),
        ("call/otp", |draft| draft.channels("  - call/otp: {}")),
        ("a stage of a pipeline", |draft| {
            draft.channels(&format!("{TELEGRAM}\n  - sms: {{ signature: OlenaCo, message: Hello }}"))
        }),
    ];
    for (name, change) in cases {
        let _case = note_on_failure(format!("case: {name}"));
        let gateway = Gateway::accepting();
        let sale = change(ten_recipients(&gateway)).delivery("on_in_doubt: resend_if_not_found").write();
        sale.run(&[]).exits(2).says("`resend_if_not_found` cannot be used");
        assert_eq!(gateway.requests().len(), 0, "{name}");
    }
}

#[test]
fn run_stops_reconciling_after_a_day_and_awaits_a_decision() {
    let memory = Memory::default();
    let gateway = memory.gateway(Answer::CloseUnread);
    memory.set_hidden(true);
    let sale = ten_recipients(&gateway).write();
    sale.run(&[]).exits(4);
    backdate_records(&sale, 86_401);
    sale.campaign(&["reconcile", "sale"]).exits(4).says("4 unresolved");
    assert_eq!(states(&sale), "auuuuaaaaa");
    let request_count = gateway.requests().len();
    sale.run(&[]).exits(4);
    assert_eq!(gateway.requests().len(), request_count, "the run no longer reconciles");
    sale.campaign(&["resolve", "sale", "--rows", "3-4", "--as", "sent"]).exits(4);
    memory.set_hidden(false);
    sale.campaign(&["reconcile", "sale"]).exits(4);
    assert_eq!(states(&sale), "assuuaaaaa", "`reconcile` can still find messages");
    assert_eq!(gateway.phones().len(), 6);
}
