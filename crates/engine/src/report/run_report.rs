//! Status report of one run with its figures, approvals and budget, and the JSON of runs. It contains no phone
//! numbers.

use serde_json::{Value, json};

use super::{ChannelFigures, RunFigures, RunStatus, RunView, counts_json, is_owned};
use campaign_core::domain::Amount;
use campaign_ledger::{
    Approval, ApprovalFilter, Ledger, LedgerError, Run, RunFilter, ShardHolder, StopKind, share_budget,
};

/// A run with its figures, approvals and budget.
#[derive(Debug)]
pub struct RunReport {
    /// Its status and counts.
    pub view: RunView,
    /// Its figures; `None` if they were not requested or are no longer known.
    pub figures: Option<RunFigures>,
    /// Its approvals without the operator's confirmation, oldest first.
    pub approvals: Vec<Approval>,
    /// The processes that send it, and their rows; empty for a single process.
    pub senders: Vec<ShardHolder>,
    /// The budget that is left for all runs of its edition, if this is the last run. `None` for other runs, without a
    /// budget, or if the figures are unknown.
    pub budget_left: Option<Amount>,
    /// Recipients who opted out because of it, if its figures were requested. `None` for a rehearsal, which opts no one
    /// out.
    pub opted_out: Option<u64>,
}

impl RunReport {
    /// Loads the run with its stored figures if they are current, or else from its requests. For an ended run without
    /// receipts, its counts are enough.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load(ledger: &dyn Ledger, run: Run) -> Result<Self, LedgerError> {
        Self::load_as(ledger, run, false).await
    }

    /// Loads the run with its figures. Only a run that was purged without figures has none.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load_with_figures(ledger: &dyn Ledger, run: Run) -> Result<Self, LedgerError> {
        Self::load_as(ledger, run, true).await
    }

    async fn load_as(ledger: &dyn Ledger, run: Run, whole: bool) -> Result<Self, LedgerError> {
        let owned = is_owned(ledger, &run).await?;
        // The sending process can have ended since the run was read, and recorded its end.
        let anew = if owned { None } else { ledger.list_runs(RunFilter::with_key(run.key)).await?.pop() };
        let run = anew.unwrap_or(run);
        let kept = if owned { None } else { RunFigures::load_stored(ledger, &run).await? };
        let counted = run.purged_at.is_some() || (!whole && !owned && run.receipts == 0);
        let figures = match kept {
            None if !counted => Some(RunFigures::load(ledger, &run, owned).await?),
            kept => kept,
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
        let senders = match view.run.sharding {
            Some(_) => ShardHolder::from_blocks(&ledger.list_owned_blocks(view.run.key).await?),
            None => Vec::new(),
        };
        let budget_left = match &figures {
            Some(figures) if whole => load_budget_left(ledger, &view.run, figures).await?,
            _ => None,
        };
        let opted_out = match whole && view.run.live {
            true => Some(ledger.count_opt_outs_from(&view.run.name()).await?),
            false => None,
        };
        Ok(Self { view, figures, approvals, senders, budget_left, opted_out })
    }

    /// The run's messages by channel. `None` if the figures are unknown or the run has no receipts.
    #[must_use]
    pub fn channels(&self) -> Option<&ChannelFigures> {
        // Without receipts, all messages are still as they were sent.
        self.figures.as_ref().map(|figures| &figures.channels).filter(|_| self.view.run.receipts > 0)
    }

    /// How many messages were delivered only in part, if its figures are known.
    #[must_use]
    pub fn count_partial(&self) -> u64 {
        self.figures.as_ref().map_or(0, |figures| figures.channels.count_partial())
    }

    /// Whether more parts might be billed than the gateway reported; `false` if the figures are unknown.
    #[must_use]
    pub fn has_unreported_parts(&self) -> bool {
        let figures = self.figures.as_ref().filter(|_| self.view.parts > 0);
        figures.is_some_and(|figures| figures.requests.parts.is_lower_bound(&self.view.counts))
    }

    /// The run as JSON, without phone numbers.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = run_json(&self.view);
        object["channels"] = self.channels().map_or_else(|| json!({}), ChannelFigures::to_json);
        add_approvals(&mut object, &self.approvals);
        let sender =
            |holder: &ShardHolder| json!({ "by": holder.name, "rows": holder.rows, "since": holder.since.to_string() });
        if !self.senders.is_empty() {
            object["senders"] = self.senders.iter().map(sender).collect();
        }
        object
    }

    /// The run with its figures as JSON.
    #[must_use]
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

/// The budget that is left for the runs that share it, if this run is the last of them.
async fn load_budget_left(ledger: &dyn Ledger, run: &Run, figures: &RunFigures) -> Result<Option<Amount>, LedgerError> {
    let limit = figures.terms.as_ref().and_then(|terms| terms.budget.cost);
    let Some(limit) = limit else { return Ok(None) };
    let runs = ledger.list_runs(RunFilter::for_campaign(&run.campaign)).await?;
    let others: Vec<Run> = runs.into_iter().filter(|other| other.key != run.key && share_budget(run, other)).collect();
    if others.iter().any(|other| other.number > run.number) {
        return Ok(None);
    }
    let mut used = figures.requests.used;
    for other in others {
        let owned = is_owned(ledger, &other).await?;
        let kept = if owned { None } else { RunFigures::load_stored(ledger, &other).await? };
        let figures = match kept {
            Some(figures) => figures,
            // The used budget of a purged run is unknown.
            None if other.purged_at.is_some() => return Ok(None),
            None => RunFigures::load(ledger, &other, owned).await?,
        };
        used = used.add_spending(figures.requests.used);
    }
    Ok(Some(if used.cost < limit { limit.saturating_sub(used.cost) } else { Amount::default() }))
}

/// The approvals of a run without the operator's confirmation, oldest first.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn load_approvals(ledger: &dyn Ledger, run: &Run) -> Result<Vec<Approval>, LedgerError> {
    Ok(ledger.list_approvals(ApprovalFilter::Run(run.key)).await?.into_iter().map(|kept| kept.approval).collect())
}

/// Adds the approvals to a JSON object, if there are any.
pub fn add_approvals(object: &mut Value, approvals: &[Approval]) {
    let approval = |approval: &Approval| json!({ "by": approval.by, "at": approval.at.to_string() });
    if !approvals.is_empty() {
        object["approved"] = approvals.iter().map(approval).collect();
    }
}

/// A run in a list of runs, as JSON.
#[must_use]
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
        "stopped": stop_reason(view),
        "why": status.reason(),
    })
}

/// A single run, as JSON.
#[must_use]
pub fn run_json(view: &RunView) -> Value {
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

/// The reason why it stopped. `None` while it is sent, or after it finished.
fn stop_reason(view: &RunView) -> Option<&'static str> {
    view.run.stop.filter(|_| view.status != RunStatus::Sending).map(StopKind::word)
}
