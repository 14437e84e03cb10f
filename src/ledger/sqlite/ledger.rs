//! The ledger in a SQLite file: opened, read and written.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::SqlitePool;
use tokio::sync::OnceCell;

use super::dialect::Reader;
use super::dialect::storage_error;
use super::pen::WriteConnection;
use super::sql::{CommitCallback, EnvelopeNumbers, Now, Writer};
use super::turn::Patience;
use super::{adoption, copies, opening, soundness};
use crate::ledger::mark::{self, MarkReading};
use crate::ledger::{LedgerError, StrayCopies};

/// The wall clock.
pub(super) type TimeSource = fn() -> Timestamp;

/// The ledger in a SQLite file.
pub struct SqliteLedger {
    /// Opened when something is first written.
    pub(super) writer: OnceCell<Writer>,
    pub(super) readers: SqlitePool,
    pub(super) path: Arc<Path>,
    /// The same, as people are told it.
    pub(super) place: Arc<str>,
    pub(super) clock: TimeSource,
    pub(super) patience: Patience,
    pub(super) on_commit: CommitCallback,
    /// The last envelope of each run that this process has.
    pub(super) numbers: EnvelopeNumbers,
    /// Why nothing may be sent with this ledger, nor anything be written to it.
    stale: Option<LedgerError>,
}

impl SqliteLedger {
    /// That the ledger at `path` was deleted, if its mark still knows of one; opening it would begin a new one.
    #[must_use]
    pub fn find_deletion(path: &Path) -> Option<LedgerError> {
        let place = mark::mark_path(path);
        (!path.exists() && place.exists()).then(|| not_newest_error(path, "the ledger was deleted".to_owned()))
    }

    /// The copies of runs that stand where the ledger at `path` would have them, while there is none.
    #[must_use]
    pub fn list_copies_without_ledger(path: &Path) -> Vec<StrayCopies> {
        copies::list_strays(path, &[])
    }

    /// Gives such copies another name, and tells it.
    ///
    /// # Errors
    /// When the folder cannot be renamed.
    pub fn rename_copies_without_ledger(path: &Path, run: &str) -> Result<String, LedgerError> {
        copies::rename_stray(path, run)
    }

    /// Opens the ledger at `path`, and creates it, readable by its owner alone, where there is none.
    ///
    /// # Errors
    /// When the file cannot be created, read or written, or belongs to a newer version.
    pub async fn open(path: &Path, clock: TimeSource) -> Result<Self, LedgerError> {
        // Before the ledger, so that another process that writes both meanwhile does not make it look old.
        let known = mark::read_mark(&mark::mark_path(path));
        opening::ensure_newest_schema(path, Patience::default()).await?;
        let readers = opening::open_readers(path).await?;
        let stale = check_mark(&readers, path, known).await?;
        let (place, writer, patience) = (Arc::from(path.display().to_string()), OnceCell::new(), Patience::default());
        let on_commit: CommitCallback = Arc::new(|_| {});
        let (path, numbers) = (Arc::from(path), EnvelopeNumbers::default());
        Ok(Self { writer, readers, path, place, clock, patience, on_commit, numbers, stale })
    }

    /// Whether it has a place for what projections make of runs: its tables are those of this version.
    pub(super) fn keeps_figures(&self) -> bool {
        true
    }

    /// Whether it has a column for the channels of pipelines.
    pub(super) fn keeps_chains(&self) -> bool {
        true
    }

    /// Whether it has a table for the `approval` rules of accounts.
    pub(super) fn keeps_approval_rules(&self) -> bool {
        true
    }

    /// Whether it has a table for single messages that were sent lately.
    pub(super) fn keeps_repeats(&self) -> bool {
        true
    }

    /// The same, which tells how long each commit took, with the wait for other processes.
    #[must_use]
    pub fn with_commit_callback(self, on_commit: CommitCallback) -> Self {
        Self { on_commit, ..self }
    }

