//! How a run stands, with its figures.

use serde_json::{Value, json};

use super::{ChannelFigures, RunFigures, RunView, is_owned, run_json};
use crate::domain::Amount;
use crate::ledger::{Approval, Ledger, LedgerError, Run, RunFilter, ShardHolder, share_budget};

/// How a run stands.
#[derive(Debug)]
pub struct RunReport {
    /// What it does, and what its rows came to.
    pub view: RunView,
    /// Its figures; nothing where they were not wanted, or nobody knows them any more.
    pub figures: Option<RunFigures>,
    /// Who agreed to it, where somebody was asked apart from the call that sent it, the earliest first.
    pub approvals: Vec<Approval>,
    /// Which processes send it, and how much of it each has; none where one sends it alone.
    pub senders: Vec<ShardHolder>,
    /// What may still be spent by all runs of its edition, by the limit of the last one, which this is; nothing of any other
    /// run, where there is no limit, or where its figures are not known.
    pub budget_left: Option<Amount>,
}

impl RunReport {
    /// Reads it: what was counted and kept where that is true still, else from the run's envelopes. Of a run that ended, and of
    /// which nothing was told, its counts are enough.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn load(ledger: &dyn Ledger, run: Run) -> Result<Self, LedgerError> {
        Self::load_as(ledger, run, false).await
    }

    /// Reads it with its figures, which only a run lacks that was purged without them.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn load_with_figures(ledger: &dyn Ledger, run: Run) -> Result<Self, LedgerError> {
        Self::load_as(ledger, run, true).await
    }

    async fn load_as(ledger: &dyn Ledger, run: Run, whole: bool) -> Result<Self, LedgerError> {
        let owned = is_owned(ledger, &run).await?;
        // Whoever sent it may have ended since it was read, and said how.
        let anew = if owned { None } else { ledger.list_runs(RunFilter::with_key(run.key)).await?.pop() };
        let run = anew.unwrap_or(run);
        let kept = if owned { None } else { RunFigures::load_stored(ledger, &run).await? };
        let counted = run.purged_at.is_some() || (!whole && !owned && run.receipts == 0);
        let figures = match kept {
            None if !counted => Some(RunFigures::load(ledger, &run, owned).await?),
            kept => kept,
        };
        let view = match &figures {
            // What stands beside each other is of one pass.
            Some(figures) if owned || run.current_counts().is_none() && run.purged_at.is_none() => {
                let RunFigures { counts, requests, .. } = figures;
                RunView::from_counts(run, owned, counts.clone(), requests.parts.billed)
            }
            _ => RunView::load(ledger, run, owned).await?,
        };
        let approvals = load_approvals(ledger, &view.run).await?;
        let senders =
            if view.run.sharding.is_some() { ledger.list_shard_holders(&view.run).await? } else { Vec::new() };
        let budget_left = match &figures {
            Some(figures) if whole => load_budget_left(ledger, &view.run, figures).await?,
            _ => None,
        };
        Ok(Self { view, figures, approvals, senders, budget_left })
    }

    /// What became of its messages by channel, as far as somebody told.
    #[must_use]
    pub fn channels(&self) -> Option<&ChannelFigures> {
        // Where nobody told anything, each message is still the way that it was sent.
        self.figures.as_ref().map(|figures| &figures.channels).filter(|_| self.view.run.receipts > 0)
    }

    /// How many messages were delivered only in part, if its figures are known.
    #[must_use]
    pub fn count_partial(&self) -> u64 {
        self.figures.as_ref().map_or(0, |figures| figures.channels.count_partial())
    }

    /// Whether more parts may have been billed than the gateway told, where it told any; no where the figures are not known.
    #[must_use]
    pub fn has_unreported_parts(&self) -> bool {
        let told = self.figures.as_ref().filter(|_| self.view.parts > 0);
        told.is_some_and(|figures| figures.requests.parts.is_lower_bound(&self.view.counts))
    }

    /// The same for programs. Nobody's number is in it.
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

    /// The same with its figures.
    #[must_use]
    pub fn to_report_json(&self) -> Value {
        let mut object = self.to_json();
        object["figures"] = self.figures.as_ref().map(RunFigures::to_json).into();
        if let Some(left) = self.budget_left.filter(|_| !object["figures"]["money"].is_null()) {
            object["figures"]["money"]["budget_left"] = json!(left.trim_decimals());
        }
        object
    }
}

/// What the runs that share a run's budget may still spend, where it is the last of them.
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
            // Nobody knows what of it was used.
            None if other.purged_at.is_some() => return Ok(None),
            None => RunFigures::load(ledger, &other, owned).await?,
        };
        used = used.add_spending(figures.requests.used);
    }
    Ok(Some(if used.cost < limit { limit.saturating_sub(used.cost) } else { Amount::default() }))
}

/// Who agreed to a run apart from the call that sent it, the earliest first.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn load_approvals(ledger: &dyn Ledger, run: &Run) -> Result<Vec<Approval>, LedgerError> {
    Ok(ledger.list_run_approvals(run.key).await?.into_iter().map(|kept| kept.approval).collect())
}

/// Has an object about a run tell who approved it, where somebody did.
pub fn add_approvals(object: &mut Value, approvals: &[Approval]) {
    let approval = |approval: &Approval| json!({ "by": approval.by, "at": approval.at.to_string() });
    if !approvals.is_empty() {
        object["approved"] = approvals.iter().map(approval).collect();
    }
}
