//! Status of runs: counts, the next step for the operator, and the report of one run with its figures, approvals and
//! budget. The report contains no phone numbers.

use std::fmt;
use std::time::Duration;

use campaign_core::domain::{Amount, Spending};
use campaign_ledger::{
    Approval, ApprovalFilter, DamagedRun, Ledger, LedgerError, RowState, Run, RunFilter, RunId, RunProgress,
    ShardHolder, StateCounts, StopKind, share_budget,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{ChannelFigures, RunFigures, counts_json};
use crate::delivery::{SingleKind, Snapshot};

/// Whether a retry can send messages of a run again. Retries send only messages of finished live campaigns.
pub fn can_retry(run: &Run) -> bool {
    let is_campaign = SingleKind::from_run(run).is_none();
    run.live && is_campaign && run.progress == RunProgress::Finished && run.purged_at.is_none()
}

/// The status of a run, derived from its progress and from its sending process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// A process is sending the run.
    Sending,
    /// The run stopped early for this reason, and can be resumed.
    Stopped(String),
    /// The sending process ended without recording why.
    Interrupted,
    /// The run finished, but has rows to send again.
    Resumable,
    /// Every row has an outcome.
    Finished,
    /// The remaining rows were given up for this reason.
    Abandoned(String),
    /// A run with changed inputs replaced this run.
    Replaced,
    /// The run was stopped for good.
    Cancelled,
}

impl RunStatus {
    /// The status of `run`; `owned` says whether a process is sending the run.
    pub fn from_run(run: &Run, owned: bool) -> Self {
        match (owned, run.progress, &run.stop_reason) {
            (true, ..) => Self::Sending,
            (false, RunProgress::Open, Some(reason)) => Self::Stopped(reason.clone()),
            // The counts that a process stores when it ends are cleared as soon as another process takes over the run.
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
    /// The names of all statuses in JSON.
    pub const NAMES: [&'static str; 8] =
        ["sending", "stopped", "interrupted", "open", "finished", "given_up", "replaced", "cancelled"];

    /// The status's name in JSON.
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

    /// The recorded reason for the end or stop. `None` if the status has no reason.
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
            Self::Replaced => f.write_str("replaced by a later run"),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

/// The time for which a run's messages are followed after its start: the longest lifetime of an SMS, plus a day.
const FOLLOW_UP_TIME: Duration = Duration::from_secs(4 * 86_400);

/// A run with its status and counts.
#[derive(Clone, Debug)]
pub struct RunView {
    /// The run; for a shared run, `recipients` is the number of rows counted so far.
    pub run: Run,
    /// The status of the run.
    pub status: RunStatus,
    /// The rows of the run by state.
    pub counts: StateCounts,
    /// Billed parts, if the gateway reported them.
    pub parts: u64,
}

impl RunView {
    /// Loads the current view of a run; `owned` says whether a process is sending the run. Recorded counts are used if
    /// they are current; otherwise the requests are read.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load(ledger: &dyn Ledger, run: Run, owned: bool) -> Result<Self, LedgerError> {
        let counted = if run.purged_at.is_some() { run.counts.as_ref() } else { run.current_counts() };
        if let Some((counts, parts)) = counted.filter(|_| !owned).cloned() {
            // A shared run has no list, purged or not, so the counts give its size.
            let recipients = if run.shared { counts.total() } else { run.recipients };
            return Ok(Self {
                status: RunStatus::from_run(&run, owned),
                run: Run { recipients, ..run },
                counts,
                parts,
            });
        }
        let Snapshot { counts, parts, .. } = Snapshot::load(ledger, &run, owned).await?;
        Ok(Self::from_counts(run, owned, counts, parts.billed))
    }

    /// A view with counts that were just calculated; `owned` says whether a process is sending the run.
    pub(super) fn from_counts(run: Run, owned: bool, counts: StateCounts, parts: u64) -> Self {
        // Planned rows of a shared run are in progress or waiting for a retry, so the run is still sending. Its number
        // of recipients is the number of rows counted so far.
        let is_under_way = run.shared && counts.get(RowState::Planned) > 0;
        let is_sending = owned || is_under_way || counts.get(RowState::Sending) > 0;
        let run = Run { recipients: counts.total(), ..run };
        Self { status: RunStatus::from_run(&run, is_sending), run, counts, parts }
    }

    /// Whether updates can follow: a process is sending the run, or receipts are wanted for messages without a final
    /// status.
    pub fn expects_updates(&self, wants_receipts: bool, now: Timestamp) -> bool {
        let Self { run, status, counts, .. } = self;
        let has_open_messages =
            [RowState::Accepted, RowState::Queued, RowState::InDoubt].into_iter().any(|state| counts.get(state) > 0);
        let can_get_receipts = is_followed(run, now) && run.live && !run.is_shared_single_run();
        *status == RunStatus::Sending || (wants_receipts && can_get_receipts && has_open_messages)
    }

    /// The next step for the operator.
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
            Some(NextStep::Reconcile) if run.live && !run.is_shared_single_run() => NextStep::Reconcile,
            _ => NextStep::for_ended_run(&self.counts),
        }
    }
}

/// Whether the run is recent enough that its messages are followed.
pub fn is_followed(run: &Run, now: Timestamp) -> bool {
    Duration::try_from(now.duration_since(run.began_at)).unwrap_or_default() < FOLLOW_UP_TIME
}

/// Whether a process is sending this run now.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn is_owned(ledger: &dyn Ledger, run: &Run) -> Result<bool, LedgerError> {
    if run.progress != RunProgress::Open {
        return Ok(false);
    }
    // Workers can continue a run after the process that started it is gone.
    let has_claimed_shards = run.sharding.is_some() && !ledger.load_claimed_rows(run.key).await?.is_empty();
    if has_claimed_shards || run.epoch.is_none() {
        return Ok(has_claimed_shards);
    }
    Ok(ledger.find_campaign_lock(&run.campaign, &run.account).await?.is_some())
}

