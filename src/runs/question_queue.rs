//! The queue of assistants' questions to an account. It is short: a question that would wait too long is refused.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::Error;
use crate::ledger::{Allowance, Ledger, QuestionPermit, SlotWait};

/// The longest that a question waits for room in the account's rate.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The questions of this process that wait for room.
#[derive(Debug, Default)]
pub(super) struct QuestionQueue {
    /// The question that is first has it, and asks the ledger.
    first: Mutex<()>,
    waiting: AtomicU64,
    /// The microseconds between two questions, as of the last one.
    apart: AtomicU64,
}

/// The place of a question in the queue; dropped, it leaves the queue.
struct QueuePlace<'q>(&'q AtomicU64);

impl QuestionQueue {
    /// Waits for room for one question, and returns how long it waits for the account's rate after that.
    ///
    /// # Errors
    /// When it would wait too long, or the ledger cannot be used.
    pub(super) async fn wait_for_room(&self, ledger: &dyn Ledger, account: &Allowance) -> Result<SlotWait, Error> {
        let began = Instant::now();
        let ahead = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _place = QueuePlace(&self.waiting);
        let wait = Duration::from_micros(ahead.saturating_mul(self.apart.load(Ordering::Relaxed)));
        if wait > MAX_WAIT {
            return Err(Error::TooManyQuestions { wait });
        }
        let _first = self.first.lock().await;
        loop {
            match ledger.reserve_question(account, MAX_WAIT).await? {
                QuestionPermit::Granted { wait, next } => {
                    self.apart.store(u64::try_from(next.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
                    return Ok(wait);
                }
                QuestionPermit::Later(wait) if began.elapsed() + wait > MAX_WAIT => {
                    return Err(Error::TooManyQuestions { wait });
                }
                QuestionPermit::Later(wait) => sleep(wait).await,
            }
        }
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicI64;

    use jiff::Timestamp;

    use super::*;
    use crate::ledger::LedgerMaintenance as _;
    use crate::ledger::memory::{LedgerContents, MemoryLedger};

    /// A ledger whose clock goes with the runtime's, which a test pauses.
    static NOW: AtomicI64 = AtomicI64::new(1_800_000_000_000_000);

    fn now() -> Timestamp {
        Timestamp::from_microsecond(NOW.load(Ordering::Relaxed)).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn excess_questions_are_refused_and_use_no_rate() {
        let began = Instant::now();
        let ledger = Arc::new(MemoryLedger::new(LedgerContents::default(), now));
        let clock = tokio::spawn(async move {
            loop {
                NOW.store(1_800_000_000_000_000 + began.elapsed().as_micros() as i64, Ordering::Relaxed);
                sleep(Duration::from_millis(1)).await;
            }
        });
        let (queue, account) = (Arc::new(QuestionQueue::default()), Allowance::new("account", Some(10.0)));
        // A message a moment ago: questions have a tenth of the rate, one a second.
        ledger.reserve_rate(&account, 1).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        queue.wait_for_room(ledger.as_ref(), &account).await.unwrap();
        let asked = (0..60).map(|_| {
            let (queue, ledger, account) = (Arc::clone(&queue), Arc::clone(&ledger), account.clone());
            async move { queue.wait_for_room(ledger.as_ref(), &account).await }
        });
        let answers = futures_util::future::join_all(asked).await;
        let granted = answers.iter().filter(|answer| answer.is_ok()).count();
        assert!((4..=5).contains(&granted), "{granted} within the longest wait");
        assert!(began.elapsed() < Duration::from_secs(7), "{:?}", began.elapsed());
        assert_eq!(queue.waiting.load(Ordering::Relaxed), 0);
        let (_, pace) = ledger.list_rate_limits().await.unwrap().pop().unwrap();
        assert_eq!(pace.taken, granted as i64 + 2);
        clock.abort();
    }
}
