//! The numbers of envelopes: of a run that this process has whole, the last one is known; of one that others add to, only as
//! long as a transaction has the turn to write.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::change::Failure;
use super::dialect::Connection;
use super::statement::{as_small, scalar};
use crate::ledger::{Epoch, Lease, RunId};

/// The last envelopes of runs.
#[derive(Clone, Default)]
pub(in crate::ledger) struct Numbers(Arc<Mutex<LastEnvelopes>>);

#[derive(Default)]
struct LastEnvelopes {
    /// Of each run that this process has whole, to which nobody else adds any; nothing where it has to be asked for.
    whole: HashMap<(RunId, Epoch), Option<u32>>,
    /// Of the runs to which the transaction that has the turn added some.
    turn: HashMap<RunId, u32>,
}

impl Numbers {
    /// Counts the envelopes of a run that was taken.
    pub(super) async fn begin(&self, connection: &mut Connection, lease: Lease) -> Result<(), Failure> {
        let last = last(connection, lease.run).await?;
        self.known().whole.insert((lease.run, lease.epoch), Some(last));
        Ok(())
    }

    /// The number that the next envelope has.
    pub(super) async fn next(&self, connection: &mut Connection, lease: Lease) -> Result<u32, Failure> {
        let known = {
            let known = self.known();
            let whole = known.whole.get(&(lease.run, lease.epoch)).copied().flatten();
            whole.or_else(|| known.turn.get(&lease.run).copied())
        };
        let last = match known {
            Some(last) => last,
            None => last(connection, lease.run).await?,
        };
        Ok(last + 1)
    }

    /// Counts an envelope.
    pub(super) fn count(&self, lease: Lease, envelope: u32) {
        let mut known = self.known();
        known.turn.insert(lease.run, envelope);
        if let Some(last) = known.whole.get_mut(&(lease.run, lease.epoch)) {
            *last = Some(envelope);
        }
    }

    /// Another transaction has the turn: others may have added some meanwhile.
    pub(super) fn turn(&self) {
        self.known().turn.clear();
    }

    /// Has the last envelopes be asked for again: what was counted was taken back.
    pub(super) fn forget(&self) {
        let mut known = self.known();
        known.turn.clear();
        known.whole.values_mut().for_each(|last| *last = None);
    }

    /// Counts the envelopes of a run no more.
    pub(super) fn end(&self, lease: Lease) {
        self.known().whole.remove(&(lease.run, lease.epoch));
    }

    fn known(&self) -> MutexGuard<'_, LastEnvelopes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn last(connection: &mut Connection, run: RunId) -> Result<u32, Failure> {
    let last = scalar("SELECT COALESCE(MAX(envelope), 0) FROM envelopes WHERE run = $1").bind(run.0);
    as_small(last.fetch_one(connection).await?)
}
