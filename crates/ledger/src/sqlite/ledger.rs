//! The SQLite ledger: opening, integrity checks, acceptance of an outdated file, and erasure of freed space.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use jiff::Timestamp;
use sqlx::{Connection as _, Row as _, SqlitePool};
use tokio::sync::OnceCell;

use super::copies;
use super::dialect::{Reader, storage_error};
use super::opening::{self, load_mark};
use super::sql::{CommitCallback, EnvelopeNumbers, Now, Writer};
use super::write_connection::{self, Patience, WriteConnection};
use crate::high_water_mark::{self, HighWaterMark, MarkReading};
use crate::{LedgerError, StrayCopies};
use campaign_core::private::{self, ExistingFile};

/// The wall clock.
pub(super) type TimeSource = fn() -> Timestamp;

/// A ledger in a SQLite file.
pub struct SqliteLedger {
    /// The writer task, started at the first write.
    pub(super) writer: OnceCell<Writer>,
    pub(super) readers: SqlitePool,
    pub(super) path: Arc<Path>,
    /// The path, for display in messages.
    pub(super) place: Arc<str>,
    pub(super) clock: TimeSource,
    pub(super) patience: Patience,
    pub(super) on_commit: CommitCallback,
    /// Cached last envelope numbers of the runs of this process.
    pub(super) numbers: EnvelopeNumbers,
    /// The reason why this ledger must not be used for sending or writing, if there is one.
    stale: Option<LedgerError>,
}

impl SqliteLedger {
    /// Returns an error if the ledger at `path` was deleted and only its high-water mark is left. Opening it would
    /// create an empty ledger.
    pub fn detect_deletion(path: &Path) -> Option<LedgerError> {
        let mark = high_water_mark::mark_path(path);
        (!path.exists() && mark.exists()).then(|| not_newest_error(path, "the ledger was deleted".to_owned()))
    }

    /// Whether the ledger at `path` was last written by an earlier version and would be upgraded when opened. Changes
    /// nothing.
    ///
    /// # Errors
    /// If the file cannot be read, or belongs to a newer version.
    pub async fn has_older_tables(path: &Path) -> Result<bool, LedgerError> {
        opening::has_older_tables(path).await
    }

    /// Lists the copies of runs that were left behind when the ledger at `path` was lost.
    pub fn list_copies_without_ledger(path: &Path) -> Vec<StrayCopies> {
        copies::list_copies_of_unknown_runs(path, &[])
    }

    /// Renames the leftover copies of a run and returns the new path.
    ///
    /// # Errors
    /// If the folder cannot be renamed.
    pub fn rename_copies_without_ledger(path: &Path, run: &str) -> Result<String, LedgerError> {
        copies::rename_stray_copies(path, run)
    }

    /// Opens the ledger at `path`, or creates it with access for its owner only.
    ///
    /// # Errors
    /// If the file cannot be created, read or written, or belongs to a newer version.
    pub async fn open(path: &Path, clock: TimeSource) -> Result<Self, LedgerError> {
        // The mark is read before the ledger, so that a concurrent commit does not make the ledger look older than its
        // mark.
        let known = high_water_mark::read_mark(&high_water_mark::mark_path(path));
        opening::ensure_newest_schema(path, Patience::default()).await?;
        let readers = opening::open_readers(path).await?;
        let stale = check_mark(&readers, path, known).await?;
        let (place, writer, patience) = (Arc::from(path.display().to_string()), OnceCell::new(), Patience::default());
        let on_commit: CommitCallback = Arc::new(|_| {});
        let (path, numbers) = (Arc::from(path), EnvelopeNumbers::default());
        Ok(Self { writer, readers, path, place, clock, patience, on_commit, numbers, stale })
    }

    /// Whether the tables can store the figures of runs.
    pub(super) fn supports_figures(&self) -> bool {
        true
    }

    /// Whether the tables have a column for the channels of pipelines.
    pub(super) fn supports_chains(&self) -> bool {
        true
    }

    /// Whether the tables include the `approval` rules of accounts.
    pub(super) fn supports_approval_rules(&self) -> bool {
        true
    }

