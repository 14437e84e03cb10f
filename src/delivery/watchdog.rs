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
const LEAST: Duration = Duration::from_secs(90);
/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);

/// What an envelope waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Its intent is being recorded.
    Intent,
    /// It waits for its slot in the account's pace, which may take any time.
    Slot,
    /// It is on its way, and the answer has not come.
    Answer,
    /// What became of it is being recorded.
    Outcome,
}

/// The step of each envelope in flight.
pub(super) struct Watchdog {
    patience: Duration,
    steps: Mutex<Steps>,
}

/// Times count only while this process is awake: one that was suspended finds its clock far ahead, and every answer late.
struct Steps {
    awake: Duration,
    looked_at: Instant,
    /// By envelope: the step, and when it began.
    began: BTreeMap<u32, (Step, Duration)>,
}

impl Steps {
    /// The time awake. What passed since the last look counts as two looks at most.
    fn now(&mut self) -> Duration {
        let now = Instant::now();
        self.awake += (now - self.looked_at).min(2 * LOOK);
        self.looked_at = now;
        self.awake
    }
}

impl Watchdog {
    /// A watchdog over envelopes whose requests may take so long.
    pub(super) fn new(timeout: Duration) -> Self {
        let steps = Steps { awake: Duration::ZERO, looked_at: Instant::now(), began: BTreeMap::new() };
        Self { patience: timeout.saturating_mul(3).max(LEAST), steps: Mutex::new(steps) }
    }

    /// An envelope enters a step.
    pub(super) fn enters(&self, envelope: u32, step: Step) {
        let mut steps = self.steps();
        let now = steps.now();
        steps.began.insert(envelope, (step, now));
    }

    /// An envelope is in flight no more.
    pub(super) fn leaves(&self, envelope: u32) {
        self.steps().began.remove(&envelope);
    }

    /// Waits until an envelope has been in one step for too long; says which ones wait, and on what.
    pub(super) async fn overdue(&self) -> String {
        loop {
            if let Some(told) = self.told() {
                return told;
            }
            sleep(LOOK).await;
        }
    }

    /// What waits, once something has waited for too long.
    fn told(&self) -> Option<String> {
        let mut steps = self.steps();
        let now = steps.now();
        let overdue = |(step, began): &(Step, Duration)| *step != Step::Slot && now - *began >= self.patience;
        steps.began.values().any(overdue).then(|| {
            let waiting = steps.began.iter();
            let waiting = waiting.map(|(envelope, (step, began))| {
                format!("envelope {envelope} {step} for {} s", (now - *began).as_secs())
            });
            format!("nothing moves any more: {}", waiting.collect::<Vec<_>>().join(", "))
        })
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Intent => "waits to be recorded before it is sent",
            Step::Slot => "waits for the account's pace",
            Step::Answer => "waits for its answer",
            Step::Outcome => "waits for its outcome to be recorded",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long it takes until something is overdue, and what is told then; nothing within a day.
    async fn overdue(watchdog: &Watchdog) -> Option<(u64, String)> {
        let start = Instant::now();
        let told = tokio::time::timeout(Duration::from_secs(86_400), watchdog.overdue()).await.ok()?;
        Some((start.elapsed().as_secs(), told))
    }

    #[tokio::test(start_paused = true)]
    async fn an_envelope_that_stays_in_a_step_is_named_with_what_it_waits_for() {
        for (timeout, patience) in [(1, 90), (30, 90), (60, 180)] {
            for step in [Step::Intent, Step::Answer, Step::Outcome] {
                let watchdog = Watchdog::new(Duration::from_secs(timeout));
                watchdog.enters(7, step);
                let (seconds, told) = overdue(&watchdog).await.expect("it is overdue");
                assert_eq!(seconds, patience);
                assert!(told.contains(&format!("envelope 7 {step} for {patience} s")), "{told}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_moves_on_what_is_through_and_what_waits_for_the_pace_is_never_overdue() {
        let watchdog = Watchdog::new(Duration::from_secs(30));
        watchdog.enters(1, Step::Intent);
        watchdog.enters(1, Step::Slot);
        watchdog.enters(2, Step::Outcome);
        watchdog.leaves(2);
        assert_eq!(overdue(&watchdog).await, None);
        for step in [Step::Intent, Step::Answer, Step::Outcome] {
            watchdog.enters(3, step);
            let soon = tokio::time::timeout(Duration::from_secs(89), watchdog.overdue()).await;
            assert!(soon.is_err(), "each step has its own time");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_in_which_the_process_was_suspended_does_not_count() {
        let watchdog = Watchdog::new(Duration::from_secs(30));
        watchdog.enters(1, Step::Answer);
        for _ in 0..3 {
            let soon = tokio::time::timeout(Duration::from_secs(20), watchdog.overdue()).await;
            assert!(soon.is_err(), "awake for 20 s");
            tokio::time::advance(Duration::from_secs(3_600)).await;
        }
        assert!(overdue(&watchdog).await.is_some(), "it watches on");
    }
}
