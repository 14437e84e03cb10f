//! Nobody is forgotten in these worlds.

use roaring::{RoaringBitmap, RoaringTreemap};

use super::ledger::{ProcessLedger, no_copies};
use crate::ledger::{ForgetOrder, Forgetting, LedgerFuture, NewCopies, NumberSet, Ownership, Run, RunId, StateCounts};

impl Forgetting for ProcessLedger {
    fn forget(&self, _: ForgetOrder) -> LedgerFuture<'_, ()> {
        unreachable!("nobody is forgotten in these worlds")
    }

    fn to_be_forgotten(&self) -> LedgerFuture<'_, Vec<(RunId, RoaringBitmap)>> {
        unreachable!("nobody is forgotten in these worlds")
    }

    fn forgot(&self, _: Vec<RunId>) -> LedgerFuture<'_, ()> {
        unreachable!("nobody is forgotten in these worlds")
    }

    fn prepare_other_copies<'a>(&'a self, _: &'a Run) -> LedgerFuture<'a, Box<dyn NewCopies>> {
        no_copies()
    }

    fn purge(&self, _: Run, _: StateCounts, _: u64) -> LedgerFuture<'_, Ownership> {
        unreachable!("nobody is forgotten in these worlds")
    }

    fn keep_cancelled(&self, _: RunId, _: RoaringTreemap) -> LedgerFuture<'_, ()> {
        unreachable!("nobody is forgotten in these worlds")
    }

    fn kept_cancelled(&self, _: RunId) -> LedgerFuture<'_, NumberSet> {
        unreachable!("nobody is forgotten in these worlds")
    }

    fn discard_copies<'a>(&'a self, _: &'a Run) -> LedgerFuture<'a, ()> {
        unreachable!("nobody is forgotten in these worlds")
    }

    fn sweep(&self) -> LedgerFuture<'_, ()> {
        unreachable!("nobody is forgotten in these worlds")
    }
}
