//! Nothing is planned in a world: runs are started by the story.

use super::ledger::ProcessLedger;
use crate::ledger::{Approval, KeptApproval, LedgerFuture, Plan, PlanStore, RunId};

const NOTHING: &str = "nothing is planned in a world";

impl PlanStore for ProcessLedger {
    fn keep_plan(&self, _: Plan) -> LedgerFuture<'_, ()> {
        unreachable!("{NOTHING}")
    }

    fn find_plans<'a>(&'a self, _: &'a str) -> LedgerFuture<'a, Vec<Plan>> {
        unreachable!("{NOTHING}")
    }

    fn keep_approval(&self, _: Approval) -> LedgerFuture<'_, bool> {
        unreachable!("{NOTHING}")
    }

    fn list_approvals<'a>(&'a self, _: &'a str) -> LedgerFuture<'a, Vec<KeptApproval>> {
        unreachable!("{NOTHING}")
    }

    fn use_approval<'a>(&'a self, _: &'a str, _: Option<RunId>) -> LedgerFuture<'a, bool> {
        unreachable!("{NOTHING}")
    }

    fn open_approved_run<'a>(&'a self, _: RunId, _: Option<RunId>, _: &'a str) -> LedgerFuture<'a, bool> {
        unreachable!("{NOTHING}")
    }

    fn list_run_approvals(&self, _: RunId) -> LedgerFuture<'_, Vec<KeptApproval>> {
        unreachable!("{NOTHING}")
    }
}
