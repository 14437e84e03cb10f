//! Why the ledger could not do what was asked.

use jiff::Timestamp;

use super::Run;
use super::mark::COPIED_TO_DATABASE;

/// A failure of the ledger. After one the run stops; nothing is written again on the same handle.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LedgerError {
    /// The storage failed: full, unreadable, read-only, corrupt.
    #[error("the ledger `{path}` failed: {reason}")]
    Storage {
        /// The ledger's file.
        path: String,
        /// The storage's words.
        reason: String,
    },
    /// The connection to the database broke, or there is none.
    #[error("cannot connect to the ledger `{path}`: {reason}")]
    Unreachable {
        /// The address of the database.
        path: String,
        /// The driver's or the server's words.
        reason: String,
    },
    /// An earlier write failed, so nothing more is written by this process.
    #[error("the ledger was closed after an earlier failure")]
    Closed,
    /// A record cannot be read.
    #[error("a ledger record cannot be read: {0}")]
    Unreadable(String),
    /// A record is not as it was written.
    #[error("the ledger is damaged: {what} is corrupt; nothing was sent")]
    Damaged {
        /// The record.
        what: String,
    },
    /// The ledger's file is not as it was written.
    #[error("the ledger is damaged: its file is corrupt ({reason}); nothing was sent")]
    DamagedFile {
        /// The storage's words.
        reason: String,
    },
    /// The ledger is not the one that was written last.
    #[error(
        "the ledger `{path}` might not contain all messages that were sent: {reason} (high-water mark: `{mark}`); nothing was \
         sent"
    )]
    Outdated {
        /// The ledger's file.
        path: String,
        /// How that is known.
        reason: String,
        /// The mark that knows it.
        mark: String,
    },
    /// What a run would be sent from cannot be copied.
    #[error("cannot copy the inputs to {place}: {reason}")]
    NotCopied {
        /// Where they would be.
        place: String,
        /// Why not.
        reason: String,
    },
    /// The copies of a run are missing or damaged.
    #[error("the stored inputs in `{place}` cannot be read: {reason}")]
    CopiesUnreadable {
        /// Where they are, or would be.
        place: String,
        /// Why not.
        reason: String,
    },
    /// What the ledger had of the rows of a run was removed.
    #[error("{run} was purged on {}; only its counts remain", at.strftime("%Y-%m-%d"))]
    Purged {
        /// The run.
        run: String,
        /// When.
        at: Timestamp,
    },
    /// Another process has the turn to write and does not give it up.
    #[error("{who}; nothing was written to the ledger `{path}`")]
    Busy {
        /// The ledger's file.
        path: String,
        /// Who has it, and what to do.
        who: String,
    },
    /// A ledger was to be taken over where there is another one.
    #[error("the database `{path}` already contains another ledger; nothing was copied")]
    Occupied {
        /// The address of the database.
        path: String,
    },
    /// A backup could not be made.
    #[error("no backup was written to `{folder}`: {reason}")]
    NotBackedUp {
        /// Where it would be.
        folder: String,
        /// Why not.
        reason: String,
    },
    /// A backup could not be put back.
    #[error("nothing was restored from `{folder}`: {reason}")]
    NotRestored {
        /// Where it is, or would be.
        folder: String,
        /// Why not.
        reason: String,
    },
    /// A run was to be taken by somebody who does not hold its campaign.
    #[error("the run {run} cannot be changed, because this process has not locked its campaign; this is a bug")]
    CampaignNotLocked {
        /// The run.
        run: String,
    },
    /// The ledger belongs to a newer version.
    #[error("the ledger `{path}` was written by a newer version of campaign")]
    TooNew {
        /// The ledger's file.
        path: String,
    },
}

impl LedgerError {
    /// Refuses a run of which nothing is known any more but its counts.
    ///
    /// # Errors
    /// When it was purged.
    pub(crate) fn refuse_purged(run: &Run) -> Result<(), Self> {
        run.purged_at.map_or(Ok(()), |at| Err(Self::Purged { run: run.name(), at }))
    }

    /// Whether the failure concerns single records. Everything else in the ledger can still be read and written.
    #[must_use]
    pub fn concerns_records(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Unreadable(_) | Self::CopiesUnreadable { .. } | Self::Purged { .. })
    }

    /// What is wrong with a record, without what to do about it.
    #[must_use]
    pub fn describe_damage(&self) -> String {
        match self {
            Self::Damaged { what } => format!("{what} is corrupt"),
            error => error.reason(),
        }
    }

    /// Whether the ledger is a file whose contents were copied to a database.
    #[must_use]
    pub fn was_copied_to_database(&self) -> bool {
        matches!(self, Self::Outdated { reason, .. } if reason == COPIED_TO_DATABASE)
    }

    /// What happened, without what to do about it.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Outdated { reason, .. } | Self::Storage { reason, .. } => reason.clone(),
            Self::Unreachable { reason, .. } => format!("cannot connect to the database: {reason}"),
            other => other.to_string(),
        }
    }
}
