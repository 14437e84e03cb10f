//! Queries about runs: creation, state, stop requests, figures, and the hosts of gateway profiles.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::{QueryBuilder, Row as _};

use super::dialect::{self, Adapter, Connection, Database, Record};
use super::envelopes::{self, EnvelopeNumbers};
use super::{
    Now, StatementError, capture_damage, parse_name, query, read_ledger, read_lossy, read_u32, scalar, serialize_name,
    unreadable_json,
};
use super::{blocks, consents, events, notifications};
use crate::encoding::Checksum;
use crate::rules::id_candidates;
use crate::{
    DamagedRun, Epoch, HostChange, Lease, LedgerError, NewRun, Run, RunEnd, RunFilter, RunId, RunProgress, RunUpdate,
    Sharding, SharedRun, StopKind, StopRequest, SuppressionPolicy,
};
use campaign_core::domain::{IdRange, LOOPBACK, Purpose};

/// The state of a run without frozen copies; it has never sent anything.
pub(super) const PREPARING: &str = "preparing";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InitialRunState {
    /// The copies of the run are not stored yet.
    Preparing,
    /// The run has no copies, and processes draw its rows. If a process ends, its open intents are in doubt.
    Shared,
}

/// Creates a run with the next number of its campaign, and reserves free identifiers for its rows.
pub(super) async fn insert_run(
    connection: &mut Connection,
    new: NewRun,
    state: InitialRunState,
) -> Result<Run, StatementError> {
    let number: i64 = scalar("SELECT COALESCE(MAX(number), 0) + 1 FROM runs WHERE campaign = $1")
        .bind(&new.campaign)
        .fetch_one(&mut *connection)
        .await?;
    // One identifier for each row from 0 on, and a spare one.
    let len = u64::from(new.last_row.get()) + 2;
    let began = Now(new.began_at.as_microsecond());
    let progress = match state {
        InitialRunState::Preparing => PREPARING.to_owned(),
        InitialRunState::Shared => serialize_name(&RunProgress::Finished)?,
    };
    let ids = find_free_ids(connection, began, new.random, len).await?;
    let key: i64 = scalar(
        "INSERT INTO runs (campaign, number, edition, gateway, account, endpoint, kind, live, round, recipients,
             first_id, ids, began_at, progress, shared, file, purpose, loopback, opt_outs)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
         RETURNING key",
    )
    .bind(&new.campaign)
    .bind(number)
    .bind(&new.edition)
    .bind(&new.gateway)
    .bind(&new.account)
    .bind(serialize_name(&new.endpoint)?)
    .bind(serialize_name(&new.kind)?)
    .bind(new.live)
    .bind(i64::from(new.round))
    .bind(to_signed(new.recipients))
    .bind(to_signed(ids.first))
    .bind(to_signed(ids.len))
    .bind(new.began_at.as_microsecond())
    .bind(progress)
    .bind(state == InitialRunState::Shared)
    .bind(&new.file)
    .bind(stored_purpose(new.suppression))
    .bind(new.suppression.loopback)
    .bind(to_signed(new.suppression.version))
    .fetch_one(&mut *connection)
    .await?;
    events::insert_excluded_rows(connection, RunId(key), &new.excluded).await?;
    if new.live && new.suppression.loopback {
        remember_loopback(connection, &new.gateway).await?;
    }
    let row = query("SELECT * FROM runs WHERE key = $1").bind(key).fetch_one(&mut *connection).await?;
    query("UPDATE runs SET sum = $1 WHERE key = $2")
        .bind(run_checksum(&row)?.finish())
        .bind(key)
        .execute(&mut *connection)
        .await?;
    load_run(connection, RunId(key)).await
}

/// The checksum over the columns of a run that never change.
fn run_checksum(row: &Record) -> Result<Checksum, StatementError> {
    let mut sum = Checksum::for_table("runs");
    for name in ["campaign", "edition", "gateway", "account", "endpoint", "kind"] {
        sum = sum.with_text(row.try_get(name)?);
    }
    for name in ["key", "number"] {
        sum = sum.with_number(row.try_get::<i64, _>(name)?);
    }
    sum = sum.with_number(row.try_get::<bool, _>("live")?);
    for name in ["round", "recipients", "first_id", "ids", "began_at"] {
        sum = sum.with_number(row.try_get::<i64, _>(name)?);
    }
    // Runs of earlier versions have no suppression policy.
    if let Some(purpose) = row.try_get::<Option<&str>, _>("purpose")? {
        sum = sum
            .with_text(purpose)
            .with_number(row.try_get::<bool, _>("loopback")?)
            .with_number(row.try_get::<i64, _>("opt_outs")?);
    }
    Ok(sum)
}

