//! Shared runs: the first process divides a run into shards, and workers join, take part and leave.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::judge::{Sighting, has_accepted};
use super::ledger::ProcessLedger;
use super::plan::SharingPlan;
use super::platform::SimulatedGateway;
use super::process::{ProcessLife, shift_wall_clock, wall_now};
use super::world::{ProcessTask, SimulatedWorld, load_run, run_end};
use crate::delivery::engine::send_operations;
use crate::delivery::{
    DrawEnd, Feed, Interrupt, POLL_INTERVAL, Participant, SendContext, SendEnding, SendOptions, ShardSender,
    ShardSource, SharedPace, Snapshot, Stop, StopKind,
};
use campaign_ledger::{
    Allowance, Lease, Ledger, LedgerError, RowState, Run, RunFilter, RunProgress, RunUpdate, StopRequest,
};

/// The interval between a worker's searches for runs.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The time for which a worker ignores a run after it took part in the run.
const IGNORE_TIME: Duration = Duration::from_secs(30);
/// The number of the signal that interrupts a worker.
const SIGTERM: u8 = 15;
/// The extra time to wait for other workers that must stop.
const GRACE: Duration = Duration::from_secs(15);

/// The callbacks of a simulated worker.
struct WorkerSender {
    world: Arc<SimulatedWorld>,
    process: usize,
    life: Arc<ProcessLife>,
    ledger: Arc<dyn Ledger>,
    gateway: Arc<SimulatedGateway>,
    interrupt: watch::Receiver<Interrupt>,
    /// The time since which the worker takes part.
    since: Timestamp,
}

impl ShardSender for WorkerSender {
    type Error = LedgerError;

    async fn send_drawn_rows(
        &self,
        run: &Run,
        lease: Lease,
        snapshot: &Snapshot,
        shards: ShardSource,
    ) -> Result<SendEnding, LedgerError> {
        let world = &self.world;
        let rendered = world.render_operations(run, snapshot).concat();
        world.check_no_arrived_row_is_resent(self.since, run.key, rendered.iter().map(|operation| operation.row));
        let proven = run.sharding.as_ref().is_some_and(|sharing| sharing.proven);
        let base = world.send_options(lease, snapshot);
        let run_rate = world.plan.rate.filter(|rate| world.plan.account_rate.is_none_or(|account| *rate < account));
        let allowance = run_rate.map(|rate| Allowance::new(format!("{} of account", run.name()), Some(rate)));
        let options =
            SendOptions { proven: base.proven || proven, sharing: Some(SharedPace { pace: allowance }), ..base };
        world.judge.note_start(self.process, proven || has_accepted(snapshot) || options.limits.keep_going);
        let (ledger, gateway, interrupt) = (Arc::clone(&self.ledger), self.gateway.clone(), self.interrupt.clone());
        let observer = world.observer(&self.life);
        let context = SendContext { ledger, gateway, observer, interrupt, passes: None, late_opt_outs: None };
        world.schedule_opt_out();
        let ending =
            send_operations(options, context, Feed::from_shards(shards, rendered), snapshot.counts.clone()).await;
        world.record_sighting(Sighting::Skipped, ending.opted_out.len());
        Ok(ending)
    }

    fn note_takeover(&self, _: &Run, shards: usize, _: usize) {
        self.world.record_sighting(Sighting::ShardTakenOver, shards as u64);
    }

    async fn wait_for_others(&self, _: &Run) -> Result<Option<Stop>, LedgerError> {
        let mut interrupt = self.interrupt.clone();
        let signalled = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None);
        let signalled = timeout(POLL_INTERVAL, signalled).await.is_ok_and(|signal| signal.is_ok());
        Ok(signalled.then(|| Stop::new(StopKind::Interrupted(SIGTERM), "interrupted")))
    }
}

impl SimulatedWorld {
    /// Changes the wall clock once, in some worlds with workers. Worlds with webhooks are excluded, because the judge
    /// compares receipts by the wall clock.
    pub(super) fn schedule_clock_change(self: &Arc<Self>) {
        if self.plan.sharing.is_none() || self.plan.sends_webhooks() || self.with_random(|chance| chance.once_in(2)) {
            return;
        }
        let (after, seconds, goes_back) =
            self.with_random(|chance| (chance.below(60_000), 1 + chance.below(3_600) as i64, chance.once_in(2)));
        let world = Arc::clone(self);
        tokio::spawn(async move {
            sleep(Duration::from_millis(after)).await;
            shift_wall_clock(SignedDuration::from_secs(if goes_back { -seconds } else { seconds }));
            world.clock_set.store(true, Ordering::Relaxed);
            world.record_sighting(Sighting::ClockSet, 1);
        });
    }

    /// Whether a start divides the run into shards. In worlds with workers, a run that was divided before is always
    /// divided again.
    pub(super) fn should_shard_run(&self, run: &Run) -> bool {
        self.plan.sharing.is_some() && (run.sharding.is_some() || self.with_random(|chance| !chance.once_in(4)))
    }

    /// Clears an old stop request that no process handled.
    pub(super) async fn clear_old_stop(&self, ledger: &ProcessLedger) {
        if self.plan.sharing.is_some() {
            let _ = ledger.update_runs(vec![self.current_run()], RunUpdate::Stop(StopRequest::Withdraw)).await;
        }
    }

