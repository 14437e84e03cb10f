//! One world from its first start to its last: things go wrong, then nothing does any more, and every row has to end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::chance::Chance;
use super::disk::Disk;
use super::judge::{Breach, Findings, Judge, phone, took};
use super::ledger::ProcessLedger;
use super::life::{Life, begin_world, elapsed, wall};
use super::line::Line;
use super::mistake::Mistake;
use super::plan::{Fault, Oracle, Plan};
use super::platform::{Executed, Platform};
use super::telling::Acknowledged;
use crate::delivery::engine::send;
use crate::delivery::{Conditions, DeliveryEvent, Edges, Ending, Feed, Interrupt, Limits, Observer, Snapshot};
use crate::domain::{Endpoint, MessageId, OperationKind, Phone, Row};
use crate::gateway::EncodedOperation;
use crate::ledger::{Allowance, Lease, Ledger, LeftOut, Progress, Run, RunEnd, RunFilter, RunId, State};

/// The longest that one process may take, by the virtual clock.
const LONGEST: Duration = Duration::from_secs(2 * 3_600);

/// What was seen in a world, to know that a test saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sighting {
    Fault(Fault),
    Oracle(Oracle),
    Killed,
    Suspended,
    TakenOver,
    Found,
    ResentByRule,
    SentAgain,
    CountedAsSent,
    CountedAsNotSent,
    Retried,
    Unresolved,
    BegunAnew,
    OptedOut,
    LeftOut,
    /// A webhook came before the answer to its envelope.
    ToldEarly,
    ToldAgain,
    DoubtProven,
}

/// What came of a world.
#[derive(Debug, Default)]
pub(super) struct WorldReport {
    pub(super) broken: Findings,
    pub(super) seen: BTreeMap<Sighting, u64>,
    /// When its last process ended, by its own clock.
    pub(super) ended: Duration,
}

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
    chance: Mutex<Chance>,
    seen: Mutex<BTreeMap<Sighting, u64>>,
    processes: Mutex<Vec<Arc<Life>>>,
}

/// Plays the world of a plan.
pub(super) async fn play(plan: Plan, mistake: Option<Mistake>) -> WorldReport {
    begin_world();
    let (executed, told) = unbounded_channel();
    let world = World::new(Arc::new(plan), mistake, executed);
    world.tell(told);
    world.go_wrong().await;
    world.compare(false).await;
    world.guard().await;
    world.platform.heal();
    world.go_well().await;
    world.compare(true).await;
    world.go_again().await;
    world.measure();
    world.told()
}

