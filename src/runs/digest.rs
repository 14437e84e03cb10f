//! The digest of what somebody agrees to: SHA-256 over texts in their order, each with its length before it.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// A digest that is being made.
pub(super) struct Digest(Sha256);

impl Digest {
    /// One of nothing yet.
    pub(super) fn new() -> Self {
        Self(Sha256::new())
    }

    /// With this behind what it is of; the length goes first, so that no two lists read the same.
    pub(super) fn with(mut self, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// It in hexadecimal.
    pub(super) fn finish(self) -> String {
        self.0.finalize().iter().fold(String::new(), |mut text, byte| {
            // Writing into a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}
