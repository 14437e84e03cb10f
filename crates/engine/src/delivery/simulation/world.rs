//! A simulated world: a phase with faults, a healthy phase, and a final state for every row.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::judge::{Breach, PromiseJudge, Sighting, WorldReport, has_accepted, row_phone};
use super::ledger::ProcessLedger;
use super::mistakes::Mistake;
use super::plan::{PROCESSES, SimulationRandom, WorldPlan};
use super::platform::{ExecutedMessage, SimulatedGateway, SimulatedPlatform};
use super::process::{ProcessLife, SimulatedDisk, begin_world, elapsed, wall_now};
use super::receipts::AcknowledgedLog;
use super::shards::HeldPlaces;
use crate::delivery::engine::send_operations;
use crate::delivery::{
    BreakerLimits, DeliveryEvent, DeliveryObserver, Feed, Interrupt, RunOptOuts, SendContext, SendEnding, SendOptions,
    Snapshot,
};
use campaign_core::domain::{Endpoint, MessageId, OperationKind, Phone, Row};
use campaign_gateway::EncodedOperation;
use campaign_ledger::{
    Allowance, ExcludedRows, Lease, Ledger, NumberFilter, NumberSet, RowState, Run, RunEnd, RunFilter, RunId,
    RunProgress,
};

/// The number of operations in a group of the feed.
const FEED_GROUP_SIZE: usize = 7;
/// The maximum virtual time of one process.
const MAX_PROCESS_TIME: Duration = Duration::from_secs(2 * 3_600);

/// A simulated world with its disk, its platform, its processes and its judge.
pub(super) struct SimulatedWorld {
    pub(super) plan: Arc<WorldPlan>,
    pub(super) mistake: Option<Mistake>,
    pub(super) disk: Arc<Mutex<SimulatedDisk>>,
    /// The current run: the latest one.
    pub(super) run: Mutex<RunId>,
    pub(super) platform: Arc<SimulatedPlatform>,
    pub(super) judge: Arc<PromiseJudge>,
    pub(super) acknowledged: AcknowledgedLog,
    /// Whether a process sent the run as a whole, without shards.
    pub(super) sent_whole: AtomicBool,
    /// Whether the wall clock was set.
    pub(super) clock_set: AtomicBool,
    chance: Mutex<SimulationRandom>,
    sightings: Mutex<BTreeMap<Sighting, u64>>,
    pub(super) processes: Mutex<Vec<Arc<ProcessLife>>>,
}

/// Plays the world of a plan.
pub(super) async fn play_plan(plan: WorldPlan, mistake: Option<Mistake>) -> WorldReport {
    begin_world();
    let (executed, reported) = unbounded_channel();
    let world = SimulatedWorld::new(Arc::new(plan), mistake, executed);
    world.start_reporting(reported);
    world.schedule_clock_change();
    world.run_beside_workers(SimulatedWorld::mortal_life, world.run_faulty_phase()).await;
    world.compare_with_ledger(false).await;
    world.check_guard().await;
    world.platform.stop_faults();
    world.run_beside_workers(SimulatedWorld::immortal_life, world.run_healthy_phase()).await;
    world.compare_with_ledger(true).await;
    world.run_beside_workers(SimulatedWorld::immortal_life, world.send_again()).await;
    world.check_rates();
    world.build_report()
}

pub(super) enum ProcessTask {
    SendRun,
    /// Asks about rows in doubt.
    Reconcile,
    /// Takes part in shared runs until a signal comes.
    Work(watch::Receiver<Interrupt>),
}

impl SimulatedWorld {
    fn new(plan: Arc<WorldPlan>, mistake: Option<Mistake>, executed: UnboundedSender<ExecutedMessage>) -> Arc<Self> {
        let platform = Arc::new(SimulatedPlatform::new(Arc::clone(&plan), mistake, executed));
        let mut disk = SimulatedDisk::new(plan.seed);
        let run = disk.begin_run(wall_now().as_microsecond(), &plan.new_run(plan.seed, ExcludedRows::default()));
        Arc::new(Self {
            disk: Arc::new(Mutex::new(disk)),
            run: Mutex::new(run),
            platform,
            judge: Arc::default(),
            acknowledged: AcknowledgedLog::default(),
            sent_whole: AtomicBool::default(),
            clock_set: AtomicBool::default(),
            chance: Mutex::new(plan.random_for(PROCESSES)),
            sightings: Mutex::default(),
            processes: Mutex::default(),
            plan,
            mistake,
        })
    }

