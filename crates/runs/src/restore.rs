//! Restoring a ledger from a backup, and refusing to send with a backup.
//!
//! After a restore, schedules are paused, people forgotten since the backup are forgotten again, and rows that were
//! planned at the time of the backup are in doubt. They are reconciled, but never sent again automatically. A campaign
//! that might have begun since the backup begins only if the operator accepts possible duplicates for its number of
//! recipients.

use jiff::Timestamp;
use roaring::RoaringTreemap;

use super::erasure::{ForgottenNumbers, forget_person};
use super::find::reload_run;
use super::launch::Session;
use super::resume::open_copies;
use super::{Adapters, Error, list_campaign_runs, lock_campaign};
use campaign_core::domain::{Phone, format_count, format_thousands};
use campaign_core::failpoint;
use campaign_engine::delivery::{SendSelection, Snapshot, start_feed};
use campaign_engine::report::{find_numbers, format_local_minute};
use campaign_gateway::EncodedOperation;
use campaign_ledger::{
    Backup, Intent, Lease, Ledger, LedgerError, OptOutFilter, Permit, RowUpdate, Run, RunEnd, RunFilter, RunProgress,
    RunUpdate, ScheduleOrder, ScheduleUpdate, SentRow, ShardWorker, StopKind, StopRequest,
};

/// The rows of one intent.
const ROWS_PER_INTENT: usize = 500;
/// How many opt-outs are read at a time.
const OPT_OUTS_PER_PAGE: u32 = 10_000;

/// The result of restoring a ledger.
#[derive(Debug)]
pub struct RestoredLedger {
    /// The time of its backup.
    pub made_at: Timestamp,
    /// The number of runs.
    pub runs: u64,
    /// Their rows.
    pub rows: u64,
    /// The unfinished runs, with the number of rows that are now in doubt.
    pub doubtful: Vec<(String, u64)>,
    /// Unfinished runs that ended because they cannot be resumed, with the reasons.
    pub ended: Vec<(String, String)>,
    /// The schedules that are now paused.
    pub paused: Vec<String>,
    /// The number of persons who were forgotten again.
    pub forgotten: u64,
    /// The number of persons not forgotten yet, because rows are in doubt or a run cannot be read.
    pub not_forgotten: u64,
}

/// Why a backup, or a ledger restored from one, sends nothing.
#[derive(Debug, thiserror::Error)]
pub enum BackupRefusal {
    /// It is a backup.
    #[error(
        "the ledger `{ledger}` is a backup from {} that has not been restored; nothing was sent",
        format_local_minute(*.made_at)
    )]
    NotRestored {
        /// Its place.
        ledger: String,
        /// When it was made.
        made_at: Timestamp,
    },
    /// These recipients might have the message already, and their number was not accepted.
    #[error("{}", describe_duplicate_risk(*.made_at, *.number, *.said))]
    MaySendTwice {
        /// The time of the backup.
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
        said.map(|said| format!(", but you accepted duplicates for {}", format_thousands(said))).unwrap_or_default();
    format!(
        "the ledger was restored from a backup made at {} and does not contain messages sent since then: {recipients} \
         might get the message twice{accepted}; nothing was sent",
        format_local_minute(made_at)
    )
}

