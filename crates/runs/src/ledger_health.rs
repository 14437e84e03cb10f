//! Checks before a ledger is used for sending (damaged records, signs of a lost or older ledger, and backups), and the
//! acceptance of a restored ledger.
//!
//! After a restore, schedules are paused, and people forgotten since the backup are forgotten again. Rows that were
//! planned at the time of the backup are in doubt. They are reconciled, but never sent again automatically. A campaign
//! that might have begun since the backup begins only if the operator accepts possible duplicates and states its exact
//! number of recipients.

use std::path::{Path, PathBuf};
use std::{fs, io};

use jiff::{SignedDuration, Timestamp};
use roaring::RoaringTreemap;

use super::erasure::{ForgottenNumbers, forget_person};
use super::find::reload_run;
use super::launch::Session;
use super::resume::open_copies;
use super::{Adapters, Error, Inputs, RunEvent, RunObserver, list_campaign_runs, lock_campaign, run_blocking};
use campaign_core::domain::{Phone, format_count, format_thousands};
use campaign_core::failpoint;
use campaign_core::finding::Finding;
use campaign_engine::check::unfamiliar_ledger_finding;
use campaign_engine::delivery::{FrozenRun, SendSelection, Snapshot, start_feed};
use campaign_engine::report::{
    LossSign, RunView, find_numbers, find_stray_runs, find_unknown_results, format_local_minute, is_owned,
};
use campaign_gateway::EncodedOperation;
use campaign_ledger::{
    Backup, DamagedRecord, DamagedRun, EnvelopeReader, IntegrityReport, Intent, Lease, Ledger, LedgerError,
    NumberFilter, OptOutFilter, Permit, ReceiptReader, RecordKind, RowUpdate, Run, RunEnd, RunFilter, RunProgress,
    RunUpdate, ScheduleOrder, ScheduleUpdate, SentRow, ShardWorker, StopKind, StopRequest, StrayCopies,
    SuppressionPolicy, count_run_rows,
};

/// The result of checking a whole ledger.
#[derive(Debug, Default)]
pub struct CheckedLedger {
    /// The number of runs.
    pub runs: u64,
    /// The number of rows in these runs.
    pub rows: u64,
    /// Damaged or unreadable records.
    pub problems: Vec<LedgerProblem>,
}

/// A damaged or unreadable record in a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerProblem {
    /// The run that the record belongs to, if any.
    pub run: Option<String>,
    /// A description of the damage.
    pub what: String,
    /// The kind of record, if it belongs to no run.
    pub kind: Option<RecordKind>,
}

impl CheckedLedger {
    /// Adds a problem if this result is an error. Without a run, the problem concerns the whole ledger.
    fn note_result(&mut self, run: Option<&Run>, result: Result<(), LedgerError>) {
        if let Err(error) = result {
            self.add_problem(LedgerProblem { run: run.map(Run::name), what: error.describe_damage(), kind: None });
        }
    }

