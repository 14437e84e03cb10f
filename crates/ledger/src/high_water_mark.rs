//! The high-water mark: a file that detects a deleted, truncated or restored ledger.
//!
//! Such a ledger no longer knows every recipient who was sent a message. Each commit is recorded in the mark before it
//! is acknowledged. The mark is not fsynced: it matches the ledger after a process is killed, but can lag behind after
//! a power loss. It is never ahead of the ledger's file on disk.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::encoding::Checksum;
use campaign_core::domain::format_count;
use campaign_core::failpoint;
use campaign_core::private::{self, ExistingFile};
use campaign_core::regular_file;

/// The offsets of the two slots, in separate blocks, so that a torn write damages only one of them.
const SLOT_OFFSETS: [u64; 2] = [0, 4096];
/// The size of a slot, which contains a readable line.
const SLOT_BYTES: usize = 96;

/// The time to wait for another process that writes the mark. A write takes microseconds unless the process is
/// suspended.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause between attempts to lock.
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(1);

/// The reason why a ledger file is no longer used after `ledger copy`.
pub(crate) const COPIED_TO_DATABASE: &str = "it was copied to a database, which replaced it";

/// The identity of a ledger and its number of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct HighWaterMark {
    pub(crate) id: i64,
    pub(crate) generation: i64,
}

/// The result of reading a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MarkReading {
    /// The mark does not exist.
    Missing,
    /// The marks of the readable slots. They name the same ledger, unless accepting another ledger was interrupted.
    Marks(Vec<HighWaterMark>),
    /// The mark cannot be read, for this reason.
    Unreadable(String),
}

/// The writable file of a mark.
pub(crate) struct MarkFile {
    file: File,
    /// The latest generation that this process has written.
    written: i64,
}

impl MarkReading {
    /// The highest generation of the marks; 0 if there are none.
    pub(crate) fn highest_generation(&self) -> i64 {
        match self {
            Self::Marks(marks) => marks.iter().map(|mark| mark.generation).max().unwrap_or(0),
            Self::Missing | Self::Unreadable(_) => 0,
        }
    }
}

impl HighWaterMark {
    /// The reason why the ledger is not the ledger that was last written here. `None` if it is that ledger.
    pub(crate) fn find_mismatch(self, known: &MarkReading) -> Option<String> {
        match known {
            // A new ledger has no mark before its first commit.
            MarkReading::Missing if self.generation == 0 => None,
            MarkReading::Missing => Some("its high-water mark is missing".to_owned()),
            MarkReading::Unreadable(reason) => Some(format!("its high-water mark cannot be read: {reason}")),
            MarkReading::Marks(marks) if marks.iter().any(|known| known.id == self.after_move().id) => {
                Some(COPIED_TO_DATABASE.to_owned())
            }
            MarkReading::Marks(marks) if marks.iter().any(|known| known.id != self.id) => {
                Some("a different ledger was last used here".to_owned())
            }
            MarkReading::Marks(marks) => {
                let furthest = marks.iter().map(|known| known.generation).max().unwrap_or(0);
                (self.generation < furthest).then(|| {
                    format!(
                        "the ledger contains only the first {} of {}, so it is an older copy, or the end of its log is \
                         damaged",
                        self.generation,
                        format_count(furthest.unsigned_abs(), "commit"),
                    )
                })
            }
        }
    }

    /// The mark of this ledger after a move to another path: a new identity, and one more commit. A process that still
    /// uses the old path fails at its next commit.
    pub(crate) fn after_move(self) -> Self {
        let id = Checksum::for_table("moved").with_number(self.id).with_number(self.generation).finish();
        // Identifiers of new ledgers have 53 bits, too.
        Self { id: id & ((1 << 53) - 1), generation: self.generation + 1 }
    }

    fn checksum(self) -> u64 {
        Checksum::for_table("mark").with_number(self.id).with_number(self.generation).finish().cast_unsigned()
    }

    fn format_slot(self) -> [u8; SLOT_BYTES] {
        let line = format!("ledger {:020} commit {:020} sum {:016x}", self.id, self.generation, self.checksum());
        let mut slot = [b' '; SLOT_BYTES];
        slot[..line.len()].copy_from_slice(line.as_bytes());
        slot[SLOT_BYTES - 1] = b'\n';
        slot
    }

    /// Parses the mark of a slot. `None` if the slot is not exactly as this program writes it.
    fn parse_slot(slot: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(slot).ok()?;
        // Labels alternate with values.
        let mut words = text.split_ascii_whitespace().skip(1).step_by(2);
        let id = words.next()?.parse().ok()?;
        let generation = words.next()?.parse().ok()?;
        let mark = Self { id, generation };
        // Any other form of the same mark was not written by this program.
        (slot == mark.format_slot()).then_some(mark)
    }
}

/// The path of a ledger's mark.
pub(crate) fn mark_path(ledger: &Path) -> PathBuf {
    ledger.with_extension("mark")
}