    pub(super) fn current_run(&self) -> RunId {
        *self.run.lock().unwrap()
    }

    pub(super) fn with_random<T>(&self, draw: impl FnOnce(&mut SimulationRandom) -> T) -> T {
        draw(&mut self.chance.lock().unwrap())
    }

    pub(super) fn record_sighting(&self, sighting: Sighting, times: u64) {
        *self.sightings.lock().unwrap().entry(sighting).or_default() += times;
    }

    /// The faulty phase: processes end at any step, are suspended, and replace each other.
    async fn run_faulty_phase(self: &Arc<Self>) {
        for _ in 0..self.plan.starts {
            let task = if self.with_random(|chance| chance.once_in(4)) {
                ProcessTask::Reconcile
            } else {
                ProcessTask::SendRun
            };
            let rival =
                self.with_random(|chance| chance.once_in(5)).then(|| self.with_random(|chance| chance.below(20_000)));
            let first = self.run_process(task, self.mortal_life());
            match rival {
                None => first.await,
                Some(after) => {
                    self.record_sighting(Sighting::TakenOver, 1);
                    let second = async {
                        sleep(Duration::from_millis(after)).await;
                        self.run_process(ProcessTask::SendRun, self.mortal_life()).await;
                    };
                    tokio::join!(first, second);
                }
            }
            let pause = self.with_random(|chance| if chance.once_in(2) { 0 } else { chance.below(120_000) });
            sleep(Duration::from_millis(pause)).await;
        }
    }

    /// The healthy phase: every row gets a final state, by proof, by the campaign's rule, or by a person.
    async fn run_healthy_phase(self: &Arc<Self>) {
        // One world in a hundred has enough rounds to use up all status inquiries.
        let rounds = self.with_random(|chance| if chance.once_in(100) { 25 } else { 1 + chance.below(4) });
        for _ in 0..rounds {
            self.run_process(ProcessTask::SendRun, self.immortal_life()).await;
            let counts = self.load_snapshot().await.counts;
            if counts.get(RowState::InDoubt) + counts.get(RowState::Planned) == 0 {
                break;
            }
            sleep(Duration::from_secs(61) + self.plan.lag).await;
            self.run_process(ProcessTask::Reconcile, self.immortal_life()).await;
        }
        self.decide_at_end().await;
        // A run stops at a problem that needs a person, who then starts it again.
        for _ in 0..3 {
            if self.load_snapshot().await.counts.get(RowState::Planned) > 0 {
                self.run_process(ProcessTask::SendRun, self.immortal_life()).await;
            }
        }
        self.decide_remaining_doubt().await;
    }

    /// A life that ends or is suspended at random.
    pub(super) fn mortal_life(&self) -> Arc<ProcessLife> {
        let (steps, suspension) = self.with_random(|chance| {
            let steps = (!chance.once_in(4)).then(|| 1 + chance.below(120));
            // In a shared run, suspensions are longer and more frequent, so that suspended processes can lose their
            // leases.
            let (odds, longest) = if self.plan.sharing.is_some() { (2, 80_000) } else { (6, 40_000) };
            let suspension =
                chance.once_in(odds).then(|| (1 + chance.below(100), Duration::from_millis(chance.below(longest))));
            (steps, suspension)
        });
        Arc::new(ProcessLife::new(steps, suspension))
    }

    pub(super) fn immortal_life(&self) -> Arc<ProcessLife> {
        Arc::new(ProcessLife::new(None, None))
    }

