//! What a ledger tells of itself.

use super::ledger::SqliteLedger;
use super::pace;
use crate::ledger::{AccountPace, LedgerFuture, Upkeep};

impl Upkeep for SqliteLedger {
    fn prove_writable(&self) -> LedgerFuture<'_, ()> {
        // The commit itself is counted, so something is written.
        Box::pin(self.write(|_, _| Box::pin(async { Ok(()) })))
    }

    fn prove_sound(&self) -> LedgerFuture<'_, ()> {
        Box::pin(self.fit_for_sending())
    }

    fn paces(&self) -> LedgerFuture<'_, Vec<(String, AccountPace)>> {
        Box::pin(async move { pace::all(&self.readers).await.map_err(|failure| self.read_error(failure)) })
    }
}
