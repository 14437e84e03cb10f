//! The one task of a process that writes: it gathers the changes that wait and commits them together.

use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::change::{Now, StatementError};
use super::dialect::{self, Adapter, Connection, WriteConnection, to_ledger_error};
use super::gathered;
use super::numbers::EnvelopeNumbers;
use crate::failpoint;
use crate::ledger::mark::HighWaterMark;
use crate::ledger::{Intent, LedgerError, Permit, Settlement};

/// The most changes in one commit.
const MAX_CHANGES_PER_COMMIT: usize = 64;
/// How long a change may take, with the wait for another process.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);
/// After what time changes are not tried once more.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);

/// Makes a change within the transaction, or makes it again where nothing is left of the attempt before.
type Apply = Box<dyn for<'c> FnMut(&'c mut Connection, Now) -> BoxFuture<'c, Result<(), LedgerError>> + Send>;
/// Tells the asker how the commit ended.
type Acknowledge = Box<dyn FnOnce(Result<(), LedgerError>) + Send>;

/// A change that waits for its transaction.
struct QueuedChange {
    work: ChangeWork,
    acknowledge: Acknowledge,
}

/// What a change is, and where what it came to is put.
pub(super) enum ChangeWork {
    /// It is made by itself.
    Alone(Apply),
    /// Made with others of its kind: the intent of an envelope.
    Begin(Arc<Intent>, Arc<LastValue<Permit>>),
    /// Made with others of its kind: the outcomes of an envelope.
    Settle(Arc<Settlement>, Arc<LastValue<()>>),
}

/// Hears how long a commit took.
pub(in crate::ledger) type CommitCallback = Arc<dyn Fn(Duration) + Send + Sync>;

/// A handle to the writing task.
pub(in crate::ledger) struct Writer {
    task: Mutex<Option<WriterTask>>,
    /// Why the task ended before it was asked to.
    failed: Arc<OnceLock<LedgerError>>,
}

/// The writing task and the way to it.
struct WriterTask {
    changes: mpsc::Sender<QueuedChange>,
    /// Resolves when it has ended; nobody ever sends anything by it.
    ended: oneshot::Receiver<()>,
}

impl Adapter {
    /// Runs a change in the next transaction, and returns what it came to once that is durable.
    ///
    /// It is run again in another transaction if the database went away from the one before and kept nothing of it.
    pub(in crate::ledger) async fn write<T, F>(&self, mut change: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: for<'c> FnMut(&'c mut Connection, Now) -> BoxFuture<'c, Result<T, StatementError>> + Send + 'static,
    {
        let place = Arc::clone(&self.place);
        self.write_batched(move |kept| {
            ChangeWork::Alone(Box::new(move |connection, now| {
                let (result, place, kept) = (change(connection, now), Arc::clone(&place), Arc::clone(&kept));
                Box::pin(async move {
                    result
                        .await
                        .map(|value| kept.store_value(value))
                        .map_err(|failure| to_ledger_error(&place, failure))
                })
            }))
        })
        .await
    }

    /// Does some work in the next transaction, with what else is to be done in it, and returns what it put aside once that is
    /// durable.
    pub(super) async fn write_batched<T: Send + 'static>(
        &self,
        work: impl FnOnce(Arc<LastValue<T>>) -> ChangeWork,
    ) -> Result<T, LedgerError> {
        // Each commit would bring it nearer to the mark, until it passes for the newest.
        self.ensure_newest()?;
        let open = async || {
            let (numbers, on_commit) = (self.numbers.clone(), Arc::clone(&self.on_commit));
            Writer::start_task(self.open_write_connection().await?, numbers, on_commit, Arc::clone(&self.place))
        };
        let writer = self.writer.get_or_try_init(open).await?;
        let value = Arc::new(LastValue::default());
        let written = writer.submit_change(work(Arc::clone(&value)), value);
        // A disk that hangs is a failure too: what was asked may still be done, but nobody builds on it.
        tokio::time::timeout(WRITE_TIMEOUT, written).await.unwrap_or_else(|_| {
            let (path, reason) =
                (self.place.to_string(), format!("a write did not finish within {} s", WRITE_TIMEOUT.as_secs()));
            Err(match dialect::SHARED {
                true => LedgerError::Unreachable { path, reason },
                false => LedgerError::Storage { path, reason },
            })
        })
    }

    /// What was read, or why it could not be.
    pub(in crate::ledger) fn to_ledger_result<T>(&self, read: Result<T, StatementError>) -> Result<T, LedgerError> {
        read.map_err(|failure| to_ledger_error(&self.place, failure))
    }
}

