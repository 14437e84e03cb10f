//! Consistency of figures across `status`, the summary, the report, the dashboard and the workbook. The expected
//! figures come from the results CSV alone, computed by code that shares nothing with the product.

mod from_csv;
mod surfaces;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::receipts::{Hooked, operations};
use crate::support::{Answer, Browser, Clock, Gateway, Process, accepted, campaign, in_files, phone, rejected, until};
use from_csv::Figures;
use surfaces::{assert_lines, assert_surfaces};

const VIBER_THEN_SMS: &str = "  - viber: { signature: OlenaCo, message: \"{{ offer }}\" }\n  - sms: { signature: OlenaCo, message: \"{{ offer }}\" }";
const HOUR: i64 = 3_600;
const YEAR: i64 = 365 * 24 * HOUR;
/// Channel, status, and seconds from sending to the reported time.
type Receipt = (&'static str, &'static str, Option<i64>);

/// Receipts of the messages from the seventh on.
const RECEIPTS: [&[Receipt]; 14] = [
    &[("viber", "DELIVERED", Some(60)), ("viber", "READ", Some(HOUR))],
    &[("viber", "READ", Some(2 * HOUR))],
    &[("viber", "EXPIRED", Some(HOUR)), ("sms", "DELIVERED", Some(HOUR + 5))],
    &[("sms", "DELIVERED", Some(HOUR + 5)), ("viber", "READ", Some(3 * HOUR))],
    &[("sms", "PARTIALLY DELIVERED", Some(9))],
    &[("sms", "PARTIALLY DELIVERED", Some(9)), ("sms", "DELIVERED", Some(10))],
    &[("sms", "DELIVERED", Some(YEAR))],
    &[("viber", "DELIVERED", Some(-HOUR))],
    &[("sms", "UNDELIVERABLE", Some(4))],
    &[("viber", "EXPIRED", Some(4))],
    &[("", "DELIVERED", Some(7))],
    &[("viber", "DELIVERED", None)],
    &[("viber", "REPLIED", Some(90))],
    &[],
];

/// Sends the receipts of an operation that was sent at `sent`.
fn send_receipts(hooked: &Hooked, operation: &Value, sent: Timestamp, receipts: &[Receipt]) {
    for (channel, status, after) in receipts {
        let mut receipt = json!({ "success": true, "status": status });
        if !channel.is_empty() {
            receipt["type"] = (*channel).into();
        }
        if let Some(after) = after {
            receipt["updated"] = (sent + SignedDuration::from_secs(*after)).to_string().into();
        }
        assert_eq!(hooked.post(operation, &receipt.to_string()), 200);
    }
}

/// Builds a list of twenty-five recipients, with a duplicate row and a row without a valid number.
fn list() -> String {
    let people: String = (2..27).map(|row| format!("{},Person {row}\n", phone(row))).collect();
    format!("phone,name\n{people}{},Again\nnobody,Nobody\n", phone(2))
}

/// Computes the figures from the current results of a run.
fn compute_figures(hooked: &Hooked) -> Figures {
    let csv = hooked.sale.campaign(&["results", "sale", "--out", "-"]).stdout;
    Figures::from_csv(&csv)
}

