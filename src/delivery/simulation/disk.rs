//! What is on the disk: what the ledger in memory holds, and what the judge counts besides.
//!
//! The real ledger writes on threads of its own, and a virtual clock does not wait for them: it would run through
//! every time-out while the disk works. That the one in memory keeps what SQLite keeps is tested beside it
//! (`ledger/conformance`) and, call by call, in `agreement`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::life::Life;
use super::places::Places;
use super::sighting::Sighting;
use crate::domain::Row;
use crate::ledger::memory::{Book, Contents};
use crate::ledger::{
    Activity, Epoch, Intent, LedgerError, NewRun, Permit, RowStates, RunId, Settlement, State, StateCounts,
};

/// The wall clock in microseconds.
pub(super) type Now = i64;

/// What survives the end of a process.
pub(super) struct Disk {
    pub(super) contents: Contents,
    /// How many intents of all runs name a row.
    pub(super) intents: HashMap<Row, u32>,
    /// Who sits where, of those that send a run together, and whose each right to shares is.
    pub(super) places: Places,
    pub(super) seats: HashMap<Epoch, Arc<Life>>,
    /// What was seen of it.
    pub(super) seen: BTreeMap<Sighting, u64>,
    /// Numbers that a wrong ledger gave without recording an intent.
    unrecorded: u32,
}

impl Disk {
    /// A disk with nothing on it, whose epochs are drawn from the seed.
    pub(super) fn new(seed: u64) -> Self {
        let (contents, places) = (Contents::seeded(seed), Places::default());
        let (intents, seats, seen) = (HashMap::new(), HashMap::new(), BTreeMap::new());
        Self { contents, intents, places, seats, seen, unrecorded: 0 }
    }

    pub(super) fn saw(&mut self, what: Sighting) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// Begins a run on it; gives its identifier.
    pub(super) fn begin_run(&mut self, now: Now, new: &NewRun) -> RunId {
        let run = self.contents.create_run(new).expect("identifiers are left");
        self.contents.open_run(now, run.key, None).expect("it was created");
        run.key
    }

    /// A run with everything that belongs to it.
    pub(super) fn book(&self, run: RunId) -> &Book {
        self.contents.book(run).expect("runs stay")
    }

    /// How many rows are in each state by what is on the disk now.
    pub(super) fn counts(&self, run: RunId) -> StateCounts {
        let book = self.book(run);
        self.states(run, Activity::Sending).counts(book.run.recipients, &book.left_out)
    }

    /// The state that the records of a row leave it in; nothing for one that was never sent.
    pub(super) fn state(&self, run: RunId, row: Row) -> Option<State> {
        self.states(run, Activity::Idle).recorded(row)
    }

    /// Whether an envelope with a row is not settled yet.
    pub(super) fn is_open(&self, run: RunId, row: Row) -> bool {
        let open = self.book(run).envelopes.values().filter(|envelope| envelope.settled.is_none());
        open.flat_map(|envelope| &envelope.rows).any(|sent| sent.row == row)
    }

    fn states(&self, run: RunId, activity: Activity) -> RowStates {
        let book = self.book(run);
        let mut states = RowStates::new(activity, book.row_events());
        book.envelopes.values().for_each(|envelope| states.add(envelope));
        book.receipts.iter().for_each(|(row, receipts)| states.tell(*row, receipts));
        states
    }

    pub(super) fn begin(&mut self, now: Now, intent: Intent) -> Result<Permit, LedgerError> {
        let rows: Vec<Row> = intent.rows.iter().map(|sent| sent.row).collect();
        let begun = self.contents.begin(now, intent)?;
        if matches!(begun, Permit::Granted { .. }) {
            self.count(rows);
        }
        Ok(begun)
    }

    /// Keeps an intent whoever it is of, without a slot.
    pub(super) fn insert(&mut self, now: Now, envelope: u32, intent: Intent) -> Result<(), LedgerError> {
        self.count(intent.rows.iter().map(|sent| sent.row));
        self.contents.book_mut(intent.lease.run)?.insert(instant(now), envelope, intent)
    }

    /// A number for an envelope without an intent, which no other envelope gets.
    pub(super) fn unrecorded(&mut self) -> u32 {
        self.unrecorded += 1;
        1_000_000 + self.unrecorded
    }

    fn count(&mut self, rows: impl IntoIterator<Item = Row>) {
        rows.into_iter().for_each(|row| *self.intents.entry(row).or_default() += 1);
    }

    /// Settles an envelope, if there is one: a process without intents settles what nobody knows of.
    pub(super) fn settle(&mut self, now: Now, settlement: Settlement) -> Result<(), LedgerError> {
        match self.book(settlement.run).envelopes.contains_key(&settlement.envelope) {
            true => self.contents.settle(now, settlement),
            false => Ok(()),
        }
    }
}

pub(super) fn instant(now: Now) -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(now).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}
