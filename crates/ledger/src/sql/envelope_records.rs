//! The stored form of envelopes: packed rows and outcomes, and the checksums that detect damage. This module also
//! backfills the pipeline channels of envelopes from earlier versions.

use sqlx::Row as _;

use super::dialect::{self, Connection, Record};
use super::envelopes;
use super::{Now, StatementError, query, read_row_number, read_u32, serialize_name};
use crate::encoding::Checksum;
use crate::encoding::EarlierChains;
use crate::encoding::{format_chains, pack_costs, pack_list, pack_outcomes};
use crate::envelope::ENVELOPES_PER_READ;
use crate::{Intent, Lease, LedgerError, RowSpan, RunId, SentRow};
use campaign_core::domain::{OperationKind, OperationOutcome, Row};

/// An envelope, packed for storage.
pub(super) struct NewEnvelope {
    pub(super) number: u32,
    pub(super) within: RowSpan,
    pub(super) packed: Vec<u8>,
    pub(super) sum: i64,
    pub(super) kind: String,
    pub(super) costs: Option<Vec<u8>>,
    pub(super) chains: Option<String>,
}

impl NewEnvelope {
    pub(super) fn from_intent(now: Now, number: u32, intent: &Intent) -> Result<Self, StatementError> {
        let Lease { run, epoch, .. } = intent.lease;
        let (within, packed) = (row_range(&intent.rows), pack_list(&intent.rows)?);
        let (kind, costs) = (serialize_name(&intent.kind)?, pack_costs(&intent.costs)?);
        let chains = (intent.kind == OperationKind::Pipeline).then(|| format_chains(&intent.rows)).flatten();
        let (begun_at, packed_costs) = (now.0, costs.as_deref());
        let header = EnvelopeHeader {
            run: run.0,
            envelope: number,
            epoch: epoch.0,
            begun_at,
            kind: Some(&kind),
            costs: packed_costs,
            chains: chains.as_deref(),
        };
        let sum = header.checksum(within, &packed).finish();
        Ok(Self { number, within, packed, sum, kind, costs, chains })
    }
}

/// The rows of a stored envelope.
pub(super) fn read_row_span(record: &Record) -> Result<RowSpan, StatementError> {
    Ok(RowSpan { first: read_row_number(record, "first_row")?, last: read_row_number(record, "last_row")? })
}

/// The span from the first to the last of these rows.
pub(super) fn row_range(rows: &[SentRow]) -> RowSpan {
    let rows = rows.iter().map(|sent| sent.row);
    let first = rows.clone().min().unwrap_or(Row::HEADER);
    RowSpan { first, last: rows.max().unwrap_or(first) }
}

/// The columns that the checksum of an intent covers.
pub(super) struct EnvelopeHeader<'a> {
    pub(super) run: i64,
    pub(super) envelope: u32,
    pub(super) epoch: i64,
    pub(super) begun_at: i64,
    /// `None` if the envelope was stored before envelopes had a kind.
    pub(super) kind: Option<&'a str>,
    /// Packed costs of the rows, if known.
    pub(super) costs: Option<&'a [u8]>,
    /// Channels of pipelines; `None` for other kinds and envelopes of earlier versions.
    pub(super) chains: Option<&'a str>,
}

impl EnvelopeHeader<'_> {
    pub(super) fn checksum(&self, RowSpan { first, last }: RowSpan, rows: &[u8]) -> Checksum {
        let Self { run, envelope, epoch, begun_at, kind, costs, chains } = *self;
        let sum = Checksum::for_table("envelopes.rows")
            .with_number(run)
            .with_number(envelope)
            .with_number(epoch)
            .with_number(begun_at)
            .with_number(first.get())
            .with_number(last.get())
            .with_bytes(rows);
        // Early versions had none of these columns, so only the columns that are set are included.
        let sum = kind.into_iter().fold(sum, Checksum::with_text);
        let sum = costs.into_iter().fold(sum, Checksum::with_bytes);
        chains.into_iter().fold(sum, Checksum::with_text)
    }
}

impl<'a> EnvelopeHeader<'a> {
    pub(super) fn from_row(row: &'a Record) -> Result<Self, StatementError> {
        Ok(Self {
            run: row.try_get("run")?,
            envelope: read_u32(row, "envelope")?,
            epoch: row.try_get("owner")?,
            begun_at: row.try_get("begun_at")?,
            kind: row.try_get("kind")?,
            costs: row.try_get("costs")?,
            chains: read_chains_column(row)?,
        })
    }
}

