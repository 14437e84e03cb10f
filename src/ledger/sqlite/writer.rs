//! The one task that writes: it gathers the changes that wait and commits them together.
//!
//! After the first failure it writes nothing any more: what an fsync that failed left behind
//! is unknown, and asking again on the same handle would hide it.

use futures_util::future::BoxFuture;
use sqlx::{Connection, Row as _, SqliteConnection};
use tokio::sync::{mpsc, oneshot};

use super::mark::{Mark, MarkFile};
use crate::failpoint;
use crate::ledger::LedgerError;

/// The most changes in one commit.
const LARGEST_COMMIT: usize = 64;

/// Tells the asker how the commit ended.
type Acknowledge = Box<dyn FnOnce(Result<(), LedgerError>) + Send>;
/// A change, run inside the transaction; what it returns is called after the commit.
type Change = Box<dyn for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Applied> + Send>;
/// How a change went: its acknowledgement, and the failure of the storage if there was one.
type Applied = (Acknowledge, Result<(), LedgerError>);

/// A handle to the writing task.
pub(super) struct Writer(mpsc::Sender<Change>);

impl Writer {
    /// Starts the task that owns `connection`; it ends when the handle is dropped.
    pub(super) fn start(connection: SqliteConnection, path: String, mark: MarkFile) -> Self {
        let (sender, receiver) = mpsc::channel(LARGEST_COMMIT);
        tokio::spawn(write_all(connection, receiver, path, mark));
        Self(sender)
    }

    /// Applies a change in a transaction and returns its value once the commit is on the disk.
    pub(super) async fn write<T, F>(&self, change: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, LedgerError>> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let change: Change = Box::new(move |connection| {
            let result = change(connection);
            Box::pin(async move {
                let result = result.await;
                let failure = result.as_ref().map(|_| ()).map_err(Clone::clone);
                let acknowledge: Acknowledge = Box::new(move |committed| {
                    let _ = sender.send(committed.and(result));
                });
                (acknowledge, failure)
            })
        });
        self.0.send(change).await.map_err(|_| LedgerError::Closed)?;
        receiver.await.map_err(|_| LedgerError::Closed)?
    }
}

async fn write_all(
    mut connection: SqliteConnection,
    mut receiver: mpsc::Receiver<Change>,
    path: String,
    mut file: MarkFile,
) {
    let mut last = None;
    let mut waiting = Vec::with_capacity(LARGEST_COMMIT);
    while receiver.recv_many(&mut waiting, LARGEST_COMMIT).await > 0 {
        let (acknowledgements, result) = commit(&mut connection, waiting.drain(..), &path).await;
        let told = result.as_ref().map(|_| ()).map_err(Clone::clone);
        if let Ok(mark) = &result {
            last = Some(*mark);
            file.note(*mark);
        }
        for acknowledge in acknowledgements {
            acknowledge(told.clone());
        }
        if told.is_err() {
            break;
        }
    }
    file.finish(last);
    // The answer to a failed close would reach nobody; everything that was acknowledged is on the disk.
    let _ = connection.close().await;
}

/// Applies changes in one transaction and counts the commit. On a failure all of them fail, those applied before too.
async fn commit(
    connection: &mut SqliteConnection,
    changes: impl Iterator<Item = Change>,
    path: &str,
) -> (Vec<Acknowledge>, Result<Mark, LedgerError>) {
    let mut acknowledgements = Vec::new();
    let mut result = execute(connection, "BEGIN IMMEDIATE", path).await;
    for change in changes {
        if result.is_err() {
            // It is dropped without being run, and whoever asked for it is told that the ledger is closed.
            continue;
        }
        let (acknowledge, applied) = change(connection).await;
        acknowledgements.push(acknowledge);
        result = applied;
    }
    let committed = match result {
        Ok(()) => finish(connection, path).await,
        Err(error) => Err(error),
    };
    if committed.is_err() {
        let _ = execute(connection, "ROLLBACK", path).await;
    }
    (acknowledgements, committed)
}

/// Counts the commit and makes it.
async fn finish(connection: &mut SqliteConnection, path: &str) -> Result<Mark, LedgerError> {
    let counted = sqlx::query("UPDATE meta SET generation = generation + 1 RETURNING id, generation")
        .fetch_one(&mut *connection)
        .await
        .and_then(|row| Ok(Mark { id: row.try_get(0)?, generation: row.try_get(1)? }))
        .map_err(|error| storage(path, &error))?;
    failpoint::pass("commit.before");
    execute(connection, "COMMIT", path).await?;
    failpoint::pass("commit.after");
    Ok(counted)
}

async fn execute(connection: &mut SqliteConnection, sql: &'static str, path: &str) -> Result<(), LedgerError> {
    sqlx::query(sql).execute(connection).await.map(|_| ()).map_err(|error| storage(path, &error))
}

/// A failure of the storage, in its own words.
pub(super) fn storage(path: &str, error: &sqlx::Error) -> LedgerError {
    let reason = match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        other => other.to_string(),
    };
    LedgerError::Storage { path: path.to_owned(), reason }
}
