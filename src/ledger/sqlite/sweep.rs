//! Overwriting what is left of the forgotten in the space that the tables do not use any more, and in the log.

use std::time::{Duration, Instant};

use sqlx::{Connection as _, Row as _};

use super::dialect::storage_error;
use super::ledger::SqliteLedger;
use super::opening;
use crate::ledger::LedgerError;

/// How long other processes that read are waited for until the log can be emptied.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the pause is before that is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

impl SqliteLedger {
    /// Overwrites all that was ever freed in the file, and empties the log.
    pub(super) async fn overwrite_deleted(&self) -> Result<(), LedgerError> {
        if !self.was_swept().await? {
            // What an earlier version freed was not overwritten.
            self.run_outside_transaction("VACUUM").await?;
            self.write(|connection, _| {
                Box::pin(async move {
                    sqlx::query("UPDATE forgetting SET swept = 1").execute(connection).await?;
                    Ok(())
                })
            })
            .await?;
        }
        let began = Instant::now();
        while self.run_outside_transaction("PRAGMA wal_checkpoint(TRUNCATE)").await? != 0 {
            if began.elapsed() > CHECKPOINT_TIMEOUT {
                let path = self.path.display().to_string();
                let who = "another process is reading the ledger, so its log cannot be emptied".to_owned();
                return Err(LedgerError::Busy { path, who });
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        Ok(())
    }

    /// Whether all that was ever freed in the file was overwritten.
    async fn was_swept(&self) -> Result<bool, LedgerError> {
        let asked = sqlx::query_scalar("SELECT swept FROM forgetting").fetch_optional(&self.readers).await;
        Ok(asked.map_err(|error| storage_error(&self.path, &error))?.unwrap_or(false))
    }

    /// Has something done to the file that no transaction can be around; tells the first number of the answer, if there is one.
    async fn run_outside_transaction(&self, statement: &'static str) -> Result<i64, LedgerError> {
        let mut connection = opening::connect_for_writing(&self.path, self.patience).await?;
        let answer = sqlx::query(statement).fetch_optional(&mut connection).await;
        let closed = connection.close().await;
        let answer = answer.map_err(|error| storage_error(&self.path, &error))?;
        closed.map_err(|error| storage_error(&self.path, &error))?;
        answer.map_or(Ok(0), |row| row.try_get(0).map_err(|error| storage_error(&self.path, &error)))
    }
}
