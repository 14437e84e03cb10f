//! Chance that can be repeated: a story that fails prints the seed it ran with.

/// A small generator (splitmix64); the same seed gives the same story.
pub(crate) struct Chance(u64);

impl Chance {
    /// The seed in the environment variable `STORY_SEED`, or a new one; either way it is printed.
    pub(crate) fn seeded() -> Self {
        let seed = match std::env::var("STORY_SEED") {
            Ok(seed) => seed.parse().expect("STORY_SEED is a number"),
            Err(_) => rand::random(),
        };
        eprintln!("to repeat this story: STORY_SEED={seed}");
        Self(seed)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % end
    }
}
