//! Queries about the rows of a run that are never sent.

use sqlx::Row as _;

use super::change::StatementError;
use super::dialect::Connection;
use super::statement::query;
use crate::ledger::checksum::Checksum;
use crate::ledger::pack::{pack_set, unpack_set};
use crate::ledger::{ExcludedRows, LedgerError, RowState, RunId};

/// Leaves rows out, besides those that are left out already.
pub(super) async fn insert_skipped_rows(
    connection: &mut Connection,
    run: RunId,
    left_out: &ExcludedRows,
) -> Result<(), StatementError> {
    for (state, reason, rows) in left_out.sets() {
        let packed = pack_set(rows)?;
        query("INSERT INTO left_out (run, state, reason, rows, sum) VALUES ($1, $2, $3, $4, $5)")
            .bind(run.0)
            .bind(state.name())
            .bind(reason)
            .bind(&packed)
            .bind(skipped_rows_checksum(run, state.name(), reason, &packed).finish())
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// The rows that are left out.
pub(super) async fn load_skipped_rows(reader: &mut Connection, run: RunId) -> Result<ExcludedRows, StatementError> {
    let rows = query("SELECT state, reason, rows, sum FROM left_out WHERE run = $1 ORDER BY rowid")
        .bind(run.0)
        .fetch_all(reader)
        .await?;
    let mut left_out = ExcludedRows::default();
    for row in rows {
        let (name, reason): (&str, &str) = (row.try_get("state")?, row.try_get("reason")?);
        let packed: &[u8] = row.try_get("rows")?;
        if !skipped_rows_checksum(run, name, reason, packed).matches(row.try_get("sum")?) {
            return Err(LedgerError::Damaged { what: "the record of skipped rows".to_owned() }.into());
        }
        let state =
            RowState::from_name(name).ok_or_else(|| LedgerError::Unreadable(format!("unknown state `{name}`")))?;
        left_out.insert_set(state, reason.to_owned(), unpack_set(packed)?);
    }
    Ok(left_out)
}

fn skipped_rows_checksum(run: RunId, state: &str, reason: &str, rows: &[u8]) -> Checksum {
    Checksum::for_table("left_out").with_number(run.0).with_text(state).with_text(reason).with_bytes(rows)
}
