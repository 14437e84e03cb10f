//! What writes to the database: one connection, made anew when it was lost, and the mark that follows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, raw_sql};

use super::address::PostgresAddress;
use super::dialect::storage;
use super::ledger::microseconds;
use super::opening;
use super::sql::Now;
use super::succession::Succession;
use super::transaction::{self, Turn};
use super::waiting::{Waiting, may_come_back};
use crate::failpoint;
use crate::ledger::LedgerError;
use crate::ledger::mark::{Mark, MarkFile, MarkReading};

/// What the task writes with.
pub(super) struct Pen {
    address: PostgresAddress,
    place: Arc<str>,
    mark: MarkFile,
    /// How far this process knows the ledger to have come.
    furthest: Mark,
    connection: Option<PgConnection>,
    pub(super) commits: Commits,
    /// Whether the connection was lost in the middle of a transaction of which nothing was kept.
    lost: bool,
    /// Whether it is unknown what became of the last commit.
    unknown: bool,
    /// The time of the database when the transaction had the turn, and when that was here.
    began: (i64, Instant),
    heard: Arc<Heard>,
}

/// What the database told last of itself.
pub(super) struct Heard {
    /// How far its clock is ahead of the one here, in microseconds.
    pub(super) ahead: AtomicI64,
    /// The version of its tables.
    pub(super) version: AtomicI64,
}

impl Pen {
    pub(super) fn new(
        address: PostgresAddress,
        place: Arc<str>,
        (mark, furthest): (MarkFile, Mark),
        heard: Arc<Heard>,
    ) -> Self {
        let began = (0, Instant::now());
        let commits = Commits::default();
        Self { address, place, mark, furthest, connection: None, commits, lost: false, unknown: false, began, heard }
    }

    /// Begins a transaction, once no other process has the turn; connects anew as long as the database is away.
    pub(super) async fn begin(&mut self) -> Result<(), LedgerError> {
        let mut waiting = Waiting::new(Arc::clone(&self.place));
        loop {
            let error = match self.attempt().await {
                Ok(turn) => return self.took(turn),
                Err(error) => error,
            };
            self.connection = None;
            if !waiting.goes_on(&error).await {
                return Err(storage(&self.place, &error));
            }
        }
    }

    async fn attempt(&mut self) -> sqlx::Result<Turn> {
        let connection = match self.connection.take() {
            Some(connection) => self.connection.insert(connection),
            None => self.connection.insert(transaction::connect(&self.address).await?),
        };
        let turn = transaction::write(connection).await?;
        if turn.succession.doubt().is_none() {
            turn.succession.keep(connection, turn.version).await?;
        }
        Ok(turn)
    }

    /// Has the turn, unless the database does not know any more what it knew: another one may have taken its place; or
    /// somebody said that its tables are those of a newer version from now on.
    fn took(&mut self, Turn { now, mark, version, succession }: Turn) -> Result<(), LedgerError> {
        opening::known(version, &self.place)?;
        not_behind((&self.place, mark), self.furthest)?;
        no_doubt(&self.place, succession)?;
        (self.furthest, self.began) = (mark, (now, Instant::now()));
        self.heard.ahead.store(now - microseconds(), Ordering::Relaxed);
        self.heard.version.store(version, Ordering::Relaxed);
        Ok(())
    }

    /// The connection, and the time of the next change: the database's, so that machines agree about it.
    pub(super) fn at_work(&mut self) -> Result<(&mut PgConnection, Now), LedgerError> {
        let (began, since) = self.began;
        let elapsed = i64::try_from(since.elapsed().as_micros()).unwrap_or(i64::MAX);
        let connection = self.connection.as_mut().ok_or(LedgerError::Closed)?;
        Ok((connection, Now(began.saturating_add(elapsed))))
    }

