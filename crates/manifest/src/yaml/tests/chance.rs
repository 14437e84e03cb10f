//! Random numbers from a seed.

use rand::rngs::ChaCha8Rng;
use rand::{Rng as _, SeedableRng as _};

/// A generator that draws the same numbers for the same seed.
pub(super) struct SeededRandom(ChaCha8Rng);

impl SeededRandom {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number below `end`.
    pub(super) fn number_below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end.max(1) as u64) as usize
    }

    /// Whether an event with a probability of 1 in `times` happens.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.number_below(times) == 0
    }

    /// One of these.
    pub(super) fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.number_below(all.len())]
    }
}
