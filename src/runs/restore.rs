//! A ledger that is put back from a backup: what may have happened since that was made counts against sending.
//!
//! Schedules are paused, who was forgotten since is forgotten again, and rows that were planned then are in doubt, as if
//! whoever had their runs had begun all of them: they are asked about, and nothing of them is sent again by itself. A
//! campaign that may have begun since then begins only with a yes to its number.

use jiff::Timestamp;
use roaring::RoaringTreemap;

use super::find::reload_run;
use super::forget::forget_person;
use super::forgotten::ForgottenNumbers;
use super::freeze::open_copies;
use super::launch::Session;
use super::{Adapters, Error, hold_campaign, list_campaign_runs};
use crate::delivery::{SendSelection, Snapshot, start_feed};
use crate::domain::{Phone, format_count, format_thousands};
use crate::failpoint;
use crate::gateway::EncodedOperation;
use crate::ledger::{
    Backup, Intent, Lease, Ledger, LedgerError, Permit, Run, RunEnd, RunFilter, RunProgress, SentRow, ShardWorker,
    StopKind,
};
use crate::report::{find_numbers, format_local_minute};

/// Rows that go into one intent.
const ROWS_PER_INTENT: usize = 500;
/// Those who are on the suppression list, a part at a time.
const OPT_OUTS_PER_PAGE: u32 = 10_000;

/// What became of what a restored ledger knew.
#[derive(Debug)]
pub struct RestoredLedger {
    /// When its backup was made.
    pub made_at: Timestamp,
    /// The runs that it has.
    pub runs: u64,
    /// Their rows.
    pub rows: u64,
    /// The unfinished runs, with the rows of each that are in doubt from now on.
    pub doubtful: Vec<(String, u64)>,
    /// The unfinished runs that ended as they were, and why: they cannot be gone on with.
    pub ended: Vec<(String, String)>,
    /// The schedules that are paused from now on.
    pub paused: Vec<String>,
    /// How many people were forgotten again.
    pub forgotten: u64,
    /// How many people are still known, since rows of theirs are in doubt, or a run of theirs cannot be read.
    pub not_forgotten: u64,
}

/// Why nothing is sent with a ledger that is a backup, or was restored from one.
#[derive(Debug, thiserror::Error)]
pub enum BackupRefusal {
    /// It is a backup.
    #[error(
        "the ledger `{ledger}` is a backup from {} that has not been restored; nothing was sent",
        format_local_minute(*.made_at)
    )]
    NotRestored {
        /// Where it is.
        ledger: String,
        /// When it was made.
        made_at: Timestamp,
    },
    /// These recipients might have the message already, and their number was not accepted.
    #[error("{}", describe_duplicate_risk(*.made_at, *.number, *.said))]
    MaySendTwice {
        /// When the backup was made.
        made_at: Timestamp,
        /// How many recipients.
        number: u64,
        /// How many were accepted.
        said: Option<u64>,
    },
}

fn describe_duplicate_risk(made_at: Timestamp, number: u64, said: Option<u64>) -> String {
    let recipients = format_count(number, "recipient");
    let accepted =
        said.map(|said| format!(", and you accepted duplicates for {}", format_thousands(said))).unwrap_or_default();
    format!(
        "the ledger was restored from a backup made at {} and does not contain messages sent since then: {recipients} \
         might get the message twice{accepted}; nothing was sent",
        format_local_minute(made_at)
    )
}

