//! The writer task: commits the pending changes of this process together.

use std::iter::repeat;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::counted_messages::AcceptedRows;
use super::dialect::{self, Adapter, Connection, WriteConnection, to_ledger_error};
use super::envelopes::{self, EnvelopeNumbers};
use super::receipts;
use super::{Now, StatementError};
use crate::high_water_mark::HighWaterMark;
use crate::{Intent, LedgerError, NewReceipt, Permit, ReceiptOutcome, Settlement};
use campaign_core::failpoint;

/// The maximum number of changes in one commit. It is large, because most of the time of a commit is spent on the
/// fsync, which many webhooks can share.
const MAX_CHANGES_PER_COMMIT: usize = 1_024;
/// The longest duration of a change, including the wait for other processes.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);
/// Changes are not retried after this time.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);

/// Makes a change within a transaction. Called again if the previous attempt was rolled back.
type Apply = Box<dyn for<'c> FnMut(&'c mut Connection, Now) -> BoxFuture<'c, Result<(), LedgerError>> + Send>;
/// Reports how the commit ended.
type Acknowledge = Box<dyn FnOnce(Result<(), LedgerError>) + Send>;

/// A change that waits for its transaction.
struct QueuedChange {
    work: ChangeWork,
    acknowledge: Acknowledge,
}

/// The work of a change, and the slot for its result.
pub(super) enum ChangeWork {
    /// A single change.
    Alone(Apply),
    /// The intent of an envelope, batched with other intents.
    Begin(Arc<Intent>, Arc<LastValue<Permit>>),
    /// The outcomes of an envelope, batched with other outcomes.
    Settle(Arc<Settlement>, Arc<LastValue<()>>),
    /// The receipts of a webhook or a poll, batched with other receipts.
    StoreReceipts(Arc<[NewReceipt]>, Arc<LastValue<Vec<ReceiptOutcome>>>),
}

/// Called with the duration of each commit.
pub(crate) type CommitCallback = Arc<dyn Fn(Duration) + Send + Sync>;

/// A handle of the writer task.
pub(crate) struct Writer {
    task: Mutex<Option<WriterTask>>,
    /// The reason why the task ended unexpectedly.
    failed: Arc<OnceLock<LedgerError>>,
}

/// The writer task and its channel.
struct WriterTask {
    changes: mpsc::Sender<QueuedChange>,
    /// Resolves when the task has ended; nothing is ever sent.
    ended: oneshot::Receiver<()>,
}

impl Adapter {
    /// Runs a change in the next transaction and returns the result once the change is durable.
    ///
    /// If the database became unavailable and discarded the transaction, the change runs again in another transaction.
    pub(crate) async fn write<T, F>(&self, mut change: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: for<'c> FnMut(&'c mut Connection, Now) -> BoxFuture<'c, Result<T, StatementError>> + Send + 'static,
    {
        let place = Arc::clone(&self.place);
        self.write_batched(move |slot| {
            ChangeWork::Alone(Box::new(move |connection, now| {
                let (result, place, slot) = (change(connection, now), Arc::clone(&place), Arc::clone(&slot));
                Box::pin(async move {
                    result
                        .await
                        .map(|value| slot.store_value(value))
                        .map_err(|failure| to_ledger_error(&place, failure))
                })
            }))
        })
        .await
    }

