//! The single SQLite write connection, its turn to write, and the high-water mark that follows its commits.
//!
//! After the first failure, the connection writes nothing more. The state after a failed fsync is unknown, and a retry
//! on the same handle would hide the failure. If another process kept the turn too long, no transaction was begun, so
//! only the pending changes fail.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::dialect::storage_error;
use super::ledger::TimeSource;
use super::sql::Now;
use crate::LedgerError;
use crate::high_water_mark::{HighWaterMark, MarkFile};
use campaign_core::failpoint;

/// The write connection of the writer task.
pub(super) struct WriteConnection {
    pub(super) connection: SqliteConnection,
    pub(super) mark: MarkFile,
    pub(super) path: Arc<Path>,
    pub(super) clock: TimeSource,
    pub(super) patience: Patience,
}

impl WriteConnection {
    /// Begins a transaction once no other process holds the write lock.
    pub(super) async fn begin_transaction(&mut self) -> Result<(), LedgerError> {
        begin_write(&mut self.connection, &self.path, self.patience).await
    }

    /// The connection and the time of the next change.
    #[expect(clippy::unnecessary_wraps, reason = "other databases can be unreachable")]
    pub(super) fn connection_and_time(&mut self) -> Result<(&mut SqliteConnection, Now), LedgerError> {
        // The time is read within the transaction, so that times increase across processes.
        Ok((&mut self.connection, Now((self.clock)().as_microsecond())))
    }

    /// Increments the generation and commits.
    pub(super) async fn commit(&mut self) -> Result<HighWaterMark, LedgerError> {
        failpoint::pass("commit.before");
        let committed =
            increment_and_commit(&mut self.connection).await.map_err(|error| storage_error(&self.path, &error))?;
        failpoint::pass("commit.after");
        Ok(committed)
    }

    /// Rolls the transaction back. Returns whether it may be retried, which is never the case for a file.
    pub(super) async fn roll_back(&mut self) -> bool {
        // This fails if the transaction never began or the storage ended it.
        let _ = sqlx::query("ROLLBACK").execute(&mut self.connection).await;
        false
    }

    /// Whether nothing may be written after this failure. A damaged record is not fatal, because its transaction was
    /// rolled back completely.
    pub(super) fn is_fatal(error: &LedgerError) -> bool {
        !matches!(error, LedgerError::Busy { .. }) && !error.concerns_records()
    }

    /// Syncs the high-water mark, empties the log and closes the file.
    pub(super) async fn close(mut self) {
        if let Err(error) = self.mark.sync_slots() {
            tracing::warn!("cannot write the high-water mark of the ledger `{}`: {error}", self.path.display());
        }
        // The log is on the disk. SQLite detects a damaged page in the file but not at the end of the log, so the pages
        // are moved to the file. If a reader prevents that, the reader or the next process empties the log.
        let _ = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut self.connection).await;
        let _ = self.connection.close().await;
    }
}

/// Increments the generation within the transaction and commits, in one round trip to the connection's thread.
async fn increment_and_commit(connection: &mut SqliteConnection) -> sqlx::Result<HighWaterMark> {
    let statement = sqlx::query("UPDATE identity SET generation = generation + 1 RETURNING id, generation; COMMIT");
    // `fetch_one` would stop after the row and skip the commit.
    let rows = statement.fetch_all(connection).await?;
    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    Ok(HighWaterMark { id: row.try_get(0)?, generation: row.try_get(1)? })
}

/// The time that SQLite itself waits before it reports a busy file.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_millis(200);
/// The time before a warning is logged.
const WARN_AFTER: Duration = Duration::from_secs(2);

/// The time to wait for a process that holds the write lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// The limit for a running process.
    pub(super) working: Duration,
    /// The limit for a suspended process.
    pub(super) suspended: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { working: Duration::from_secs(60), suspended: Duration::from_secs(60) }
    }
}

/// Begins a write transaction once no other process holds the write lock.
pub(super) async fn begin_write(
    connection: &mut SqliteConnection,
    path: &Path,
    patience: Patience,
) -> Result<(), LedgerError> {
    let mut wait = TurnWait::new(path, patience);
    loop {
        match sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await {
            Ok(_) => return Ok(()),
            Err(error) if is_busy(&error) => wait.check_timeout()?,
            Err(error) => return Err(storage_error(path, &error)),
        }
    }
}

/// A wait for the process that holds the turn to write.
pub(super) struct TurnWait<'a> {
    path: &'a Path,
    patience: Patience,
    since: Instant,
    warned: bool,
}

impl<'a> TurnWait<'a> {
    /// Starts waiting for the write lock.
    pub(super) fn new(path: &'a Path, patience: Patience) -> Self {
        Self { path, patience, since: Instant::now(), warned: false }
    }

