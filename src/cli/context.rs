//! What commands share: options, output, the state folder and the ledger in it.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use super::args::Global;
use super::exit::Failure;
use super::output::Output;
use crate::ledger::{Ledger, SqliteLedger};
use crate::private;

/// The file of the ledger in the state folder.
const LEDGER: &str = "ledger.sqlite";

/// What commands share.
pub(super) struct Context {
    pub(super) global: Global,
    pub(super) output: Output,
}

impl Context {
    pub(super) fn new(global: Global, output: Output) -> Self {
        Self { global, output }
    }

    /// The state folder, whether it exists or not.
    pub(super) fn state(&self) -> Result<PathBuf, Failure> {
        let given = self.global.state_dir.clone();
        given
            .or_else(|| dirs::state_dir().or_else(dirs::data_local_dir).map(|folder| folder.join("campaign")))
            .ok_or_else(|| {
                Failure::wrong("there is no home folder to keep the ledger in; name one with `--state-dir DIR`")
            })
    }

    /// The user's configuration folder.
    pub(super) fn configuration(&self) -> Option<PathBuf> {
        dirs::config_dir().map(|folder| folder.join("campaign"))
    }

    /// The ledger; created where there is none.
    pub(super) async fn ledger(&self) -> Result<Arc<dyn Ledger>, Failure> {
        let state = self.state()?;
        private::folder(&state).map_err(|error| {
            Failure::storage(format!("the state folder `{}` cannot be created: {error}", state.display()))
        })?;
        Ok(Arc::new(SqliteLedger::open(&state.join(LEDGER), Timestamp::now).await?))
    }

    /// The ledger, for commands that only read; nothing where there is none.
    ///
    /// # Errors
    /// When nobody can tell whether there is one: who reads "nothing was sent" there may send it again.
    pub(super) async fn existing_ledger(&self) -> Result<Option<Arc<dyn Ledger>>, Failure> {
        let state = self.state()?;
        match std::fs::metadata(state.join(LEDGER)) {
            Ok(_) => Ok(Some(self.ledger().await?)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                SqliteLedger::deleted(&state.join(LEDGER)).map_or(Ok(None), |error| Err(error.into()))
            }
            Err(error) => {
                Err(Failure::storage(format!("the state folder `{}` cannot be read: {error}", state.display())))
            }
        }
    }
}