    /// Whether the tables can store recent single messages.
    pub(super) fn supports_repeat_guard(&self) -> bool {
        true
    }

    /// Whether the tables can store evidence of consent.
    pub(super) fn supports_consents(&self) -> bool {
        true
    }

    /// Whether every process that uses the tables supports opt-outs from all messages.
    pub(super) fn supports_all_scopes(&self) -> bool {
        true
    }

    /// Sets a callback that receives the duration of each commit, including the wait for other processes.
    #[must_use]
    pub fn with_commit_callback(self, on_commit: CommitCallback) -> Self {
        Self { on_commit, ..self }
    }

    /// Limits the wait for a suspended process that uses the ledger.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience: Patience { suspended: patience, ..self.patience }, ..self }
    }

    /// Opens the ledger at `path` as the valid one because the operator accepts it, regardless of its mark.
    ///
    /// Unfinished live runs are ended, because more of their messages might have been sent under another ledger. Also
    /// returns the error with which the ledger would have been refused; `None` if it was valid already.
    ///
    /// # Errors
    /// As for [`SqliteLedger::open`], or if the ledger is damaged.
    pub async fn open_accepted(path: &Path, clock: TimeSource) -> Result<(Self, Option<LedgerError>), LedgerError> {
        let (known, deleted) =
            (high_water_mark::read_mark(&high_water_mark::mark_path(path)), Self::detect_deletion(path));
        let opened = Self::open(path, clock).await?;
        let Some(reason) = deleted.or_else(|| opened.stale.clone()) else { return Ok((opened, None)) };
        check_integrity(&opened.readers, path).await?;
        opened.close().await;
        adopt_ledger(path, &known, clock).await?;
        Ok((Self::open(path, clock).await?, Some(reason)))
    }

    /// Refuses an outdated ledger.
    ///
    /// # Errors
    /// If the ledger does not match its high-water mark.
    pub fn ensure_newest(&self) -> Result<(), LedgerError> {
        self.stale.clone().map_or(Ok(()), Err)
    }

    /// Always `false`: a ledger file without its high-water mark is refused when it is opened.
    #[expect(clippy::unused_self, reason = "other databases may have no mark here")]
    pub(super) fn has_no_mark(&self) -> bool {
        false
    }

    /// Returns why the content of this ledger is not reliable, using a quick check. `None` if no defect is found.
    pub async fn find_defect(&self) -> Option<LedgerError> {
        match self.ensure_newest() {
            Ok(()) => quick_check(&self.readers, &self.path).await.err(),
            Err(stale) => Some(stale),
        }
    }

    /// The folder of the ledger, for display.
    pub(super) fn location(&self) -> String {
        self.path.parent().unwrap_or(&self.path).display().to_string()
    }

    /// Always 0: a file has no replicas.
    #[expect(clippy::unused_async, reason = "other databases query it")]
    pub(super) async fn count_unconfirmed_replicas(&self) -> Result<u64, LedgerError> {
        Ok(0)
    }

    /// Stops accepting changes, and waits until the high-water mark covers all acknowledged changes and the file is
    /// closed.
    pub async fn close(&self) {
        self.readers.close().await;
        if let Some(writer) = self.writer.get() {
            writer.close().await;
        }
    }

    /// Acquires a read connection.
    pub(super) async fn reader(&self) -> Result<Reader, LedgerError> {
        self.readers.acquire().await.map_err(|error| storage_error(&self.path, &error))
    }

    pub(super) async fn open_write_connection(&self) -> Result<WriteConnection, LedgerError> {
        opening::open_write_connection(&self.path, self.clock, self.patience).await
    }

    /// Refuses to send unless this ledger is the newest and its file is sound.
    pub(super) async fn ensure_can_send(&self) -> Result<(), LedgerError> {
        self.ensure_newest()?;
        check_integrity(&self.readers, &self.path).await
    }

    pub(super) fn now(&self) -> Now {
        Now((self.clock)().as_microsecond())
    }
}

