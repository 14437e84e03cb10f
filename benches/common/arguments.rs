//! Command-line arguments of a benchmark.

/// Positional arguments.
pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    /// The arguments of this process, without the `--bench` that cargo adds.
    pub(crate) fn from_env() -> Self {
        Self(std::env::args().skip(1).filter(|argument| argument != "--bench").collect())
    }

    /// The argument at an index.
    pub(crate) fn word(&self, index: usize) -> Option<&str> {
        self.0.get(index).map(String::as_str)
    }

    /// The number at an index, or the default.
    pub(crate) fn number(&self, index: usize, default: u64) -> u64 {
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("`{text}` is not a number"));
        self.word(index).map_or(default, number)
    }
}
