//! One world from its first start to its last: things go wrong, then nothing does any more, and every row has to end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::chance::Chance;
use super::disk::Disk;
use super::judge::{Breach, Judge, took};
use super::ledger::ProcessLedger;
use super::life::{Life, begin_world, elapsed, wall};
use super::line::Line;
use super::mistake::Mistake;
use super::places::Leases;
use super::plan::Plan;
use super::platform::{Executed, Platform};
use super::sighting::{Sighting, WorldReport};
use super::telling::Acknowledged;
use crate::delivery::engine::send;
use crate::delivery::{Edges, Ending, Feed, Interrupt, Snapshot};
use crate::ledger::{Lease, Ledger, LeftOut, Progress, Run, RunEnd, RunFilter, RunId, State};

/// The longest that one process may take, by the virtual clock.
const LONGEST: Duration = Duration::from_secs(2 * 3_600);

/// One world.
pub(super) struct World {
    pub(super) plan: Arc<Plan>,
    pub(super) mistake: Option<Mistake>,
    pub(super) disk: Arc<Mutex<Disk>>,
    /// The run that is being sent, which is the last.
    pub(super) run: Mutex<RunId>,
    pub(super) platform: Arc<Platform>,
    pub(super) judge: Arc<Judge>,
    pub(super) acknowledged: Acknowledged,
    /// Whether some of it was sent by one process alone.
    pub(super) sent_whole: AtomicBool,
    /// Whether the wall clock was set.
    pub(super) clock_set: AtomicBool,
    chance: Mutex<Chance>,
    seen: Mutex<BTreeMap<Sighting, u64>>,
    pub(super) processes: Mutex<Vec<Arc<Life>>>,
}

/// Plays the world of a plan.
pub(super) async fn play(plan: Plan, mistake: Option<Mistake>) -> WorldReport {
    begin_world();
    let (executed, told) = unbounded_channel();
    let world = World::new(Arc::new(plan), mistake, executed);
    world.tell(told);
    world.sets_its_clock();
    world.beside_workers(World::mortal, world.go_wrong()).await;
    world.compare(false).await;
    world.guard().await;
    world.platform.heal();
    world.beside_workers(World::immortal, world.go_well()).await;
    world.compare(true).await;
    world.beside_workers(World::immortal, world.go_again()).await;
    world.measure();
    world.told()
}

/// What a process is there for.
pub(super) enum Errand {
    /// To send.
    Send,
    /// To ask about rows in doubt.
    Ask,
    /// To take part in what others shared out, until a signal comes.
    Work(watch::Receiver<Interrupt>),
}

impl World {
    fn new(plan: Arc<Plan>, mistake: Option<Mistake>, executed: UnboundedSender<Executed>) -> Arc<Self> {
        let platform = Arc::new(Platform::new(Arc::clone(&plan), mistake, executed));
        let mut disk = Disk::new(plan.seed);
        let run = disk.begin_run(wall().as_microsecond(), &plan.new_run(plan.seed, LeftOut::default()));
        Arc::new(Self {
            disk: Arc::new(Mutex::new(disk)),
            run: Mutex::new(run),
            platform,
            judge: Arc::default(),
            acknowledged: Acknowledged::default(),
            sent_whole: AtomicBool::default(),
            clock_set: AtomicBool::default(),
            chance: Mutex::new(plan.chance(3)),
            seen: Mutex::default(),
            processes: Mutex::default(),
            plan,
            mistake,
        })
    }

    /// The run that is being sent.
    pub(super) fn run(&self) -> RunId {
        *self.run.lock().unwrap()
    }

    pub(super) fn chance<T>(&self, draw: impl FnOnce(&mut Chance) -> T) -> T {
        draw(&mut self.chance.lock().unwrap())
    }

    pub(super) fn saw(&self, what: Sighting, times: u64) {
        *self.seen.lock().unwrap().entry(what).or_default() += times;
    }

