//! Taking a number out of the envelopes that have it.

use roaring::RoaringBitmap;
use sqlx::{Row as _, SqliteConnection};

use crate::ledger::RunId;
use crate::ledger::rules::Forgotten;
use crate::ledger::sqlite::change::{Failure, Now};
use crate::ledger::sqlite::envelopes::{Head, Outcomes, record};
use crate::ledger::sqlite::pack::pack;

/// Takes a number out of these rows of a run, what became of them, and the answers that were kept.
pub(super) async fn forget(
    connection: &mut SqliteConnection,
    run: RunId,
    rows: &RoaringBitmap,
    forgotten: Forgotten,
) -> Result<(), Failure> {
    let (Some(first), Some(last)) = (rows.min(), rows.max()) else { return Ok(()) };
    let within = sqlx::query(
        "SELECT envelopes.*, (SELECT kind FROM runs WHERE key = run) AS kind_of_run FROM envelopes
         WHERE run = ? AND first_row <= ? AND last_row >= ? ORDER BY envelope",
    )
    .bind(run.0)
    .bind(last)
    .bind(first)
    .fetch_all(&mut *connection)
    .await?;
    for row in &within {
        let mut envelope = record(row)?;
        let (settled_at, mut outcomes) = envelope.settled.take().unzip();
        if !forgotten.in_envelope(&mut envelope.rows, outcomes.as_deref_mut().unwrap_or_default(), rows) {
            continue;
        }
        let (packed, head) = (pack(&envelope.rows)?, Head::of(row)?);
        let sum = head.sum((row.try_get("first_row")?, row.try_get("last_row")?), &packed).finish();
        let alone = envelope.rows.iter().all(|sent| rows.contains(sent.row.get()));
        let evidence: Option<&str> = row.try_get("evidence")?;
        sqlx::query("UPDATE envelopes SET rows = ?, rows_sum = ?, evidence = ? WHERE run = ? AND envelope = ?")
            .bind(packed)
            .bind(sum)
            .bind(evidence.filter(|_| !alone).map(|body| forgotten.in_words(body)))
            .bind(run.0)
            .bind(head.envelope)
            .execute(&mut *connection)
            .await?;
        if let Some((at, outcomes)) = settled_at.zip(outcomes) {
            let settled = Outcomes::new((run, head.envelope), Now(at.as_microsecond()), &outcomes)?;
            settled.write(&mut *connection, None).await?;
        }
    }
    Ok(())
}