/// Finds a range of identifiers that is free in this ledger.
pub(super) async fn find_free_ids(
    connection: &mut Connection,
    now: Now,
    random: u64,
    len: u64,
) -> Result<IdRange, StatementError> {
    for ids in id_candidates(now.0, random, len) {
        if are_ids_free(&mut *connection, ids).await? {
            return Ok(ids);
        }
    }
    Err(LedgerError::Unreadable("no identifiers are left".to_owned()).into())
}

/// Whether no run, retry order or block has reserved any of these identifiers.
pub(super) async fn are_ids_free(connection: &mut Connection, ids: IdRange) -> Result<bool, StatementError> {
    let existing: Option<i64> = scalar(
        "SELECT first_id FROM (SELECT first_id, ids FROM runs UNION ALL SELECT first_id, ids FROM orders) AS ranges
         WHERE first_id < $1 AND first_id + ids > $2 LIMIT 1",
    )
    .bind(to_signed(ids.first + ids.len))
    .bind(to_signed(ids.first))
    .fetch_optional(&mut *connection)
    .await?;
    Ok(existing.is_none() && !blocks::are_ids_used(connection, ids).await?)
}

/// Opens a prepared run, and ends the run that it replaces.
pub(super) async fn open_run(
    connection: &mut Connection,
    now: Now,
    run: RunId,
    replaced: Option<RunId>,
) -> Result<(), StatementError> {
    // An update without changes sets the state of a prepared run to open.
    update_run(connection, run, |_| {}).await?;
    match replaced {
        Some(replaced) => retire_run(connection, now, replaced).await,
        None => Ok(()),
    }
}

/// Ends a run as it is, because another run replaces it.
async fn retire_run(connection: &mut Connection, now: Now, run: RunId) -> Result<(), StatementError> {
    let at = timestamp_from_micros(now.0)?;
    update_run(&mut *connection, run, |run| run.mark_replaced(at)).await?;
    // Orders to send messages again are void now, so the rows have their earlier states.
    match events::has_events(&mut *connection, run).await? {
        true => envelopes::recount_ended_run(connection, run).await,
        false => Ok(()),
    }
}

/// Ends a run for the holder of the lease, and queues the notifications about the end.
pub(super) async fn end_run(
    connection: &mut Connection,
    now: Now,
    numbers: EnvelopeNumbers,
    lease: Lease,
    end: RunEnd,
) -> Result<(), StatementError> {
    let mut new_notifications = Vec::new();
    update_run(&mut *connection, lease.run, |run| new_notifications = run.record_end(lease, end)).await?;
    notifications::queue_notifications(connection, now, new_notifications).await?;
    numbers.untrack_run(lease);
    Ok(())
}

/// Loads a run without its retry orders and blocks, within this transaction.
pub(super) async fn load_run(connection: &mut Connection, key: RunId) -> Result<Run, StatementError> {
    run_from_record(&query("SELECT * FROM runs WHERE key = $1").bind(key.0).fetch_one(connection).await?)
}

/// Converts a record to a run.
pub(super) fn run_from_record(record: &Record) -> Result<Run, StatementError> {
    let progress = match record.try_get("progress")? {
        PREPARING => RunProgress::Open,
        progress => parse_name(progress)?,
    };
    build_run(record, progress)
}

/// Updates the mutable columns of a run. Every such update opens a prepared run.
pub(super) async fn update_run(
    connection: &mut Connection,
    key: RunId,
    change: impl FnOnce(&mut Run),
) -> Result<(), StatementError> {
    let mut run = load_run(&mut *connection, key).await?;
    change(&mut run);
    let (counts, parts) = run.counts.map_or((None, None), |(counts, parts)| (Some(counts), Some(to_signed(parts))));
    let counts = counts.map(|counts| serde_json::to_string(&counts).map_err(unreadable_json)).transpose()?;
    query(
        "UPDATE runs SET progress = $1, stopped = $2, stop = $3, signal = $4, counts = $5, parts = $6, results = $7,
             ended_at = $8, lag = $9, owner = $10, stop_requested = $11, receipts_counted = $12,
             purged_at = $13
         WHERE key = $14",
    )
    .bind(serialize_name(&run.progress)?)
    .bind(run.stop_reason)
    .bind(run.stop.map(StopKind::name))
    .bind(run.stop.and_then(StopKind::signal).map(i64::from))
    .bind(counts)
    .bind(parts)
    .bind(run.results)
    .bind(run.ended_at.map(Timestamp::as_microsecond))
    .bind(run.lag.map(|lag| i64::try_from(lag.as_micros()).unwrap_or(i64::MAX)))
    .bind(run.epoch.map(|epoch| epoch.0))
    .bind(run.stop_requested)
    .bind(to_signed(run.receipts_counted))
    .bind(run.purged_at.map(Timestamp::as_microsecond))
    .bind(key.0)
    .execute(connection)
    .await?;
    Ok(())
}

