//! The sentence of where a run stands.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::RunPage;
use crate::ledger::State;
use crate::report::{DOUBTFUL, RunFigures, RunStatus};
use crate::web::words::Words;

/// The last points by which it is judged how fast a run is.
const LATEST: usize = 10;
/// A rest that is shorter is told by how long it takes, and a longer one by when it is through.
const SOON: Duration = Duration::from_secs(600);

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

    /// How far it is, and how long the rest takes or when about it is through.
    fn said(&self, words: &Words) -> String {
        let waiting = self.sum(&[State::Planned, State::Sending]);
        let meant = self.run().recipients.saturating_sub(self.sum(&[State::Skipped, State::Invalid]));
        let through = words.number(meant.saturating_sub(waiting));
        let said = words.count("run.through", meant, &[("through", &through)]);
        if self.standing.view.status != RunStatus::Sending {
            return said;
        }
        match self.left.or_else(|| left(self.figures()?, waiting)) {
            Some(left) if left < SOON => {
                let left = words.duration(steps(left));
                words.say_with("run.left", &[("said", &said), ("time", &left)])
            }
            Some(left) => {
                let at = self.now.checked_add(left).unwrap_or(Timestamp::MAX);
                words.say_with("run.until", &[("said", &said), ("at", &self.moment(words, at))])
            }
            None => said,
        }
    }
}

/// How long so many rows take at the speed of the last points; nothing where there is none to tell.
fn left(figures: &RunFigures, waiting: u64) -> Option<Duration> {
    let latest = figures.requests.sent.latest(LATEST);
    let (sent, points) = (latest.iter().sum::<u64>(), u64::try_from(latest.len()).ok()?);
    if sent == 0 || waiting == 0 {
        return None;
    }
    let each = points.checked_mul(u64::try_from(figures.requests.sent.seconds()).ok()?)?;
    let seconds = u128::from(waiting) * u128::from(each) / u128::from(sent);
    Some(Duration::from_secs(u64::try_from(seconds).ok()?))
}

/// A time that is about right, in steps that fit its size.
fn steps(left: Duration) -> Duration {
    let step = match left.as_secs() {
        0..20 => 1,
        20..120 => 5,
        _ => 60,
    };
    Duration::from_secs(left.as_secs().max(1).next_multiple_of(step))
}
