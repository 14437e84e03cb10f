//! A run as it stands: what it does, what its rows came to, what it needs next.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::next_step::NextStep;
use crate::delivery::{SingleKind, Snapshot};
use crate::ledger::{Ledger, LedgerError, RowState, Run, RunProgress, StateCounts};

/// What a run does, or how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// A process is sending it.
    Sending,
    /// It stopped before its end, for this reason, and can go on.
    Stopped(String),
    /// The process that sent it ended before it could say why.
    Interrupted,
    /// It was through, and has rows to send again since.
    Resumable,
    /// Every row has its end.
    Finished,
    /// Nothing goes on with what it left, for this reason.
    Abandoned(String),
    /// A run with changed inputs took its place.
    Replaced,
    /// Somebody stopped it for good.
    Cancelled,
}

impl RunStatus {
    /// What `run` does; `owned` tells whether a process is sending it.
    #[must_use]
    pub fn from_run(run: &Run, owned: bool) -> Self {
        match (owned, run.progress, &run.stop_reason) {
            (true, ..) => Self::Sending,
            (false, RunProgress::Open, Some(reason)) => Self::Stopped(reason.clone()),
            // What a call records at its end is gone from the moment that another one takes the run.
            (false, RunProgress::Open, None) if run.counts.is_some() => Self::Resumable,
            (false, RunProgress::Open, None) => Self::Interrupted,
            (false, RunProgress::Finished, None) => Self::Finished,
            (false, RunProgress::Finished, Some(reason)) => Self::Abandoned(reason.clone()),
            (false, RunProgress::Replaced, _) => Self::Replaced,
            (false, RunProgress::Cancelled, _) => Self::Cancelled,
        }
    }
}

impl RunStatus {
    /// Every word by which programs are told of one.
    pub const NAMES: [&'static str; 8] =
        ["sending", "stopped", "interrupted", "open", "finished", "given_up", "replaced", "cancelled"];

    /// The word by which programs are told of it.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Sending => "sending",
            Self::Stopped(_) => "stopped",
            Self::Interrupted => "interrupted",
            Self::Resumable => "open",
            Self::Finished => "finished",
            Self::Abandoned(_) => "given_up",
            Self::Replaced => "replaced",
            Self::Cancelled => "cancelled",
        }
    }

    /// The reason that was kept with it, in words.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Stopped(reason) | Self::Abandoned(reason) => Some(reason),
            Self::Sending | Self::Interrupted | Self::Resumable | Self::Finished | Self::Replaced | Self::Cancelled => {
                None
            }
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sending => f.write_str("sending"),
            Self::Stopped(reason) => write!(f, "stopped: {reason}"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Resumable => f.write_str("can be resumed"),
            Self::Finished => f.write_str("finished"),
            Self::Abandoned(reason) => write!(f, "given up: {reason}"),
            Self::Replaced => f.write_str("replaced by a new run with changed inputs"),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

/// How long after its beginning what becomes of a run's messages is followed: the longest lifetime of a message, and a day.
const FOLLOW_UP_TIME: Duration = Duration::from_secs(4 * 86_400);

/// A run and what its rows came to.
#[derive(Clone, Debug)]
pub struct RunView {
    /// The run.
    pub run: Run,
    /// What it does.
    pub status: RunStatus,
    /// Its rows by state.
    pub counts: StateCounts,
    /// Parts billed, as far as the gateway told.
    pub parts: u64,
}

impl RunView {
    /// The run as it stands now; `owned` tells whether a process is sending it. What its end counted is told as long as
    /// nothing became known since, else its envelopes are read.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn load(ledger: &dyn Ledger, run: Run, owned: bool) -> Result<Self, LedgerError> {
        let counted = if run.purged_at.is_some() { run.counts.as_ref() } else { run.current_counts() };
        if let Some((counts, parts)) = counted.filter(|_| !owned).cloned() {
            return Ok(Self { status: RunStatus::from_run(&run, owned), run, counts, parts });
        }
        let Snapshot { counts, parts, .. } = Snapshot::load(ledger, &run, owned).await?;
        Ok(Self::from_counts(run, owned, counts, parts.billed))
    }

    /// A run whose rows were counted just now; `owned` tells whether a process is sending it.
    pub(super) fn from_counts(run: Run, owned: bool, counts: StateCounts, parts: u64) -> Self {
        // Of a shared run some rows may be on their way, or wait to be tried again, and it has as many as were sent.
        let under_way = run.shared && counts.get(RowState::Planned) > 0;
        let sending = owned || under_way || counts.get(RowState::Sending) > 0;
        let run = Run { recipients: counts.total(), ..run };
        Self { status: RunStatus::from_run(&run, sending), run, counts, parts }
    }

    /// Whether more can come of it: a process sends it, or messages of it have no end yet, and somebody wants to know.
    #[must_use]
    pub fn expects_updates(&self, wants_receipts: bool, now: Timestamp) -> bool {
        let Self { run, status, counts, .. } = self;
        let open =
            [RowState::Accepted, RowState::Queued, RowState::InDoubt].into_iter().any(|state| counts.get(state) > 0);
        let followed = is_followed(run, now) && run.live && !run.is_lookup_run();
        *status == RunStatus::Sending || (wants_receipts && followed && open)
    }

    /// What it needs next from a person.
    #[must_use]
    pub fn next_step(&self) -> NextStep {
        let run = &self.run;
        if run.purged_at.is_some() {
            return NextStep::Nothing;
        }
        if self.status == RunStatus::Sending {
            return NextStep::Wait;
        }
        if run.progress == RunProgress::Open && SingleKind::from_run(run).is_none() {
            return NextStep::Resume;
        }
        match NextStep::for_doubt(&self.counts) {
            Some(NextStep::Reconcile) if run.live && !run.is_lookup_run() => NextStep::Reconcile,
            _ => NextStep::for_ended_run(&self.counts),
        }
    }
}

/// Whether a run began so lately that what becomes of its messages is followed.
#[must_use]
pub fn is_followed(run: &Run, now: Timestamp) -> bool {
    Duration::try_from(now.duration_since(run.began_at)).unwrap_or_default() < FOLLOW_UP_TIME
}

/// Whether a process is sending this run now.
///
/// # Errors
/// When the ledger cannot tell.
pub async fn is_owned(ledger: &dyn Ledger, run: &Run) -> Result<bool, LedgerError> {
    if run.progress != RunProgress::Open {
        return Ok(false);
    }
    // Workers go on with it where whoever began it is gone.
    let in_shares = run.sharding.is_some() && !ledger.load_claimed_rows(run.key).await?.is_empty();
    Ok(in_shares || run.epoch.is_some() && ledger.is_campaign_locked(&run.campaign, &run.account).await?)
}