/// Applies an update to the record of a run or to stored data about its rows.
pub(super) async fn apply_update(
    connection: &mut Connection,
    now: Now,
    run: RunId,
    update: RunUpdate,
) -> Result<(), StatementError> {
    let statement = match update {
        RunUpdate::Retired => return retire_run(connection, now, run).await,
        RunUpdate::Stop(request) => return request_stop(connection, run, request).await,
        RunUpdate::Counts { counts, parts, receipts } => {
            return update_run(connection, run, move |run| run.set_counts(counts, parts, receipts)).await;
        }
        RunUpdate::Consents(blocks) => return consents::store_blocks(connection, run, &blocks).await,
        RunUpdate::Inquiries(inquiries) => return events::store_inquiries(connection, run, inquiries).await,
        RunUpdate::CampaignFile(file) => query("UPDATE runs SET file = $2 WHERE key = $1").bind(run.0).bind(file),
        RunUpdate::ResultsFile(file) => query("UPDATE runs SET results = $2 WHERE key = $1").bind(run.0).bind(file),
        RunUpdate::Proven => query("UPDATE runs SET proven = $2 WHERE key = $1").bind(run.0).bind(true),
        RunUpdate::RowsErased => query("UPDATE forgotten_rows SET waits = FALSE WHERE run = $1").bind(run.0),
        RunUpdate::Figures(figures) => query(
            "INSERT INTO figures (run, figures) VALUES ($1, $2)
             ON CONFLICT (run) DO UPDATE SET figures = excluded.figures",
        )
        .bind(run.0)
        .bind(figures),
    };
    statement.execute(connection).await?;
    Ok(())
}

/// Lists the opened runs that match, oldest first, with damaged records as errors in their place.
pub(super) async fn list_runs(
    reader: &mut Connection,
    filter: RunFilter,
) -> Result<Vec<Result<Run, DamagedRun>>, StatementError> {
    let rows = select_run_records(&mut *reader, filter).await?;
    let mut runs = Vec::with_capacity(rows.len());
    for row in rows.iter().rev() {
        let name = || format!("{}@{}", read_lossy(row, "campaign"), read_u32(row, "number").unwrap_or_default());
        let run = capture_damage(load_whole_run(&mut *reader, row).await)?;
        runs.push(run.map_err(|error| DamagedRun { name: name(), error }));
    }
    Ok(runs)
}

async fn select_run_records(reader: &mut Connection, filter: RunFilter) -> Result<Vec<Record>, StatementError> {
    let RunFilter { key, campaign, open, live, results, ids, uncounted, latest } = filter;
    let mut query = QueryBuilder::<Database>::new("SELECT * FROM runs WHERE progress <> ");
    query.push_bind(PREPARING);
    if let Some(key) = key {
        query.push(" AND key = ").push_bind(key.0);
    }
    if let Some(campaign) = campaign {
        query.push(" AND campaign = ").push_bind(campaign);
    }
    if open {
        query.push(" AND progress = ").push_bind(serialize_name(&RunProgress::Open)?);
    }
    if live {
        query.push(" AND live");
    }
    if uncounted {
        query.push(" AND receipts <> receipts_counted");
    }
    if let Some(results) = results {
        query.push(" AND results = ").push_bind(results);
    }
    if let Some(ids) = ids {
        let (first, end) = (to_signed(ids.first), to_signed(ids.first + ids.len));
        for (before, length) in [
            (" AND key IN (SELECT key FROM runs", "ids"),
            (" UNION ALL SELECT run FROM orders", "ids"),
            (" UNION ALL SELECT run FROM blocks", "last_row - first_row + 1"),
        ] {
            query.push(before).push(" WHERE first_id < ").push_bind(end);
            query.push(" AND first_id + ").push(length).push(" > ").push_bind(first);
        }
        // No block is longer than a run, so the index finds the few candidates.
        query.push(" AND first_id > ").push_bind(first.saturating_sub(i64::from(SharedRun::ROWS))).push(")");
    }
    query.push(" ORDER BY key DESC LIMIT ").push_bind(latest.map_or(i64::MAX, i64::from));
    Ok(query.build().persistent(dialect::CACHES_STATEMENTS).fetch_all(reader).await?)
}