/// The states of rows with an unknown outcome.
pub const IN_DOUBT_STATES: [RowState; 2] = [RowState::InDoubt, RowState::Unresolved];
/// The states of rows whose message was rejected, failed or could not be sent.
pub const FAILED_STATES: [RowState; 4] = [RowState::Rejected, RowState::Failed, RowState::NotSent, RowState::Invalid];

/// The next step of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Wait while the run is being sent.
    Wait,
    /// Resume the run.
    Resume,
    /// Ask the gateway about rows in doubt.
    Reconcile,
    /// Decide about rows whose outcome the gateway cannot tell.
    Decide,
    /// Review the rows in these states.
    Review(Vec<RowState>),
    /// There is nothing left to do.
    Nothing,
}

impl NextStep {
    /// The next step for rows in doubt, if there are any.
    pub fn for_doubt(counts: &StateCounts) -> Option<Self> {
        let has_rows = |state| counts.get(state) > 0;
        if has_rows(RowState::InDoubt) {
            Some(Self::Reconcile)
        } else {
            has_rows(RowState::Unresolved).then_some(Self::Decide)
        }
    }

    /// The next step for a run that has ended.
    pub fn for_ended_run(counts: &StateCounts) -> Self {
        let states: Vec<RowState> =
            IN_DOUBT_STATES.into_iter().chain(FAILED_STATES).filter(|state| counts.get(*state) > 0).collect();
        if states.is_empty() { Self::Nothing } else { Self::Review(states) }
    }
}

/// A run with rows in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInDoubt {
    /// The run's name.
    pub run: String,
    /// The number of rows.
    pub rows: u64,
    /// The next step.
    pub step: NextStep,
}

/// The live runs with rows in doubt, except `excluded`.
pub fn find_runs_in_doubt(runs: &[Run], excluded: Option<RunId>) -> Vec<RunInDoubt> {
    let others = runs.iter().filter(|run| Some(run.key) != excluded && run.live);
    let doubtful = others.filter_map(|run| {
        let (counts, _) = run.counts.as_ref()?;
        let step = NextStep::for_doubt(counts)?;
        Some(RunInDoubt {
            run: run.name(),
            rows: IN_DOUBT_STATES.into_iter().map(|state| counts.get(state)).sum(),
            step,
        })
    });
    doubtful.collect()
}

