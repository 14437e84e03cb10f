//! Errors of the ledger.

use std::fmt::Display;
use std::io;

use jiff::Timestamp;

use super::Run;
use super::high_water_mark::COPIED_TO_DATABASE;

/// An error of the ledger. After a storage failure, the same handle might refuse all further writes.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LedgerError {
    /// The storage failed, for example because it is full, unreadable, read-only or corrupt.
    #[error("an operation on the ledger `{path}` failed: {reason}")]
    Storage {
        /// The ledger's file, or the address of the database.
        path: String,
        /// The storage's message.
        reason: String,
    },
    /// The database cannot be reached.
    #[error("cannot connect to the ledger `{path}`: {reason}")]
    Unreachable {
        /// The address of the database.
        path: String,
        /// The message of the driver or server.
        reason: String,
    },
    /// An earlier write failed, so this process writes nothing more.
    #[error("the ledger was closed after an earlier failure")]
    Closed,
    /// A record cannot be read.
    #[error("a ledger record cannot be read: {0}")]
    Unreadable(String),
    /// A record does not match its checksum.
    #[error("the ledger is damaged: {what} is corrupt; nothing was sent")]
    Damaged {
        /// The record.
        what: String,
    },
    /// The ledger's file is corrupt.
    #[error("the ledger is damaged: its file is corrupt ({reason}); nothing was sent")]
    DamagedFile {
        /// The storage's message.
        reason: String,
    },
    /// The ledger is older than its high-water mark, or is a different ledger.
    #[error(
        "the ledger `{path}` might not contain all messages that were sent: {reason} (high-water mark: `{mark}`); nothing was \
         sent"
    )]
    Outdated {
        /// The ledger's file, or the address of the database.
        path: String,
        /// The evidence.
        reason: String,
        /// The high-water mark.
        mark: String,
    },
    /// The inputs of a run cannot be copied.
    #[error("cannot copy the inputs to {place}: {reason}")]
    NotCopied {
        /// The location.
        place: String,
        /// The cause.
        reason: String,
    },
    /// The copies of a run are missing or damaged.
    #[error("the stored inputs in `{place}` cannot be read: {reason}")]
    CopiesUnreadable {
        /// The location.
        place: String,
        /// The cause.
        reason: String,
    },
    /// The row records of the run were purged.
    #[error("{run} was purged on {}; only its counts remain", at.strftime("%Y-%m-%d"))]
    Purged {
        /// The name of the run, such as `autumn-sale@3`.
        run: String,
        /// The time of the purge.
        at: Timestamp,
    },
    /// Another process holds a lock that this process needs, and does not release it.
    #[error("{who}; nothing was written to the ledger `{path}`")]
    Busy {
        /// The ledger's file, or the address of the database.
        path: String,
        /// The other process, and the remedy.
        who: String,
    },
    /// The target of a copy already contains another ledger.
    #[error("the database `{path}` already contains another ledger; nothing was copied")]
    Occupied {
        /// The address of the database.
        path: String,
    },
    /// A backup failed.
    #[error("no backup was written to `{folder}`: {reason}")]
    NotBackedUp {
        /// The path of the folder for the backup.
        folder: String,
        /// The cause.
        reason: String,
    },
    /// A restore failed.
    #[error("nothing was restored from `{folder}`: {reason}")]
    NotRestored {
        /// The path of the folder that contains the backup.
        folder: String,
        /// The cause.
        reason: String,
    },
    /// A run was to be claimed without its campaign lock.
    #[error(
        "the run {run} cannot be changed, because this process does not hold the lock on its campaign; this is a bug"
    )]
    CampaignNotLocked {
        /// The name of the run, such as `autumn-sale@3`.
        run: String,
    },
    /// Some machines might still use the earlier version that created the tables. That version knows only opt-outs from
    /// marketing.
    #[error("the tables in the ledger `{path}` cannot yet store opt-outs from all messages; nothing was changed")]
    NotUpgraded {
        /// The address of the database.
        path: String,
    },
    /// The ledger was written by a newer version.
    #[error("the ledger `{path}` was written by a newer version of campaign")]
    TooNew {
        /// The ledger's file, or the address of the database.
        path: String,
    },
}

impl LedgerError {
    /// Creates the error for a storage failure at `path`.
    pub(crate) fn from_storage(path: &dyn Display, reason: &dyn Display) -> Self {
        Self::Storage { path: path.to_string(), reason: reason.to_string() }
    }

    /// Creates the error for a high-water mark that cannot be written. `path` is the ledger's path.
    pub(crate) fn from_mark(path: &dyn Display, error: &io::Error) -> Self {
        Self::from_storage(path, &format!("its high-water mark cannot be written: {error}"))
    }

    /// Creates the error for a lock of the ledger at `path` that another process holds.
    pub(crate) fn from_lock_holder(path: &dyn Display, holder: impl Into<String>) -> Self {
        Self::Busy { path: path.to_string(), who: holder.into() }
    }

    /// Returns an error for a purged run.
    ///
    /// # Errors
    /// If the run was purged.
    pub fn refuse_purged(run: &Run) -> Result<(), Self> {
        run.purged_at.map_or(Ok(()), |at| Err(Self::Purged { run: run.name(), at }))
    }

    /// Whether the error concerns only single records, while the rest of the ledger stays readable and writable.
    pub fn concerns_records(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Unreadable(_) | Self::CopiesUnreadable { .. } | Self::Purged { .. })
    }

    /// Describes the damage to a record, without a remedy.
    pub fn describe_damage(&self) -> String {
        match self {
            Self::Damaged { what } => format!("{what} is corrupt"),
            error => error.reason(),
        }
    }

    /// Whether the ledger is a file whose contents were copied to a database.
    pub fn was_copied_to_database(&self) -> bool {
        matches!(self, Self::Outdated { reason, .. } if reason == COPIED_TO_DATABASE)
    }

    /// The description of the error, without a remedy.
    pub fn reason(&self) -> String {
        match self {
            Self::Outdated { reason, .. } | Self::Storage { reason, .. } => reason.clone(),
            Self::Unreachable { reason, .. } => format!("cannot connect to the database: {reason}"),
            other => other.to_string(),
        }
    }
}