/// Reads the mark file at `path`.
pub(crate) fn read_mark(path: &Path) -> MarkReading {
    let opened = match regular_file::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return MarkReading::Missing,
        Err(error) => return MarkReading::Unreadable(error.to_string()),
    };
    match read_slots(&opened) {
        Ok(slots) => interpret_slots(slots),
        Err(error) => MarkReading::Unreadable(error.to_string()),
    }
}

fn interpret_slots(slots: [Option<HighWaterMark>; 2]) -> MarkReading {
    let marks: Vec<HighWaterMark> = slots.into_iter().flatten().collect();
    if marks.is_empty() { MarkReading::Unreadable("it is corrupt".to_owned()) } else { MarkReading::Marks(marks) }
}

/// Reads both slots. A mark of an earlier version counts as the first slot.
fn read_slots(mut file: &File) -> io::Result<[Option<HighWaterMark>; 2]> {
    let mut slots = [None; 2];
    for (slot, offset) in slots.iter_mut().zip(SLOT_OFFSETS) {
        let mut bytes = Vec::with_capacity(SLOT_BYTES);
        file.seek(SeekFrom::Start(offset))?;
        file.take(SLOT_BYTES as u64).read_to_end(&mut bytes)?;
        *slot = HighWaterMark::parse_slot(&bytes);
        if offset == 0 && slot.is_none() {
            // Writing the other slot leaves zeros between the text and that slot.
            let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            *slot = serde_json::from_slice(text).ok();
        }
    }
    Ok(slots)
}

impl MarkFile {
    /// Opens the mark of a ledger for writing. Creates the mark if it is missing.
    ///
    /// The caller holds the ledger's write lock, so no other process creates a mark at the same time.
    ///
    /// # Errors
    /// If the mark cannot be created, opened or read.
    pub(crate) fn open(path: &Path, current: HighWaterMark) -> io::Result<Self> {
        if !path.exists() {
            create_mark_file(path, current)?;
        }
        remove_leftovers(path);
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Self { file, written: 0 })
    }

    /// Creates a mark in a temporary file for this process.
    ///
    /// # Errors
    /// If a temporary file cannot be created.
    pub(crate) fn create_temporary(current: HighWaterMark) -> io::Result<Self> {
        let mut mark = Self { file: tempfile::tempfile()?, written: 0 };
        mark.write_both_slots(current)?;
        Ok(mark)
    }

    /// Records a commit.
    ///
    /// # Errors
    /// If the mark cannot be written, or belongs to another ledger now.
    pub(crate) fn record_commit(&mut self, mark: HighWaterMark) -> io::Result<()> {
        lock_mark_file(&self.file)?;
        let written = self.advance(mark);
        failpoint::pass("mark.written");
        self.file.unlock()?;
        written
    }

    /// Writes a mark to the older slot, unless a later mark is recorded. The caller holds the lock.
    fn advance(&mut self, mark: HighWaterMark) -> io::Result<()> {
        let slots = read_slots(&self.file)?;
        if slots.iter().flatten().any(|known| known.id != mark.id) {
            return Err(io::Error::other("it belongs to another ledger"));
        }
        let generation_in = |slot: usize| slots[slot].map_or(-1, |known| known.generation);
        self.written = self.written.max(mark.generation);
        // Another process might be ahead. The mark never goes back.
        if generation_in(0).max(generation_in(1)) >= mark.generation {
            return Ok(());
        }
        self.write_slot(if generation_in(0) < generation_in(1) { 0 } else { 1 }, mark)
    }

    fn write_slot(&mut self, slot: usize, mark: HighWaterMark) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(SLOT_OFFSETS[slot]))?;
        self.file.write_all(&mark.format_slot())
    }

    /// Writes the latest mark to both slots and syncs them to disk.
    ///
    /// # Errors
    /// If the mark cannot be written.
    pub(crate) fn sync_slots(&mut self) -> io::Result<()> {
        if self.written == 0 {
            return Ok(());
        }
        lock_mark_file(&self.file)?;
        let furthest = read_slots(&self.file)?.into_iter().flatten().max_by_key(|mark| mark.generation);
        let written = furthest.map_or(Ok(()), |mark| self.write_both_slots(mark));
        self.file.unlock()?;
        written
    }

    /// Overwrites both slots with this mark and syncs them to disk, even if the mark belongs to another ledger. For a
    /// ledger that was accepted, restored or handed over.
    ///
    /// # Errors
    /// If the mark cannot be written.
    pub(crate) fn accept_mark(&mut self, mark: HighWaterMark) -> io::Result<()> {
        lock_mark_file(&self.file)?;
        self.file.set_len(SLOT_OFFSETS[1] + SLOT_BYTES as u64)?;
        let written = self.write_both_slots(mark);
        self.file.unlock()?;
        written
    }

    fn write_both_slots(&mut self, mark: HighWaterMark) -> io::Result<()> {
        self.write_slot(0, mark)?;
        self.write_slot(1, mark)?;
        self.file.sync_all()
    }
}

