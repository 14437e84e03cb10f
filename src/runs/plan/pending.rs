//! Yes to single things that an assistant wants to have done.

use jiff::SignedDuration;

use super::approve::new_token;
use super::pin::find_plan;
use super::{PendingRequest, PlanContent, PlanRefusal};
use crate::ledger::{Approval, Ledger, Plan};
use crate::runs::consent::confirm;
use crate::runs::{Adapters, Consent, Error, Proposal, current_person};

/// How long a yes to a single thing is good.
const VALID_FOR: SignedDuration = SignedDuration::from_hours(1);

/// Keeps where something can be looked at that waits for a yes.
///
/// # Errors
/// When the ledger cannot be written.
pub async fn store_pending(adapters: &Adapters, digest: &str, pending: PendingRequest) -> Result<(), Error> {
    let record = PlanContent::Pending(pending).to_record()?;
    let plan = Plan { digest: digest.to_owned(), record, at: (adapters.clock)() };
    Ok(adapters.ledger.keep_plan(plan).await?)
}

/// Uses somebody's yes to what has this digest; nothing where there is none that nobody had used.
///
/// # Errors
/// When the ledger cannot be written.
pub async fn use_approval(ledger: &dyn Ledger, digest: &str) -> Result<Option<Approval>, Error> {
    for kept in ledger.list_approvals(digest).await? {
        if ledger.use_approval(&kept.approval.token, None).await? {
            return Ok(Some(kept.approval));
        }
    }
    Ok(None)
}

/// Gives a yes back that was used for something which surely was not done.
///
/// # Errors
/// When the ledger cannot be written.
pub async fn return_approval(ledger: &dyn Ledger, used: Approval) -> Result<(), Error> {
    ledger.keep_approval(Approval { token: new_token(), ..used }).await?;
    Ok(())
}

/// What waits for a yes, whose digest begins like this, with its whole digest; nothing where a run of a campaign was planned.
///
/// # Errors
/// When there is no such digest.
pub async fn find_pending(ledger: &dyn Ledger, prefix: &str) -> Result<Option<(String, PendingRequest)>, Error> {
    let plan = find_plan(ledger, prefix).await?;
    Ok(match PlanContent::from_plan(&plan)? {
        PlanContent::Pending(pending) => Some((plan.digest, pending)),
        PlanContent::Campaign(_) => None,
    })
}

/// Asks for a yes to something that reads like this, and keeps it for one use within an hour.
///
/// # Errors
/// Why it was not approved.
pub async fn approve_pending(
    adapters: &Adapters,
    (digest, pending, shown): (&str, &PendingRequest, &str),
    consent: &dyn Consent,
) -> Result<Approval, Error> {
    let now = (adapters.clock)();
    if let Some(given) = adapters.ledger.list_approvals(digest).await?.into_iter().find(|kept| kept.is_valid(now)) {
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
