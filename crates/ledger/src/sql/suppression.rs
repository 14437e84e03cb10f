//! The suppression list: opt-outs, their removal, and imported entries.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use roaring::RoaringTreemap;
use serde_json::json;
use sqlx::{Connection as _, Row as _};

use super::dialect::{Adapter, Connection, Record, json_elements};
use super::forgetting;
use super::opt_out_records::{OptOutColumns, end_from_row, opt_out_from_row, opt_out_to_json, repetition_from_row};
use super::runs::{to_signed, to_unsigned};
use super::{Now, StatementError, query, read_ledger, scalar};
use crate::rules::{NumberErasure, REPLACED_REASON};
use crate::{
    AdditionMode, Additions, LedgerError, LedgerFuture, NumberKey, NumberSet, OptIn, OptOut, OptOutFilter, OptOutPage,
    OptOutReach, OptOutRecord, OptOutRemoval, OptOutScope, RemovalTarget, Run, SentRow, SuppressedNumbers,
    SuppressionList, SuppressionPolicy, rejection_source, reply_source,
};
use campaign_core::domain::{Addressee, ForgottenNumber, Phone, Row};

/// The maximum number of entries in one statement.
pub(super) const ENTRIES_PER_STATEMENT: usize = 4_096;

/// Selects the version of the list.
const SELECT_VERSION: &str = "SELECT version FROM opt_out_list";

impl SuppressionList for Adapter {
    fn add_opt_outs(&self, opt_outs: Arc<[OptOut]>, mode: AdditionMode) -> LedgerFuture<'_, Additions> {
        if mode == AdditionMode::Preview {
            return Box::pin(async move { read_ledger!(self, count_additions, &opt_outs) });
        }
        if !self.supports_all_scopes() && opt_outs.iter().any(|opt_out| opt_out.scope == OptOutScope::All) {
            let path = self.place.to_string();
            return Box::pin(async move { Err(LedgerError::NotUpgraded { path }) });
        }
        Box::pin(self.write(move |connection, _| {
            let opt_outs = Arc::clone(&opt_outs);
            Box::pin(async move { insert_opt_outs(connection, &opt_outs).await })
        }))
    }

    fn remove_opt_outs(&self, removal: OptOutRemoval) -> LedgerFuture<'_, Vec<OptOut>> {
        let removal = Arc::new(removal);
        Box::pin(self.write(move |connection, now| {
            let removal = Arc::clone(&removal);
            Box::pin(async move { remove_opt_outs(connection, now, &removal).await })
        }))
    }

    fn load_suppressed_numbers<'a>(
        &'a self,
        campaign: &'a str,
        policy: SuppressionPolicy,
    ) -> LedgerFuture<'a, SuppressedNumbers> {
        Box::pin(async move { read_ledger!(self, load_opted_out_numbers, campaign, policy) })
    }

    fn list_opt_outs(&self, filter: OptOutFilter) -> LedgerFuture<'_, OptOutPage> {
        Box::pin(async move {
            match filter {
                OptOutFilter::Listed { behind, at_most } => read_ledger!(self, list_page, behind, at_most),
                OptOutFilter::OfNumber(phone) => read_ledger!(self, list_by_phone, phone),
                OptOutFilter::EndedOfNumber(phone) => read_ledger!(self, list_ended_entries, phone),
            }
        })
    }
}

impl Adapter {
    /// Converts a policy to a form that all processes using the tables can read. While processes of the previous
    /// version use the tables, mandatory policies are stored as service policies, for which that version ignores the
    /// list.
    pub(super) fn to_storable_policy(&self, policy: SuppressionPolicy) -> SuppressionPolicy {
        SuppressionPolicy { mandatory: policy.mandatory && self.supports_all_scopes(), ..policy }
    }
}

