//! Locks: files in a folder beside the ledger, which the system lets go of when its process
//! ends, however it ends.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use super::dialect::Lock;
use super::ledger::SqliteLedger;
use super::sql::LockProof;
use crate::ledger::{Epoch, LedgerError, hold};
use crate::private::{self, ExistingFile};

/// How long one look at a lock takes at most, and how many are waited for.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
const MAX_ATTEMPTS: u32 = 10;

impl SqliteLedger {
    /// Takes a campaign on an account; nothing when another process has it.
    pub(super) async fn try_lock_campaign(&self, campaign: &str, account: &str) -> Result<Option<Lock>, LedgerError> {
        let place = lock_path(&self.path, &hold::lock_name(campaign, account));
        take_lock(&place).await.map_err(|error| lock_error(&place, &error))
    }

    /// Takes a lock if it is free at this moment.
    pub(super) async fn try_lock(&self, name: &str) -> Result<Option<Lock>, LedgerError> {
        let place = lock_path(&self.path, name);
        try_take_lock(&place).map_err(|error| lock_error(&place, &error))
    }

    /// Whether some process has a lock.
    pub(super) async fn is_locked(&self, name: &str) -> Result<bool, LedgerError> {
        let place = lock_path(&self.path, name);
        is_held(&place).map_err(|error| lock_error(&place, &error))
    }

    /// Since when some process has a lock; nothing where none has.
    pub(super) async fn locked_since(&self, name: &str) -> Result<Option<Timestamp>, LedgerError> {
        let place = lock_path(&self.path, name);
        held_since(&place).map_err(|error| lock_error(&place, &error))
    }
}

impl SqliteLedger {
    /// A right to rows goes by no lease: the system gives a lock to nobody else as long as its process is there.
    #[expect(clippy::unused_self, reason = "other databases keep it")]
    pub(super) fn bind_lease(&self, _: Epoch, _: &str) {}

    /// Nobody has to hear that this process is there.
    #[expect(clippy::unused_async, reason = "other databases have to")]
    pub(super) async fn renew_if_stale(&self, _: Epoch) -> Result<(), LedgerError> {
        Ok(())
    }

    /// Nothing has to be proven of locks that nobody else is given.
    #[expect(clippy::unused_self, reason = "other databases give them to others after a while")]
    pub(super) fn lock_proof(&self, _: Epoch, _: &[Lock]) -> LockProof {
        LockProof::new()
    }

    /// What was granted lasts.
    #[expect(clippy::unused_self, reason = "other databases grant for a while")]
    pub(super) fn holds_lease(&self, _: Epoch) -> bool {
        true
    }
}

/// The file of a lock, beside the ledger at `ledger`.
fn lock_path(ledger: &Path, name: &str) -> PathBuf {
    ledger.with_file_name("locks").join(name)
}

/// Takes the lock; nothing when another process has it.
async fn take_lock(place: &Path) -> io::Result<Option<File>> {
    // Somebody may just be looking, which takes a moment; an owner stays.
    for _ in 0..MAX_ATTEMPTS {
        if let Some(file) = try_take_lock(place)? {
            // Since when it is held; whoever finds it held is told.
            let _ = file.set_modified(SystemTime::now());
            return Ok(Some(file));
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
    Ok(None)
}

/// Takes the lock if it is free at this moment.
fn try_take_lock(place: &Path) -> io::Result<Option<File>> {
    if let Some(folder) = place.parent() {
        private::create_folder(folder)?;
    }
    let file = private::open_file(place, ExistingFile::Keep)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// That the lock cannot be taken or looked at.
pub(super) fn lock_error(place: &Path, error: &io::Error) -> LedgerError {
    LedgerError::Storage { path: place.display().to_string(), reason: format!("it cannot be locked: {error}") }
}

/// Since when some process has the lock; nothing where none has.
fn held_since(place: &Path) -> io::Result<Option<Timestamp>> {
    let taken = place.metadata().and_then(|lock| lock.modified()).ok();
    Ok(if is_held(place)? { taken.and_then(|at| Timestamp::try_from(at).ok()) } else { None })
}

/// Whether some process has the lock. Looking disturbs nobody for longer than a moment.
///
/// A lock that cannot be looked at may be held: that is an error, and no answer.
fn is_held(place: &Path) -> io::Result<bool> {
    let file = match File::open(place) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Whether some process has any of the locks beside the ledger at `ledger`.
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
