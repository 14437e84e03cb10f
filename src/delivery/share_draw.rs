//! The shares that a start draws, one after another, while it goes on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::together::LARGEST_SHARE;
use crate::ledger::{Ledger, LedgerError, Rows, Seat, Share};

/// The shares that a start draws.
#[derive(Clone)]
pub struct ShareDraw(Arc<Draw>);

struct Draw {
    ledger: Arc<dyn Ledger>,
    seat: Arc<Seat>,
    /// How many rows are drawn at once after those that are there; none where no more are drawn.
    size: Option<u32>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Rows>,
    given: Vec<Rows>,
    /// What ended the drawing.
    last: Option<Share>,
    /// When somebody last looked who is gone.
    looked: Option<Instant>,
}

/// How often whoever draws looks who is gone: what they left is not left for longer, and to look costs as much as some draws.
const LOOKS: Duration = Duration::from_secs(5);

impl ShareDraw {
    /// These rows, and then what nobody drew before, so many at once, as long as there are some.
    #[must_use]
    pub fn from(ledger: Arc<dyn Ledger>, seat: Arc<Seat>, rows: Rows, size: u32) -> Self {
        Self::new(ledger, seat, (vec![rows], Some(size)))
    }

    /// These rows and no others, in their order.
    #[must_use]
    pub fn of(ledger: Arc<dyn Ledger>, seat: Arc<Seat>, rows: Vec<Rows>) -> Self {
        Self::new(ledger, seat, (rows, None))
    }

    fn new(ledger: Arc<dyn Ledger>, seat: Arc<Seat>, (rows, size): (Vec<Rows>, Option<u32>)) -> Self {
        // Whoever got these looked.
        let state = State { waiting: rows.into(), looked: Some(Instant::now()), ..State::default() };
        Self(Arc::new(Draw { ledger, seat, size, state: Mutex::new(state) }))
    }

    /// The same rows once more, and no others.
    #[must_use]
    pub fn again(&self) -> Self {
        let Draw { ledger, seat, .. } = &*self.0;
        let state = self.state();
        let rows = state.given.iter().chain(&state.waiting).copied().collect();
        Self::of(Arc::clone(ledger), Arc::clone(seat), rows)
    }

    /// The next rows; nothing when none are to be had now.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub async fn next(&self) -> Result<Option<Rows>, LedgerError> {
        if let Some(rows) = self.take() {
            return Ok(Some(rows));
        }
        let Draw { ledger, seat, size, .. } = &*self.0;
        let Some(size) = size.filter(|_| self.state().last.is_none()) else { return Ok(None) };
        match ledger.draw_share(seat, size, self.is_to_look()).await? {
            Share::Fresh(rows) => {
                self.state().given.push(rows);
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
    pub fn take_last(&self) -> Option<Share> {
        self.state().last.take()
    }

    /// Whether its shares are as large as shares get: no rate, or a high one, has them last longer.
    #[must_use]
    pub fn are_soon_through(&self) -> bool {
        self.0.size.is_some_and(|size| size >= LARGEST_SHARE)
    }

    /// Whether it is time to look who is gone.
    fn is_to_look(&self) -> bool {
        let mut state = self.state();
        let is_time = state.looked.is_none_or(|looked| looked.elapsed() >= LOOKS);
        if is_time {
            state.looked = Some(Instant::now());
        }
        is_time
    }

    fn take(&self) -> Option<Rows> {
        let mut state = self.state();
        let rows = state.waiting.pop_front()?;
        state.given.push(rows);
        Some(rows)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
