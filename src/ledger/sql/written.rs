//! An envelope as it is written: packed, and with the checksums by which damage is seen.

use sqlx::Row as _;

use super::change::{Now, StatementError};
use super::dialect::{self, Connection, Record};
use super::statement::{query, read_u32};
use super::words::serialize_name;
use crate::domain::{OperationKind, OperationOutcome, Row};
use crate::ledger::checksum::Checksum;
use crate::ledger::pack::{format_chains, pack_costs, pack_list, pack_outcomes};
use crate::ledger::{Intent, Lease, LedgerError, RowSpan, RunId, SentRow};

/// An envelope, ready to be written.
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
        let (begun_at, costs_of_head) = (now.0, costs.as_deref());
        let head = EnvelopeHeader {
            run: run.0,
            envelope: number,
            epoch: epoch.0,
            begun_at,
            kind: Some(&kind),
            costs: costs_of_head,
            chains: chains.as_deref(),
        };
        let sum = head.checksum((within.first.get(), within.last.get()), &packed).finish();
        Ok(Self { number, within, packed, sum, kind, costs, chains })
    }
}

/// Between which rows these are.
pub(super) fn row_range(rows: &[SentRow]) -> RowSpan {
    let rows = rows.iter().map(|sent| sent.row);
    let first = rows.clone().min().unwrap_or(Row::HEADER);
    RowSpan { first, last: rows.max().unwrap_or(first) }
}

/// What identifies the record of an intent.
pub(super) struct EnvelopeHeader<'a> {
    pub(super) run: i64,
    pub(super) envelope: u32,
    pub(super) epoch: i64,
    pub(super) begun_at: i64,
    /// Nothing in what was recorded before envelopes had a kind of their own.
    pub(super) kind: Option<&'a str>,
    /// What its rows cost, packed; nothing where nobody knew.
    pub(super) costs: Option<&'a [u8]>,
    /// The channels of its pipelines; nothing for other kinds, and if an earlier version recorded it.
    pub(super) chains: Option<&'a str>,
}

impl EnvelopeHeader<'_> {
    pub(super) fn checksum(&self, (first, last): (u32, u32), rows: &[u8]) -> Checksum {
        let Self { run, envelope, epoch, begun_at, kind, costs, chains } = *self;
        let sum = Checksum::for_table("envelopes.rows")
            .with_number(run)
            .with_number(envelope)
            .with_number(epoch)
            .with_number(begun_at)
            .with_number(first)
            .with_number(last)
            .with_bytes(rows);
        let sum = costs.into_iter().fold(kind.into_iter().fold(sum, Checksum::with_text), Checksum::with_bytes);
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

/// The channels of an envelope's pipelines; the tables of the version before have no column for them.
fn read_chains_column(row: &Record) -> Result<Option<&str>, StatementError> {
    match row.try_get("chains") {
        Err(sqlx::Error::ColumnNotFound(_)) => Ok(None),
        chains => Ok(chains?),
    }
}

/// Whether an envelope has no outcomes yet. Not `settled_at IS NULL`: PostgreSQL would look for it in the index of those, which
/// has an entry of each that was settled since the last vacuum, and not by its number.
macro_rules! has_no_outcomes {
    () => {
        "COALESCE(settled_at, -1) = -1"
    };
}
pub(super) use has_no_outcomes;

/// What became of an envelope, ready to be written.
pub(super) struct PackedOutcomes {
    run: RunId,
    envelope: u32,
    pub(super) settled_at: i64,
    pub(super) packed: Vec<u8>,
}

impl PackedOutcomes {
    pub(super) fn new(
        (run, envelope): (RunId, u32),
        now: Now,
        outcomes: &[OperationOutcome],
    ) -> Result<Self, LedgerError> {
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
