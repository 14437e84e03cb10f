//! The watchdog over what is in flight: on what each envelope waits, and since when.
//!
//! Every wait has an end of its own. The watchdog is for one that misses it, as on a disk that hangs: it names the
//! envelopes, so that the run can leave and say why rather than stay for ever. It ends nothing itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The least time that an envelope may stay in one step: a ledger that another process holds is waited for for a minute.
const MIN_PATIENCE: Duration = Duration::from_secs(90);
/// How often it looks.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// What an envelope waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitStep {
    /// Its intent is being recorded.
    Intent,
    /// It waits for its slot in the account's pace, which may take any time.
    Slot,
    /// It is on its way, and the answer has not come.
    Answer,
    /// What became of it is being recorded.
    Outcome,
}

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WatchedEnvelope {
    /// An envelope that has no number yet, by how many there were before.
    New(u32),
    /// The envelope of this number.
    Envelope(u32),
}

/// The step of each envelope in flight.
pub(super) struct Watchdog {
    patience: Duration,
    steps: Mutex<WatchState>,
}

/// Times count only while this process is awake: one that was suspended finds its clock far ahead, and every answer late.
struct WatchState {
    awake: Duration,
    looked_at: Instant,
    /// The step of each, and when it began.
    began: BTreeMap<WatchedEnvelope, (WaitStep, Duration)>,
    /// How many asked for a number.
    asked: u32,
}

impl WatchState {
    /// The time awake. What passed since the last look counts as two looks at most.
    fn advance_clock(&mut self) -> Duration {
        let now = Instant::now();
        self.awake += (now - self.looked_at).min(2 * CHECK_INTERVAL);
        self.looked_at = now;
        self.awake
    }
}

impl Watchdog {
    /// A watchdog over envelopes whose requests may take so long.
    pub(super) fn new(timeout: Duration) -> Self {
        let steps = WatchState { awake: Duration::ZERO, looked_at: Instant::now(), began: BTreeMap::new(), asked: 0 };
        Self { patience: timeout.saturating_mul(3).max(MIN_PATIENCE), steps: Mutex::new(steps) }
    }

    /// A new envelope has its intent recorded, and is given a number by that.
    pub(super) fn register(&self) -> WatchedEnvelope {
        let new = {
            let mut steps = self.steps();
            steps.asked += 1;
            WatchedEnvelope::New(steps.asked)
        };
        self.enter_step(new, WaitStep::Intent);
        new
    }

    /// An envelope enters a step.
    pub(super) fn enter_step(&self, envelope: WatchedEnvelope, step: WaitStep) {
        let mut steps = self.steps();
        let now = steps.advance_clock();
        steps.began.insert(envelope, (step, now));
    }

    /// An envelope is in flight no more.
    pub(super) fn remove(&self, envelope: WatchedEnvelope) {
        self.steps().began.remove(&envelope);
    }

    /// Waits until an envelope has been in one step for too long; says which ones wait, and on what.
    pub(super) async fn wait_overdue(&self) -> String {
        loop {
            if let Some(told) = self.describe_overdue() {
                return told;
            }
            sleep(CHECK_INTERVAL).await;
        }
    }

    /// What waits, once something has waited for too long.
    fn describe_overdue(&self) -> Option<String> {
        let mut steps = self.steps();
        let now = steps.advance_clock();
        let overdue = |(step, began): &(WaitStep, Duration)| *step != WaitStep::Slot && now - *began >= self.patience;
        steps.began.values().any(overdue).then(|| {
            let waiting = steps.began.iter();
            let waiting = waiting
                .map(|(envelope, (step, began))| format!("{envelope} {step} for {} s", (now - *began).as_secs()));
            format!("sending is stuck: {}", waiting.collect::<Vec<_>>().join(", "))
        })
    }

    fn steps(&self) -> MutexGuard<'_, WatchState> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for WatchedEnvelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WatchedEnvelope::New(_) => f.write_str("a request"),
            WatchedEnvelope::Envelope(number) => write!(f, "request {number}"),
        }
    }
}

impl fmt::Display for WaitStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitStep::Intent => "has been waiting to be recorded before sending",
            WaitStep::Slot => "has been waiting for the rate limit",
            WaitStep::Answer => "has been waiting for its response",
            WaitStep::Outcome => "has been waiting for its outcome to be recorded",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long it takes until something is overdue, and what is told then; nothing within a day.
    async fn measure_overdue(watchdog: &Watchdog) -> Option<(u64, String)> {
        let start = Instant::now();
        let told = tokio::time::timeout(Duration::from_secs(86_400), watchdog.wait_overdue()).await.ok()?;
        Some((start.elapsed().as_secs(), told))
    }

    #[tokio::test(start_paused = true)]
    async fn overdue_envelope_is_named_with_its_step() {
        for (timeout, patience) in [(1, 90), (30, 90), (60, 180)] {
            for step in [WaitStep::Intent, WaitStep::Answer, WaitStep::Outcome] {
                let watchdog = Watchdog::new(Duration::from_secs(timeout));
                watchdog.enter_step(WatchedEnvelope::Envelope(7), step);
                let (seconds, told) = measure_overdue(&watchdog).await.expect("it is overdue");
                assert_eq!(seconds, patience);
                assert!(told.contains(&format!("request 7 {step} for {patience} s")), "{told}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn progressing_or_rate_limited_envelope_is_never_overdue() {
        let watchdog = Watchdog::new(Duration::from_secs(30));
        let new = watchdog.register();
        watchdog.remove(new);
        watchdog.enter_step(WatchedEnvelope::Envelope(1), WaitStep::Slot);
        watchdog.enter_step(WatchedEnvelope::Envelope(2), WaitStep::Outcome);
        watchdog.remove(WatchedEnvelope::Envelope(2));
        assert_eq!(measure_overdue(&watchdog).await, None);
        for step in [WaitStep::Intent, WaitStep::Answer, WaitStep::Outcome] {
            watchdog.enter_step(WatchedEnvelope::Envelope(3), step);
            let soon = tokio::time::timeout(Duration::from_secs(89), watchdog.wait_overdue()).await;
            assert!(soon.is_err(), "each step has its own time");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn suspended_time_does_not_count() {
        let watchdog = Watchdog::new(Duration::from_secs(30));
        watchdog.enter_step(WatchedEnvelope::Envelope(1), WaitStep::Answer);
        for _ in 0..3 {
            let soon = tokio::time::timeout(Duration::from_secs(20), watchdog.wait_overdue()).await;
            assert!(soon.is_err(), "awake for 20 s");
            tokio::time::advance(Duration::from_secs(3_600)).await;
        }
        assert!(measure_overdue(&watchdog).await.is_some(), "it watches on");
    }
}
