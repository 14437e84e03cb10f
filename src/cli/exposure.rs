//! Warnings about folders and files that every user of this machine can read or change, each once in a process.
//!
//! Access by a group is no reason to warn: a group can share a state folder on purpose.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::finding::quote_for_shell;
use crate::private::{self, FileAccess};

/// The files and folders with a warning so far.
#[derive(Debug, Default)]
pub(super) struct ExposureWarnings(Mutex<BTreeSet<PathBuf>>);

impl ExposureWarnings {
    /// Warns if everyone can list the state folder or change what is in it.
    pub(super) fn check_state_folder(&self, folder: &Path) {
        let Some(access) = self.first_access(folder, |access| access.everyone_reads || access.everyone_writes) else {
            return;
        };
        let name = quote_for_shell(folder);
        let repair = match access {
            FileAccess { is_shared_temporary: true, .. } => "choose your own folder with `--state-dir`".to_owned(),
            // The folder of a group.
            FileAccess { gives_its_group: true, .. } => format!("run `chmod o= {name}`"),
            _ => format!("run `chmod 700 {name}`"),
        };
        warn_about("the state folder", folder, access, &repair);
    }

    /// Warns if everyone can read or change the file of the ledger.
    pub(super) fn check_ledger(&self, file: &Path) {
        let is_open = |access: FileAccess| access.everyone_reads || access.everyone_writes;
        let Some(access) = self.first_access(file, is_open) else { return };
        // SQLite gives the files beside it the same mode.
        let beside = ["-wal", "-shm"].map(|end| PathBuf::from(format!("{}{end}", file.display())));
        let files = std::iter::once(file).chain(beside.iter().map(PathBuf::as_path).filter(|path| path.exists()));
        let files: Vec<String> = files.map(quote_for_shell).collect();
        warn_about("the ledger", file, access, &format!("run `chmod 600 {}`", files.join(" ")));
    }

    /// Warns if everyone can change the gateways file, and with it where messages go. It holds no secrets, so it can be readable.
    pub(super) fn check_gateways(&self, file: &Path) {
        if let Some(access) = self.first_access(file, |access| access.everyone_writes) {
            warn_about("the gateways file", file, access, &format!("run `chmod o-w {}`", quote_for_shell(file)));
        }
    }

    /// Who can reach a file or folder, if that is worth a warning for the first time.
    fn first_access(&self, path: &Path, is_open: impl Fn(FileAccess) -> bool) -> Option<FileAccess> {
        let access = private::read_access(path).filter(|access| is_open(*access))?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned()).then_some(access)
    }
}

fn warn_about(what: &str, path: &Path, access: FileAccess, repair: &str) {
    let can = match (access.everyone_reads, access.everyone_writes) {
        (true, true) => "read and change",
        (false, true) => "change",
        _ => "read",
    };
    let (path, mode) = (path.display(), access.mode);
    tracing::warn!("everyone on this machine can {can} {what} `{path}` (mode {mode:04o}): {repair}");
}
