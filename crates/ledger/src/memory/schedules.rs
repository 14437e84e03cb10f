//! Schedules, occurrences, plans and approvals in memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::adapter::MemoryLedger;
use super::contents::{LedgerContents, timestamp_from_micros};
use crate::rules::{may_fire, may_skip, oldest_kept_plan_time};
use crate::{
    ActiveSchedule, Approval, ApprovalFilter, ApprovalUse, DamagedOccurrence, DamagedPlan, DamagedSchedule,
    LedgerError, LedgerFuture, NewRun, OccurrenceFilter, OccurrenceKey, OccurrenceOutcome, OccurrenceRecord, Plan,
    PlanFilter, PlanRecord, PlanStore, Run, RunId, ScheduleStore, ScheduleUpdate, ScheduledOccurrence, StoredApproval,
    StoredPlanRecord,
};

/// Active schedules and recorded occurrences.
#[derive(Clone, Debug, Default)]
pub(super) struct ScheduleTable {
    active: BTreeMap<String, ActiveSchedule>,
    occurrences: BTreeMap<OccurrenceKey, (Timestamp, OccurrenceOutcome)>,
}

fn to_record((key, (at, outcome)): (&OccurrenceKey, &(Timestamp, OccurrenceOutcome))) -> OccurrenceRecord {
    OccurrenceRecord { key: key.clone(), at: *at, outcome: outcome.clone() }
}

impl LedgerContents {
    /// The outcome of an occurrence, and whether its run was opened.
    fn find_outcome_and_run_state(
        &self,
        key: &OccurrenceKey,
    ) -> Result<(Option<&OccurrenceOutcome>, bool), LedgerError> {
        let outcome = self.schedules.occurrences.get(key).map(|(_, outcome)| outcome);
        match outcome {
            Some(OccurrenceOutcome::Fired(run)) => Ok((outcome, self.stored_run(*run)?.opened)),
            _ => Ok((outcome, false)),
        }
    }

    pub(super) fn fire_occurrence(
        &mut self,
        new: &NewRun,
        ScheduledOccurrence { key, at }: &ScheduledOccurrence,
    ) -> Result<Option<Run>, LedgerError> {
        let (before, was_opened) = self.find_outcome_and_run_state(key)?;
        if !may_fire(before, was_opened) {
            return Ok(None);
        }
        let run = self.create_run(new)?;
        self.schedules.occurrences.insert(key.clone(), (*at, OccurrenceOutcome::Fired(run.key)));
        Ok(Some(run))
    }
}

impl ScheduleStore for MemoryLedger {
    fn update_schedules(&self, change: ScheduleUpdate) -> LedgerFuture<'_, bool> {
        self.write_contents(move |contents, _| {
            match change {
                ScheduleUpdate::Activate(schedule) => {
                    contents.schedules.active.insert(schedule.name.clone(), schedule);
                }
                ScheduleUpdate::Order { name, order } => {
                    let active = &mut contents.schedules.active;
                    let Some(schedule) = active.remove(&name) else { return Ok(false) };
                    active.extend(order.apply(schedule).map(|changed| (name, changed)));
                }
                ScheduleUpdate::Skip { occurrence: ScheduledOccurrence { key, at }, reason, condition } => {
                    let (before, was_opened) = contents.find_outcome_and_run_state(&key)?;
                    if !may_skip(condition, before, was_opened) {
                        return Ok(false);
                    }
                    contents.schedules.occurrences.insert(key, (at, OccurrenceOutcome::Skipped(reason)));
                }
            }
            Ok(true)
        })
    }

    fn list_schedules(&self) -> LedgerFuture<'_, Vec<Result<ActiveSchedule, DamagedSchedule>>> {
        self.read_contents(|contents| contents.schedules.active.values().cloned().map(Ok).collect())
    }

    fn list_occurrences<'a>(
        &'a self,
        filter: OccurrenceFilter<'a>,
    ) -> LedgerFuture<'a, Vec<Result<OccurrenceRecord, DamagedOccurrence>>> {
        self.read_contents(move |contents| {
            let matches = |(key, (at, outcome)): &(&OccurrenceKey, &(Timestamp, OccurrenceOutcome))| match filter {
                OccurrenceFilter::Latest { schedule, until, .. } => key.schedule == schedule && *at <= until,
                OccurrenceFilter::Key(expected) => *key == expected,
                OccurrenceFilter::Run(run) => *outcome == OccurrenceOutcome::Fired(run),
            };
            let occurrences = contents.schedules.occurrences.iter();
            let mut records: Vec<OccurrenceRecord> = occurrences.filter(matches).map(to_record).collect();
            // Latest first.
            records.sort_by(|first, second| (second.at, &second.key).cmp(&(first.at, &first.key)));
            if let OccurrenceFilter::Latest { most, .. } = filter {
                records.truncate(most as usize);
            }
            records.into_iter().map(Ok).collect()
        })
    }
}