/// Compares the ledger with its high-water mark. If they do not match, returns the error with which to refuse the
/// ledger.
async fn check_mark(
    readers: &SqlitePool,
    path: &Path,
    mut known: MarkReading,
) -> Result<Option<LedgerError>, LedgerError> {
    let load_current = async || {
        let mut reader = readers.acquire().await?;
        opening::load_mark(&mut reader).await
    };
    let mut current = load_current().await.map_err(|error| storage_error(path, &error))?;
    if known == MarkReading::Missing && current.find_mismatch(&known).is_some() {
        // Another process might have created the ledger meanwhile; then its mark exists by now.
        known = high_water_mark::read_mark(&high_water_mark::mark_path(path));
        current = load_current().await.map_err(|error| storage_error(path, &error))?;
    }
    Ok(current.find_mismatch(&known).map(|reason| not_newest_error(path, reason)))
}

fn not_newest_error(path: &Path, reason: String) -> LedgerError {
    let mark = high_water_mark::mark_path(path).display().to_string();
    LedgerError::Outdated { path: path.display().to_string(), reason, mark }
}

/// Ends unfinished live runs, advances the ledger beyond its mark, and updates the mark.
///
/// The order matters: after an interruption the ledger is still refused, and the operator can repeat the command.
pub(super) async fn adopt_ledger(path: &Path, known: &MarkReading, clock: TimeSource) -> Result<(), LedgerError> {
    let path: Arc<Path> = path.into();
    let mut writer = opening::open_write_connection(&path, clock, Patience::default()).await?;
    let failed = |error: sqlx::Error| storage_error(&path, &error);
    write_connection::begin_write(&mut writer.connection, &path, Patience::default()).await?;
    sqlx::query("UPDATE runs SET progress = 'replaced', owner = NULL, ended_at = ? WHERE live AND progress = 'open'")
        .bind(clock().as_microsecond())
        .execute(&mut writer.connection)
        .await
        .map_err(failed)?;
    let current = load_mark(&mut writer.connection).await.map_err(failed)?;
    let accepted = HighWaterMark { id: current.id, generation: known.highest_generation().max(current.generation) + 1 };
    sqlx::query("UPDATE identity SET generation = ?")
        .bind(accepted.generation)
        .execute(&mut writer.connection)
        .await
        .map_err(failed)?;
    sqlx::query("COMMIT").execute(&mut writer.connection).await.map_err(failed)?;
    writer.mark.accept_mark(accepted).map_err(|error| LedgerError::from_mark(&path.display(), &error))?;
    writer.connection.close().await.map_err(failed)
}

/// SQLite's error code for exhausted memory.
const SQLITE_NOMEM: u32 = 7;
/// SQLite's error code for a damaged file.
const SQLITE_CORRUPT: u32 = 11;

/// Checks the whole file including indexes, which takes seconds with millions of rows.
///
/// An incomplete index would let rows be sent again, and the checksums of records do not detect that.
pub(super) async fn check_integrity(readers: &SqlitePool, path: &Path) -> Result<(), LedgerError> {
    interpret_check(sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(readers).await, path)
}

/// Checks the file, unless it was found sound and neither it nor its log has changed since then.
pub(super) async fn quick_check(readers: &SqlitePool, path: &Path) -> Result<(), LedgerError> {
    let (stamp, before) = (path.with_extension("checked"), fingerprint_files(path));
    if fs::read_to_string(&stamp).is_ok_and(|checked| checked == before) {
        return Ok(());
    }
    interpret_check(sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(readers).await, path)?;
    if fingerprint_files(path) == before {
        // If this fails, the next reader checks again.
        let written =
            private::open_file(&stamp, ExistingFile::Truncate).and_then(|mut file| file.write_all(before.as_bytes()));
        if let Err(error) = written {
            tracing::debug!("cannot write `{}`: {error}", stamp.display());
        }
    }
    Ok(())
}

