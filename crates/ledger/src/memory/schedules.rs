//! Schedules, occurrences, plans and approvals in memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::adapter::MemoryLedger;
use super::contents::{LedgerContents, parse_instant};
use crate::rules::{may_fire, oldest_kept_plan_time};
use crate::{
    ActiveSchedule, Approval, ApprovalRuleStore, ApprovalUse, DamagedOccurrence, DamagedSchedule, KeptApproval,
    KeptApprovalRule, LedgerError, LedgerFuture, NewRun, OccurrenceKey, OccurrenceOutcome, OccurrenceRecord, Plan,
    PlanStore, Run, RunId, ScheduleStore,
};

/// Active schedules and recorded occurrences.
#[derive(Clone, Debug, Default)]
pub(super) struct ScheduleTable {
    active: BTreeMap<String, ActiveSchedule>,
    occurrences: BTreeMap<OccurrenceKey, (Timestamp, OccurrenceOutcome)>,
}

fn to_record((key, (at, fate)): (&OccurrenceKey, &(Timestamp, OccurrenceOutcome))) -> OccurrenceRecord {
    OccurrenceRecord { key: key.clone(), at: *at, outcome: fate.clone() }
}

impl LedgerContents {
    /// Whether the run of an occurrence was opened. `None` if it has no run.
    fn was_opened(&self, key: &OccurrenceKey) -> Result<Option<bool>, LedgerError> {
        match self.schedules.occurrences.get(key) {
            Some((_, OccurrenceOutcome::Fired(run))) => Ok(Some(self.stored_run(*run)?.opened)),
            _ => Ok(None),
        }
    }

    fn fire_occurrence(
        &mut self,
        new: &NewRun,
        key: &OccurrenceKey,
        at: Timestamp,
    ) -> Result<Option<Run>, LedgerError> {
        let before = self.schedules.occurrences.get(key).map(|(_, fate)| fate);
        if !may_fire(before, self.was_opened(key)?.unwrap_or(false)) {
            return Ok(None);
        }
        let run = self.create_run(new)?;
        self.schedules.occurrences.insert(key.clone(), (at, OccurrenceOutcome::Fired(run.key)));
        Ok(Some(run))
    }
}

impl ScheduleStore for MemoryLedger {
    fn activate_schedule(&self, schedule: ActiveSchedule) -> LedgerFuture<'_, ()> {
        self.write_contents(move |contents, _| {
            contents.schedules.active.insert(schedule.name.clone(), schedule);
            Ok(())
        })
    }

    fn list_schedules(&self) -> LedgerFuture<'_, Vec<Result<ActiveSchedule, DamagedSchedule>>> {
        self.read_contents(|contents| contents.schedules.active.values().cloned().map(Ok).collect())
    }

    fn pause_schedule<'a>(&'a self, name: &'a str) -> LedgerFuture<'a, bool> {
        self.write_contents(move |contents, _| {
            let armed = contents.schedules.active.get_mut(name);
            Ok(armed.map(|schedule| schedule.paused = true).is_some())
        })
    }

    fn resume_schedule<'a>(&'a self, name: &'a str, since: Timestamp) -> LedgerFuture<'a, bool> {
        self.write_contents(move |contents, _| {
            let armed = contents.schedules.active.get_mut(name);
            Ok(armed.map(|schedule| (schedule.paused, schedule.since) = (false, since)).is_some())
        })
    }

    fn deactivate_schedule<'a>(&'a self, name: &'a str) -> LedgerFuture<'a, bool> {
        self.write_contents(move |contents, _| Ok(contents.schedules.active.remove(name).is_some()))
    }

    fn fire_occurrence<'a>(
        &'a self,
        new: &'a NewRun,
        key: &'a OccurrenceKey,
        at: Timestamp,
    ) -> LedgerFuture<'a, Option<Run>> {
        self.write_contents(move |contents, _| contents.fire_occurrence(new, key, at))
    }

    fn skip_occurrence<'a>(&'a self, key: &'a OccurrenceKey, at: Timestamp, reason: &'a str) -> LedgerFuture<'a, bool> {
        self.write_contents(move |contents, _| {
            let is_new = !contents.schedules.occurrences.contains_key(key);
            if is_new {
                contents.schedules.occurrences.insert(key.clone(), (at, OccurrenceOutcome::Skipped(reason.to_owned())));
            }
            Ok(is_new)
        })
    }

    fn abandon_occurrence<'a>(
        &'a self,
        key: &'a OccurrenceKey,
        at: Timestamp,
        reason: &'a str,
    ) -> LedgerFuture<'a, bool> {
        self.write_contents(move |contents, _| {
            let unopened = contents.was_opened(key)? == Some(false);
            if unopened {
                contents.schedules.occurrences.insert(key.clone(), (at, OccurrenceOutcome::Skipped(reason.to_owned())));
            }
            Ok(unopened)
        })
    }

    fn list_occurrences<'a>(
        &'a self,
        schedule: &'a str,
        until: Timestamp,
        latest: u32,
    ) -> LedgerFuture<'a, Vec<Result<OccurrenceRecord, DamagedOccurrence>>> {
        self.read_contents(move |contents| {
            let known = contents.schedules.occurrences.iter();
            let of = known.filter(|(key, (at, _))| key.schedule == schedule && *at <= until);
            let mut found: Vec<OccurrenceRecord> = of.map(to_record).collect();
            found.sort_by(|one, other| (other.at, &other.key).cmp(&(one.at, &one.key)));
            found.truncate(latest as usize);
            found.into_iter().map(Ok).collect()
        })
    }

    fn find_run_occurrence(&self, run: RunId) -> LedgerFuture<'_, Option<OccurrenceRecord>> {
        self.read_contents(move |contents| {
            let mut known = contents.schedules.occurrences.iter();
            known.find(|(_, (_, fate))| *fate == OccurrenceOutcome::Fired(run)).map(to_record)
        })
    }

    fn find_occurrence<'a>(&'a self, key: &'a OccurrenceKey) -> LedgerFuture<'a, Option<OccurrenceOutcome>> {
        self.read_contents(move |contents| contents.schedules.occurrences.get(key).map(|(_, fate)| fate.clone()))
    }
}