/// All runs of a ledger, the latest first.
#[derive(Clone, Debug, Default)]
pub struct RunList {
    /// The readable runs.
    pub views: Vec<RunView>,
    /// The runs that cannot be read because a record is damaged.
    pub damaged: Vec<DamagedRun>,
}

impl RunList {
    /// Loads all runs.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load(ledger: &dyn Ledger) -> Result<Self, LedgerError> {
        let mut list = Self::default();
        for stored in ledger.list_stored_runs(RunFilter::all()).await?.into_iter().rev() {
            match stored {
                Ok(run) => list.add_run(ledger, run).await?,
                Err(damaged) => list.damaged.push(damaged),
            }
        }
        Ok(list)
    }

    async fn add_run(&mut self, ledger: &dyn Ledger, run: Run) -> Result<(), LedgerError> {
        let (owned, name) = (is_owned(ledger, &run).await?, run.name());
        match RunView::load(ledger, run, owned).await {
            Ok(view) => self.views.push(view),
            Err(error) if error.concerns_records() => self.damaged.push(DamagedRun { name, error }),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Damaged runs as JSON.
pub fn damaged_runs_json(damaged: &[DamagedRun]) -> Value {
    damaged
        .iter()
        .map(|DamagedRun { name, error }| json!({ "run": name, "problem": error.describe_damage() }))
        .collect()
}

/// A run with its figures, approvals and budget.
#[derive(Debug)]
pub struct RunReport {
    /// The status and counts of the run.
    pub view: RunView,
    /// The figures; `None` if they were not requested or are no longer known.
    pub figures: Option<RunFigures>,
    /// The approvals without the operator's confirmation, oldest first.
    pub approvals: Vec<Approval>,
    /// The processes that send the run, and their rows; empty for a single process.
    pub senders: Vec<ShardHolder>,
    /// The budget that is left for all runs of its edition, if this is the last run. `None` for other runs, without a
    /// budget, or if the figures are unknown.
    pub budget_left: Option<Amount>,
    /// The number of recipients who opted out because of the run, if its figures were requested. `None` for a
    /// rehearsal, because rehearsals cause no opt-outs.
    pub opted_out: Option<u64>,
}

impl RunReport {
    /// Loads the run with its stored figures if they are current; otherwise, calculates the figures from its requests.
    /// The figures of an ended run without receipts are not calculated, because its counts are enough.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load(ledger: &dyn Ledger, run: Run) -> Result<Self, LedgerError> {
        Self::load_report(ledger, run, false).await
    }

    /// Loads the run with its figures. Only a purged run whose figures were not stored has no figures.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load_with_figures(ledger: &dyn Ledger, run: Run) -> Result<Self, LedgerError> {
        Self::load_report(ledger, run, true).await
    }

    async fn load_report(ledger: &dyn Ledger, run: Run, must_have_figures: bool) -> Result<Self, LedgerError> {
        let owned = is_owned(ledger, &run).await?;
        // The sending process might have ended and recorded its end since the run was read.
        let reloaded = if owned { None } else { ledger.list_runs(RunFilter::with_key(run.key)).await?.pop() };
        let run = reloaded.unwrap_or(run);
        let stored = if owned { None } else { RunFigures::load_stored(ledger, &run).await? };
        let are_counts_enough = run.purged_at.is_some() || (!must_have_figures && !owned && run.receipts == 0);
        let figures = match stored {
            None if !are_counts_enough => Some(RunFigures::load(ledger, &run, owned).await?),
            stored => stored,
        };
        let view = match &figures {
            // Figures that are shown together come from the same pass.
            Some(figures) if owned || run.current_counts().is_none() && run.purged_at.is_none() => {
                let RunFigures { counts, requests, .. } = figures;
                RunView::from_counts(run, owned, counts.clone(), requests.parts.billed)
            }
            _ => RunView::load(ledger, run, owned).await?,
        };
        let approvals = load_approvals(ledger, &view.run).await?;
        let senders = load_senders(ledger, &view.run).await?;
        let budget_left = match &figures {
            Some(figures) if must_have_figures => load_budget_left(ledger, &view.run, figures).await?,
            _ => None,
        };
        let opted_out = match must_have_figures && view.run.live {
            true => Some(ledger.count_opt_outs_from(&view.run.name()).await?),
            false => None,
        };
        Ok(Self { view, figures, approvals, senders, budget_left, opted_out })
    }

    /// The run's messages by channel. `None` if the figures are unknown or the run has no receipts.
    pub fn channels(&self) -> Option<&ChannelFigures> {
        // Without receipts, no delivery status is known, so there is nothing to show by channel.
        self.figures.as_ref().map(|figures| &figures.channels).filter(|_| self.view.run.receipts > 0)
    }

    /// The number of messages that were delivered only in part; 0 if the figures are unknown.
    pub fn count_partial(&self) -> u64 {
        self.figures.as_ref().map_or(0, |figures| figures.channels.count_partial())
    }

    /// Whether more parts might be billed than the gateway reported; `false` if no parts were reported or the figures
    /// are unknown.
    pub fn has_unreported_parts(&self) -> bool {
        let figures = self.figures.as_ref().filter(|_| self.view.parts > 0);
        figures.is_some_and(|figures| figures.requests.has_unreported_parts())
    }

    /// The run as JSON, without phone numbers.
    pub fn to_json(&self) -> Value {
        let mut object = run_json(&self.view);
        object["channels"] = self.channels().map_or_else(|| json!({}), ChannelFigures::to_json);
        add_approvals(&mut object, &self.approvals);
        add_senders(&mut object, &self.senders);
        object
    }

    /// The run with its figures as JSON.
    pub fn to_report_json(&self) -> Value {
        let mut object = self.to_json();
        object["figures"] = self.figures.as_ref().map(RunFigures::to_json).into();
        if let Some(left) = self.budget_left.filter(|_| !object["figures"]["money"].is_null()) {
            object["figures"]["money"]["budget_left"] = json!(left.trim_decimals());
        }
        if let Some(opted_out) = self.opted_out.filter(|_| self.figures.is_some()) {
            object["figures"]["opted_out"] = opted_out.into();
        }
        object
    }
}

