//! Folders and files that nobody but their owner can read: people's numbers and messages stand in them.
//!
//! A system without such modes protects them only as it protects the folder that they are in. Which folders and
//! files are private is for those to say who need them; here it must not be decided.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

/// The mode of a folder on Unix.
#[cfg(unix)]
const FOLDER_MODE: u32 = 0o700;

/// The mode of a file on Unix.
#[cfg(unix)]
const FILE_MODE: u32 = 0o600;

/// What becomes of what a file already holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExistingFile {
    /// It stays, and can be written over.
    Keep,
    /// It goes.
    Truncate,
    /// It stays, and everything is written behind it.
    Append,
    /// It stays, and no file is opened: not even a link may have the name.
    CreateNew,
}

/// Creates a folder and those above it that are missing, so that a power cut takes none of them away again; one that
/// is there keeps its mode.
///
/// # Errors
/// When one of them cannot be created or brought to the disk, or something else has its name.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    if let Some(above) = above.filter(|above| !above.is_dir()) {
        create_folder(above)?;
    }
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER_MODE);
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
pub(crate) fn open_file(path: &Path, existing: ExistingFile) -> io::Result<File> {
    let mut options = OpenOptions::new();
    match existing {
        ExistingFile::Keep => options.create(true).write(true),
        ExistingFile::Truncate => options.create(true).write(true).truncate(true),
        ExistingFile::Append => options.create(true).append(true),
        ExistingFile::CreateNew => options.create_new(true).write(true),
    };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE_MODE);
    options.open(path)
}

/// Who can reach a file or folder besides its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileAccess {
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
pub(crate) fn read_access(path: &Path) -> Option<FileAccess> {
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).ok()?.permissions()) & 0o7777;
        Some(FileAccess {
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
pub(crate) fn overwrite_with_zeros(file: &mut File) -> io::Result<()> {
    let length = file.metadata()?.len();
    file.rewind()?;
    io::copy(&mut io::repeat(0).take(length), file)?;
    file.sync_all()
}

/// Closes a file to others that was there before and may be open to them; what is no regular file is left alone.
///
/// # Errors
/// When its mode cannot be read or set.
pub(crate) fn restrict_to_owner(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    if file.metadata()?.is_file() {
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(FILE_MODE))?;
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
    fn overwritten_file_holds_zeros_of_the_same_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "380501234567").unwrap();
        overwrite_with_zeros(&mut OpenOptions::new().write(true).open(&path).unwrap()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), [0; 12]);
    }

    #[test]
    fn existing_content_is_kept_truncated_or_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for (existing, left) in
            [(ExistingFile::Keep, "newore"), (ExistingFile::Truncate, "new"), (ExistingFile::Append, "beforenew")]
        {
            fs::write(&path, "before").unwrap();
            open_file(&path, existing).unwrap().write_all(b"new").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), left, "{existing:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn folders_and_files_are_private_to_their_owner() {
        use std::os::unix::fs::PermissionsExt as _;

        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let temporary = tempfile::tempdir().unwrap();
        let inner = temporary.path().join("outer/inner");
        create_folder(&inner).unwrap();
        create_folder(&inner).unwrap();
        assert_eq!((mode(&inner), mode(&temporary.path().join("outer"))), (0o700, 0o700));
        fs::write(temporary.path().join("file"), "").unwrap();
        assert!(
            create_folder(&temporary.path().join("file")).is_err()
                && create_folder(&temporary.path().join("file/inner")).is_err()
        );
        for (name, existing) in [("a", ExistingFile::Keep), ("b", ExistingFile::Truncate), ("c", ExistingFile::Append)]
        {
            let path = inner.join(name);
            open_file(&path, existing).unwrap();
            assert_eq!(mode(&path), 0o600, "{existing:?}");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            let opened = open_file(&path, existing).unwrap();
            assert_eq!(mode(&path), 0o644, "{existing:?}");
            restrict_to_owner(&opened).unwrap();
            assert_eq!(mode(&path), 0o600, "{existing:?}");
        }
    }
}
