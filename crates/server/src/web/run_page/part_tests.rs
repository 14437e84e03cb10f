//! Tests of the parts of a run's page: with any text from the gateway, they are valid HTML and their numbers add up.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::{RunPage, RunPagePart, RunPageView, render_run_part};
use crate::web::html::read_html::Html;
use crate::web::words::{PageLanguage, PageWords};
use campaign_core::domain::{Channel, OperationOutcome, Status};
use campaign_engine::report::{RunReport, RunStatus};
use campaign_testing::{RowCase, build_run, row_case};

fn sample_view(rows: &[RowCase], language: PageLanguage) -> RunPageView {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let report = runtime.block_on(async {
        let (ledger, run) = build_run(rows).await;
        RunReport::load_with_figures(&ledger, run).await.unwrap()
    });
    let (now, command) = (Timestamp::UNIX_EPOCH, |arguments: String| format!("campaign {arguments}"));
    RunPage { report: &report, title: None, now, time_left: None, zone: &TimeZone::UTC, command: &command, rows: None }
        .to_view(language)
}

/// The view of a run in which every external text, such as a skip reason or an error of the gateway, is `words`.
pub(in crate::web) fn sample_with_text(words: &str) -> RunPageView {
    let rejected_row = RowCase::Sent(OperationOutcome::Rejected { error: words.into() }, Vec::new());
    let failed = vec![(Some(Channel::Viber), Status::Other(words.into()), Some(words.into()))];
    let accepted = RowCase::Sent(OperationOutcome::Accepted { msg_id: None, parts: Some(1), answer: None }, failed);
    sample_view(
        &[RowCase::Skipped(words.into()), RowCase::Planned, RowCase::Unanswered, rejected_row, accepted],
        PageLanguage::English,
    )
}

/// Lists the elements of all parts with the names of their attributes, and returns the visible text too.
fn read_parts(view: &RunPageView, language: PageLanguage) -> (BTreeSet<(String, Vec<String>)>, String) {
    let (mut shapes, mut text) = (BTreeSet::new(), String::new());
    for part in RunPagePart::ALL {
        let html = render_run_part(language, view, part).unwrap();
        assert!(html.trim_start().contains(&format!("id=\"run-{}\"", part.name())), "{html}");
        let html = Html::read(&format!("<!doctype html>{html}"));
        let first = html.elements.first().expect("an element");
        assert_eq!(first.attribute("id"), format!("run-{}", part.name()), "a part is one element");
        text += &first.words();
        shapes
            .extend(html.elements.into_iter().map(|element| (element.name, element.attributes.into_keys().collect())));
    }
    (shapes, text)
}

/// The element shapes of a run's parts.
fn element_shapes(rows: &[RowCase]) -> BTreeSet<(String, Vec<String>)> {
    read_parts(&sample_view(rows, PageLanguage::English), PageLanguage::English).0
}

/// A run with content in each part of its page, and a run without messages.
fn ordinary_runs() -> [Vec<RowCase>; 2] {
    let accepted =
        |receipts| RowCase::Sent(OperationOutcome::Accepted { msg_id: None, parts: Some(1), answer: None }, receipts);
    let rejected_row = |error: &str| RowCase::Sent(OperationOutcome::Rejected { error: error.into() }, Vec::new());
    let fallback = |status| {
        accepted(vec![(Some(Channel::Viber), Status::Expired, None), (Some(Channel::Sms), status, Some("no".into()))])
    };
    let mut all = vec![
        RowCase::Skipped("x".into()),
        RowCase::Skipped("filtered".into()),
        RowCase::Planned,
        rejected_row("no"),
        rejected_row(""),
    ];
    all.extend((0..24).map(|_| RowCase::Unanswered));
    all.extend(Status::KNOWN_STATUSES.map(fallback));
    all.extend([Some(Channel::Viber), None].map(|channel| accepted(vec![(channel, Status::Delivered, None)])));
    [all, vec![RowCase::Skipped("filtered".into())]]
}

