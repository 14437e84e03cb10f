//! Queries about envelopes.

use std::ops::RangeInclusive;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use jiff::Timestamp;
use sqlx::{QueryBuilder, Row as _};

use super::change::{Now, StatementError};
use super::dialect::{self, Connection, Database, Record};
use super::numbers::EnvelopeNumbers;
use super::runs::{self, timestamp_from_micros};
use super::statement::{self, query, read_u32, scalar};
use super::words::parse_name;
use super::written::{EnvelopeHeader, NewEnvelope, PackedOutcomes, has_no_outcomes, row_range};
use super::{blocks, bounds, contacts, events, left_out, pace, receipts, suppression};
use crate::domain::{Addressee, OperationOutcome, Purpose, Row};
use crate::ledger::pack::{parse_chains, unpack_costs, unpack_list, unpack_outcomes};
use crate::ledger::rules::{
    check_deadline, departure_time, find_refusal, in_doubt_outcomes, merge_outcomes, owns_rows, takes_slot,
};
use crate::ledger::{
    Allowance, Claim, EnvelopeRecord, EnvelopeSummary, ExcludedRows, Intent, Lease, LedgerError, OPTED_OUT, Permit,
    RowEvents, RowSpan, RowStates, RunActivity, RunId, SentRow, Settlement, SlotWait,
};

/// The envelopes of a run with numbers from one to another, whole.
///
/// What was recorded before envelopes had a kind of their own is of the kind of the run.
pub(super) const SELECT_ENVELOPES: &str =
    "SELECT envelopes.*, (SELECT kind FROM runs WHERE key = run) AS kind_of_run FROM envelopes
     WHERE run = $1 AND envelope BETWEEN $2 AND $3 ORDER BY envelope";
/// Envelopes that are read at once.
const ENVELOPES_PER_READ: u32 = 256;

/// Takes a run but for the blocks of others; what whoever had it before had begun is in doubt from here on.
pub(super) async fn claim_run(
    connection: &mut Connection,
    now: Now,
    numbers: EnvelopeNumbers,
    lease: Lease,
    shut: Vec<u32>,
) -> Result<Claim, StatementError> {
    let run = lease.run;
    runs::update_run(connection, run, |run| run.start_claim(lease.epoch)).await?;
    let others = blocks::close_places(connection, run, &shut).await?;
    let fallen = |intent| !others.iter().any(|block| owns_rows(*block, intent));
    let doubtful = mark_intents_in_doubt(connection, now, run, fallen).await?;
    bounds::reset_after_claim(connection, now, run).await?;
    numbers.track_run(connection, lease).await?;
    Ok(Claim { lease, in_doubt: doubtful })
}

/// Has intents of a run fall into doubt; tells how many.
pub(super) async fn mark_intents_in_doubt(
    connection: &mut Connection,
    now: Now,
    run: RunId,
    falls: impl Fn(RowSpan) -> bool,
) -> Result<usize, StatementError> {
    let intents =
        query("SELECT envelope, first_row, last_row, rows FROM envelopes WHERE run = $1 AND settled_at IS NULL")
            .bind(run.0)
            .fetch_all(&mut *connection)
            .await?;
    let mut fallen = 0;
    for intent in &intents {
        let (first, last) =
            (statement::read_row_number(intent, "first_row")?, statement::read_row_number(intent, "last_row")?);
        if falls(RowSpan { first, last }) {
            let rows: Vec<SentRow> = unpack_list(intent.try_get("rows")?)?;
            let outcomes =
                PackedOutcomes::new((run, read_u32(intent, "envelope")?), now, &in_doubt_outcomes(rows.len()))?;
            outcomes.update_envelope(&mut *connection, None).await?;
            fallen += 1;
        }
    }
    Ok(fallen)
}

