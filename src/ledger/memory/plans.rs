//! Plans and approvals in memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::adapter::MemoryLedger;
use super::contents::{Contents, instant};
use crate::ledger::rules::plans_since;
use crate::ledger::{
    Approval, ApprovalRules, ApprovalUse, KeptApproval, KeptApprovalRule, LedgerError, LedgerFuture, Plan, Plans, RunId,
};

/// What waits for a yes, and what got one.
#[derive(Clone, Debug, Default)]
pub(super) struct Desk {
    plans: BTreeMap<String, Plan>,
    /// In the order in which they came, each with its uses.
    approvals: Vec<(Approval, Vec<ApprovalUse>)>,
}

fn kept((approval, uses): &(Approval, Vec<ApprovalUse>)) -> KeptApproval {
    KeptApproval { approval: approval.clone(), used: uses.last().copied() }
}

impl Contents {
    fn use_approval(&mut self, now: i64, token: &str, run: Option<RunId>) -> Result<bool, LedgerError> {
        let at = instant(now)?;
        let known = self.desk.approvals.iter_mut().find(|(approval, _)| approval.token == token);
        let Some(known) = known.filter(|known| kept(known).is_good(at)) else { return Ok(false) };
        known.1.push(ApprovalUse { at, run });
        Ok(true)
    }

    fn approvals(&self, wanted: impl Fn(&(Approval, Vec<ApprovalUse>)) -> bool) -> Vec<KeptApproval> {
        self.desk.approvals.iter().filter(|known| wanted(known)).map(kept).collect()
    }
}

impl ApprovalRules for MemoryLedger {
    fn approval_rules(&self) -> LedgerFuture<'_, Vec<KeptApprovalRule>> {
        self.look(|contents| contents.approval_rules.clone())
    }

    fn keep_approval_rule(&self, rule: KeptApprovalRule) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| {
            contents.approval_rules.push(rule);
            Ok(())
        })
    }
}

impl Plans for MemoryLedger {
    fn keep_plan(&self, plan: Plan) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| {
            contents.desk.plans.insert(plan.digest.clone(), plan);
            Ok(())
        })
    }

    fn plans<'a>(&'a self, digest: &'a str) -> LedgerFuture<'a, Vec<Plan>> {
        self.change(move |contents, now| {
            let since = plans_since(instant(now)?);
            let known = contents.desk.plans.values();
            let mut found: Vec<Plan> =
                known.filter(|plan| plan.digest.starts_with(digest) && plan.at > since).cloned().collect();
            found.sort_by_key(|plan| Reverse(plan.at));
            Ok(found)
        })
    }

    fn approve(&self, approval: Approval) -> LedgerFuture<'_, bool> {
        self.change(move |contents, _| {
            let approvals = &mut contents.desk.approvals;
            let is_new = approvals.iter().all(|(known, _)| known.token != approval.token);
            if is_new {
                approvals.push((approval, Vec::new()));
            }
            Ok(is_new)
        })
    }

    fn approvals<'a>(&'a self, digest: &'a str) -> LedgerFuture<'a, Vec<KeptApproval>> {
        self.look(move |contents| contents.approvals(|(approval, _)| approval.digest == digest))
    }

    fn use_approval<'a>(&'a self, token: &'a str, run: Option<RunId>) -> LedgerFuture<'a, bool> {
        self.change(move |contents, now| contents.use_approval(now, token, run))
    }

    fn open_approved<'a>(&'a self, run: RunId, replaced: Option<RunId>, token: &'a str) -> LedgerFuture<'a, bool> {
        self.change(move |contents, now| {
            let approved = contents.use_approval(now, token, Some(run))?;
            if approved {
                contents.open_run(now, run, replaced)?;
            }
            Ok(approved)
        })
    }

    fn approvals_of(&self, run: RunId) -> LedgerFuture<'_, Vec<KeptApproval>> {
        self.look(move |contents| contents.approvals(|(_, uses)| uses.iter().any(|used| used.run == Some(run))))
    }
}
