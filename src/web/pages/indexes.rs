//! Which rows of the runs that somebody looked into lately are in which state.
//!
//! Making an index reads all envelopes of a run, so it is kept, and made anew many times as long as it took afterwards.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::refusal::Refusal;
use crate::ledger::{Ledger, LedgerError, Run, RunId};
use crate::report::{RowIndex, is_owned};

/// How long an index is told at least.
const FRESH: Duration = Duration::from_secs(1);
/// How much longer than making it took it is told.
const SHARE: u32 = 20;
/// How long somebody waits for one.
const PATIENCE: Duration = Duration::from_secs(8);
/// How many are kept.
const KEPT: usize = 8;

/// The indexes that were made lately, the latest last.
#[derive(Default)]
pub(super) struct Indexes(Arc<Mutex<Vec<Made>>>);

struct Made {
    run: RunId,
    /// What of the run it goes by: another end, or other receipts, make another index.
    of: String,
    index: Arc<RowIndex>,
    fresh_until: Instant,
}

impl Indexes {
    /// That of a run.
    ///
    /// # Errors
    /// When the ledger cannot be read, or it takes long; what was begun is there for who asks next.
    pub(super) async fn of(&self, ledger: &Arc<dyn Ledger>, run: &Run) -> Result<Arc<RowIndex>, Refusal> {
        let (made, ledger, run) = (Arc::clone(&self.0), Arc::clone(ledger), run.clone());
        let making = tokio::spawn(async move { index(&mut *made.lock().await, ledger.as_ref(), &run).await });
        match tokio::time::timeout(PATIENCE, making).await {
            Ok(Ok(index)) => Ok(index?),
            Ok(Err(_)) | Err(_) => Err(Refusal::Later),
        }
    }
}

async fn index(made: &mut Vec<Made>, ledger: &dyn Ledger, run: &Run) -> Result<Arc<RowIndex>, LedgerError> {
    let owned = is_owned(ledger, run).await?;
    let of = format!("{owned} {:?} {:?} {}", run.progress, run.ended_at, run.receipts);
    let known = made.iter().find(|known| known.run == run.key);
    if let Some(known) = known.filter(|known| Instant::now() < known.fresh_until && (owned || known.of == of)) {
        return Ok(Arc::clone(&known.index));
    }
    let began = Instant::now();
    let index = Arc::new(RowIndex::read(ledger, run, owned).await?);
    made.retain(|known| known.run != run.key);
    let fresh_until = Instant::now() + (began.elapsed() * SHARE).max(FRESH);
    made.push(Made { run: run.key, of, index: Arc::clone(&index), fresh_until });
    let surplus = made.len().saturating_sub(KEPT);
    made.drain(..surplus);
    Ok(index)
}
