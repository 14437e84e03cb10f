//! The shares that a start draws, one after another, while it goes on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::together::MAX_SHARE;
use crate::ledger::{Ledger, LedgerError, RowSpan, ShardDraw, ShardWorker};

/// The shares that a start draws.
#[derive(Clone)]
pub struct ShareDraw(Arc<ShareDrawInner>);

struct ShareDrawInner {
    ledger: Arc<dyn Ledger>,
    seat: Arc<ShardWorker>,
    /// How many rows are drawn at once after those that are there; none where no more are drawn.
    size: Option<u32>,
    state: Mutex<DrawState>,
}

#[derive(Default)]
struct DrawState {
    waiting: VecDeque<RowSpan>,
    drawn: Vec<RowSpan>,
    /// What ended the drawing.
    last: Option<ShardDraw>,
    /// When somebody last looked who is gone.
    checked_at: Option<Instant>,
}

/// How often whoever draws looks who is gone: what they left is not left for longer, and to look costs as much as some draws.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

impl ShareDraw {
    /// These rows, and then what nobody drew before, so many at once, as long as there are some.
    #[must_use]
    pub fn draw_from(ledger: Arc<dyn Ledger>, seat: Arc<ShardWorker>, rows: RowSpan, size: u32) -> Self {
        Self::new(ledger, seat, (vec![rows], Some(size)))
    }

    /// These rows and no others, in their order.
    #[must_use]
    pub fn fixed(ledger: Arc<dyn Ledger>, seat: Arc<ShardWorker>, rows: Vec<RowSpan>) -> Self {
        Self::new(ledger, seat, (rows, None))
    }

    fn new(ledger: Arc<dyn Ledger>, seat: Arc<ShardWorker>, (rows, size): (Vec<RowSpan>, Option<u32>)) -> Self {
        // Whoever got these looked.
        let state = DrawState { waiting: rows.into(), checked_at: Some(Instant::now()), ..DrawState::default() };
        Self(Arc::new(ShareDrawInner { ledger, seat, size, state: Mutex::new(state) }))
    }

    /// The same rows once more, and no others.
    #[must_use]
    pub fn repeat(&self) -> Self {
        let ShareDrawInner { ledger, seat, .. } = &*self.0;
        let state = self.state();
        let rows = state.drawn.iter().chain(&state.waiting).copied().collect();
        Self::fixed(Arc::clone(ledger), Arc::clone(seat), rows)
    }

    /// The next rows; nothing when none are to be had now.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub async fn next_rows(&self) -> Result<Option<RowSpan>, LedgerError> {
        if let Some(rows) = self.take_waiting() {
            return Ok(Some(rows));
        }
        let ShareDrawInner { ledger, seat, size, .. } = &*self.0;
        let Some(size) = size.filter(|_| self.state().last.is_none()) else { return Ok(None) };
        match ledger.draw_shard(seat, size, self.is_check_due()).await? {
            ShardDraw::NewRows(rows) => {
                self.state().drawn.push(rows);
                Ok(Some(rows))
            }
            other => {
                self.state().last = Some(other);
                Ok(None)
            }
        }
    }

    /// What the last request for more came to, once; nothing where none was made.
    #[must_use]
    pub fn take_last_share(&self) -> Option<ShardDraw> {
        self.state().last.take()
    }

    /// Whether its shares are as large as shares get: no rate, or a high one, has them last longer.
    #[must_use]
    pub fn has_largest_shares(&self) -> bool {
        self.0.size.is_some_and(|size| size >= MAX_SHARE)
    }

    /// Whether it is time to look who is gone.
    fn is_check_due(&self) -> bool {
        let mut state = self.state();
        let is_time = state.checked_at.is_none_or(|looked| looked.elapsed() >= CHECK_INTERVAL);
        if is_time {
            state.checked_at = Some(Instant::now());
        }
        is_time
    }

    fn take_waiting(&self) -> Option<RowSpan> {
        let mut state = self.state();
        let rows = state.waiting.pop_front()?;
        state.drawn.push(rows);
        Some(rows)
    }

    fn state(&self) -> MutexGuard<'_, DrawState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