    /// The starts while things go wrong: processes end at any step, are suspended, and take each other's place.
    async fn go_wrong(self: &Arc<Self>) {
        for _ in 0..self.plan.starts {
            let errand = if self.chance(|chance| chance.once_in(4)) { Errand::Ask } else { Errand::Send };
            let rival = self.chance(|chance| chance.once_in(5)).then(|| self.chance(|chance| chance.below(20_000)));
            let first = self.process(errand, self.mortal());
            match rival {
                None => first.await,
                Some(after) => {
                    self.saw(Sighting::TakenOver, 1);
                    let second = async {
                        sleep(Duration::from_millis(after)).await;
                        self.process(Errand::Send, self.mortal()).await;
                    };
                    tokio::join!(first, second);
                }
            }
            let rest = self.chance(|chance| if chance.once_in(2) { 0 } else { chance.below(120_000) });
            sleep(Duration::from_millis(rest)).await;
        }
    }

    /// The starts after that: every row gets to its end, by what is proven, by the campaign's rule, or by a person.
    async fn go_well(self: &Arc<Self>) {
        // One in a hundred asks until nothing more can be asked.
        let patience = self.chance(|chance| if chance.once_in(100) { 25 } else { 1 + chance.below(4) });
        for _ in 0..patience {
            self.process(Errand::Send, self.immortal()).await;
            let counts = self.snapshot().await.counts;
            if counts.get(State::InDoubt) + counts.get(State::Planned) == 0 {
                break;
            }
            sleep(Duration::from_secs(61) + self.plan.lag).await;
            self.process(Errand::Ask, self.immortal()).await;
        }
        self.decide().await;
        // A start stops at what it may not go on from by itself; a person starts again.
        for _ in 0..3 {
            if self.snapshot().await.counts.get(State::Planned) > 0 {
                self.process(Errand::Send, self.immortal()).await;
            }
        }
        self.give_up().await;
    }

    /// A life that ends or is suspended by chance.
    pub(super) fn mortal(&self) -> Arc<Life> {
        let (steps, suspension) = self.chance(|chance| {
            let steps = (!chance.once_in(4)).then(|| 1 + chance.below(120));
            // Where several send a run, whoever sleeps loses something.
            let (often, longest) = if self.plan.sharing.is_some() { (2, 80_000) } else { (6, 40_000) };
            let suspension =
                chance.once_in(often).then(|| (1 + chance.below(100), Duration::from_millis(chance.below(longest))));
            (steps, suspension)
        });
        Arc::new(Life::new(steps, suspension))
    }

    pub(super) fn immortal(&self) -> Arc<Life> {
        Arc::new(Life::new(None, None))
    }

    /// One process from its start to its end, or to where it is killed.
    pub(super) async fn process(self: &Arc<Self>, errand: Errand, life: Arc<Life>) {
        let number = {
            let mut processes = self.processes.lock().unwrap();
            processes.push(Arc::clone(&life));
            processes.len() - 1
        };
        let is_worker = matches!(errand, Errand::Work(_));
        let work = async {
            match errand {
                Errand::Send => self.send(number, &life).await,
                Errand::Ask => self.ask(number, &life).await,
                Errand::Work(interrupt) => self.work(number, &life, interrupt).await,
            }
        };
        tokio::select! {
            biased;
            () = life.ended() => {
                self.saw(Sighting::Killed, 1);
                self.saw(Sighting::WorkerKilled, u64::from(is_worker));
            }
            done = timeout(LONGEST, work) => if done.is_err() {
                self.judge.broken(Breach::Unbounded, "a process did not end");
            },
        }
        // What a process left behind does nothing any more.
        life.kill();
        if life.was_suspended() {
            self.saw(Sighting::Suspended, 1);
        }
    }

    pub(super) fn ledger(&self, life: &Arc<Life>) -> Arc<ProcessLedger> {
        let (disk, life, leases) = (Arc::clone(&self.disk), Arc::clone(life), Arc::new(Leases::default()));
        Arc::new(ProcessLedger { disk, life, leases, mistake: self.mistake })
    }

    pub(super) fn line(&self, process: usize, life: &Arc<Life>) -> Arc<Line> {
        Arc::new(Line {
            plan: Arc::clone(&self.plan),
            process,
            life: Arc::clone(life),
            platform: Arc::clone(&self.platform),
            disk: Arc::clone(&self.disk),
            judge: Arc::clone(&self.judge),
            mistake: self.mistake,
        })
    }