/// Replaces a number on the list with its hash, and adds the opt-out if it is missing.
pub(super) async fn hash_opt_out_number(
    connection: &mut Connection,
    forgotten: NumberErasure,
    mut opt_out: OptOut,
) -> Result<(), StatementError> {
    let rows = query("SELECT * FROM opt_outs WHERE phone = $1")
        .bind(to_signed(forgotten.phone.to_u64()))
        .fetch_all(&mut *connection)
        .await?;
    for row in &rows {
        let (mut known, mut end) = (OptOutColumns::from_row(row)?.to_opt_out()?, end_from_row(row)?);
        let mut repetition = repetition_from_row(row)?;
        [Some(&mut known), repetition.as_mut()]
            .into_iter()
            .flatten()
            .for_each(|known| forgotten.erase_from_opt_out(known));
        if let Some(end) = &mut end {
            forgotten.erase_from_opt_out_end(end);
        }
        let repetition = repetition.map(|repetition| opt_out_to_json(&repetition).to_string());
        let columns = OptOutColumns::from_opt_out(&known);
        let sum = match &end {
            None => columns.checksum(),
            Some(end) => columns.checksum_with_end(end.at.as_microsecond(), &end.by, &end.why),
        };
        let OptOutColumns { phone, reason, source, .. } = columns;
        query("UPDATE opt_outs SET phone = $1, reason = $2, source = $3, removed_why = $4, sum = $5 WHERE key = $6")
            .bind(phone)
            .bind(reason)
            .bind(source)
            .bind(end.map(|end| end.why).or(repetition))
            .bind(sum.finish())
            .bind(row.try_get::<i64, _>("key")?)
            .execute(&mut *connection)
            .await?;
    }
    opt_out.who = forgotten.addressee();
    insert_opt_outs(connection, &[opt_out]).await?;
    Ok(())
}

/// List entries whose numbers are only known as hashes.
struct HashedOptOuts {
    key: NumberKey,
    listed: HashSet<u64>,
}

impl HashedOptOuts {
    /// Loads the hashing key and the hashes on the list. `None` if no number was ever forgotten.
    async fn load_if_any(connection: &mut Connection) -> Result<Option<Self>, StatementError> {
        let Some(key) = forgetting::load_number_key(&mut *connection).await? else { return Ok(None) };
        let listed: Vec<i64> = scalar("SELECT DISTINCT phone FROM opt_outs WHERE phone >= $1")
            .bind(to_signed(ForgottenNumber::MIN))
            .fetch_all(connection)
            .await?;
        Ok(Some(Self { key, listed: listed.into_iter().map(to_unsigned).collect() }))
    }

    /// Converts a recipient to the form that the list stores: the number or its hash.
    fn resolve_addressee(&self, addressee: Addressee) -> Addressee {
        let hashed = addressee.phone().map(|phone| Addressee::Forgotten(self.key.hash_number(phone)));
        hashed.filter(|hashed| self.listed.contains(&hashed.to_u64())).unwrap_or(addressee)
    }
}

/// Converts the recipients of opt-outs to the form that the list stores.
pub(super) async fn resolve_opt_outs<'o>(
    connection: &mut Connection,
    opt_outs: &'o [OptOut],
) -> Result<Cow<'o, [OptOut]>, StatementError> {
    let mut listed = Cow::Borrowed(opt_outs);
    if let Some(forgotten) = HashedOptOuts::load_if_any(connection).await? {
        listed.to_mut().iter_mut().for_each(|opt_out| opt_out.who = forgotten.resolve_addressee(opt_out.who));
    }
    Ok(listed)
}

/// Adds opt-outs to the list. If any opt-out is new, the version of the list increases. The latest repetition of an
/// entry is kept with the entry.
pub(super) async fn insert_opt_outs(
    connection: &mut Connection,
    opt_outs: &[OptOut],
) -> Result<Additions, StatementError> {
    let listed = resolve_opt_outs(connection, opt_outs).await?;
    let opt_outs = &*listed;
    let replaced = remove_replaced_entries(connection, opt_outs).await?;
    let known = if opt_outs.len() <= Additions::MAX_LISTED {
        find_covered_entries(connection, opt_outs).await?
    } else {
        Vec::new()
    };
    let mut additions = Additions { known, ..Additions::default() };
    for chunk in opt_outs.chunks(ENTRIES_PER_STATEMENT) {
        let records: Vec<_> = chunk.iter().map(opt_out_to_json).collect();
        let added = query(concat!(
            "INSERT INTO opt_outs (phone, campaign, loopback, reason, source, at, sum)
                 SELECT CAST(value ->> 0 AS BIGINT), value ->> 1, CAST(value ->> 2 AS BIGINT), value ->> 3, value ->> 4,
                     CAST(value ->> 5 AS BIGINT), CAST(value ->> 6 AS BIGINT)
                 FROM ",
            json_elements!("$1"),
            " WHERE TRUE
                 ON CONFLICT (phone, campaign, loopback) WHERE removed_at IS NULL DO NOTHING",
        ))
        .bind(json!(records).to_string())
        .execute(&mut *connection)
        .await?
        .rows_affected();
        additions.added += added;
    }
    additions.existing = opt_outs.len() as u64 - additions.added;
    if additions.existing > 0 || !replaced.is_empty() {
        store_repetitions(connection, opt_outs.iter().chain(&replaced)).await?;
    }
    if additions.added > 0 {
        bump_version(connection).await?;
    }
    Ok(additions)
}

