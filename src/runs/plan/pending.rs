//! Yes to single things that an assistant wants to have done.

use jiff::SignedDuration;

use super::approve::new_token;
use super::pin::find;
use super::{Pending, PlanOf, PlanRefusal};
use crate::ledger::{Approval, Ledger, Plan};
use crate::runs::consent::confirm;
use crate::runs::{Adapters, Consent, Error, Proposal, person};

/// How long a yes to a single thing is good.
const GOOD: SignedDuration = SignedDuration::from_hours(1);

/// Keeps where something can be looked at that waits for a yes.
///
/// # Errors
/// When the ledger cannot be written.
pub async fn keep_pending(adapters: &Adapters, digest: &str, pending: Pending) -> Result<(), Error> {
    let record = PlanOf::Pending(pending).to_record()?;
    let plan = Plan { digest: digest.to_owned(), record, at: (adapters.clock)() };
    Ok(adapters.ledger.keep_plan(plan).await?)
}

/// Uses somebody's yes to what has this digest; nothing where there is none that nobody had used.
///
/// # Errors
/// When the ledger cannot be written.
pub async fn use_approval(ledger: &dyn Ledger, digest: &str) -> Result<Option<Approval>, Error> {
    for kept in ledger.approvals(digest).await? {
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
pub async fn give_approval_back(ledger: &dyn Ledger, used: Approval) -> Result<(), Error> {
    ledger.approve(Approval { token: new_token(), ..used }).await?;
    Ok(())
}

/// What waits for a yes, whose digest begins like this, with its whole digest; nothing where a run of a campaign was planned.
///
/// # Errors
/// When there is no such digest.
pub async fn find_pending(ledger: &dyn Ledger, prefix: &str) -> Result<Option<(String, Pending)>, Error> {
    let plan = find(ledger, prefix).await?;
    Ok(match PlanOf::of(&plan)? {
        PlanOf::Pending(pending) => Some((plan.digest, pending)),
        PlanOf::Campaign(_) => None,
    })
}

/// Asks for a yes to something that reads like this, and keeps it for one use within an hour.
///
/// # Errors
/// Why it was not approved.
pub async fn approve_pending(
    adapters: &Adapters,
    (digest, pending, shown): (&str, &Pending, &str),
    consent: &dyn Consent,
) -> Result<Approval, Error> {
    let now = (adapters.clock)();
    if let Some(given) = adapters.ledger.approvals(digest).await?.into_iter().find(|kept| kept.is_good(now)) {
        return Err(Error::Plan(PlanRefusal::Approved { digest: digest.to_owned(), by: given.approval.by }));
    }
    confirm(consent, Proposal::Pending { gateway: &pending.gateway, shown }).await?;
    let at = (adapters.clock)();
    let approval = Approval {
        token: new_token(),
        digest: digest.to_owned(),
        by: person(),
        up_to: 1,
        at,
        until: at.checked_add(GOOD).unwrap_or(at),
        standing: false,
    };
    adapters.ledger.approve(approval.clone()).await?;
    Ok(approval)
}
