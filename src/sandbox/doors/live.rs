//! The platform in time: with its clock and its journal under one lock.
//!
//! Everything that happens to the platform happens here: requests, what is due by itself, and what
//! became of webhooks. It knows neither HTTP nor tasks; whoever calls it decides when.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use secrecy::SecretString;
use tokio::sync::Notify;

use super::clock::Clock;
use crate::domain::Endpoint;
use crate::sandbox::faults::Reaction;
use crate::sandbox::journal::{Lines, Sink};
use crate::sandbox::platform::{Arrival, Counts, Platform};
use crate::sandbox::request::{Keys, Request, envelope};
use crate::sandbox::scenario::Scenario;
use crate::sandbox::webhooks::{Post, PostOutcome};

/// How many messages move on before the lock is let go, so that a million that are due at once keep
/// nobody waiting for long.
const SLICE: usize = 1_000;

/// The platform that all connections share.
pub(super) struct Live {
    keys: Keys,
    core: Mutex<Core>,
    /// Something may be due earlier than it was, or may leave now.
    stirred: Notify,
    /// What was due has happened, and the webhooks for which there was room have left.
    kept_up: Notify,
}

/// Together, so that the journal's order is the order of execution.
struct Core {
    platform: Platform,
    sink: Sink,
    clock: Clock,
}

/// What is left to do after a slice of what was due.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// Webhooks that leave now.
    pub posts: Vec<Post>,
    /// Whether the slice was too small for what is due.
    pub more: bool,
    /// In how much real time the next thing is due, if there is one.
    pub next: Option<Duration>,
}

/// How far everything has run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunOut {
    /// Messages still move.
    Going,
    /// All that is left is to hear from the receivers of webhooks.
    Waiting,
    /// Nothing is left.
    Done,
}

impl Live {
    /// A platform that plays a scenario from now on; the server's key opens the account that has none.
    pub(super) fn new(scenario: Arc<Scenario>, key: &SecretString, sink: Sink) -> Self {
        let keys = Keys::of(&scenario, key);
        let clock = Clock::start(Timestamp::now(), Instant::now(), scenario.speed);
        let core = Mutex::new(Core { platform: Platform::new(scenario), sink, clock });
        Self { keys, core, stirred: Notify::new(), kept_up: Notify::new() }
    }

    /// Executes a request; its journal is written before the answer is known to anybody.
    ///
    /// Nothing comes back if the journal cannot be written: whether it was executed is unknown then.
    pub(super) async fn execute(
        &self,
        endpoint: Endpoint,
        remote: SocketAddr,
        request: Request<'_>,
    ) -> Option<Reaction> {
        let envelope = envelope::read(request, &self.keys);
        self.catch_up().await?;
        let reaction = self
            .core()
            .record(|platform, at, lines| platform.handle(Arrival { endpoint, remote, at }, envelope, lines));
        self.stirred.notify_one();
        reaction
    }

    /// Lets a slice of what is due happen, and hands out webhooks to be sent: no more than there is room for.
    pub(super) fn keep_up(&self, room: usize) -> Due {
        let due = self.core().keep_up(room);
        self.kept_up.notify_waiters();
        due.unwrap_or_default()
    }

    /// Waits until [`Live::keep_up`] may have something to do earlier than it said.
    pub(super) async fn stirred(&self) {
        self.stirred.notified().await;
    }

    /// Takes note of what became of a webhook.
    pub(super) async fn posted(&self, webhook: u64, outcome: PostOutcome) {
        // Nobody would read of it in a journal that cannot be written; the shell tells of that to every client.
        let _ = self.catch_up().await;
        let _ = self.core().record(|platform, at, lines| platform.posted(webhook, outcome, at, lines));
        self.stirred.notify_one();
    }

    /// Writes a fault that was there before anything arrived.
    pub(super) fn open_with(&self, fault: &'static str) {
        let _ = self.core().record(|platform, at, lines| platform.open_with(fault, at, lines));
    }

    /// Lets everything happen that will happen, and waits for the receivers of webhooks, but no longer than that.
    pub(super) async fn run_out(&self, patience: Duration) {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            // Before the look: what is kept up with afterwards wakes it even if that is before it waits.
            let kept_up = self.kept_up.notified();
            let state = self.core().run_out();
            match state {
                RunOut::Going => tokio::task::yield_now().await,
                RunOut::Waiting => {
                    self.stirred.notify_one();
                    if tokio::time::timeout_at(deadline, kept_up).await.is_err() {
                        return;
                    }
                }
                RunOut::Done => return,
            }
        }
    }

    /// Waits until nothing more is due and all receivers of webhooks were heard, but no longer than that.
    pub(super) async fn settle_down(&self, longest: Duration) {
        let deadline = tokio::time::Instant::now() + longest;
        loop {
            let kept_up = self.kept_up.notified();
            if self.core().is_settled() || tokio::time::timeout_at(deadline, kept_up).await.is_err() {
                return;
            }
        }
    }

    /// Lets what is due happen before what comes now, though not all of it under one lock.
    ///
    /// Nothing comes back if the journal cannot be written.
    async fn catch_up(&self) -> Option<()> {
        while self.core().advance()? {
            tokio::task::yield_now().await;
        }
        Some(())
    }

    /// What was taken and refused so far, and what became of it.
    pub(super) fn counts(&self) -> Counts {
        self.core().platform.counts().clone()
    }

    /// The lines of a journal in memory.
    pub(super) fn remembered(&self) -> String {
        self.core().sink.remembered()
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        // A panic under the lock would be a bug; the counts and the journal are then worth more than their doubt.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// Does something at the present time and writes its lines; nothing comes back if they cannot be written.
    fn record<T>(&mut self, act: impl FnOnce(&mut Platform, Timestamp, &mut Lines) -> T) -> Option<T> {
        let mut lines = self.sink.lines()?;
        // The clock is read under the lock, so that times never run backwards in the journal.
        let at = self.clock.at(Instant::now());
        let done = act(&mut self.platform, at, &mut lines);
        self.sink.write(&lines).then_some(done)
    }

    /// Lets a slice of what is due happen; tells whether there is more.
    fn advance(&mut self) -> Option<bool> {
        self.record(|platform, at, lines| platform.advance(at, SLICE, lines))
    }

    fn keep_up(&mut self, room: usize) -> Option<Due> {
        let more = self.advance()?;
        let posts = self.platform.due_posts(room);
        let next = self.platform.next_due().map(|due| self.clock.until(due, Instant::now()));
        Some(Due { posts, more, next })
    }

    /// Whether nothing more will happen by itself.
    fn is_settled(&self) -> bool {
        self.platform.next_due().is_none() && !self.platform.awaits_receivers()
    }

    /// Lets a slice of what will be due happen now.
    fn run_out(&mut self) -> RunOut {
        let Some(more) = self.record(|platform, _, lines| platform.run_out(SLICE, lines)) else { return RunOut::Done };
        self.clock.put_forward(self.platform.now.timestamp(), Instant::now());
        if more {
            return RunOut::Going;
        }
        if let Some(due) = self.platform.next_due() {
            // Another try of a webhook is due then.
            self.clock.put_forward(due, Instant::now());
            return RunOut::Waiting;
        }
        if self.platform.awaits_receivers() { RunOut::Waiting } else { RunOut::Done }
    }
}
