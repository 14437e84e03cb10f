//! What is planned and approved of the occurrences of a schedule.

use super::PlanContent;
use crate::ledger::{ActiveSchedule, Ledger, LedgerError, OccurrenceKey};
use crate::runs::armed::standing_digest;

/// How many approvals were given to a plan of an occurrence, or to all occurrences of its schedule, good or not.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn count_approvals(ledger: &dyn Ledger, armed: &ActiveSchedule, digest: &str) -> Result<usize, LedgerError> {
    let (own, all) = (ledger.list_approvals(digest).await?, ledger.list_approvals(&standing_digest(armed)).await?);
    Ok(own.len() + all.len())
}

/// The digest of the plan of an occurrence; nothing where none was kept.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn find_occurrence_plan(ledger: &dyn Ledger, key: &OccurrenceKey) -> Result<Option<String>, LedgerError> {
    let wanted = Some((key.nominal.clone(), key.zone.clone()));
    let is_of = |of: &PlanContent| match of {
        PlanContent::Campaign(planned) => {
            planned.inputs.brief.name == key.schedule && planned.options.occurrence == wanted
        }
        PlanContent::Pending(_) => false,
    };
    // A damaged plan is as good as none: its occurrence is not sent.
    let plans = ledger.list_plans().await?;
    Ok(plans
        .into_iter()
        .flatten()
        .find(|plan| PlanContent::from_plan(plan).is_ok_and(|of| is_of(&of)))
        .map(|plan| plan.digest))
}
