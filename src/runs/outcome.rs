//! What came of a call to send a campaign.

use std::path::PathBuf;
use std::time::Duration;

use super::{Error, ListSurvey};
use crate::delivery::{Errors, Oddities, Stop};
use crate::ledger::{Run, StateCounts, StopKind};
use crate::report::OpenDoubt;
use crate::sandbox::Counts;

/// What came of a call to send a campaign.
#[derive(Debug)]
pub enum Outcome {
    /// A run was sent, to its end or not.
    Ended(Box<EndedRun>),
    /// Nobody was left to be sent to.
    NothingLeft(Box<NothingLeft>),
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
    /// Parts billed, as far as the gateway told.
    pub parts: u64,
    /// How long this call took to send and end it.
    pub time: Duration,
    /// The errors of this call.
    pub errors: Errors,
    /// What was odd about the answers of this call.
    pub oddities: Oddities,
    /// The results where they were written, or why they were not; nothing where another process has the run.
    pub results: Option<Result<PathBuf, Error>>,
    /// What became of the messages of a rehearsal with a scenario.
    pub played: Option<Counts>,
    /// Other runs of the campaign with rows whose outcome nobody knows.
    pub open_doubts: Vec<OpenDoubt>,
}

/// A campaign of which nobody was left.
#[derive(Debug)]
pub struct NothingLeft {
    /// What was found in the list.
    pub survey: ListSurvey,
    /// Other runs of the campaign with rows whose outcome nobody knows.
    pub open_doubts: Vec<OpenDoubt>,
}
