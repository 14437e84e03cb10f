//! What those ask of the ledger who look after it, or after a server.

use super::{AccountPace, LedgerFuture};

/// What a ledger tells of itself.
pub trait Upkeep: Send + Sync {
    /// Commits that nothing changed: `Ok` proves that the ledger can be written.
    fn prove_writable(&self) -> LedgerFuture<'_, ()>;

    /// Looks at all of what the ledger is stored in, its indexes too; no checksum of a record shows what an index lacks.
    fn prove_sound(&self) -> LedgerFuture<'_, ()>;

    /// The pace of every account that has one, by name.
    fn paces(&self) -> LedgerFuture<'_, Vec<(String, AccountPace)>>;
}
