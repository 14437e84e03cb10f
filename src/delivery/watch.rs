//! The watch over what is in flight: on what each envelope waits, and since when.
//!
//! Every wait has an end of its own. The watch is for one that misses it, as on a disk that hangs: it names the
//! envelopes, so that the run can leave and say why rather than stay for ever. It ends nothing itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The least time that an envelope may stay in one step: a ledger that another process holds is waited for for a minute.
const LEAST: Duration = Duration::from_secs(90);

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
pub(super) struct Watch {
    patience: Duration,
    steps: Mutex<BTreeMap<u32, (Step, Instant)>>,
}

impl Watch {
    /// A watch over envelopes whose requests may take so long.
    pub(super) fn new(timeout: Duration) -> Self {
        Self { patience: timeout.saturating_mul(3).max(LEAST), steps: Mutex::default() }
    }

    /// An envelope enters a step.
    pub(super) fn enters(&self, envelope: u32, step: Step) {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).insert(envelope, (step, Instant::now()));
    }

    /// An envelope is in flight no more.
    pub(super) fn leaves(&self, envelope: u32) {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).remove(&envelope);
    }

    /// Waits until an envelope has been in one step for too long; says which ones wait, and on what.
    pub(super) async fn overdue(&self) -> String {
        loop {
            let next = self.first_due();
            if next <= Instant::now() {
                return self.told();
            }
            sleep_until(next).await;
        }
    }

    /// The moment from which on the first of them is overdue; one that is not in flight yet is not overdue earlier.
    fn first_due(&self) -> Instant {
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let bounded = steps.values().filter(|(step, _)| *step != Step::Slot);
        bounded.map(|(_, since)| *since).min().unwrap_or_else(Instant::now) + self.patience
    }

    fn told(&self) -> String {
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting: Vec<String> = steps
            .iter()
            .map(|(envelope, (step, since))| format!("envelope {envelope} {step} for {} s", since.elapsed().as_secs()))
            .collect();
        format!("nothing moves any more: {}", waiting.join(", "))
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
    async fn overdue(watch: &Watch) -> Option<(u64, String)> {
        let start = Instant::now();
        let told = tokio::time::timeout(Duration::from_secs(86_400), watch.overdue()).await.ok()?;
        Some((start.elapsed().as_secs(), told))
    }

    #[tokio::test(start_paused = true)]
    async fn an_envelope_that_stays_in_a_step_is_named_with_what_it_waits_for() {
        for (timeout, patience) in [(1, 90), (30, 90), (60, 180)] {
            for step in [Step::Intent, Step::Answer, Step::Outcome] {
                let watch = Watch::new(Duration::from_secs(timeout));
                watch.enters(7, step);
                let (seconds, told) = overdue(&watch).await.expect("it is overdue");
                assert_eq!(seconds, patience);
                assert!(told.contains(&format!("envelope 7 {step} for {patience} s")), "{told}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_moves_on_what_is_through_and_what_waits_for_the_pace_is_never_overdue() {
        let watch = Watch::new(Duration::from_secs(30));
        watch.enters(1, Step::Intent);
        watch.enters(1, Step::Slot);
        watch.enters(2, Step::Outcome);
        watch.leaves(2);
        assert_eq!(overdue(&watch).await, None);
        for step in [Step::Intent, Step::Answer, Step::Outcome] {
            watch.enters(3, step);
            let soon = tokio::time::timeout(Duration::from_secs(89), watch.overdue()).await;
            assert!(soon.is_err(), "each step has its own time");
        }
    }
}
