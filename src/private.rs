//! Folders and files that nobody but their owner can read: people's numbers and messages stand in them.
//!
//! A system without such modes protects them only as it protects the folder that they are in. Which folders and
//! files are private is for those to say who need them; here it must not be decided.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _};
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
    /// It stays, and no file is opened: not even a link may have the name.
    Refused,
}

/// Creates a folder and those above it that are missing, so that a power cut takes none of them away again; one that
/// is there keeps its mode.
///
/// # Errors
/// When one of them cannot be created or brought to the disk, or something else has its name.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    if let Some(above) = above.filter(|above| !above.is_dir()) {
        folder(above)?;
    }
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER);
    match builder.create(path) {
        Err(error) if !path.is_dir() => Err(error),
        // Also of one that is there: who made it may have been killed before the next line.
        _ => sync_entry(path),
    }
}

/// Brings the name of a file or folder to the disk, which is an entry of the folder that it stands in.
///
/// # Errors
/// When the disk fails.
pub(crate) fn sync_entry(path: &Path) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    sync_folder(above.unwrap_or(Path::new(".")))
}

/// Brings the entries of a folder to the disk, where it can be opened and its file system knows how.
///
/// # Errors
/// When the disk fails.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let folder = match File::open(path) {
        // Such as `/home`, which everybody may pass and nobody list: what stands there was not made by us.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        opened => opened?,
    };
    match folder.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}

/// Opens a file to be written, and creates it where there is none; one that is there keeps its mode.
///
/// # Errors
/// When it cannot be created or opened.
pub(crate) fn file(path: &Path, existing: Existing) -> io::Result<File> {
    let mut options = OpenOptions::new();
    match existing {
        Existing::Kept => options.create(true).write(true),
        Existing::Emptied => options.create(true).write(true).truncate(true),
        Existing::Continued => options.create(true).append(true),
        Existing::Refused => options.create_new(true).write(true),
    };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE);
    options.open(path)
}

/// Who can reach a file or folder besides its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// The mode, with the special bits.
    pub(crate) mode: u32,
    /// Whether everyone on this machine can read the file or list the folder.
    pub(crate) everyone_reads: bool,
    /// Whether everyone on this machine can change the file or what is in the folder.
    pub(crate) everyone_writes: bool,
    /// Whether what is made in the folder belongs to the folder's group.
    pub(crate) gives_its_group: bool,
    /// Whether it is a folder such as `/tmp`, in which everyone has files of their own.
    pub(crate) is_shared_temporary: bool,
}

/// Who can reach a file or folder; nothing if it does not exist, or where the system has no such modes.
pub(crate) fn access(path: &Path) -> Option<Access> {
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).ok()?.permissions()) & 0o7777;
        Some(Access {
            mode,
            everyone_reads: mode & 0o004 != 0,
            everyone_writes: mode & 0o002 != 0,
            gives_its_group: mode & 0o2000 != 0,
            is_shared_temporary: mode & 0o1000 != 0,
        })
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// Writes zeros over all that a file holds, and brings them to the disk. What the disk keeps of it elsewhere, nobody can reach
/// from here.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn overwrite(file: &mut File) -> io::Result<()> {
    let length = file.metadata()?.len();
    file.rewind()?;
    io::copy(&mut io::repeat(0).take(length), file)?;
    file.sync_all()
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
    fn what_is_overwritten_is_gone_and_as_long_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "380501234567").unwrap();
        overwrite(&mut OpenOptions::new().write(true).open(&path).unwrap()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), [0; 12]);
    }

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
        fs::write(temporary.path().join("file"), "").unwrap();
        assert!(
            folder(&temporary.path().join("file")).is_err() && folder(&temporary.path().join("file/inner")).is_err()
        );
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
