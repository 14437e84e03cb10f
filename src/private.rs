//! Folders and files that nobody but their owner can read: people's numbers and messages stand in them.
//!
//! A system without such modes protects them only as it protects the folder that they are in. Which folders and
//! files are private is for those to say who need them; here it must not be decided.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// The mode of a folder on Unix.
#[cfg(unix)]
const FOLDER: u32 = 0o700;

/// The mode of a file on Unix.
#[cfg(unix)]
const FILE: u32 = 0o600;

/// What becomes of what a file already holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It stays, and can be written over.
    Kept,
    /// It goes.
    Emptied,
    /// It stays, and everything is written behind it.
    Continued,
}

/// Creates a folder and those above it that are missing; one that is there keeps its mode.
///
/// # Errors
/// When one of them cannot be created, or something else has its name.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER);
    builder.create(path)
}

/// Opens a file to be written, and creates it where there is none; one that is there keeps its mode.
///
/// # Errors
/// When it cannot be created or opened.
pub(crate) fn file(path: &Path, existing: Existing) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true);
    match existing {
        Existing::Kept => options.write(true),
        Existing::Emptied => options.write(true).truncate(true),
        Existing::Continued => options.append(true),
    };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE);
    options.open(path)
}

/// Makes sure that what was created or renamed in a folder is still there after a loss of power.
///
/// # Errors
/// When the folder cannot be opened or synced.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    // An empty path is the working folder.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    #[cfg(unix)]
    File::open(path)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Closes a file to others that was there before and may be open to them; what is no regular file is left alone.
///
/// # Errors
/// When its mode cannot be read or set.
pub(crate) fn restrict(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    if file.metadata()?.is_file() {
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(FILE))?;
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_a_file_held_is_kept_emptied_or_continued() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for (existing, left) in
            [(Existing::Kept, "newore"), (Existing::Emptied, "new"), (Existing::Continued, "beforenew")]
        {
            fs::write(&path, "before").unwrap();
            file(&path, existing).unwrap().write_all(b"new").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), left, "{existing:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn folders_and_files_are_open_to_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let temporary = tempfile::tempdir().unwrap();
        let inner = temporary.path().join("outer/inner");
        folder(&inner).unwrap();
        folder(&inner).unwrap();
        assert_eq!((mode(&inner), mode(&temporary.path().join("outer"))), (0o700, 0o700));
        for (name, existing) in [("a", Existing::Kept), ("b", Existing::Emptied), ("c", Existing::Continued)] {
            let path = inner.join(name);
            file(&path, existing).unwrap();
            assert_eq!(mode(&path), 0o600, "{existing:?}");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            let opened = file(&path, existing).unwrap();
            assert_eq!(mode(&path), 0o644, "{existing:?}");
            restrict(&opened).unwrap();
            assert_eq!(mode(&path), 0o600, "{existing:?}");
        }
    }
}
