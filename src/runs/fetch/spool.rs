//! The private file in the state folder that a list is fetched into; it is gone when nobody uses the list any more.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::private::{self, ExistingFile};

/// The most bytes of a list.
const MAX_BYTES: u64 = 4 << 30;

/// A list that is being fetched.
pub(super) struct ListSpool {
    out: BufWriter<File>,
    path: PathBuf,
    written: u64,
    most: u64,
    kept: bool,
}

/// A list that was fetched.
#[derive(Debug)]
pub struct FetchedList {
    path: PathBuf,
    /// How findings name it.
    place: PathBuf,
    /// Locked while the list is used, so that no other process takes it for one that was left behind.
    _lock: File,
}

impl ListSpool {
    /// A new one in the state folder; what processes that died left there is removed.
    pub(super) fn new(state: &Path) -> io::Result<Self> {
        let folder = state.join("lists");
        private::create_folder(&folder)?;
        for left in fs::read_dir(&folder)?.flatten() {
            if File::open(left.path()).is_ok_and(|file| file.try_lock().is_ok()) {
                let _ = fs::remove_file(left.path());
            }
        }
        let path = folder.join(format!("{:016x}", rand::random::<u64>()));
        let file = private::open_file(&path, ExistingFile::Truncate)?;
        file.lock()?;
        Ok(Self { out: BufWriter::with_capacity(1 << 16, file), path, written: 0, most: MAX_BYTES, kept: false })
    }

    /// Whether nothing came.
    pub(super) fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// The list, which findings name so.
    pub(super) fn finish(mut self, place: String) -> io::Result<FetchedList> {
        self.out.flush()?;
        let lock = self.out.get_ref().try_clone()?;
        self.kept = true;
        Ok(FetchedList { path: self.path.clone(), place: place.into(), _lock: lock })
    }
}

impl Write for ListSpool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written += bytes.len() as u64;
        if self.written > self.most {
            return Err(io::Error::other(format!("the list is larger than {} GiB", self.most >> 30)));
        }
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for ListSpool {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl FetchedList {
    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How findings name it.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }
}

impl Drop for FetchedList {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_removed_after_use_and_orphans_with_the_next() {
        let state = tempfile::tempdir().unwrap();
        let count = || fs::read_dir(state.path().join("lists")).unwrap().count();
        let mut spool = ListSpool::new(state.path()).unwrap();
        spool.write_all(b"phone\n").unwrap();
        let list = spool.finish("somewhere".to_owned()).unwrap();
        assert_eq!(fs::read(list.path()).unwrap(), b"phone\n");
        fs::write(state.path().join("lists/left"), "phone\n").unwrap();
        drop(ListSpool::new(state.path()).unwrap());
        assert_eq!(count(), 1, "what is used stays");
        drop(list);
        assert_eq!(count(), 0);
    }

    #[test]
    fn oversized_list_is_refused_before_it_fills_the_disk() {
        let state = tempfile::tempdir().unwrap();
        let mut spool = ListSpool::new(state.path()).unwrap();
        spool.most = 10;
        spool.write_all(b"0123456789").unwrap();
        assert!(spool.write_all(b"0").unwrap_err().to_string().contains("larger than"));
        drop(spool);
        assert_eq!(fs::read_dir(state.path().join("lists")).unwrap().count(), 0);
    }
}
