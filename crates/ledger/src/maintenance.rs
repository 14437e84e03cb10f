//! Maintenance of a ledger: health checks, backups and damaged records. Damaged records are never used for sending.

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::{AccountRateLimit, LedgerError, LedgerFuture};

/// Checks and properties of a ledger.
pub trait LedgerMaintenance: Send + Sync {
    /// The properties that distinguish this ledger from other ledgers. They are known without a query.
    fn properties(&self) -> LedgerProperties;

    /// Checks the whole storage, including indexes. Also checks evidence of consent, and the records that belong
    /// neither to a run nor to the suppression list. If one check fails, the others are still made.
    fn check_integrity(&self) -> BoxFuture<'_, IntegrityReport>;

    /// The rate limits of all accounts, by account name.
    fn list_rate_limits(&self) -> LedgerFuture<'_, Vec<(String, AccountRateLimit)>>;

    /// The reasons why the ledger might lack messages that were sent: a backup, or unconfirmed replicas.
    fn load_risks(&self) -> LedgerFuture<'_, LedgerRisks> {
        Box::pin(async { Ok(LedgerRisks::default()) })
    }

    /// Marks a restored backup as the current ledger.
    fn mark_restored(&self) -> LedgerFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Rejects further changes, and waits until acknowledged changes are in the high-water mark and connections are
    /// closed.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// The properties that distinguish a ledger from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerProperties {
    /// The location, for display.
    pub location: String,
    /// Whether processes of several machines use the ledger.
    pub shared: bool,
    /// Whether this machine has no high-water mark of a shared ledger, so that it could not detect an older copy.
    pub lacks_high_water_mark: bool,
    /// Whether the ledger can store evidence of consent. Shared tables of early versions cannot store evidence.
    pub stores_consents: bool,
}

/// The result of checking the storage.
#[derive(Clone, Debug)]
pub struct IntegrityReport {
    /// The storage with its indexes. Checksums of records cannot detect missing index entries.
    pub storage: Result<(), LedgerError>,
    /// The damaged evidence of consent, and the damaged records that belong neither to a run nor to the suppression
    /// list.
    pub records: Result<Vec<DamagedRecord>, LedgerError>,
}

/// Reasons why a ledger might lack messages that were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerRisks {
    /// The backup that the ledger is, or was restored from.
    pub backup: Option<Backup>,
    /// The number of replicas that could take over without the latest commits.
    pub unconfirmed_replicas: u64,
}

/// The origin of a ledger that is a backup or was restored from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The time at which the backup was made. Later events are missing from the ledger.
    pub made_at: Timestamp,
    /// The time of the restore. `None` for a backup, which cannot be used for sending.
    pub restored_at: Option<Timestamp>,
}

/// The contents of a copied ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopiedLedger {
    /// The number of runs.
    pub runs: u64,
    /// The number of their rows, as far as they can be read.
    pub rows: u64,
    /// The number of runs whose copies were missing.
    pub without_copies: u64,
}

/// A damaged schedule record. It never fires.
#[derive(Clone, Debug)]
pub struct DamagedSchedule {
    /// The name of the schedule, as far as readable.
    pub name: String,
    /// The campaign file, as far as readable.
    pub file: String,
    /// The damage.
    pub error: LedgerError,
}

/// A damaged occurrence record.
#[derive(Clone, Debug)]
pub struct DamagedOccurrence {
    /// The moment of the occurrence, if readable.
    pub at: Option<Timestamp>,
    /// The damage.
    pub error: LedgerError,
}

/// A damaged plan record.
#[derive(Clone, Debug)]
pub struct DamagedPlan {
    /// The description of the plan, as far as readable.
    pub record: String,
    /// The time at which the plan was made, if readable.
    pub at: Option<Timestamp>,
    /// The damage.
    pub error: LedgerError,
}

/// A damaged run record.
#[derive(Clone, Debug)]
pub struct DamagedRun {
    /// The name of the run, as far as readable.
    pub name: String,
    /// The damage.
    pub error: LedgerError,
}

/// A damaged record that does not belong to a run, or damaged evidence of consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRecord {
    /// The record and its damage.
    pub what: String,
    /// The kind of the record.
    pub kind: RecordKind,
}

/// The kind of a damaged record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// An active schedule.
    Schedule {
        /// The name of the schedule, as far as readable.
        name: String,
        /// The campaign file, as far as readable.
        file: String,
    },
    /// An occurrence of a schedule.
    Occurrence {
        /// The schedule's name, as far as readable.
        schedule: String,
    },
    /// A plan.
    Plan,
    /// An approval or its use.
    Approval,
    /// The approval rule of an account.
    ApprovalRule,
    /// A notification in the queue.
    Notification,
    /// The rate limit of an account.
    Account,
    /// The key for hashes of forgotten numbers.
    Forgetting,
    /// Evidence of consent.
    Consent,
}
