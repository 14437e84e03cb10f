//! What those ask of the ledger who look after it, or after a server.

use futures_util::future::BoxFuture;

use super::{AccountPace, Backup, DamagedRecord, LedgerFuture};

/// What a ledger tells of itself.
pub trait Upkeep: Send + Sync {
    /// Where the ledger is, as people are told it.
    fn place(&self) -> String;

    /// Commits that nothing changed: `Ok` proves that the ledger can be written.
    fn prove_writable(&self) -> LedgerFuture<'_, ()>;

    /// Looks at all of what the ledger is stored in, its indexes too; no checksum of a record shows what an index lacks.
    fn prove_sound(&self) -> LedgerFuture<'_, ()>;

    /// Looks at each record that no run and no suppression list has, and returns those that are damaged.
    fn damaged_records(&self) -> LedgerFuture<'_, Vec<DamagedRecord>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// The pace of every account that has one, by name.
    fn paces(&self) -> LedgerFuture<'_, Vec<(String, AccountPace)>>;

    /// How many replicas may take the place of the ledger without having what was just committed.
    fn unconfirmed_replicas(&self) -> LedgerFuture<'_, u64> {
        Box::pin(async { Ok(0) })
    }

    /// Whether the ledger is a backup, or was put back from one; nothing where it is neither.
    fn backup(&self) -> LedgerFuture<'_, Option<Backup>> {
        Box::pin(async { Ok(None) })
    }

    /// Whether this machine has no high-water mark of a ledger that other machines use: it could not tell an older copy of it.
    fn is_unmarked(&self) -> bool {
        false
    }

    /// Keeps that a ledger that was a backup is the one that counts from now on.
    fn put_back(&self) -> LedgerFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Whether processes of several machines use it.
    fn is_shared(&self) -> bool {
        false
    }

    /// Takes no more changes, and waits until what was acknowledged is marked and what was opened is closed.
    fn close(&self) -> BoxFuture<'_, ()>;
}
