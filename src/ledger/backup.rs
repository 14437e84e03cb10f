//! Backups of a ledger: whole copies in a folder, and what a ledger that was put back from one remembers of it.

use jiff::Timestamp;

/// That a ledger is a backup, or was put back from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// When the backup was made: what happened later the ledger does not know.
    pub made_at: Timestamp,
    /// When it was put back; nothing as long as it is a backup, with which nothing is sent.
    pub restored_at: Option<Timestamp>,
}

/// How much was copied of a ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopiedLedger {
    /// The runs.
    pub runs: u64,
    /// Their rows.
    pub rows: u64,
    /// Runs whose copies were not there any more.
    pub without_copies: u64,
}
