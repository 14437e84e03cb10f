//! Making a ledger the one that counts although its mark says otherwise, because a person decided so.

use std::path::Path;
use std::sync::Arc;

use sqlx::Connection as _;

use super::dialect::storage_error;
use super::ledger::TimeSource;
use super::opening::{self, load_mark};
use super::turn::{self, Patience};
use crate::ledger::LedgerError;
use crate::ledger::mark::{HighWaterMark, MarkReading};

/// Ends the unfinished runs, brings the ledger past its mark, and has the mark follow it.
///
/// In this order: if it is interrupted, the ledger is refused as before, and the person says it again.
pub(super) async fn adopt_ledger(path: &Path, known: &MarkReading, clock: TimeSource) -> Result<(), LedgerError> {
    let path: Arc<Path> = path.into();
    let mut pen = opening::open_write_connection(&path, clock, Patience::default()).await?;
    let failed = |error: sqlx::Error| storage_error(&path, &error);
    turn::begin_write(&mut pen.connection, &path, Patience::default()).await?;
    sqlx::query("UPDATE runs SET progress = 'replaced', owner = NULL, ended_at = ? WHERE live AND progress = 'open'")
        .bind(clock().as_microsecond())
        .execute(&mut pen.connection)
        .await
        .map_err(failed)?;
    let furthest = match known {
        MarkReading::Marks(marks) => marks.iter().map(|mark| mark.generation).max().unwrap_or(0),
        MarkReading::Missing | MarkReading::Unreadable(_) => 0,
    };
    let current = load_mark(&mut pen.connection).await.map_err(failed)?;
    let accepted = HighWaterMark { id: current.id, generation: furthest.max(current.generation) + 1 };
    sqlx::query("UPDATE identity SET generation = ?")
        .bind(accepted.generation)
        .execute(&mut pen.connection)
        .await
        .map_err(failed)?;
    sqlx::query("COMMIT").execute(&mut pen.connection).await.map_err(failed)?;
    pen.mark.accept_mark(accepted).map_err(|error| LedgerError::Storage {
        path: path.display().to_string(),
        reason: format!("its high-water mark cannot be written: {error}"),
    })?;
    pen.connection.close().await.map_err(failed)
}
