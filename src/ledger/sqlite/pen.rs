//! What writes the file: one connection, and the mark that follows it.
//!
//! After the first failure it writes nothing any more: what an fsync that failed left behind is unknown, and asking again
//! on the same handle would hide it. Where another process kept the turn nothing was begun, so that is told to those who
//! asked, and the next change is tried.

use std::path::Path;
use std::sync::Arc;

use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::dialect::storage_error;
use super::ledger::TimeSource;
use super::sql::Now;
use super::turn::{self, Patience};
use crate::failpoint;
use crate::ledger::LedgerError;
use crate::ledger::mark::{HighWaterMark, MarkFile};

/// What the task writes with.
pub(super) struct WriteConnection {
    pub(super) connection: SqliteConnection,
    pub(super) mark: MarkFile,
    pub(super) path: Arc<Path>,
    pub(super) clock: TimeSource,
    pub(super) patience: Patience,
}

impl WriteConnection {
    /// Begins a transaction, once no other process has the turn.
    pub(super) async fn begin_transaction(&mut self) -> Result<(), LedgerError> {
        turn::begin_write(&mut self.connection, &self.path, self.patience).await
    }

    /// The connection, and the time of the next change.
    #[expect(clippy::unnecessary_wraps, reason = "other databases may have gone away")]
    pub(super) fn connection_and_time(&mut self) -> Result<(&mut SqliteConnection, Now), LedgerError> {
        // Asked inside the transaction, so that the times of all processes follow one another.
        Ok((&mut self.connection, Now((self.clock)().as_microsecond())))
    }

    /// Counts the commit and makes it.
    pub(super) async fn commit(&mut self) -> Result<HighWaterMark, LedgerError> {
        failpoint::pass("commit.before");
        let committed =
            count_and_commit(&mut self.connection).await.map_err(|error| storage_error(&self.path, &error))?;
        failpoint::pass("commit.after");
        Ok(committed)
    }

    /// Takes the transaction back; whether it may be tried once more, which a file that failed never is.
    pub(super) async fn roll_back(&mut self) -> bool {
        // One that never began, or that the storage ended by itself, cannot be taken back.
        let _ = sqlx::query("ROLLBACK").execute(&mut self.connection).await;
        false
    }

    /// Has the mark follow a commit.
    pub(super) fn advance_mark(&mut self, mark: HighWaterMark) -> Result<(), LedgerError> {
        self.mark.record_commit(mark).map_err(|error| {
            let reason = format!("its high-water mark cannot be written: {error}");
            LedgerError::Storage { path: self.path.display().to_string(), reason }
        })
    }

    /// Whether nothing may be written after this failure. A damaged record is none: its transaction was taken back whole.
    pub(super) fn is_fatal(error: &LedgerError) -> bool {
        !matches!(error, LedgerError::Busy { .. }) && !error.concerns_records()
    }

    /// Closes the file and its mark.
    pub(super) async fn close(mut self) {
        if let Err(error) = self.mark.sync_slots() {
            tracing::warn!("cannot write the high-water mark of the ledger `{}`: {error}", self.path.display());
        }
        // What is in the log is on the disk; in the file itself a damaged page is noticed, at the end of a log it is not.
        // Another process that reads may be in the way; it or the next one empties the log then.
        let _ = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut self.connection).await;
        let _ = self.connection.close().await;
    }
}

/// Counts a commit inside its transaction, and makes it: two statements that go to the thread of the connection at once.
async fn count_and_commit(connection: &mut SqliteConnection) -> sqlx::Result<HighWaterMark> {
    let counted = sqlx::query("UPDATE identity SET generation = generation + 1 RETURNING id, generation; COMMIT");
    // `fetch_one` would end at the row, and nothing would be committed.
    let rows = counted.fetch_all(connection).await?;
    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    Ok(HighWaterMark { id: row.try_get(0)?, generation: row.try_get(1)? })
}
