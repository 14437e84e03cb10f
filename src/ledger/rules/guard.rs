//! Whom the guard skips: every number that has a message of a run, or may have one.

use roaring::RoaringTreemap;
use rustc_hash::FxHashMap;

use crate::domain::{Addressee, Row};
use crate::ledger::{Activity, Attempt, EnvelopeRecord, KeptReceipt, RowEvents};

/// The numbers of a run, gathered from its envelopes in the order of their numbers, and then from its receipts.
pub(in crate::ledger) struct Guard {
    events: RowEvents,
    /// The attempts of the rows that have events, or no message so far: what is learnt counts over all of them.
    attempts: FxHashMap<Row, (Addressee, Vec<Attempt>)>,
    numbers: RoaringTreemap,
}

impl Guard {
    /// The guard of a run about whose rows these events are known.
    pub(in crate::ledger) fn new(events: RowEvents) -> Self {
        Self { events, attempts: FxHashMap::default(), numbers: RoaringTreemap::new() }
    }

    /// Looks at an envelope.
    pub(in crate::ledger) fn add(&mut self, envelope: &EnvelopeRecord) {
        for (index, sent) in envelope.rows.iter().enumerate() {
            let outcome = envelope.settled.as_ref().and_then(|(_, outcomes)| outcomes.get(index));
            // Whoever has the run by now: an intent alone may have gone out.
            let attempt = Activity::Idle.attempt((envelope.envelope, envelope.chain(sent)), outcome);
            if !self.events.concern(sent.row) && self.events.has_message(sent.row, &[attempt], &[]) {
                self.numbers.insert(sent.to.get());
            } else {
                let (_, attempts) = self.attempts.entry(sent.row).or_insert((sent.to, Vec::new()));
                attempts.push(attempt);
            }
        }
    }

    /// Looks at the receipts of a row, after all envelopes.
    pub(in crate::ledger) fn tell(&mut self, row: Row, receipts: &[KeptReceipt]) {
        if let Some((to, attempts)) = self.attempts.get(&row)
            && self.events.has_message(row, attempts, receipts)
        {
            self.numbers.insert(to.get());
        }
    }

    /// The numbers that are skipped.
    pub(in crate::ledger) fn numbers(self) -> RoaringTreemap {
        let Self { events, attempts, mut numbers } = self;
        let sent_to = attempts.iter().filter(|(row, (_, attempts))| events.has_message(**row, attempts, &[]));
        numbers.extend(sent_to.map(|(_, (to, _))| to.get()));
        numbers
    }
}
