//! What came of a call to send a campaign.

use std::path::PathBuf;
use std::time::Duration;

use super::{EarlierSending, Error, ListSurvey};
use crate::delivery::{DeviationCounts, ErrorCounts, Stop};
use crate::ledger::{BilledParts, ExcludedRows, Run, StateCounts, StopKind};
use crate::report::{ResultsBackup, RunInDoubt};
use crate::sandbox::Counts;

/// What came of a call to send a campaign.
#[derive(Debug)]
pub enum RunOutcome {
    /// A run was sent, to its end or not.
    Ended(Box<EndedRun>),
    /// Nobody was left to be sent to.
    NothingLeft(Box<NothingLeft>),
}

impl RunOutcome {
    /// What came of the edition of now, after a run of an earlier one.
    #[must_use]
    pub(super) fn with_earlier(mut self, earlier: Box<EndedRun>) -> Self {
        match &mut self {
            RunOutcome::Ended(ended) => ended.earlier = Some(earlier),
            RunOutcome::NothingLeft(nothing) => nothing.earlier = Some(earlier),
        }
        self
    }
}

/// A run after it was sent.
#[derive(Debug)]
pub struct EndedRun {
    /// The run, as it was before its end was recorded.
    pub run: Run,
    /// Why it stopped before the end, whatever else went wrong.
    pub stop: Option<Stop>,
    /// The kind under which its end was recorded.
    pub kind: Option<StopKind>,
    /// Its rows by state.
    pub counts: StateCounts,
    /// Messages of this call that went out, or may have.
    pub sent: u64,
    /// Rows that a retry did not send, since the gateway did not confirm that their messages failed.
    pub unconfirmed: u64,
    /// People who opted out while it was sent: in a live run this call left them out; in a rehearsal they answered so.
    pub opted_out: u64,
    /// Parts billed, as far as the gateway told.
    pub parts: BilledParts,
    /// How long this call took to send and end it.
    pub time: Duration,
    /// Skipped and invalid rows by reason, if the run sent nothing; otherwise empty.
    pub left_out: ExcludedRows,
    /// The errors of this call.
    pub errors: ErrorCounts,
    /// What was odd about the answers of this call.
    pub oddities: DeviationCounts,
    /// The results where they were written, or why they were not; nothing where another process has the run.
    pub results: Option<Result<PathBuf, Error>>,
    /// The new path of another run's results that were at this place.
    pub kept: Option<ResultsBackup>,
    /// Who was sent to before by other runs, if anybody was skipped for that.
    pub before: Option<EarlierSending>,
    /// The runs of the same edition that were stopped for good, if their recipients were skipped for that.
    pub cancelled_in: Vec<String>,
    /// Whether it is of an edition before the one of now.
    pub earlier_edition: bool,
    /// Why the edition of now did not begin after this run of an earlier one, or ended without a word of its own.
    pub not_begun_error: Option<Box<Error>>,
    /// What became of the messages of a rehearsal with a scenario.
    pub played: Option<Counts>,
    /// Other runs of the campaign with rows whose outcome nobody knows.
    pub open_doubts: Vec<RunInDoubt>,
    /// Messages that were delivered only in part, if known.
    pub in_part: u64,
    /// The run of an earlier edition that this call brought to its end first.
    pub earlier: Option<Box<EndedRun>>,
}

/// A campaign of which nobody was left.
#[derive(Debug)]
pub struct NothingLeft {
    /// What was found in the list.
    pub survey: ListSurvey,
    /// The rows that were meant, by state: those that were asked for where others are left, else all.
    pub meant: StateCounts,
    /// Who was sent to before.
    pub before: Option<EarlierSending>,
    /// The runs of the same edition that were stopped for good, if their recipients are skipped for that.
    pub cancelled_in: Vec<String>,
    /// Whether nobody knows of some of them whether they have it.
    pub doubt: bool,
    /// Other runs of the campaign with rows whose outcome nobody knows.
    pub open_doubts: Vec<RunInDoubt>,
    /// The run of an earlier edition that this call brought to its end first.
    pub earlier: Option<Box<EndedRun>>,
}