    fn add_problem(&mut self, problem: LedgerProblem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

/// Checks all parts of a ledger without writing anything.
///
/// The check covers the file with all indexes, each record of each run, the copies of runs, the lists, schedules,
/// occurrences, plans, approvals and notifications.
///
/// # Errors
/// If the check itself fails.
pub async fn check_ledger(ledger: &dyn Ledger) -> Result<CheckedLedger, Error> {
    let mut checked = CheckedLedger::default();
    let IntegrityReport { storage, records } = ledger.check_integrity().await;
    checked.note_result(None, storage);
    checked.note_result(None, ledger.load_suppressed_numbers("", SuppressionPolicy::default()).await.map(drop));
    match records {
        Ok(damaged) => damaged.into_iter().for_each(|DamagedRecord { what, kind }| {
            checked.add_problem(LedgerProblem { run: None, what, kind: Some(kind) })
        }),
        Err(error) => checked.note_result(None, Err(error)),
    }
    let runs = match ledger.list_stored_runs(RunFilter::all()).await {
        Ok(runs) => runs,
        Err(error) => {
            checked.note_result(None, Err(error));
            return Ok(checked);
        }
    };
    for stored in runs {
        checked.runs += 1;
        let run = match stored {
            Ok(run) => run,
            Err(DamagedRun { name, error }) => {
                checked.add_problem(LedgerProblem { run: Some(name), what: error.describe_damage(), kind: None });
                continue;
            }
        };
        checked.note_result(Some(&run), ledger.load_excluded_rows(run.key).await.map(drop));
        checked.note_result(Some(&run), ledger.load_events(run.key).await.map(drop));
        checked.note_result(Some(&run), check_receipts(ledger, &run).await);
        checked.note_result(Some(&run), ledger.load_numbers(NumberFilter::Sent(&[run.key])).await.map(drop));
        match check_records(ledger, &run).await {
            Ok(rows) => checked.rows += rows,
            Err(error) => checked.note_result(Some(&run), Err(error)),
        }
        if !run.shared && run.purged_at.is_none() {
            checked.note_result(Some(&run), check_copies(ledger, &run).await?);
        }
    }
    Ok(checked)
}

/// Reads the records about the rows and envelopes of a run to find damage. Returns the number of rows of the run.
async fn check_records(ledger: &dyn Ledger, run: &Run) -> Result<u64, LedgerError> {
    ledger.load_asked_rows(run.key).await?;
    let mut envelopes = EnvelopeReader::new(ledger, run.key);
    while let Some(envelope) = envelopes.next_envelope().await? {
        if envelope.is_damaged() {
            let (rows, number) = (format_count(envelope.rows.len() as u64, "row"), envelope.envelope);
            let what = format!("the recorded outcome of request {number} ({rows}, now in doubt)");
            return Err(LedgerError::Damaged { what });
        }
    }
    Ok(RunView::load(ledger, run.clone(), is_owned(ledger, run).await?).await?.run.recipients)
}

/// Reads all receipts of a run to find damage, which other commands miss when they use stored counts.
async fn check_receipts(ledger: &dyn Ledger, run: &Run) -> Result<(), LedgerError> {
    let mut receipts = ReceiptReader::new(ledger, run.key, run.last_row());
    while receipts.next_receipts().await?.is_some() {}
    Ok(())
}

/// Checks that the copies of a run can be loaded and that the copied list matches the frozen hash. The inner error
/// describes damage; the outer error means that the check itself failed.
async fn check_copies(ledger: &dyn Ledger, run: &Run) -> Result<Result<(), LedgerError>, Error> {
    let frozen = match FrozenRun::load(ledger, run).await {
        Ok(frozen) => frozen,
        Err(error) => return Ok(Err(error)),
    };
    run_blocking(move || match frozen.is_list_intact() {
        true => Ok(()),
        false => {
            let reason = "the stored list differs from the list that the run started with";
            Err(frozen.copies.unreadable_error(reason))
        }
    })
    .await
}

/// Refuses to use the ledger while copies or results outside it contradict it. Rehearsals are never refused.
///
/// # Errors
/// If there are signs of a lost ledger, or the ledger cannot be read.
pub async fn refuse_lost_ledger(ledger: &dyn Ledger, inputs: &Inputs) -> Result<(), Error> {
    refuse_loss_signs(find_loss_signs(ledger, inputs).await?, ledger.properties().location)
}

/// Refuses to send without a ledger if these stray copies, or the campaign's results, show that a ledger existed.
///
/// # Errors
/// If there are signs of sent messages.
pub(super) async fn refuse_stray_copies(copies: Vec<StrayCopies>, state: &Path, inputs: &Inputs) -> Result<(), Error> {
    match inputs.destination.is_live() {
        true => refuse_loss_signs(collect_loss_signs(copies, None, inputs).await?, state.display().to_string()),
        false => Ok(()),
    }
}

fn refuse_loss_signs(signs: Vec<LossSign>, ledger: String) -> Result<(), Error> {
    if signs.is_empty() { Ok(()) } else { Err(Error::LedgerLost { ledger, signs }) }
}

/// Renames the copies and results that contradict the ledger, because the operator accepts the ledger.
pub(super) async fn move_loss_signs_aside(
    ledger: &dyn Ledger,
    inputs: &Inputs,
    observer: &RunObserver,
) -> Result<(), Error> {
    for sign in find_loss_signs(ledger, inputs).await? {
        let aside = match &sign {
            LossSign::Copies { run, .. } => ledger.set_copies_aside(run).await.map_err(|error| error.reason()),
            LossSign::Results { path, .. } => {
                rename_results(path).map(|aside| aside.display().to_string()).map_err(|error| error.to_string())
            }
        };
        let aside = aside.map_err(|error| Error::Storage(format!("{sign}: {error}")))?;
        observer(RunEvent::PutAside { sign, aside });
    }
    Ok(())
}

async fn find_loss_signs(ledger: &dyn Ledger, inputs: &Inputs) -> Result<Vec<LossSign>, Error> {
    match inputs.destination.is_live() {
        true => collect_loss_signs(ledger.list_stray_copies().await?, Some(ledger), inputs).await,
        false => Ok(Vec::new()),
    }
}

async fn collect_loss_signs(
    copies: Vec<StrayCopies>,
    ledger: Option<&dyn Ledger>,
    inputs: &Inputs,
) -> Result<Vec<LossSign>, Error> {
    let mut signs = find_stray_runs(copies);
    signs.extend(find_unknown_results(ledger, &inputs.campaign.results_file()).await?);
    Ok(signs)
}

/// Renames a results file that contradicts the ledger, and returns the new path in the same folder.
fn rename_results(path: &Path) -> io::Result<PathBuf> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default();
    let build_path = |number: u32| path.with_file_name(format!("{stem}.old-{number}{extension}"));
    let aside = (1..).map(build_path).find(|aside| !aside.exists()).unwrap_or_default();
    fs::rename(path, &aside)?;
    Ok(aside)
}

/// The time for which an ended run is a sign that the ledger is in use. Snapshots of a database are usually kept for a
/// shorter time.
const RECENT_AGE: SignedDuration = SignedDuration::from_hours(24 * 90);

/// Returns a warning on a machine without a high-water mark if the ledger has recent live runs from other machines. A
/// command on this machine that changes the ledger creates the high-water mark, which ends the warning.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn find_unfamiliar_ledger_warning(
    ledger: &dyn Ledger,
    now: Timestamp,
) -> Result<Option<Finding>, LedgerError> {
    if !ledger.properties().lacks_high_water_mark {
        return Ok(None);
    }
    let live = ledger.list_stored_runs(RunFilter { live: true, ..RunFilter::all() }).await?;
    let recent: Vec<Run> = live.into_iter().flatten().filter(|run| is_sign_of_use(run, now)).collect();
    let place = ledger.properties().location;
    Ok(recent.last().map(|latest| {
        let latest = format!("{} of {}", latest.name(), latest.began_at.strftime("%Y-%m-%d %H:%M UTC"));
        unfamiliar_ledger_finding(&place, recent.len() as u64, &latest)
    }))
}

