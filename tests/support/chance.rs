//! Reproducible random numbers. A failing story prints its seed.

use super::failure_note::{FailureNote, note_on_failure};

/// A small random number generator (splitmix64).
pub(crate) struct Chance {
    state: u64,
    _seed: FailureNote,
}

impl Chance {
    /// Uses the seed in the environment variable `STORY_SEED`, or a random one.
    pub(crate) fn seeded() -> Self {
        let seed = match std::env::var("STORY_SEED") {
            Ok(seed) => seed.parse().expect("STORY_SEED is a number"),
            Err(_) => rand::random(),
        };
        Self { state: seed, _seed: note_on_failure(format!("to repeat this story: STORY_SEED={seed}")) }
    }

    /// A random number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % end
    }
}
