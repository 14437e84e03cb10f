//! An envelope as it is written: packed, and with the checksums by which damage is seen.

use sqlx::Row as _;

use super::change::{Failure, Now};
use super::dialect::{self, Connection, Record};
use super::statement::{query, small};
use super::words::word;
use crate::domain::{OperationKind, Outcome, Row};
use crate::ledger::checksum::Checksum;
use crate::ledger::pack::{pack, pack_costs, pack_outcomes, write_chains};
use crate::ledger::{Intent, Lease, LedgerError, Rows, RunId, SentRow};

/// An envelope, ready to be written.
pub(super) struct NewEnvelope {
    pub(super) number: u32,
    pub(super) within: Rows,
    pub(super) packed: Vec<u8>,
    pub(super) sum: i64,
    pub(super) kind: String,
    pub(super) costs: Option<Vec<u8>>,
    pub(super) chains: Option<String>,
}

impl NewEnvelope {
    pub(super) fn of(now: Now, number: u32, intent: &Intent) -> Result<Self, Failure> {
        let Lease { run, epoch, .. } = intent.lease;
        let (within, packed) = (within(&intent.rows), pack(&intent.rows)?);
        let (kind, costs) = (word(&intent.kind)?, pack_costs(&intent.costs)?);
        let chains = (intent.kind == OperationKind::Pipeline).then(|| write_chains(&intent.rows)).flatten();
        let (begun_at, costs_of_head) = (now.0, costs.as_deref());
        let head = Head {
            run: run.0,
            envelope: number,
            epoch: epoch.0,
            begun_at,
            kind: Some(&kind),
            costs: costs_of_head,
            chains: chains.as_deref(),
        };
        let sum = head.sum((within.first.get(), within.last.get()), &packed).finish();
        Ok(Self { number, within, packed, sum, kind, costs, chains })
    }
}

/// Between which rows these are.
pub(super) fn within(rows: &[SentRow]) -> Rows {
    let rows = rows.iter().map(|sent| sent.row);
    let first = rows.clone().min().unwrap_or(Row::HEADER);
    Rows { first, last: rows.max().unwrap_or(first) }
}

/// What identifies the record of an intent.
pub(super) struct Head<'a> {
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

impl Head<'_> {
    pub(super) fn sum(&self, (first, last): (u32, u32), rows: &[u8]) -> Checksum {
        let Self { run, envelope, epoch, begun_at, kind, costs, chains } = *self;
        let sum = Checksum::of("envelopes.rows")
            .number(run)
            .number(envelope)
            .number(epoch)
            .number(begun_at)
            .number(first)
            .number(last)
            .bytes(rows);
        let sum = costs.into_iter().fold(kind.into_iter().fold(sum, Checksum::text), Checksum::bytes);
        chains.into_iter().fold(sum, Checksum::text)
    }
}

impl<'a> Head<'a> {
    pub(super) fn of(row: &'a Record) -> Result<Self, Failure> {
        Ok(Self {
            run: row.try_get("run")?,
            envelope: small(row, "envelope")?,
            epoch: row.try_get("owner")?,
            begun_at: row.try_get("begun_at")?,
            kind: row.try_get("kind")?,
            costs: row.try_get("costs")?,
            chains: chains_of(row)?,
        })
    }
}

/// The channels of an envelope's pipelines; the tables of the version before have no column for them.
fn chains_of(row: &Record) -> Result<Option<&str>, Failure> {
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
pub(super) struct Outcomes {
    run: RunId,
    envelope: u32,
    pub(super) settled_at: i64,
    pub(super) packed: Vec<u8>,
}

impl Outcomes {
    pub(super) fn new((run, envelope): (RunId, u32), now: Now, outcomes: &[Outcome]) -> Result<Self, LedgerError> {
        Ok(Self { run, envelope, settled_at: now.0, packed: pack_outcomes(outcomes)? })
    }

    pub(super) fn checksum(&self) -> i64 {
        Self::sum(self.run.0, self.envelope, self.settled_at, &self.packed).finish()
    }

    pub(super) fn sum(run: i64, envelope: u32, settled_at: i64, packed: &[u8]) -> Checksum {
        Checksum::of("envelopes.outcomes").number(run).number(envelope).number(settled_at).bytes(packed)
    }

    pub(super) async fn write(&self, connection: &mut Connection, evidence: Option<&str>) -> Result<(), Failure> {
        let Self { run, envelope, settled_at, packed } = self;
        query(
            "UPDATE envelopes SET settled_at = $1, outcomes = $2, outcomes_sum = $3, evidence = COALESCE($4, evidence)
             WHERE run = $5 AND envelope = $6",
        )
        .bind(settled_at)
        .bind(packed)
        .bind(self.checksum())
        .bind(evidence.map(dialect::text))
        .bind(run.0)
        .bind(i64::from(*envelope))
        .execute(connection)
        .await?;
        Ok(())
    }
}