/// What a process is there for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Errand {
    /// To send.
    Send,
    /// To ask about rows in doubt.
    Ask,
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
    fn mortal(&self) -> Arc<Life> {
        let (steps, suspension) = self.chance(|chance| {
            let steps = (!chance.once_in(4)).then(|| 1 + chance.below(120));
            let suspension =
                chance.once_in(6).then(|| (1 + chance.below(100), Duration::from_millis(chance.below(40_000))));
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
        let work = async {
            match errand {
                Errand::Send => self.send(number, &life).await,
                Errand::Ask => self.ask(number, &life).await,
            }
        };
        tokio::select! {
            biased;
            () = life.ended() => self.saw(Sighting::Killed, 1),
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
        Arc::new(ProcessLedger { disk: Arc::clone(&self.disk), life: Arc::clone(life), mistake: self.mistake })
    }

    fn line(&self, process: usize, life: &Arc<Life>) -> Arc<Line> {
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
        let Some(lease) = self.take(ledger.as_ref()).await else { return };
        self.reconcile(ledger.as_ref(), &line, lease, &[State::InDoubt]).await;
        let began = wall();
        let Some((run, snapshot)) = look(ledger.as_ref(), true).await else { return };
        let rendered = self.rendered(&run, &snapshot);
        self.nothing_that_arrived_is_sent(began, run.key, rendered.iter().flatten().map(|operation| operation.row));
        let feed = Feed::of(rendered);
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

    /// The operations that are still to be sent, as the feed brings them.
    fn rendered(&self, run: &Run, snapshot: &Snapshot) -> Vec<Vec<EncodedOperation>> {
        let rows = (2..=self.plan.rows + 1).filter(|row| !snapshot.settled.contains(*row)).map(Row::new);
        let operations: Vec<EncodedOperation> = rows
            .filter_map(|row| {
                let order = snapshot.renumbered.iter().find(|(rows, _)| rows.contains(row.get()));
                let ids = order.map_or(run.ids, |(_, ids)| *ids);
                let fresh = self.mistake == Some(Mistake::FreshIdentifier) && snapshot.digests.contains_key(&row);
                let id = if fresh {
                    MessageId::new(run.ids.first + run.ids.len + u64::from(row.get()))
                } else {
                    ids.id(row)
                };
                Some(encoded(row, id?, self.plan.kind))
            })
            .collect();
        operations.chunks(7).map(<[EncodedOperation]>::to_vec).collect()
    }

    fn conditions(&self, lease: Lease, snapshot: &Snapshot) -> Conditions {
        let plan = &self.plan;
        let limits = Limits {
            doubtful_envelopes: 3,
            same_error_in_a_row: 50,
            rejected: 0.2,
            unreachable: Duration::from_secs(20),
            keep_going: plan.unsupported.is_some() || plan.seed.is_multiple_of(2),
        };
        Conditions {
            lease,
            endpoint: plan.endpoint,
            repeated: snapshot.repeated.clone(),
            rate: plan.rate,
            bounds: None,
            waits: true,
            account: Allowance::new("account", plan.account_rate),
            batch: plan.batch,
            in_flight: plan.in_flight,
            timeout: plan.timeout,
            limits,
            proven: took(snapshot) || self.mistake == Some(Mistake::NoCanary),
            first_messages: if plan.endpoint == Endpoint::Async { Duration::from_secs(10) } else { Duration::ZERO },
            together: None,
            attended: false,
        }
    }

    fn observer(self: &Arc<Self>, life: &Arc<Life>) -> Observer {
        let (world, life) = (Arc::clone(self), Arc::clone(life));
        Arc::new(move |event| {
            if let DeliveryEvent::Settled { counts } = event
                && !life.is_over()
            {
                world.judge.shown(&counts, &world.disk.lock().unwrap().counts(world.run()));
            }
        })
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

    /// The pace of the account over all processes, and of the campaign within each.
    fn measure(&self) {
        let processes = self.processes.lock().unwrap();
        let plan = &self.plan;
        let largest = |rate: f64| plan.batch.min((rate as usize).max(1)) as f64;
        // A process that is suspended may have had an envelope between its gate and the socket.
        let held = |life: &Arc<Life>| if life.was_suspended() { 1.0 } else { 0.0 };
        let largest = largest(plan.rate.unwrap_or(f64::INFINITY));
        let spare: Vec<f64> = processes.iter().map(|life| (1.0 + held(life)) * largest).collect();
        if let Some(rate) = plan.account_rate {
            self.judge.measure(rate, None, &spare);
        }
        if let Some(rate) = plan.rate {
            (0..processes.len()).for_each(|process| self.judge.measure(rate, Some(process), &spare));
        }
    }

    fn told(&self) -> WorldReport {
        let mut seen = self.seen.lock().unwrap().clone();
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

/// An operation of a kind; its hash is as good as one that is slower to compute.
fn encoded(row: Row, id: MessageId, kind: OperationKind) -> EncodedOperation {
    let json = format!(r#"{{"type":"sms","id":{id},"phone":{}}}"#, phone(row)).into_bytes();
    EncodedOperation {
        row,
        id,
        phone: Phone::new(phone(row)).unwrap(),
        kind,
        digest: id.get().to_le_bytes(),
        json,
        cost: None,
        leave_by: None,
    }
}

fn end(ending: Ending, progress: Progress) -> RunEnd {
    let Ending { stopped, counts, parts, lag, .. } = ending;
    let (stop, stopped) = stopped.map(|stop| (stop.kind, stop.reason)).unzip();
    let (parts, at, told) = (parts.billed, wall(), Vec::new());
    RunEnd { progress, stop, stopped, counts, parts, receipts: 0, results: None, lag, at, told }
}
