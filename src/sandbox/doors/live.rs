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

use super::clock::VirtualClock;
use crate::domain::Endpoint;
use crate::sandbox::faults::ResponsePlan;
use crate::sandbox::journal::{JournalLines, JournalSink};
use crate::sandbox::platform::{Counts, EnvelopeArrival, GatewayEmulator};
use crate::sandbox::request::{AccountKeys, RawRequest, envelope};
use crate::sandbox::scenario::Scenario;
use crate::sandbox::webhooks::{WebhookOutcome, WebhookPost};

/// How many messages move on before the lock is let go, so that a million that are due at once keep
/// nobody waiting for long.
const SLICE: usize = 1_000;

/// The platform that all connections share.
pub(super) struct LivePlatform {
    keys: AccountKeys,
    core: Mutex<PlatformCore>,
    /// Something may be due earlier than it was, or may leave now.
    wakeup: Notify,
    /// What was due has happened, and the webhooks for which there was room have left.
    progress: Notify,
}

/// Together, so that the journal's order is the order of execution.
struct PlatformCore {
    platform: GatewayEmulator,
    sink: JournalSink,
    clock: VirtualClock,
}

/// What is left to do after a slice of what was due.
#[derive(Debug, Default)]
pub(super) struct DueWork {
    /// Webhooks that leave now.
    pub posts: Vec<WebhookPost>,
    /// Whether the slice was too small for what is due.
    pub more: bool,
    /// In how much real time the next thing is due, if there is one.
    pub next: Option<Duration>,
}

/// How far everything has run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DrainState {
    /// Messages still move.
    Going,
    /// All that is left is to hear from the receivers of webhooks.
    Waiting,
    /// Nothing is left.
    Done,
}

impl LivePlatform {
    /// A platform that plays a scenario from now on; the server's key opens the account that has none.
    pub(super) fn new(scenario: Arc<Scenario>, key: &SecretString, sink: JournalSink) -> Self {
        let keys = AccountKeys::for_scenario(&scenario, key);
        let clock = VirtualClock::start(Timestamp::now(), Instant::now(), scenario.speed);
        let core = Mutex::new(PlatformCore { platform: GatewayEmulator::new(scenario), sink, clock });
        Self { keys, core, wakeup: Notify::new(), progress: Notify::new() }
    }

    /// Executes a request; its journal is written before the answer is known to anybody.
    ///
    /// Nothing comes back if the journal cannot be written: whether it was executed is unknown then.
    pub(super) async fn execute_request(
        &self,
        endpoint: Endpoint,
        remote: SocketAddr,
        request: RawRequest<'_>,
    ) -> Option<ResponsePlan> {
        let envelope = envelope::parse_envelope(request, &self.keys);
        self.process_due_events().await?;
        let reaction = self.lock_core().run_journaled(|platform, at, lines| {
            platform.handle_envelope(EnvelopeArrival { endpoint, remote, at }, envelope, lines)
        });
        self.wakeup.notify_one();
        reaction
    }

    /// Lets a slice of what is due happen, and hands out webhooks to be sent: no more than there is room for.
    pub(super) fn take_due_work(&self, room: usize) -> DueWork {
        let due = self.lock_core().take_due_work(room);
        self.progress.notify_waiters();
        due.unwrap_or_default()
    }

    /// Waits until [`Live::keep_up`] may have something to do earlier than it said.
    pub(super) async fn wait_for_wakeup(&self) {
        self.wakeup.notified().await;
    }

    /// Takes note of what became of a webhook.
    pub(super) async fn record_post_outcome(&self, webhook: u64, outcome: WebhookOutcome) {
        // Nobody would read of it in a journal that cannot be written; the shell tells of that to every client.
        let _ = self.process_due_events().await;
        let _ =
            self.lock_core().run_journaled(|platform, at, lines| platform.record_outcome(webhook, outcome, at, lines));
        self.wakeup.notify_one();
    }

