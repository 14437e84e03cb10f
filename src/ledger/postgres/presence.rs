//! Which processes of this machine are there: each has a file of its own locked, which the system lets go of when the process
//! ends, however it ends. So nobody waits for the lease of one that was killed here.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::private::{self, ExistingFile};

/// What the name of such a file ends with, before the process.
const EXTENSION_PREFIX: &str = "process-";

/// That this process is there.
pub(super) struct Presence {
    process: i64,
    path: PathBuf,
    _file: File,
}

impl Presence {
    /// Tells the processes of this machine, which find it beside the mark, that this one is there.
    pub(super) fn announce_process(mark: &Path) -> io::Result<Self> {
        let process = i64::from(rand::random::<u32>());
        let path = mark.with_extension(format!("{EXTENSION_PREFIX}{process}"));
        // Under its name it is never seen without its lock.
        let unnamed = mark.with_extension(format!("new-{EXTENSION_PREFIX}{process}"));
        let file = private::open_file(&unnamed, ExistingFile::Truncate)?;
        file.lock()?;
        fs::rename(&unnamed, &path)?;
        Ok(Self { process, path, _file: file })
    }

    pub(super) fn process(&self) -> i64 {
        self.process
    }

    /// Takes it back: there is nothing any more that this process has.
    pub(super) fn end(&self) {
        // One that stays is found without its lock.
        let _ = fs::remove_file(&self.path);
    }
}

/// The processes of this machine that ended without a word.
pub(super) fn list_ended(mark: &Path) -> Vec<i64> {
    list_process_files(mark).into_iter().filter(|(_, path)| is_unlocked(path)).map(|(process, _)| process).collect()
}

/// Forgets processes that ended.
pub(super) fn remove_ended(mark: &Path, ended: &[i64]) {
    for (_, path) in list_process_files(mark).into_iter().filter(|(process, _)| ended.contains(process)) {
        let _ = fs::remove_file(path);
    }
}

fn list_process_files(mark: &Path) -> Vec<(i64, PathBuf)> {
    let stem = mark.file_stem().unwrap_or_default().to_string_lossy();
    let prefix = format!("{stem}.{EXTENSION_PREFIX}");
    let entries = mark.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let known = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some((name.strip_prefix(&prefix)?.parse().ok()?, entry.path()))
    });
    known.collect()
}

/// Whether nobody has a file locked; what cannot be found out counts as somebody.
fn is_unlocked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_process_is_detected_by_its_unlocked_file() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("shared-1.mark");
        let other = Presence::announce_process(&folder.path().join("shared-2.mark")).unwrap();
        let here = Presence::announce_process(&mark).unwrap();
        assert!(list_ended(&mark).is_empty());
        let left = mark.with_extension(format!("{EXTENSION_PREFIX}7"));
        fs::write(&left, "").unwrap();
        assert_eq!(list_ended(&mark), [7]);
        remove_ended(&mark, &[7]);
        assert!(!left.exists() && here.path.exists() && other.path.exists());
        here.end();
        assert!(!here.path.exists());
        drop(other);
        assert_eq!(list_ended(&folder.path().join("shared-2.mark")).len(), 1, "it ended without a word");
    }
}