/// Records an intent, unless it may not leave as it is.
pub(super) async fn begin_envelope(
    connection: &mut Connection,
    now: Now,
    numbers: EnvelopeNumbers,
    intent: Arc<Intent>,
) -> Result<Permit, StatementError> {
    let (lease, account) = (intent.lease, &intent.account);
    let envelope = [NewEnvelope::from_intent(now, numbers.next_number(connection, lease).await?, &intent)?];
    let mut inserted = match (&intent.bounds, intent.leave_by) {
        (None, None) => insert_intents(connection, now, (lease, account), &envelope, false).await?,
        // What it has to keep within is looked at first.
        _ => Vec::new(),
    };
    if inserted.is_empty() {
        let run = runs::load_run(&mut *connection, lease.run).await?;
        let leased = run.may_send_whole_run(lease)
            || run.may_send_drawn_rows()
                && blocks::are_leased(&mut *connection, lease, row_range(&intent.rows)).await?;
        if let Some(refusal) = find_refusal(&run, leased) {
            return Ok(refusal);
        }
        let opted_out = suppression::find_opted_out_rows(connection, &run, &intent.rows).await?;
        if !opted_out.is_empty() {
            left_out::insert_skipped_rows(connection, run.key, &ExcludedRows::from_skipped(&opted_out, OPTED_OUT))
                .await?;
            return Ok(Permit::OptedOut(opted_out));
        }
        let leaves = departure_time(&intent, pace::load_pace(connection, &account.name).await?, now.0);
        if let Some(late) = check_deadline(&intent, leaves) {
            return Ok(late);
        }
        if let Some(over) = bounds::apply_bounds(connection, now, &run, (&intent, leaves)).await? {
            return Ok(over);
        }
        inserted = insert_intents(connection, now, (lease, account), &envelope, true).await?;
    }
    let Some(inserted) = inserted.pop() else { return Ok(Permit::Lost) };
    grant_permit(connection, now, &numbers, &intent, inserted).await
}

/// The permit of an envelope whose intent was inserted.
pub(super) async fn grant_permit(
    connection: &mut Connection,
    now: Now,
    numbers: &EnvelopeNumbers,
    intent: &Intent,
    InsertedIntent { envelope, not_before, counts }: InsertedIntent,
) -> Result<Permit, StatementError> {
    numbers.record_number(intent.lease, envelope);
    if counts {
        contacts::record_contacts(connection, now, envelope, intent).await?;
    }
    let account = &intent.account;
    let wait = match takes_slot(account, not_before.unwrap_or(0), now.0) {
        true => {
            pace::reserve_rate(connection, now, account, u32::try_from(intent.rows.len()).unwrap_or(u32::MAX)).await?
        }
        false => SlotWait::NONE,
    };
    Ok(Permit::Granted { envelope, wait })
}

/// An intent that was inserted.
pub(super) struct InsertedIntent {
    pub(super) envelope: u32,
    /// Until when the gateway wants nothing of the account.
    not_before: Option<i64>,
    /// Whether it is kept when numbers get messages of the run.
    counts: bool,
}

