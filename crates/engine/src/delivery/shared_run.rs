//! Shared runs: a leader divides a run into shards, and several workers, including the leader, draw and send them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::snapshot::Snapshot;
use super::tally::{SendEnding, Stop, StopKind};
use campaign_core::domain::OperationOutcome;
use campaign_core::failpoint;
use campaign_ledger::{
    Allowance, EnvelopeRecord, Lease, Ledger, LedgerError, Ownership, RowSpan, RowState, RowUpdate, Run, RunFilter,
    RunUpdate, ShardDraw, ShardWorker, StopRequest,
};

/// The interval of checks while other workers hold shards.
pub const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The reason why a worker draws no more shards of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawEnd {
    /// All rows are drawn, and no worker holds a shard.
    Finished,
    /// The worker stopped.
    Stopped,
    /// The run has ended, or was sharded again.
    RunOver,
}

/// Callbacks of a worker that sends a run together with others.
pub trait ShardSender: Sync {
    /// An error that ends the work.
    type Error: From<LedgerError> + Send;

    /// Sends the drawn rows of a run with the engine.
    fn send_drawn_rows(
        &self,
        run: &Run,
        lease: Lease,
        snapshot: &Snapshot,
        shards: ShardSource,
    ) -> impl Future<Output = Result<SendEnding, Self::Error>> + Send;

    /// Called when the shards of a dead worker are taken over; `doubtful` is the number of envelopes that are in doubt
    /// from then on.
    fn note_takeover(&self, run: &Run, shards: usize, doubtful: usize);

    /// Waits briefly for other workers. Returns a stop if the wait must end.
    fn wait_for_others(&self, run: &Run) -> impl Future<Output = Result<Option<Stop>, Self::Error>> + Send;
}

/// A worker that sends runs together with others.
pub struct Participant<'p, S> {
    /// The common ledger.
    pub ledger: &'p Arc<dyn Ledger>,
    /// The display name of the worker.
    pub by: String,
    /// The number of rows per draw.
    pub size: u32,
    /// The callbacks of the sending process.
    pub sender: &'p S,
}

