//! Nobody is forgotten in these worlds.

use roaring::RoaringBitmap;

use super::ledger::{ProcessLedger, no_copies};
use crate::ledger::{ForgetOrder, Forgetting, LedgerFuture, NewCopies, Run, RunId};

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

    fn sweep(&self) -> LedgerFuture<'_, ()> {
        unreachable!("nobody is forgotten in these worlds")
    }
}