/// Plans and approvals.
#[derive(Clone, Debug, Default)]
pub(super) struct PlanTable {
    plans: BTreeMap<String, Plan>,
    /// In order of arrival, with their uses.
    approvals: Vec<(Approval, Vec<ApprovalUse>)>,
}

fn to_kept_approval((approval, uses): &(Approval, Vec<ApprovalUse>)) -> KeptApproval {
    KeptApproval { approval: approval.clone(), used: uses.last().copied() }
}

impl LedgerContents {
    fn use_approval(&mut self, now: i64, token: &str, run: Option<RunId>) -> Result<bool, LedgerError> {
        let at = parse_instant(now)?;
        let known = self.plans.approvals.iter_mut().find(|(approval, _)| approval.token == token);
        let Some(known) = known.filter(|known| to_kept_approval(known).is_valid(at)) else { return Ok(false) };
        known.1.push(ApprovalUse { at, run });
        Ok(true)
    }

    fn list_approvals(&self, wanted: impl Fn(&(Approval, Vec<ApprovalUse>)) -> bool) -> Vec<KeptApproval> {
        self.plans.approvals.iter().filter(|known| wanted(known)).map(to_kept_approval).collect()
    }
}

impl ApprovalRuleStore for MemoryLedger {
    fn list_approval_rules(&self) -> LedgerFuture<'_, Vec<KeptApprovalRule>> {
        self.read_contents(|contents| contents.approval_rules.clone())
    }

    fn keep_approval_rule(&self, rule: KeptApprovalRule) -> LedgerFuture<'_, ()> {
        self.write_contents(move |contents, _| {
            contents.approval_rules.push(rule);
            Ok(())
        })
    }
}

impl PlanStore for MemoryLedger {
    fn keep_plan(&self, plan: Plan) -> LedgerFuture<'_, ()> {
        self.write_contents(move |contents, _| {
            contents.plans.plans.insert(plan.digest.clone(), plan);
            Ok(())
        })
    }

    fn find_plans<'a>(&'a self, digest: &'a str) -> LedgerFuture<'a, Vec<Plan>> {
        self.write_contents(move |contents, now| {
            let since = oldest_kept_plan_time(parse_instant(now)?);
            let known = contents.plans.plans.values();
            let mut found: Vec<Plan> =
                known.filter(|plan| plan.digest.starts_with(digest) && plan.at > since).cloned().collect();
            found.sort_by_key(|plan| Reverse(plan.at));
            Ok(found)
        })
    }

    fn keep_approval(&self, approval: Approval) -> LedgerFuture<'_, bool> {
        self.write_contents(move |contents, _| {
            let approvals = &mut contents.plans.approvals;
            let is_new = approvals.iter().all(|(known, _)| known.token != approval.token);
            if is_new {
                approvals.push((approval, Vec::new()));
            }
            Ok(is_new)
        })
    }

    fn list_approvals<'a>(&'a self, digest: &'a str) -> LedgerFuture<'a, Vec<KeptApproval>> {
        self.read_contents(move |contents| contents.list_approvals(|(approval, _)| approval.digest == digest))
    }

    fn use_approval<'a>(&'a self, token: &'a str, run: Option<RunId>) -> LedgerFuture<'a, bool> {
        self.write_contents(move |contents, now| contents.use_approval(now, token, run))
    }

    fn open_approved_run<'a>(&'a self, run: RunId, replaced: Option<RunId>, token: &'a str) -> LedgerFuture<'a, bool> {
        self.write_contents(move |contents, now| {
            let approved = contents.use_approval(now, token, Some(run))?;
            if approved {
                contents.open_run(now, run, replaced)?;
            }
            Ok(approved)
        })
    }

    fn list_run_approvals(&self, run: RunId) -> LedgerFuture<'_, Vec<KeptApproval>> {
        self.read_contents(move |contents| {
            contents.list_approvals(|(_, uses)| uses.iter().any(|used| used.run == Some(run)))
        })
    }
}