    /// Returns if another attempt is allowed, and warns once after a long wait.
    ///
    /// # Errors
    /// If the wait took too long; the error names the process that holds the write lock.
    pub(super) fn check_timeout(&mut self) -> Result<(), LedgerError> {
        let waited = self.since.elapsed();
        if waited < WARN_AFTER.min(self.patience.working).min(self.patience.suspended) {
            return Ok(());
        }
        let holder = find_write_holder(self.path);
        let is_suspended = holder.is_some_and(|holder| holder.suspended);
        if waited >= self.patience.working || is_suspended && waited >= self.patience.suspended {
            return Err(LedgerError::from_lock_holder(&self.path.display(), describe_holder(holder)));
        }
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!("waiting: {}", describe_holder(holder));
        }
        Ok(())
    }
}

/// Describes the process that holds the write lock.
fn describe_holder(holder: Option<WriteHolder>) -> String {
    match holder {
        Some(WriteHolder { process, suspended: true }) => format!(
            "process {process} is using the ledger and is suspended (resume it with `kill -CONT {process}`, or `fg` in \
             its terminal)"
        ),
        Some(WriteHolder { process, suspended: false }) => format!("process {process} is using the ledger"),
        None => "another process is using the ledger".to_owned(),
    }
}

/// SQLite's code for a file that another connection has locked.
const SQLITE_BUSY: u32 = 5;
/// SQLite's code for a write on a read-only connection.
const SQLITE_READONLY: u32 = 8;

/// Whether SQLite reports that another connection has locked the file.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    sqlite_code(error) == Some(SQLITE_BUSY)
}

/// Whether SQLite needed to write on a read-only connection.
pub(super) fn is_read_only(error: &sqlx::Error) -> bool {
    sqlite_code(error) == Some(SQLITE_READONLY)
}

/// The low byte of SQLite's error code (SQLite, "Result and Error Codes").
fn sqlite_code(error: &sqlx::Error) -> Option<u32> {
    Some(error.as_database_error()?.code()?.parse::<u32>().ok()? & 0xff)
}

/// The process that holds the turn to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteHolder {
    /// The process ID.
    pub(super) process: u32,
    /// Whether the process is suspended and therefore keeps the turn until it is resumed.
    pub(super) suspended: bool,
}

/// The byte of the ledger's `-shm` file that a writer locks (SQLite, "The WAL-Index Format", 2.3).
const WRITE_LOCK: u64 = 120;

/// Finds the process that holds the write lock of the ledger at `path`, if the system reports one.
#[cfg(target_os = "linux")]
pub(super) fn find_write_holder(path: &Path) -> Option<WriteHolder> {
    use std::os::unix::fs::MetadataExt as _;

    let mut shared = path.as_os_str().to_owned();
    shared.push("-shm");
    // The file is not opened, because closing it would release this process's own locks on it.
    let inode = std::fs::metadata(Path::new(&shared)).ok()?.ino();
    let process = find_lock_owner(&std::fs::read_to_string("/proc/locks").ok()?, inode)?;
    let suspended = std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| is_suspended(&stat));
    Some(WriteHolder { process, suspended })
}

/// Always `None`: other systems do not report which process holds the lock.
#[cfg(not(target_os = "linux"))]
pub(super) fn find_write_holder(_: &Path) -> Option<WriteHolder> {
    None
}

/// Finds the process that holds the write lock on this inode. Each line of `locks` looks like
/// `1: POSIX ADVISORY WRITE 4711 08:01:1234 120 120`.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux lists its locks"))]
fn find_lock_owner(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        // The lines of waiting processes do not match, because an arrow marks them.
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", process, file, first, last] = words.as_slice() else { return None };
        let is_same_file = file.rsplit(':').next()?.parse() == Ok(inode);
        let last = if *last == "EOF" { u64::MAX } else { last.parse().ok()? };
        let is_held = (first.parse::<u64>().ok()?..=last).contains(&WRITE_LOCK);
        if is_same_file && is_held { process.parse().ok() } else { None }
    })
}

/// Whether a process is suspended, according to its `/proc/N/stat`, such as `4711 (campaign) T …`. Names can contain
/// parentheses.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux reports it"))]
fn is_suspended(stat: &str) -> bool {
    stat.rsplit_once(')').is_some_and(|(_, after)| matches!(after.split_whitespace().next(), Some("T" | "t")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_lock_owner_is_found_in_proc_locks() {
        let locks = "\
1: FLOCK  ADVISORY  WRITE 99 fe:00:77 0 EOF
2: POSIX  ADVISORY  READ 12 fe:00:77 123 123
3: POSIX  ADVISORY  WRITE 13 fe:00:77 121 121
4: POSIX  ADVISORY  WRITE 14 fe:00:78 120 120
5: POSIX  ADVISORY  WRITE 4711 fe:00:77 120 120
5: -> POSIX  ADVISORY  WRITE 15 fe:00:77 120 120
6: POSIX  ADVISORY  WRITE 16 fe:00:79 0 EOF
";
        assert_eq!(find_lock_owner(locks, 77), Some(4711));
        assert_eq!(find_lock_owner(locks, 79), Some(16));
        assert_eq!(find_lock_owner(locks, 80), None);
        for (stat, stopped) in [("7 (campaign) T 1 7", true), ("7 (a) S) t 1", true), ("7 (T) S 1", false), ("", false)]
        {
            assert_eq!(is_suspended(stat), stopped, "{stat}");
        }
    }
}
