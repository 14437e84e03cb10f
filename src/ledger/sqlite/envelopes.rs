//! Queries about envelopes and the account's pace.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use jiff::Timestamp;
use roaring::RoaringTreemap;
use sqlx::sqlite::{SqliteExecutor, SqliteRow};
use sqlx::{Row as _, SqliteConnection, SqlitePool};

use super::checksum::Checksum;
use super::events;
use super::ledger::{Failure, Now};
use super::pack::{pack, pack_outcomes, unpack, unpack_outcomes};
use super::runs::{self, instant};
use crate::domain::{Outcome, Row};
use crate::ledger::rules::{Guard, doubt, merge, refusal, takes_slot};
use crate::ledger::{
    AccountPace, Activity, Allowance, Claim, EnvelopeRecord, EnvelopeSummary, Epoch, Intent, Lease, LedgerError,
    Permit, RowStates, RunId, SentRow, Settlement, Wait,
};

/// The envelopes of a run with numbers from one to another, whole.
///
/// What was recorded before envelopes had a kind of their own is of the kind of the run.
const WHOLE: &str = "SELECT envelopes.*, (SELECT kind FROM runs WHERE key = run) AS kind_of_run FROM envelopes
     WHERE run = ? AND envelope BETWEEN ? AND ? ORDER BY envelope";
/// Envelopes that are read at once.
const BLOCK: u32 = 256;

/// The last envelope of each run that this process has: nobody else adds any.
pub(super) type Numbers = Arc<Mutex<HashMap<(RunId, Epoch), u32>>>;

/// Takes a run; what whoever had it before had begun is in doubt from here on.
pub(super) async fn claim(
    connection: &mut SqliteConnection,
    now: Now,
    run: RunId,
    epoch: Epoch,
) -> Result<Claim, Failure> {
    runs::change(connection, run, |run| run.claim(epoch)).await?;
    let intents = sqlx::query("SELECT envelope, rows FROM envelopes WHERE run = ? AND settled_at IS NULL")
        .bind(run.0)
        .fetch_all(&mut *connection)
        .await?;
    for intent in &intents {
        let rows: Vec<SentRow> = unpack(intent.try_get("rows")?)?;
        let outcomes = Outcomes::new((run, intent.try_get("envelope")?), now, &doubt(rows.len()))?;
        outcomes.write(&mut *connection, None).await?;
    }
    Ok(Claim { lease: Lease { run, epoch }, doubtful: intents.len() })
}

/// Records an intent; the insertion itself checks the lease and the stop request, and looks at the account.
pub(super) async fn begin(
    connection: &mut SqliteConnection,
    now: Now,
    numbers: Numbers,
    intent: Intent,
) -> Result<Permit, Failure> {
    let Lease { run, epoch } = intent.lease;
    let envelope = next_number(connection, &numbers, intent.lease).await?;
    let rows = intent.rows.iter().map(|sent| sent.row);
    let first = rows.clone().min().unwrap_or(Row::HEADER);
    let last = rows.max().unwrap_or(Row::HEADER);
    let account = &intent.account;
    let packed = pack(&intent.rows)?;
    let kind = runs::word(&intent.kind)?;
    let head = Head { run: run.0, envelope, epoch: epoch.0, begun_at: now.0, kind: Some(&kind) };
    let inserted = sqlx::query(
        "INSERT INTO envelopes (run, envelope, owner, begun_at, first_row, last_row, rows, rows_sum, kind)
         SELECT key, ?, owner, ?, ?, ?, ?, ?, ? FROM runs WHERE key = ? AND owner = ? AND stop_requested = 0
         RETURNING (SELECT not_before FROM accounts WHERE name = ?)",
    )
    .bind(envelope)
    .bind(now.0)
    .bind(first.get())
    .bind(last.get())
    .bind(&packed)
    .bind(head.sum((first.get(), last.get()), &packed).finish())
    .bind(&kind)
    .bind(run.0)
    .bind(epoch.0)
    .bind(&*account.name)
    .fetch_optional(&mut *connection)
    .await?;
    let Some(inserted) = inserted else {
        let run = runs::read(connection, run).await?;
        return Ok(refusal(&run, intent.lease).unwrap_or(Permit::Lost));
    };
    keep_number(&numbers, intent.lease, envelope);
    let not_before: Option<i64> = inserted.try_get(0)?;
    let wait = match takes_slot(account, not_before.unwrap_or(0), now.0) {
        true => reserve(connection, now, account, u32::try_from(intent.rows.len()).unwrap_or(u32::MAX)).await?,
        false => Wait::NONE,
    };
    Ok(Permit::Granted { envelope, wait })
}

