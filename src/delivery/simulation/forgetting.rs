//! Nobody is forgotten in these worlds.

use roaring::{RoaringBitmap, RoaringTreemap};

use super::ledger::{ProcessLedger, no_copies};
use crate::ledger::{ForgetOrder, Forgetting, LedgerFuture, NewCopies, NumberSet, Ownership, Run, RunId, StateCounts};

impl Forgetting for ProcessLedger {
    fn forget_number(&self, _: ForgetOrder) -> LedgerFuture<'_, ()> {
        unreachable!("nobody is forgotten in these worlds")
    }

    fn list_rows_to_forget(&self) -> LedgerFuture<'_, Vec<(RunId, RoaringBitmap)>> {
        unreachable!("nobody is forgotten in these worlds")
    }

    fn mark_rows_forgotten(&self, _: Vec<RunId>) -> LedgerFuture<'_, ()> {
        unreachable!("nobody is forgotten in these worlds")
    }

    fn prepare_replacement_copies<'a>(&'a self, _: &'a Run) -> LedgerFuture<'a, Box<dyn NewCopies>> {
        no_copies()
    }

    fn purge_run(&self, _: Run, _: StateCounts, _: u64) -> LedgerFuture<'_, Ownership> {
        unreachable!("nobody is forgotten in these worlds")
    }

    fn keep_cancelled_numbers(&self, _: RunId, _: RoaringTreemap) -> LedgerFuture<'_, ()> {
        unreachable!("nobody is forgotten in these worlds")
    }

    fn load_cancelled_numbers(&self, _: RunId) -> LedgerFuture<'_, NumberSet> {
        unreachable!("nobody is forgotten in these worlds")
    }

    fn discard_copies<'a>(&'a self, _: &'a Run) -> LedgerFuture<'a, ()> {
        unreachable!("nobody is forgotten in these worlds")
    }

    fn overwrite_free_space(&self) -> LedgerFuture<'_, ()> {
        unreachable!("nobody is forgotten in these worlds")
    }
}
