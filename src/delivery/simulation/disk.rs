//! What is on the disk: what the ledger in memory holds, and what the judge counts besides.
//!
//! The real ledger writes on threads of its own, and a virtual clock does not wait for them: it would run through
//! every time-out while the disk works. That the one in memory keeps what SQLite keeps is tested beside it
//! (`ledger/conformance`) and, call by call, in `agreement`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::life::ProcessLife;
use super::places::SeatLocks;
use super::sighting::Sighting;
use crate::domain::Row;
use crate::ledger::memory::{LedgerContents, StoredRun};
use crate::ledger::{
    Epoch, Intent, LedgerError, NewRun, Permit, RowState, RowStates, RunActivity, RunId, Settlement, StateCounts,
};

/// The wall clock in microseconds.
pub(super) type WallMicros = i64;

/// What survives the end of a process.
pub(super) struct SimulatedDisk {
    pub(super) contents: LedgerContents,
    /// How many intents of all runs name a row.
    pub(super) intents: HashMap<Row, u32>,
    /// Who sits where, of those that send a run together, and whose each right to shares is.
    pub(super) places: SeatLocks,
    pub(super) seats: HashMap<Epoch, Arc<ProcessLife>>,
    /// What was seen of it.
    pub(super) seen: BTreeMap<Sighting, u64>,
    /// Numbers that a wrong ledger gave without recording an intent.
    unrecorded: u32,
}

impl SimulatedDisk {
    /// A disk with nothing on it, whose epochs are drawn from the seed.
    pub(super) fn new(seed: u64) -> Self {
        let (contents, places) = (LedgerContents::seeded(seed), SeatLocks::default());
        let (intents, seats, seen) = (HashMap::new(), HashMap::new(), BTreeMap::new());
        Self { contents, intents, places, seats, seen, unrecorded: 0 }
    }

    pub(super) fn record_sighting(&mut self, what: Sighting) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// Begins a run on it; gives its identifier.
    pub(super) fn begin_run(&mut self, now: WallMicros, new: &NewRun) -> RunId {
        let run = self.contents.create_run(new).expect("identifiers are left");
        self.contents.open_run(now, run.key, None).expect("it was created");
        run.key
    }

    /// A run with everything that belongs to it.
    pub(super) fn book(&self, run: RunId) -> &StoredRun {
        self.contents.stored_run(run).expect("runs stay")
    }

    /// How many rows are in each state by what is on the disk now.
    pub(super) fn count_states(&self, run: RunId) -> StateCounts {
        let book = self.book(run);
        self.row_states(run, RunActivity::Sending).count_states(book.run.recipients, &book.excluded)
    }

    /// The state that the records of a row leave it in; nothing for one that was never sent.
    pub(super) fn row_state(&self, run: RunId, row: Row) -> Option<RowState> {
        self.row_states(run, RunActivity::Idle).recorded_state(row)
    }

    /// Whether an envelope with a row is not settled yet.
    pub(super) fn is_open(&self, run: RunId, row: Row) -> bool {
        let open = self.book(run).envelopes.values().filter(|envelope| envelope.settled.is_none());
        open.flat_map(|envelope| &envelope.rows).any(|sent| sent.row == row)
    }

    fn row_states(&self, run: RunId, activity: RunActivity) -> RowStates {
        let book = self.book(run);
        let mut states = RowStates::new(activity, book.row_events());
        book.envelopes.values().for_each(|envelope| states.add_envelope(envelope));
        book.receipts.iter().for_each(|(row, receipts)| states.add_receipts(*row, receipts));
        states
    }

    pub(super) fn begin(&mut self, now: WallMicros, intent: Intent) -> Result<Permit, LedgerError> {
        let rows: Vec<Row> = intent.rows.iter().map(|sent| sent.row).collect();
        let begun = self.contents.begin_envelope(now, intent)?;
        if matches!(begun, Permit::Granted { .. }) {
            self.count_intents(rows);
        }
        Ok(begun)
    }

    /// Keeps an intent whoever it is of, without a slot.
    pub(super) fn insert(&mut self, now: WallMicros, envelope: u32, intent: Intent) -> Result<(), LedgerError> {
        self.count_intents(intent.rows.iter().map(|sent| sent.row));
        self.contents.stored_run_mut(intent.lease.run)?.insert_envelope(to_timestamp(now), envelope, intent)
    }

    /// A number for an envelope without an intent, which no other envelope gets.
    pub(super) fn next_unrecorded(&mut self) -> u32 {
        self.unrecorded += 1;
        1_000_000 + self.unrecorded
    }

    fn count_intents(&mut self, rows: impl IntoIterator<Item = Row>) {
        rows.into_iter().for_each(|row| *self.intents.entry(row).or_default() += 1);
    }

    /// Settles an envelope, if there is one: a process without intents settles what nobody knows of.
    pub(super) fn settle(&mut self, now: WallMicros, settlement: Settlement) -> Result<(), LedgerError> {
        match self.book(settlement.run).envelopes.contains_key(&settlement.envelope) {
            true => self.contents.settle_envelope(now, settlement),
            false => Ok(()),
        }
    }
}

pub(super) fn to_timestamp(now: WallMicros) -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(now).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}