fn interpret_check(answer: sqlx::Result<String>, path: &Path) -> Result<(), LedgerError> {
    let answer = answer.map_err(|error| storage_error(path, &error))?;
    match (answer.as_str(), parse_page_error(&answer)) {
        ("ok", _) => Ok(()),
        // Unreadable data might be intact, so this is not reported as damage.
        (_, Some(code)) if code != SQLITE_CORRUPT => {
            let reason = if code == SQLITE_NOMEM { "out of memory".to_owned() } else { answer };
            Err(LedgerError::from_storage(&path.display(), &reason))
        }
        (answer, _) => Err(LedgerError::DamagedFile { reason: answer.to_owned() }),
    }
}

/// The SQLite error code (sqlite.org/rescode.html) in the result of a failed page check.
fn parse_page_error(answer: &str) -> Option<u32> {
    let (_, code) = answer.rsplit_once("unable to get the page. error code=")?;
    code.trim().parse().ok()
}

/// The size and modification time of the ledger file and its log. An empty log counts as a missing one.
fn fingerprint_files(path: &Path) -> String {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let mut state = String::new();
    for file in [path.to_owned(), PathBuf::from(log)] {
        let known = fs::metadata(file).ok().filter(|file| file.len() > 0);
        let time = known.as_ref().and_then(|file| file.modified().ok()?.duration_since(UNIX_EPOCH).ok());
        let (size, time) = (known.map_or(0, |file| file.len()), time.map_or(0, |time| time.as_nanos()));
        // Writing to a string cannot fail.
        let _ = write!(state, "{size} {time} ");
    }
    state
}

/// The maximum time that an erasure waits for readers, because the log cannot be emptied while they read.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

impl SqliteLedger {
    /// Overwrites all freed space in the file and empties the log.
    pub(super) async fn overwrite_deleted_data(&self) -> Result<(), LedgerError> {
        if !self.is_free_space_overwritten().await? {
            // Earlier versions did not overwrite freed space.
            self.run_outside_transaction("VACUUM").await?;
            self.write(|connection, _| {
                Box::pin(async move {
                    sqlx::query("UPDATE forgetting SET swept = 1").execute(connection).await?;
                    Ok(())
                })
            })
            .await?;
        }
        let began = Instant::now();
        while self.run_outside_transaction("PRAGMA wal_checkpoint(TRUNCATE)").await? != 0 {
            if began.elapsed() > CHECKPOINT_TIMEOUT {
                let holder = "another process is reading the ledger, so its log cannot be emptied";
                return Err(LedgerError::from_lock_holder(&self.path.display(), holder));
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        Ok(())
    }

    /// Whether all freed space was overwritten.
    async fn is_free_space_overwritten(&self) -> Result<bool, LedgerError> {
        let swept = sqlx::query_scalar("SELECT swept FROM forgetting").fetch_optional(&self.readers).await;
        Ok(swept.map_err(|error| storage_error(&self.path, &error))?.unwrap_or(false))
    }

    /// Runs a statement that is not allowed in a transaction, and returns the first number of the result; 0 if there is
    /// no result.
    async fn run_outside_transaction(&self, statement: &'static str) -> Result<i64, LedgerError> {
        let mut connection = opening::connect_for_writing(&self.path, self.patience).await?;
        let answer = sqlx::query(statement).fetch_optional(&mut connection).await;
        let closed = connection.close().await;
        let answer = answer.map_err(|error| storage_error(&self.path, &error))?;
        closed.map_err(|error| storage_error(&self.path, &error))?;
        answer.map_or(Ok(0), |row| row.try_get(0).map_err(|error| storage_error(&self.path, &error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_file_is_not_reported_as_damaged() {
        let check = |report: &str| {
            interpret_check(Ok(report.to_owned()), Path::new("ledger.sqlite")).map_err(|error| error.to_string())
        };
        assert_eq!(check("ok"), Ok(()));
        let page = "*** in database main ***\nTree 29 page 29: unable to get the page. error code=";
        assert!(check(&format!("{page}7")).unwrap_err().contains("out of memory"));
        assert!(!check(&format!("{page}10")).unwrap_err().contains("damaged"));
        for damaged in
            [format!("{page}11"), "row 3 missing from index i".to_owned(), "*** in database main ***".to_owned()]
        {
            assert!(check(&damaged).unwrap_err().contains("damaged"), "{damaged}");
        }
    }
}
