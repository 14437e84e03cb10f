//! What writes to the database: one connection, made anew when it was lost, and the mark that follows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, raw_sql};

use super::address::PostgresAddress;
use super::dialect::storage_error;
use super::ledger::local_micros;
use super::opening;
use super::sql::Now;
use super::succession::ServerSuccession;
use super::transaction::{self, WriteTurn};
use super::waiting::{DatabaseWait, is_transient};
use crate::failpoint;
use crate::ledger::LedgerError;
use crate::ledger::mark::{HighWaterMark, MarkFile, MarkReading};

/// What the task writes with.
pub(super) struct WriteConnection {
    address: PostgresAddress,
    place: Arc<str>,
    mark: MarkFile,
    /// How far this process knows the ledger to have come.
    furthest: HighWaterMark,
    connection: Option<PgConnection>,
    pub(super) commits: WriterCommits,
    /// Whether the connection was lost in the middle of a transaction of which nothing was kept.
    connection_lost: bool,
    /// Whether it is unknown what became of the last commit.
    commit_unknown: bool,
    /// The time of the database when the transaction had the turn, and when that was here.
    began: (i64, Instant),
    database: Arc<DatabaseInfo>,
}

/// What the database told last of itself.
pub(super) struct DatabaseInfo {
    /// How far its clock is ahead of the one here, in microseconds.
    pub(super) clock_offset: AtomicI64,
    /// The version of its tables.
    pub(super) version: AtomicI64,
}

impl WriteConnection {
    pub(super) fn new(
        address: PostgresAddress,
        place: Arc<str>,
        (mark, furthest): (MarkFile, HighWaterMark),
        heard: Arc<DatabaseInfo>,
    ) -> Self {
        let began = (0, Instant::now());
        let commits = WriterCommits::default();
        Self {
            address,
            place,
            mark,
            furthest,
            connection: None,
            commits,
            connection_lost: false,
            commit_unknown: false,
            began,
            database: heard,
        }
    }

    /// Begins a transaction, once no other process has the turn; connects anew as long as the database is away.
    pub(super) async fn begin_transaction(&mut self) -> Result<(), LedgerError> {
        let mut waiting = DatabaseWait::new(Arc::clone(&self.place));
        loop {
            let error = match self.try_begin().await {
                Ok(turn) => return self.accept_turn(turn),
                Err(error) => error,
            };
            self.connection = None;
            if !waiting.wait_for_recovery(&error).await {
                return Err(storage_error(&self.place, &error));
            }
        }
    }

    async fn try_begin(&mut self) -> sqlx::Result<WriteTurn> {
        let connection = match self.connection.take() {
            Some(connection) => self.connection.insert(connection),
            None => self.connection.insert(transaction::open_connection(&self.address).await?),
        };
        let turn = transaction::begin_write(connection).await?;
        if turn.succession.describe_doubt().is_none() {
            turn.succession.record_server(connection, turn.version).await?;
        }
        Ok(turn)
    }

    /// Has the turn, unless the database does not know any more what it knew: another one may have taken its place; or
    /// somebody said that its tables are those of a newer version from now on.
    fn accept_turn(&mut self, WriteTurn { now, mark, version, succession }: WriteTurn) -> Result<(), LedgerError> {
        opening::check_version(version, &self.place)?;
        ensure_not_behind((&self.place, mark), self.furthest)?;
        ensure_no_doubt(&self.place, succession)?;
        (self.furthest, self.began) = (mark, (now, Instant::now()));
        self.database.clock_offset.store(now - local_micros(), Ordering::Relaxed);
        self.database.version.store(version, Ordering::Relaxed);
        Ok(())
    }

    /// The connection, and the time of the next change: the database's, so that machines agree about it.
    pub(super) fn connection_and_time(&mut self) -> Result<(&mut PgConnection, Now), LedgerError> {
        let (began, since) = self.began;
        let elapsed = i64::try_from(since.elapsed().as_micros()).unwrap_or(i64::MAX);
        let connection = self.connection.as_mut().ok_or(LedgerError::Closed)?;
        Ok((connection, Now(began.saturating_add(elapsed))))
    }

