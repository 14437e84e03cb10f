//! All runs of a ledger, for lists that people look at. A damaged run is named and does not hide the others.

use serde_json::{Value, json};

use super::{RunView, is_owned};
use crate::ledger::{DamagedRun, Ledger, LedgerError, Run, RunFilter};

/// All runs of a ledger, the latest first.
#[derive(Clone, Debug, Default)]
pub struct RunList {
    /// The runs that can be read.
    pub views: Vec<RunView>,
    /// The runs that cannot be read because a record of them is damaged.
    pub damaged: Vec<DamagedRun>,
}

impl RunList {
    /// Reads them.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn load(ledger: &dyn Ledger) -> Result<Self, LedgerError> {
        let mut list = Self::default();
        for stored in ledger.list_stored_runs(RunFilter::all()).await?.into_iter().rev() {
            match stored {
                Ok(run) => list.add_run(ledger, run).await?,
                Err(damaged) => list.damaged.push(damaged),
            }
        }
        Ok(list)
    }

    async fn add_run(&mut self, ledger: &dyn Ledger, run: Run) -> Result<(), LedgerError> {
        let (owned, name) = (is_owned(ledger, &run).await?, run.name());
        match RunView::load(ledger, run, owned).await {
            Ok(view) => self.views.push(view),
            Err(error) if error.concerns_records() => self.damaged.push(DamagedRun { name, error }),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Damaged runs for programs.
#[must_use]
pub fn damaged_runs_json(damaged: &[DamagedRun]) -> Value {
    damaged
        .iter()
        .map(|DamagedRun { name, error }| json!({ "run": name, "problem": error.describe_damage() }))
        .collect()
}
