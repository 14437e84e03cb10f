//! Words that matter only when a story fails: which case of a table it was, or which seed.

use std::io::Write as _;

/// Words that are told if the story fails while they are held.
#[must_use = "they are told only while they are held"]
pub(crate) struct Telling(String);

/// Keeps words for a failure.
pub(crate) fn telling(words: impl Into<String>) -> Telling {
    Telling(words.into())
}

impl Drop for Telling {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A story that fails without a reader has failed all the same.
            let _ = writeln!(std::io::stderr(), "{}", self.0);
        }
    }
}
