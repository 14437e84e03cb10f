//! A walk over the envelopes of a run: in the order of their numbers, a few in memory at a time.

use std::vec::IntoIter;

use super::{EnvelopeRecord, Ledger, LedgerError, RunId};

/// Envelopes that are read at once.
const ENVELOPES_PER_READ: u32 = 256;

/// The envelopes of a run, the first first; later attempts come after earlier ones.
pub struct EnvelopeReader<'a> {
    ledger: &'a dyn Ledger,
    run: RunId,
    /// The number from which the next are read.
    next: u32,
    read: IntoIter<EnvelopeRecord>,
}

impl<'a> EnvelopeReader<'a> {
    /// A walk over all envelopes of a run.
    #[must_use]
    pub fn new(ledger: &'a dyn Ledger, run: RunId) -> Self {
        Self { ledger, run, next: 1, read: Vec::new().into_iter() }
    }

    /// The next envelope; nothing after the last.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn next_envelope(&mut self) -> Result<Option<EnvelopeRecord>, LedgerError> {
        if self.read.as_slice().is_empty() {
            let numbers = self.next..=self.next.saturating_add(ENVELOPES_PER_READ - 1);
            self.read = self.ledger.load_envelopes(self.run, numbers).await?.into_iter();
            self.next = self.read.as_slice().last().map_or(self.next, |last| last.envelope.saturating_add(1));
        }
        Ok(self.read.next())
    }
}
