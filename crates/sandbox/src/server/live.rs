//! The live platform: the emulator with its clock and journal under one lock, and the task that keeps it up to date.
//!
//! Requests, due events and webhook results all pass through here. This module knows nothing about HTTP; callers decide
//! when to call it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::webhook_client::WebhookClient;
use crate::faults::ResponsePlan;
use crate::journal::{JournalLines, JournalSink};
use crate::platform::{Counts, EnvelopeArrival, GatewayEmulator};
use crate::request;
use crate::request::{AccountKeys, RawRequest};
use crate::scenario::Scenario;
use crate::webhooks::{WebhookOutcome, WebhookPost};
use campaign_core::domain::Endpoint;

/// The number of messages that advance before the lock is released, so that many due messages do not block requests.
const SLICE: usize = 1_000;

/// The platform that all connections share.
pub(super) struct LivePlatform {
    keys: AccountKeys,
    core: Mutex<PlatformCore>,
    /// Notified if an event might be due earlier, or a webhook might be sent.
    wakeup: Notify,
    /// Notified when due events were processed, and webhooks were taken up to the limit.
    progress: Notify,
}

/// The emulator, journal and clock, which share one lock so that journal lines are in order of execution.
struct PlatformCore {
    platform: GatewayEmulator,
    sink: JournalSink,
    clock: VirtualClock,
}

/// The work that remains after a slice of due events.
#[derive(Debug, Default)]
pub(super) struct DueWork {
    /// Webhooks to send now.
    pub(super) posts: Vec<WebhookPost>,
    /// Whether more events are due.
    pub(super) has_more: bool,
    /// The real time until the next event, if any.
    pub(super) next: Option<Duration>,
}

/// The progress of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DrainState {
    /// Messages are still changing state.
    Active,
    /// Only webhooks in flight remain.
    Waiting,
    /// Nothing remains.
    Done,
}

impl LivePlatform {
    /// Creates a platform that runs a scenario from now on. The server's key belongs to the first account without a
    /// key.
    pub(super) fn new(scenario: Arc<Scenario>, key: &SecretString, sink: JournalSink) -> Self {
        let keys = AccountKeys::for_scenario(&scenario, key);
        let clock = VirtualClock::start(Timestamp::now(), Instant::now(), scenario.speed);
        let core = Mutex::new(PlatformCore { platform: GatewayEmulator::new(scenario), sink, clock });
        Self { keys, core, wakeup: Notify::new(), progress: Notify::new() }
    }

    /// Executes a request. The journal lines of the request are written before the answer is returned.
    ///
    /// Returns `None` if the journal cannot be written; it is then unknown whether the request was executed.
    pub(super) async fn execute_request(
        &self,
        endpoint: Endpoint,
        remote: SocketAddr,
        request: RawRequest<'_>,
    ) -> Option<ResponsePlan> {
        let envelope = request::parse_envelope(request, &self.keys);
        self.process_due_events().await?;
        let plan = self.lock_core().run_journaled(|platform, at, lines| {
            platform.handle_envelope(EnvelopeArrival { endpoint, remote, at }, envelope, lines)
        });
        self.wakeup.notify_one();
        plan
    }

    /// Processes a slice of due events and returns webhooks to send, at most `max_posts`.
    pub(super) fn take_due_work(&self, max_posts: usize) -> DueWork {
        let due = self.lock_core().take_due_work(max_posts);
        self.progress.notify_waiters();
        due.unwrap_or_default()
    }

    /// Waits until work might be due before the time that [`LivePlatform::take_due_work`] last returned.
    pub(super) async fn wait_for_wakeup(&self) {
        self.wakeup.notified().await;
    }

    /// Records the result of a webhook.
    pub(super) async fn record_post_outcome(&self, webhook: u64, outcome: WebhookOutcome) {
        // If the journal cannot be written, the outcome is lost. Every client gets an error in that case anyway.
        let _ = self.process_due_events().await;
        let _ =
            self.lock_core().run_journaled(|platform, at, lines| platform.record_outcome(webhook, outcome, at, lines));
        self.wakeup.notify_one();
    }