/// Inserts intents by one right, and tells which; the insertion itself checks the lease, the stop request and the version of the
/// suppression list, unless the list was `looked_at`.
pub(super) async fn insert_intents(
    connection: &mut Connection,
    now: Now,
    (lease, account): (Lease, &Allowance),
    envelopes: &[NewEnvelope],
    list_checked: bool,
) -> Result<Vec<InsertedIntent>, StatementError> {
    let (run, epoch) = (lease.run.0, lease.epoch.0);
    // The tables of the version before have no column for them.
    let chains = envelopes.iter().any(|envelope| envelope.chains.is_some());
    let mut statement = QueryBuilder::<Database>::new(
        "INSERT INTO envelopes (run, envelope, owner, begun_at, first_row, last_row, rows, rows_sum, kind, costs",
    );
    statement.push(if chains { ", chains" } else { "" }).push(") SELECT key, given.column1, ");
    statement.push_bind(epoch).push(", ").push_bind(now.0);
    statement.push(", given.column2, given.column3, given.column4, given.column5, given.column6, given.column7");
    statement.push(if chains { ", given.column8" } else { "" }).push(" FROM runs CROSS JOIN (");
    statement.push_values(envelopes, |mut values, envelope| {
        values
            .push_bind(i64::from(envelope.number))
            .push_bind(i64::from(envelope.within.first.get()))
            .push_bind(i64::from(envelope.within.last.get()))
            .push_bind(envelope.packed.as_slice())
            .push_bind(envelope.sum)
            .push_bind(envelope.kind.as_str())
            .push_bind(envelope.costs.as_deref());
        if chains {
            values.push_bind(envelope.chains.as_deref());
        }
    });
    statement
        .push(") AS given WHERE key = ")
        .push_bind(run)
        .push(" AND NOT stop_requested AND ((owner = ")
        .push_bind(epoch);
    statement.push(
        " AND terms IS NULL) OR
             (shared OR ended_at IS NULL) AND EXISTS (SELECT 1 FROM blocks WHERE run = key AND last_row >= given.column3
                 AND first_row = (SELECT MAX(first_row) FROM blocks WHERE run = key AND first_row <= given.column2)
                 AND epoch = ",
    );
    statement.push_bind(epoch).push(
        "))
             AND (opt_outs = (SELECT version FROM opt_out_list) OR (shared AND purpose IS NULL) OR purpose = ",
    );
    statement.push_bind(Purpose::Service.name()).push(" OR ").push_bind(list_checked);
    statement.push(") RETURNING envelope, (SELECT not_before FROM accounts WHERE name = ").push_bind(&*account.name);
    statement.push("), EXISTS (SELECT 1 FROM contacts_kept JOIN runs USING (loopback) WHERE runs.key = ");
    statement.push_bind(run).push(")");
    let inserted = statement.build().persistent(dialect::CACHES_STATEMENTS).fetch_all(connection).await?;
    let said = |row: &Record| {
        Ok(InsertedIntent { envelope: read_u32(row, 0)?, not_before: row.try_get(1)?, counts: row.try_get(2)? })
    };
    inserted.iter().map(said).collect()
}

/// Records outcomes. Where the envelope fell into doubt meanwhile, what is proven now takes its place.
pub(super) async fn settle_envelope(
    connection: &mut Connection,
    now: Now,
    settlement: Arc<Settlement>,
) -> Result<(), StatementError> {
    let Settlement { run, envelope, outcomes, evidence } = &*settlement;
    let (run, envelope) = (*run, *envelope);
    let settled = PackedOutcomes::new((run, envelope), now, outcomes)?;
    let changed = query(concat!(
        "UPDATE envelopes SET settled_at = $1, outcomes = $2, outcomes_sum = $3, evidence = $4
         WHERE run = $5 AND envelope = $6 AND ",
        has_no_outcomes!()
    ))
    .bind(settled.settled_at)
    .bind(&settled.packed)
    .bind(settled.checksum())
    .bind(evidence.as_deref().map(dialect::to_storable_text))
    .bind(run.0)
    .bind(i64::from(envelope))
    .execute(&mut *connection)
    .await?
    .rows_affected();
    if changed > 0 {
        return bounds::release_after_settlement(connection, (run, envelope), outcomes).await;
    }
    let packed: Vec<u8> = scalar("SELECT outcomes FROM envelopes WHERE run = $1 AND envelope = $2")
        .bind(run.0)
        .bind(i64::from(envelope))
        .fetch_one(&mut *connection)
        .await?;
    let merged = merge_outcomes(unpack_outcomes(&packed)?, outcomes.clone());
    PackedOutcomes::new((run, envelope), now, &merged)?.update_envelope(&mut *connection, evidence.as_deref()).await?;
    bounds::reset_after_merge(connection, run, envelope).await?;
    if runs::load_run(&mut *connection, run).await?.counts.is_some() {
        recount_run(connection, run).await?;
    }
    Ok(())
}

/// Counts an ended run anew, envelope by envelope.
async fn recount_run(connection: &mut Connection, key: RunId) -> Result<(), StatementError> {
    let run = runs::load_run(&mut *connection, key).await?;
    let left_out = left_out::load_skipped_rows(&mut *connection, key).await?;
    let events = events::load_events(&mut *connection, key).await?;
    let events = RowEvents::from(events).with_excluded_rows(&left_out);
    let mut states = RowStates::new(RunActivity::from_progress(run.progress, false), events);
    let mut next = 1;
    loop {
        let block = load_envelopes(&mut *connection, key, next..=next.saturating_add(ENVELOPES_PER_READ)).await?;
        let Some(last) = block.last() else { break };
        next = last.envelope.saturating_add(1);
        block.iter().for_each(|envelope| states.add_envelope(envelope));
    }
    let told = receipts::load_receipts(&mut *connection, key, 0..run.last_row().get().saturating_add(1)).await?;
    told.iter().for_each(|(row, receipts)| states.add_receipts(*row, receipts));
    runs::update_run(connection, key, |run| run.recount(&states, &left_out)).await
}

pub(super) async fn load_summaries(
    reader: &mut Connection,
    run: RunId,
) -> Result<Vec<EnvelopeSummary>, StatementError> {
    let mut rows = query("SELECT envelope, first_row, last_row FROM envelopes WHERE run = $1 ORDER BY envelope")
        .bind(run.0)
        .fetch(reader);
    let mut summaries = Vec::new();
    while let Some(row) = rows.try_next().await? {
        summaries.push(EnvelopeSummary {
            envelope: read_u32(&row, 0)?,
            first: statement::read_row_number(&row, 1)?,
            last: statement::read_row_number(&row, 2)?,
        });
    }
    Ok(summaries)
}

pub(super) async fn load_envelopes(
    reader: &mut Connection,
    run: RunId,
    numbers: RangeInclusive<u32>,
) -> Result<Vec<EnvelopeRecord>, StatementError> {
    let rows = query(SELECT_ENVELOPES)
        .bind(run.0)
        .bind(i64::from(*numbers.start()))
        .bind(i64::from(*numbers.end()))
        .fetch_all(reader)
        .await?;
    rows.iter().map(envelope_from_row).collect()
}

/// Whom a row was sent to.
pub(super) async fn find_addressee(
    reader: &mut Connection,
    run: RunId,
    row: Row,
) -> Result<Option<Addressee>, StatementError> {
    let mut within = scalar("SELECT rows FROM envelopes WHERE run = $1 AND first_row <= $2 AND last_row >= $3")
        .bind(run.0)
        .bind(i64::from(row.get()))
        .bind(i64::from(row.get()))
        .fetch(reader);
    while let Some(packed) = within.try_next().await? {
        let packed: Vec<u8> = packed;
        let rows: Vec<SentRow> = unpack_list(&packed)?;
        if let Some(sent) = rows.iter().find(|sent| sent.row == row) {
            return Ok(Some(sent.to));
        }
    }
    Ok(None)
}

/// The body of an envelope's answer, where one was kept.
pub(super) async fn load_evidence(
    reader: &mut Connection,
    run: RunId,
    envelope: u32,
) -> Result<Option<String>, StatementError> {
    let evidence: Option<Option<String>> = scalar("SELECT evidence FROM envelopes WHERE run = $1 AND envelope = $2")
        .bind(run.0)
        .bind(i64::from(envelope))
        .fetch_optional(reader)
        .await?;
    Ok(evidence.flatten())
}

pub(super) fn envelope_from_row(row: &Record) -> Result<EnvelopeRecord, StatementError> {
    let head = EnvelopeHeader::from_row(row)?;
    let packed: &[u8] = row.try_get("rows")?;
    let within = (read_u32(row, "first_row")?, read_u32(row, "last_row")?);
    if !head.checksum(within, packed).matches(row.try_get("rows_sum")?) {
        // Nobody knows any more whom it went to.
        return Err(LedgerError::Damaged { what: format!("the record of request {}", head.envelope) }.into());
    }
    let mut rows: Vec<SentRow> = unpack_list(packed)?;
    if let Some(chains) = head.chains {
        parse_chains(chains, &mut rows)?;
    }
    Ok(EnvelopeRecord {
        envelope: head.envelope,
        kind: parse_name(head.kind.map_or_else(|| row.try_get("kind_of_run"), Ok)?)?,
        begun_at: timestamp_from_micros(head.begun_at)?,
        settled: read_settlement(row, &head, rows.len())?,
        costs: head.costs.map_or_else(|| Ok(Vec::new()), unpack_costs)?,
        rows,
    })
}

/// What became of an envelope's rows; nothing for an intent.
fn read_settlement(
    row: &Record,
    head: &EnvelopeHeader<'_>,
    rows: usize,
) -> Result<Option<(Timestamp, Vec<OperationOutcome>)>, StatementError> {
    let settled_at: Option<i64> = row.try_get("settled_at")?;
    let packed: Option<&[u8]> = row.try_get("outcomes")?;
    let sum: Option<i64> = row.try_get("outcomes_sum")?;
    let Some((at, packed)) = settled_at.zip(packed) else {
        // A checksum without what it is of: something was there.
        return Ok(if sum.is_some() {
            Some((timestamp_from_micros(head.begun_at)?, damaged_outcomes(rows)))
        } else {
            None
        });
    };
    if !PackedOutcomes::compute_checksum(head.run, head.envelope, at, packed).matches(sum) {
        return Ok(Some((timestamp_from_micros(head.begun_at)?, damaged_outcomes(rows))));
    }
    Ok(Some((timestamp_from_micros(at)?, unpack_outcomes(packed)?)))
}

fn damaged_outcomes(rows: usize) -> Vec<OperationOutcome> {
    vec![OperationOutcome::InDoubt { reason: EnvelopeRecord::DAMAGED.into() }; rows]
}