/// Accepts a restored ledger from now on.
///
/// # Errors
/// If it is not a backup, or cannot be read or written. Then it remains a backup and sends nothing.
pub async fn accept_restored_ledger(adapters: &Adapters) -> Result<RestoredLedger, Error> {
    let ledger = adapters.ledger.as_ref();
    let made_at = ledger.load_risks().await?.backup.map_or_else(adapters.clock, |backup| backup.made_at);
    let mut restored = RestoredLedger {
        made_at,
        runs: 0,
        rows: 0,
        doubtful: Vec::new(),
        ended: Vec::new(),
        paused: Vec::new(),
        forgotten: 0,
        not_forgotten: 0,
    };
    // A damaged schedule cannot fire, so it does not need to be paused.
    for schedule in ledger.list_schedules().await?.into_iter().flatten().filter(|schedule| !schedule.paused) {
        let (name, order) = (schedule.name.clone(), ScheduleOrder::Pause);
        if ledger.update_schedules(ScheduleUpdate::Order { name, order }).await? {
            restored.paused.push(schedule.name);
        }
    }
    for phone in find_forgotten_numbers(adapters).await? {
        let forgotten = forget_person(adapters, phone).await?;
        match forgotten.doubtful.is_empty() && forgotten.unread.is_empty() {
            true => restored.forgotten += 1,
            false => restored.not_forgotten += 1,
        }
    }
    for run in ledger.list_runs(RunFilter::all()).await? {
        restored.runs += 1;
        restored.rows += run.recipients;
        if !run.live || run.shared || run.progress != RunProgress::Open {
            continue;
        }
        match record_doubt(adapters, &run, made_at).await {
            Ok(0) => {}
            Ok(rows) => restored.doubtful.push((run.name(), rows)),
            // A run with unreadable copies cannot be resumed either.
            Err(Error::Ledger(error @ LedgerError::CopiesUnreadable { .. })) => {
                ledger.update_runs(vec![run.key], RunUpdate::Retired).await?;
                restored.ended.push((run.name(), error.reason()));
            }
            Err(Error::Input(reason)) => {
                ledger.update_runs(vec![run.key], RunUpdate::Retired).await?;
                restored.ended.push((run.name(), reason));
            }
            Err(error) => return Err(error),
        }
    }
    failpoint::pass("restore.doubted");
    ledger.mark_restored().await?;
    Ok(restored)
}

/// The numbers in the ledger that were forgotten in this state folder.
async fn find_forgotten_numbers(adapters: &Adapters) -> Result<Vec<Phone>, Error> {
    let unread =
        |error: std::io::Error| Error::Storage(format!("cannot read the record of forgotten numbers: {error}"));
    let Some(forgotten) = ForgottenNumbers::read(&adapters.state).map_err(unread)? else { return Ok(Vec::new()) };
    let (ledger, mut found) = (adapters.ledger.as_ref(), RoaringTreemap::new());
    for run in ledger.list_runs(RunFilter::all()).await?.iter().filter(|run| run.purged_at.is_none()) {
        // A search for the person reports unreadable runs.
        if let Ok(numbers) = find_numbers(ledger, run, |phone| forgotten.contains(phone)).await {
            found |= numbers;
        }
    }
    let mut behind = None;
    loop {
        let wanted = OptOutFilter::Listed { behind, at_most: OPT_OUTS_PER_PAGE };
        let listed = ledger.list_opt_outs(wanted).await?;
        let numbers = listed.entries.iter().filter_map(|record| record.opt_out.who.phone());
        found.extend(numbers.filter(|phone| forgotten.contains(*phone)).map(Phone::to_u64));
        behind = listed.next;
        if behind.is_none() {
            return Ok(found.into_iter().filter_map(Phone::new).collect());
        }
    }
}

/// Takes all rows of a shared run.
async fn take_all_shards(ledger: &dyn Ledger, run: &Run, lease: Lease) -> Result<Option<ShardWorker>, Error> {
    let Some(sharing) = &run.sharding else { return Ok(None) };
    ledger.update_rows(lease, RowUpdate::Sharded { terms: sharing.terms.clone(), proven: true }).await?;
    let worker = ledger.register_worker(&reload_run(ledger, run.key).await?, "restore".to_owned()).await?;
    if let Some(worker) = &worker {
        ledger.draw_shard(worker, u32::MAX, true).await?;
    }
    Ok(worker)
}