/// The remainder of the budget that this run shares with other runs. `None` if the run has no budget, is not the latest
/// of these runs, or the spending of a purged run is unknown.
async fn load_budget_left(ledger: &dyn Ledger, run: &Run, figures: &RunFigures) -> Result<Option<Amount>, LedgerError> {
    let limit = figures.terms.as_ref().and_then(|terms| terms.budget.cost);
    let Some(limit) = limit else { return Ok(None) };
    let runs = ledger.list_runs(RunFilter::for_campaign(&run.campaign)).await?;
    let others: Vec<Run> = runs.into_iter().filter(|other| other.key != run.key && share_budget(run, other)).collect();
    if others.iter().any(|other| other.number > run.number) {
        return Ok(None);
    }
    let Some(used) = load_spending(ledger, &others).await? else { return Ok(None) };
    let used = used.add_spending(figures.requests.used).cost;
    Ok(Some(if used < limit { limit.saturating_sub(used) } else { Amount::default() }))
}

/// The spending of these runs together. `None` if the spending of a purged run is unknown.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn load_spending(ledger: &dyn Ledger, runs: &[Run]) -> Result<Option<Spending>, LedgerError> {
    let mut spent = Spending::default();
    for run in runs {
        let owned = is_owned(ledger, run).await?;
        let stored = if owned { None } else { RunFigures::load_stored(ledger, run).await? };
        let figures = match stored {
            Some(figures) => figures,
            // Without stored figures, the spending of a purged run is unknown.
            None if run.purged_at.is_some() => return Ok(None),
            None => RunFigures::load(ledger, run, owned).await?,
        };
        spent = spent.add_spending(figures.requests.used);
    }
    Ok(Some(spent))
}

