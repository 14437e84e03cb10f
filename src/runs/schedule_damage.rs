//! Damaged records that a schedule needs: they stop this schedule, and nothing else.

use jiff::Timestamp;
use serde_json::Value;

use super::PlanContent;
use super::armed::standing_digest;
use crate::ledger::{
    ActiveSchedule, DamagedPlan, Ledger, LedgerError, OccurrenceRecord, Plan, RunFilter, ScheduleStore,
};

/// How many of the last occurrences are looked at.
const CHECKED_OCCURRENCES: u32 = 50;

/// The schedule of this name; nothing if there is none.
///
/// # Errors
/// When its record is damaged, or the ledger cannot be read.
pub async fn find_schedule(ledger: &dyn ScheduleStore, name: &str) -> Result<Option<ActiveSchedule>, LedgerError> {
    for stored in ledger.list_schedules().await? {
        match stored {
            Ok(armed) if armed.name == name => return Ok(Some(armed)),
            Err(damaged) if damaged.name == name => return Err(damaged.error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(None)
}

/// The last occurrences of a schedule until a moment, so many at most, the last first.
///
/// A damaged record counts until somebody activates or resumes the schedule again: only later occurrences fire then. The
/// records before a damaged one are not returned, because its place among them is unknown.
///
/// # Errors
/// When a record that counts is damaged, or the ledger cannot be read.
pub async fn list_recent_occurrences(
    ledger: &dyn Ledger,
    armed: &ActiveSchedule,
    until: Timestamp,
    latest: u32,
) -> Result<Vec<OccurrenceRecord>, LedgerError> {
    let mut recent = Vec::new();
    for stored in ledger.list_occurrences(&armed.name, until, latest).await? {
        match stored {
            Ok(record) => recent.push(record),
            Err(damaged) if damaged.at.is_some_and(|at| at <= armed.since) => break,
            Err(damaged) => return Err(damaged.error),
        }
    }
    Ok(recent)
}

/// The damaged record that stops a schedule, if there is one: of an occurrence, a run, a plan or an approval of it.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn find_schedule_damage(
    ledger: &dyn Ledger,
    armed: &ActiveSchedule,
    now: Timestamp,
) -> Result<Option<LedgerError>, LedgerError> {
    match check_records(ledger, armed, now).await {
        Ok(()) => Ok(None),
        Err(error) if error.concerns_records() => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

async fn check_records(ledger: &dyn Ledger, armed: &ActiveSchedule, now: Timestamp) -> Result<(), LedgerError> {
    list_recent_occurrences(ledger, armed, now, CHECKED_OCCURRENCES).await?;
    ledger.list_runs(RunFilter::for_campaign(&armed.name)).await?;
    ledger.list_approvals(&standing_digest(armed)).await?;
    for stored in ledger.list_plans().await? {
        match stored {
            Ok(plan) if plan.at > armed.since && is_planned_of(&plan, armed) => {
                ledger.list_approvals(&plan.digest).await?;
            }
            Err(DamagedPlan { record, at, error })
                if at.is_none_or(|at| at > armed.since) && may_be_planned_of(&record, armed) =>
            {
                return Err(error);
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Whether a plan is of an occurrence of this schedule.
fn is_planned_of(plan: &Plan, armed: &ActiveSchedule) -> bool {
    mentions_schedule(&plan.record, armed)
        && serde_json::from_str(&plan.record).is_ok_and(|of| is_occurrence(&of, armed))
}

/// Whether a damaged plan may be of an occurrence of this schedule.
fn may_be_planned_of(record: &str, armed: &ActiveSchedule) -> bool {
    mentions_schedule(record, armed) && serde_json::from_str(record).map_or(true, |of| is_occurrence(&of, armed))
}

fn is_occurrence(of: &PlanContent, armed: &ActiveSchedule) -> bool {
    match of {
        PlanContent::Campaign(planned) => {
            planned.inputs.brief.name == armed.name && planned.options.occurrence.is_some()
        }
        PlanContent::Pending(_) => false,
    }
}

/// Whether the record of a plan has the campaign's name in it.
fn mentions_schedule(record: &str, armed: &ActiveSchedule) -> bool {
    record.contains(&Value::from(armed.name.as_str()).to_string())
}