/// Whether a run sent to recipients and is unfinished or ended recently.
fn is_sign_of_use(run: &Run, now: Timestamp) -> bool {
    let reaches_people = !run.suppression.loopback && !run.is_shared_single_run();
    let is_recent = run.ended_at.is_none_or(|ended| now.duration_since(ended) <= RECENT_AGE);
    reaches_people && (run.progress == RunProgress::Open || is_recent)
}

/// The maximum number of rows of one intent.
const ROWS_PER_INTENT: usize = 500;
/// The number of opt-outs that are read at a time.
const OPT_OUTS_PER_PAGE: u32 = 10_000;

/// The result of restoring a ledger.
#[derive(Debug)]
pub struct RestoredLedger {
    /// The time of its backup.
    pub made_at: Timestamp,
    /// The number of runs.
    pub runs: u64,
    /// The number of rows in these runs.
    pub rows: u64,
    /// The number of runs whose copies of files and lists are missing, although they were not purged.
    pub without_copies: u64,
    /// The unfinished runs, with the number of rows that are now in doubt.
    pub doubtful: Vec<(String, u64)>,
    /// Unfinished runs that ended because they cannot be resumed, with the reasons.
    pub ended: Vec<(String, String)>,
    /// The schedules that are now paused.
    pub paused: Vec<String>,
    /// The number of people who were forgotten again.
    pub forgotten: u64,
    /// The number of people not forgotten yet, because rows are in doubt or a run cannot be read.
    pub not_forgotten: u64,
}

/// The reason a backup, or a ledger restored from one, sends nothing.
#[derive(Debug, thiserror::Error)]
pub enum BackupRefusal {
    /// The ledger is a backup that has not been restored.
    #[error(
        "the ledger `{ledger}` is a backup from {} that has not been restored; nothing was sent",
        format_local_minute(*.made_at)
    )]
    NotRestored {
        /// The path or address of the ledger.
        ledger: String,
        /// The time at which the backup was made.
        made_at: Timestamp,
    },
    /// These recipients might have the message already, and their number was not accepted.
    #[error("{}", describe_duplicate_risk(*.made_at, *.number, *.accepted))]
    MaySendTwice {
        /// The time of the backup.
        made_at: Timestamp,
        /// The number of these recipients.
        number: u64,
        /// The number that was accepted.
        accepted: Option<u64>,
    },
}

fn describe_duplicate_risk(made_at: Timestamp, number: u64, accepted_count: Option<u64>) -> String {
    let recipients = format_count(number, "recipient");
    let accepted = accepted_count
        .map(|count| format!(", but you accepted duplicates for {}", format_thousands(count)))
        .unwrap_or_default();
    format!(
        "the ledger was restored from a backup made at {} and does not contain messages sent since then: {recipients} \
         might get the message twice{accepted}; nothing was sent",
        format_local_minute(made_at)
    )
}