/// The number that the next envelope of a run has; it is looked up once for each taking of a run.
async fn next_number(
    connection: &mut SqliteConnection,
    numbers: &Numbers,
    Lease { run, epoch }: Lease,
) -> Result<u32, Failure> {
    let known = numbers.lock().unwrap_or_else(PoisonError::into_inner).get(&(run, epoch)).copied();
    let last = match known {
        Some(last) => last,
        None => {
            let last = sqlx::query_scalar("SELECT COALESCE(MAX(envelope), 0) FROM envelopes WHERE run = ?").bind(run.0);
            last.fetch_one(connection).await?
        }
    };
    Ok(last + 1)
}

fn keep_number(numbers: &Numbers, Lease { run, epoch }: Lease, last: u32) {
    numbers.lock().unwrap_or_else(PoisonError::into_inner).insert((run, epoch), last);
}

/// Takes room from the account's pace.
pub(super) async fn reserve(
    connection: &mut SqliteConnection,
    now: Now,
    account: &Allowance,
    count: u32,
) -> Result<Wait, Failure> {
    let before = pace(connection, &account.name).await?;
    let reservation = before.reserve(now.0, count, account.rate);
    if reservation.pace != before {
        store(connection, &account.name, reservation.pace).await?;
    }
    Ok(reservation.wait)
}

pub(super) async fn slow_down(
    connection: &mut SqliteConnection,
    now: Now,
    account: String,
    wait: Option<Duration>,
) -> Result<(), Failure> {
    let wait = wait.and_then(|wait| i64::try_from(wait.as_micros()).ok());
    let slowed = pace(connection, &account).await?.slowed(now.0, wait);
    store(connection, &account, slowed).await
}

async fn pace(connection: &mut SqliteConnection, account: &str) -> Result<AccountPace, Failure> {
    let row = sqlx::query("SELECT next_free, share, slowed_at, not_before, written_at FROM accounts WHERE name = ?")
        .bind(account)
        .fetch_optional(connection)
        .await?;
    let Some(row) = row else { return Ok(AccountPace::default()) };
    Ok(AccountPace {
        next_free: row.try_get(0)?,
        share: row.try_get(1)?,
        slowed_at: row.try_get(2)?,
        not_before: row.try_get(3)?,
        written_at: row.try_get(4)?,
    })
}

async fn store(connection: &mut SqliteConnection, account: &str, pace: AccountPace) -> Result<(), Failure> {
    sqlx::query(
        "INSERT OR REPLACE INTO accounts (name, next_free, share, slowed_at, not_before, written_at)
         VALUES (?, ?, ?, ?, ?, ?)",
    )
    .bind(account)
    .bind(pace.next_free)
    .bind(pace.share)
    .bind(pace.slowed_at)
    .bind(pace.not_before)
    .bind(pace.written_at)
    .execute(connection)
    .await?;
    Ok(())
}

/// What identifies the record of an intent.
struct Head<'a> {
    run: i64,
    envelope: u32,
    epoch: i64,
    begun_at: i64,
    /// Nothing in what was recorded before envelopes had a kind of their own.
    kind: Option<&'a str>,
}

impl Head<'_> {
    fn sum(&self, (first, last): (u32, u32), rows: &[u8]) -> Checksum {
        let Self { run, envelope, epoch, begun_at, kind } = *self;
        let sum = Checksum::of("envelopes.rows")
            .number(run)
            .number(envelope)
            .number(epoch)
            .number(begun_at)
            .number(first)
            .number(last)
            .bytes(rows);
        kind.into_iter().fold(sum, Checksum::text)
    }
}

