//! Whether the ledger's file is sound: looked at before anything is sent, and once per state of the files by readers.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sqlx::SqlitePool;

use super::writer::storage;
use crate::ledger::LedgerError;
use crate::private::{self, Existing};

/// Looks at all of the file, its indexes too; takes seconds with millions of rows.
///
/// An index that misses an envelope would have its rows sent again; no checksum of a record shows that.
pub(super) async fn check(readers: &SqlitePool, path: &Path) -> Result<(), LedgerError> {
    told(sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(readers).await, path)
}

/// Looks at the file, unless it is as it was when that was last done and nothing was found.
pub(super) async fn quick_check(readers: &SqlitePool, path: &Path) -> Result<(), LedgerError> {
    let (stamp, before) = (path.with_extension("checked"), state_of_files(path));
    if fs::read_to_string(&stamp).is_ok_and(|checked| checked == before) {
        return Ok(());
    }
    told(sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(readers).await, path)?;
    if state_of_files(path) == before {
        // Without it the next reader looks again; that is all.
        let written = private::file(&stamp, Existing::Emptied).and_then(|mut file| file.write_all(before.as_bytes()));
        if let Err(error) = written {
            tracing::debug!("cannot write `{}`: {error}", stamp.display());
        }
    }
    Ok(())
}

fn told(told: sqlx::Result<String>, path: &Path) -> Result<(), LedgerError> {
    match told.map_err(|error| storage(path, &error))?.as_str() {
        "ok" => Ok(()),
        told => Err(LedgerError::Damaged { what: format!("its file ({told})") }),
    }
}

/// Size and time of the ledger's file and of its log; a log that is empty is as good as none.
fn state_of_files(path: &Path) -> String {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let mut state = String::new();
    for file in [path.to_owned(), PathBuf::from(log)] {
        let known = fs::metadata(file).ok().filter(|file| file.len() > 0);
        let time = known.as_ref().and_then(|file| file.modified().ok()?.duration_since(UNIX_EPOCH).ok());
        let (size, time) = (known.map_or(0, |file| file.len()), time.map_or(0, |time| time.as_nanos()));
        // Writing to a text cannot fail.
        let _ = write!(state, "{size} {time} ");
    }
    state
}
