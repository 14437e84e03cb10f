//! A run with everything that belongs to it.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::domain::Row;
use crate::ledger::rules::{Guard, doubt, merge};
use crate::ledger::{
    Activity, AskedRow, EnvelopeRecord, EnvelopeSummary, Epoch, Intent, LedgerError, LeftOut, NewRowEvent, RowEvent,
    RowStates, Run, Settlement,
};

/// A run with everything that belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    pub(crate) run: Run,
    /// Whether its copies are in place.
    pub(super) opened: bool,
    pub(crate) left_out: LeftOut,
    pub(crate) envelopes: BTreeMap<u32, EnvelopeRecord>,
    pub(crate) evidence: BTreeMap<u32, String>,
    pub(crate) events: Vec<RowEvent>,
    pub(crate) questions: BTreeMap<Row, AskedRow>,
}

impl Book {
    pub(super) fn new(run: Run, left_out: LeftOut) -> Self {
        Self {
            run,
            opened: false,
            left_out,
            envelopes: BTreeMap::new(),
            evidence: BTreeMap::new(),
            events: Vec::new(),
            questions: BTreeMap::new(),
        }
    }

    pub(super) fn claim(&mut self, at: Timestamp, epoch: Epoch) -> usize {
        self.run.claim(epoch);
        let open = self.envelopes.values_mut().filter(|envelope| envelope.settled.is_none());
        open.map(|envelope| envelope.settled = Some((at, doubt(envelope.rows.len())))).count()
    }

    /// The number of the next envelope.
    pub(crate) fn next_envelope(&self) -> u32 {
        self.envelopes.keys().next_back().map_or(1, |last| last + 1)
    }

    /// Keeps an intent under this number, whoever it is of.
    pub(crate) fn insert(&mut self, at: Timestamp, envelope: u32, intent: Intent) -> Result<(), LedgerError> {
        let Intent { kind, rows, .. } = intent;
        if self.envelopes.contains_key(&envelope) {
            return Err(LedgerError::Unreadable(format!("the envelope {envelope} is there already")));
        }
        self.envelopes.insert(envelope, EnvelopeRecord { envelope, kind, begun_at: at, rows, settled: None });
        Ok(())
    }

    pub(super) fn settle(&mut self, at: Timestamp, settlement: Settlement) -> Result<(), LedgerError> {
        let Settlement { envelope: number, outcomes, evidence, .. } = settlement;
        let missing = || LedgerError::Unreadable(format!("there is no envelope {number}"));
        let envelope = self.envelopes.get_mut(&number).ok_or_else(missing)?;
        let outcomes = match envelope.settled.take() {
            None => outcomes,
            Some((_, known)) => merge(known, outcomes),
        };
        envelope.settled = Some((at, outcomes));
        self.evidence.extend(evidence.map(|evidence| (number, evidence)));
        let mut states = RowStates::new(Activity::of(self.run.progress, false), self.events.clone().into());
        if self.run.counts.is_some() {
            self.envelopes.values().for_each(|envelope| states.add(envelope));
            self.run.recount(&states, &self.left_out);
        }
        Ok(())
    }

    pub(super) fn record(&mut self, at: Timestamp, events: Vec<NewRowEvent>) {
        self.run.learn(events.iter().map(|event| &event.change));
        self.events.extend(events.into_iter().map(|NewRowEvent { row, envelope, change }| RowEvent {
            row,
            envelope,
            at,
            change,
        }));
    }

    pub(super) fn guard(&self) -> roaring::RoaringTreemap {
        let mut guard = Guard::new(self.events.clone().into());
        self.envelopes.values().for_each(|envelope| guard.add(envelope));
        guard.numbers()
    }

    pub(crate) fn summaries(&self) -> Vec<EnvelopeSummary> {
        let summary = |record: &EnvelopeRecord| {
            let rows = record.rows.iter().map(|sent| sent.row);
            let (first, last) = rows.clone().min().zip(rows.max())?;
            Some(EnvelopeSummary { envelope: record.envelope, first, last })
        };
        self.envelopes.values().filter_map(summary).collect()
    }
}
