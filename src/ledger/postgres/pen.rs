//! What writes to the database: one connection, made anew when it was lost, and the mark that follows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnection;
use sqlx::{ConnectOptions as _, Connection as _, raw_sql};

use super::address::PostgresAddress;
use super::dialect::{LOCK_NOT_AVAILABLE, storage};
use super::ledger::microseconds;
use super::sql::Now;
use super::transaction;
use crate::failpoint;
use crate::ledger::LedgerError;
use crate::ledger::mark::{Mark, MarkFile};

/// How long a database that does not answer is waited for before a change fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the pause before another attempt to connect is.
const PAUSE: Duration = Duration::from_millis(200);
/// After what time a person is told that the process waits.
const WORTH_TELLING: Duration = Duration::from_secs(2);

/// What the task writes with.
pub(super) struct Pen {
    address: PostgresAddress,
    place: Arc<str>,
    mark: MarkFile,
    connection: Option<PgConnection>,
    /// The time of the database when the transaction had the turn, and when that was here.
    began: (i64, Instant),
    /// How far the clock of the database is ahead of the one here, in microseconds.
    ahead: Arc<AtomicI64>,
    patience: Duration,
}

impl Pen {
    pub(super) fn new(address: PostgresAddress, place: Arc<str>, mark: MarkFile, ahead: Arc<AtomicI64>) -> Self {
        let began = (0, Instant::now());
        Self { address, place, mark, connection: None, began, ahead, patience: PATIENCE }
    }

    /// Begins a transaction, once no other process has the turn; connects anew as long as the database is away.
    pub(super) async fn begin(&mut self) -> Result<(), LedgerError> {
        let (since, mut told) = (Instant::now(), false);
        loop {
            let error = match self.attempt().await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            self.connection = None;
            if is_of_a_lock(&error) || !may_come_back(&error) || since.elapsed() > self.patience {
                return Err(storage(&self.place, &error));
            }
            if since.elapsed() > WORTH_TELLING && !std::mem::replace(&mut told, true) {
                tracing::warn!("waiting: the ledger `{}` does not answer", self.place);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn attempt(&mut self) -> sqlx::Result<()> {
        let connection = match self.connection.take() {
            Some(connection) => self.connection.insert(connection),
            None => self.connection.insert(self.address.options().connect().await?),
        };
        let now = transaction::write(connection).await?;
        self.began = (now, Instant::now());
        self.ahead.store(now - microseconds(), Ordering::Relaxed);
        Ok(())
    }

    /// The connection, and the time of the next change: the database's, so that machines agree about it.
    pub(super) fn at_work(&mut self) -> Result<(&mut PgConnection, Now), LedgerError> {
        let (began, since) = self.began;
        let elapsed = i64::try_from(since.elapsed().as_micros()).unwrap_or(i64::MAX);
        let connection = self.connection.as_mut().ok_or(LedgerError::Closed)?;
        Ok((connection, Now(began.saturating_add(elapsed))))
    }

    /// Counts the commit and makes it.
    pub(super) async fn commit(&mut self) -> Result<Mark, LedgerError> {
        let connection = self.connection.as_mut().ok_or(LedgerError::Closed)?;
        failpoint::pass("commit.before");
        let counted = transaction::commit(connection).await.map_err(|error| storage(&self.place, &error))?;
        failpoint::pass("commit.after");
        Ok(counted)
    }

    /// Takes the transaction back; a connection that cannot do that is not used again.
    pub(super) async fn give_up(&mut self) {
        if let Some(mut connection) = self.connection.take()
            && raw_sql("ROLLBACK").execute(&mut connection).await.is_ok()
        {
            self.connection = Some(connection);
        }
    }

    /// Has the mark follow a commit.
    pub(super) fn follow(&mut self, mark: Mark) -> Result<(), LedgerError> {
        self.mark.follow(mark).map_err(|error| {
            let reason = format!("its mark cannot be written: {error}");
            LedgerError::Storage { path: self.place.to_string(), reason }
        })
    }

    /// Whether nothing may be written after this failure: the next transaction begins with what the database knows.
    pub(super) fn is_spent(_: &LedgerError) -> bool {
        false
    }

    /// Closes the connection and the mark.
    pub(super) async fn close(mut self) {
        if let Err(error) = self.mark.finish() {
            tracing::warn!("cannot write the mark of the ledger `{}`: {error}", self.place);
        }
        if let Some(connection) = self.connection {
            let _ = connection.close().await;
        }
    }
}

fn is_of_a_lock(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.code().as_deref() == Some(LOCK_NOT_AVAILABLE))
}

/// Whether a database that says this may be there in a moment: it restarts, or the way to it is broken.
///
/// Of its own words those of the classes 08 (connection) and 57P (operator intervention) say so, and 53300, that there are
/// too many connections (PostgreSQL, Appendix A).
pub(super) fn may_come_back(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => {
            let code = error.code().unwrap_or_default().into_owned();
            code.starts_with("08") || code.starts_with("57P") || code == "53300"
        }
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => true,
        _ => false,
    }
}