    /// Runs one process until it ends or is killed.
    pub(super) async fn run_process(self: &Arc<Self>, task: ProcessTask, life: Arc<ProcessLife>) {
        let number = {
            let mut processes = self.processes.lock().unwrap();
            processes.push(Arc::clone(&life));
            processes.len() - 1
        };
        let is_worker = matches!(task, ProcessTask::Work(_));
        let work = async {
            match task {
                ProcessTask::SendRun => self.send_run(number, &life).await,
                ProcessTask::Reconcile => self.ask_rows(number, &life).await,
                ProcessTask::Work(interrupt) => self.run_worker(number, &life, interrupt).await,
            }
        };
        tokio::select! {
            biased;
            () = life.wait_for_end() => {
                self.record_sighting(Sighting::Killed, 1);
                self.record_sighting(Sighting::WorkerKilled, u64::from(is_worker));
            }
            done = timeout(MAX_PROCESS_TIME, work) => if done.is_err() {
                self.judge.record_breach(Breach::Unbounded, "a process did not end");
            },
        }
        // Tasks that the process left behind must do nothing more.
        life.kill();
        if life.was_suspended() {
            self.record_sighting(Sighting::Suspended, 1);
        }
    }

    pub(super) fn process_ledger(&self, life: &Arc<ProcessLife>) -> Arc<ProcessLedger> {
        let (disk, life, leases) = (Arc::clone(&self.disk), Arc::clone(life), Arc::new(HeldPlaces::default()));
        Arc::new(ProcessLedger { disk, life, leases, mistake: self.mistake })
    }

    pub(super) fn simulated_gateway(&self, process: usize, life: &Arc<ProcessLife>) -> Arc<SimulatedGateway> {
        Arc::new(SimulatedGateway {
            plan: Arc::clone(&self.plan),
            process,
            life: Arc::clone(life),
            platform: Arc::clone(&self.platform),
            disk: Arc::clone(&self.disk),
            judge: Arc::clone(&self.judge),
            mistake: self.mistake,
        })
    }

    /// Like `run`: claims the run, asks about rows in doubt, sends planned rows, and ends the run.
    async fn send_run(self: &Arc<Self>, process: usize, life: &Arc<ProcessLife>) {
        let (ledger, gateway) = (self.process_ledger(life), self.simulated_gateway(process, life));
        self.clear_old_stop(ledger.as_ref()).await;
        let Some(lease) = self.claim_current_run(ledger.as_ref()).await else { return };
        self.reconcile(ledger.as_ref(), &gateway, lease, &[RowState::InDoubt]).await;
        let began = wall_now();
        let Some((run, snapshot)) = load_run(ledger.as_ref(), true).await else { return };
        if self.should_shard_run(&run) {
            return self.send_together((process, life), (ledger, gateway), (&run, lease)).await;
        }
        let rendered = self.render_operations(&run, &snapshot);
        self.check_no_arrived_row_is_resent(began, run.key, rendered.iter().flatten().map(|operation| operation.row));
        let feed = Feed::from_groups(rendered);
        self.sent_whole.store(true, Ordering::Relaxed);
        self.schedule_opt_out();
        let options = self.send_options(lease, &snapshot);
        self.judge.note_start(process, has_accepted(&snapshot) || options.limits.keep_going);
        let (_interrupt, interrupts) = watch::channel(Interrupt::None);
        let observer = self.observer(life);
        let context = SendContext {
            ledger: ledger.clone(),
            gateway,
            observer,
            interrupt: interrupts,
            passes: None,
            late_opt_outs: None,
        };
        let ending = send_operations(options, context, feed, snapshot.counts).await;
        self.record_sighting(Sighting::Skipped, ending.opted_out.len());
        let progress =
            if ending.counts.get(RowState::Planned) == 0 { RunProgress::Finished } else { RunProgress::Open };
        let _ = ledger.end_run(lease, run_end(ending, progress)).await;
    }