    /// Does the work while workers come and go, if the world has workers.
    pub(super) async fn run_beside_workers(
        self: &Arc<Self>,
        life: fn(&Self) -> Arc<ProcessLife>,
        work: impl Future<Output = ()>,
    ) {
        let Some(SharingPlan { workers, .. }) = self.plan.sharing else { return work.await };
        let (end, is_over) = watch::channel(false);
        let workers = (0..workers).map(|_| async {
            while !*is_over.borrow() {
                let pause = self.with_random(|chance| chance.below(10_000));
                sleep(Duration::from_millis(pause)).await;
                let (signal, signals) = watch::channel(Interrupt::None);
                let duration = self.with_random(|chance| chance.once_in(3).then(|| chance.below(60_000)));
                let duration = duration.map_or(Duration::MAX, Duration::from_millis);
                let mut is_over = is_over.clone();
                let end_of_work = async {
                    let _ = timeout(duration, is_over.wait_for(|over| *over)).await;
                    let _ = signal.send(Interrupt::Graceful(SIGTERM));
                    std::future::pending().await
                };
                tokio::select! {
                    biased;
                    () = self.run_process(ProcessTask::Work(signals), life(self)) => {}
                    () = end_of_work => {}
                }
            }
        });
        let workers = join_all(workers);
        let work = async {
            work.await;
            let _ = end.send(true);
        };
        tokio::join!(work, workers);
    }

    fn worker_sender(
        self: &Arc<Self>,
        (process, life): (usize, &Arc<ProcessLife>),
        (ledger, gateway): (Arc<ProcessLedger>, Arc<SimulatedGateway>),
        interrupt: watch::Receiver<Interrupt>,
    ) -> WorkerSender {
        let (world, life, since) = (Arc::clone(self), Arc::clone(life), wall_now());
        WorkerSender { world, process, life, ledger, gateway, interrupt, since }
    }

    /// Like the `worker` command: looks for shared runs, and sends shards of these runs.
    pub(super) async fn run_worker(
        self: &Arc<Self>,
        process: usize,
        life: &Arc<ProcessLife>,
        mut interrupt: watch::Receiver<Interrupt>,
    ) {
        let (ledger, gateway) = (self.process_ledger(life), self.simulated_gateway(process, life));
        let mut ignored: Option<(i64, Instant)> = None;
        while *interrupt.borrow() == Interrupt::None {
            let open = RunFilter { open: true, ..RunFilter::all() };
            let Ok(mut runs) = (ledger.as_ref() as &dyn Ledger).list_runs(open).await else { return };
            runs.retain(|run| {
                let sharing = run.sharding.as_ref().map(|sharing| sharing.id);
                let ignored = ignored.is_some_and(|(id, until)| Some(id) == sharing && Instant::now() < until);
                sharing.is_some() && !ignored && !run.stop_requested && run.ended_at.is_none()
            });
            if let Some(run) = runs.pop() {
                let sender = self.worker_sender((process, life), (ledger.clone(), gateway.clone()), interrupt.clone());
                let Ok((_, draw_end)) = sender.participant(process, &self.plan.sharing).join_run(&run).await else {
                    return;
                };
                if draw_end != DrawEnd::RunOver {
                    ignored = run.sharding.map(|sharing| (sharing.id, Instant::now() + IGNORE_TIME));
                }
            }
            let _ = timeout(CHECK_INTERVAL, interrupt.wait_for(|interrupt| *interrupt != Interrupt::None)).await;
        }
    }

    /// Sends a claimed run together with other workers, like `run --shared`.
    pub(super) async fn send_together(
        self: &Arc<Self>,
        (process, life): (usize, &Arc<ProcessLife>),
        (ledger, gateway): (Arc<ProcessLedger>, Arc<SimulatedGateway>),
        (run, lease): (&Run, Lease),
    ) {
        let (_interrupt, interrupts) = watch::channel(Interrupt::None);
        let sender = self.worker_sender((process, life), (ledger.clone(), gateway), interrupts);
        let participant = sender.participant(process, &self.plan.sharing);
        let result = participant.lead_run(run, lease, "", false, self.plan.timeout + GRACE).await;
        let Ok(Some(ending)) = result else { return };
        let kind = ending.stopped.as_ref().map(|stop| stop.kind);
        if matches!(kind, Some(StopKind::LeaseLost | StopKind::Ledger)) {
            return;
        }
        let Some((_, snapshot)) = load_run(ledger.as_ref(), false).await else { return };
        let unsent = snapshot.counts.get(RowState::Planned) + snapshot.counts.get(RowState::Sending);
        let progress = if kind.is_none() && unsent == 0 { RunProgress::Finished } else { RunProgress::Open };
        let _ = ledger.end_run(lease, run_end(SendEnding { counts: snapshot.counts, ..ending }, progress)).await;
    }
}

impl WorkerSender {
    fn participant(&self, process: usize, sharing: &Option<SharingPlan>) -> Participant<'_, Self> {
        let size = sharing.map_or(1, |sharing| sharing.size);
        Participant { ledger: &self.ledger, by: format!("process {process}"), size, sender: self }
    }
}
