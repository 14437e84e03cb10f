//! The runs of the ledger as they stood a moment ago.
//!
//! A run that is being sent is read from its envelopes, which takes seconds when it has millions of rows. So the runs are
//! read when somebody asks, by one reader at a time, for at most a twentieth of the time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::ledger::{Ledger, LedgerError};
use crate::report::RunList;

/// How long what was read is told at least.
const MIN_TTL: Duration = Duration::from_secs(1);
/// How much longer than a reading took it is told.
const TTL_FACTOR: u32 = 20;
/// How long somebody who asks waits for a reading.
const READ_TIMEOUT: Duration = Duration::from_secs(8);

/// The runs as they stood a moment ago.
pub struct RunListCache {
    ledger: Arc<dyn Ledger>,
    last: Arc<Mutex<Option<CachedRuns>>>,
}

/// What was read, and until when it is told.
struct CachedRuns {
    runs: Arc<RunList>,
    fresh_until: Instant,
}

impl RunListCache {
    /// Those of a ledger.
    pub fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, last: Arc::default() }
    }

    /// The ledger.
    pub(super) fn ledger(&self) -> &dyn Ledger {
        self.ledger.as_ref()
    }

    /// The runs, the latest first; nothing while they are being read and have been for long.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(super) async fn read_latest(&self) -> Result<Option<Arc<RunList>>, LedgerError> {
        let (ledger, last) = (Arc::clone(&self.ledger), Arc::clone(&self.last));
        // On its own: what is half read when somebody gives up waiting is there for the next one.
        let reading = tokio::spawn(async move {
            let mut last = last.lock().await;
            if let Some(CachedRuns { runs, fresh_until }) = &*last
                && Instant::now() < *fresh_until
            {
                return Ok(Arc::clone(runs));
            }
            let began = Instant::now();
            let runs = Arc::new(RunList::load(ledger.as_ref()).await?);
            let fresh_until = Instant::now() + (began.elapsed() * TTL_FACTOR).max(MIN_TTL);
            *last = Some(CachedRuns { runs: Arc::clone(&runs), fresh_until });
            Ok(runs)
        });
        match tokio::time::timeout(READ_TIMEOUT, reading).await {
            Ok(Ok(read)) => read.map(Some),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }
}
