//! Checksums of records, so that a damaged one is noticed and never taken for the truth.

use sha2::{Digest as _, Sha256};

/// The checksum of a record: of its columns in their order.
pub(in crate::ledger) struct Checksum(Sha256);

impl Checksum {
    /// A checksum for records of this table.
    pub(in crate::ledger) fn for_table(table: &str) -> Self {
        Self(Sha256::new()).with_text(table)
    }

    /// With a whole number.
    pub(in crate::ledger) fn with_number(mut self, number: impl Into<i64>) -> Self {
        self.0.update(number.into().to_le_bytes());
        self
    }

    /// With bytes.
    pub(in crate::ledger) fn with_bytes(mut self, bytes: &[u8]) -> Self {
        // The length first, so that no two lists of columns read the same.
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// With a text.
    pub(in crate::ledger) fn with_text(self, text: &str) -> Self {
        self.with_bytes(text.as_bytes())
    }

    /// The first eight bytes of the hash, as the ledger stores them.
    pub(in crate::ledger) fn finish(self) -> i64 {
        let hash = self.0.finalize();
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        i64::from_le_bytes(first)
    }

    /// Whether a record is as it was written; one from before there were checksums counts as such.
    pub(in crate::ledger) fn matches(self, stored: Option<i64>) -> bool {
        stored.is_none_or(|stored| stored == self.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_and_its_border_count() {
        let sum = |first: &str, second: &str| Checksum::for_table("a").with_text(first).with_text(second).finish();
        let same = sum("ab", "c");
        assert_eq!(same, sum("ab", "c"));
        for other in [sum("a", "bc"), sum("ab", "d"), Checksum::for_table("b").with_text("ab").with_text("c").finish()]
        {
            assert_ne!(same, other);
        }
        assert!(
            Checksum::for_table("a").with_number(7).matches(Some(Checksum::for_table("a").with_number(7).finish()))
        );
        assert!(
            !Checksum::for_table("a").with_number(8).matches(Some(Checksum::for_table("a").with_number(7).finish()))
        );
        assert!(Checksum::for_table("a").matches(None));
    }
}
