//! The numbers of envelopes: of a run that this process has whole, the last one is known.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::change::Failure;
use super::dialect::Connection;
use super::statement::{as_small, scalar};
use crate::ledger::{Epoch, Lease, RunId};

/// The last envelope of each run that this process has whole: nobody else adds any.
#[derive(Clone, Default)]
pub(in crate::ledger) struct Numbers(Arc<Mutex<LastEnvelopes>>);

/// Nothing where the last one has to be asked for.
type LastEnvelopes = HashMap<(RunId, Epoch), Option<u32>>;

impl Numbers {
    /// Counts the envelopes of a run that was taken.
    pub(super) async fn begin(&self, connection: &mut Connection, lease: Lease) -> Result<(), Failure> {
        let last = last(connection, lease.run).await?;
        self.known().insert((lease.run, lease.epoch), Some(last));
        Ok(())
    }

    /// The number that the next envelope has.
    pub(super) async fn next(&self, connection: &mut Connection, lease: Lease) -> Result<u32, Failure> {
        let known = self.known().get(&(lease.run, lease.epoch)).copied().flatten();
        let last = match known {
            Some(last) => last,
            None => last(connection, lease.run).await?,
        };
        Ok(last + 1)
    }

    /// Counts an envelope, unless others add to its run as well.
    pub(super) fn count(&self, lease: Lease, envelope: u32) {
        if let Some(last) = self.known().get_mut(&(lease.run, lease.epoch)) {
            *last = Some(envelope);
        }
    }

    /// Has the last envelopes be asked for again: what was counted was taken back.
    pub(super) fn forget(&self) {
        self.known().values_mut().for_each(|last| *last = None);
    }

    /// Counts the envelopes of a run no more.
    pub(super) fn end(&self, lease: Lease) {
        self.known().remove(&(lease.run, lease.epoch));
    }

    fn known(&self) -> MutexGuard<'_, LastEnvelopes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn last(connection: &mut Connection, run: RunId) -> Result<u32, Failure> {
    let last = scalar("SELECT COALESCE(MAX(envelope), 0) FROM envelopes WHERE run = $1").bind(run.0);
    as_small(last.fetch_one(connection).await?)
}
