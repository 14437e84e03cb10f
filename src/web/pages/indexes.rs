//! Which rows of the runs that somebody looked into lately are in which state.
//!
//! Making an index reads all envelopes of a run, so it is kept, and made anew many times as long as it took afterwards.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::refusal::PageError;
use crate::ledger::{Ledger, LedgerError, Run, RunId};
use crate::report::{RowIndex, is_owned};

/// How long an index is told at least.
const MIN_TTL: Duration = Duration::from_secs(1);
/// How much longer than making it took it is told.
const TTL_FACTOR: u32 = 20;
/// How long somebody waits for one.
const BUILD_TIMEOUT: Duration = Duration::from_secs(8);
/// How many are kept.
const MAX_INDEXES: usize = 8;

/// The indexes that were made lately, the latest last.
#[derive(Default)]
pub(super) struct RowIndexCache(Arc<Mutex<Vec<CachedIndex>>>);

struct CachedIndex {
    run: RunId,
    /// What of the run it goes by: another end, or other receipts, make another index.
    of: String,
    index: Arc<RowIndex>,
    fresh_until: Instant,
}

impl RowIndexCache {
    /// That of a run.
    ///
    /// # Errors
    /// When the ledger cannot be read, or it takes long; what was begun is there for who asks next.
    pub(super) async fn get_index(&self, ledger: &Arc<dyn Ledger>, run: &Run) -> Result<Arc<RowIndex>, PageError> {
        let (made, ledger, run) = (Arc::clone(&self.0), Arc::clone(ledger), run.clone());
        let making = tokio::spawn(async move { build_index(&mut *made.lock().await, ledger.as_ref(), &run).await });
        match tokio::time::timeout(BUILD_TIMEOUT, making).await {
            Ok(Ok(index)) => Ok(index?),
            Ok(Err(_)) | Err(_) => Err(PageError::Later),
        }
    }
}

async fn build_index(
    made: &mut Vec<CachedIndex>,
    ledger: &dyn Ledger,
    run: &Run,
) -> Result<Arc<RowIndex>, LedgerError> {
    let owned = is_owned(ledger, run).await?;
    let of = format!("{owned} {:?} {:?} {}", run.progress, run.ended_at, run.receipts);
    let known = made.iter().find(|known| known.run == run.key);
    if let Some(known) = known.filter(|known| Instant::now() < known.fresh_until && (owned || known.of == of)) {
        return Ok(Arc::clone(&known.index));
    }
    let began = Instant::now();
    let index = Arc::new(RowIndex::load(ledger, run, owned).await?);
    made.retain(|known| known.run != run.key);
    let fresh_until = Instant::now() + (began.elapsed() * TTL_FACTOR).max(MIN_TTL);
    made.push(CachedIndex { run: run.key, of, index: Arc::clone(&index), fresh_until });
    let surplus = made.len().saturating_sub(MAX_INDEXES);
    made.drain(..surplus);
    Ok(index)
}