    /// Writes a fault that was there before anything arrived.
    pub(super) fn record_initial_fault(&self, fault: &'static str) {
        let _ = self.lock_core().run_journaled(|platform, at, lines| platform.record_initial_fault(fault, at, lines));
    }

    /// Lets everything happen that will happen, and waits for the receivers of webhooks, but no longer than that.
    pub(super) async fn drain(&self, patience: Duration) {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            // Before the look: what is kept up with afterwards wakes it even if that is before it waits.
            let kept_up = self.progress.notified();
            let state = self.lock_core().drain_slice();
            match state {
                DrainState::Going => tokio::task::yield_now().await,
                DrainState::Waiting => {
                    self.wakeup.notify_one();
                    if tokio::time::timeout_at(deadline, kept_up).await.is_err() {
                        return;
                    }
                }
                DrainState::Done => return,
            }
        }
    }

    /// Waits until nothing more is due and all receivers of webhooks were heard, but no longer than that.
    pub(super) async fn wait_until_settled(&self, longest: Duration) {
        let deadline = tokio::time::Instant::now() + longest;
        loop {
            let kept_up = self.progress.notified();
            if self.lock_core().is_settled() || tokio::time::timeout_at(deadline, kept_up).await.is_err() {
                return;
            }
        }
    }

    /// Lets what is due happen before what comes now, though not all of it under one lock.
    ///
    /// Nothing comes back if the journal cannot be written.
    async fn process_due_events(&self) -> Option<()> {
        while self.lock_core().process_due_slice()? {
            tokio::task::yield_now().await;
        }
        Some(())
    }

    /// What was taken and refused so far, and what became of it.
    pub(super) fn counts(&self) -> Counts {
        self.lock_core().platform.counts().clone()
    }

    /// The lines of a journal in memory.
    pub(super) fn journal_text(&self) -> String {
        self.lock_core().sink.memory_text()
    }

    fn lock_core(&self) -> MutexGuard<'_, PlatformCore> {
        // A panic under the lock would be a bug; the counts and the journal are then worth more than their doubt.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PlatformCore {
    /// Does something at the present time and writes its lines; nothing comes back if they cannot be written.
    fn run_journaled<T>(
        &mut self,
        act: impl FnOnce(&mut GatewayEmulator, Timestamp, &mut JournalLines) -> T,
    ) -> Option<T> {
        let mut lines = self.sink.start_lines()?;
        // The clock is read under the lock, so that times never run backwards in the journal.
        let at = self.clock.time_at(Instant::now());
        let done = act(&mut self.platform, at, &mut lines);
        self.sink.write_lines(&lines).then_some(done)
    }

    /// Lets a slice of what is due happen; tells whether there is more.
    fn process_due_slice(&mut self) -> Option<bool> {
        self.run_journaled(|platform, at, lines| platform.advance(at, SLICE, lines))
    }

    fn take_due_work(&mut self, room: usize) -> Option<DueWork> {
        let more = self.process_due_slice()?;
        let posts = self.platform.take_due_posts(room);
        let next = self.platform.next_due().map(|due| self.clock.real_time_until(due, Instant::now()));
        Some(DueWork { posts, more, next })
    }

    /// Whether nothing more will happen by itself.
    fn is_settled(&self) -> bool {
        self.platform.next_due().is_none() && !self.platform.awaits_receivers()
    }

    /// Lets a slice of what will be due happen now.
    fn drain_slice(&mut self) -> DrainState {
        let Some(more) = self.run_journaled(|platform, _, lines| platform.drain(SLICE, lines)) else {
            return DrainState::Done;
        };
        self.clock.advance_to(self.platform.now.to_timestamp(), Instant::now());
        if more {
            return DrainState::Going;
        }
        if let Some(due) = self.platform.next_due() {
            // Another try of a webhook is due then.
            self.clock.advance_to(due, Instant::now());
            return DrainState::Waiting;
        }
        if self.platform.awaits_receivers() { DrainState::Waiting } else { DrainState::Done }
    }
}