    /// What `run` does: take the run, ask about its rows in doubt, send what is planned, end.
    async fn send(self: &Arc<Self>, process: usize, life: &Arc<Life>) {
        let (ledger, line) = (self.ledger(life), self.line(process, life));
        self.hear_no_old_stop(ledger.as_ref()).await;
        let Some(lease) = self.take(ledger.as_ref()).await else { return };
        self.reconcile(ledger.as_ref(), &line, lease, &[State::InDoubt]).await;
        let began = wall();
        let Some((run, snapshot)) = look(ledger.as_ref(), true).await else { return };
        if self.shares(&run) {
            return self.send_together((process, life), (ledger, line), (&run, lease)).await;
        }
        let rendered = self.rendered(&run, &snapshot);
        self.nothing_that_arrived_is_sent(began, run.key, rendered.iter().flatten().map(|operation| operation.row));
        let feed = Feed::of(rendered);
        self.sent_whole.store(true, Ordering::Relaxed);
        self.somebody_opts_out();
        let conditions = self.conditions(lease, &snapshot);
        self.judge.begins(process, took(&snapshot) || conditions.limits.keep_going);
        let (_interrupt, interrupts) = watch::channel(Interrupt::None);
        let observer = self.observer(life);
        let edges = Edges { ledger: ledger.clone(), gateway: line, observer, interrupt: interrupts, passes: None };
        let ending = send(conditions, edges, feed, snapshot.counts).await;
        self.saw(Sighting::LeftOut, ending.opted_out);
        let progress = if ending.counts.get(State::Planned) == 0 { Progress::Finished } else { Progress::Open };
        let _ = ledger.end(lease, end(ending, progress)).await;
    }

    /// What `reconcile` does: take the run, ask, give it back.
    async fn ask(&self, process: usize, life: &Arc<Life>) {
        let (ledger, line) = (self.ledger(life), self.line(process, life));
        let Some(lease) = self.take(ledger.as_ref()).await else { return };
        self.reconcile(ledger.as_ref(), &line, lease, &[State::InDoubt, State::Unresolved]).await;
        let Some((run, snapshot)) = look(ledger.as_ref(), false).await else { return };
        let ending = Ending { counts: snapshot.counts, ..Ending::default() };
        let _ = ledger.end(lease, end(ending, run.progress)).await;
    }

    /// Takes the run, whoever has it; nothing if the ledger failed.
    pub(super) async fn take(&self, ledger: &ProcessLedger) -> Option<Lease> {
        let run = self.disk.lock().unwrap().book(self.run()).run.clone();
        let hold = ledger.hold(&run.campaign, &run.account).await.ok()??;
        Some(ledger.claim(&hold, run.key).await.ok()?.lease)
    }

    pub(super) async fn snapshot(&self) -> Snapshot {
        let ledger = self.ledger(&self.immortal());
        look(ledger.as_ref(), false).await.map(|(_, snapshot)| snapshot).unwrap()
    }

    pub(super) async fn compare(&self, ended: bool) {
        let snapshot = self.snapshot().await;
        self.judge.compare(&self.plan, &self.disk.lock().unwrap(), &snapshot, &self.platform.taken(), ended);
        self.hold_to_receipts(&snapshot);
    }

    fn told(&self) -> WorldReport {
        let mut seen = self.seen.lock().unwrap().clone();
        seen.extend(self.disk.lock().unwrap().seen.clone());
        seen.extend(self.platform.fired().into_iter().map(|(fault, times)| (Sighting::Fault(fault), times)));
        seen.insert(Sighting::Oracle(self.plan.oracle), 1);
        WorldReport { broken: self.judge.findings(), seen, ended: elapsed() }
    }
}

/// The run and where it stands; nothing if the ledger failed.
pub(super) async fn look(ledger: &ProcessLedger, owned: bool) -> Option<(Run, Snapshot)> {
    let run = ledger.runs(RunFilter { latest: Some(1), ..RunFilter::all() }).await.ok()?.pop()?;
    let snapshot = Snapshot::read(ledger, &run, owned).await.ok()?;
    Some((run, snapshot))
}

pub(super) fn end(ending: Ending, progress: Progress) -> RunEnd {
    let Ending { stopped, counts, parts, lag, .. } = ending;
    let (stop, stopped) = stopped.map(|stop| (stop.kind, stop.reason)).unzip();
    let (parts, at, told) = (parts.billed, wall(), Vec::new());
    RunEnd { progress, stop, stopped, counts, parts, receipts: 0, results: None, lag, at, told }
}
