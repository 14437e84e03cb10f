//! Opening user files that must be regular files.
//!
//! A pipe would block, a device has no end, and a folder has no content. Callers decide which content is valid and how
//! many bytes are read.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a file could not be opened because no file handle was left.
static HANDLES_EXHAUSTED: AtomicBool = AtomicBool::new(false);

/// Whether opening a file has failed, since the process started, because the process or the system had no file handles
/// left.
///
/// If so, the file that a finding names is not the cause of the problem.
pub fn has_run_out_of_file_handles() -> bool {
    HANDLES_EXHAUSTED.load(Ordering::Relaxed)
}

/// Opens the regular file at `path` for reading, without waiting for a writer.
///
/// # Errors
/// If the file cannot be opened or is not regular; the error then names the kind of file.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, nonblocking_flags());
    require_regular(options.open(path).map_err(record_handle_exhaustion)?)
}

/// Returns the file if it is regular.
///
/// # Errors
/// If the file is not regular; the error names the kind of file.
pub fn require_regular(file: File) -> io::Result<File> {
    // The check uses the open file, because the file at a path could be replaced after the check.
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let noun = describe_kind(kind);
    Err(io::Error::new(ErrorKind::InvalidInput, format!("it is {noun}, not a regular file")))
}

/// Returns the error. If it means that no file handles are left, records this, and adds to the message how to see the
/// limit.
pub fn record_handle_exhaustion(error: io::Error) -> io::Error {
    #[cfg(unix)]
    {
        use rustix::io::Errno;

        let code = error.raw_os_error();
        if [Errno::MFILE, Errno::NFILE].iter().any(|errno| code == Some(errno.raw_os_error())) {
            HANDLES_EXHAUSTED.store(true, Ordering::Relaxed);
            return io::Error::new(error.kind(), format!("{error}; see `ulimit -n`"));
        }
    }
    error
}

/// The flags that let a pipe be opened without waiting for a writer. The flags have no effect on a regular file.
#[cfg(unix)]
fn nonblocking_flags() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits().cast_signed()
}

fn describe_kind(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        if kind.is_fifo() {
            return "a pipe";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
    }
    if kind.is_dir() { "a folder" } else { "something else" }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn regular_file_also_opens_through_a_symlink() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.csv");
        std::fs::write(&path, "phone\n").unwrap();
        let read = |path: &Path| {
            let mut text = String::new();
            open(path).unwrap().read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(read(&path), "phone\n");
        #[cfg(unix)]
        {
            let link = folder.path().join("link.csv");
            std::os::unix::fs::symlink(&path, &link).unwrap();
            assert_eq!(read(&link), "phone\n");
        }
        let missing = open(&folder.path().join("no.csv")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn opening_a_special_file_fails_at_once_and_names_its_kind() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for (path, kind) in
            [(pipe.as_path(), "a pipe"), (Path::new("/dev/zero"), "a device"), (folder.path(), "a folder")]
        {
            let error = open(path).unwrap_err();
            assert_eq!(error.to_string(), format!("it is {kind}, not a regular file"));
        }
    }
}