#[test]
fn figures_match_the_results_on_every_surface() {
    let _files = in_files();
    let refuse_one = || {
        Answer::items(|operation| match operation["phone"].as_u64() == Some(phone(7)) {
            true => rejected(operation, "No route"),
            false => accepted(operation),
        })
    };
    let script =
        [refuse_one(), Answer::CloseRead, refuse_one(), refuse_one(), refuse_one(), refuse_one(), Answer::Held];
    let gateway = Gateway::answering(script).with_statuses(|operation| rejected(operation, "unknown id"));
    let draft = campaign().with_list(&list()).recipients("max_invalid: 100%").channels(VIBER_THEN_SMS).top(
        "variants: { plain: { share: 50%, vars: { offer: now } }, urgent: { share: 50%, vars: { offer: today } } }",
    );
    let hooked = Hooked::write(draft.through(&gateway).batches_of(4).one_at_a_time());
    let server = hooked.serve();
    let browser = Browser::signed_in(&server);
    // The run was 30 hours ago, so the late receipts are in the past and old doubts are no longer reconciled.
    let (clock, started_at) = (Clock::new(), Timestamp::now() - SignedDuration::from_hours(30));
    let run = ["run", "sale.yaml", "--no-wait", "--keep-going", "--limit", "20"];
    let sent = Process::start(hooked.sale.command_after(&clock.set_to(started_at), &run)).finish().exits(4);
    assert_lines(&sent.stdout, &compute_figures(&hooked));
    let mut compared_states: BTreeSet<String> = BTreeSet::new();
    let mut compare = |hooked: &Hooked| {
        let figures = compute_figures(hooked);
        assert_surfaces(&hooked.sale, &browser, &figures);
        compared_states.extend(figures.states.keys().cloned());
        figures
    };
    compare(&hooked);
    hooked.sale.campaign(&["resolve", "sale", "--rows", "3", "--as", "sent"]);
    hooked.sale.campaign(&["resolve", "sale", "--rows", "4", "--as", "not-sent", "--i-accept-duplicates", "1"]);
    hooked.sale.campaign(&["reconcile", "sale"]);

    let (operations, results) = (operations(&gateway), hooked.results());
    let sent_at = |row: usize| results.rows[row]["submitted_at"].parse::<Timestamp>().expect("a time");
    send_receipts(&hooked, &operations[0], sent_at(0), &[("viber", "DELIVERED", Some(600))]);
    for (index, receipts) in (6..).zip(RECEIPTS) {
        send_receipts(&hooked, &operations[index], sent_at(index), receipts);
    }
    let figures = compare(&hooked);
    assert_eq!((figures.delivered(), figures.read(), figures.in_part()), (12, 4, 1), "{figures:?}");
    assert_eq!((figures.channels["viber"].read, figures.channels["sms"].read), (4, 0), "{figures:?}");
    assert_eq!(figures.channels.values().map(|channel| channel.uncertain).sum::<u64>(), 2, "{figures:?}");

    // Compare while the rest is being sent, and again after the process was killed.
    let sending = hooked.sale.start(&["--keep-going"]);
    until("a request arrives", || gateway.sends().len() == 7);
    compare(&hooked);
    sending.kill();
    compare(&hooked);
    let ended = hooked.sale.run(&["--keep-going"]);
    let figures = compare(&hooked);
    assert_lines(&ended.stdout, &figures);
    drop(server);
    let states = [
        "accepted",
        "assumed_sent",
        "delivered",
        "failed",
        "in_doubt",
        "invalid",
        "not_sent",
        "planned",
        "read",
        "rejected",
        "sending",
        "skipped",
        "unresolved",
    ];
    assert_eq!(compared_states, states.map(str::to_owned).into(), "every state but `queued` was compared");
}

#[test]
fn figures_of_queued_messages_match_the_results() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(
        campaign().to(6).channels(VIBER_THEN_SMS).top("vars: { offer: now }").through(&gateway).asynchronous(),
    );
    let server = hooked.serve();
    let (clock, started_at) = (Clock::new(), Timestamp::now() - SignedDuration::from_hours(5));
    let run = hooked.sale.command_after(&clock.set_to(started_at), &["run", "sale.yaml", "--no-wait"]);
    Process::start(run).finish().exits(0);
    for (index, operation) in operations(&gateway).iter().enumerate().take(3) {
        send_receipts(&hooked, operation, started_at, RECEIPTS[index + 1]);
    }
    let figures = compute_figures(&hooked);
    assert_eq!((figures.states["queued"], figures.delivered()), (3, 3), "{figures:?}");
    assert_surfaces(&hooked.sale, &Browser::signed_in(&server), &figures);
}
