//! Notes that are printed only if a test fails, such as the table case or the seed.

use std::io::Write as _;

/// A note that is printed if the story panics while this value exists.
#[must_use = "the note is printed only while this value exists"]
pub(crate) struct FailureNote(String);

/// Creates a note for a failure.
pub(crate) fn note_on_failure(text: impl Into<String>) -> FailureNote {
    FailureNote(text.into())
}

impl Drop for FailureNote {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A closed standard error must not cause a second panic.
            let _ = writeln!(std::io::stderr(), "{}", self.0);
        }
    }
}
