//! Telling of answers that take long: once until answers come in time again.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::event::{DeliveryEvent, DeliveryObserver};

/// A longer wait for an answer is told.
const SLOW_AFTER: Duration = Duration::from_secs(10);

/// What is known of the answers of a start, whatever number of envelopes waits for one.
pub(super) struct SlowAnswers {
    /// How long an answer is waited for.
    at_most: Duration,
    /// Who is told.
    observer: DeliveryObserver,
    /// Whether it was told, and no answer came in time since.
    announced: AtomicBool,
}

impl SlowAnswers {
    pub(super) fn new(at_most: Duration, observer: DeliveryObserver) -> Self {
        Self { at_most, observer, announced: AtomicBool::new(false) }
    }

    /// Waits for an answer, and tells of it if that takes long.
    pub(super) async fn wait_for<T>(&self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        tokio::select! {
            biased;
            answer = &mut answer => {
                self.announced.store(false, Ordering::Relaxed);
                return answer;
            }
            () = tokio::time::sleep(SLOW_AFTER), if self.at_most > SLOW_AFTER => {}
        }
        if !self.announced.swap(true, Ordering::Relaxed) {
            (self.observer)(DeliveryEvent::Slow { waited: SLOW_AFTER, at_most: self.at_most });
        }
        answer.await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::time::{Instant, sleep};

    use super::*;

    /// When, in seconds from the start, it is told that answers take long, if they come one after the other so late.
    async fn announcement_times(at_most: u64, answers: &[u64]) -> Vec<u64> {
        let (began, told) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
        let kept = Arc::clone(&told);
        let observer: DeliveryObserver = Arc::new(move |event| {
            let DeliveryEvent::Slow { waited, at_most: most } = event else { panic!("nothing else is told") };
            assert_eq!((waited, most), (SLOW_AFTER, Duration::from_secs(at_most)));
            kept.lock().unwrap().push(began.elapsed().as_secs());
        });
        let slow = SlowAnswers::new(Duration::from_secs(at_most), observer);
        for &late in answers {
            slow.wait_for(sleep(Duration::from_secs(late))).await;
        }
        assert_eq!(began.elapsed().as_secs(), answers.iter().sum::<u64>(), "nothing is waited for but the answers");
        let told = told.lock().unwrap();
        told.clone()
    }

    #[tokio::test(start_paused = true)]
    async fn slow_answer_is_announced_once_after_ten_seconds() {
        assert_eq!(announcement_times(30, &[9, 9]).await, [0_u64; 0]);
        assert_eq!(announcement_times(30, &[12]).await, [10]);
        assert_eq!(announcement_times(30, &[12, 25, 11]).await, [10]);
        assert_eq!(announcement_times(30, &[12, 1, 25]).await, [10, 23]);
    }

    #[tokio::test(start_paused = true)]
    async fn abandoned_answers_are_not_announced() {
        assert_eq!(announcement_times(10, &[10, 10]).await, [0_u64; 0]);
    }
}
