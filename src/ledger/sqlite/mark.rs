//! The mark beside the ledger: how far it had come when it was last written.
//!
//! A ledger that was deleted, or put back from an older copy, does not know who has a message by
//! now. The mark is what tells: it is never ahead of what the ledger's file has on the disk.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::failpoint;
use crate::private::{self, Existing};

/// How long a mark may lag behind while commits follow one another.
const LAG: Duration = Duration::from_secs(1);

/// Which ledger it is, and how many commits it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) id: i64,
    pub(super) generation: i64,
}

/// The file of the mark, and when it was written.
pub(super) struct MarkFile {
    path: PathBuf,
    written: Option<(Mark, Instant)>,
    /// Whether the ledger is not the one that the mark knows: then the mark is the truth and stays.
    stale: bool,
}

impl Mark {
    /// Why the ledger with this mark is not the one that `known` was written for; nothing if it is.
    pub(super) fn against(self, known: Mark) -> Option<&'static str> {
        if self.id != known.id {
            Some("it is another ledger than the one that was written here last")
        } else if self.generation < known.generation {
            Some("it is an older copy of the ledger that was written here last")
        } else {
            None
        }
    }
}

/// Where the mark of a ledger is.
pub(super) fn place(ledger: &Path) -> PathBuf {
    ledger.with_extension("mark")
}

/// The mark in a file, if there is one that can be read.
pub(super) fn read(path: &Path) -> Option<Mark> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

impl MarkFile {
    /// The mark at that path.
    pub(super) fn new(path: PathBuf, stale: bool) -> Self {
        Self { path, written: None, stale }
    }

    /// Notes a commit; the file follows at once the first time, then at most every second.
    pub(super) fn note(&mut self, mark: Mark) {
        let due = self.written.is_none_or(|(_, at)| at.elapsed() >= LAG);
        if due {
            // The first one reaches the disk: from it on a ledger put back is recognised.
            self.write(mark, self.written.is_none());
        }
    }

    /// Writes the last mark, on the disk.
    pub(super) fn finish(&mut self, last: Option<Mark>) {
        if let Some(mark) = last.filter(|mark| self.written.is_none_or(|(written, _)| written != *mark)) {
            self.write(mark, true);
        }
    }

    fn write(&mut self, mark: Mark, durable: bool) {
        if self.stale {
            return;
        }
        match replace(&self.path, mark, durable) {
            Ok(()) => self.written = Some((mark, Instant::now())),
            // It protects against mistakes with copies; a run is not stopped for want of it.
            Err(error) => tracing::warn!("cannot write `{}`: {error}", self.path.display()),
        }
    }
}

fn replace(path: &Path, mark: Mark, durable: bool) -> io::Result<()> {
    // Several processes may write it: each has a file of its own to rename.
    let temporary = path.with_extension(format!("mark-{}", std::process::id()));
    let mut file = private::file(&temporary, Existing::Emptied)?;
    file.write_all(&serde_json::to_vec(&mark)?)?;
    if durable {
        file.sync_all()?;
    }
    failpoint::pass("mark.written");
    fs::rename(&temporary, path)?;
    if durable {
        private::sync_entry(path)?;
    }
    failpoint::pass("mark.renamed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_or_another_ledger_is_recognised() {
        let known = Mark { id: 7, generation: 100 };
        for (mark, fine) in [(100, true), (101, true), (99, false), (0, false)] {
            assert_eq!(Mark { generation: mark, ..known }.against(known).is_none(), fine, "{mark}");
        }
        assert!(Mark { id: 8, generation: 200 }.against(known).is_some());
    }

    #[test]
    fn a_mark_is_read_as_it_was_written_and_a_stale_ledger_does_not_move_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = place(&folder.path().join("ledger.sqlite"));
        assert_eq!(read(&path), None);
        let (first, last) = (Mark { id: 7, generation: 1 }, Mark { id: 7, generation: 9 });
        let mut file = MarkFile::new(path.clone(), false);
        file.note(first);
        assert_eq!(read(&path), Some(first));
        file.finish(Some(last));
        assert_eq!(read(&path), Some(last));
        MarkFile::new(path.clone(), true).finish(Some(first));
        assert_eq!(read(&path), Some(last));
    }
}