    /// Writes to the journal a fault that applies before the first request.
    pub(super) fn record_initial_fault(&self, fault: &'static str) {
        let _ = self.lock_core().run_journaled(|platform, at, lines| platform.record_initial_fault(fault, at, lines));
    }

    /// Executes all future events and waits for the receivers of webhooks, with a timeout.
    pub(super) async fn drain(&self, timeout: Duration) {
        let deadline = tokio::time::Instant::now() + timeout;
        loop {
            // Created before the check, so that progress between the check and the wait is not missed.
            let progress = self.progress.notified();
            let state = self.lock_core().drain_slice();
            match state {
                DrainState::Active => tokio::task::yield_now().await,
                DrainState::Waiting => {
                    self.wakeup.notify_one();
                    if tokio::time::timeout_at(deadline, progress).await.is_err() {
                        return;
                    }
                }
                DrainState::Done => return,
            }
        }
    }

    /// Waits until no events are due and all webhooks are finished, with a timeout.
    pub(super) async fn wait_until_settled(&self, timeout: Duration) {
        let deadline = tokio::time::Instant::now() + timeout;
        loop {
            let progress = self.progress.notified();
            if self.lock_core().is_settled() || tokio::time::timeout_at(deadline, progress).await.is_err() {
                return;
            }
        }
    }

    /// Processes all due events in slices, so that the lock is released in between.
    ///
    /// Returns `None` if the journal cannot be written.
    async fn process_due_events(&self) -> Option<()> {
        while self.lock_core().process_due_slice()? {
            tokio::task::yield_now().await;
        }
        Some(())
    }

    /// The counts of operations, results and money so far.
    pub(super) fn counts(&self) -> Counts {
        self.lock_core().platform.counts().clone()
    }

    /// The lines of a journal in memory.
    pub(super) fn journal_text(&self) -> String {
        self.lock_core().sink.memory_text()
    }

    fn lock_core(&self) -> MutexGuard<'_, PlatformCore> {
        // A panic under the lock would be a bug. The counts and the journal are still more useful than an error.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PlatformCore {
    /// Runs an action at the current time and writes the journal lines; `None` if the lines cannot be written.
    fn run_journaled<T>(
        &mut self,
        act: impl FnOnce(&mut GatewayEmulator, Timestamp, &mut JournalLines) -> T,
    ) -> Option<T> {
        let mut lines = self.sink.start_lines()?;
        // The clock is read under the lock, so that times never run backwards in the journal.
        let at = self.clock.time_at(Instant::now());
        let result = act(&mut self.platform, at, &mut lines);
        self.sink.write_lines(&lines).then_some(result)
    }

    /// Processes a slice of due events. Returns whether more are due.
    fn process_due_slice(&mut self) -> Option<bool> {
        self.run_journaled(|platform, at, lines| platform.advance(at, SLICE, lines))
    }

    fn take_due_work(&mut self, max_posts: usize) -> Option<DueWork> {
        let has_more = self.process_due_slice()?;
        let posts = self.platform.take_due_posts(max_posts);
        let next = self.platform.next_due().map(|due| self.clock.real_time_until(due, Instant::now()));
        Some(DueWork { posts, has_more, next })
    }

    /// Whether no more events will occur without a request.
    fn is_settled(&self) -> bool {
        self.platform.next_due().is_none() && !self.platform.awaits_receivers()
    }

    /// Processes a slice of future events now.
    fn drain_slice(&mut self) -> DrainState {
        let Some(has_more) = self.run_journaled(|platform, _, lines| platform.drain(SLICE, lines)) else {
            return DrainState::Done;
        };
        self.clock.advance_to(self.platform.now.to_timestamp(), Instant::now());
        if has_more {
            return DrainState::Active;
        }
        if let Some(due) = self.platform.next_due() {
            // This event is a webhook retry.
            self.clock.advance_to(due, Instant::now());
            return DrainState::Waiting;
        }
        if self.platform.awaits_receivers() { DrainState::Waiting } else { DrainState::Done }
    }
}

/// A clock that starts at a real time and never goes backwards.
#[derive(Clone, Copy, Debug)]
pub(super) struct VirtualClock {
    /// The virtual time at `real`.
    virtual_time: Timestamp,
    real: Instant,
    /// Virtual seconds per real second; at least one.
    speed: u32,
}

