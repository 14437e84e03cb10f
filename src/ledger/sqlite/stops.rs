//! Requests to stop a run.

use sqlx::{SqliteConnection, SqlitePool};

use super::change::Failure;
use crate::ledger::RunId;

/// Asks whoever has a run to stop, or takes that back.
pub(super) async fn request(connection: &mut SqliteConnection, run: RunId, requested: bool) -> Result<(), Failure> {
    sqlx::query("UPDATE runs SET stop_requested = ? WHERE key = ?")
        .bind(requested)
        .bind(run.0)
        .execute(connection)
        .await?;
    Ok(())
}

/// Whether whoever has a run is asked to stop.
pub(super) async fn requested(readers: &SqlitePool, run: RunId) -> Result<bool, Failure> {
    let requested =
        sqlx::query_scalar("SELECT stop_requested FROM runs WHERE key = ?").bind(run.0).fetch_one(readers).await?;
    Ok(requested)
}
