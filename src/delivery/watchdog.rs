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

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Waiting {
    /// An envelope that has no number yet, by how many there were before.
    New(u32),
    /// The envelope of this number.
    Envelope(u32),
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
    /// The step of each, and when it began.
    began: BTreeMap<Waiting, (Step, Duration)>,
    /// How many asked for a number.
    asked: u32,
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
        let steps = Steps { awake: Duration::ZERO, looked_at: Instant::now(), began: BTreeMap::new(), asked: 0 };
        Self { patience: timeout.saturating_mul(3).max(LEAST), steps: Mutex::new(steps) }
    }

    /// A new envelope has its intent recorded, and is given a number by that.
    pub(super) fn asks(&self) -> Waiting {
        let new = {
            let mut steps = self.steps();
            steps.asked += 1;
            Waiting::New(steps.asked)
        };
        self.enters(new, Step::Intent);
        new
    }

    /// An envelope enters a step.
    pub(super) fn enters(&self, envelope: Waiting, step: Step) {
        let mut steps = self.steps();
        let now = steps.now();
        steps.began.insert(envelope, (step, now));
    }

    /// An envelope is in flight no more.
    pub(super) fn leaves(&self, envelope: Waiting) {
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
            let waiting = waiting
                .map(|(envelope, (step, began))| format!("{envelope} {step} for {} s", (now - *began).as_secs()));
            format!("sending is stuck: {}", waiting.collect::<Vec<_>>().join(", "))
        })
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Waiting::New(_) => f.write_str("a request"),
            Waiting::Envelope(number) => write!(f, "request {number}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Intent => "has been waiting to be recorded before sending",
            Step::Slot => "has been waiting for the rate limit",
            Step::Answer => "has been waiting for its response",
            Step::Outcome => "has been waiting for its outcome to be recorded",
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
                watchdog.enters(Waiting::Envelope(7), step);
                let (seconds, told) = overdue(&watchdog).await.expect("it is overdue");
                assert_eq!(seconds, patience);
                assert!(told.contains(&format!("request 7 {step} for {patience} s")), "{told}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_moves_on_what_is_through_and_what_waits_for_the_pace_is_never_overdue() {
        let watchdog = Watchdog::new(Duration::from_secs(30));
        let new = watchdog.asks();
        watchdog.leaves(new);
        watchdog.enters(Waiting::Envelope(1), Step::Slot);
        watchdog.enters(Waiting::Envelope(2), Step::Outcome);
        watchdog.leaves(Waiting::Envelope(2));
        assert_eq!(overdue(&watchdog).await, None);
        for step in [Step::Intent, Step::Answer, Step::Outcome] {
            watchdog.enters(Waiting::Envelope(3), step);
            let soon = tokio::time::timeout(Duration::from_secs(89), watchdog.overdue()).await;
            assert!(soon.is_err(), "each step has its own time");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_in_which_the_process_was_suspended_does_not_count() {
        let watchdog = Watchdog::new(Duration::from_secs(30));
        watchdog.enters(Waiting::Envelope(1), Step::Answer);
        for _ in 0..3 {
            let soon = tokio::time::timeout(Duration::from_secs(20), watchdog.overdue()).await;
            assert!(soon.is_err(), "awake for 20 s");
            tokio::time::advance(Duration::from_secs(3_600)).await;
        }
        assert!(overdue(&watchdog).await.is_some(), "it watches on");
    }
}