impl Writer {
    /// Starts the task that owns the pen; it ends when the handle is closed or dropped.
    ///
    /// # Errors
    /// When the system lets it not be started.
    fn start_task(
        pen: WriteConnection,
        numbers: EnvelopeNumbers,
        on_commit: CommitCallback,
        place: Arc<str>,
    ) -> Result<Self, LedgerError> {
        let (changes, receiver) = mpsc::channel(MAX_CHANGES_PER_COMMIT);
        let failed = Arc::new(OnceLock::new());
        let (over, ended) = oneshot::channel();
        let (path, kept) = (place.to_string(), Arc::clone(&failed));
        dialect::spawn_writer(async move {
            run_writer((pen, numbers, place), receiver, on_commit, kept).await;
            drop(over);
        })
        .map_err(|error| LedgerError::Storage { path, reason: format!("cannot start a thread: {error}") })?;
        Ok(Self { task: Mutex::new(Some(WriterTask { changes, ended })), failed })
    }

    /// Does some work in a transaction and returns the value that it put aside once the commit is durable.
    async fn submit_change<T: Send + 'static>(
        &self,
        work: ChangeWork,
        value: Arc<LastValue<T>>,
    ) -> Result<T, LedgerError> {
        let (sender, receiver) = oneshot::channel();
        let acknowledge: Acknowledge = Box::new(move |committed| {
            let _ = sender.send(committed.and_then(|()| value.take_value().ok_or(LedgerError::Closed)));
        });
        let changes = self.task.lock().await.as_ref().map(|task| task.changes.clone());
        let change = QueuedChange { work, acknowledge };
        changes.ok_or(LedgerError::Closed)?.send(change).await.map_err(|_| self.closing_error())?;
        receiver.await.map_err(|_| self.closing_error())?
    }

    /// Why nothing is written any more: that it is not the newest, or of a newer version, stays true, whoever asks.
    fn closing_error(&self) -> LedgerError {
        let stays = |error: &&LedgerError| matches!(error, LedgerError::Outdated { .. } | LedgerError::TooNew { .. });
        self.failed.get().filter(stays).cloned().unwrap_or(LedgerError::Closed)
    }

    /// Takes no more changes, and waits until what was taken is committed, marked and closed.
    pub(in crate::ledger) async fn close(&self) {
        let task = self.task.lock().await.take();
        if let Some(WriterTask { changes, ended }) = task {
            drop(changes);
            // It does not panic; if it did, everything that it acknowledged is durable.
            let _ = ended.await;
        }
    }
}

/// What the last attempt at a change came to.
pub(super) struct LastValue<T>(std::sync::Mutex<Option<T>>);

impl<T> Default for LastValue<T> {
    fn default() -> Self {
        Self(std::sync::Mutex::new(None))
    }
}

