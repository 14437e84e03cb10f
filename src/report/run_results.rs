//! The results of a run, from the ledger and what the run froze.

use std::io::Write;
use std::path::PathBuf;

use super::results::{Listing, ResultsError, write_file, write_objects, write_results};
use super::{RowRecords, Target, unknown_results};
use crate::delivery::{FrozenInputs, RunFolder};
use crate::ledger::{Ledger, LeftOut, Run, State};

/// The results of a run, which can be written to any place.
pub struct RunResults<'a> {
    ledger: &'a dyn Ledger,
    run: &'a Run,
    owned: bool,
    states: &'a [State],
    name: String,
    recipients: PathBuf,
    frozen: FrozenInputs,
    left_out: LeftOut,
}

impl<'a> RunResults<'a> {
    /// The results of a run with that folder; `owned` tells whether a process is sending it.
    ///
    /// # Errors
    /// When the ledger or what the run froze cannot be read.
    pub async fn open(
        ledger: &'a dyn Ledger,
        folder: &RunFolder,
        run: &'a Run,
        owned: bool,
    ) -> Result<Self, ResultsError> {
        let unreadable = |error| ResultsError::Frozen { folder: folder.path().to_owned(), error };
        let (frozen, recipients) = (folder.frozen().map_err(unreadable)?, folder.recipients());
        let left_out = ledger.left_out(run.key).await?;
        Ok(Self { ledger, run, owned, states: &[], name: run.name(), recipients, frozen, left_out })
    }

    /// Only the rows in one of these states; all when there are none.
    #[must_use]
    pub fn in_states(self, states: &'a [State]) -> Self {
        Self { states, ..self }
    }

    /// What the run froze.
    #[must_use]
    pub fn frozen(&self) -> &FrozenInputs {
        &self.frozen
    }

    /// Writes them to a file as CSV, unless it tells of messages that the ledger does not know of.
    ///
    /// # Errors
    /// When the ledger or the recipients cannot be read, or the file cannot be written or replaced.
    pub async fn to_file(&self, target: &Target) -> Result<(), ResultsError> {
        if self.run.live
            && let Some(sign) = unknown_results(Some(self.ledger), target.path()).await?
        {
            return Err(ResultsError::Contradicted { run: self.name.clone(), sign });
        }
        write_file(target, &self.listing(), Some(self.records().await?)).await
    }

    /// Writes them as CSV.
    ///
    /// # Errors
    /// When the ledger or the recipients cannot be read, or `out` cannot be written.
    pub async fn to_csv(&self, out: impl Write) -> Result<(), ResultsError> {
        write_results(out, &self.listing(), Some(self.records().await?)).await
    }

    /// Writes them as JSON objects with commas between them.
    ///
    /// # Errors
    /// When the ledger or the recipients cannot be read, or `out` cannot be written.
    pub async fn to_objects(&self, out: impl Write) -> Result<(), ResultsError> {
        write_objects(out, &self.listing(), Some(self.records().await?)).await
    }

    fn listing(&self) -> Listing<'_> {
        Listing {
            recipients: &self.recipients,
            recipients_sha256: &self.frozen.recipients_sha256,
            brief: &self.frozen.brief,
            run: &self.name,
            kind: self.run.kind,
            ids: Some(self.run.ids),
            orders: &self.run.orders,
            left_out: &self.left_out,
            states: self.states,
        }
    }

    async fn records(&self) -> Result<RowRecords<'a>, ResultsError> {
        Ok(RowRecords::new(self.ledger, self.run, self.owned).await?)
    }
}