/// The approvals of a run, not including the operator's confirmation, oldest first.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn load_approvals(ledger: &dyn Ledger, run: &Run) -> Result<Vec<Approval>, LedgerError> {
    Ok(ledger.list_approvals(ApprovalFilter::Run(run.key)).await?.into_iter().map(|stored| stored.approval).collect())
}

/// Adds the approvals to a JSON object, if there are any.
pub fn add_approvals(object: &mut Value, approvals: &[Approval]) {
    let approval_json = |approval: &Approval| json!({ "by": approval.by, "at": approval.at.to_string() });
    if !approvals.is_empty() {
        object["approved"] = approvals.iter().map(approval_json).collect();
    }
}

/// The processes that send a run, and their rows; empty for a single process.
async fn load_senders(ledger: &dyn Ledger, run: &Run) -> Result<Vec<ShardHolder>, LedgerError> {
    match run.sharding {
        Some(_) => Ok(ShardHolder::from_blocks(&ledger.list_owned_blocks(run.key).await?)),
        None => Ok(Vec::new()),
    }
}

/// Adds the processes that send a run to a JSON object, if there are several.
fn add_senders(object: &mut Value, senders: &[ShardHolder]) {
    let sender_json =
        |holder: &ShardHolder| json!({ "by": holder.name, "rows": holder.rows, "since": holder.since.to_string() });
    if !senders.is_empty() {
        object["senders"] = senders.iter().map(sender_json).collect();
    }
}

/// A run as JSON with its approvals and senders, but without figures that require reading every row.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn load_run_json(ledger: &dyn Ledger, view: &RunView) -> Result<Value, LedgerError> {
    let mut object = run_json(view);
    add_approvals(&mut object, &load_approvals(ledger, &view.run).await?);
    add_senders(&mut object, &load_senders(ledger, &view.run).await?);
    Ok(object)
}

/// A run as JSON, for an entry in a list of runs.
pub fn run_entry_json(view: &RunView) -> Value {
    let RunView { run, status, counts, .. } = view;
    json!({
        "run": run.name(),
        "campaign": run.campaign,
        "gateway": run.gateway,
        "rows": run.recipients,
        "counts": counts_json(counts),
        "delivered_or_read": counts.count_delivered(),
        "state": status.as_str(),
        "stopped": stop_kind_name(view),
        "why": status.reason(),
    })
}

/// A run as JSON, with more details than in a list of runs.
fn run_json(view: &RunView) -> Value {
    let run = &view.run;
    let mut object = run_entry_json(view);
    object["edition"] = run.edition.clone().into();
    object["endpoint"] = run.endpoint.name().into();
    object["parts"] = view.parts.into();
    object["began_at"] = run.began_at.to_string().into();
    object["ended_at"] = run.ended_at.map(|at| at.to_string()).into();
    object["results"] = run.results.clone().into();
    if let Some(at) = run.purged_at {
        object["purged_at"] = at.to_string().into();
    }
    object
}

/// The JSON name of the kind of stop. `None` while the run is being sent, or after it finished.
fn stop_kind_name(view: &RunView) -> Option<&'static str> {
    view.run.stop.filter(|_| view.status != RunStatus::Sending).map(StopKind::json_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_step_handles_rows_in_doubt_before_failed_rows() {
        let counts = |states: &[RowState]| {
            let mut counts = StateCounts::default();
            states.iter().for_each(|state| counts.add(*state, 1));
            counts
        };
        let both = counts(&[RowState::InDoubt, RowState::Unresolved]);
        assert_eq!(NextStep::for_doubt(&both), Some(NextStep::Reconcile));
        assert_eq!(NextStep::for_doubt(&counts(&[RowState::Unresolved, RowState::Failed])), Some(NextStep::Decide));
        assert_eq!(NextStep::for_doubt(&counts(&[RowState::Rejected])), None);
        let failed = counts(&[RowState::Invalid, RowState::Unresolved, RowState::Accepted]);
        assert_eq!(NextStep::for_ended_run(&failed), NextStep::Review(vec![RowState::Unresolved, RowState::Invalid]));
        assert_eq!(NextStep::for_ended_run(&counts(&[RowState::Accepted, RowState::Skipped])), NextStep::Nothing);
    }
}
