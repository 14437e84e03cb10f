//! What a benchmark was called with.

/// The words behind the name of the benchmark.
pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    /// Those of this process, but for what cargo adds.
    pub(crate) fn of_process() -> Self {
        Self(std::env::args().skip(1).filter(|argument| argument != "--bench").collect())
    }

    /// The word at a place.
    pub(crate) fn word(&self, index: usize) -> Option<&str> {
        self.0.get(index).map(String::as_str)
    }

    /// The number at a place, or what it usually is.
    pub(crate) fn number(&self, index: usize, usually: u64) -> u64 {
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("`{text}` is no number"));
        self.word(index).map_or(usually, number)
    }
}