/// Reads the channels of an envelope's pipelines. `None` if the tables lack the column, as in early versions.
fn read_chains_column(row: &Record) -> Result<Option<&str>, StatementError> {
    match row.try_get("chains") {
        Err(sqlx::Error::ColumnNotFound(_)) => Ok(None),
        chains => Ok(chains?),
    }
}

/// SQL condition for an envelope without outcomes. With `settled_at IS NULL`, PostgreSQL would use the index of open
/// intents instead of the primary key. That index holds an entry for every envelope settled since the last vacuum.
macro_rules! has_no_outcomes {
    () => {
        "COALESCE(settled_at, -1) = -1"
    };
}
pub(super) use has_no_outcomes;

/// The outcomes of an envelope, packed for storage.
pub(super) struct PackedOutcomes {
    run: RunId,
    envelope: u32,
    pub(super) settled_at: i64,
    pub(super) packed: Vec<u8>,
}

impl PackedOutcomes {
    pub(super) fn new(run: RunId, envelope: u32, now: Now, outcomes: &[OperationOutcome]) -> Result<Self, LedgerError> {
        Ok(Self { run, envelope, settled_at: now.0, packed: pack_outcomes(outcomes)? })
    }

    pub(super) fn checksum(&self) -> i64 {
        Self::compute_checksum(self.run.0, self.envelope, self.settled_at, &self.packed).finish()
    }

    pub(super) fn compute_checksum(run: i64, envelope: u32, settled_at: i64, packed: &[u8]) -> Checksum {
        Checksum::for_table("envelopes.outcomes")
            .with_number(run)
            .with_number(envelope)
            .with_number(settled_at)
            .with_bytes(packed)
    }

    pub(super) async fn update_envelope(
        &self,
        connection: &mut Connection,
        evidence: Option<&str>,
    ) -> Result<(), StatementError> {
        let Self { run, envelope, settled_at, packed } = self;
        query(
            "UPDATE envelopes SET settled_at = $1, outcomes = $2, outcomes_sum = $3, evidence = COALESCE($4, evidence)
             WHERE run = $5 AND envelope = $6",
        )
        .bind(settled_at)
        .bind(packed)
        .bind(self.checksum())
        .bind(evidence.map(dialect::to_storable_text))
        .bind(run.0)
        .bind(i64::from(*envelope))
        .execute(connection)
        .await?;
        Ok(())
    }
}

/// Lists the runs that might have sent pipelines without recorded channels.
pub(crate) async fn list_runs_without_chains(
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
    let to_name = |run: &Record| {
        let (campaign, number): (String, i64) = (run.try_get(1)?, run.try_get(2)?);
        Ok((RunId(run.try_get(0)?), format!("{campaign}@{number}")))
    };
    runs.iter().map(to_name).collect()
}

/// Records the channels of a run's pipelines from its frozen inputs. The channels of damaged envelopes stay unknown.
pub(crate) async fn record_chains(
    connection: &mut Connection,
    run: RunId,
    frozen: &EarlierChains,
) -> Result<(), StatementError> {
    let mut next: u32 = 1;
    loop {
        let records = query(envelopes::SELECT_ENVELOPES)
            .bind(run.0)
            .bind(i64::from(next))
            .bind(i64::from(next.saturating_add(ENVELOPES_PER_READ - 1)))
            .fetch_all(&mut *connection)
            .await?;
        let Some(last) = records.last() else { return Ok(()) };
        next = EnvelopeHeader::from_row(last)?.envelope.saturating_add(1);
        for row in &records {
            let mut envelope = match envelopes::envelope_from_row(row) {
                Ok(envelope) => envelope,
                // The channels of unreadable envelopes stay unknown; reading the run reports these envelopes.
                Err(StatementError::Ledger(_)) => continue,
                Err(error) => return Err(error),
            };
            if envelope.kind != OperationKind::Pipeline {
                continue;
            }
            frozen.assign_chains(&mut envelope.rows);
            let chains = format_chains(&envelope.rows);
            let (header, packed) = (EnvelopeHeader::from_row(row)?, row.try_get::<&[u8], _>("rows")?);
            let sum =
                EnvelopeHeader { chains: chains.as_deref(), ..header }.checksum(read_row_span(row)?, packed).finish();
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
