//! A run as it stands: what it does, what its rows came to, what it needs next.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::next_step::NextStep;
use crate::delivery::{SingleKind, Snapshot};
use crate::ledger::{Ledger, LedgerError, Progress, Run, State, StateCounts};

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
    ToGoOn,
    /// Every row has its end.
    Finished,
    /// Nothing goes on with what it left, for this reason.
    GivenUp(String),
    /// A run with changed inputs took its place.
    Replaced,
    /// Somebody stopped it for good.
    Cancelled,
}

impl RunStatus {
    /// What `run` does; `owned` tells whether a process is sending it.
    #[must_use]
    pub fn of(run: &Run, owned: bool) -> Self {
        match (owned, run.progress, &run.stopped) {
            (true, ..) => Self::Sending,
            (false, Progress::Open, Some(reason)) => Self::Stopped(reason.clone()),
            // What a call records at its end is gone from the moment that another one takes the run.
            (false, Progress::Open, None) if run.counts.is_some() => Self::ToGoOn,
            (false, Progress::Open, None) => Self::Interrupted,
            (false, Progress::Finished, None) => Self::Finished,
            (false, Progress::Finished, Some(reason)) => Self::GivenUp(reason.clone()),
            (false, Progress::Replaced, _) => Self::Replaced,
            (false, Progress::Cancelled, _) => Self::Cancelled,
        }
    }
}

impl RunStatus {
    /// Every word by which programs are told of one.
    pub const WORDS: [&'static str; 8] =
        ["sending", "stopped", "interrupted", "open", "finished", "given_up", "replaced", "cancelled"];

    /// The word by which programs are told of it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Sending => "sending",
            Self::Stopped(_) => "stopped",
            Self::Interrupted => "interrupted",
            Self::ToGoOn => "open",
            Self::Finished => "finished",
            Self::GivenUp(_) => "given_up",
            Self::Replaced => "replaced",
            Self::Cancelled => "cancelled",
        }
    }

    /// The reason that was kept with it, in words.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Stopped(reason) | Self::GivenUp(reason) => Some(reason),
            Self::Sending | Self::Interrupted | Self::ToGoOn | Self::Finished | Self::Replaced | Self::Cancelled => {
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
            Self::ToGoOn => f.write_str("can be resumed"),
            Self::Finished => f.write_str("finished"),
            Self::GivenUp(reason) => write!(f, "given up: {reason}"),
            Self::Replaced => f.write_str("replaced by a new run with changed inputs"),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

/// How long after its beginning what becomes of a run's messages is followed: the longest lifetime of a message, and a day.
const FOLLOWED: Duration = Duration::from_secs(4 * 86_400);

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
    pub async fn read(ledger: &dyn Ledger, run: Run, owned: bool) -> Result<Self, LedgerError> {
        let counted = if run.purged_at.is_some() { run.counts.as_ref() } else { run.standing_counts() };
        if let Some((counts, parts)) = counted.filter(|_| !owned).cloned() {
            return Ok(Self { status: RunStatus::of(&run, owned), run, counts, parts });
        }
        let Snapshot { counts, parts, .. } = Snapshot::read(ledger, &run, owned).await?;
        Ok(Self::of_counts(run, owned, counts, parts.billed))
    }

    /// A run whose rows were counted just now; `owned` tells whether a process is sending it.
    pub(super) fn of_counts(run: Run, owned: bool, counts: StateCounts, parts: u64) -> Self {
        // Of a shared run some rows may be on their way, or wait to be tried again, and it has as many as were sent.
        let under_way = run.shared && counts.get(State::Planned) > 0;
        let sending = owned || under_way || counts.get(State::Sending) > 0;
        let run = Run { recipients: counts.total(), ..run };
        Self { status: RunStatus::of(&run, sending), run, counts, parts }
    }

    /// Whether more can come of it: a process sends it, or messages of it have no end yet, and somebody wants to know.
    #[must_use]
    pub fn awaits_more(&self, wants_receipts: bool, now: Timestamp) -> bool {
        let Self { run, status, counts, .. } = self;
        let open = [State::Accepted, State::Queued, State::InDoubt].into_iter().any(|state| counts.get(state) > 0);
        let followed = is_followed(run, now) && run.live && !run.is_of_questions();
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
        if run.progress == Progress::Open && SingleKind::of(run).is_none() {
            return NextStep::GoOn;
        }
        match NextStep::of_doubt(&self.counts) {
            Some(NextStep::Ask) if run.live && !run.is_of_questions() => NextStep::Ask,
            _ => NextStep::of_ended(&self.counts),
        }
    }
}

/// Whether a run began so lately that what becomes of its messages is followed.
#[must_use]
pub fn is_followed(run: &Run, now: Timestamp) -> bool {
    Duration::try_from(now.duration_since(run.began_at)).unwrap_or_default() < FOLLOWED
}

/// Whether a process is sending this run now.
///
/// # Errors
/// When the ledger cannot tell.
pub async fn is_owned(ledger: &dyn Ledger, run: &Run) -> Result<bool, LedgerError> {
    if run.progress != Progress::Open {
        return Ok(false);
    }
    // Workers go on with it where whoever began it is gone.
    let in_shares = run.sharing.is_some() && !ledger.rows_in_hand(run.key).await?.is_empty();
    Ok(in_shares || run.epoch.is_some() && ledger.is_held(&run.campaign, &run.account).await?)
}
