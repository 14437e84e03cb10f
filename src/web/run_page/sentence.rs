//! The sentence of where a run stands.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::RunPage;
use crate::ledger::RowState;
use crate::report::{IN_DOUBT_STATES, RunFigures, RunStatus};
use crate::web::words::PageWords;

/// The last points by which it is judged how fast a run is.
const LATEST_POINTS: usize = 10;
/// A rest that is shorter is told by how long it takes, and a longer one by when it is through.
const SHORT_REST: Duration = Duration::from_secs(600);

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
    pub(super) fn sentence_view(&self, words: &PageWords) -> SentenceView {
        let status = &self.standing.view.status;
        let doubt = self.sum_states(&IN_DOUBT_STATES);
        SentenceView {
            state: status.as_str(),
            word: words.kind("standing", status.as_str()).unwrap_or_default().to_owned(),
            said: self.describe_progress(words),
            why: status.reason().map(str::to_owned),
            doubt: (doubt > 0).then(|| words.count("run.doubt", doubt, &[])),
        }
    }

    /// How far it is, and how long the rest takes or when about it is through.
    fn describe_progress(&self, words: &PageWords) -> String {
        let waiting = self.sum_states(&[RowState::Planned, RowState::Sending]);
        let meant = self.run().recipients.saturating_sub(self.sum_states(&[RowState::Skipped, RowState::Invalid]));
        let through = words.format_number(meant.saturating_sub(waiting));
        let said = words.count("run.through", meant, &[("through", &through)]);
        if self.standing.view.status != RunStatus::Sending {
            return said;
        }
        match self.left.or_else(|| estimate_left(self.figures()?, waiting)) {
            Some(left) if left < SHORT_REST => {
                let left = words.format_duration(round_duration(left));
                words.say_with("run.left", &[("said", &said), ("time", &left)])
            }
            Some(left) => {
                let at = self.now.checked_add(left).unwrap_or(Timestamp::MAX);
                words.say_with("run.until", &[("said", &said), ("at", &self.format_moment(words, at))])
            }
            None => said,
        }
    }
}

/// How long so many rows take at the speed of the last points; nothing where there is none to tell.
fn estimate_left(figures: &RunFigures, waiting: u64) -> Option<Duration> {
    let latest = figures.requests.sent.latest_counts(LATEST_POINTS);
    let (sent, points) = (latest.iter().sum::<u64>(), u64::try_from(latest.len()).ok()?);
    if sent == 0 || waiting == 0 {
        return None;
    }
    let each = points.checked_mul(u64::try_from(figures.requests.sent.point_seconds()).ok()?)?;
    let seconds = u128::from(waiting) * u128::from(each) / u128::from(sent);
    Some(Duration::from_secs(u64::try_from(seconds).ok()?))
}

/// A time that is about right, in steps that fit its size.
fn round_duration(left: Duration) -> Duration {
    let step = match left.as_secs() {
        0..20 => 1,
        20..120 => 5,
        _ => 60,
    };
    Duration::from_secs(left.as_secs().max(1).next_multiple_of(step))
}