/// Loads an opened run with its retry orders and blocks.
async fn load_whole_run(reader: &mut Connection, row: &Record) -> Result<Run, StatementError> {
    let mut run = build_run(row, parse_name(row.try_get("progress")?)?)?;
    if !run_checksum(row)?.matches(row.try_get("sum")?) {
        return Err(LedgerError::Damaged { what: format!("the record of run {}", run.name()) }.into());
    }
    run.orders = events::load_order_ids(&mut *reader, run.key).await?;
    if run.shared {
        run.blocks = blocks::load_block_ids(reader, run.key).await?;
    }
    Ok(run)
}

/// Builds a run from its record, without retry orders and blocks.
fn build_run(row: &Record, progress: RunProgress) -> Result<Run, StatementError> {
    let counts: Option<String> = row.try_get("counts")?;
    let parts: Option<i64> = row.try_get("parts")?;
    let counts = counts.map(|text| serde_json::from_str(&text).map_err(unreadable_json)).transpose()?;
    let ended_at: Option<i64> = row.try_get("ended_at")?;
    let epoch: Option<i64> = row.try_get("owner")?;
    let lag: Option<i64> = row.try_get("lag")?;
    let (stop, signal): (Option<&str>, Option<i64>) = (row.try_get("stop")?, row.try_get("signal")?);
    let signal = signal.and_then(|signal| u8::try_from(signal).ok());
    let mut run = Run {
        key: RunId(row.try_get("key")?),
        number: read_u32(row, "number")?,
        campaign: row.try_get("campaign")?,
        edition: row.try_get("edition")?,
        gateway: row.try_get("gateway")?,
        account: strip_profile_name(row.try_get("account")?, row.try_get("gateway")?).to_owned(),
        endpoint: parse_name(row.try_get("endpoint")?)?,
        kind: parse_name(row.try_get("kind")?)?,
        live: row.try_get("live")?,
        round: read_u32(row, "round")?,
        recipients: to_unsigned(row.try_get("recipients")?),
        suppression: read_suppression_policy(row)?,
        shared: row.try_get("shared")?,
        ids: IdRange { first: to_unsigned(row.try_get("first_id")?), len: to_unsigned(row.try_get("ids")?) },
        file: row.try_get("file")?,
        began_at: timestamp_from_micros(row.try_get("began_at")?)?,
        ended_at: ended_at.map(timestamp_from_micros).transpose()?,
        purged_at: row.try_get::<Option<i64>, _>("purged_at")?.map(timestamp_from_micros).transpose()?,
        progress,
        stop_reason: row.try_get("stopped")?,
        stop: stop.map(|name| parse_stop_kind(name, signal)).transpose()?,
        counts: counts.zip(parts.map(to_unsigned)),
        receipts: to_unsigned(row.try_get("receipts")?),
        receipts_counted: to_unsigned(row.try_get("receipts_counted")?),
        results: row.try_get("results")?,
        stop_requested: row.try_get("stop_requested")?,
        epoch: epoch.map(Epoch),
        lag: lag.map(|lag| Duration::from_micros(to_unsigned(lag))),
        orders: Vec::new(),
        blocks: Vec::new(),
        sharding: sharding_from_row(row)?,
    };
    run.skip_unsent();
    Ok(run)
}

/// The terms under which several workers send the run; `None` if the run is not sharded.
fn sharding_from_row(row: &Record) -> Result<Option<Sharding>, StatementError> {
    let (terms, id): (Option<String>, Option<i64>) = (row.try_get("terms")?, row.try_get("sharing")?);
    let (by, proven) = (Epoch(row.try_get::<Option<i64>, _>("shared_by")?.unwrap_or_default()), row.try_get("proven")?);
    Ok(terms.zip(id).map(|(terms, id)| Sharding { terms, id, by, proven }))
}

/// The value of the column `purpose` for service messages that must arrive.
pub(super) const MANDATORY: &str = "mandatory";

/// The value of the column `purpose` for a run with this policy.
fn stored_purpose(policy: SuppressionPolicy) -> &'static str {
    if policy.ignores_list() { MANDATORY } else { policy.purpose.name() }
}

