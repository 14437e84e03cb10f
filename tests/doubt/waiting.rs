//! What only time proves: three denials over three waits, and the end of all asking.

use super::{Memory, SECOND, ids_of, result, states, ten_people};
use crate::support::{Answer, Draft, Folder, Gateway, change_ledger, phone, telling};

/// Lets so many seconds pass for everything that the ledger knows about envelopes and questions.
fn time_passes(sale: &Folder, seconds: i64) {
    let past = seconds * 1_000_000;
    // A record whose times are moved has no checksum any more, as one from before there were any.
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

/// A gateway that never executed the second envelope, and a finished run in which it is in doubt.
pub(super) fn never_executed(draft: impl Fn(Draft) -> Draft) -> (Gateway, Folder) {
    let gateway = Memory::default().gateway(Answer::CloseRead);
    let sale = draft(ten_people(&gateway)).write();
    sale.run(&[]).exits(4);
    (gateway, sale)
}

/// Asks `times` times, each after so many seconds; gives back how many rows were found missing at the last.
pub(super) fn asked(sale: &Folder, times: usize, seconds: i64) -> u64 {
    let mut not_found = 0;
    for _ in 0..times {
        time_passes(sale, seconds);
        let told = sale.campaign(&["reconcile", "sale", "--json"]).exits(4).json();
        assert!(told["asked"] != 0 && told["blind"] == false && told["unclear"] == 0, "{told}");
        not_found = told["not_found"].as_u64().expect("a count");
    }
    not_found
}

#[test]
fn three_denials_are_reported_and_send_nothing() {
    let (gateway, sale) = never_executed(|draft| draft);
    assert_eq!(asked(&sale, 2, 61), 0);
    assert_eq!(asked(&sale, 1, 30), 0, "a denial that comes too early does not count");
    assert_eq!(asked(&sale, 1, 31), 4);
    assert_eq!(states(&sale), "addddaaaaa");
    assert!(result(&sale, 3, "reason").contains("not found"), "{}", result(&sale, 3, "reason"));
    sale.run(&[]).exits(4);
    assert_eq!(gateway.phones().len(), 10);
}

#[test]
fn unknown_message_is_resent_only_if_the_campaign_allows_it() {
    let (gateway, sale) = never_executed(|draft| draft.delivery("on_in_doubt: resend_if_not_found"));
    let before: Vec<String> = SECOND.iter().map(|row| result(&sale, *row, "id")).collect();
    assert_eq!(asked(&sale, 2, 61), 0);
    sale.run(&[]).exits(4);
    assert_eq!(gateway.phones().len(), 10, "two denials are too few");
    assert_eq!(asked(&sale, 1, 61), 4);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones()[10..], SECOND.map(phone));
    for (row, before) in SECOND.into_iter().zip(before) {
        assert_eq!(ids_of(&gateway, row), [before.parse::<u64>().expect("an id"); 2], "the same message");
    }
    assert_eq!(states(&sale), "a".repeat(10));
    sale.run(&[]).exits(0);
}

#[test]
fn resent_row_in_doubt_waits_again() {
    let memory = Memory::default();
    let gateway = memory.gateway(Answer::CloseUnread);
    let sale = ten_people(&gateway).delivery("on_in_doubt: resend_if_not_found").write();
    sale.run(&[]).exits(4);
    assert_eq!(asked(&sale, 3, 61), 4);
    drop(gateway);
    let script = std::iter::once(Answer::CloseRead).chain(std::iter::repeat_with(|| memory.takes()).take(9));
    let tells = memory.clone();
    let silent = Gateway::answering(script).with_statuses(move |question| tells.tells(question));
    ten_people(&silent).delivery("on_in_doubt: resend_if_not_found").rewrite(&sale);
    sale.run(&[]).exits(4);
    assert_eq!(states(&sale), "adaaaaaaaa");
    for _ in 0..2 {
        assert_eq!(asked(&sale, 1, 61), 0, "what was asked about the attempt before does not count");
        sale.run(&[]).exits(4);
    }
    assert_eq!(silent.phones(), SECOND.map(phone));
}

/// What is sent, and how a campaign comes to send it.
type Case = (&'static str, fn(Draft) -> Draft);

#[test]
fn rule_never_resends_slow_or_harmful_messages() {
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
        let _case = telling(format!("case: {name}"));
        let gateway = Gateway::accepting();
        let sale = change(ten_people(&gateway)).delivery("on_in_doubt: resend_if_not_found").write();
        sale.run(&[]).exits(2).says("`resend_if_not_found` cannot be used");
        assert_eq!(gateway.requests().len(), 0, "{name}");
    }
}

#[test]
fn reconciliation_stops_after_a_day_and_a_person_decides() {
    let memory = Memory::default();
    let gateway = memory.gateway(Answer::CloseUnread);
    memory.hide(true);
    let sale = ten_people(&gateway).write();
    sale.run(&[]).exits(4);
    time_passes(&sale, 86_401);
    sale.campaign(&["reconcile", "sale"]).exits(4).says("4 unresolved");
    assert_eq!(states(&sale), "auuuuaaaaa");
    let questions = gateway.requests().len();
    sale.run(&[]).exits(4);
    assert_eq!(gateway.requests().len(), questions, "a run does not ask any more");
    sale.campaign(&["resolve", "sale", "--rows", "3-4", "--as", "sent"]).exits(4);
    memory.hide(false);
    sale.campaign(&["reconcile", "sale"]).exits(4);
    assert_eq!(states(&sale), "assuuaaaaa", "who asks anyway may still be told");
    assert_eq!(gateway.phones().len(), 6);
}
