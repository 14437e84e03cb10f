//! Whatever a gateway says, the parts of a run's page are sound, add up and hold nothing that no template wrote.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::{Part, RunPage, RunPageView, part};
use crate::domain::{Channel, Outcome, Status};
use crate::report::{Fate, RunStanding, RunStatus, fate, scene};
use crate::web::html::read_html::Html;
use crate::web::words::Language;

fn view(fates: &[Fate], language: Language) -> RunPageView {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let standing = runtime.block_on(async {
        let (ledger, run) = scene(fates).await;
        RunStanding::whole(&ledger, run).await.unwrap()
    });
    let (now, command) = (Timestamp::UNIX_EPOCH, |arguments: String| format!("campaign {arguments}"));
    RunPage { standing: &standing, now, left: None, zone: &TimeZone::UTC, command: &command, rows: None }.view(language)
}

/// A run whose gateway answered with these words.
pub(in crate::web) fn told(words: &str) -> RunPageView {
    let refused = Fate::Sent(Outcome::Rejected { error: words.into() }, Vec::new());
    let failed = vec![(Some(Channel::Viber), Status::Other(words.into()), Some(words.into()))];
    let taken = Fate::Sent(Outcome::Accepted { msg_id: None, parts: Some(1), answer: None }, failed);
    view(&[Fate::Out(words.into()), Fate::Waits, Fate::Silent, refused, taken], Language::English)
}

/// The elements of all parts and the names of their attributes, and what can be read.
fn parts(view: &RunPageView, language: Language) -> (BTreeSet<(String, Vec<String>)>, String) {
    let (mut shapes, mut text) = (BTreeSet::new(), String::new());
    for one in Part::ALL {
        let html = part(language, view, one).unwrap();
        assert!(html.trim_start().contains(&format!("id=\"run-{}\"", one.name())), "{html}");
        let html = Html::read(&format!("<!doctype html>{html}"));
        let first = html.elements.first().expect("an element");
        assert_eq!(first.attribute("id"), format!("run-{}", one.name()), "it is one element");
        text += &first.words();
        shapes.extend(html.elements.into_iter().map(|one| (one.name, one.attributes.into_keys().collect())));
    }
    (shapes, text)
}

/// The shapes of a run's parts.
fn shapes(fates: &[Fate]) -> BTreeSet<(String, Vec<String>)> {
    parts(&view(fates, Language::English), Language::English).0
}

/// A run with something in each of its parts, and one with nothing.
fn ordinary() -> [Vec<Fate>; 2] {
    let taken = |told| Fate::Sent(Outcome::Accepted { msg_id: None, parts: Some(1), answer: None }, told);
    let refused = |error: &str| Fate::Sent(Outcome::Rejected { error: error.into() }, Vec::new());
    let fell = |status| {
        taken(vec![(Some(Channel::Viber), Status::Expired, None), (Some(Channel::Sms), status, Some("no".into()))])
    };
    let mut all = vec![Fate::Out("x".into()), Fate::Out("filtered".into()), Fate::Waits, refused("no"), refused("")];
    all.extend((0..24).map(|_| Fate::Silent));
    all.extend(Status::KNOWN.map(fell));
    all.extend([Some(Channel::Viber), None].map(|channel| taken(vec![(channel, Status::Delivered, None)])));
    [all, vec![Fate::Out("filtered".into())]]
}

const HOSTILE: &str = "(<script>alert\\(1\\)</script>|<img src=x onerror=y>|\" onclick=\"z|' style='|</svg>|</table>|<!--|&lt;|\\{\\{ x \\}\\}|\u{0}|\u{202e}| |a)*";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_anybody_says_is_text_and_every_number_stands_where_it_adds_up(
        fates in proptest::collection::vec(fate(HOSTILE), 1..20),
    ) {
        let known: BTreeSet<_> = ordinary().iter().flat_map(|fates| shapes(fates)).collect();
        for language in Language::ALL {
            let view = view(&fates, language);
            let (shapes, text) = parts(&view, language);
            let foreign: Vec<_> = shapes.difference(&known).collect();
            prop_assert!(foreign.is_empty(), "{:?}", foreign);
            for missing in ["run.", "state.", "standing.", "NaN", "inf%"] {
                prop_assert!(!text.replace(|c: char| !c.is_ascii(), "").contains(&format!(" {missing}")), "{}", text);
            }
            let depth = |depth: u8| view.funnel.iter().filter(move |bar| bar.depth == depth);
            prop_assert_eq!(depth(0).next().map(|bar| bar.value), Some(fates.len() as u64));
            // What hangs below a row and the next row are all of it, down to what arrived.
            let mut rows = view.funnel.iter().peekable();
            while let Some(row) = rows.next() {
                let mut below = 0;
                while let Some(part) = rows.next_if(|next| next.depth == 1) {
                    below += part.value;
                }
                let Some(next) = rows.peek() else { break };
                if row.class == "whole" {
                    prop_assert_eq!(row.value, below + next.value, "{:?}", view.funnel);
                }
            }
        }
    }
}

#[test]
fn a_rest_is_told_by_its_length_while_it_is_short_and_by_its_end_where_it_is_long() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut standing = runtime.block_on(async {
        let (ledger, run) = scene(&[Fate::Out("filtered".into()), Fate::Waits, Fate::Silent]).await;
        RunStanding::whole(&ledger, run).await.unwrap()
    });
    standing.view.status = RunStatus::Sending;
    let command = |arguments: String| arguments;
    let table = [
        (14, "1 of 2 messages processed, about 14 s left."),
        (61, "1 of 2 messages processed, about 1 min 5 s left."),
        (130, "1 of 2 messages processed, about 3 min left."),
        (3_600, "1 of 2 messages processed, expected to finish around 1 January 1970, 01:00."),
    ];
    for (seconds, said) in table {
        let left = Some(Duration::from_secs(seconds));
        let (now, zone) = (Timestamp::UNIX_EPOCH, &TimeZone::UTC);
        let page = RunPage { standing: &standing, now, left, zone, command: &command, rows: None };
        let html = part(Language::English, &page.view(Language::English), Part::Sentence).unwrap();
        let words = Html::read(&format!("<!doctype html>{html}")).elements[0].words().replace('\u{a0}', " ");
        assert!(words.contains(said), "{said}: {words}");
    }
}
