//! Requests to stop a run.

use super::change::Failure;
use super::dialect::Connection;
use super::statement::{query, scalar};
use crate::ledger::RunId;

/// Asks whoever has a run to stop, or takes that back.
pub(super) async fn request(connection: &mut Connection, run: RunId, requested: bool) -> Result<(), Failure> {
    query("UPDATE runs SET stop_requested = $1 WHERE key = $2").bind(requested).bind(run.0).execute(connection).await?;
    Ok(())
}

/// Whether whoever has a run is asked to stop.
pub(super) async fn requested(reader: &mut Connection, run: RunId) -> Result<bool, Failure> {
    let requested = scalar("SELECT stop_requested FROM runs WHERE key = $1").bind(run.0).fetch_one(reader).await?;
    Ok(requested)
}