    /// Adds work to the next transaction and returns the result once the transaction is durable.
    pub(super) async fn write_batched<T: Send + 'static>(
        &self,
        work: impl FnOnce(Arc<LastValue<T>>) -> ChangeWork,
    ) -> Result<T, LedgerError> {
        // Commits to an outdated ledger would bring it closer to its high-water mark, until it looked like the newest
        // ledger.
        self.ensure_newest()?;
        let open = async || {
            let (numbers, on_commit) = (self.numbers.clone(), Arc::clone(&self.on_commit));
            Writer::start_task(self.open_write_connection().await?, numbers, on_commit, Arc::clone(&self.place))
        };
        let writer = self.writer.get_or_try_init(open).await?;
        let value = Arc::new(LastValue::default());
        let written = writer.submit_change(work(Arc::clone(&value)), value);
        // A disk that hangs counts as a failure too. The change might still be made, but no caller relies on it.
        tokio::time::timeout(WRITE_TIMEOUT, written).await.unwrap_or_else(|_| {
            let (path, reason) =
                (self.place.to_string(), format!("a write did not finish within {} s", WRITE_TIMEOUT.as_secs()));
            Err(match dialect::SHARED {
                true => LedgerError::Unreachable { path, reason },
                false => LedgerError::Storage { path, reason },
            })
        })
    }

    /// Converts a failed read to an error that names the ledger.
    pub(crate) fn to_ledger_result<T>(&self, read: Result<T, StatementError>) -> Result<T, LedgerError> {
        read.map_err(|failure| to_ledger_error(&self.place, failure))
    }
}

impl Writer {
    /// Starts the task that owns the write connection. The task ends when the handle is closed or dropped.
    ///
    /// # Errors
    /// If the system cannot start a thread for the task.
    fn start_task(
        connection: WriteConnection,
        numbers: EnvelopeNumbers,
        on_commit: CommitCallback,
        place: Arc<str>,
    ) -> Result<Self, LedgerError> {
        let (changes, receiver) = mpsc::channel(MAX_CHANGES_PER_COMMIT);
        let failed = Arc::new(OnceLock::new());
        let (done, ended) = oneshot::channel();
        let (path, failure) = (place.to_string(), Arc::clone(&failed));
        dialect::spawn_writer(async move {
            let target = CommitTarget { connection, numbers, accepted: AcceptedRows::default(), place };
            run_writer(target, receiver, on_commit, failure).await;
            drop(done);
        })
        .map_err(|error| LedgerError::Storage { path, reason: format!("cannot start a thread: {error}") })?;
        Ok(Self { task: Mutex::new(Some(WriterTask { changes, ended })), failed })
    }

    /// Queues work and returns its result once the commit is durable.
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

    /// The error for changes after the writer has closed. If the ledger was outdated or belongs to a newer version,
    /// every caller gets that error.
    fn closing_error(&self) -> LedgerError {
        let is_permanent =
            |error: &&LedgerError| matches!(error, LedgerError::Outdated { .. } | LedgerError::TooNew { .. });
        self.failed.get().filter(is_permanent).cloned().unwrap_or(LedgerError::Closed)
    }

    /// Stops accepting changes, and waits until all accepted changes are committed and the connection is closed.
    pub(crate) async fn close(&self) {
        let task = self.task.lock().await.take();
        if let Some(WriterTask { changes, ended }) = task {
            drop(changes);
            // If the task panicked, everything that it acknowledged is durable anyway.
            let _ = ended.await;
        }
    }
}

/// The result of the last attempt at a change.
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

/// Changes of one kind that are made together, and the slots for their results.
struct Batch<I: ?Sized, T> {
    inputs: Vec<Arc<I>>,
    results: Vec<Arc<LastValue<T>>>,
}

impl<I: ?Sized, T> Batch<I, T> {
    fn new() -> Self {
        Self { inputs: Vec::new(), results: Vec::new() }
    }

    fn push(&mut self, input: &Arc<I>, result: &Arc<LastValue<T>>) {
        self.inputs.push(Arc::clone(input));
        self.results.push(Arc::clone(result));
    }

    /// Stores the results, which are in the order of the inputs.
    fn store_results(self, results: impl IntoIterator<Item = T>) {
        self.results.iter().zip(results).for_each(|(slot, result)| slot.store_value(result));
    }
}

/// The state that commits use: the write connection, the envelope numbers and accepted rows that this process knows,
/// and the name of the ledger.
struct CommitTarget {
    connection: WriteConnection,
    numbers: EnvelopeNumbers,
    accepted: AcceptedRows,
    place: Arc<str>,
}