/// The suppression policy of a run. Earlier versions stored none for campaigns and single messages.
fn read_suppression_policy(row: &Record) -> Result<SuppressionPolicy, StatementError> {
    let stored = row.try_get::<Option<&str>, _>("purpose")?;
    let purpose = match stored {
        Some(MANDATORY) => Purpose::Service,
        Some(name) => parse_name(name)?,
        None if row.try_get("shared")? => Purpose::Service,
        None => Purpose::Marketing,
    };
    Ok(SuppressionPolicy {
        purpose,
        mandatory: stored == Some(MANDATORY),
        loopback: row.try_get("loopback")?,
        version: to_unsigned(row.try_get("opt_outs")?),
    })
}

fn parse_stop_kind(name: &str, signal: Option<u8>) -> Result<StopKind, StatementError> {
    let unknown = || LedgerError::Unreadable(format!("unknown kind of stop `{name}`")).into();
    StopKind::from_name(name, signal).ok_or_else(unknown)
}

/// Removes the profile name from a stored account. Earlier versions stored the profile name before the host, so that
/// renaming a profile changed the account.
fn strip_profile_name<'a>(stored: &'a str, gateway: &str) -> &'a str {
    stored.strip_prefix(gateway).and_then(|rest| rest.strip_prefix('@')).unwrap_or(stored)
}

/// Converts microseconds to a timestamp.
pub(super) fn timestamp_from_micros(microseconds: i64) -> Result<Timestamp, StatementError> {
    Timestamp::from_microsecond(microseconds).map_err(|error| LedgerError::Unreadable(error.to_string()).into())
}

/// Converts an identifier or count to the signed integer that databases store. None is clamped, because all are below
/// 2^53.
pub(super) fn to_signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a stored identifier or count. Negative numbers become 0.
pub(super) fn to_unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Records a stop request, or withdraws it.
async fn request_stop(connection: &mut Connection, key: RunId, request: StopRequest) -> Result<(), StatementError> {
    let mut run = load_run(&mut *connection, key).await?;
    if run.apply_stop_request(request) {
        query("UPDATE runs SET stop_requested = $1, stop = $2, signal = $3, stopped = $4 WHERE key = $5")
            .bind(run.stop_requested)
            .bind(run.stop.map(StopKind::name))
            .bind(run.stop.and_then(StopKind::signal).map(i64::from))
            .bind(run.stop_reason)
            .bind(key.0)
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// Whether a stop was requested for the run.
pub(super) async fn is_stop_requested(reader: &mut Connection, run: RunId) -> Result<bool, StatementError> {
    let requested = scalar("SELECT stop_requested FROM runs WHERE key = $1").bind(run.0).fetch_one(reader).await?;
    Ok(requested)
}

/// Remembers a host for a profile, and returns the host that the profile has now.
pub(super) async fn remember_host(
    connection: &mut Connection,
    profile: String,
    host: String,
    change: HostChange,
) -> Result<String, StatementError> {
    let statement = match change {
        HostChange::IfUnknown => "INSERT INTO profiles (name, host) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
        HostChange::Replace => {
            "INSERT INTO profiles (name, host) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET host = excluded.host"
        }
    };
    query(statement).bind(&profile).bind(&host).execute(&mut *connection).await?;
    let known = scalar("SELECT host FROM profiles WHERE name = $1").bind(&profile).fetch_one(connection).await?;
    Ok(known)
}

/// The recorded host of a profile, if any.
pub(super) async fn find_host(reader: &mut Connection, profile: &str) -> Result<Option<String>, StatementError> {
    Ok(scalar("SELECT host FROM profiles WHERE name = $1").bind(profile).fetch_optional(reader).await?)
}

/// Records that a profile without a known host uses a gateway on loopback.
pub(super) async fn remember_loopback(connection: &mut Connection, profile: &str) -> Result<(), StatementError> {
    query("INSERT INTO profiles (name, host) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
        .bind(profile)
        .bind(LOOPBACK)
        .execute(connection)
        .await?;
    Ok(())
}

/// Loads the stored figures of a run. `None` if none are stored.
pub(super) async fn load_figures(ledger: &Adapter, run: RunId) -> Result<Option<Vec<u8>>, LedgerError> {
    if !ledger.supports_figures() {
        return Ok(None);
    }
    read_ledger!(ledger, select_figures, run)
}

async fn select_figures(reader: &mut Connection, run: RunId) -> Result<Option<Vec<u8>>, StatementError> {
    let figures = scalar("SELECT figures FROM figures WHERE run = $1").bind(run.0);
    Ok(figures.fetch_optional(reader).await?)
}