/// Creates a mark atomically.
fn create_mark_file(path: &Path, mark: HighWaterMark) -> io::Result<()> {
    let temporary = path.with_extension("mark-new");
    let file = private::open_file(&temporary, ExistingFile::Truncate)?;
    MarkFile { file, written: 0 }.write_both_slots(mark)?;
    std::fs::rename(&temporary, path)?;
    failpoint::pass("mark.created");
    private::sync_entry(path)
}

/// Removes files that earlier versions created for each process in the folder of the mark.
fn remove_leftovers(path: &Path) {
    let Some(mark_name) = path.file_name().and_then(|name| name.to_str()) else { return };
    let is_process_file = |name: &str| {
        let process = name.strip_prefix(mark_name).and_then(|rest| rest.strip_prefix('-'));
        process.is_some_and(|process| process.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let entries = path.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    for entry in entries.into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_process_file) {
            // Files that cannot be removed are harmless.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Locks the mark for writing against other processes.
fn lock_mark_file(file: &File) -> io::Result<()> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(LOCK_RETRY_PAUSE),
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another process has locked it")),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mark(generation: i64) -> HighWaterMark {
        HighWaterMark { id: 7, generation }
    }

    fn marks(generations: &[i64]) -> MarkReading {
        MarkReading::Marks(generations.iter().map(|generation| mark(*generation)).collect())
    }

    #[test]
    fn older_or_different_ledger_does_not_match_the_mark() {
        for (generation, matches) in [(100, true), (101, true), (99, false), (0, false)] {
            assert_eq!(mark(generation).find_mismatch(&marks(&[98, 100])).is_none(), matches, "{generation}");
        }
        assert!(HighWaterMark { id: 8, generation: 200 }.find_mismatch(&marks(&[100])).is_some());
        let copied = MarkReading::Marks(vec![mark(100).after_move()]);
        assert_eq!(mark(100).find_mismatch(&copied).as_deref(), Some(COPIED_TO_DATABASE));
        assert_ne!(mark(99).find_mismatch(&copied).as_deref(), Some(COPIED_TO_DATABASE));
        assert!(
            mark(200).find_mismatch(&MarkReading::Unreadable("torn".into())).is_some(),
            "an unreadable mark is not accepted"
        );
        assert!(mark(1).find_mismatch(&MarkReading::Missing).is_some(), "a used ledger has a mark");
        assert!(mark(0).find_mismatch(&MarkReading::Missing).is_none());
    }

    #[test]
    fn mark_records_each_commit_and_never_goes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = mark_path(&folder.path().join("ledger.sqlite"));
        assert_eq!(read_mark(&path), MarkReading::Missing);
        let mut file = MarkFile::open(&path, mark(0)).unwrap();
        let mut other = MarkFile::open(&path, mark(0)).unwrap();
        file.record_commit(mark(1)).unwrap();
        assert_eq!(read_mark(&path), marks(&[0, 1]));
        other.record_commit(mark(5)).unwrap();
        file.record_commit(mark(4)).unwrap();
        assert_eq!(read_mark(&path), marks(&[5, 1]), "another process was ahead");
        file.sync_slots().unwrap();
        assert_eq!(read_mark(&path), marks(&[5, 5]));
        assert!(file.record_commit(HighWaterMark { id: 8, generation: 9 }).is_err());
        file.accept_mark(HighWaterMark { id: 8, generation: 2 }).unwrap();
        assert_eq!(read_mark(&path), MarkReading::Marks(vec![HighWaterMark { id: 8, generation: 2 }; 2]));
    }

    #[test]
    fn mark_of_an_earlier_version_is_read_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = mark_path(&folder.path().join("ledger.sqlite"));
        std::fs::write(&path, r#"{"id":7,"generation":41}"#).unwrap();
        for name in ["ledger.mark-17", "ledger.mark-of-mine"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(read_mark(&path), marks(&[41]));
        let mut file = MarkFile::open(&path, mark(41)).unwrap();
        for generation in [42, 43] {
            file.record_commit(mark(generation)).unwrap();
            assert_eq!(read_mark(&path), marks(if generation == 42 { &[41, 42] } else { &[43, 42] }));
        }
        assert!(!folder.path().join("ledger.mark-17").exists() && folder.path().join("ledger.mark-of-mine").exists());
    }

    proptest! {
        #[test]
        fn damaged_slot_does_not_hide_the_other_slot(
            generation in 1_i64..1_000_000, slot in 0_usize..2, byte in 0..SLOT_BYTES, bit in 0_u8..8,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = mark_path(&folder.path().join("ledger.sqlite"));
            let mut file = MarkFile::open(&path, mark(0)).unwrap();
            file.record_commit(mark(generation)).unwrap();
            file.sync_slots().unwrap();
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[usize::try_from(SLOT_OFFSETS[slot]).unwrap() + byte] ^= 1 << bit;
            std::fs::write(&path, &bytes).unwrap();
            prop_assert_eq!(read_mark(&path), marks(&[generation]));
            bytes[usize::try_from(SLOT_OFFSETS[1 - slot]).unwrap() + byte] ^= 1 << bit;
            std::fs::write(&path, &bytes).unwrap();
            prop_assert!(matches!(read_mark(&path), MarkReading::Unreadable(_)));
        }
    }
}