/// What became of an envelope, ready to be written.
struct Outcomes {
    run: RunId,
    envelope: u32,
    settled_at: i64,
    packed: Vec<u8>,
}

impl Outcomes {
    fn new((run, envelope): (RunId, u32), now: Now, outcomes: &[Outcome]) -> Result<Self, LedgerError> {
        Ok(Self { run, envelope, settled_at: now.0, packed: pack_outcomes(outcomes)? })
    }

    fn sum(run: i64, envelope: u32, settled_at: i64, packed: &[u8]) -> Checksum {
        Checksum::of("envelopes.outcomes").number(run).number(envelope).number(settled_at).bytes(packed)
    }

    async fn write(&self, connection: &mut SqliteConnection, evidence: Option<String>) -> Result<(), Failure> {
        let Self { run, envelope, settled_at, packed } = self;
        sqlx::query(
            "UPDATE envelopes SET settled_at = ?, outcomes = ?, outcomes_sum = ?, evidence = COALESCE(?, evidence)
             WHERE run = ? AND envelope = ?",
        )
        .bind(settled_at)
        .bind(packed)
        .bind(Self::sum(run.0, *envelope, *settled_at, packed).finish())
        .bind(evidence)
        .bind(run.0)
        .bind(envelope)
        .execute(connection)
        .await?;
        Ok(())
    }
}

/// Records outcomes. Where the envelope fell into doubt meanwhile, what is proven now takes its place.
pub(super) async fn settle(connection: &mut SqliteConnection, now: Now, settlement: Settlement) -> Result<(), Failure> {
    let Settlement { run, envelope, outcomes, evidence } = settlement;
    let settled = Outcomes::new((run, envelope), now, &outcomes)?;
    let changed = sqlx::query(
        "UPDATE envelopes SET settled_at = ?, outcomes = ?, outcomes_sum = ?, evidence = ?
         WHERE run = ? AND envelope = ? AND settled_at IS NULL",
    )
    .bind(settled.settled_at)
    .bind(&settled.packed)
    .bind(Outcomes::sum(run.0, envelope, settled.settled_at, &settled.packed).finish())
    .bind(&evidence)
    .bind(run.0)
    .bind(envelope)
    .execute(&mut *connection)
    .await?
    .rows_affected();
    if changed > 0 {
        return Ok(());
    }
    let packed: Vec<u8> = sqlx::query_scalar("SELECT outcomes FROM envelopes WHERE run = ? AND envelope = ?")
        .bind(run.0)
        .bind(envelope)
        .fetch_one(&mut *connection)
        .await?;
    let merged = merge(unpack_outcomes(&packed)?, outcomes);
    Outcomes::new((run, envelope), now, &merged)?.write(&mut *connection, evidence).await?;
    if runs::read(&mut *connection, run).await?.counts.is_some() {
        recount(connection, run).await?;
    }
    Ok(())
}

/// Counts an ended run anew, envelope by envelope.
async fn recount(connection: &mut SqliteConnection, key: RunId) -> Result<(), Failure> {
    let run = runs::read(&mut *connection, key).await?;
    let left_out = runs::left_out(&mut *connection, key).await?;
    let events = events::read(&mut *connection, key).await?;
    let mut states = RowStates::new(Activity::of(run.progress, false), events.into());
    let mut next = 1;
    loop {
        let block = read(&mut *connection, key, next..=next.saturating_add(BLOCK)).await?;
        let Some(last) = block.last() else { break };
        next = last.envelope.saturating_add(1);
        block.iter().for_each(|envelope| states.add(envelope));
    }
    runs::change(connection, key, |run| run.recount(&states, &left_out)).await
}

pub(super) async fn summaries(readers: &SqlitePool, run: RunId) -> Result<Vec<EnvelopeSummary>, Failure> {
    let mut rows = sqlx::query("SELECT envelope, first_row, last_row FROM envelopes WHERE run = ? ORDER BY envelope")
        .bind(run.0)
        .fetch(readers);
    let mut summaries = Vec::new();
    while let Some(row) = rows.try_next().await? {
        summaries.push(EnvelopeSummary {
            envelope: row.try_get(0)?,
            first: Row::new(row.try_get(1)?),
            last: Row::new(row.try_get(2)?),
        });
    }
    Ok(summaries)
}