impl<S: ShardSender> Participant<'_, S> {
    /// Stops the run for all workers.
    async fn halt_run(&self, run: &Run, stop: &Stop) -> Result<(), LedgerError> {
        let request = StopRequest::Halt { kind: stop.kind, reason: stop.reason.clone() };
        self.ledger.update_runs(vec![run.key], RunUpdate::Stop(request)).await
    }

    /// Sends shards of a run until none are left for this worker. Stops the run for all workers if continuing would
    /// do harm.
    ///
    /// # Errors
    /// If the work cannot continue.
    pub async fn join_run(&self, run: &Run) -> Result<(SendEnding, DrawEnd), S::Error> {
        let (ending, draw_end) = self.send_shards(run, None).await?;
        if let Some(stop) = ending.stopped.as_ref().filter(|stop| !stop.is_local && stops_all_workers(stop.kind)) {
            self.halt_run(run, stop).await?;
        }
        Ok((ending, draw_end))
    }

    /// Divides a run into shards, sends some of them, and waits until no worker holds a shard. After a stop, waits at
    /// most `max_wait`. `None` if another process holds the run.
    ///
    /// `terms` are stored for the other workers. `is_proven` means that the limit for rejected first messages
    /// does not apply.
    ///
    /// # Errors
    /// If the work cannot continue.
    pub async fn lead_run(
        &self,
        run: &Run,
        lease: Lease,
        terms: &str,
        is_proven: bool,
        max_wait: Duration,
    ) -> Result<Option<SendEnding>, S::Error> {
        let (mut ending, mut last_planned) = (SendEnding::default(), u64::MAX);
        loop {
            let current = Snapshot::load(self.ledger.as_ref(), run, true).await?;
            let planned = current.counts.get(RowState::Planned);
            // Rows that were planned again are sent too, while their number decreases.
            if planned >= last_planned {
                break;
            }
            last_planned = planned;
            let proven = is_proven || current.has_accepted();
            match self.ledger.update_rows(lease, RowUpdate::Sharded { terms: terms.to_owned(), proven }).await? {
                Ownership::Held => {}
                Ownership::Lost => return Ok(None),
            }
            failpoint::pass("run.shared_out");
            // Reloads the run with the identifiers of its retry orders and its sharding.
            let run = self.reload_run(run).await?;
            let (next, draw_end) = self.send_shards(&run, Some(lease)).await?;
            ending = ending.merge(next);
            match draw_end {
                DrawEnd::Finished if !ending.expired => {}
                DrawEnd::Finished | DrawEnd::Stopped => break,
                DrawEnd::RunOver => {
                    ending.stopped = Some(Stop::new(StopKind::LeaseLost, "another process has taken over the run"));
                    break;
                }
            }
        }
        if let Some(stop) = ending.stopped.as_ref().filter(|stop| !has_lost_ledger_or_lease(stop.kind)) {
            self.halt_run(run, stop).await?;
            self.wait_until_released(run, max_wait).await?;
        }
        Ok(Some(ending))
    }

    /// Draws and sends shards of a run, and waits for other workers, because they might leave shards unfinished.
    /// `leader_lease` is the lease of the leader, or `None` if this worker is not the leader.
    async fn send_shards(&self, run: &Run, leader_lease: Option<Lease>) -> Result<(SendEnding, DrawEnd), S::Error> {
        let Self { ledger, by, size, sender } = self;
        let Some(worker) = ledger.register_worker(run, by.clone()).await? else {
            return Ok((SendEnding::default(), DrawEnd::RunOver));
        };
        let worker = Arc::new(worker);
        // One snapshot is enough for rows that were never drawn: they are unchanged since the run was sharded.
        let mut snapshot = Snapshot::load(ledger.as_ref(), run, true).await?;
        let (mut ending, mut next) = (SendEnding::default(), None);
        loop {
            let draw = match next.take() {
                Some(draw) => draw,
                None => ledger.draw_shard(&worker, *size, true).await?,
            };
            let shards = match draw {
                ShardDraw::NewRows(rows) => {
                    ShardSource::from_first_rows(Arc::clone(ledger), Arc::clone(&worker), rows, *size)
                }
                ShardDraw::TakenOver { rows, doubtful } => {
                    sender.note_takeover(run, rows.len(), doubtful);
                    failpoint::pass("share.taken_over");
                    snapshot = Snapshot::load(ledger.as_ref(), run, true).await?;
                    ShardSource::from_fixed_rows(Arc::clone(ledger), Arc::clone(&worker), rows)
                }
                ShardDraw::Unavailable => {
                    if let Some(stop) = sender.wait_for_others(run).await? {
                        ending.stopped = Some(stop);
                        return Ok((ending, DrawEnd::Stopped));
                    }
                    // The process that took over the run might have ended; then no process would shard it again.
                    if let Some(lease) = leader_lease
                        && !self.reload_run(run).await?.is_leased(lease)
                    {
                        return Ok((ending, DrawEnd::RunOver));
                    }
                    continue;
                }
                ShardDraw::Exhausted => return Ok((ending, DrawEnd::Finished)),
                ShardDraw::Ended => {
                    ending.stopped = self.find_stop_request(run).await?;
                    let draw_end = if ending.stopped.is_some() { DrawEnd::Stopped } else { DrawEnd::RunOver };
                    return Ok((ending, draw_end));
                }
            };
            failpoint::pass("share.drawn");
            ending = ending.merge(sender.send_drawn_rows(run, worker.lease, &snapshot, shards.clone()).await?);
            snapshot.counts = ending.counts.clone();
            if let Some(stop) = &ending.stopped {
                if stop.kind == StopKind::StopRequested {
                    ending.stopped = self.find_stop_request(run).await?.or(ending.stopped);
                }
                return Ok((ending, DrawEnd::Stopped));
            }
            next = shards.take_last_draw();
            if !matches!(next, Some(ShardDraw::NewRows(_) | ShardDraw::TakenOver { .. })) {
                ledger.update_rows(worker.lease, RowUpdate::ShardsFinished).await?;
            }
        }
    }

    /// The stop that another process requested for all workers.
    async fn find_stop_request(&self, run: &Run) -> Result<Option<Stop>, S::Error> {
        let current = self.reload_run(run).await?;
        let reason = current.stop_reason.unwrap_or_else(|| "asked to stop".to_owned());
        Ok(current.stop_requested.then(|| Stop::new(current.stop.unwrap_or(StopKind::StopRequested), reason)))
    }

    /// Loads the current state of a run.
    async fn reload_run(&self, run: &Run) -> Result<Run, S::Error> {
        let current = self.ledger.list_runs(RunFilter::with_key(run.key)).await?.pop();
        current.ok_or_else(|| LedgerError::Unreadable(format!("the run {} no longer exists", run.name())).into())
    }

    /// Waits, for at most `max_wait`, until no worker holds a shard of a stopped run.
    async fn wait_until_released(&self, run: &Run, max_wait: Duration) -> Result<(), S::Error> {
        let began = Instant::now();
        while began.elapsed() < max_wait && !self.ledger.load_claimed_rows(run.key).await?.is_empty() {
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

/// Whether a stop of one worker must stop all workers. If a worker is interrupted, or has a rejected key or no
/// connection, other workers can continue.
fn stops_all_workers(kind: StopKind) -> bool {
    matches!(
        kind,
        StopKind::Breaker | StopKind::OffContract | StopKind::Credit | StopKind::Budget | StopKind::Inconsistent
    )
}

/// Whether a stopped leader can no longer stop the other workers, because it lost the ledger or its lease.
fn has_lost_ledger_or_lease(kind: StopKind) -> bool {
    matches!(kind, StopKind::Ledger | StopKind::LeaseLost)
}

/// The shards that a worker draws.
#[derive(Clone)]
pub struct ShardSource(Arc<ShardSourceInner>);

struct ShardSourceInner {
    ledger: Arc<dyn Ledger>,
    worker: Arc<ShardWorker>,
    /// The number of rows per draw. `None` if no more rows are drawn.
    size: Option<u32>,
    state: Mutex<DrawState>,
}

#[derive(Default)]
struct DrawState {
    waiting: VecDeque<RowSpan>,
    drawn_rows: Vec<RowSpan>,
    /// The result that ended drawing.
    last: Option<ShardDraw>,
    /// The time when this worker last looked for dead workers.
    checked_at: Option<Instant>,
}

/// The interval between checks for dead workers. The check costs as much as several draws, and a takeover is delayed by
/// at most this long.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

impl ShardSource {
    /// A source of `rows`, and then of rows that were never drawn, `size` at a time.
    pub fn from_first_rows(ledger: Arc<dyn Ledger>, worker: Arc<ShardWorker>, rows: RowSpan, size: u32) -> Self {
        Self::new(ledger, worker, vec![rows], Some(size))
    }

    /// A source of only `rows`, in order.
    pub fn from_fixed_rows(ledger: Arc<dyn Ledger>, worker: Arc<ShardWorker>, rows: Vec<RowSpan>) -> Self {
        Self::new(ledger, worker, rows, None)
    }

    fn new(ledger: Arc<dyn Ledger>, worker: Arc<ShardWorker>, rows: Vec<RowSpan>, size: Option<u32>) -> Self {
        // The caller has just looked for dead workers.
        let state = DrawState { waiting: rows.into(), checked_at: Some(Instant::now()), ..DrawState::default() };
        Self(Arc::new(ShardSourceInner { ledger, worker, size, state: Mutex::new(state) }))
    }

    /// A source that yields the rows of this source again, and no other rows.
    pub fn repeat(&self) -> Self {
        let ShardSourceInner { ledger, worker, .. } = &*self.0;
        let state = self.state();
        let rows = state.drawn_rows.iter().chain(&state.waiting).copied().collect();
        Self::from_fixed_rows(Arc::clone(ledger), Arc::clone(worker), rows)
    }

    /// Draws the next rows. `None` if no rows can be drawn now.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub async fn next_rows(&self) -> Result<Option<RowSpan>, LedgerError> {
        if let Some(rows) = self.take_waiting() {
            return Ok(Some(rows));
        }
        let ShardSourceInner { ledger, worker, size, .. } = &*self.0;
        let Some(size) = size.filter(|_| self.state().last.is_none()) else { return Ok(None) };
        match ledger.draw_shard(worker, size, self.advance_check_interval()).await? {
            ShardDraw::NewRows(rows) => {
                self.state().drawn_rows.push(rows);
                Ok(Some(rows))
            }
            other => {
                self.state().last = Some(other);
                Ok(None)
            }
        }
    }

    /// Takes the result of the last draw. `None` if there was none, or it was already taken.
    pub fn take_last_draw(&self) -> Option<ShardDraw> {
        self.state().last.take()
    }

    /// Whether further shards are drawn, and have the maximum size. Workers without a rate limit, or with a high limit,
    /// draw such shards and finish them quickly.
    pub fn has_largest_shards(&self) -> bool {
        self.0.size.is_some_and(|size| size >= MAX_SHARD_ROWS)
    }

    /// Begins the next check interval if the current one has ended. Returns whether it is time to look for dead
    /// workers.
    fn advance_check_interval(&self) -> bool {
        let mut state = self.state();
        let is_due = state.checked_at.is_none_or(|checked_at| checked_at.elapsed() >= CHECK_INTERVAL);
        if is_due {
            state.checked_at = Some(Instant::now());
        }
        is_due
    }

    fn take_waiting(&self) -> Option<RowSpan> {
        let mut state = self.state();
        let rows = state.waiting.pop_front()?;
        state.drawn_rows.push(rows);
        Some(rows)
    }

    fn state(&self) -> MutexGuard<'_, DrawState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rate limit that the workers of a run observe together.
#[derive(Clone, Debug)]
pub struct SharedPace {
    /// The campaign's rate, which all workers respect together. `None` if only the account's rate limit applies.
    pub pace: Option<Allowance>,
}

/// The maximum number of rows per draw, so that little is left when a worker dies.
pub(super) const MAX_SHARD_ROWS: u32 = 5_000;
/// The intended duration of a shard in seconds. It is short, so that no worker has much left when the others are
/// finished.
const SHARD_SECONDS: f64 = 2.0;

/// The number of rows that a worker with this rate and envelope size draws at a time.
pub fn shard_size(rate: Option<f64>, batch: usize) -> u32 {
    let min_rows = u32::try_from(batch).unwrap_or(MAX_SHARD_ROWS).clamp(1, MAX_SHARD_ROWS);
    let rows = rate.map_or(MAX_SHARD_ROWS, |rate| (rate * SHARD_SECONDS) as u32);
    rows.clamp(min_rows, MAX_SHARD_ROWS)
}

/// The number of envelopes that are checked for consecutive doubt, both before and after an envelope in doubt. A worker
/// has at most 64 envelopes in flight, so they cover at least four workers.
pub(super) const DOUBT_WINDOW: u32 = 256;

/// The number of consecutive settled envelopes of all workers that are in doubt, counted back from the latest.
pub(super) fn count_trailing_doubtful(envelopes: &[EnvelopeRecord]) -> u32 {
    let mut settled: Vec<_> = envelopes
        .iter()
        .filter_map(|envelope| envelope.settled.as_ref().map(|(at, outcomes)| (*at, envelope.envelope, outcomes)))
        // An envelope that was not sent says nothing about the gateway.
        .filter(|(.., outcomes)| !outcomes.iter().all(|outcome| matches!(outcome, OperationOutcome::NotSent { .. })))
        .collect();
    settled.sort_by_key(|(at, envelope, _)| (*at, *envelope));
    let is_doubtful = |outcomes: &[OperationOutcome]| {
        outcomes.iter().all(|outcome| matches!(outcome, OperationOutcome::InDoubt { .. }))
    };
    let series = settled.iter().rev().take_while(|(.., outcomes)| is_doubtful(outcomes)).count();
    u32::try_from(series).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod participant_tests {
    use jiff::Timestamp;
    use tokio::time::timeout;

    use super::*;
    use campaign_core::domain::{Endpoint, OperationKind, Row};
    use campaign_ledger::memory::{LedgerContents, MemoryLedger};
    use campaign_ledger::{CampaignLock, ExcludedRows, NewRun, SuppressionPolicy};

    fn clock() -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn new_run() -> NewRun {
        NewRun {
            campaign: "sale".into(),
            edition: String::new(),
            gateway: "main".into(),
            account: "account".into(),
            endpoint: Endpoint::Sync,
            kind: OperationKind::Sms,
            live: true,
            round: 1,
            recipients: 4,
            last_row: Row::new(5),
            file: None,
            excluded: ExcludedRows::default(),
            suppression: SuppressionPolicy::default(),
            began_at: clock(),
            random: 5,
        }
    }

    /// A sender that loses its run to another process while sending.
    struct OvertakenSender<'o>(&'o dyn Ledger, &'o CampaignLock);

    impl ShardSender for OvertakenSender<'_> {
        type Error = LedgerError;

        async fn send_drawn_rows(
            &self,
            run: &Run,
            _: Lease,
            _: &Snapshot,
            _: ShardSource,
        ) -> Result<SendEnding, LedgerError> {
            self.0.claim_run(self.1, run.key).await?;
            Ok(SendEnding::default())
        }

        fn note_takeover(&self, _: &Run, _: usize, _: usize) {}

        async fn wait_for_others(&self, _: &Run) -> Result<Option<Stop>, LedgerError> {
            sleep(POLL_INTERVAL).await;
            Ok(None)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn process_that_lost_its_run_does_not_wait_for_others() {
        let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new(LedgerContents::default(), clock));
        let run = ledger.create_run(&new_run(), None).await.unwrap().expect("a run");
        ledger.open_run(run.key, None, None).await.unwrap();
        let lock = ledger.acquire_campaign_lock("sale", "account").await.unwrap().expect("nobody has it");
        let lease = ledger.claim_run(&lock, run.key).await.unwrap().lease;
        let sender = OvertakenSender(ledger.as_ref(), &lock);
        let participant = Participant { ledger: &ledger, by: "one".into(), size: 2, sender: &sender };
        let leading = participant.lead_run(&run, lease, "", true, Duration::from_secs(1));
        let ending = timeout(Duration::from_secs(3_600), leading).await.expect("it ends").unwrap();
        let ending = ending.expect("it had the run");
        assert_eq!(ending.stopped.map(|stop| stop.kind), Some(StopKind::LeaseLost));
    }
}

#[cfg(test)]
mod shard_size_tests {
    use jiff::Timestamp;

    use super::*;
    use campaign_core::domain::OperationKind;

    fn envelope(envelope: u32, at: Option<i64>, outcome: OperationOutcome) -> EnvelopeRecord {
        let settled = at.map(|at| (Timestamp::from_second(at).unwrap(), vec![outcome]));
        let (kind, begun_at) = (OperationKind::Sms, Timestamp::UNIX_EPOCH);
        EnvelopeRecord { envelope, kind, begun_at, rows: Vec::new(), costs: Vec::new(), settled, evidence: None }
    }

    #[test]
    fn shard_lasts_two_seconds_within_its_size_limits() {
        let sizes = [(None, 100), (Some(2_000.0), 100), (Some(100.0), 50), (Some(0.5), 50), (Some(1e9), 1_000_000)];
        assert_eq!(sizes.map(|(rate, batch)| shard_size(rate, batch)), [5_000, 4_000, 200, 50, 5_000]);
    }

    #[test]
    fn envelopes_in_doubt_are_counted_in_settlement_order() {
        let doubt = || OperationOutcome::InDoubt { reason: "silence".into() };
        let (accepted, recalled) = (
            OperationOutcome::Queued { request_id: "7".into() },
            OperationOutcome::NotSent { reason: "called back".into() },
        );
        let records = [
            envelope(1, Some(10), doubt()),
            envelope(2, Some(30), doubt()),
            envelope(3, Some(20), accepted.clone()),
            envelope(4, None, doubt()),
            envelope(5, Some(40), recalled),
            envelope(6, Some(50), doubt()),
        ];
        assert_eq!(count_trailing_doubtful(&records), 2);
        assert_eq!(count_trailing_doubtful(&records[..3]), 1);
        assert_eq!(count_trailing_doubtful(&[envelope(1, Some(1), accepted)]), 0);
    }
}
