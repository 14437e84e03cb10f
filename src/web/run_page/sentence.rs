//! The sentence of where a run stands.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::RunPage;
use crate::ledger::State;
use crate::report::{DOUBTFUL, RunFigures, RunStatus};
use crate::web::words::Words;

/// The last points by which it is judged how fast a run is.
const LATEST: usize = 10;

/// Where a run stands.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SentenceView {
    /// The word for programs.
    state: &'static str,
    /// The word for people.
    word: String,
    /// How far it is.
    said: String,
    /// Why it stopped, in English.
    why: Option<String>,
    /// How many rows are in doubt.
    doubt: Option<String>,
}

impl RunPage<'_> {
    pub(super) fn sentence(&self, words: &Words) -> SentenceView {
        let status = &self.standing.view.status;
        let doubt = self.sum(&DOUBTFUL);
        SentenceView {
            state: status.word(),
            word: words.kind("standing", status.word()).unwrap_or_default().to_owned(),
            said: self.said(words),
            why: status.why().map(str::to_owned),
            doubt: (doubt > 0).then(|| words.count("run.doubt", doubt, &[])),
        }
    }

    /// How far it is, and when about it is through.
    fn said(&self, words: &Words) -> String {
        let (rows, left) = (self.run().recipients, self.sum(&[State::Planned, State::Sending]));
        let through = rows.saturating_sub(left);
        let (through, rows) = (words.number(through), words.number(rows));
        let said = words.say_with("run.through", &[("through", &through), ("rows", &rows)]);
        let end = self.figures().filter(|_| self.standing.view.status == RunStatus::Sending);
        match end.and_then(|figures| about(figures, left, self.now)) {
            Some(at) => {
                let at = self.moment(words, at);
                words.say_with("run.until", &[("said", &said), ("at", &at)])
            }
            None => said,
        }
    }
}

/// When about so many rows are through at the speed of the last points; nothing where there is none to tell.
fn about(figures: &RunFigures, left: u64, now: Timestamp) -> Option<Timestamp> {
    let latest = figures.requests.sent.latest(LATEST);
    let (sent, points) = (latest.iter().sum::<u64>(), i64::try_from(latest.len()).ok()?);
    if sent == 0 || left == 0 {
        return None;
    }
    let seconds = i128::from(left) * i128::from(points * figures.requests.sent.seconds()) / i128::from(sent);
    now.checked_add(SignedDuration::from_secs(i64::try_from(seconds).ok()?)).ok()
}
