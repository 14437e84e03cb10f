//! Making a ledger the one that counts although it is behind its mark, because a person decided so.

use std::path::Path;

use sqlx::{PgPool, Row as _};

use super::dialect::storage;
use super::pen::Commits;
use super::transaction::{self, Turn};
use super::waiting::patiently;
use crate::ledger::LedgerError;
use crate::ledger::mark::{Mark, MarkFile, MarkReading};

/// Ends the unfinished runs, brings the ledger past its mark, and has the mark follow it.
///
/// In this order: if it is interrupted, the ledger is refused as before, and the person says it again.
pub(super) async fn adopt(pool: &PgPool, (place, mark): (&str, &Path), known: &MarkReading) -> Result<(), LedgerError> {
    let furthest = match known {
        MarkReading::Marks(marks) => marks.iter().map(|mark| mark.generation).max().unwrap_or(0),
        MarkReading::Nothing | MarkReading::Unreadable(_) => 0,
    };
    // It may be done twice: what a commit without an answer did stays as it is.
    let adopt = || async {
        let mut connection = pool.acquire().await?;
        let Turn { now, version, succession, .. } = transaction::write(&mut connection).await?;
        succession.keep(&mut connection, version).await?;
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
        let current = Mark { id: moved.try_get(0)?, generation: moved.try_get(1)? };
        transaction::commit(&mut connection, Commits::default().next(), now).await.map(|counted| (current, counted))
    };
    let (current, counted) = patiently(&place.into(), adopt).await.map_err(|error| storage(place, &error))?;
    let unmarked = |error: std::io::Error| LedgerError::Storage {
        path: place.to_owned(),
        reason: format!("its high-water mark cannot be written: {error}"),
    };
    MarkFile::open(mark, current).and_then(|mut mark| mark.accept(counted)).map_err(unmarked)
}
