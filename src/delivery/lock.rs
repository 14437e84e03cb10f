//! The lock of a campaign on an account: one process sends it at a time.
//!
//! It is taken before the guard is computed and held to the end, so that two processes that start
//! the same campaign can never both find that nothing was sent yet.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::private::{self, Existing};

/// How long one look at a lock takes at most, and how many are waited for.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: u32 = 10;

/// A held lock; the system lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub struct RunLock(#[expect(dead_code, reason = "holding the file open is what holds the lock")] File);

impl RunLock {
    /// Takes the lock of the campaign on the account; nothing when another process has it.
    ///
    /// # Errors
    /// When the lock file cannot be created or locked.
    pub fn take(state: &Path, campaign: &str, account: &str) -> io::Result<Option<Self>> {
        let path = path(state, campaign, account);
        if let Some(folder) = path.parent() {
            private::folder(folder)?;
        }
        let file = private::file(&path, Existing::Kept)?;
        // Somebody may just be looking, which takes a moment; an owner stays.
        for _ in 0..LOOKS {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self(file))),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The name of the lock, which is a file's name on every system.
    pub(super) fn name(campaign: &str, account: &str) -> String {
        let safe =
            |character: char| if character.is_alphanumeric() || "-_".contains(character) { character } else { '_' };
        let account: String = account.chars().map(safe).collect();
        format!("{campaign}.{account}")
    }

    /// Whether some process sends the campaign on the account now. Looking disturbs nobody for longer than a moment.
    #[must_use]
    pub fn is_held(state: &Path, campaign: &str, account: &str) -> bool {
        let Ok(file) = File::open(path(state, campaign, account)) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

fn path(state: &Path, campaign: &str, account: &str) -> PathBuf {
    state.join("locks").join(RunLock::name(campaign, account))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_is_sent_by_one_process_at_a_time() {
        let state = tempfile::tempdir().unwrap();
        let take = || RunLock::take(state.path(), "sale", "main/1").unwrap();
        let held = || RunLock::is_held(state.path(), "sale", "main/1");
        assert!(!held());
        let lock = take();
        assert!(lock.is_some() && held() && take().is_none());
        assert!(RunLock::take(state.path(), "sale", "sandbox").unwrap().is_some(), "another account is another lock");
        drop(lock);
        assert!(!held() && take().is_some());
    }
}
