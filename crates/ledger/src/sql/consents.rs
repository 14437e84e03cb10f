//! Storing and loading the evidence of consent, in blocks of rows.

use futures_util::TryStreamExt as _;
use roaring::RoaringBitmap;
use sqlx::Row as _;

use super::dialect::{Adapter, Connection, Record};
use super::{StatementError, query, read_ledger};
use crate::encoding::Checksum;
use crate::{ConsentBlock, ConsentEvidence, ConsentStore, LedgerError, LedgerFuture, RowSpan, RunId};

impl ConsentStore for Adapter {
    fn load_consents(&self, run: RunId, rows: RowSpan) -> LedgerFuture<'_, Vec<ConsentEvidence>> {
        Box::pin(async move {
            match self.supports_consents() {
                true => read_ledger!(self, load_evidence, run, rows),
                false => Ok(Vec::new()),
            }
        })
    }
}

/// Stores the evidence of a run.
pub(super) async fn store_blocks(
    connection: &mut Connection,
    run: RunId,
    blocks: &[ConsentBlock],
) -> Result<(), StatementError> {
    for block in blocks {
        insert_block(&mut *connection, run, block).await?;
    }
    Ok(())
}

async fn insert_block(connection: &mut Connection, run: RunId, block: &ConsentBlock) -> Result<(), StatementError> {
    let Some(span) = block.span() else { return Ok(()) };
    let (first, last) = (i64::from(span.first.get()), i64::from(span.last.get()));
    let records = postcard::to_stdvec(block).map_err(|error| LedgerError::Unreadable(error.to_string()))?;
    query(
        "INSERT INTO consents (run, first_row, last_row, records, sum) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (run, first_row) DO UPDATE
             SET last_row = excluded.last_row, records = excluded.records, sum = excluded.sum",
    )
    .bind(run.0)
    .bind(first)
    .bind(last)
    .bind(&records)
    .bind(block_checksum(run.0, first, last, &records).finish())
    .execute(connection)
    .await?;
    Ok(())
}

async fn load_evidence(
    reader: &mut Connection,
    run: RunId,
    rows: RowSpan,
) -> Result<Vec<ConsentEvidence>, StatementError> {
    let mut evidence = Vec::new();
    for record in fetch_blocks(reader, run, rows.first.get(), rows.last.get()).await? {
        evidence.extend(block_from_row(&record)?.list_evidence(rows));
    }
    Ok(evidence)
}

/// Fetches the blocks of a run that contain any row from `first` to `last`.
async fn fetch_blocks(
    connection: &mut Connection,
    run: RunId,
    first: u32,
    last: u32,
) -> Result<Vec<Record>, StatementError> {
    let within =
        query("SELECT * FROM consents WHERE run = $1 AND first_row <= $2 AND last_row >= $3 ORDER BY first_row");
    Ok(within.bind(run.0).bind(i64::from(last)).bind(i64::from(first)).fetch_all(connection).await?)
}

fn block_from_row(record: &Record) -> Result<ConsentBlock, StatementError> {
    let (run, records): (i64, &[u8]) = (record.try_get("run")?, record.try_get("records")?);
    let (first, last): (i64, i64) = (record.try_get("first_row")?, record.try_get("last_row")?);
    if !block_checksum(run, first, last, records).matches(record.try_get("sum")?) {
        return Err(LedgerError::Damaged { what: "evidence of consent".to_owned() }.into());
    }
    Ok(postcard::from_bytes(records).map_err(|error| LedgerError::Unreadable(error.to_string()))?)
}

fn block_checksum(run: i64, first: i64, last: i64, records: &[u8]) -> Checksum {
    Checksum::for_table("consents").with_number(run).with_number(first).with_number(last).with_bytes(records)
}

/// Erases the evidence of these rows.
pub(super) async fn erase_evidence(
    connection: &mut Connection,
    run: RunId,
    rows: &RoaringBitmap,
) -> Result<(), StatementError> {
    let (Some(first), Some(last)) = (rows.min(), rows.max()) else { return Ok(()) };
    for record in fetch_blocks(&mut *connection, run, first, last).await? {
        let Some(remaining) = block_from_row(&record)?.without_rows(rows) else { continue };
        let first_row: i64 = record.try_get("first_row")?;
        query("DELETE FROM consents WHERE run = $1 AND first_row = $2")
            .bind(run.0)
            .bind(first_row)
            .execute(&mut *connection)
            .await?;
        insert_block(&mut *connection, run, &remaining).await?;
    }
    Ok(())
}

/// Deletes the evidence of a run.
pub(super) async fn delete_consents(connection: &mut Connection, run: RunId) -> Result<(), StatementError> {
    query("DELETE FROM consents WHERE run = $1").bind(run.0).execute(connection).await?;
    Ok(())
}

/// Finds damaged blocks of consent evidence. Each block is described by its run and first row, and returned with the
/// error.
pub(super) async fn find_damaged_blocks(
    reader: &mut Connection,
) -> Result<Vec<(String, Result<(), StatementError>)>, StatementError> {
    let mut blocks = query(
        "SELECT consents.*, campaign || '@' || number AS name FROM consents
         JOIN runs ON runs.key = consents.run ORDER BY run, first_row",
    )
    .fetch(reader);
    let mut damaged = Vec::new();
    while let Some(record) = blocks.try_next().await? {
        if let Err(error) = block_from_row(&record) {
            let (name, first): (String, i64) = (record.try_get("name")?, record.try_get("first_row")?);
            damaged.push((format!("the evidence of consent of {name} from row {first}"), Err(error)));
        }
    }
    Ok(damaged)
}
