//! The one task of a process that writes: it gathers the changes that wait and commits them together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::change::{Failure, Now};
use super::dialect::{Adapter, Connection, Pen, failed};
use crate::failpoint;
use crate::ledger::LedgerError;
use crate::ledger::mark::Mark;

/// The most changes in one commit.
const LARGEST_COMMIT: usize = 64;
/// How long a change may take, with the wait for another process.
const LONGEST_WRITE: Duration = Duration::from_secs(120);

/// Tells the asker how the commit ended.
type Acknowledge = Box<dyn FnOnce(Result<(), LedgerError>) + Send>;
/// A change, run inside the transaction, or told why there is none; what it returns is called after the commit.
type Change =
    Box<dyn for<'c> FnOnce(Result<(&'c mut Connection, Now), LedgerError>) -> BoxFuture<'c, AppliedChange> + Send>;
/// How a change went: its acknowledgement, and the failure of the storage if there was one.
type AppliedChange = (Acknowledge, Result<(), LedgerError>);

/// Hears how long a commit took.
pub(in crate::ledger) type OnCommit = Arc<dyn Fn(Duration) + Send + Sync>;

/// A handle to the writing task.
pub(in crate::ledger) struct Writer(Mutex<Option<Task>>);

/// The writing task and the way to it.
struct Task {
    changes: mpsc::Sender<Change>,
    ended: JoinHandle<()>,
}

impl Adapter {
    /// Runs a change in the next transaction, and returns what it came to once that is durable.
    pub(in crate::ledger) async fn write<T, F>(&self, change: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection, Now) -> BoxFuture<'c, Result<T, Failure>> + Send + 'static,
    {
        // Each commit would bring it nearer to the mark, until it passes for the newest.
        self.newest()?;
        let open = async || Ok::<_, LedgerError>(Writer::start(self.pen().await?, Arc::clone(&self.on_commit)));
        let writer = self.writer.get_or_try_init(open).await?;
        let place = Arc::clone(&self.place);
        let written = writer.write(move |(connection, now)| {
            let result = change(connection, now);
            Box::pin(async move { result.await.map_err(|failure| failed(&place, failure)) })
        });
        // A disk that hangs is a failure too: what was asked may still be done, but nobody builds on it.
        tokio::time::timeout(LONGEST_WRITE, written).await.unwrap_or_else(|_| {
            let reason = format!("nothing was written for {} s", LONGEST_WRITE.as_secs());
            Err(LedgerError::Storage { path: self.place.to_string(), reason })
        })
    }

    /// What was read, or why it could not be.
    pub(in crate::ledger) fn told<T>(&self, read: Result<T, Failure>) -> Result<T, LedgerError> {
        read.map_err(|failure| failed(&self.place, failure))
    }
}

impl Writer {
    /// Starts the task that owns the pen; it ends when the handle is closed or dropped.
    fn start(pen: Pen, on_commit: OnCommit) -> Self {
        let (changes, receiver) = mpsc::channel(LARGEST_COMMIT);
        let ended = tokio::spawn(write_all(pen, receiver, on_commit));
        Self(Mutex::new(Some(Task { changes, ended })))
    }

    /// Applies a change in a transaction and returns its value once the commit is durable.
    async fn write<T, F>(&self, change: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce((&'c mut Connection, Now)) -> BoxFuture<'c, Result<T, LedgerError>> + Send + 'static,
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
    pub(in crate::ledger) async fn close(&self) {
        let task = self.0.lock().await.take();
        if let Some(Task { changes, ended }) = task {
            drop(changes);
            // It does not panic; if it did, everything that it acknowledged is durable.
            let _ = ended.await;
        }
    }
}

async fn write_all(mut pen: Pen, mut receiver: mpsc::Receiver<Change>, on_commit: OnCommit) {
    let mut waiting = Vec::with_capacity(LARGEST_COMMIT);
    while receiver.recv_many(&mut waiting, LARGEST_COMMIT).await > 0 {
        let began = Instant::now();
        let (acknowledgements, committed) = commit(&mut pen, waiting.drain(..)).await;
        on_commit(began.elapsed());
        // Whoever hears of a commit may build on it, so the mark knows of it first.
        let followed = committed.and_then(|mark| pen.follow(mark));
        for acknowledge in acknowledgements {
            acknowledge(followed.clone());
        }
        failpoint::pass("commit.heard");
        if followed.is_err_and(|error| Pen::is_spent(&error)) {
            break;
        }
    }
    pen.close().await;
}

/// Applies changes in one transaction and counts the commit. On a failure all of them fail, those applied before too.
async fn commit(pen: &mut Pen, changes: impl Iterator<Item = Change>) -> (Vec<Acknowledge>, Result<Mark, LedgerError>) {
    let mut acknowledgements = Vec::new();
    let mut result = pen.begin().await;
    for change in changes {
        let (acknowledge, applied) = change(result.and_then(|()| pen.at_work())).await;
        acknowledgements.push(acknowledge);
        result = applied;
    }
    let committed = match result {
        Ok(()) => pen.commit().await,
        Err(error) => Err(error),
    };
    if committed.is_err() {
        pen.give_up().await;
    }
    (acknowledgements, committed)
}
