//! Plans and approvals in memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::adapter::MemoryLedger;
use super::contents::{LedgerContents, parse_instant};
use crate::ledger::rules::oldest_kept_plan_time;
use crate::ledger::{
    Approval, ApprovalRuleStore, ApprovalUse, KeptApproval, KeptApprovalRule, LedgerError, LedgerFuture, Plan,
    PlanStore, RunId,
};

/// What waits for a yes, and what got one.
#[derive(Clone, Debug, Default)]
pub(super) struct PlanTable {
    plans: BTreeMap<String, Plan>,
    /// In the order in which they came, each with its uses.
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