/// Has a ledger that was put back count from now on.
///
/// # Errors
/// When it is no backup, or cannot be read or written; then it stays one, and nothing is sent with it.
pub async fn accept_restored_ledger(adapters: &Adapters) -> Result<RestoredLedger, Error> {
    let ledger = adapters.ledger.as_ref();
    let made_at = ledger.load_backup().await?.map(|backup| backup.made_at).unwrap_or_else(adapters.clock);
    let mut told = RestoredLedger {
        made_at,
        runs: 0,
        rows: 0,
        doubtful: Vec::new(),
        ended: Vec::new(),
        paused: Vec::new(),
        forgotten: 0,
        not_forgotten: 0,
    };
    // Nothing of a damaged schedule fires anyway.
    for schedule in ledger.list_schedules().await?.into_iter().flatten().filter(|schedule| !schedule.paused) {
        if ledger.pause_schedule(&schedule.name).await? {
            told.paused.push(schedule.name);
        }
    }
    for phone in find_forgotten_numbers(adapters).await? {
        let forgotten = forget_person(adapters, phone).await?;
        match forgotten.doubtful.is_empty() && forgotten.unread.is_empty() {
            true => told.forgotten += 1,
            false => told.not_forgotten += 1,
        }
    }
    for run in ledger.list_runs(RunFilter::all()).await? {
        told.runs += 1;
        told.rows += run.recipients;
        if !run.live || run.shared || run.progress != RunProgress::Open {
            continue;
        }
        match record_doubt(adapters, &run, made_at).await {
            Ok(0) => {}
            Ok(rows) => told.doubtful.push((run.name(), rows)),
            // Nobody can go on with it either.
            Err(Error::Ledger(error @ LedgerError::CopiesUnreadable { .. })) => {
                ledger.retire_run(run.key).await?;
                told.ended.push((run.name(), error.reason()));
            }
            Err(Error::Input(reason)) => {
                ledger.retire_run(run.key).await?;
                told.ended.push((run.name(), reason));
            }
            Err(error) => return Err(error),
        }
    }
    failpoint::pass("restore.doubted");
    ledger.mark_restored().await?;
    Ok(told)
}

/// The numbers in the ledger that were forgotten from this state folder.
async fn find_forgotten_numbers(adapters: &Adapters) -> Result<Vec<Phone>, Error> {
    let unread = |error: std::io::Error| Error::Storage(format!("cannot read which numbers were forgotten: {error}"));
    let Some(forgotten) = ForgottenNumbers::read(&adapters.state).map_err(unread)? else { return Ok(Vec::new()) };
    let (ledger, mut found) = (adapters.ledger.as_ref(), RoaringTreemap::new());
    for run in ledger.list_runs(RunFilter::all()).await?.iter().filter(|run| run.purged_at.is_none()) {
        // What cannot be read of a run is told of once the person is looked for.
        if let Ok(numbers) = find_numbers(ledger, run, |phone| forgotten.contains(phone)).await {
            found |= numbers;
        }
    }
    let mut behind = None;
    loop {
        let listed = ledger.list_opt_outs(behind, OPT_OUTS_PER_PAGE).await?;
        let numbers = listed.entries.iter().filter_map(|opt_out| opt_out.who.phone());
        found.extend(numbers.filter(|phone| forgotten.contains(*phone)).map(Phone::to_u64));
        behind = listed.next;
        if behind.is_none() {
            return Ok(found.into_iter().filter_map(Phone::new).collect());
        }
    }
}

/// Takes all rows of a run that is sent in shares.
async fn take_all_shares(ledger: &dyn Ledger, run: &Run, lease: Lease) -> Result<Option<ShardWorker>, Error> {
    let Some(sharing) = &run.sharding else { return Ok(None) };
    ledger.shard_run(lease, sharing.terms.clone(), true).await?;
    let seat = ledger.register_worker(&reload_run(ledger, run.key).await?, "restore".to_owned()).await?;
    if let Some(seat) = &seat {
        ledger.draw_shard(seat, u32::MAX, true).await?;
    }
    Ok(seat)
}

/// Records for all rows of an unfinished run that are left that they may have been sent; tells how many.
async fn record_doubt(adapters: &Adapters, run: &Run, made_at: Timestamp) -> Result<u64, Error> {
    let ledger = adapters.ledger.as_ref();
    let held = hold_campaign(ledger, &run.campaign, &run.gateway, &run.account).await?;
    ledger.request_stop(run.key, false).await?;
    let lease = ledger.claim_run(&held, run.key).await?.lease;
    // Of a run that was sent in shares all of them are taken: nobody else has any.
    let seat = take_all_shares(ledger, run, lease).await?;
    let by = seat.as_ref().map_or(lease, |seat| seat.lease);
    let Snapshot { settled, digests, renumbered, .. } = Snapshot::load(ledger, run, false).await?;
    let (_, prepared) = open_copies(ledger, run).await?;
    let mut feed =
        start_feed(prepared, run.ids, SendSelection { settled, digests, renumbered, ..SendSelection::default() });
    let mut rows = 0;
    while let Some(operations) = feed.next_group().await {
        let operations = operations.map_err(|stop| Error::Input(stop.to_string()))?;
        for alike in operations.chunk_by(|one, other| one.kind == other.kind) {
            for some in alike.chunks(ROWS_PER_INTENT) {
                rows += record_intent(ledger, (run, by), some).await?;
            }
        }
    }
    let now = Snapshot::load(ledger, run, false).await?;
    let why = format!("the ledger was restored from a backup made at {}", made_at.strftime("%Y-%m-%d %H:%M UTC"));
    let end = RunEnd {
        progress: RunProgress::Open,
        stop: Some(StopKind::StopRequested),
        stop_reason: Some(why),
        counts: now.counts,
        parts: now.parts.billed,
        receipts: run.receipts,
        results: run.results.clone(),
        lag: run.lag,
        at: (adapters.clock)(),
        notifications: Vec::new(),
    };
    ledger.end_run(lease, end).await?;
    Ok(rows)
}

