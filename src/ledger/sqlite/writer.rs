//! The one task that writes: it gathers the changes that wait and commits them together.
//!
//! After the first failure it writes nothing any more: what an fsync that failed left behind
//! is unknown, and asking again on the same handle would hide it. Where another process kept the turn nothing was begun,
//! so that is told to those who asked, and the next change is tried.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use sqlx::{Connection, Row as _, SqliteConnection};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::mark::{Mark, MarkFile};
use super::turn::{self, Patience};
use crate::failpoint;
use crate::ledger::LedgerError;

/// The most changes in one commit.
const LARGEST_COMMIT: usize = 64;

/// Tells the asker how the commit ended.
type Acknowledge = Box<dyn FnOnce(Result<(), LedgerError>) + Send>;
/// A change, run inside the transaction, or told why there is none; what it returns is called after the commit.
type Change =
    Box<dyn for<'c> FnOnce(Result<&'c mut SqliteConnection, LedgerError>) -> BoxFuture<'c, AppliedChange> + Send>;
/// How a change went: its acknowledgement, and the failure of the storage if there was one.
type AppliedChange = (Acknowledge, Result<(), LedgerError>);

/// Hears how long a commit took.
pub(super) type OnCommit = Arc<dyn Fn(Duration) + Send + Sync>;

/// A handle to the writing task.
pub(super) struct Writer(Mutex<Option<Task>>);

/// The writing task and the way to it.
struct Task {
    changes: mpsc::Sender<Change>,
    ended: JoinHandle<()>,
}

/// What the task writes with.
pub(super) struct Pen {
    pub(super) connection: SqliteConnection,
    pub(super) mark: MarkFile,
    pub(super) path: Arc<Path>,
    pub(super) patience: Patience,
}

impl Writer {
    /// Starts the task that owns the pen; it ends when the handle is closed or dropped.
    pub(super) fn start(pen: Pen, on_commit: OnCommit) -> Self {
        let (changes, receiver) = mpsc::channel(LARGEST_COMMIT);
        let ended = tokio::spawn(pen.write_all(receiver, on_commit));
        Self(Mutex::new(Some(Task { changes, ended })))
    }

    /// Applies a change in a transaction and returns its value once the commit is on the disk.
    pub(super) async fn write<T, F>(&self, change: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, LedgerError>> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let change: Change = Box::new(move |connection| {
            let result = connection.map(change);
            Box::pin(async move {
                let result = match result {
                    Ok(result) => result.await,
                    Err(error) => Err(error),
                };
                let failure = result.as_ref().map(|_| ()).map_err(Clone::clone);
                let acknowledge: Acknowledge = Box::new(move |committed| {
                    let _ = sender.send(committed.and(result));
                });
                (acknowledge, failure)
            })
        });
        let changes = self.0.lock().await.as_ref().map(|task| task.changes.clone());
        changes.ok_or(LedgerError::Closed)?.send(change).await.map_err(|_| LedgerError::Closed)?;
        receiver.await.map_err(|_| LedgerError::Closed)?
    }

    /// Takes no more changes, and waits until what was taken is committed, marked and closed.
    pub(super) async fn close(&self) {
        let task = self.0.lock().await.take();
        if let Some(Task { changes, ended }) = task {
            drop(changes);
            // It does not panic; if it did, everything that it acknowledged is on the disk.
            let _ = ended.await;
        }
    }
}

impl Pen {
    async fn write_all(mut self, mut receiver: mpsc::Receiver<Change>, on_commit: OnCommit) {
        let mut waiting = Vec::with_capacity(LARGEST_COMMIT);
        while receiver.recv_many(&mut waiting, LARGEST_COMMIT).await > 0 {
            let began = Instant::now();
            let (acknowledgements, committed) = self.commit(waiting.drain(..)).await;
            on_commit(began.elapsed());
            // Whoever hears of a commit may build on it, so the mark knows of it first.
            let followed = committed.and_then(|mark| self.mark.follow(mark).map_err(|error| self.unmarked(&error)));
            for acknowledge in acknowledgements {
                acknowledge(followed.clone());
            }
            failpoint::pass("commit.heard");
            if followed.is_err_and(|error| !matches!(error, LedgerError::Busy { .. })) {
                break;
            }
        }
        if let Err(error) = self.mark.finish() {
            tracing::warn!("cannot write the mark of the ledger `{}`: {error}", self.path.display());
        }
        // What is in the log is on the disk; in the file itself a damaged page is noticed, at the end of a log it is not.
        // Another process that reads may be in the way; it or the next one empties the log then.
        let _ = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut self.connection).await;
        let _ = self.connection.close().await;
    }

    /// Applies changes in one transaction and counts the commit. On a failure all of them fail, those applied before too.
    async fn commit(&mut self, changes: impl Iterator<Item = Change>) -> (Vec<Acknowledge>, Result<Mark, LedgerError>) {
        let mut acknowledgements = Vec::new();
        let mut result = turn::begin(&mut self.connection, &self.path, self.patience).await;
        for change in changes {
            let (acknowledge, applied) = change(result.map(|()| &mut self.connection)).await;
            acknowledgements.push(acknowledge);
            result = applied;
        }
        let committed = match result {
            Ok(()) => self.finish().await,
            Err(error) => Err(error),
        };
        if committed.is_err() {
            // A transaction that never began, or that the storage ended by itself, cannot be taken back.
            let _ = sqlx::query("ROLLBACK").execute(&mut self.connection).await;
        }
        (acknowledgements, committed)
    }

    /// Counts the commit and makes it.
    async fn finish(&mut self) -> Result<Mark, LedgerError> {
        let counted = count(&mut self.connection).await.map_err(|error| storage(&self.path, &error))?;
        failpoint::pass("commit.before");
        let committed = sqlx::query("COMMIT").execute(&mut self.connection).await;
        committed.map_err(|error| storage(&self.path, &error))?;
        failpoint::pass("commit.after");
        Ok(counted)
    }

    fn unmarked(&self, error: &std::io::Error) -> LedgerError {
        let reason = format!("its mark cannot be written: {error}");
        LedgerError::Storage { path: self.path.display().to_string(), reason }
    }
}

/// Counts a commit, inside its transaction.
async fn count(connection: &mut SqliteConnection) -> sqlx::Result<Mark> {
    let row = sqlx::query("UPDATE meta SET generation = generation + 1 RETURNING id, generation")
        .fetch_one(connection)
        .await?;
    Ok(Mark { id: row.try_get(0)?, generation: row.try_get(1)? })
}

/// A failure of the storage, in its own words.
pub(super) fn storage(path: &Path, error: &sqlx::Error) -> LedgerError {
    let reason = match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        other => other.to_string(),
    };
    LedgerError::Storage { path: path.display().to_string(), reason }
}