    /// Like `reconcile`: claims the run, asks about rows in doubt, and releases the run.
    async fn ask_rows(&self, process: usize, life: &Arc<ProcessLife>) {
        let (ledger, gateway) = (self.process_ledger(life), self.simulated_gateway(process, life));
        let Some(lease) = self.claim_current_run(ledger.as_ref()).await else { return };
        self.reconcile(ledger.as_ref(), &gateway, lease, &[RowState::InDoubt, RowState::Unresolved]).await;
        let Some((run, snapshot)) = load_run(ledger.as_ref(), false).await else { return };
        let ending = SendEnding { counts: snapshot.counts, ..SendEnding::default() };
        let _ = ledger.end_run(lease, run_end(ending, run.progress)).await;
    }

    /// Claims the current run, even if another process owns it. `None` if the ledger failed.
    pub(super) async fn claim_current_run(&self, ledger: &ProcessLedger) -> Option<Lease> {
        let run = self.disk.lock().unwrap().stored_run(self.current_run()).run.clone();
        let lock = ledger.acquire_campaign_lock(&run.campaign, &run.account).await.ok()??;
        Some(ledger.claim_run(&lock, run.key).await.ok()?.lease)
    }

    pub(super) async fn load_snapshot(&self) -> Snapshot {
        let ledger = self.process_ledger(&self.immortal_life());
        load_run(ledger.as_ref(), false).await.map(|(_, snapshot)| snapshot).unwrap()
    }

    pub(super) async fn compare_with_ledger(&self, has_ended: bool) {
        let snapshot = self.load_snapshot().await;
        self.judge.compare_outcomes(
            &self.plan,
            &self.disk.lock().unwrap(),
            &snapshot,
            &self.platform.accepted_messages(),
            has_ended,
        );
        self.compare_with_receipts(&snapshot);
    }

    fn build_report(&self) -> WorldReport {
        let mut sightings = self.sightings.lock().unwrap().clone();
        sightings.extend(self.disk.lock().unwrap().sightings.clone());
        sightings
            .extend(self.platform.fired_faults().into_iter().map(|(fault, times)| (Sighting::Fault(fault), times)));
        sightings.insert(Sighting::Oracle(self.plan.oracle), 1);
        WorldReport { broken: self.judge.breaches(), sightings, ended: elapsed() }
    }
}

/// Loads the latest run and its snapshot. `None` if the ledger failed.
pub(super) async fn load_run(ledger: &ProcessLedger, is_owned: bool) -> Option<(Run, Snapshot)> {
    let ledger: &dyn Ledger = ledger;
    let run = ledger.list_runs(RunFilter { latest: Some(1), ..RunFilter::all() }).await.ok()?.pop()?;
    let snapshot = Snapshot::load(ledger, &run, is_owned).await.ok()?;
    Some((run, snapshot))
}

pub(super) fn run_end(ending: SendEnding, progress: RunProgress) -> RunEnd {
    let SendEnding { stopped, counts, parts, lag, .. } = ending;
    let (stop, stopped) = stopped.map(|stop| (stop.kind, stop.reason)).unzip();
    let (parts, at, notifications) = (parts.billed, wall_now(), Vec::new());
    RunEnd { progress, stop, stop_reason: stopped, counts, parts, receipts: 0, results: None, lag, at, notifications }
}

impl SimulatedWorld {
    /// Renders the remaining operations, in groups as the feed returns them.
    pub(super) fn render_operations(&self, run: &Run, snapshot: &Snapshot) -> Vec<Vec<EncodedOperation>> {
        let rows = (2..=self.plan.rows + 1).filter(|row| !snapshot.settled.contains(*row)).map(Row::new);
        let operations: Vec<EncodedOperation> = rows
            .filter_map(|row| {
                let order = snapshot.renumbered.iter().find(|(rows, _)| rows.contains(row.get()));
                let ids = order.map_or(run.ids, |(_, ids)| *ids);
                let is_fresh = self.mistake == Some(Mistake::FreshIdentifier) && snapshot.digests.contains_key(&row);
                let id = if is_fresh {
                    MessageId::new(run.ids.first + run.ids.len + u64::from(row.get()))
                } else {
                    ids.id_for_row(row)
                };
                let repeats = order.is_some() || snapshot.digests.contains_key(&row);
                Some(encode_row(row, id?, self.plan.kind).with_repeats(repeats))
            })
            .collect();
        operations.chunks(FEED_GROUP_SIZE).map(<[EncodedOperation]>::to_vec).collect()
    }

