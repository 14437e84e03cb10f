//! What those ask of the ledger who look after a server.

use super::{AccountPace, LedgerFuture};

/// What a server tells of its ledger.
pub trait Upkeep: Send + Sync {
    /// Commits that nothing changed: `Ok` proves that the ledger can be written.
    fn prove_writable(&self) -> LedgerFuture<'_, ()>;

    /// The pace of every account that has one, by name.
    fn paces(&self) -> LedgerFuture<'_, Vec<(String, AccountPace)>>;
}
