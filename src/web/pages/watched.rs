//! Runs that somebody looks at: each is read by one reader, whoever and how many look, and only while somebody does.
//!
//! A run that is being sent is read from its envelopes, so reading rests many times as long as it took.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::run::SharedParts;
use crate::ledger::{Ledger, LedgerError, RunFilter, RunId};
use crate::report::{RunStanding, RunStatus, SendingProgress};

/// How often a run is read at most.
const EACH: Duration = Duration::from_secs(1);
/// Reading takes at most one part of so many of the time: somebody may be sending on the same machine.
const PARTS: u32 = 50;
/// How long somebody who asks for a page waits for the first reading.
const PATIENCE: Duration = Duration::from_secs(8);
/// Runs whose last reading is kept though nobody looks.
const KEPT: usize = 64;

/// A run as it stood a moment ago.
pub(super) struct Reading {
    pub(super) standing: RunStanding,
    /// How long the rest takes, where it is being sent for a while.
    pub(super) left: Option<Duration>,
    /// What is made of it for all who look.
    pub(super) shared: SharedParts,
}

/// What came of the last reading; nothing before the first.
type Last = Option<Result<Arc<Reading>, Arc<LedgerError>>>;

/// The runs that somebody looks at, or looked at a moment ago.
pub(super) struct Watched {
    ledger: Arc<dyn Ledger>,
    runs: Mutex<HashMap<RunId, Entry>>,
}

struct Entry {
    last: watch::Sender<Last>,
    /// Until when the last reading is told without another.
    fresh_until: Instant,
    is_read: bool,
}

impl Watched {
    pub(super) fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, runs: Mutex::default() }
    }

    /// Follows a run: what was read of it last, and what is read as long as this is kept.
    pub(super) fn follow(self: &Arc<Self>, run: RunId) -> watch::Receiver<Last> {
        let mut runs = self.runs();
        if runs.len() > KEPT {
            runs.retain(|_, entry| entry.is_read);
        }
        let entry = runs.entry(run).or_insert_with(|| Entry {
            last: watch::Sender::new(None),
            fresh_until: Instant::now(),
            is_read: false,
        });
        if !entry.is_read && entry.fresh_until <= Instant::now() {
            // It is of long ago: whoever comes waits for the next one.
            entry.last.send_replace(None);
        }
        let follower = entry.last.subscribe();
        if !entry.is_read {
            entry.is_read = true;
            tokio::spawn(Arc::clone(self).read(run, entry.last.clone(), entry.fresh_until));
        }
        follower
    }

    /// A run as it stood a moment ago; nothing while that is not known yet and has not been for long.
    pub(super) async fn glance(self: &Arc<Self>, run: RunId) -> Option<Result<Arc<Reading>, Arc<LedgerError>>> {
        let mut follower = self.follow(run);
        let known = tokio::time::timeout(PATIENCE, follower.wait_for(Option::is_some)).await;
        known.ok()?.ok()?.clone()
    }

    /// Reads a run anew at once, since it was just changed from here.
    pub(super) fn changed(&self, run: RunId) {
        let mut runs = self.runs();
        if runs.get(&run).is_some_and(|entry| !entry.is_read) {
            runs.remove(&run);
        }
    }

    /// Reads a run again and again, until nobody looks.
    async fn read(self: Arc<Self>, run: RunId, last: watch::Sender<Last>, fresh_until: Instant) {
        sleep_until(fresh_until).await;
        let mut progress = None;
        loop {
            let began = Instant::now();
            let reading = reading(self.ledger.as_ref(), run, &mut progress).await;
            let rest = EACH.max(began.elapsed().saturating_mul(PARTS));
            last.send_replace(Some(reading.map(Arc::new).map_err(Arc::new)));
            tokio::select! {
                () = sleep(rest) => {}
                () = last.closed() => {}
            }
            let mut runs = self.runs();
            let Some(entry) = runs.get_mut(&run) else { return };
            // Nobody comes in between: whoever follows takes the same lock.
            if last.receiver_count() == 0 {
                (entry.is_read, entry.fresh_until) = (false, began + rest);
                return;
            }
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Entry>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn reading(
    ledger: &dyn Ledger,
    key: RunId,
    progress: &mut Option<SendingProgress>,
) -> Result<Reading, LedgerError> {
    let run = ledger.runs(RunFilter::one(key)).await?.pop();
    let run = run.ok_or_else(|| LedgerError::Unreadable("the run is no longer in the ledger".to_owned()))?;
    let standing = RunStanding::whole(ledger, run).await?;
    if standing.view.status != RunStatus::Sending {
        *progress = None;
        return Ok(Reading { standing, left: None, shared: SharedParts::default() });
    }
    let progress = progress.get_or_insert_with(|| SendingProgress::new(standing.view.run.recipients, 0));
    progress.settled(std::time::Instant::now(), &standing.view.counts);
    let left = progress.estimate().map(|estimate| estimate.left);
    Ok(Reading { standing, left, shared: SharedParts::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Fate, scene};

    #[tokio::test(start_paused = true)]
    async fn however_many_look_a_run_is_read_once_and_by_nobody_when_nobody_looks() {
        let (ledger, run) = scene(&[Fate::Waits, Fate::Silent]).await;
        let ledger = Arc::new(ledger);
        ledger.take_read();
        RunStanding::whole(ledger.as_ref(), run.clone()).await.unwrap();
        let once = ledger.take_read();
        assert!(!once.is_empty());
        let watched = Arc::new(Watched::new(ledger.clone()));
        let mut open: Vec<_> = (0..10).map(|_| watched.follow(run.key)).collect();
        for page in &mut open {
            page.wait_for(Option::is_some).await.unwrap();
        }
        assert_eq!(ledger.take_read(), once, "ten pages share one reading");
        drop(open);
        // The time of the test passes at once.
        sleep(EACH * 10).await;
        assert!(ledger.take_read().is_empty(), "nobody looks");
    }
}
