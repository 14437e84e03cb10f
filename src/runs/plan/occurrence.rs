//! What is planned and approved of the occurrences of a schedule.

use super::PlanOf;
use crate::ledger::{ArmedSchedule, Ledger, LedgerError, OccurrenceKey};
use crate::runs::armed::standing_digest;

/// How many approvals were given to a plan of an occurrence, or to all occurrences of its schedule, good or not.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn approvals_given(ledger: &dyn Ledger, armed: &ArmedSchedule, digest: &str) -> Result<usize, LedgerError> {
    let (own, all) = (ledger.approvals(digest).await?, ledger.approvals(&standing_digest(armed)).await?);
    Ok(own.len() + all.len())
}

/// The digest of the plan of an occurrence; nothing where none was kept.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn planned_occurrence(ledger: &dyn Ledger, key: &OccurrenceKey) -> Result<Option<String>, LedgerError> {
    let wanted = Some((key.nominal.clone(), key.zone.clone()));
    let is_of = |of: &PlanOf| match of {
        PlanOf::Campaign(planned) => planned.inputs.brief.name == key.schedule && planned.options.occurrence == wanted,
        PlanOf::Pending(_) => false,
    };
    // A damaged plan is as good as none: its occurrence is not sent.
    let plans = ledger.stored_plans().await?;
    Ok(plans.into_iter().flatten().find(|plan| PlanOf::of(plan).is_ok_and(|of| is_of(&of))).map(|plan| plan.digest))
}
