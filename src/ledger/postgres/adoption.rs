//! Making a ledger the one that counts although it is behind its mark, because a person decided so.

use std::path::Path;

use sqlx::{PgPool, Row as _};

use super::dialect::storage_error;
use super::pen::WriterCommits;
use super::transaction::{self, WriteTurn};
use super::waiting::retry_while_away;
use crate::ledger::LedgerError;
use crate::ledger::mark::{HighWaterMark, MarkFile, MarkReading};

/// Ends the unfinished runs, brings the ledger past its mark, and has the mark follow it.
///
/// In this order: if it is interrupted, the ledger is refused as before, and the person says it again.
pub(super) async fn adopt_ledger(
    pool: &PgPool,
    (place, mark): (&str, &Path),
    known: &MarkReading,
) -> Result<(), LedgerError> {
    let furthest = match known {
        MarkReading::Marks(marks) => marks.iter().map(|mark| mark.generation).max().unwrap_or(0),
        MarkReading::Missing | MarkReading::Unreadable(_) => 0,
    };
    // It may be done twice: what a commit without an answer did stays as it is.
    let adopt = || async {
        let mut connection = pool.acquire().await?;
        let WriteTurn { now, version, succession, .. } = transaction::begin_write(&mut connection).await?;
        succession.record_server(&mut connection, version).await?;
        sqlx::query(
            "UPDATE runs SET progress = 'replaced', owner = NULL, ended_at = $1 WHERE live AND progress = 'open'",
        )
        .persistent(false)
        .bind(now)
        .execute(&mut *connection)
        .await?;
        let moved = sqlx::query("UPDATE meta SET generation = greatest(generation, $1) RETURNING id, generation")
            .persistent(false)
            .bind(furthest)
            .fetch_one(&mut *connection)
            .await?;
        let current = HighWaterMark { id: moved.try_get(0)?, generation: moved.try_get(1)? };
        transaction::count_and_commit(&mut connection, WriterCommits::default().count_next(), now)
            .await
            .map(|counted| (current, counted))
    };
    let (current, counted) =
        retry_while_away(&place.into(), adopt).await.map_err(|error| storage_error(place, &error))?;
    let unmarked = |error: std::io::Error| LedgerError::Storage {
        path: place.to_owned(),
        reason: format!("its high-water mark cannot be written: {error}"),
    };
    MarkFile::open(mark, current).and_then(|mut mark| mark.accept_mark(counted)).map_err(unmarked)
}