    /// Counts the commit and makes it; where the connection is lost over it, the database is asked what became of it.
    pub(super) async fn commit(&mut self) -> Result<HighWaterMark, LedgerError> {
        let connection = self.connection.as_mut().ok_or(LedgerError::Closed)?;
        failpoint::pass("commit.before");
        let counted = transaction::count_and_commit(connection, self.commits.count_next(), self.began.0).await;
        let counted = match counted {
            Ok(mark) => mark,
            // The server took the transaction back.
            Err(error @ sqlx::Error::Database(_)) if !is_transient(&error) => {
                return Err(storage_error(&self.place, &error));
            }
            Err(error) => self.resolve_commit(&error).await?,
        };
        self.furthest = counted;
        failpoint::pass("commit.after");
        Ok(counted)
    }

    /// Asks whether the last commit was made, with the turn: whoever was in the middle of it is not any more. As long as that is
    /// unknown, the change is not made again.
    pub(super) async fn resolve_commit(&mut self, error: &sqlx::Error) -> Result<HighWaterMark, LedgerError> {
        self.commit_unknown = true;
        let mut waiting = DatabaseWait::new(Arc::clone(&self.place));
        let known = loop {
            self.connection = None;
            self.begin_transaction().await?;
            let connection = self.connection.as_mut().ok_or(LedgerError::Closed)?;
            match transaction::count_writer_commits(connection, self.commits.writer).await {
                Ok(known) => break known,
                Err(error) if waiting.wait_for_recovery(&error).await => {}
                Err(error) => return Err(storage_error(&self.place, &error)),
            }
        };
        self.commit_unknown = false;
        if known == Some(self.commits.made) {
            let connection = self.connection.as_mut().ok_or(LedgerError::Closed)?;
            // With nothing else in it, this one may end as it likes.
            let _ = raw_sql("ROLLBACK").execute(connection).await;
            return Ok(self.furthest);
        }
        self.connection_lost = true;
        Err(storage_error(&self.place, error))
    }

    /// Takes the transaction back; whether it may be tried once more, since the connection was lost and nothing was kept.
    pub(super) async fn roll_back(&mut self) -> bool {
        let (lost, unknown) = (std::mem::take(&mut self.connection_lost), std::mem::take(&mut self.commit_unknown));
        if unknown {
            self.connection = None;
            return false;
        }
        let Some(mut connection) = self.connection.take() else { return lost };
        if raw_sql("ROLLBACK").execute(&mut connection).await.is_err() {
            return true;
        }
        self.connection = Some(connection);
        lost
    }

    /// Has the mark follow a commit.
    pub(super) fn advance_mark(&mut self, mark: HighWaterMark) -> Result<(), LedgerError> {
        self.mark.record_commit(mark).map_err(|error| {
            let reason = format!("its high-water mark cannot be written: {error}");
            LedgerError::Storage { path: self.place.to_string(), reason }
        })
    }

    /// Whether nothing may be written after this failure: a database that is behind what it knew stays so, and so does one
    /// that is of a newer version.
    pub(super) fn is_fatal(error: &LedgerError) -> bool {
        matches!(error, LedgerError::Outdated { .. } | LedgerError::TooNew { .. })
    }

    /// Closes the connection and the mark.
    pub(super) async fn close(mut self) {
        if let Err(error) = self.mark.sync_slots() {
            tracing::warn!("cannot write the high-water mark of the ledger `{}`: {error}", self.place);
        }
        if let Some(connection) = self.connection {
            let _ = connection.close().await;
        }
    }
}

/// Refuses a ledger that is behind what this process knows of it.
pub(super) fn ensure_not_behind((place, mark): (&str, HighWaterMark), known: HighWaterMark) -> Result<(), LedgerError> {
    mark.find_mismatch(&MarkReading::Marks(vec![known])).map_or(Ok(()), |reason| refuse_ledger(place, reason))
}

/// Refuses a ledger that may be behind what others know of it.
pub(super) fn ensure_no_doubt(place: &str, succession: ServerSuccession) -> Result<(), LedgerError> {
    succession.describe_doubt().map_or(Ok(()), |reason| refuse_ledger(place, reason))
}

fn refuse_ledger(place: &str, reason: String) -> Result<(), LedgerError> {
    Err(LedgerError::Outdated { path: place.to_owned(), reason, mark: "this process".to_owned() })
}

/// The commits of one writer, which the database counts in the same transaction.
#[derive(Clone, Copy)]
pub(super) struct WriterCommits {
    pub(super) writer: i64,
    pub(super) made: i64,
}

impl Default for WriterCommits {
    fn default() -> Self {
        Self { writer: rand::random(), made: 0 }
    }
}

impl WriterCommits {
    /// With the next one.
    pub(super) fn count_next(&mut self) -> Self {
        self.made += 1;
        *self
    }
}
