//! Whether the ledger's file is sound: looked at before anything is sent, and once per state of the files by readers.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sqlx::SqlitePool;

use super::dialect::storage_error;
use crate::ledger::LedgerError;
use crate::private::{self, ExistingFile};

/// SQLite's codes for memory that was refused and for a file that is damaged.
const SQLITE_NOMEM: u32 = 7;
const SQLITE_CORRUPT: u32 = 11;

/// Looks at all of the file, its indexes too; takes seconds with millions of rows.
///
/// An index that misses an envelope would have its rows sent again; no checksum of a record shows that.
pub(super) async fn check_integrity(readers: &SqlitePool, path: &Path) -> Result<(), LedgerError> {
    interpret_check(sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(readers).await, path)
}

/// Looks at the file, unless it is as it was when that was last done and nothing was found.
pub(super) async fn quick_check(readers: &SqlitePool, path: &Path) -> Result<(), LedgerError> {
    let (stamp, before) = (path.with_extension("checked"), fingerprint_files(path));
    if fs::read_to_string(&stamp).is_ok_and(|checked| checked == before) {
        return Ok(());
    }
    interpret_check(sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(readers).await, path)?;
    if fingerprint_files(path) == before {
        // Without it the next reader looks again; that is all.
        let written =
            private::open_file(&stamp, ExistingFile::Truncate).and_then(|mut file| file.write_all(before.as_bytes()));
        if let Err(error) = written {
            tracing::debug!("cannot write `{}`: {error}", stamp.display());
        }
    }
    Ok(())
}

fn interpret_check(told: sqlx::Result<String>, path: &Path) -> Result<(), LedgerError> {
    let told = told.map_err(|error| storage_error(path, &error))?;
    match (told.as_str(), parse_page_error(&told)) {
        ("ok", _) => Ok(()),
        // What could not be read may be sound.
        (_, Some(code)) if code != SQLITE_CORRUPT => {
            let reason = if code == SQLITE_NOMEM { "out of memory".to_owned() } else { told };
            Err(LedgerError::Storage { path: path.display().to_string(), reason })
        }
        (told, _) => Err(LedgerError::DamagedFile { reason: told.to_owned() }),
    }
}

/// SQLite's code for why a page could not be read, where that is what a check tells (sqlite.org/rescode.html).
fn parse_page_error(told: &str) -> Option<u32> {
    let (_, code) = told.rsplit_once("unable to get the page. error code=")?;
    code.trim().parse().ok()
}

/// Size and time of the ledger's file and of its log; a log that is empty is as good as none.
fn fingerprint_files(path: &Path) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_file_is_not_reported_as_damaged() {
        let judged = |said: &str| {
            interpret_check(Ok(said.to_owned()), Path::new("ledger.sqlite")).map_err(|error| error.to_string())
        };
        assert_eq!(judged("ok"), Ok(()));
        let page = "*** in database main ***\nTree 29 page 29: unable to get the page. error code=";
        assert!(judged(&format!("{page}7")).unwrap_err().contains("out of memory"));
        assert!(!judged(&format!("{page}10")).unwrap_err().contains("damaged"));
        for damaged in
            [format!("{page}11"), "row 3 missing from index i".to_owned(), "*** in database main ***".to_owned()]
        {
            assert!(judged(&damaged).unwrap_err().contains("damaged"), "{damaged}");
        }
    }
}