/// Commits queued changes until the handle is closed or the writer fails for good. Then closes the connection.
async fn run_writer(
    mut target: CommitTarget,
    mut receiver: mpsc::Receiver<QueuedChange>,
    on_commit: CommitCallback,
    failed: Arc<OnceLock<LedgerError>>,
) {
    let mut waiting = Vec::with_capacity(MAX_CHANGES_PER_COMMIT);
    while receiver.recv_many(&mut waiting, MAX_CHANGES_PER_COMMIT).await > 0 {
        let began = Instant::now();
        let mut committed = target.commit_and_mark(&mut waiting).await;
        on_commit(began.elapsed());
        let is_damage = committed.as_ref().is_err_and(LedgerError::concerns_records);
        // A damaged record fails only the change that needs it, not the others in its batch.
        let retries_alone = is_damage && waiting.len() > 1;
        for mut change in waiting.drain(..) {
            if retries_alone && !is_final(&committed) {
                committed = target.commit_and_mark(std::slice::from_mut(&mut change)).await;
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
    target.connection.close().await;
}

/// Whether the writer ends after this result.
fn is_final(committed: &Result<(), LedgerError>) -> bool {
    committed.as_ref().is_err_and(WriteConnection::is_fatal)
}

impl CommitTarget {
    /// Commits changes and advances the high-water mark before any caller relies on the commit.
    async fn commit_and_mark(&mut self, changes: &mut [QueuedChange]) -> Result<(), LedgerError> {
        let mark = self.commit_with_retries(changes).await?;
        self.connection.mark.record_commit(mark).map_err(|error| LedgerError::from_mark(&self.place, &error))
    }

    /// Applies changes in one transaction, increments the generation and commits. If one change fails, all of them
    /// fail.
    ///
    /// If the database became unavailable and discarded the transaction, the changes are applied again once it is back.
    async fn commit_with_retries(&mut self, changes: &mut [QueuedChange]) -> Result<HighWaterMark, LedgerError> {
        let began = Instant::now();
        loop {
            let committed = self.try_commit(changes).await;
            if committed.is_ok() {
                return committed;
            }
            self.numbers.invalidate();
            self.accepted = AcceptedRows::default();
            if !self.connection.roll_back().await || began.elapsed() > RETRY_TIMEOUT {
                return committed;
            }
        }
    }

    async fn try_commit(&mut self, changes: &mut [QueuedChange]) -> Result<HighWaterMark, LedgerError> {
        let Self { connection: writer, numbers, accepted, place } = self;
        let to_error = |failure| to_ledger_error(place, failure);
        writer.begin_transaction().await?;
        numbers.clear_transaction_numbers();
        let (mut settled, mut received, mut separate, mut intents) =
            (Batch::new(), Batch::new(), Vec::new(), Batch::new());
        for change in changes {
            match &mut change.work {
                ChangeWork::Settle(settlement, result) => settled.push(settlement, result),
                ChangeWork::StoreReceipts(receipts, result) => received.push(receipts, result),
                ChangeWork::Alone(apply) => separate.push(apply),
                ChangeWork::Begin(intent, result) => intents.push(intent, result),
            }
        }
        // Outcomes come first, so that all other changes see them; intents come last, so that they see all other
        // changes.
        if !settled.inputs.is_empty() {
            let (connection, now) = writer.connection_and_time()?;
            envelopes::settle_batch(connection, now, &settled.inputs).await.map_err(to_error)?;
            settled.store_results(repeat(()));
        }
        if !received.inputs.is_empty() {
            let (connection, now) = writer.connection_and_time()?;
            let stored = receipts::store_batch(connection, now, accepted, &received.inputs).await;
            let outcomes = stored.map_err(to_error)?;
            received.store_results(outcomes);
        }
        for apply in separate {
            let (connection, now) = writer.connection_and_time()?;
            apply(connection, now).await?;
        }
        if !intents.inputs.is_empty() {
            let (connection, now) = writer.connection_and_time()?;
            let permits = envelopes::begin_batch(connection, now, numbers, &intents.inputs).await.map_err(to_error)?;
            intents.store_results(permits);
        }
        writer.commit().await
    }
}
