//! What a ledger tells of itself.

use futures_util::future::BoxFuture;

use super::dialect::Adapter;
use super::pace;
use crate::ledger::{AccountPace, LedgerFuture, Upkeep};

impl Upkeep for Adapter {
    fn place(&self) -> String {
        Adapter::place(self)
    }

    fn prove_writable(&self) -> LedgerFuture<'_, ()> {
        // The commit itself is counted, so something is written.
        Box::pin(self.write(|_, _| Box::pin(async { Ok(()) })))
    }

    fn prove_sound(&self) -> LedgerFuture<'_, ()> {
        Box::pin(self.fit_for_sending())
    }

    fn paces(&self) -> LedgerFuture<'_, Vec<(String, AccountPace)>> {
        Box::pin(async move { self.told(pace::all(&mut *self.reader().await?).await) })
    }

    fn unconfirmed_replicas(&self) -> LedgerFuture<'_, u64> {
        Box::pin(self.replicas())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(Adapter::close(self))
    }
}
