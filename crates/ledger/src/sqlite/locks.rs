//! Lock files next to the ledger. The operating system releases a lock when the process that holds it ends.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use super::dialect::Lock;
use super::ledger::SqliteLedger;
use super::sql::LockProof;
use crate::{Epoch, LedgerError, run};
use campaign_core::private::{self, ExistingFile};

/// The pause between attempts to take a lock.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// The maximum number of attempts to take a lock.
const MAX_ATTEMPTS: u32 = 10;

impl SqliteLedger {
    /// Locks a campaign on an account; `None` if another process holds the lock.
    pub(super) async fn try_lock_campaign(&self, campaign: &str, account: &str) -> Result<Option<Lock>, LedgerError> {
        let path = lock_path(&self.path, &run::lock_name(campaign, account));
        take_lock(&path).await.map_err(|error| lock_error(&path, &error))
    }

    /// Takes a lock if it is free now.
    pub(super) async fn try_lock(&self, name: &str) -> Result<Option<Lock>, LedgerError> {
        let path = lock_path(&self.path, name);
        try_take_lock(&path).map_err(|error| lock_error(&path, &error))
    }

    /// Whether any process holds a lock.
    pub(super) async fn is_locked(&self, name: &str) -> Result<bool, LedgerError> {
        let path = lock_path(&self.path, name);
        is_held(&path).map_err(|error| lock_error(&path, &error))
    }

    /// The time at which the lock was acquired; `None` if no process holds it.
    pub(super) async fn locked_since(&self, name: &str) -> Result<Option<Timestamp>, LedgerError> {
        let path = lock_path(&self.path, name);
        held_since(&path).map_err(|error| lock_error(&path, &error))
    }
}

impl SqliteLedger {
    /// Does nothing: leases need no lock here, because the system never gives a held lock to another process.
    #[expect(clippy::unused_self, reason = "other databases bind leases to locks")]
    pub(super) fn bind_lease(&self, _: Epoch, _: &str) {}

    /// Does nothing, because the leases of this ledger do not expire.
    #[expect(clippy::unused_async, reason = "other databases renew their leases")]
    pub(super) async fn renew_if_stale(&self, _: Epoch) -> Result<(), LedgerError> {
        Ok(())
    }

    /// Always an empty proof: held locks need none, because no other process can take them.
    #[expect(clippy::unused_self, reason = "the locks of other databases can expire")]
    pub(super) fn lock_proof(&self, _: Epoch, _: &[Lock]) -> LockProof {
        LockProof::new()
    }

    /// Always `true`: a lease lasts until the process that holds it ends.
    #[expect(clippy::unused_self, reason = "the leases of other databases expire")]
    pub(super) fn holds_lease(&self, _: Epoch) -> bool {
        true
    }
}

/// The file of a lock next to the ledger at `ledger`.
fn lock_path(ledger: &Path, name: &str) -> PathBuf {
    ledger.with_file_name("locks").join(name)
}

/// Takes a lock; `None` if another process holds the lock.
async fn take_lock(path: &Path) -> io::Result<Option<File>> {
    // Another process might be probing the lock, which takes a moment; an owner keeps it longer.
    for _ in 0..MAX_ATTEMPTS {
        if let Some(file) = try_take_lock(path)? {
            // The modification time tells other processes when the lock was taken. It cannot be set on another group
            // member's file, but changing the file updates it.
            let _ = file.set_modified(SystemTime::now()).or_else(|_| file.set_len(0));
            return Ok(Some(file));
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
    Ok(None)
}

/// Takes a lock if it is free now.
fn try_take_lock(path: &Path) -> io::Result<Option<File>> {
    if let Some(folder) = path.parent() {
        private::create_folder(folder)?;
    }
    let file = private::open_file(path, ExistingFile::Keep)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The error for a lock that cannot be taken or checked.
pub(super) fn lock_error(path: &Path, error: &io::Error) -> LedgerError {
    LedgerError::Storage { path: path.display().to_string(), reason: format!("it cannot be locked: {error}") }
}

/// The time at which the lock was acquired; `None` if no process holds it.
fn held_since(path: &Path) -> io::Result<Option<Timestamp>> {
    let taken_at = path.metadata().and_then(|lock| lock.modified()).ok();
    Ok(if is_held(path)? { taken_at.and_then(|at| Timestamp::try_from(at).ok()) } else { None })
}

/// Whether any process holds a lock. The check blocks other processes only for a moment.
///
/// If the lock cannot be checked, that is an error, because a process might hold it.
fn is_held(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Whether any process holds a lock next to the ledger at `ledger`.
pub(super) fn is_any_held(ledger: &Path) -> io::Result<bool> {
    let locks = match ledger.with_file_name("locks").read_dir() {
        Ok(locks) => locks,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    for lock in locks {
        if is_held(&lock?.path())? {
            return Ok(true);
        }
    }
    Ok(false)
}
