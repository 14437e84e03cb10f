//! Handing a ledger over to another place: as long as that takes nobody writes, and afterwards the mark is that of the other one.

use std::sync::Arc;

use sqlx::SqliteConnection;

use super::dialect::storage_error;
use super::ledger::SqliteLedger;
use super::pen::WriteConnection;
use super::{lock, opening};
use crate::ledger::LedgerError;
use crate::ledger::mark::HighWaterMark;

/// A ledger that nobody else writes to as long as this is there.
pub(in crate::ledger) struct Handover {
    pen: WriteConnection,
    mark: HighWaterMark,
}

impl SqliteLedger {
    /// Begins to hand the ledger over.
    ///
    /// # Errors
    /// When it is not the newest, not sound, or somebody sends with it.
    pub(in crate::ledger) async fn begin_handover(&self) -> Result<Handover, LedgerError> {
        self.ensure_sendable().await?;
        let mut pen = self.open_write_connection().await?;
        pen.begin_transaction().await?;
        // With the turn, so that nobody begins meanwhile what he would go on with here.
        let held =
            lock::is_any_held(&self.path).map_err(|error| lock::lock_error(&self.path.with_file_name("locks"), &error));
        let mark = match held {
            Ok(false) => {
                opening::load_mark(&mut pen.connection).await.map_err(|error| storage_error(&self.path, &error))
            }
            Ok(true) => {
                let who = "another process, such as a run or `campaign serve`, is using the ledger".to_owned();
                Err(LedgerError::Busy { path: self.path.display().to_string(), who })
            }
            Err(error) => Err(error),
        };
        match mark {
            Ok(mark) => Ok(Handover { pen, mark }),
            Err(error) => {
                pen.roll_back().await;
                pen.close().await;
                Err(error)
            }
        }
    }

    /// Which ledger it is, and how far it has come.
    pub(in crate::ledger) async fn load_mark(&self) -> Result<HighWaterMark, LedgerError> {
        let mut reader = self.reader().await?;
        opening::load_mark(&mut reader).await.map_err(|error| storage_error(&self.path, &error))
    }

    /// Its file, as people are told it.
    pub(in crate::ledger) fn display_path(&self) -> Arc<str> {
        Arc::clone(&self.place)
    }
}

impl Handover {
    /// Which ledger it is, and how far it had come.
    pub(in crate::ledger) fn mark(&self) -> HighWaterMark {
        self.mark
    }

    /// The connection to read with.
    pub(in crate::ledger) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.pen.connection
    }

    /// Has the ledger that took over be the one that counts here.
    ///
    /// # Errors
    /// When that cannot be kept; then this one counts as well.
    pub(in crate::ledger) async fn end(mut self) -> Result<(), LedgerError> {
        let accepted = self.pen.mark.accept_mark(self.mark.after_move()).map_err(|error| LedgerError::Storage {
            path: self.pen.path.display().to_string(),
            reason: format!("its high-water mark cannot be written: {error}"),
        });
        self.give_up().await;
        accepted
    }

    /// Leaves the ledger as it was.
    pub(in crate::ledger) async fn give_up(mut self) {
        self.pen.roll_back().await;
        self.pen.close().await;
    }
}