    /// Counts the commit and makes it; where the connection is lost over it, the database is asked what became of it.
    pub(super) async fn commit(&mut self) -> Result<Mark, LedgerError> {
        let connection = self.connection.as_mut().ok_or(LedgerError::Closed)?;
        failpoint::pass("commit.before");
        let counted = transaction::commit(connection, self.commits.next(), self.began.0).await;
        let counted = match counted {
            Ok(mark) => mark,
            // The server took the transaction back.
            Err(error @ sqlx::Error::Database(_)) if !may_come_back(&error) => {
                return Err(storage(&self.place, &error));
            }
            Err(error) => self.find_out(&error).await?,
        };
        self.furthest = counted;
        failpoint::pass("commit.after");
        Ok(counted)
    }

    /// Asks whether the last commit was made, with the turn: whoever was in the middle of it is not any more. As long as that is
    /// unknown, the change is not made again.
    pub(super) async fn find_out(&mut self, error: &sqlx::Error) -> Result<Mark, LedgerError> {
        self.unknown = true;
        let mut waiting = Waiting::new(Arc::clone(&self.place));
        let known = loop {
            self.connection = None;
            self.begin().await?;
            let connection = self.connection.as_mut().ok_or(LedgerError::Closed)?;
            match transaction::commits_of(connection, self.commits.writer).await {
                Ok(known) => break known,
                Err(error) if waiting.goes_on(&error).await => {}
                Err(error) => return Err(storage(&self.place, &error)),
            }
        };
        self.unknown = false;
        if known == Some(self.commits.made) {
            let connection = self.connection.as_mut().ok_or(LedgerError::Closed)?;
            // With nothing else in it, this one may end as it likes.
            let _ = raw_sql("ROLLBACK").execute(connection).await;
            return Ok(self.furthest);
        }
        self.lost = true;
        Err(storage(&self.place, error))
    }

    /// Takes the transaction back; whether it may be tried once more, since the connection was lost and nothing was kept.
    pub(super) async fn give_up(&mut self) -> bool {
        let (lost, unknown) = (std::mem::take(&mut self.lost), std::mem::take(&mut self.unknown));
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
    pub(super) fn follow(&mut self, mark: Mark) -> Result<(), LedgerError> {
        self.mark.follow(mark).map_err(|error| {
            let reason = format!("its high-water mark cannot be written: {error}");
            LedgerError::Storage { path: self.place.to_string(), reason }
        })
    }

    /// Whether nothing may be written after this failure: a database that is behind what it knew stays so, and so does one
    /// that is of a newer version.
    pub(super) fn is_spent(error: &LedgerError) -> bool {
        matches!(error, LedgerError::NotNewest { .. } | LedgerError::TooNew { .. })
    }

    /// Closes the connection and the mark.
    pub(super) async fn close(mut self) {
        if let Err(error) = self.mark.finish() {
            tracing::warn!("cannot write the high-water mark of the ledger `{}`: {error}", self.place);
        }
        if let Some(connection) = self.connection {
            let _ = connection.close().await;
        }
    }
}

/// Refuses a ledger that is behind what this process knows of it.
pub(super) fn not_behind((place, mark): (&str, Mark), known: Mark) -> Result<(), LedgerError> {
    mark.against(&MarkReading::Marks(vec![known])).map_or(Ok(()), |reason| refused(place, reason))
}

/// Refuses a ledger that may be behind what others know of it.
pub(super) fn no_doubt(place: &str, succession: Succession) -> Result<(), LedgerError> {
    succession.doubt().map_or(Ok(()), |reason| refused(place, reason))
}

fn refused(place: &str, reason: String) -> Result<(), LedgerError> {
    Err(LedgerError::NotNewest { path: place.to_owned(), reason, mark: "this process".to_owned() })
}

/// The commits of one writer, which the database counts in the same transaction.
#[derive(Clone, Copy)]
pub(super) struct Commits {
    pub(super) writer: i64,
    pub(super) made: i64,
}

impl Default for Commits {
    fn default() -> Self {
        Self { writer: rand::random(), made: 0 }
    }
}

impl Commits {
    /// With the next one.
    pub(super) fn next(&mut self) -> Self {
        self.made += 1;
        *self
    }
}