/// For each active entry that these opt-outs repeat, stores the latest repetition with the entry.
async fn store_repetitions<'o>(
    connection: &mut Connection,
    opt_outs: impl Iterator<Item = &'o OptOut>,
) -> Result<(), StatementError> {
    let mut latest: HashMap<OptOutKey<'o>, &'o OptOut> = HashMap::new();
    for opt_out in opt_outs {
        let last = latest.entry(opt_out_key(opt_out)).or_insert(opt_out);
        if opt_out.at > last.at {
            *last = opt_out;
        }
    }
    let repeated: Vec<&OptOut> = latest.values().copied().collect();
    for chunk in repeated.chunks(ENTRIES_PER_STATEMENT) {
        let mut changes = Vec::new();
        for record in &select_records(connection, chunk.iter().map(|opt_out| opt_out.who)).await? {
            let known = repetition_from_row(record)?.map_or_else(|| opt_out_from_row(record), Ok)?;
            // The list stores whole microseconds.
            let is_later = |new: &&&OptOut| new.at.as_microsecond() > known.at.as_microsecond();
            if let Some(later) = latest.get(&opt_out_key(&known)).filter(is_later) {
                changes.push(json!([record.try_get::<i64, _>("key")?, opt_out_to_json(later).to_string()]));
            }
        }
        if changes.is_empty() {
            continue;
        }
        query(concat!(
            "UPDATE opt_outs SET removed_why = value ->> 1 FROM ",
            json_elements!("$1"),
            " WHERE opt_outs.key = CAST(value ->> 0 AS BIGINT)",
        ))
        .bind(json!(changes).to_string())
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Drops opt-outs in replies that a later opt-in has already ended.
pub(super) async fn drop_ended_opt_outs(
    connection: &mut Connection,
    opt_outs: Vec<OptOut>,
) -> Result<Vec<OptOut>, StatementError> {
    let mut opt_outs = resolve_opt_outs(connection, &opt_outs).await?.into_owned();
    let phones: BTreeSet<u64> = opt_outs.iter().map(|opt_out| opt_out.who.to_u64()).collect();
    // No index covers ended entries, so one scan looks for all numbers.
    let rows = query(concat!(
        "SELECT * FROM opt_outs WHERE removed_at IS NOT NULL AND phone IN (SELECT CAST(value AS BIGINT) FROM ",
        json_elements!("$1"),
        ")",
    ))
    .bind(json!(phones).to_string())
    .fetch_all(connection)
    .await?;
    for row in &rows {
        let (known, end) = (opt_out_from_row(row)?, end_from_row(row)?);
        opt_outs.retain(|new| !end.as_ref().is_some_and(|end| end.revokes(&known, new)));
    }
    Ok(opt_outs)
}

/// The existing entries that these opt-outs would cover.
async fn find_covered_entries(connection: &mut Connection, opt_outs: &[OptOut]) -> Result<Vec<OptOut>, StatementError> {
    let mut known = find_by_addressees(connection, opt_outs.iter().map(|opt_out| opt_out.who)).await?;
    known.retain(|known| opt_outs.iter().any(|new| new.covers(known)));
    Ok(known)
}

/// Removes opt-outs from the list. The records stay and name the person who removed the opt-outs, and the reason.
async fn remove_opt_outs(
    connection: &mut Connection,
    now: Now,
    removal: &OptOutRemoval,
) -> Result<Vec<OptOut>, StatementError> {
    let OptOutRemoval { target, by, why } = removal;
    let selected = match target {
        RemovalTarget::Number { phone, scope } => select_by_number(connection, *phone, scope.as_ref()).await?,
        RemovalTarget::Entries(entries) => select_unchanged_entries(connection, entries).await?,
    };
    let mut removed = Vec::with_capacity(selected.len());
    for (record, opt_out) in selected {
        mark_removed(connection, now, &record, by, why.as_deref().unwrap_or("")).await?;
        removed.push(opt_out);
    }
    if !removed.is_empty() {
        bump_version(connection).await?;
    }
    Ok(removed)
}

/// Ends the opt-outs that these opt-ins revoke. The records stay and name the messages that the recipients answered.
/// If an opt-out was repeated after the opt-in, its latest repetition is put on the list.
pub(super) async fn end_opt_outs(connection: &mut Connection, mut opted_in: Vec<OptIn>) -> Result<(), StatementError> {
    if let Some(forgotten) = HashedOptOuts::load_if_any(connection).await? {
        opted_in.iter_mut().for_each(|opt_in| opt_in.who = forgotten.resolve_addressee(opt_in.who));
    }
    let (mut has_ended, mut later) = (false, Vec::new());
    for record in &select_records(connection, opted_in.iter().map(|opt_in| opt_in.who)).await? {
        let known = opt_out_from_row(record)?;
        if let Some(opt_in) = OptIn::find_latest(&opted_in, &known) {
            later.extend(repetition_from_row(record)?.filter(|repetition| !opt_in.ends(repetition)));
            let OptIn { reason, source, at, .. } = opt_in;
            mark_removed(connection, Now(at.as_microsecond()), record, source, reason).await?;
            has_ended = true;
        }
    }
    if !later.is_empty() {
        insert_opt_outs(connection, &later).await?;
    }
    if has_ended {
        bump_version(connection).await?;
    }
    Ok(())
}

/// Selects the active records of a number, for one scope or for all scopes.
async fn select_by_number(
    connection: &mut Connection,
    phone: Phone,
    scope: Option<&OptOutScope>,
) -> Result<Vec<(Record, OptOut)>, StatementError> {
    let addressee = resolve_phone(connection, phone).await?;
    let records = query("SELECT * FROM opt_outs WHERE removed_at IS NULL AND phone = $1 ORDER BY key")
        .bind(to_signed(addressee.to_u64()))
        .fetch_all(connection)
        .await?;
    let mut selected = read_records(records)?;
    selected.retain(|(_, opt_out)| scope.is_none_or(|scope| *scope == opt_out.scope));
    Ok(selected)
}

/// Selects the active records of these entries, except for entries that have changed.
async fn select_unchanged_entries(
    connection: &mut Connection,
    entries: &[OptOut],
) -> Result<Vec<(Record, OptOut)>, StatementError> {
    let mut selected = Vec::new();
    for chunk in entries.chunks(ENTRIES_PER_STATEMENT) {
        let by_key = index_by_key(chunk);
        let mut known = read_records(select_records(connection, chunk.iter().map(|entry| entry.who)).await?)?;
        known.retain(|(_, known)| by_key.get(&opt_out_key(known)).is_some_and(|entry| **entry == *known));
        selected.extend(known);
    }
    Ok(selected)
}

/// Reads the opt-outs of records, after checking their checksums.
fn read_records(records: Vec<Record>) -> Result<Vec<(Record, OptOut)>, StatementError> {
    let read = |record| opt_out_from_row(&record).map(|opt_out| (record, opt_out));
    records.into_iter().map(read).collect()
}

/// Marks a record as removed.
pub(super) async fn mark_removed(
    connection: &mut Connection,
    now: Now,
    record: &Record,
    by: &str,
    reason: &str,
) -> Result<(), StatementError> {
    let sum = OptOutColumns::from_row(record)?.checksum_with_end(now.0, by, reason).finish();
    query("UPDATE opt_outs SET removed_at = $1, removed_by = $2, removed_why = $3, sum = $4 WHERE key = $5")
        .bind(now.0)
        .bind(by)
        .bind(reason)
        .bind(sum)
        .bind(record.try_get::<i64, _>("key")?)
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn bump_version(connection: &mut Connection) -> Result<(), StatementError> {
    query("UPDATE opt_out_list SET version = version + 1").execute(connection).await?;
    Ok(())
}

/// The rows of an envelope whose recipients opted out of this run.
pub(super) async fn find_opted_out_rows(
    connection: &mut Connection,
    run: &Run,
    rows: &[SentRow],
) -> Result<Vec<Row>, StatementError> {
    let forgotten = HashedOptOuts::load_if_any(connection).await?;
    let as_listed =
        |sent: &SentRow| forgotten.as_ref().map_or(sent.to, |forgotten| forgotten.resolve_addressee(sent.to));
    let listed = find_by_addressees(connection, rows.iter().map(as_listed)).await?;
    let is_suppressed = |sent: &&SentRow| {
        let addressee = as_listed(sent);
        listed.iter().any(|opt_out| opt_out.who == addressee && run.is_suppressed_by(opt_out))
    };
    Ok(rows.iter().filter(is_suppressed).map(|sent| sent.row).collect())
}

/// The list entries of a number.
async fn list_by_phone(reader: &mut Connection, phone: Phone) -> Result<OptOutPage, StatementError> {
    let addressee = resolve_phone(reader, phone).await?;
    let opt_outs = find_by_addressees(reader, [addressee].into_iter()).await?.into_iter();
    Ok(OptOutPage { entries: opt_outs.map(listed_record).collect(), next: None })
}

/// Converts a number to the form that the list stores.
async fn resolve_phone(reader: &mut Connection, phone: Phone) -> Result<Addressee, StatementError> {
    let forgotten = HashedOptOuts::load_if_any(reader).await?;
    Ok(forgotten.map_or(phone.into(), |forgotten| forgotten.resolve_addressee(phone.into())))
}

fn listed_record(opt_out: OptOut) -> OptOutRecord {
    OptOutRecord { opt_out, end: None }
}

/// The numbers that opted out because of the run with this name.
pub(super) async fn load_numbers_opted_out_by_run(
    reader: &mut Connection,
    run: &str,
) -> Result<NumberSet, StatementError> {
    let phones: Vec<i64> =
        scalar("SELECT DISTINCT phone FROM opt_outs WHERE removed_at IS NULL AND (source = $1 OR source = $2)")
            .bind(reply_source(run))
            .bind(rejection_source(run))
            .fetch_all(&mut *reader)
            .await?;
    let numbers = phones.into_iter().map(to_unsigned).collect();
    Ok(NumberSet::new(numbers, forgetting::load_number_key(reader).await?))
}

/// The entries of a number that are no longer on the list, oldest first.
async fn list_ended_entries(reader: &mut Connection, phone: Phone) -> Result<OptOutPage, StatementError> {
    let addressee = resolve_phone(reader, phone).await?;
    let rows = query("SELECT * FROM opt_outs WHERE removed_at IS NOT NULL AND phone = $1 ORDER BY key")
        .bind(to_signed(addressee.to_u64()))
        .fetch_all(reader)
        .await?;
    let read = |row: &Record| Ok(OptOutRecord { end: end_from_row(row)?, opt_out: opt_out_from_row(row)? });
    let entries = rows.iter().map(read).collect::<Result<_, StatementError>>()?;
    Ok(OptOutPage { entries, next: None })
}

/// The list entries of these recipients.
async fn find_by_addressees(
    connection: &mut Connection,
    addressees: impl Iterator<Item = Addressee>,
) -> Result<Vec<OptOut>, StatementError> {
    select_records(connection, addressees).await?.iter().map(opt_out_from_row).collect()
}

/// Selects the active records of these recipients.
pub(super) async fn select_records(
    connection: &mut Connection,
    addressees: impl Iterator<Item = Addressee>,
) -> Result<Vec<Record>, StatementError> {
    let phones: BTreeSet<u64> = addressees.map(Addressee::to_u64).collect();
    let rows = query(concat!(
        "SELECT opt_outs.* FROM ",
        json_elements!("$1"),
        " CROSS JOIN opt_outs
             WHERE phone = CAST(value AS BIGINT) AND removed_at IS NULL",
    ))
    .bind(json!(phones).to_string())
    .fetch_all(connection)
    .await?;
    Ok(rows)
}

/// The numbers that a campaign must skip. Removed records are read as well, because a damaged record might be active.
async fn load_opted_out_numbers(
    reader: &mut Connection,
    campaign: &str,
    policy: SuppressionPolicy,
) -> Result<SuppressedNumbers, StatementError> {
    // One transaction, so that numbers and version belong together.
    let mut reader = reader.begin().await?;
    let (version, key) = (load_version(&mut reader).await?, forgetting::load_number_key(&mut reader).await?);
    let mut numbers = RoaringTreemap::new();
    let mut rows = query("SELECT * FROM opt_outs").fetch(&mut *reader);
    while let Some(row) = rows.try_next().await? {
        let (entry, removed): (_, Option<i64>) = (opt_out_from_row(&row)?, row.try_get("removed_at")?);
        if removed.is_none() && policy.applies_opt_out(campaign, &entry) {
            numbers.insert(entry.who.to_u64());
        }
    }
    drop(rows);
    Ok(SuppressedNumbers { version, numbers: NumberSet::new(numbers, key) })
}

async fn load_version(reader: &mut Connection) -> Result<u64, StatementError> {
    Ok(to_unsigned(scalar(SELECT_VERSION).fetch_one(reader).await?))
}

/// Lists up to `at_most` entries after the cursor, in the order in which they were added.
async fn list_page(reader: &mut Connection, cursor: Option<i64>, at_most: u32) -> Result<OptOutPage, StatementError> {
    let rows = query("SELECT * FROM opt_outs WHERE removed_at IS NULL AND key > $1 ORDER BY key LIMIT $2")
        .bind(cursor.unwrap_or(0))
        .bind(i64::from(at_most))
        .fetch_all(reader)
        .await?;
    let is_full = rows.len() >= at_most as usize;
    let next = rows.last().filter(|_| is_full).map(|row| row.try_get("key")).transpose()?;
    let entries = rows.iter().map(|row| opt_out_from_row(row).map(listed_record));
    Ok(OptOutPage { entries: entries.collect::<Result<_, _>>()?, next })
}

/// The coverage of an opt-out. Entries with the same key cover each other.
type OptOutKey<'a> = (u64, &'a OptOutScope, OptOutReach);

fn opt_out_key(opt_out: &OptOut) -> OptOutKey<'_> {
    (opt_out.who.to_u64(), &opt_out.scope, opt_out.reach)
}

fn index_by_key<'o>(opt_outs: impl IntoIterator<Item = &'o OptOut>) -> HashMap<OptOutKey<'o>, &'o OptOut> {
    opt_outs.into_iter().map(|opt_out| (opt_out_key(opt_out), opt_out)).collect()
}

