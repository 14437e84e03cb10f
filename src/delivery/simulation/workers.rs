//! A run that several processes send: whoever begins it shares it out, and workers come, take part, and go.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::judge::took;
use super::ledger::ProcessLedger;
use super::life::{Life, shift_wall_clock, wall};
use super::line::Line;
use super::plan::SharingPlan;
use super::sighting::Sighting;
use super::story::{Errand, World, end, look};
use crate::delivery::engine::send;
use crate::delivery::{
    ASKS_AGAIN, Conditions, Drawn, Edges, Ending, Feed, Interrupt, Participant, ShareDraw, ShareSender, Snapshot, Stop,
    StopKind, Together,
};
use crate::ledger::{Allowance, Lease, Ledger, LedgerError, Progress, Run, RunFilter, State};

/// How often a worker looks for runs, and how long it leaves one alone.
const LOOK: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_secs(30);
/// How much longer than for an answer others are waited for that are to stop.
const GRACE: Duration = Duration::from_secs(15);

/// What a process does by itself that sends a run together with others.
struct Hand {
    world: Arc<World>,
    process: usize,
    life: Arc<Life>,
    ledger: Arc<dyn Ledger>,
    line: Arc<Line>,
    interrupt: watch::Receiver<Interrupt>,
    /// Since when it takes part.
    since: Timestamp,
}

impl ShareSender for Hand {
    type Error = LedgerError;

    async fn send(
        &self,
        run: &Run,
        (lease, snapshot): (Lease, &Snapshot),
        shares: ShareDraw,
    ) -> Result<Ending, LedgerError> {
        let world = &self.world;
        let rendered = world.rendered(run, snapshot).concat();
        world.nothing_that_arrived_is_sent(self.since, run.key, rendered.iter().map(|operation| operation.row));
        let proven = run.sharing.as_ref().is_some_and(|sharing| sharing.proven);
        let alone = world.conditions(lease, snapshot);
        let own = world.plan.rate.filter(|rate| world.plan.account_rate.is_none_or(|account| *rate < account));
        let pace = own.map(|rate| Allowance::new(format!("{} of account", run.name()), Some(rate)));
        let conditions = Conditions { proven: alone.proven || proven, together: Some(Together { pace }), ..alone };
        world.judge.begins(self.process, proven || took(snapshot) || conditions.limits.keep_going);
        let (ledger, gateway, interrupt) = (Arc::clone(&self.ledger), self.line.clone(), self.interrupt.clone());
        let edges = Edges { ledger, gateway, observer: world.observer(&self.life), interrupt, passes: None };
        world.somebody_opts_out();
        let ending = send(conditions, edges, Feed::drawing(shares, rendered), snapshot.counts.clone()).await;
        world.saw(Sighting::LeftOut, ending.opted_out);
        Ok(ending)
    }

    fn takes_over(&self, _: &Run, shares: usize, _: usize) {
        self.world.saw(Sighting::ShareTakenOver, shares as u64);
    }

    async fn wait(&self, _: &Run) -> Result<Option<Stop>, LedgerError> {
        let mut interrupt = self.interrupt.clone();
        let signalled = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None);
        let signalled = timeout(ASKS_AGAIN, signalled).await.is_ok_and(|signal| signal.is_ok());
        Ok(signalled.then(|| Stop::new(StopKind::Interrupted(15), "interrupted")))
    }
}

impl World {
    /// Has the wall clock set once, in some of the worlds with workers where nothing is told by itself: what the judge holds
    /// receipts against goes by that clock.
    pub(super) fn sets_its_clock(self: &Arc<Self>) {
        if self.plan.sharing.is_none() || self.plan.tells() || self.chance(|chance| chance.once_in(2)) {
            return;
        }
        let (after, seconds, back) =
            self.chance(|chance| (chance.below(60_000), 1 + chance.below(3_600) as i64, chance.once_in(2)));
        let world = Arc::clone(self);
        tokio::spawn(async move {
            sleep(Duration::from_millis(after)).await;
            shift_wall_clock(SignedDuration::from_secs(if back { -seconds } else { seconds }));
            world.clock_set.store(true, Ordering::Relaxed);
            world.saw(Sighting::ClockSet, 1);
        });
    }

    /// Whether a start shares a run out: always where somebody did before.
    pub(super) fn shares(&self, run: &Run) -> bool {
        self.plan.sharing.is_some() && (run.sharing.is_some() || self.chance(|chance| !chance.once_in(4)))
    }

    /// What a start does about a request to stop that nobody was there to hear.
    pub(super) async fn hear_no_old_stop(&self, ledger: &ProcessLedger) {
        if self.plan.sharing.is_some() {
            let _ = ledger.request_stop(self.run(), false).await;
        }
    }

