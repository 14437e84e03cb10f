//! The one-time recording of the channels of pipelines that earlier versions sent.

use super::change::StatementError;
use super::dialect::Connection;
use super::envelopes;
use super::statement::query;
use super::written::EnvelopeHeader;
use crate::domain::OperationKind;
use crate::ledger::RunId;
use crate::ledger::earlier_chains::EarlierChains;
use crate::ledger::pack::format_chains;
use sqlx::Row as _;

/// Envelopes that are read at once.
const ENVELOPES_PER_READ: u32 = 256;

/// The runs, with their names, that may have sent pipelines whose channels are not recorded.
pub(in crate::ledger) async fn list_runs_without_chains(
    connection: &mut Connection,
) -> Result<Vec<(RunId, String)>, StatementError> {
    let runs = query(
        "SELECT runs.key, campaign, number FROM runs WHERE purged_at IS NULL AND EXISTS (
             SELECT 1 FROM envelopes WHERE run = runs.key AND COALESCE(envelopes.kind, runs.kind) = $1)
         ORDER BY runs.key",
    )
    .bind(OperationKind::Pipeline.name())
    .fetch_all(connection)
    .await?;
    let named = |run: &super::dialect::Record| {
        let (campaign, number): (String, i64) = (run.try_get(1)?, run.try_get(2)?);
        Ok((RunId(run.try_get(0)?), format!("{campaign}@{number}")))
    };
    runs.iter().map(named).collect()
}

/// Records the channels of a run's pipelines as it froze them; a damaged envelope keeps unknown ones.
pub(in crate::ledger) async fn record_chains(
    connection: &mut Connection,
    run: RunId,
    frozen: &EarlierChains,
) -> Result<(), StatementError> {
    let mut next: u32 = 1;
    loop {
        let records = query(envelopes::SELECT_ENVELOPES)
            .bind(run.0)
            .bind(i64::from(next))
            .bind(i64::from(next.saturating_add(ENVELOPES_PER_READ)))
            .fetch_all(&mut *connection)
            .await?;
        let Some(last) = records.last() else { return Ok(()) };
        next = EnvelopeHeader::from_row(last)?.envelope.saturating_add(1);
        for row in &records {
            let mut envelope = match envelopes::envelope_from_row(row) {
                Ok(envelope) => envelope,
                // What cannot be read keeps unknown channels; reading its run says so.
                Err(StatementError::Ledger(_)) => continue,
                Err(error) => return Err(error),
            };
            if envelope.kind != OperationKind::Pipeline {
                continue;
            }
            frozen.assign_chains(&mut envelope.rows);
            let chains = format_chains(&envelope.rows);
            let (head, packed) = (EnvelopeHeader::from_row(row)?, row.try_get::<&[u8], _>("rows")?);
            let within = (super::statement::read_u32(row, "first_row")?, super::statement::read_u32(row, "last_row")?);
            let sum = EnvelopeHeader { chains: chains.as_deref(), ..head }.checksum(within, packed).finish();
            query("UPDATE envelopes SET chains = $1, rows_sum = $2 WHERE run = $3 AND envelope = $4")
                .bind(chains)
                .bind(sum)
                .bind(run.0)
                .bind(i64::from(envelope.envelope))
                .execute(&mut *connection)
                .await?;
        }
    }
}
