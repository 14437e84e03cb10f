//! The turn to write: one process at a time has it, and the others wait, and can tell for whom.

use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::SqliteConnection;

use super::dialect::storage_error;
use super::holder::{self, WriteHolder};
use crate::ledger::LedgerError;

/// How long SQLite itself waits before it says that another process has the turn.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_millis(200);
/// After what time a person is told that the process waits.
const WARN_AFTER: Duration = Duration::from_secs(2);

/// How long another process may have the turn before whoever waits is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// A process that works.
    pub(super) working: Duration,
    /// A process that is stopped.
    pub(super) suspended: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { working: Duration::from_secs(60), suspended: Duration::from_secs(60) }
    }
}

/// Begins a transaction that writes, once nobody else has the turn.
pub(super) async fn begin_write(
    connection: &mut SqliteConnection,
    path: &Path,
    patience: Patience,
) -> Result<(), LedgerError> {
    let mut wait = TurnWait::new(path, patience);
    loop {
        match sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await {
            Ok(_) => return Ok(()),
            Err(error) if is_busy(&error) => wait.check_timeout()?,
            Err(error) => return Err(storage_error(path, &error)),
        }
    }
}

/// A wait for the process that has the turn.
pub(super) struct TurnWait<'a> {
    path: &'a Path,
    patience: Patience,
    since: Instant,
    told: bool,
}

impl<'a> TurnWait<'a> {
    /// A wait that begins now.
    pub(super) fn new(path: &'a Path, patience: Patience) -> Self {
        Self { path, patience, since: Instant::now(), told: false }
    }

    /// Whether to try again.
    ///
    /// # Errors
    /// When it has taken too long, with the process that has the turn.
    pub(super) fn check_timeout(&mut self) -> Result<(), LedgerError> {
        let waited = self.since.elapsed();
        if waited < WARN_AFTER.min(self.patience.working).min(self.patience.suspended) {
            return Ok(());
        }
        let holder = holder::find_write_holder(self.path);
        let stopped = holder.is_some_and(|holder| holder.suspended);
        if waited >= self.patience.working || stopped && waited >= self.patience.suspended {
            return Err(LedgerError::Busy { path: self.path.display().to_string(), who: describe_holder(holder) });
        }
        if !std::mem::replace(&mut self.told, true) {
            tracing::warn!("waiting: {}", describe_holder(holder));
        }
        Ok(())
    }
}

/// Who has the turn, in words.
fn describe_holder(holder: Option<WriteHolder>) -> String {
    match holder {
        Some(WriteHolder { process, suspended: true }) => format!(
            "process {process} is using the ledger and is suspended (resume it with `kill -CONT {process}`, or `fg` in \
             its terminal)"
        ),
        Some(WriteHolder { process, suspended: false }) => format!("process {process} is using the ledger"),
        None => "another process is using the ledger".to_owned(),
    }
}

/// Whether SQLite said that another process holds the file.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    sqlite_code(error) == Some(5)
}

/// Whether SQLite would have had to write where it may only read.
pub(super) fn is_read_only(error: &sqlx::Error) -> bool {
    sqlite_code(error) == Some(8)
}

/// What SQLite said: the low byte of its code (SQLite, "Result and Error Codes").
fn sqlite_code(error: &sqlx::Error) -> Option<u32> {
    Some(error.as_database_error()?.code()?.parse::<u32>().ok()? & 0xff)
}