/// Records for all remaining rows of an unfinished run that they might have been sent. Returns their number.
async fn record_doubt(adapters: &Adapters, run: &Run, made_at: Timestamp) -> Result<u64, Error> {
    let ledger = adapters.ledger.as_ref();
    let lock = lock_campaign(ledger, &run.campaign, &run.gateway, &run.account).await?;
    ledger.update_runs(vec![run.key], RunUpdate::Stop(StopRequest::Withdraw)).await?;
    let lease = ledger.claim_run(&lock, run.key).await?.lease;
    // Takes all rows of a shared run, because no other process holds any.
    let worker = take_all_shards(ledger, run, lease).await?;
    let by = worker.as_ref().map_or(lease, |worker| worker.lease);
    let left = SendSelection::from_snapshot(&Snapshot::load(ledger, run, false).await?);
    let (_, compiled) = open_copies(ledger, run).await?;
    let mut feed = start_feed(compiled, run.ids, left);
    let mut rows = 0;
    while let Some(operations) = feed.next_group().await {
        let operations = operations.map_err(|stop| Error::Input(stop.to_string()))?;
        for alike in operations.chunk_by(|one, other| one.kind == other.kind) {
            for some in alike.chunks(ROWS_PER_INTENT) {
                rows += record_intent(ledger, run, by, some).await?;
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

/// Records an intent for these operations, except for recipients who opted out. Returns the number of rows.
async fn record_intent(ledger: &dyn Ledger, run: &Run, lease: Lease, some: &[EncodedOperation]) -> Result<u64, Error> {
    let sent = |operation: &EncodedOperation| SentRow {
        row: operation.row,
        to: operation.phone.into(),
        digest: operation.digest,
        chain: operation.chain,
    };
    let mut rows: Vec<SentRow> = some.iter().map(sent).collect();
    while let Some(kind) = some.first().map(|operation| operation.kind).filter(|_| !rows.is_empty()) {
        // Nothing is sent, so the account's rate is not used.
        let account = run.allowance(None);
        let intent =
            Intent { lease, kind, account, rows: rows.clone(), costs: Vec::new(), bounds: None, leave_by: None };
        match ledger.begin_envelope(intent).await? {
            Permit::Granted { .. } => return Ok(rows.len() as u64),
            Permit::OptedOut(out) | Permit::Capped(out) | Permit::OutsideCountries(out) => {
                rows.retain(|sent| !out.contains(&sent.row))
            }
            Permit::StopRequested | Permit::Lost | Permit::BoundExceeded { .. } | Permit::TooLate(_) => {
                return Err(Error::Taken { run: run.name() });
            }
        }
    }
    Ok(0)
}

/// Refuses to send with a backup that is not restored.
pub(super) async fn refuse_backup(ledger: &dyn Ledger) -> Result<(), Error> {
    match ledger.load_risks().await?.backup {
        Some(backup) if backup.restored_at.is_none() => Err(Error::Backup(BackupRefusal::NotRestored {
            ledger: ledger.properties().location,
            made_at: backup.made_at,
        })),
        _ => Ok(()),
    }
}

impl Session {
    /// Refuses to send to this many recipients after a restore, unless the number was accepted: the ledger might lack
    /// their messages. This does not apply once the campaign has a run that began after the restore, nor to schedules,
    /// which a person resumed.
    pub(super) async fn refuse_restored(&self, number: u64) -> Result<(), Error> {
        let (ledger, request) = (self.adapters.ledger.as_ref(), &self.launch.request);
        if !self.inputs().destination.is_live() || request.occurrence.is_some() || number == 0 {
            return Ok(());
        }
        let Some(backup) = ledger.load_risks().await?.backup else { return Ok(()) };
        let Some(restored_at) = backup.restored_at else { return Ok(()) };
        let runs = list_campaign_runs(ledger, self.inputs()).await?;
        let said = request.accept_duplicates;
        match said == Some(number) || runs.iter().any(|run| run.live && run.began_at > restored_at) {
            true => Ok(()),
            false => Err(Error::Backup(BackupRefusal::MaySendTwice { made_at: backup.made_at, number, said })),
        }
    }

    /// Refuses to retry this many rows of a run in the backup likewise: they might have been retried since.
    pub(super) async fn refuse_restored_retry(&self, run: &Run, number: u64) -> Result<(), Error> {
        let said = self.launch.request.accept_duplicates;
        match self.adapters.ledger.load_risks().await?.backup {
            Some(Backup { made_at, restored_at: Some(at) })
                if run.live && run.began_at <= at && said != Some(number) =>
            {
                Err(Error::Backup(BackupRefusal::MaySendTwice { made_at, number, said }))
            }
            _ => Ok(()),
        }
    }
}
