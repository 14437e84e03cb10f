//! Queries about envelopes: intents, permits, outcomes, batches, and envelope numbers.
//!
//! A batch uses one statement instead of one per envelope, because every statement is a round trip. A batch must have
//! the same result as its parts: envelopes that a batch cannot handle are left to the functions for single envelopes. A
//! test compares both.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::TryStreamExt as _;
use jiff::Timestamp;
use sqlx::{QueryBuilder, Row as _};

use super::dialect::{self, Connection, Database, Record, json_elements};
use super::envelope_records::{EnvelopeHeader, NewEnvelope, PackedOutcomes, has_no_outcomes, read_row_span, row_range};
use super::runs::{self, timestamp_from_micros};
use super::{Now, StatementError, parse_name, query, read_u32, scalar, to_u32};
use super::{blocks, contacts, events, limits, receipts, suppression};
use crate::encoding::{parse_chains, unpack_costs, unpack_list, unpack_outcomes};
use crate::envelope::ENVELOPES_PER_READ;
use crate::rules::{
    check_deadline, departure_time, find_refusal, in_doubt_outcomes, merge_outcomes, owns_rows, takes_slot,
};
use crate::{
    Allowance, Claim, EnvelopeRecord, EnvelopeSummary, Epoch, ExcludedRows, Intent, Lease, LedgerError, OPTED_OUT,
    Permit, RowSpan, RowStates, RunActivity, RunId, SentRow, Settlement, SlotWait,
};
use campaign_core::domain::{OperationOutcome, Row};

/// Selects the envelopes of a run in a range of numbers.
///
/// Envelopes of versions that stored no kind per envelope have the kind of their run.
pub(super) const SELECT_ENVELOPES: &str =
    "SELECT envelopes.*, (SELECT kind FROM runs WHERE key = run) AS kind_of_run FROM envelopes
     WHERE run = $1 AND envelope BETWEEN $2 AND $3 ORDER BY envelope";

/// Selects the envelopes of a run whose span of rows begins at or before one row and ends at or after another.
pub(super) const SELECT_ENVELOPES_WITHIN: &str =
    "SELECT envelopes.*, (SELECT kind FROM runs WHERE key = run) AS kind_of_run FROM envelopes
     WHERE run = $1 AND first_row <= $2 AND last_row >= $3 ORDER BY envelope";