pub(super) async fn read(
    readers: impl SqliteExecutor<'_>,
    run: RunId,
    numbers: RangeInclusive<u32>,
) -> Result<Vec<EnvelopeRecord>, Failure> {
    let rows = sqlx::query(WHOLE).bind(run.0).bind(numbers.start()).bind(numbers.end()).fetch_all(readers).await?;
    rows.iter().map(record).collect()
}

/// The body of an envelope's answer, where one was kept.
pub(super) async fn evidence(readers: &SqlitePool, run: RunId, envelope: u32) -> Result<Option<String>, Failure> {
    let evidence: Option<Option<String>> =
        sqlx::query_scalar("SELECT evidence FROM envelopes WHERE run = ? AND envelope = ?")
            .bind(run.0)
            .bind(envelope)
            .fetch_optional(readers)
            .await?;
    Ok(evidence.flatten())
}

/// Why a row is in doubt whose outcome was recorded and is not as it was written.
const DAMAGED: &str = "the record of what became of it is damaged";

fn record(row: &SqliteRow) -> Result<EnvelopeRecord, Failure> {
    let head = Head {
        run: row.try_get("run")?,
        envelope: row.try_get("envelope")?,
        epoch: row.try_get("owner")?,
        begun_at: row.try_get("begun_at")?,
        kind: row.try_get("kind")?,
    };
    let packed: &[u8] = row.try_get("rows")?;
    let within = (row.try_get("first_row")?, row.try_get("last_row")?);
    if !head.sum(within, packed).agrees(row.try_get("rows_sum")?) {
        // Nobody knows any more whom it went to.
        return Err(LedgerError::Damaged { what: format!("the record of envelope {}", head.envelope) }.into());
    }
    let rows: Vec<SentRow> = unpack(packed)?;
    Ok(EnvelopeRecord {
        envelope: head.envelope,
        kind: runs::parse(head.kind.map_or_else(|| row.try_get("kind_of_run"), Ok)?)?,
        begun_at: instant(head.begun_at)?,
        settled: settled(row, &head, rows.len())?,
        rows,
    })
}

/// What became of an envelope's rows; nothing for an intent.
fn settled(row: &SqliteRow, head: &Head<'_>, rows: usize) -> Result<Option<(Timestamp, Vec<Outcome>)>, Failure> {
    let settled_at: Option<i64> = row.try_get("settled_at")?;
    let packed: Option<&[u8]> = row.try_get("outcomes")?;
    let sum: Option<i64> = row.try_get("outcomes_sum")?;
    let Some((at, packed)) = settled_at.zip(packed) else {
        // A checksum without what it is of: something was there.
        return Ok(if sum.is_some() { Some((instant(head.begun_at)?, damaged(rows))) } else { None });
    };
    if !Outcomes::sum(head.run, head.envelope, at, packed).agrees(sum) {
        return Ok(Some((instant(head.begun_at)?, damaged(rows))));
    }
    Ok(Some((instant(at)?, unpack_outcomes(packed)?)))
}

fn damaged(rows: usize) -> Vec<Outcome> {
    vec![Outcome::InDoubt { reason: DAMAGED.into() }; rows]
}

/// The numbers that have an operation in one of these runs.
pub(super) async fn numbers_sent_to(readers: &SqlitePool, runs: &[RunId]) -> Result<RoaringTreemap, Failure> {
    let mut numbers = RoaringTreemap::new();
    for run in runs {
        let mut guard = Guard::new(events::read(readers, *run).await?.into());
        let mut rows = sqlx::query(WHOLE).bind(run.0).bind(1).bind(u32::MAX).fetch(readers);
        while let Some(row) = rows.try_next().await? {
            guard.add(&record(&row)?);
        }
        numbers |= guard.numbers();
    }
    Ok(numbers)
}