impl<T> LastValue<T> {
    fn store_value(&self, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    fn take_value(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

async fn run_writer(
    (mut pen, numbers, place): (WriteConnection, EnvelopeNumbers, Arc<str>),
    mut receiver: mpsc::Receiver<QueuedChange>,
    on_commit: CommitCallback,
    failed: Arc<OnceLock<LedgerError>>,
) {
    let mut waiting = Vec::with_capacity(MAX_CHANGES_PER_COMMIT);
    while receiver.recv_many(&mut waiting, MAX_CHANGES_PER_COMMIT).await > 0 {
        let began = Instant::now();
        let mut committed = commit_and_mark((&mut pen, &numbers, &place), &mut waiting).await;
        on_commit(began.elapsed());
        let is_damage = committed.as_ref().is_err_and(LedgerError::concerns_records);
        // A damaged record fails the change that needs it, and none of those that were gathered with it.
        let alone = is_damage && waiting.len() > 1;
        for mut change in waiting.drain(..) {
            if alone && !is_final(&committed) {
                committed = commit_and_mark((&mut pen, &numbers, &place), std::slice::from_mut(&mut change)).await;
            }
            (change.acknowledge)(committed.clone());
        }
        failpoint::pass("commit.heard");
        if is_final(&committed) {
            if let Err(error) = committed {
                failed.get_or_init(|| error);
            }
            break;
        }
    }
    pen.close().await;
}

/// Whether nothing is written after this.
fn is_final(committed: &Result<(), LedgerError>) -> bool {
    committed.as_ref().is_err_and(WriteConnection::is_fatal)
}

/// Commits changes. Whoever hears of a commit may build on it, so the mark knows of it first.
async fn commit_and_mark(
    (pen, numbers, place): (&mut WriteConnection, &EnvelopeNumbers, &str),
    changes: &mut [QueuedChange],
) -> Result<(), LedgerError> {
    let mark = commit_with_retries((pen, numbers, place), changes).await?;
    pen.advance_mark(mark)
}

/// Applies changes in one transaction and counts the commit. On a failure all of them fail, those applied before too.
///
/// Where the database went away and kept nothing, they are applied once more to what it knows when it is there again.
async fn commit_with_retries(
    (pen, numbers, place): (&mut WriteConnection, &EnvelopeNumbers, &str),
    changes: &mut [QueuedChange],
) -> Result<HighWaterMark, LedgerError> {
    let began = Instant::now();
    loop {
        let committed = try_commit((pen, numbers, place), changes).await;
        if committed.is_ok() {
            return committed;
        }
        numbers.invalidate();
        if !pen.roll_back().await || began.elapsed() > RETRY_TIMEOUT {
            return committed;
        }
    }
}

async fn try_commit(
    (pen, numbers, place): (&mut WriteConnection, &EnvelopeNumbers, &str),
    changes: &mut [QueuedChange],
) -> Result<HighWaterMark, LedgerError> {
    pen.begin_transaction().await?;
    numbers.start_turn();
    // What is known of envelopes counts for whatever is done, and whatever is done for those that are about to leave.
    let settled = changes.iter().filter_map(|change| match &change.work {
        ChangeWork::Settle(settlement, kept) => Some((Arc::clone(settlement), Arc::clone(kept))),
        ChangeWork::Alone(_) | ChangeWork::Begin(..) => None,
    });
    let (settlements, kept): (Vec<_>, Vec<_>) = settled.unzip();
    if !settlements.is_empty() {
        let (connection, now) = pen.connection_and_time()?;
        gathered::settle_batch(connection, now, &settlements)
            .await
            .map_err(|failure| to_ledger_error(place, failure))?;
        kept.iter().for_each(|kept| kept.store_value(()));
    }
    for change in changes.iter_mut() {
        if let ChangeWork::Alone(apply) = &mut change.work {
            let (connection, now) = pen.connection_and_time()?;
            apply(connection, now).await?;
        }
    }
    let begun = changes.iter().filter_map(|change| match &change.work {
        ChangeWork::Begin(intent, permit) => Some((Arc::clone(intent), Arc::clone(permit))),
        ChangeWork::Alone(_) | ChangeWork::Settle(..) => None,
    });
    let (intents, kept): (Vec<_>, Vec<_>) = begun.unzip();
    if !intents.is_empty() {
        let (connection, now) = pen.connection_and_time()?;
        let permits = gathered::begin_batch(connection, now, numbers, &intents).await;
        let permits = permits.map_err(|failure| to_ledger_error(place, failure))?;
        kept.iter().zip(permits).for_each(|(kept, permit)| kept.store_value(permit));
    }
    pen.commit().await
}