const HOSTILE: &str = "(<script>alert\\(1\\)</script>|<img src=x onerror=y>|\" onclick=\"z|' style='|</svg>|</table>|<!--|&lt;|\\{\\{ x \\}\\}|\u{0}|\u{202e}| |a)*";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn untrusted_text_is_escaped_and_funnel_numbers_add_up(
        rows in proptest::collection::vec(row_case(HOSTILE), 1..20),
    ) {
        let known: BTreeSet<_> = ordinary_runs().iter().flat_map(|rows| element_shapes(rows)).collect();
        for language in PageLanguage::ALL {
            let view = sample_view(&rows, language);
            let (shapes, text) = read_parts(&view, language);
            let foreign: Vec<_> = shapes.difference(&known).collect();
            prop_assert!(foreign.is_empty(), "{:?}", foreign);
            for missing in ["run.", "state.", "status.", "NaN", "inf%"] {
                prop_assert!(!text.replace(|c: char| !c.is_ascii(), "").contains(&format!(" {missing}")), "{}", text);
            }
            let first_bar = view.funnel.iter().find(|bar| bar.depth == 0);
            prop_assert_eq!(first_bar.map(|bar| bar.value), Some(rows.len() as u64));
            // Down to the delivered messages, each row of the funnel equals the sum of its sub-rows and the next row.
            let mut rows = view.funnel.iter().peekable();
            while let Some(row) = rows.next() {
                let mut sub_rows = 0;
                while let Some(part) = rows.next_if(|next| next.depth == 1) {
                    sub_rows += part.value;
                }
                let Some(next) = rows.peek() else { break };
                if row.class == "whole" {
                    prop_assert_eq!(row.value, sub_rows + next.value, "{:?}", view.funnel);
                }
            }
        }
    }
}

#[test]
fn remaining_time_is_unknown_while_a_run_sends_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let accepted = || RowCase::Sent(OperationOutcome::Accepted { msg_id: None, parts: Some(1), answer: None }, vec![]);
    let mut report = runtime.block_on(async {
        let (ledger, run) = build_run(&[accepted(), accepted(), RowCase::Planned]).await;
        RunReport::load_with_figures(&ledger, run).await.unwrap()
    });
    report.view.status = RunStatus::Sending;
    let sentence = |now: Timestamp| {
        let (time_left, zone) = (Some(Duration::from_secs(3)), &TimeZone::UTC);
        let command = |arguments: String| arguments;
        let page = RunPage { report: &report, title: None, now, time_left, zone, command: &command, rows: None };
        page.describe_progress(PageWords::in_language(PageLanguage::English))
    };
    let began = report.view.run.began_at;
    assert!(sentence(began).contains("about 3"), "{}", sentence(began));
    let tomorrow = sentence(began + Duration::from_secs(86_400));
    assert!(tomorrow.contains("2 of 3 messages processed") && !tomorrow.contains("about"), "{tomorrow}");
}

#[test]
fn remaining_time_is_a_duration_or_a_finish_time() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut report = runtime.block_on(async {
        let (ledger, run) =
            build_run(&[RowCase::Skipped("filtered".into()), RowCase::Planned, RowCase::Unanswered]).await;
        RunReport::load_with_figures(&ledger, run).await.unwrap()
    });
    report.view.status = RunStatus::Sending;
    let command = |arguments: String| arguments;
    let table = [
        (14, "1 of 2 messages processed, about 14 s left."),
        (61, "1 of 2 messages processed, about 1 min 5 s left."),
        (130, "1 of 2 messages processed, about 3 min left."),
        (3_600, "1 of 2 messages processed, expected to finish around 1 January 1970, 01:00."),
    ];
    for (seconds, expected) in table {
        let time_left = Some(Duration::from_secs(seconds));
        let (now, zone) = (Timestamp::UNIX_EPOCH, &TimeZone::UTC);
        let page = RunPage { report: &report, title: None, now, time_left, zone, command: &command, rows: None };
        let html = render_run_part(PageLanguage::English, &page.to_view(PageLanguage::English), RunPagePart::Sentence)
            .unwrap();
        let words = Html::read(&format!("<!doctype html>{html}")).elements[0].words().replace('\u{a0}', " ");
        assert!(words.contains(expected), "{expected}: {words}");
    }
}
