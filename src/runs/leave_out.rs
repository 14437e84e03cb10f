//! Rows of a run under way that get no message after all, for a reason that the ledger does not know of itself.

use super::freeze::open_copies;
use super::launch::Session;
use super::resume::list_open_rows;
use super::{Error, run_blocking};
use crate::audience::{Chunk, RecordRef};
use crate::check::Recipe;
use crate::delivery::Snapshot;
use crate::ledger::{Lease, Ownership, Run};

impl Session {
    /// Leaves out the rows of a run that may still be sent and that are meant; tells how many.
    ///
    /// # Errors
    /// When the copies of the run or the ledger fail, or another process has the run.
    pub(super) async fn skip_rows(
        &self,
        (run, lease): (&Run, Lease),
        snapshot: &Snapshot,
        (reason, is_meant): (&'static str, impl Fn(&Recipe, &RecordRef<'_>) -> bool + Send + 'static),
    ) -> Result<u64, Error> {
        let ledger = self.adapters.ledger.as_ref();
        let open = list_open_rows(run, snapshot);
        if open.is_empty() {
            return Ok(0);
        }
        let (_, mut prepared) = open_copies(ledger, run).await?;
        let rows = run_blocking(move || {
            let (mut chunk, mut rows) = (Chunk::new(), Vec::new());
            while prepared.reader.read_chunk(&mut chunk).map_err(|finding| Error::Findings(vec![*finding]))? {
                let open = chunk.iter().filter(|record| open.contains(record.row.get()));
                rows.extend(open.filter(|record| is_meant(&prepared.recipe, record)).map(|record| record.row));
            }
            Ok::<_, Error>(rows)
        });
        let rows = rows.await??;
        let count = rows.len() as u64;
        if count == 0 {
            return Ok(0);
        }
        tracing::info!(run = run.name(), rows = count, reason, "rows skipped");
        match ledger.skip_rows(lease, rows, reason).await? {
            Ownership::Held => Ok(count),
            Ownership::Lost => Err(Error::Taken { run: run.name() }),
        }
    }
}
