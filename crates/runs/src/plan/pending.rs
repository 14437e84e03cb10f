//! Pending single operations: storing the address at which each can be reviewed, and their single-use approvals.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::approval::new_token;
use super::enforcement::find_plan;
use super::{PlanContent, PlanRefusal};
use crate::ports::confirm;
use crate::{Adapters, Consent, Error, Proposal, current_person};
use campaign_ledger::{Approval, ApprovalFilter, Ledger, Plan};

/// The address at which a pending operation can be reviewed: it is only in the memory of the process that will do it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRequest {
    /// The gateway's profile.
    pub gateway: String,
    /// The address of the process on loopback.
    pub address: String,
    /// The token for the address.
    pub token: String,
}

/// How long the approval of a single operation is valid.
const VALID_FOR: SignedDuration = SignedDuration::from_hours(1);

/// Stores where a pending operation can be reviewed.
///
/// # Errors
/// If the ledger cannot be written.
pub async fn store_pending(adapters: &Adapters, digest: &str, pending: PendingRequest) -> Result<(), Error> {
    let record = PlanContent::Pending(pending).to_record()?;
    let plan = Plan { digest: digest.to_owned(), record, at: (adapters.clock)() };
    Ok(adapters.ledger.keep_plan(plan).await?)
}

/// Uses an approval of this digest. `None` if there is no unused one.
///
/// # Errors
/// If the ledger cannot be written.
pub async fn use_approval(ledger: &dyn Ledger, digest: &str) -> Result<Option<Approval>, Error> {
    for kept in ledger.list_approvals(ApprovalFilter::Digest(digest)).await? {
        if ledger.use_approval(&kept.approval.token, None).await? {
            return Ok(Some(kept.approval));
        }
    }
    Ok(None)
}

/// Returns an approval whose operation was proven not to happen.
///
/// # Errors
/// If the ledger cannot be written.
pub async fn return_approval(ledger: &dyn Ledger, used: Approval) -> Result<(), Error> {
    ledger.keep_approval(Approval { token: new_token(), ..used }).await?;
    Ok(())
}

/// Finds a pending operation by the beginning of its digest, with the whole digest. `None` if the plan is of a
/// campaign.
///
/// # Errors
/// If there is no such digest.
pub async fn find_pending(ledger: &dyn Ledger, prefix: &str) -> Result<Option<(String, PendingRequest)>, Error> {
    let plan = find_plan(ledger, prefix).await?;
    Ok(match PlanContent::from_plan(&plan)? {
        PlanContent::Pending(pending) => Some((plan.digest, pending)),
        PlanContent::Campaign(_) => None,
    })
}

/// Asks for confirmation of the shown text and stores the approval for one use within an hour.
///
/// # Errors
/// If it was not approved.
pub async fn approve_pending(
    adapters: &Adapters,
    digest: &str,
    pending: &PendingRequest,
    shown: &str,
    consent: &dyn Consent,
) -> Result<Approval, Error> {
    let now = (adapters.clock)();
    if let Some(given) = adapters
        .ledger
        .list_approvals(ApprovalFilter::Digest(digest))
        .await?
        .into_iter()
        .find(|kept| kept.is_valid(now))
    {
        return Err(Error::Plan(PlanRefusal::Approved { digest: digest.to_owned(), by: given.approval.by }));
    }
    confirm(consent, Proposal::Pending { gateway: &pending.gateway, shown }).await?;
    let at = (adapters.clock)();
    let approval = Approval {
        token: new_token(),
        digest: digest.to_owned(),
        by: current_person(),
        up_to: 1,
        at,
        until: at.checked_add(VALID_FOR).unwrap_or(at),
        standing: false,
    };
    adapters.ledger.keep_approval(approval.clone()).await?;
    Ok(approval)
}
