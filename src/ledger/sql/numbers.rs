//! The numbers of envelopes: of a run that this process has whole, the last one is known; of one that others add to, only as
//! long as a transaction has the turn to write.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::change::StatementError;
use super::dialect::Connection;
use super::statement::{scalar, to_u32};
use crate::ledger::{Epoch, Lease, RunId};

/// The last envelopes of runs.
#[derive(Clone, Default)]
pub(in crate::ledger) struct EnvelopeNumbers(Arc<Mutex<LastEnvelopes>>);

#[derive(Default)]
struct LastEnvelopes {
    /// Of each run that this process has whole, to which nobody else adds any; nothing where it has to be asked for.
    whole: HashMap<(RunId, Epoch), Option<u32>>,
    /// Of the runs to which the transaction that has the turn added some.
    turn: HashMap<RunId, u32>,
}

impl EnvelopeNumbers {
    /// Counts the envelopes of a run that was taken.
    pub(super) async fn track_run(&self, connection: &mut Connection, lease: Lease) -> Result<(), StatementError> {
        let last = load_last_number(connection, lease.run).await?;
        self.lock_numbers().whole.insert((lease.run, lease.epoch), Some(last));
        Ok(())
    }

    /// The number that the next envelope has.
    pub(super) async fn next_number(&self, connection: &mut Connection, lease: Lease) -> Result<u32, StatementError> {
        let known = {
            let known = self.lock_numbers();
            let whole = known.whole.get(&(lease.run, lease.epoch)).copied().flatten();
            whole.or_else(|| known.turn.get(&lease.run).copied())
        };
        let last = match known {
            Some(last) => last,
            None => load_last_number(connection, lease.run).await?,
        };
        Ok(last + 1)
    }

    /// Counts an envelope.
    pub(super) fn record_number(&self, lease: Lease, envelope: u32) {
        let mut known = self.lock_numbers();
        known.turn.insert(lease.run, envelope);
        if let Some(last) = known.whole.get_mut(&(lease.run, lease.epoch)) {
            *last = Some(envelope);
        }
    }

    /// Another transaction has the turn: others may have added some meanwhile.
    pub(super) fn start_turn(&self) {
        self.lock_numbers().turn.clear();
    }

    /// Has the last envelopes be asked for again: what was counted was taken back.
    pub(super) fn invalidate(&self) {
        let mut known = self.lock_numbers();
        known.turn.clear();
        known.whole.values_mut().for_each(|last| *last = None);
    }

    /// Counts the envelopes of a run no more.
    pub(super) fn untrack_run(&self, lease: Lease) {
        self.lock_numbers().whole.remove(&(lease.run, lease.epoch));
    }

    fn lock_numbers(&self) -> MutexGuard<'_, LastEnvelopes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn load_last_number(connection: &mut Connection, run: RunId) -> Result<u32, StatementError> {
    let last = scalar("SELECT COALESCE(MAX(envelope), 0) FROM envelopes WHERE run = $1").bind(run.0);
    to_u32(last.fetch_one(connection).await?)
}
