//! Nothing is shared out in a world: a run is sent by one process at a time.

use super::ledger::ProcessLedger;
use crate::ledger::{Lease, LedgerFuture, Ownership, Run, RunId, Seat, Share, ShareHolder, Shares, StopKind};

const NOTHING: &str = "nothing is shared out in a world";

impl Shares for ProcessLedger {
    fn share_out(&self, _: Lease, _: String, _: bool) -> LedgerFuture<'_, Ownership> {
        unreachable!("{NOTHING}")
    }

    fn take_seat<'a>(&'a self, _: &'a Run, _: String) -> LedgerFuture<'a, Option<Seat>> {
        unreachable!("{NOTHING}")
    }

    fn draw_share<'a>(&'a self, _: &'a Seat, _: u32, _: bool) -> LedgerFuture<'a, Share> {
        unreachable!("{NOTHING}")
    }

    fn finish_shares<'a>(&'a self, _: &'a Seat) -> LedgerFuture<'a, ()> {
        unreachable!("{NOTHING}")
    }

    fn prove(&self, _: RunId) -> LedgerFuture<'_, ()> {
        unreachable!("{NOTHING}")
    }

    fn halt(&self, _: RunId, _: StopKind, _: String) -> LedgerFuture<'_, ()> {
        unreachable!("{NOTHING}")
    }

    fn share_holders<'a>(&'a self, _: &'a Run) -> LedgerFuture<'a, Vec<ShareHolder>> {
        unreachable!("{NOTHING}")
    }
}