    /// The same for a command that does not wait longer than this for a process that has the ledger and is stopped.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience: Patience { suspended: patience, ..self.patience }, ..self }
    }

    /// Opens the ledger at `path` as the one that counts from now on, whatever its mark says, because a person says so.
    ///
    /// Runs that it knows as unfinished end as they are: nobody can tell what was sent of them meanwhile. Tells why it
    /// would have been refused; nothing if it would not have been.
    ///
    /// # Errors
    /// As for [`SqliteLedger::open`], and when it is damaged.
    pub async fn open_accepted(path: &Path, clock: TimeSource) -> Result<(Self, Option<LedgerError>), LedgerError> {
        let (known, deleted) = (mark::read_mark(&mark::mark_path(path)), Self::find_deletion(path));
        let refused = Self::open(path, clock).await?;
        let Some(reason) = deleted.or_else(|| refused.stale.clone()) else { return Ok((refused, None)) };
        soundness::check_integrity(&refused.readers, path).await?;
        refused.close().await;
        adoption::adopt_ledger(path, &known, clock).await?;
        Ok((Self::open(path, clock).await?, Some(reason)))
    }

    /// Refuses a ledger that is not the one that was written last.
    ///
    /// # Errors
    /// When it is not.
    pub fn ensure_newest(&self) -> Result<(), LedgerError> {
        self.stale.clone().map_or(Ok(()), Err)
    }

    /// A file without its mark is refused.
    #[expect(clippy::unused_self, reason = "other databases may have no mark here")]
    pub(super) fn has_no_mark(&self) -> bool {
        false
    }

    /// Why what this ledger says is not to be believed, as far as a quick look tells; nothing if it is.
    pub async fn find_defect(&self) -> Option<LedgerError> {
        match self.ensure_newest() {
            Ok(()) => soundness::quick_check(&self.readers, &self.path).await.err(),
            Err(stale) => Some(stale),
        }
    }

    /// The folder that it is in, as people are told it.
    pub(super) fn place(&self) -> String {
        self.path.parent().unwrap_or(&self.path).display().to_string()
    }

    /// A file has no replicas.
    #[expect(clippy::unused_async, reason = "other databases have to look")]
    pub(super) async fn count_replicas(&self) -> Result<u64, LedgerError> {
        Ok(0)
    }

    /// Takes no more changes and waits until what was acknowledged is marked and the file is closed.
    pub async fn close(&self) {
        self.readers.close().await;
        if let Some(writer) = self.writer.get() {
            writer.close().await;
        }
    }

    /// A connection to read with.
    pub(super) async fn reader(&self) -> Result<Reader, LedgerError> {
        self.readers.acquire().await.map_err(|error| storage_error(&self.path, &error))
    }

    /// What writes.
    pub(super) async fn open_write_connection(&self) -> Result<WriteConnection, LedgerError> {
        opening::open_write_connection(&self.path, self.clock, self.patience).await
    }

    /// Refuses what leads to sending, unless this is the ledger that was written last and its file is sound.
    pub(super) async fn ensure_sendable(&self) -> Result<(), LedgerError> {
        self.ensure_newest()?;
        soundness::check_integrity(&self.readers, &self.path).await
    }

    pub(super) fn now(&self) -> Now {
        Now((self.clock)().as_microsecond())
    }
}

/// Why a ledger is not the one that was written last, by what is known of its mark.
async fn check_mark(
    readers: &SqlitePool,
    path: &Path,
    mut known: MarkReading,
) -> Result<Option<LedgerError>, LedgerError> {
    let current = async || {
        let mut reader = readers.acquire().await?;
        opening::load_mark(&mut reader).await
    };
    let mut now = current().await.map_err(|error| storage_error(path, &error))?;
    if known == MarkReading::Missing && now.find_mismatch(&known).is_some() {
        // Another process may have begun the ledger meanwhile; then its mark is there by now.
        known = mark::read_mark(&mark::mark_path(path));
        now = current().await.map_err(|error| storage_error(path, &error))?;
    }
    Ok(now.find_mismatch(&known).map(|reason| not_newest_error(path, reason)))
}

fn not_newest_error(path: &Path, reason: String) -> LedgerError {
    let mark = mark::mark_path(path).display().to_string();
    LedgerError::Outdated { path: path.display().to_string(), reason, mark }
}
