//! How a run stands, with what became of its messages by channel.

use serde_json::{Value, json};

use super::{ChannelFigures, RunView, is_owned, run_json};
use crate::ledger::{Approval, Ledger, LedgerError, Run, RunFilter, ShareHolder};

/// How a run stands.
#[derive(Debug)]
pub struct RunStanding {
    /// What it does, and what its rows came to.
    pub view: RunView,
    /// What became of its messages by channel.
    pub channels: ChannelFigures,
    /// Who agreed to it, where somebody was asked apart from the call that sent it, the earliest first.
    pub approvals: Vec<Approval>,
    /// Which processes send it, and how much of it each has; none where one sends it alone.
    pub senders: Vec<ShareHolder>,
}

impl RunStanding {
    /// Reads it: what was counted and kept where that is true still, else from the run's envelopes.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn read(ledger: &dyn Ledger, run: Run) -> Result<Self, LedgerError> {
        let owned = is_owned(ledger, &run).await?;
        // Whoever sent it may have ended since it was read, and said how.
        let anew = if owned { None } else { ledger.runs(RunFilter::one(run.key)).await?.pop() };
        let run = anew.unwrap_or(run);
        let view = RunView::read(ledger, run, owned).await?;
        let kept = if owned { None } else { ChannelFigures::kept(ledger, &view.run).await? };
        let channels = match kept {
            Some(channels) => channels,
            None => ChannelFigures::read(ledger, &view.run, owned).await?,
        };
        let approvals = approvals(ledger, &view.run).await?;
        let senders = if view.run.sharing.is_some() { ledger.share_holders(&view.run).await? } else { Vec::new() };
        Ok(Self { view, channels, approvals, senders })
    }

    /// The same for programs. Nobody's number is in it.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut object = run_json(&self.view);
        object["channels"] = self.channels.json();
        approved_json(&mut object, &self.approvals);
        let sender =
            |holder: &ShareHolder| json!({ "by": holder.by, "rows": holder.rows, "since": holder.since.to_string() });
        if !self.senders.is_empty() {
            object["senders"] = self.senders.iter().map(sender).collect();
        }
        object
    }
}

/// Who agreed to a run apart from the call that sent it, the earliest first.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn approvals(ledger: &dyn Ledger, run: &Run) -> Result<Vec<Approval>, LedgerError> {
    Ok(ledger.approvals_of(run.key).await?.into_iter().map(|kept| kept.approval).collect())
}

/// Has an object about a run tell who approved it, where somebody did.
pub fn approved_json(object: &mut Value, approvals: &[Approval]) {
    let approval = |approval: &Approval| json!({ "by": approval.by, "at": approval.at.to_string() });
    if !approvals.is_empty() {
        object["approved"] = approvals.iter().map(approval).collect();
    }
}