/// Selects the envelopes of a run with these numbers.
pub(super) const SELECT_LISTED_ENVELOPES: &str = concat!(
    "SELECT envelopes.*, (SELECT kind FROM runs WHERE key = run) AS kind_of_run FROM envelopes
     WHERE run = $1 AND envelope IN (SELECT CAST(value AS BIGINT) FROM ",
    json_elements!("$2"),
    ") ORDER BY envelope"
);

/// Claims a run except for blocks that other processes hold. Open intents of the previous holder are marked as in
/// doubt.
pub(super) async fn claim_run(
    connection: &mut Connection,
    now: Now,
    numbers: EnvelopeNumbers,
    lease: Lease,
    vacant: Vec<u32>,
) -> Result<Claim, StatementError> {
    let run = lease.run;
    runs::update_run(connection, run, |run| run.start_claim(lease.epoch)).await?;
    let others = blocks::close_places(connection, run, &vacant).await?;
    let is_released = |intent| !others.iter().any(|block| owns_rows(*block, intent));
    let doubtful = mark_intents_in_doubt(connection, now, run, is_released).await?;
    limits::reset_after_claim(connection, now, run).await?;
    numbers.track_run(connection, lease).await?;
    Ok(Claim { lease, in_doubt: doubtful })
}

/// Marks open intents of a run as in doubt if `matches` selects their rows. Returns the number of marked intents.
pub(super) async fn mark_intents_in_doubt(
    connection: &mut Connection,
    now: Now,
    run: RunId,
    matches: impl Fn(RowSpan) -> bool,
) -> Result<usize, StatementError> {
    let intents =
        query("SELECT envelope, first_row, last_row, rows FROM envelopes WHERE run = $1 AND settled_at IS NULL")
            .bind(run.0)
            .fetch_all(&mut *connection)
            .await?;
    let mut marked = 0;
    for intent in &intents {
        if matches(read_row_span(intent)?) {
            let rows: Vec<SentRow> = unpack_list(intent.try_get("rows")?)?;
            let outcomes =
                PackedOutcomes::new(run, read_u32(intent, "envelope")?, now, &in_doubt_outcomes(rows.len()))?;
            outcomes.update_envelope(&mut *connection, None).await?;
            marked += 1;
        }
    }
    Ok(marked)
}

/// Records an intent and returns its permit, or returns why the intent must not be sent.
pub(super) async fn begin_envelope(
    connection: &mut Connection,
    now: Now,
    numbers: EnvelopeNumbers,
    intent: Arc<Intent>,
) -> Result<Permit, StatementError> {
    let (lease, account) = (intent.lease, &intent.account);
    let envelope = [NewEnvelope::from_intent(now, numbers.next_number(connection, lease).await?, &intent)?];
    let mut inserted = match (&intent.bounds, intent.leave_by) {
        (None, None) => insert_intents(connection, now, lease, account, &envelope, false).await?,
        // Bounds and deadlines are checked before the insertion.
        _ => Vec::new(),
    };
    if inserted.is_empty() {
        let run = runs::load_run(&mut *connection, lease.run).await?;
        let is_leased = run.may_send_whole_run(lease)
            || run.may_send_drawn_rows()
                && blocks::are_rows_leased(&mut *connection, lease, row_range(&intent.rows)).await?;
        if let Some(refusal) = find_refusal(&run, is_leased) {
            return Ok(refusal);
        }
        let opted_out = suppression::find_opted_out_rows(connection, &run, &intent.rows).await?;
        if !opted_out.is_empty() {
            events::insert_excluded_rows(connection, run.key, &ExcludedRows::from_skipped(&opted_out, OPTED_OUT))
                .await?;
            return Ok(Permit::OptedOut(opted_out));
        }
        let departs_at = departure_time(&intent, limits::load_rate_limit(connection, &account.name).await?, now.0);
        if let Some(late) = check_deadline(&intent, departs_at) {
            return Ok(late);
        }
        if let Some(refusal) = limits::apply_bounds(connection, now, &run, &intent, departs_at).await? {
            return Ok(refusal);
        }
        inserted = insert_intents(connection, now, lease, account, &envelope, true).await?;
    }
    let Some(inserted) = inserted.pop() else { return Ok(Permit::Lost) };
    grant_permit(connection, now, &numbers, &intent, inserted).await
}

/// Grants the permit for an inserted intent.
pub(super) async fn grant_permit(
    connection: &mut Connection,
    now: Now,
    numbers: &EnvelopeNumbers,
    intent: &Intent,
    InsertedIntent { envelope, not_before, has_contact_index }: InsertedIntent,
) -> Result<Permit, StatementError> {
    numbers.record_number(intent.lease, envelope);
    if has_contact_index {
        contacts::record_contacts(connection, now, envelope, intent).await?;
    }
    let account = &intent.account;
    let wait = match takes_slot(account, not_before.unwrap_or(0), now.0) {
        true => {
            limits::reserve_rate(connection, now, account, u32::try_from(intent.rows.len()).unwrap_or(u32::MAX)).await?
        }
        false => SlotWait::NONE,
    };
    Ok(Permit::Granted { envelope, wait })
}

/// An intent that the database accepted.
pub(super) struct InsertedIntent {
    pub(super) envelope: u32,
    /// The time before which nothing is sent, because the gateway requested a wait.
    not_before: Option<i64>,
    /// Whether the ledger has an index of contacts for frequency caps that covers the run.
    has_contact_index: bool,
}

/// Inserts intents of one lease and returns the intents that were inserted. The statement itself checks the lease, the
/// stop request and, unless `is_list_checked`, the version of the suppression list.
pub(super) async fn insert_intents(
    connection: &mut Connection,
    now: Now,
    lease: Lease,
    account: &Allowance,
    envelopes: &[NewEnvelope],
    is_list_checked: bool,
) -> Result<Vec<InsertedIntent>, StatementError> {
    let (run, epoch) = (lease.run.0, lease.epoch.0);
    // The tables of early versions have no column `chains`.
    let has_chains = envelopes.iter().any(|envelope| envelope.chains.is_some());
    let mut statement = QueryBuilder::<Database>::new(
        "INSERT INTO envelopes (run, envelope, owner, begun_at, first_row, last_row, rows, rows_sum, kind, costs",
    );
    statement.push(if has_chains { ", chains" } else { "" }).push(") SELECT key, given.column1, ");
    statement.push_bind(epoch).push(", ").push_bind(now.0);
    statement.push(", given.column2, given.column3, given.column4, given.column5, given.column6, given.column7");
    statement.push(if has_chains { ", given.column8" } else { "" }).push(" FROM runs CROSS JOIN (");
    statement.push_values(envelopes, |mut values, envelope| {
        values
            .push_bind(i64::from(envelope.number))
            .push_bind(i64::from(envelope.within.first.get()))
            .push_bind(i64::from(envelope.within.last.get()))
            .push_bind(envelope.packed.as_slice())
            .push_bind(envelope.sum)
            .push_bind(envelope.kind.as_str())
            .push_bind(envelope.costs.as_deref());
        if has_chains {
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
    statement.push_bind(runs::MANDATORY).push(" OR ").push_bind(is_list_checked);
    statement.push(") RETURNING envelope, (SELECT not_before FROM accounts WHERE name = ").push_bind(&*account.name);
    statement.push("), EXISTS (SELECT 1 FROM contacts_kept JOIN runs USING (loopback) WHERE runs.key = ");
    statement.push_bind(run).push(")");
    let inserted = statement.build().persistent(dialect::CACHES_STATEMENTS).fetch_all(connection).await?;
    let to_inserted_intent = |row: &Record| {
        Ok(InsertedIntent {
            envelope: read_u32(row, 0)?,
            not_before: row.try_get(1)?,
            has_contact_index: row.try_get(2)?,
        })
    };
    inserted.iter().map(to_inserted_intent).collect()
}

/// Records the outcomes of an envelope, without its opt-outs. If the envelope was marked as in doubt in the meantime,
/// proven outcomes replace that state.
pub(super) async fn settle_envelope(
    connection: &mut Connection,
    now: Now,
    settlement: Arc<Settlement>,
) -> Result<(), StatementError> {
    let Settlement { run, envelope, outcomes, evidence, opt_outs: _ } = &*settlement;
    let (run, envelope) = (*run, *envelope);
    let settled = PackedOutcomes::new(run, envelope, now, outcomes)?;
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
        return limits::release_after_settlement(connection, run, envelope, outcomes).await;
    }
    let packed: Vec<u8> = scalar("SELECT outcomes FROM envelopes WHERE run = $1 AND envelope = $2")
        .bind(run.0)
        .bind(i64::from(envelope))
        .fetch_one(&mut *connection)
        .await?;
    let merged = merge_outcomes(unpack_outcomes(&packed)?, outcomes.clone());
    PackedOutcomes::new(run, envelope, now, &merged)?.update_envelope(&mut *connection, evidence.as_deref()).await?;
    limits::reset_after_merge(connection, run, envelope).await?;
    recount_ended_run(connection, run).await
}

/// Recounts the states of a run from its envelopes, if the run has ended.
pub(super) async fn recount_ended_run(connection: &mut Connection, key: RunId) -> Result<(), StatementError> {
    let run = runs::load_run(&mut *connection, key).await?;
    if run.counts.is_none() {
        return Ok(());
    }
    let excluded = events::load_excluded_rows(&mut *connection, key).await?;
    let events = events::load_row_events(&mut *connection, key).await?.with_excluded_rows(&excluded);
    let mut states = RowStates::new(RunActivity::from_progress(run.progress, false), events);
    visit_envelopes(connection, key, |envelope| states.add_envelope(envelope)).await?;
    let row_receipts =
        receipts::load_receipts(&mut *connection, key, 0..run.last_row().get().saturating_add(1)).await?;
    row_receipts.iter().for_each(|(row, receipts)| states.add_receipts(*row, receipts));
    runs::update_run(connection, key, |run| run.recount(&states, &excluded)).await
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
            first: super::read_row_number(&row, 1)?,
            last: super::read_row_number(&row, 2)?,
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

/// Calls a function with each envelope of a run, in order.
pub(super) async fn visit_envelopes(
    reader: &mut Connection,
    run: RunId,
    mut visit: impl FnMut(&EnvelopeRecord),
) -> Result<(), StatementError> {
    let mut next = 1;
    loop {
        let batch = load_envelopes(reader, run, next..=next.saturating_add(ENVELOPES_PER_READ - 1)).await?;
        let Some(last) = batch.last() else { return Ok(()) };
        next = last.envelope.saturating_add(1);
        batch.iter().for_each(&mut visit);
    }
}

/// Loads the undamaged envelopes that contain a row. Fails if there are none and a damaged envelope might contain the
/// row.
pub(super) async fn load_envelopes_of_row(
    reader: &mut Connection,
    run: RunId,
    row: Row,
) -> Result<Vec<EnvelopeRecord>, StatementError> {
    let rows = query(SELECT_ENVELOPES_WITHIN)
        .bind(run.0)
        .bind(i64::from(row.get()))
        .bind(i64::from(row.get()))
        .fetch_all(reader)
        .await?;
    let (mut envelopes, mut damage) = (Vec::new(), None);
    for stored in &rows {
        let packed: &[u8] = stored.try_get("rows")?;
        let has_row = |sent: Vec<SentRow>| sent.iter().any(|sent| sent.row == row);
        if unpack_list(packed).is_ok_and(|sent| !has_row(sent)) {
            continue;
        }
        match envelope_from_row(stored) {
            Ok(envelope) => envelopes.push(envelope),
            Err(error) => damage = Some(error),
        }
    }
    match damage {
        Some(error) if envelopes.is_empty() => Err(error),
        _ => Ok(envelopes),
    }
}

pub(super) fn envelope_from_row(row: &Record) -> Result<EnvelopeRecord, StatementError> {
    let header = EnvelopeHeader::from_row(row)?;
    let packed: &[u8] = row.try_get("rows")?;
    if !header.checksum(read_row_span(row)?, packed).matches(row.try_get("rows_sum")?) {
        // The recipients of this envelope are unknown.
        return Err(LedgerError::Damaged { what: format!("the record of request {}", header.envelope) }.into());
    }
    let mut rows: Vec<SentRow> = unpack_list(packed)?;
    if let Some(chains) = header.chains {
        parse_chains(chains, &mut rows)?;
    }
    Ok(EnvelopeRecord {
        envelope: header.envelope,
        kind: parse_name(header.kind.map_or_else(|| row.try_get("kind_of_run"), Ok)?)?,
        begun_at: timestamp_from_micros(header.begun_at)?,
        settled: read_settlement(row, &header, rows.len())?,
        costs: header.costs.map_or_else(|| Ok(Vec::new()), unpack_costs)?,
        evidence: read_evidence(row)?,
        rows,
    })
}

/// Reads the stored body of an answer as far as possible. The body has no checksum, and damage to it must not hide the
/// envelope.
fn read_evidence(row: &Record) -> Result<Option<String>, StatementError> {
    let body: Option<Vec<u8>> = row.try_get_unchecked("evidence")?;
    Ok(body.map(|body| String::from_utf8_lossy(&body).into_owned()))
}

/// Reads the outcomes of an envelope; `None` for an open intent.
fn read_settlement(
    row: &Record,
    header: &EnvelopeHeader<'_>,
    rows: usize,
) -> Result<Option<(Timestamp, Vec<OperationOutcome>)>, StatementError> {
    let settled_at: Option<i64> = row.try_get("settled_at")?;
    let packed: Option<&[u8]> = row.try_get("outcomes")?;
    let sum: Option<i64> = row.try_get("outcomes_sum")?;
    let Some((at, packed)) = settled_at.zip(packed) else {
        // A checksum without outcomes means that outcomes were lost.
        return Ok(if sum.is_some() {
            Some((timestamp_from_micros(header.begun_at)?, damaged_outcomes(rows)))
        } else {
            None
        });
    };
    if !PackedOutcomes::compute_checksum(header.run, header.envelope, at, packed).matches(sum) {
        return Ok(Some((timestamp_from_micros(header.begun_at)?, damaged_outcomes(rows))));
    }
    Ok(Some((timestamp_from_micros(at)?, unpack_outcomes(packed)?)))
}

fn damaged_outcomes(rows: usize) -> Vec<OperationOutcome> {
    vec![OperationOutcome::InDoubt { reason: EnvelopeRecord::DAMAGED.into() }; rows]
}

/// Records the outcomes of several envelopes, and the opt-outs that the gateway reported.
pub(super) async fn settle_batch(
    connection: &mut Connection,
    now: Now,
    settlements: &[Arc<Settlement>],
) -> Result<(), StatementError> {
    for settlement in settlements.iter().filter(|settlement| !settlement.opt_outs.is_empty()) {
        suppression::insert_opt_outs(connection, &settlement.opt_outs).await?;
    }
    let key = |settlement: &Settlement| (settlement.run, settlement.envelope);
    let unique: HashSet<_> = settlements.iter().map(|settlement| key(settlement)).collect();
    let settled = match unique.len() == settlements.len() && settlements.len() > 1 {
        true => settle_in_one_statement(&mut *connection, now, settlements).await?,
        false => HashSet::new(),
    };
    for settlement in settlements {
        if settled.contains(&key(settlement)) {
            limits::release_after_settlement(connection, settlement.run, settlement.envelope, &settlement.outcomes)
                .await?;
        } else {
            settle_envelope(&mut *connection, now, Arc::clone(settlement)).await?;
        }
    }
    Ok(())
}

/// Records outcomes of open envelopes. Returns the settled envelopes by run and number.
async fn settle_in_one_statement(
    connection: &mut Connection,
    now: Now,
    settlements: &[Arc<Settlement>],
) -> Result<HashSet<(RunId, u32)>, StatementError> {
    let pack = |settlement: &Arc<Settlement>| {
        PackedOutcomes::new(settlement.run, settlement.envelope, now, &settlement.outcomes)
    };
    let outcomes = settlements.iter().map(pack).collect::<Result<Vec<_>, _>>()?;
    let mut statement = QueryBuilder::<Database>::new("UPDATE envelopes SET settled_at = ");
    statement.push_bind(now.0);
    statement.push(", outcomes = given.column3, outcomes_sum = given.column4, evidence = given.column5 FROM (");
    statement.push_values(outcomes.iter().zip(settlements), |mut values, (outcomes, settlement)| {
        values
            .push_bind(settlement.run.0)
            .push_bind(i64::from(settlement.envelope))
            .push_bind(outcomes.packed.as_slice())
            .push_bind(outcomes.checksum())
            .push_bind(settlement.evidence.as_deref().map(dialect::to_storable_text));
    });
    statement.push(concat!(
        ") AS given WHERE run = given.column1 AND envelope = given.column2 AND ",
        has_no_outcomes!(),
        " RETURNING run, envelope"
    ));
    let settled = statement.build().persistent(dialect::CACHES_STATEMENTS).fetch_all(connection).await?;
    settled.iter().map(|row| Ok((RunId(row.try_get(0)?), read_u32(row, 1)?))).collect()
}

/// Records intents and returns one permit for each, in the order of the intents.
pub(super) async fn begin_batch(
    connection: &mut Connection,
    now: Now,
    numbers: &EnvelopeNumbers,
    intents: &[Arc<Intent>],
) -> Result<Vec<Permit>, StatementError> {
    let mut permits = Vec::with_capacity(intents.len());
    for group in intents.chunk_by(|one, next| can_share_statement(one, next)) {
        let mut permits_by_index = match group {
            [_, _, ..] => begin_in_one_statement(&mut *connection, now, numbers, group).await?,
            _ => HashMap::new(),
        };
        for (index, intent) in group.iter().enumerate() {
            permits.push(match permits_by_index.remove(&index) {
                Some(permit) => permit,
                None => begin_envelope(&mut *connection, now, numbers.clone(), Arc::clone(intent)).await?,
            });
        }
    }
    Ok(permits)
}

/// Whether two intents share a lease and account, and neither has bounds or a deadline.
fn can_share_statement(first: &Intent, second: &Intent) -> bool {
    let is_unbounded = |intent: &Intent| intent.bounds.is_none() && intent.leave_by.is_none();
    let same_sender = first.lease == second.lease && first.account.name == second.account.name;
    same_sender && is_unbounded(first) && is_unbounded(second)
}

/// Records intents of one lease and returns the permits of inserted intents by their index in `intents`.
async fn begin_in_one_statement(
    connection: &mut Connection,
    now: Now,
    numbers: &EnvelopeNumbers,
    intents: &[Arc<Intent>],
) -> Result<HashMap<usize, Permit>, StatementError> {
    let Some(first) = intents.first() else { return Ok(HashMap::new()) };
    let next = numbers.next_number(&mut *connection, first.lease).await?;
    let envelopes = (next..).zip(intents).map(|(number, intent)| NewEnvelope::from_intent(now, number, intent));
    let envelopes = envelopes.collect::<Result<Vec<_>, StatementError>>()?;
    let mut inserted = insert_intents(&mut *connection, now, first.lease, &first.account, &envelopes, false).await?;
    // Numbers and rate-limit slots are assigned in order.
    inserted.sort_by_key(|inserted| inserted.envelope);
    let mut permits = HashMap::new();
    for inserted in inserted {
        let index = usize::try_from(inserted.envelope - next).unwrap_or(usize::MAX);
        if let Some(intent) = intents.get(index) {
            permits.insert(index, grant_permit(&mut *connection, now, numbers, intent, inserted).await?);
        }
    }
    Ok(permits)
}

/// The last envelope number of each run, cached while it is certain.
#[derive(Clone, Default)]
pub(crate) struct EnvelopeNumbers(Arc<Mutex<LastEnvelopes>>);

#[derive(Default)]
struct LastEnvelopes {
    /// Runs that this process holds alone. `None` means that the number must be read again.
    exclusive: HashMap<(RunId, Epoch), Option<u32>>,
    /// Runs to which the current transaction added envelopes.
    in_transaction: HashMap<RunId, u32>,
}

impl EnvelopeNumbers {
    /// Starts caching the last envelope number of a claimed run.
    pub(super) async fn track_run(&self, connection: &mut Connection, lease: Lease) -> Result<(), StatementError> {
        let last = load_last_number(connection, lease.run).await?;
        self.lock_numbers().exclusive.insert((lease.run, lease.epoch), Some(last));
        Ok(())
    }

    /// The number of the next envelope.
    pub(super) async fn next_number(&self, connection: &mut Connection, lease: Lease) -> Result<u32, StatementError> {
        let cached = {
            let numbers = self.lock_numbers();
            let exclusive = numbers.exclusive.get(&(lease.run, lease.epoch)).copied().flatten();
            exclusive.or_else(|| numbers.in_transaction.get(&lease.run).copied())
        };
        let last = match cached {
            Some(last) => last,
            None => load_last_number(connection, lease.run).await?,
        };
        Ok(last + 1)
    }

    /// Records the number of a new envelope as the last envelope number of the run.
    pub(super) fn record_number(&self, lease: Lease, envelope: u32) {
        let mut numbers = self.lock_numbers();
        numbers.in_transaction.insert(lease.run, envelope);
        if let Some(last) = numbers.exclusive.get_mut(&(lease.run, lease.epoch)) {
            *last = Some(envelope);
        }
    }

    /// Clears the numbers cached in the previous transaction, because another process might have added envelopes since.
    pub(super) fn clear_transaction_numbers(&self) {
        self.lock_numbers().in_transaction.clear();
    }

    /// Discards all cached numbers after a rollback.
    pub(super) fn invalidate(&self) {
        let mut numbers = self.lock_numbers();
        numbers.in_transaction.clear();
        numbers.exclusive.values_mut().for_each(|last| *last = None);
    }

    /// Stops caching the last envelope number of a run.
    pub(super) fn untrack_run(&self, lease: Lease) {
        self.lock_numbers().exclusive.remove(&(lease.run, lease.epoch));
    }

    fn lock_numbers(&self) -> MutexGuard<'_, LastEnvelopes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn load_last_number(connection: &mut Connection, run: RunId) -> Result<u32, StatementError> {
    let last = scalar("SELECT COALESCE(MAX(envelope), 0) FROM envelopes WHERE run = $1").bind(run.0);
    to_u32(last.fetch_one(connection).await?)
}
