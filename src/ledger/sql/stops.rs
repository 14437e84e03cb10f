//! Requests to stop a run.

use super::change::StatementError;
use super::dialect::Connection;
use super::statement::{query, scalar};
use crate::ledger::{RunId, StopKind};

/// Asks whoever has a run to stop, or takes that back.
pub(super) async fn set_stop_requested(
    connection: &mut Connection,
    run: RunId,
    requested: bool,
) -> Result<(), StatementError> {
    query("UPDATE runs SET stop_requested = $1 WHERE key = $2").bind(requested).bind(run.0).execute(connection).await?;
    Ok(())
}

/// Has everybody stop who sends a run, and tells them why, unless it is asked to stop already.
pub(super) async fn halt_run(
    connection: &mut Connection,
    run: RunId,
    kind: StopKind,
    reason: String,
) -> Result<(), StatementError> {
    query(
        "UPDATE runs SET stop_requested = $1, stop = $2, signal = $3, stopped = $4
         WHERE key = $5 AND NOT stop_requested",
    )
    .bind(true)
    .bind(kind.name())
    .bind(kind.signal().map(i64::from))
    .bind(reason)
    .bind(run.0)
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether whoever has a run is asked to stop.
pub(super) async fn is_stop_requested(reader: &mut Connection, run: RunId) -> Result<bool, StatementError> {
    let requested = scalar("SELECT stop_requested FROM runs WHERE key = $1").bind(run.0).fetch_one(reader).await?;
    Ok(requested)
}