/// Records an intent for these operations, but for those whose people opted out; tells how many rows it has.
async fn record_intent(
    ledger: &dyn Ledger,
    (run, lease): (&Run, Lease),
    some: &[EncodedOperation],
) -> Result<u64, Error> {
    let sent = |operation: &EncodedOperation| SentRow {
        row: operation.row,
        to: operation.phone.into(),
        digest: operation.digest,
        chain: operation.chain,
    };
    let mut rows: Vec<SentRow> = some.iter().map(sent).collect();
    while let Some(kind) = some.first().map(|operation| operation.kind).filter(|_| !rows.is_empty()) {
        // It takes nothing of the account's pace: nothing leaves by it.
        let account = run.allowance(None);
        let intent =
            Intent { lease, kind, account, rows: rows.clone(), costs: Vec::new(), bounds: None, leave_by: None };
        match ledger.begin_envelope(intent).await? {
            Permit::Granted { .. } => return Ok(rows.len() as u64),
            Permit::OptedOut(out) | Permit::Capped(out) => rows.retain(|sent| !out.contains(&sent.row)),
            Permit::StopRequested | Permit::Lost | Permit::BoundExceeded { .. } | Permit::TooLate(_) => {
                return Err(Error::Taken { run: run.name() });
            }
        }
    }
    Ok(0)
}

/// Refuses to send with a backup: it is put back first.
pub(super) async fn refuse_backup(ledger: &dyn Ledger) -> Result<(), Error> {
    match ledger.load_backup().await? {
        Some(backup) if backup.restored_at.is_none() => Err(Error::Backup(BackupRefusal::NotRestored {
            ledger: ledger.describe_location(),
            made_at: backup.made_at,
        })),
        _ => Ok(()),
    }
}

impl Session {
    /// Refuses to send to so many people whom the ledger may know nothing of because it was put back from a backup, unless
    /// that number was said. What was begun since then it knows, and schedules that were resumed are somebody's word.
    pub(super) async fn refuse_restored(&self, number: u64) -> Result<(), Error> {
        let (ledger, request) = (self.adapters.ledger.as_ref(), &self.launch.request);
        if !self.inputs().destination.is_live() || request.occurrence.is_some() || number == 0 {
            return Ok(());
        }
        let Some(backup) = ledger.load_backup().await? else { return Ok(()) };
        let Some(restored_at) = backup.restored_at else { return Ok(()) };
        let runs = list_campaign_runs(ledger, self.inputs()).await?;
        let said = request.accept_duplicates;
        match said == Some(number) || runs.iter().any(|run| run.live && run.began_at > restored_at) {
            true => Ok(()),
            false => Err(Error::Backup(BackupRefusal::MaySendTwice { made_at: backup.made_at, number, said })),
        }
    }

    /// Refuses the same of rows of a run that the backup has: they may have been sent again since.
    pub(super) async fn refuse_restored_retry(&self, run: &Run, number: u64) -> Result<(), Error> {
        let said = self.launch.request.accept_duplicates;
        match self.adapters.ledger.load_backup().await? {
            Some(Backup { made_at, restored_at: Some(at) })
                if run.live && run.began_at <= at && said != Some(number) =>
            {
                Err(Error::Backup(BackupRefusal::MaySendTwice { made_at, number, said }))
            }
            _ => Ok(()),
        }
    }
}