/// Counts the new and the existing entries among these opt-outs, without adding any.
pub(super) async fn count_additions(reader: &mut Connection, opt_outs: &[OptOut]) -> Result<Additions, StatementError> {
    let opt_outs = resolve_opt_outs(reader, opt_outs).await?;
    let (mut additions, mut keys) = (Additions::default(), HashSet::new());
    for chunk in opt_outs.chunks(ENTRIES_PER_STATEMENT) {
        let known = find_by_addressees(reader, chunk.iter().map(|new| new.who)).await?;
        let known = index_by_key(&known);
        for new in chunk {
            let is_covered = known.get(&opt_out_key(new)).is_some_and(|known| !new.replaces(known));
            if is_covered || !keys.insert(opt_out_key(new)) {
                additions.existing += 1;
            } else {
                additions.added += 1;
            }
        }
    }
    Ok(additions)
}

/// Removes imported entries that these opt-outs replace. Returns the entries and their repetitions.
async fn remove_replaced_entries(
    connection: &mut Connection,
    opt_outs: &[OptOut],
) -> Result<Vec<OptOut>, StatementError> {
    let mut replaced = Vec::new();
    let not_imported: Vec<&OptOut> = opt_outs.iter().filter(|opt_out| !opt_out.is_imported()).collect();
    for chunk in not_imported.chunks(ENTRIES_PER_STATEMENT) {
        let by_key = index_by_key(chunk.iter().copied());
        for record in &select_records(connection, chunk.iter().map(|new| new.who)).await? {
            let known = opt_out_from_row(record)?;
            if let Some(new) = by_key.get(&opt_out_key(&known)).filter(|new| new.replaces(&known)) {
                mark_removed(connection, Now(new.at.as_microsecond()), record, &new.source, REPLACED_REASON).await?;
                replaced.extend(repetition_from_row(record)?);
                replaced.push(known);
            }
        }
    }
    Ok(replaced)
}
