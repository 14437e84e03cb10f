//! The plan that a call is held to, and the approval that it may use.

use jiff::Timestamp;

use super::{PlanOf, PlanRefusal, PlannedCampaign};
use crate::gateway::BoxFuture;
use crate::ledger::{Approval, KeptApproval, Ledger, Plan};
use crate::runs::{Consent, Error, Proposal, Refusal, Request};

/// A plan that a call is held to.
pub(in crate::runs) struct Pin {
    /// Its digest.
    pub(super) digest: String,
    /// What was planned.
    pub(super) planned: Box<PlannedCampaign>,
    /// What was approved of it.
    pub(super) approvals: Vec<KeptApproval>,
}

/// The yes of whoever approved a plan, for what was planned.
pub(in crate::runs) struct ApprovedYes;

impl Consent for ApprovedYes {
    fn can_come(&self) -> bool {
        true
    }

    fn ask<'a>(&'a self, question: Proposal<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        let covered = matches!(question, Proposal::Begin { .. } | Proposal::GoOn { .. });
        Box::pin(async move { if covered { Ok(()) } else { Err(Refusal::NobodyToAsk) } })
    }
}

/// The plan whose digest begins like this.
pub(super) async fn find(ledger: &dyn Ledger, digest: &str) -> Result<Plan, Error> {
    let mut found = ledger.plans(&digest.to_lowercase()).await?;
    let refused = match (found.len(), digest.is_empty()) {
        (1, false) => return Ok(found.remove(0)),
        (0, _) | (_, true) => PlanRefusal::Unknown { digest: digest.to_owned() },
        _ => PlanRefusal::Ambiguous { digest: digest.to_owned() },
    };
    Err(Error::Plan(refused))
}

impl Pin {
    /// The plan that a request names; nothing where it names none.
    pub(in crate::runs) async fn of(ledger: &dyn Ledger, request: &Request) -> Result<Option<Self>, Error> {
        let Some(digest) = &request.plan else { return Ok(None) };
        let plan = find(ledger, digest).await?;
        let planned = PlanOf::campaign(&plan)?;
        let approvals = ledger.approvals(&plan.digest).await?;
        Ok(Some(Self { digest: plan.digest, planned, approvals }))
    }

    /// An approval that nobody used, for so many messages.
    pub(super) fn good(&self, now: Timestamp, messages: u64) -> Option<&Approval> {
        let good = |kept: &&KeptApproval| kept.is_good(now) && messages <= kept.approval.up_to;
        self.approvals.iter().find(good).map(|kept| &kept.approval)
    }
}
