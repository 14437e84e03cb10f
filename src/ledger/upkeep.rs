//! What those ask of the ledger who look after it, or after a server.

use futures_util::future::BoxFuture;

use super::{AccountRateLimit, Backup, DamagedRecord, LedgerFuture};

/// What a ledger tells of itself.
pub trait LedgerMaintenance: Send + Sync {
    /// Where the ledger is, as people are told it.
    fn describe_location(&self) -> String;

    /// Commits that nothing changed: `Ok` proves that the ledger can be written.
    fn check_writable(&self) -> LedgerFuture<'_, ()>;

    /// Looks at all of what the ledger is stored in, its indexes too; no checksum of a record shows what an index lacks.
    fn check_integrity(&self) -> LedgerFuture<'_, ()>;

    /// Looks at each record that no run and no suppression list has, and returns those that are damaged.
    fn list_damaged_records(&self) -> LedgerFuture<'_, Vec<DamagedRecord>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// The pace of every account that has one, by name.
    fn list_rate_limits(&self) -> LedgerFuture<'_, Vec<(String, AccountRateLimit)>>;

    /// How many replicas may take the place of the ledger without having what was just committed.
    fn count_unconfirmed_replicas(&self) -> LedgerFuture<'_, u64> {
        Box::pin(async { Ok(0) })
    }

    /// Whether the ledger is a backup, or was put back from one; nothing where it is neither.
    fn load_backup(&self) -> LedgerFuture<'_, Option<Backup>> {
        Box::pin(async { Ok(None) })
    }

    /// Whether this machine has no high-water mark of a ledger that other machines use: it could not tell an older copy of it.
    fn lacks_high_water_mark(&self) -> bool {
        false
    }

    /// Keeps that a ledger that was a backup is the one that counts from now on.
    fn mark_restored(&self) -> LedgerFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Whether processes of several machines use it.
    fn is_shared(&self) -> bool {
        false
    }

    /// Takes no more changes, and waits until what was acknowledged is marked and what was opened is closed.
    fn close(&self) -> BoxFuture<'_, ()>;
}