    pub(super) fn send_options(&self, lease: Lease, snapshot: &Snapshot) -> SendOptions {
        let plan = &self.plan;
        let limits = BreakerLimits {
            doubtful_envelopes: 3,
            same_error_in_a_row: 50,
            rejected: 0.2,
            opted_out: None,
            unreachable: Duration::from_secs(20),
            keep_going: plan.unsupported.is_some() || plan.seed.is_multiple_of(2),
        };
        SendOptions {
            lease,
            repeated: snapshot.repeated.clone(),
            rate: plan.rate,
            bounds: None,
            waits_at_bounds: true,
            allowance: Allowance::new("account", plan.account_rate),
            batch: plan.batch,
            in_flight: plan.in_flight,
            timeout: plan.timeout,
            limits,
            proven: has_accepted(snapshot) || self.mistake == Some(Mistake::NoWarmUp),
            first_messages_timeout: if plan.endpoint == Endpoint::Async {
                Duration::from_secs(10)
            } else {
                Duration::ZERO
            },
            sharing: None,
            opt_outs: Arc::new(RunOptOuts::without_errors("sale@1".to_owned())),
            is_attended: false,
        }
    }

    pub(super) fn observer(self: &Arc<Self>, life: &Arc<ProcessLife>) -> DeliveryObserver {
        let (world, life) = (Arc::clone(self), Arc::clone(life));
        Arc::new(move |event| {
            if let DeliveryEvent::Settled { counts } = event
                && !life.is_over()
            {
                world.judge.check_shown_counts(&counts, &world.disk.lock().unwrap().count_states(world.current_run()));
            }
        })
    }
}

/// An operation of a row. Its digest is its identifier, which is cheaper than a hash.
fn encode_row(row: Row, id: MessageId, kind: OperationKind) -> EncodedOperation {
    let json = format!(r#"{{"type":"sms","id":{id},"phone":{}}}"#, row_phone(row)).into_bytes();
    EncodedOperation {
        row,
        id,
        phone: Phone::new(row_phone(row)).unwrap(),
        kind,
        chain: kind.into(),
        digest: id.get().to_le_bytes(),
        json,
        cost: None,
        leave_before: None,
        repeats: false,
    }
}

impl SimulatedWorld {
    /// Lets the judge check the guard. Returns the phone numbers that a new run would skip.
    pub(super) async fn check_guard(&self) -> NumberSet {
        let ledger = self.process_ledger(&self.immortal_life());
        let ledger: &dyn Ledger = ledger.as_ref();
        let runs: Vec<RunId> = ledger.list_runs(RunFilter::all()).await.unwrap().iter().map(|run| run.key).collect();
        let skipped = ledger.load_numbers(NumberFilter::Sent(&runs)).await.unwrap();
        self.judge.check_guard(&self.plan, &self.load_snapshot().await, &self.platform.accepted_messages(), &skipped);
        skipped
    }

    /// Runs the campaign again, for the recipients whom the guard does not skip.
    pub(super) async fn send_again(self: &Arc<Self>) {
        let skipped = self.check_guard().await;
        let mut excluded = ExcludedRows::default();
        let rows =
            (2..=self.plan.rows + 1).map(Row::new).filter(|row| skipped.contains(Phone::new(row_phone(*row)).unwrap()));
        rows.for_each(|row| excluded.insert(row, RowState::Skipped, "sent to before"));
        if excluded.count_rows(RowState::Skipped) == u64::from(self.plan.rows) {
            return;
        }
        self.judge.allow_resend_of_decided();
        let new = self.plan.new_run(self.with_random(SimulationRandom::next_bits), excluded);
        let run = self.disk.lock().unwrap().begin_run(wall_now().as_microsecond(), &new);
        *self.run.lock().unwrap() = run;
        self.run_process(ProcessTask::SendRun, self.immortal_life()).await;
        self.record_sighting(Sighting::StartedOver, 1);
        self.compare_with_ledger(false).await;
        self.check_guard().await;
    }
}
