//! Taking a number out of the envelopes that have it.

use roaring::RoaringBitmap;
use sqlx::Row as _;

use super::super::change::{Now, StatementError};
use super::super::dialect::Connection;
use super::super::envelopes::envelope_from_row;
use super::super::statement::{query, read_u32};
use super::super::written::{EnvelopeHeader, PackedOutcomes};
use crate::ledger::RunId;
use crate::ledger::pack::pack_list;
use crate::ledger::rules::NumberErasure;

/// Takes a number out of these rows of a run, what became of them, and the answers that were kept.
pub(super) async fn forget_in_envelopes(
    connection: &mut Connection,
    run: RunId,
    rows: &RoaringBitmap,
    forgotten: NumberErasure,
) -> Result<(), StatementError> {
    let (Some(first), Some(last)) = (rows.min(), rows.max()) else { return Ok(()) };
    let within = query(
        "SELECT envelopes.*, (SELECT kind FROM runs WHERE key = run) AS kind_of_run FROM envelopes
         WHERE run = $1 AND first_row <= $2 AND last_row >= $3 ORDER BY envelope",
    )
    .bind(run.0)
    .bind(i64::from(last))
    .bind(i64::from(first))
    .fetch_all(&mut *connection)
    .await?;
    for row in &within {
        let mut envelope = envelope_from_row(row)?;
        let (settled_at, mut outcomes) = envelope.settled.take().unzip();
        if !forgotten.erase_from_envelope(&mut envelope.rows, outcomes.as_deref_mut().unwrap_or_default(), rows) {
            continue;
        }
        let (packed, head) = (pack_list(&envelope.rows)?, EnvelopeHeader::from_row(row)?);
        let sum = head.checksum((read_u32(row, "first_row")?, read_u32(row, "last_row")?), &packed).finish();
        let alone = envelope.rows.iter().all(|sent| rows.contains(sent.row.get()));
        let evidence: Option<&str> = row.try_get("evidence")?;
        query("UPDATE envelopes SET rows = $1, rows_sum = $2, evidence = $3 WHERE run = $4 AND envelope = $5")
            .bind(packed)
            .bind(sum)
            .bind(evidence.filter(|_| !alone).map(|body| forgotten.erase_from_text(body)))
            .bind(run.0)
            .bind(i64::from(head.envelope))
            .execute(&mut *connection)
            .await?;
        if let Some((at, outcomes)) = settled_at.zip(outcomes) {
            let settled = PackedOutcomes::new((run, head.envelope), Now(at.as_microsecond()), &outcomes)?;
            settled.update_envelope(&mut *connection, None).await?;
        }
    }
    Ok(())
}
