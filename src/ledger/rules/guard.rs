//! Whom the guard skips: every number that has a message of a run, or may have one.

use roaring::{RoaringBitmap, RoaringTreemap};
use rustc_hash::FxHashMap;

use crate::domain::{Addressee, Row};
use crate::ledger::{Attempt, EnvelopeRecord, KeptReceipt, RowEvents, RunActivity};

/// The numbers of a run, gathered from its envelopes in the order of their numbers, and then from its receipts.
pub(in crate::ledger) struct Guard {
    events: RowEvents,
    /// The attempts of the rows that have events, or no message so far: what is learnt counts over all of them.
    attempts: FxHashMap<Row, (Addressee, Vec<Attempt>)>,
    numbers: RoaringTreemap,
    rows: RoaringBitmap,
}

impl Guard {
    /// The guard of a run about whose rows these events are known.
    pub(in crate::ledger) fn new(events: RowEvents) -> Self {
        Self { events, attempts: FxHashMap::default(), numbers: RoaringTreemap::new(), rows: RoaringBitmap::new() }
    }

    /// Looks at an envelope.
    pub(in crate::ledger) fn add_envelope(&mut self, envelope: &EnvelopeRecord) {
        for (index, sent) in envelope.rows.iter().enumerate() {
            let outcome = envelope.settled.as_ref().and_then(|(_, outcomes)| outcomes.get(index));
            // Whoever has the run by now: an intent alone may have gone out.
            let attempt = RunActivity::Idle.build_attempt((envelope.envelope, envelope.chain(sent)), outcome);
            if !self.events.has_events(sent.row) && self.events.has_message(sent.row, &[attempt], &[]) {
                self.include_row(sent.row, sent.to);
            } else {
                let (_, attempts) = self.attempts.entry(sent.row).or_insert((sent.to, Vec::new()));
                attempts.push(attempt);
            }
        }
    }

    /// Looks at the receipts of a row, after all envelopes.
    pub(in crate::ledger) fn add_receipts(&mut self, row: Row, receipts: &[KeptReceipt]) {
        let known = self.attempts.get(&row).filter(|(_, attempts)| self.events.has_message(row, attempts, receipts));
        if let Some((to, _)) = known {
            self.include_row(row, *to);
        }
    }

    fn include_row(&mut self, row: Row, to: Addressee) {
        self.numbers.insert(to.to_u64());
        self.rows.insert(row.get());
    }

    /// The numbers that are skipped.
    pub(in crate::ledger) fn into_numbers(self) -> RoaringTreemap {
        self.finish().0
    }

    /// The rows that have a message, or might have one.
    pub(in crate::ledger) fn into_rows(self) -> RoaringBitmap {
        self.finish().1
    }

    fn finish(self) -> (RoaringTreemap, RoaringBitmap) {
        let Self { events, attempts, mut numbers, mut rows } = self;
        for (row, (to, attempts)) in &attempts {
            if events.has_message(*row, attempts, &[]) {
                numbers.insert(to.to_u64());
                rows.insert(row.get());
            }
        }
        (numbers, rows)
    }
}