/// Plans and approvals.
#[derive(Clone, Debug, Default)]
pub(super) struct PlanTable {
    plans: BTreeMap<String, Plan>,
    /// In order of arrival, with their uses.
    approvals: Vec<(Approval, Vec<ApprovalUse>)>,
}

fn to_stored_approval((approval, uses): &(Approval, Vec<ApprovalUse>)) -> StoredApproval {
    StoredApproval { approval: approval.clone(), used: uses.last().copied() }
}

impl LedgerContents {
    pub(super) fn use_approval(&mut self, now: i64, token: &str, run: Option<RunId>) -> Result<bool, LedgerError> {
        let at = timestamp_from_micros(now)?;
        let stored = self.plans.approvals.iter_mut().find(|(approval, _)| approval.token == token);
        let valid = stored.filter(|stored| to_stored_approval(stored).is_valid(at));
        let Some((_, uses)) = valid else { return Ok(false) };
        uses.push(ApprovalUse { at, run });
        Ok(true)
    }
}

impl PlanStore for MemoryLedger {
    fn store_record(&self, record: PlanRecord) -> LedgerFuture<'_, bool> {
        self.write_contents(move |contents, now| {
            match record {
                PlanRecord::Plan(plan) => drop(contents.plans.plans.insert(plan.digest.clone(), plan)),
                PlanRecord::Approval(approval) => {
                    let approvals = &mut contents.plans.approvals;
                    if approvals.iter().any(|(known, _)| known.token == approval.token) {
                        return Ok(false);
                    }
                    approvals.push((approval, Vec::new()));
                }
                PlanRecord::Use { token, run } => return contents.use_approval(now, &token, run),
                PlanRecord::Rule(rule) => contents.approval_rules.push(rule),
            }
            Ok(true)
        })
    }

    fn list_records<'a>(
        &'a self,
        filter: PlanFilter<'a>,
    ) -> LedgerFuture<'a, Vec<Result<StoredPlanRecord, DamagedPlan>>> {
        let now = self.now();
        self.read_contents(move |contents| {
            let records: Vec<StoredPlanRecord> = match filter {
                PlanFilter::Plans(digest) => {
                    contents.list_plans(now, digest).into_iter().map(StoredPlanRecord::Plan).collect()
                }
                PlanFilter::Approvals(filter) => {
                    contents.list_approvals(filter).map(StoredPlanRecord::Approval).collect()
                }
                PlanFilter::Rules => contents.approval_rules.iter().cloned().map(StoredPlanRecord::Rule).collect(),
            };
            records.into_iter().map(Ok).collect()
        })
    }
}

impl LedgerContents {
    fn list_plans(&self, now: Timestamp, digest: &str) -> Vec<Plan> {
        let since = oldest_kept_plan_time(now);
        let stored = self.plans.plans.values();
        let mut plans: Vec<Plan> =
            stored.filter(|plan| plan.digest.starts_with(digest) && plan.at > since).cloned().collect();
        plans.sort_by_key(|plan| Reverse(plan.at));
        plans
    }

    fn list_approvals<'a>(&'a self, filter: ApprovalFilter<'a>) -> impl Iterator<Item = StoredApproval> + 'a {
        let matches = move |(approval, uses): &&(Approval, Vec<ApprovalUse>)| match filter {
            ApprovalFilter::Digest(digest) => approval.digest == digest,
            ApprovalFilter::Run(run) => uses.iter().any(|used| used.run == Some(run)),
        };
        self.plans.approvals.iter().filter(matches).map(to_stored_approval)
    }
}
