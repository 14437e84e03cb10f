//! The plan that a call is held to, and the approvals that it may use.

use jiff::Timestamp;

use super::signature::verify_token;
use super::{PlanContent, PlanRefusal, PlannedCampaign};
use crate::gateway::BoxFuture;
use crate::ledger::{Approval, KeptApproval, Ledger, Plan};
use crate::manifest::{ApprovalRule, Profile};
use crate::runs::{Consent, ConsentRefusal, Error, Proposal, RunRequest};

/// A plan that a call is held to.
pub(in crate::runs) struct RequiredPlan {
    /// Its digest.
    pub(super) digest: String,
    /// What was planned, as far as this ledger knows.
    pub(super) planned: Option<Box<PlannedCampaign>>,
    /// What was approved of it.
    pub(super) approvals: Vec<KeptApproval>,
}

/// The yes of whoever approved a plan, for what was planned.
pub(in crate::runs) struct PlanConsent;

impl Consent for PlanConsent {
    fn can_confirm(&self) -> bool {
        true
    }

    fn ask<'a>(&'a self, question: Proposal<'a>) -> BoxFuture<'a, Result<(), ConsentRefusal>> {
        let covered = matches!(question, Proposal::Begin { .. } | Proposal::Resume { .. });
        Box::pin(async move { if covered { Ok(()) } else { Err(ConsentRefusal::NoTerminal) } })
    }
}

/// The plan whose digest begins like this.
pub(super) async fn find_plan(ledger: &dyn Ledger, digest: &str) -> Result<Plan, Error> {
    let mut found = ledger.find_plans(&digest.to_lowercase()).await?;
    let refused = match (found.len(), digest.is_empty()) {
        (1, false) => return Ok(found.remove(0)),
        (0, _) | (_, true) => PlanRefusal::Unknown { digest: digest.to_owned() },
        _ => PlanRefusal::Ambiguous { digest: digest.to_owned() },
    };
    Err(Error::Plan(refused))
}

/// Whether an approval is what it says: where the profile names who can approve, one of them signed it.
pub(super) fn is_valid_approval(approval: &Approval, rule: Option<&ApprovalRule>) -> bool {
    rule.is_none_or(|rule| verify_token(&approval.token, &rule.by).as_ref() == Some(approval))
}

/// The approvals of what has this digest, as far as they count.
pub(super) async fn load_approvals(
    ledger: &dyn Ledger,
    digest: &str,
    rule: Option<&ApprovalRule>,
) -> Result<Vec<KeptApproval>, Error> {
    let mut approvals = ledger.list_approvals(digest).await?;
    approvals.retain(|kept| is_valid_approval(&kept.approval, rule));
    Ok(approvals)
}

impl RequiredPlan {
    /// The plan that a request names, itself or by a token; nothing where it names none.
    pub(in crate::runs) async fn load_for_request(
        ledger: &dyn Ledger,
        request: &RunRequest,
        profile: Option<&Profile>,
    ) -> Result<Option<Self>, Error> {
        let rule = profile.and_then(|profile| profile.approval.as_ref());
        let digest = match (&request.approval, &request.plan) {
            (None, None) => return Ok(None),
            (None, Some(digest)) => find_plan(ledger, digest).await?.digest,
            (Some(token), digest) => import_approval(ledger, token, digest.as_deref(), rule).await?,
        };
        let planned = ledger.find_plans(&digest).await?.first().map(PlanContent::parse_campaign).transpose()?;
        let approvals = load_approvals(ledger, &digest, rule).await?;
        Ok(Some(Self { digest, planned, approvals }))
    }

    /// How many messages are planned, or approved where the plan is another ledger's.
    pub(super) fn count_messages(&self) -> u64 {
        let approved = || self.approvals.iter().map(|kept| kept.approval.up_to).max();
        self.planned.as_ref().map(|planned| planned.messages).or_else(approved).unwrap_or(0)
    }

    /// An approval that nobody used, for so many messages.
    pub(super) fn find_usable(&self, now: Timestamp, messages: u64) -> Option<&Approval> {
        find_usable_approval(&self.approvals, now, messages)
    }
}

/// Of some approvals one that is good still, for so many messages.
pub(super) fn find_usable_approval(approvals: &[KeptApproval], now: Timestamp, messages: u64) -> Option<&Approval> {
    let good = |kept: &&KeptApproval| kept.is_valid(now) && messages <= kept.approval.up_to;
    approvals.iter().find(good).map(|kept| &kept.approval)
}

/// Keeps an approval that was brought from another machine, and gives its digest.
async fn import_approval(
    ledger: &dyn Ledger,
    token: &str,
    digest: Option<&str>,
    rule: Option<&ApprovalRule>,
) -> Result<String, Error> {
    let Some(rule) = rule else { return Err(Error::Plan(PlanRefusal::NobodyCanSign)) };
    let proven = verify_token(token, &rule.by).filter(|approval| !approval.standing);
    let approval = proven.ok_or(Error::Plan(PlanRefusal::NotProven))?;
    if let Some(other) = digest.filter(|digest| !approval.digest.starts_with(&digest.to_lowercase())) {
        let (digest, approved) = (other.to_owned(), approval.digest);
        return Err(Error::Plan(PlanRefusal::OtherPlan { digest, approved }));
    }
    let digest = approval.digest.clone();
    ledger.keep_approval(approval).await?;
    Ok(digest)
}