impl VirtualClock {
    /// A clock that shows `virtual_time` at `real` and then runs `speed` times as fast.
    pub(super) fn start(virtual_time: Timestamp, real: Instant, speed: u32) -> Self {
        Self { virtual_time, real, speed: speed.max(1) }
    }

    /// The virtual time at a real time, at most the latest representable time.
    pub(super) fn time_at(&self, real: Instant) -> Timestamp {
        let elapsed = real.saturating_duration_since(self.real).saturating_mul(self.speed);
        let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
        self.virtual_time.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// Advances the clock to at least `virtual_time` at a real time.
    pub(super) fn advance_to(&mut self, virtual_time: Timestamp, real: Instant) {
        self.virtual_time = self.time_at(real).max(virtual_time);
        self.real = self.real.max(real);
    }

    /// The real time from `real` until the clock shows `due`.
    pub(super) fn real_time_until(&self, due: Timestamp, real: Instant) -> Duration {
        let remaining = self.time_at(real).duration_until(due);
        Duration::try_from(remaining).unwrap_or_default() / self.speed
    }
}

/// The minimum interval between two checks of the clock.
const MIN_TICK: Duration = Duration::from_millis(20);

/// Keeps a platform up to date until this future is dropped. Dropping the future cancels the webhooks in flight.
pub(super) async fn run_clock(live: Arc<LivePlatform>, client: WebhookClient) {
    let mut in_flight = JoinSet::new();
    loop {
        let due = live.take_due_work(client.max_in_flight() - in_flight.len());
        for post in due.posts {
            let (live, client, webhook) = (Arc::clone(&live), client.clone(), post.webhook);
            in_flight.spawn(async move { live.record_post_outcome(webhook, client.send(post).await).await });
        }
        if due.has_more {
            tokio::task::yield_now().await;
            while in_flight.try_join_next().is_some() {}
            continue;
        }
        tokio::select! {
            () = live.wait_for_wakeup() => {}
            () = tokio::time::sleep(due.next.unwrap_or(Duration::MAX).max(MIN_TICK)) => {}
            Some(_) = in_flight.join_next() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn seconds(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn clock_runs_at_the_configured_speed_and_can_be_advanced() {
        let began = Instant::now();
        let mut clock = VirtualClock::start(seconds(100), began, 60);
        assert_eq!(clock.time_at(began), seconds(100));
        assert_eq!(clock.time_at(began + SECOND), seconds(160));
        assert_eq!(clock.real_time_until(seconds(220), began + SECOND), SECOND);
        assert_eq!(clock.real_time_until(seconds(100), began + SECOND), Duration::ZERO);
        clock.advance_to(seconds(1_000), began + SECOND);
        assert_eq!(clock.time_at(began + SECOND), seconds(1_000));
        assert_eq!(clock.time_at(began + 2 * SECOND), seconds(1_060));
    }

    proptest! {
        #[test]
        fn clock_never_goes_backwards_or_overflows(
            speed: u32, steps in prop::collection::vec((any::<u32>(), any::<Option<i32>>()), 1..20),
        ) {
            let mut real = Instant::now();
            let mut clock = VirtualClock::start(seconds(0), real, speed);
            let mut virtual_time = clock.time_at(real);
            for (passed, jump) in steps {
                real += Duration::from_millis(passed.into());
                if let Some(jump) = jump {
                    clock.advance_to(seconds(jump.into()), real);
                }
                let now = clock.time_at(real);
                prop_assert!(now >= virtual_time, "{virtual_time} became {now}");
                prop_assert_eq!(clock.real_time_until(now, real), Duration::ZERO);
                virtual_time = now;
            }
        }

        #[test]
        fn virtual_time_is_reached_after_the_predicted_wait(speed in 1..100_000_u32, due in 0..1_000_000_i64) {
            let began = Instant::now();
            let clock = VirtualClock::start(seconds(0), began, speed);
            // One more nanosecond makes up for the fraction that the division loses.
            let then = began + clock.real_time_until(seconds(due), began) + Duration::from_nanos(1);
            prop_assert!(clock.time_at(then) >= seconds(due));
        }
    }
}