    /// Does this while workers come and go, in a world that has some.
    pub(super) async fn beside_workers(self: &Arc<Self>, life: fn(&Self) -> Arc<Life>, work: impl Future<Output = ()>) {
        let Some(SharingPlan { workers, .. }) = self.plan.sharing else { return work.await };
        let (over, is_over) = watch::channel(false);
        let workers = (0..workers).map(|_| async {
            while !*is_over.borrow() {
                let rest = self.chance(|chance| chance.below(10_000));
                sleep(Duration::from_millis(rest)).await;
                let (signal, signals) = watch::channel(Interrupt::None);
                let lasts = self.chance(|chance| chance.once_in(3).then(|| chance.below(60_000)));
                let lasts = lasts.map_or(Duration::MAX, Duration::from_millis);
                let mut is_over = is_over.clone();
                let ends = async {
                    let _ = timeout(lasts, is_over.wait_for(|over| *over)).await;
                    let _ = signal.send(Interrupt::Gently(15));
                    std::future::pending().await
                };
                tokio::select! {
                    biased;
                    () = self.process(Errand::Work(signals), life(self)) => {}
                    () = ends => {}
                }
            }
        });
        let workers = join_all(workers);
        let work = async {
            work.await;
            let _ = over.send(true);
        };
        tokio::join!(work, workers);
    }

    fn hand(
        self: &Arc<Self>,
        (process, life): (usize, &Arc<Life>),
        (ledger, line): (Arc<ProcessLedger>, Arc<Line>),
        interrupt: watch::Receiver<Interrupt>,
    ) -> Hand {
        let (world, life, since) = (Arc::clone(self), Arc::clone(life), wall());
        Hand { world, process, life, ledger, line, interrupt, since }
    }

    /// What `worker` does: looks for a run that is shared out, and sends what it draws of it.
    pub(super) async fn work(
        self: &Arc<Self>,
        process: usize,
        life: &Arc<Life>,
        mut interrupt: watch::Receiver<Interrupt>,
    ) {
        let (ledger, line) = (self.ledger(life), self.line(process, life));
        let mut rests: Option<(i64, Instant)> = None;
        while *interrupt.borrow() == Interrupt::None {
            let open = RunFilter { open: true, ..RunFilter::all() };
            let Ok(mut runs) = ledger.runs(open).await else { return };
            runs.retain(|run| {
                let sharing = run.sharing.as_ref().map(|sharing| sharing.id);
                let rests = rests.is_some_and(|(id, until)| Some(id) == sharing && Instant::now() < until);
                sharing.is_some() && !rests && !run.stop_requested && run.ended_at.is_none()
            });
            if let Some(run) = runs.pop() {
                let hand = self.hand((process, life), (ledger.clone(), line.clone()), interrupt.clone());
                let Ok((_, drawn)) = hand.participant(process, &self.plan.sharing).take_part(&run).await else {
                    return;
                };
                if drawn != Drawn::Over {
                    rests = run.sharing.map(|sharing| (sharing.id, Instant::now() + REST));
                }
            }
            let _ = timeout(LOOK, interrupt.wait_for(|interrupt| *interrupt != Interrupt::None)).await;
        }
    }

    /// What `run --shared` does from where it has the run.
    pub(super) async fn send_together(
        self: &Arc<Self>,
        (process, life): (usize, &Arc<Life>),
        (ledger, line): (Arc<ProcessLedger>, Arc<Line>),
        (run, lease): (&Run, Lease),
    ) {
        let (_interrupt, interrupts) = watch::channel(Interrupt::None);
        let hand = self.hand((process, life), (ledger.clone(), line), interrupts);
        let participant = hand.participant(process, &self.plan.sharing);
        let led = participant.lead((run, lease), "", false, self.plan.timeout + GRACE).await;
        let Ok(Some(ending)) = led else { return };
        let kind = ending.stopped.as_ref().map(|stop| stop.kind);
        if matches!(kind, Some(StopKind::NotOwner | StopKind::Ledger)) {
            return;
        }
        let Some((_, snapshot)) = look(ledger.as_ref(), false).await else { return };
        let left = snapshot.counts.get(State::Planned) + snapshot.counts.get(State::Sending);
        let progress = if kind.is_none() && left == 0 { Progress::Finished } else { Progress::Open };
        let _ = ledger.end(lease, end(Ending { counts: snapshot.counts, ..ending }, progress)).await;
    }
}

impl Hand {
    fn participant(&self, process: usize, sharing: &Option<SharingPlan>) -> Participant<'_, Self> {
        let size = sharing.map_or(1, |sharing| sharing.size);
        Participant { ledger: &self.ledger, by: format!("process {process}"), size, sender: self }
    }
}
