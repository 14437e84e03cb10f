//! Forgetting a person, or all people of a run, as a part of the ledger: numbers and words go, and what stays of a number is a
//! hash with a key.

use roaring::{RoaringBitmap, RoaringTreemap};

use super::{LedgerFuture, NewCopies, NumberSet, OptOut, Ownership, Run, RunId, StateCounts};
use crate::domain::Phone;

/// A number that is to be forgotten.
#[derive(Clone, Debug)]
pub struct ForgetOrder {
    /// The number.
    pub phone: Phone,
    /// The rows of runs that are its; nobody sends them, and nothing of them is in doubt.
    pub rows: Vec<(RunId, RoaringBitmap)>,
    /// How it is put on the suppression list.
    pub opt_out: OptOut,
}

/// What a ledger does to forget a person.
pub trait Forgetting: Send + Sync {
    /// Forgets a number, in one commit: its rows lose it and what people said in them, those that would still be sent are
    /// left out, and what stays of it is on the suppression list. Its rows wait to be taken out of the copies of their runs.
    fn forget_number(&self, order: ForgetOrder) -> LedgerFuture<'_, ()>;

    /// The rows that wait to be taken out of the copies and the results of their runs.
    fn list_rows_to_forget(&self) -> LedgerFuture<'_, Vec<(RunId, RoaringBitmap)>>;

    /// Records that nothing but the ledger has rows of these runs any more.
    fn mark_rows_forgotten(&self, runs: Vec<RunId>) -> LedgerFuture<'_, ()>;

    /// Makes room for the copies that take the place of those of a run, once they are frozen; the old ones are overwritten.
    ///
    /// Whoever asks has the campaign of the run.
    fn prepare_replacement_copies<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, Box<dyn NewCopies>>;

    /// Removes what the ledger has of the rows of a run, in one commit, and keeps that they came to these counts and parts;
    /// nothing where somebody has the run, or more became known of it since it was read.
    ///
    /// Its identifiers and what it was stay, and for the guard and for caps a hash of each number that has a message of it.
    fn purge_run(&self, counted: Run, counts: StateCounts, parts: u64) -> LedgerFuture<'_, Ownership>;

    /// Keeps a hash of each number that `stop --for-good` cancelled in a run, before the run is purged with its list.
    fn keep_cancelled_numbers(&self, run: RunId, numbers: RoaringTreemap) -> LedgerFuture<'_, ()>;

    /// The numbers of a purged run that `stop --for-good` had cancelled, as far as they were kept.
    fn load_cancelled_numbers(&self, run: RunId) -> LedgerFuture<'_, NumberSet>;

    /// Overwrites and removes the copies of a run that was purged, if they are there.
    fn discard_copies<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, ()>;

    /// Overwrites what the ledger does not use any more, so that nothing that was forgotten is left there.
    fn overwrite_free_space(&self) -> LedgerFuture<'_, ()>;
}
