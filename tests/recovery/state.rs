//! Helpers that copy and restore state folders, and compare ledgers with their high-water marks.

use std::fs;
use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

/// Copies a folder recursively.
pub(super) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_folder(&path, &copy);
        } else {
            fs::copy(&path, &copy).expect("a copy");
        }
    }
}

/// Replaces a folder with a copy of it.
pub(super) fn restore_folder(copy: &Path, folder: &Path) {
    fs::remove_dir_all(folder).expect("a folder");
    copy_folder(copy, folder);
}

/// The number of commits in the ledger of a state folder, and the number that its high-water mark records. Reads a copy
/// of the ledger, because reading can change the original.
pub(super) fn count_commits(state: &Path) -> (i64, i64) {
    let copy = tempfile::tempdir().expect("a folder");
    copy_folder(state, copy.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let ledger = runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(copy.path().join("ledger.sqlite"));
        let mut connection = options.connect().await.expect("a ledger");
        let commits = sqlx::query_scalar("SELECT generation FROM identity").fetch_one(&mut connection).await;
        connection.close().await.expect("closed");
        commits.expect("a number")
    });
    let mark = fs::read_to_string(state.join("ledger.mark")).expect("the mark");
    let recorded = mark.split("commit ").skip(1).map(|after| after.split(' ').next().expect("a number"));
    (ledger, recorded.map(|commit| commit.parse().expect("a number")).max().expect("a mark"))
}

/// Whether the write-ahead log of the ledger is empty or does not exist.
pub(super) fn is_log_empty(state: &Path) -> bool {
    fs::metadata(state.join("ledger.sqlite-wal")).map_or(true, |log| log.len() == 0)
}