/// Accepts a restored ledger, so that messages can be sent with it. Pauses the active schedules, forgets recipients
/// again, and records that the remaining rows of unfinished runs might have been sent.
///
/// # Errors
/// If the ledger cannot be read or written. The ledger then remains a backup, with which nothing can be sent.
pub async fn accept_restored_ledger(adapters: &Adapters) -> Result<RestoredLedger, Error> {
    let ledger = adapters.ledger.as_ref();
    let made_at = ledger.load_risks().await?.backup.map_or_else(adapters.clock, |backup| backup.made_at);
    let mut restored = RestoredLedger {
        made_at,
        runs: 0,
        rows: 0,
        without_copies: 0,
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
        restored.rows += count_run_rows(ledger, &run).await.unwrap_or(run.recipients);
        let needs_copies = run.purged_at.is_none() && !run.shared;
        restored.without_copies += u64::from(needs_copies && ledger.load_copies(&run).await.is_err());
        if !run.live || run.shared || run.progress != RunProgress::Open {
            continue;
        }
        match record_doubt(adapters, &run, made_at).await {
            Ok(0) => {}
            Ok(rows) => restored.doubtful.push((run.name(), rows)),
            // Without readable copies of its inputs, a run can never be resumed, so it ends here.
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

/// Finds the phone numbers in the ledger that are recorded as forgotten in this state folder.
async fn find_forgotten_numbers(adapters: &Adapters) -> Result<Vec<Phone>, Error> {
    let unreadable_error =
        |error: std::io::Error| Error::Storage(format!("cannot read the record of forgotten numbers: {error}"));
    let Some(forgotten) = ForgottenNumbers::read(&adapters.state).map_err(unreadable_error)? else {
        return Ok(Vec::new());
    };
    let (ledger, mut found_numbers) = (adapters.ledger.as_ref(), RoaringTreemap::new());
    for run in ledger.list_runs(RunFilter::all()).await?.iter().filter(|run| run.purged_at.is_none()) {
        // Unreadable runs are skipped here, because a search for the person reports them.
        if let Ok(numbers) = find_numbers(ledger, run, |phone| forgotten.contains(phone)).await {
            found_numbers |= numbers;
        }
    }
    let mut behind = None;
    loop {
        let filter = OptOutFilter::Listed { behind, at_most: OPT_OUTS_PER_PAGE };
        let listed = ledger.list_opt_outs(filter).await?;
        let numbers = listed.entries.iter().filter_map(|record| record.opt_out.who.phone());
        found_numbers.extend(numbers.filter(|phone| forgotten.contains(*phone)).map(Phone::to_u64));
        behind = listed.next;
        if behind.is_none() {
            return Ok(found_numbers.into_iter().filter_map(Phone::new).collect());
        }
    }
}

/// Shards a shared run again and draws all of its rows for one worker. Returns `None` if the run is not shared.
async fn take_all_shards(ledger: &dyn Ledger, run: &Run, lease: Lease) -> Result<Option<ShardWorker>, Error> {
    let Some(sharing) = &run.sharding else { return Ok(None) };
    ledger.update_rows(lease, RowUpdate::Sharded { terms: sharing.terms.clone(), proven: true }).await?;
    let worker = ledger.register_worker(&reload_run(ledger, run.key).await?, "restore".to_owned()).await?;
    if let Some(worker) = &worker {
        ledger.draw_shard(worker, u32::MAX, true).await?;
    }
    Ok(worker)
}

/// Stops an unfinished run, and records that all of its remaining rows might have been sent. Returns the number of rows
/// that were recorded.
async fn record_doubt(adapters: &Adapters, run: &Run, made_at: Timestamp) -> Result<u64, Error> {
    let ledger = adapters.ledger.as_ref();
    let lock = lock_campaign(ledger, &run.campaign, &run.gateway, &run.account).await?;
    ledger.update_runs(vec![run.key], RunUpdate::Stop(StopRequest::Withdraw)).await?;
    let lease = ledger.claim_run(&lock, run.key).await?.lease;
    // No other process can send with a ledger that is not accepted yet, so this process can take all shards.
    let worker = take_all_shards(ledger, run, lease).await?;
    let row_lease = worker.as_ref().map_or(lease, |worker| worker.lease);
    let remaining = SendSelection::from_snapshot(&Snapshot::load(ledger, run, false).await?);
    let (_, compiled) = open_copies(ledger, run).await?;
    let mut feed = start_feed(compiled, run.ids, remaining);
    let mut rows = 0;
    while let Some(operations) = feed.next_group().await {
        let operations = operations.map_err(|stop| Error::Input(stop.to_string()))?;
        for same_kind in operations.chunk_by(|previous, next| previous.kind == next.kind) {
            for chunk in same_kind.chunks(ROWS_PER_INTENT) {
                rows += record_intent(ledger, run, row_lease, chunk).await?;
            }
        }
    }
    let snapshot = Snapshot::load(ledger, run, false).await?;
    let reason = format!("the ledger was restored from a backup made at {}", made_at.strftime("%Y-%m-%d %H:%M UTC"));
    let end = RunEnd {
        progress: RunProgress::Open,
        stop: Some(StopKind::StopRequested),
        stop_reason: Some(reason),
        counts: snapshot.counts,
        parts: snapshot.parts.billed,
        receipts: run.receipts,
        results: run.results.clone(),
        lag: run.lag,
        at: (adapters.clock)(),
        notifications: Vec::new(),
    };
    ledger.end_run(lease, end).await?;
    Ok(rows)
}

/// Records an intent for these operations, except for recipients who opted out, reached a cap or are outside the
/// allowed countries. Returns the number of rows that were recorded.
async fn record_intent(
    ledger: &dyn Ledger,
    run: &Run,
    lease: Lease,
    operations: &[EncodedOperation],
) -> Result<u64, Error> {
    let build_row = |operation: &EncodedOperation| SentRow {
        row: operation.row,
        to: operation.phone.into(),
        digest: operation.digest,
        chain: operation.chain,
    };
    let mut rows: Vec<SentRow> = operations.iter().map(build_row).collect();
    let Some(kind) = operations.first().map(|operation| operation.kind) else { return Ok(0) };
    while !rows.is_empty() {
        // Nothing is sent, so the account's rate is not used.
        let account = run.allowance(None);
        let intent =
            Intent { lease, kind, account, rows: rows.clone(), costs: Vec::new(), bounds: None, leave_by: None };
        match ledger.begin_envelope(intent).await? {
            Permit::Granted { .. } => return Ok(rows.len() as u64),
            Permit::OptedOut(excluded) | Permit::Capped(excluded) | Permit::OutsideCountries(excluded) => {
                rows.retain(|sent| !excluded.contains(&sent.row))
            }
            Permit::StopRequested | Permit::Lost | Permit::BoundExceeded { .. } | Permit::TooLate(_) => {
                return Err(Error::Taken { run: run.name() });
            }
        }
    }
    Ok(0)
}

/// Refuses to send with a backup that has not been accepted as restored.
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
    /// Refuses to send to this many recipients after a restore unless their count was accepted, because the ledger
    /// might lack messages to them. Scheduled runs are exempt, because a person resumed the schedule, and so are
    /// campaigns with a run that began after the restore.
    pub(super) async fn refuse_restored_ledger(&self, number: u64) -> Result<(), Error> {
        let (ledger, request) = (self.adapters.ledger.as_ref(), &self.launch.request);
        if !self.inputs().destination.is_live() || request.occurrence.is_some() || number == 0 {
            return Ok(());
        }
        let Some(backup) = ledger.load_risks().await?.backup else { return Ok(()) };
        let Some(restored_at) = backup.restored_at else { return Ok(()) };
        let runs = list_campaign_runs(ledger, self.inputs()).await?;
        let accepted = request.accept_duplicates;
        match accepted == Some(number) || runs.iter().any(|run| run.live && run.began_at > restored_at) {
            true => Ok(()),
            false => Err(Error::Backup(BackupRefusal::MaySendTwice { made_at: backup.made_at, number, accepted })),
        }
    }

    /// Refuses to retry this many rows of a restored run unless their count was accepted, because they might have been
    /// retried since the backup.
    pub(super) async fn refuse_restored_retry(&self, run: &Run, number: u64) -> Result<(), Error> {
        let accepted = self.launch.request.accept_duplicates;
        match self.adapters.ledger.load_risks().await?.backup {
            Some(Backup { made_at, restored_at: Some(at) })
                if run.live && run.began_at <= at && accepted != Some(number) =>
            {
                Err(Error::Backup(BackupRefusal::MaySendTwice { made_at, number, accepted }))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renamed_results_keep_their_extension_and_replace_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sale.csv");
        for (text, name) in [("first", "sale.old-1.csv"), ("second", "sale.old-2.csv")] {
            fs::write(&path, text).unwrap();
            let aside = rename_results(&path).unwrap();
            assert_eq!((aside.file_name().unwrap().to_str().unwrap(), path.exists()), (name, false));
            assert_eq!(fs::read_to_string(aside).unwrap(), text);
        }
    }
}
