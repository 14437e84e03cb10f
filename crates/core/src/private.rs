//! Private files and folders: only their owner can read them, because they contain phone numbers and messages.
//!
//! A setgid folder that its group can write to is shared on purpose. The group can also read and change the files and
//! folders in it, regardless of the umask. On a system without Unix permissions, files are protected only as well as
//! their folder. Callers decide which files are private; this module must not.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

/// The mode of a folder on Unix.
#[cfg(unix)]
const FOLDER_MODE: u32 = 0o700;

/// The mode of a file on Unix.
#[cfg(unix)]
const FILE_MODE: u32 = 0o600;

/// The mode of a folder in a shared folder. The system adds the setgid bit.
#[cfg(unix)]
const SHARED_FOLDER_MODE: u32 = 0o770;

/// The mode of a file in a shared folder.
#[cfg(unix)]
const SHARED_FILE_MODE: u32 = 0o660;

/// The treatment of an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingFile {
    /// The content is kept and can be overwritten.
    Keep,
    /// The content is removed.
    Truncate,
    /// New content is appended to the file.
    Append,
    /// An existing file or symbolic link is an error.
    CreateNew,
}

/// Durably creates a folder and its missing parents. An existing folder keeps its mode.
///
/// # Errors
/// If a folder cannot be created or synced, or if a file has the name of a folder.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
        create_folder(parent)?;
    }
    match create_one_folder(path) {
        Err(error) if !path.is_dir() => Err(error),
        // An existing folder is synced too: its creator might have been killed before the sync.
        _ => sync_entry(path),
    }
}

fn create_one_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};

        if is_shared_folder(parent_folder(path)) {
            builder.mode(SHARED_FOLDER_MODE).create(path)?;
            let mut permissions = std::fs::metadata(path)?.permissions();
            // The permissions are set only if the umask removed some: a service might not be allowed to set the setgid
            // bit.
            if permissions.mode() & SHARED_FOLDER_MODE != SHARED_FOLDER_MODE {
                permissions.set_mode(permissions.mode() | SHARED_FOLDER_MODE);
                std::fs::set_permissions(path, permissions)?;
            }
            return Ok(());
        }
        builder.mode(FOLDER_MODE);
    }
    builder.create(path)
}

/// The folder that contains a file or folder.
fn parent_folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether a folder is shared with its group: it is setgid, and its group can write.
#[cfg(unix)]
fn is_shared_folder(folder: &Path) -> bool {
    const SHARED: u32 = 0o2020;
    let mode = |metadata: std::fs::Metadata| std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
    std::fs::metadata(folder).is_ok_and(|metadata| metadata.is_dir() && mode(metadata) & SHARED == SHARED)
}

/// Syncs the directory entry of a file or folder.
///
/// # Errors
/// If the parent folder cannot be opened or synced.
pub fn sync_entry(path: &Path) -> io::Result<()> {
    sync_folder(parent_folder(path))
}

/// Syncs the entries of a folder, unless permission to open it is denied or the file system does not support syncing.
///
/// # Errors
/// If the folder cannot be opened for another reason, or the disk fails.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let folder = match File::open(path) {
        // A folder such as `/home`, which users can traverse but not list. Its entries are not ours, so they need no
        // sync.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        opened => opened?,
    };
    match folder.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}

/// Opens a file for writing and creates it if it is missing. An existing file keeps its mode.
///
/// # Errors
/// If the file cannot be created or opened.
pub fn open_file(path: &Path, existing: ExistingFile) -> io::Result<File> {
    let mut options = OpenOptions::new();
    match existing {
        ExistingFile::Keep => options.create(true).write(true),
        ExistingFile::Truncate => options.create(true).write(true).truncate(true),
        ExistingFile::Append => options.create(true).append(true),
        ExistingFile::CreateNew => options.create_new(true).write(true),
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;

        if is_shared_folder(parent_folder(path)) {
            options.mode(SHARED_FILE_MODE);
            return match options.clone().create_new(true).open(path) {
                Ok(file) => share_with_group(&file).map(|()| file),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && existing != ExistingFile::CreateNew => {
                    options.open(path)
                }
                Err(error) => Err(error),
            };
        }
        options.mode(FILE_MODE);
    }
    options.open(path)
}

/// Gives a temporary file the permissions that [`open_file`] would give a new file in `folder`, to which it will be
/// moved.
///
/// # Errors
/// If the mode of the file cannot be read or set.
pub fn adopt_permissions(file: &File, folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if is_shared_folder(folder) {
        return share_with_group(file);
    }
    let _ = (file, folder);
    Ok(())
}

/// Restores the group permissions that the umask removed from a file.
#[cfg(unix)]
fn share_with_group(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    let permissions = file.metadata()?.permissions();
    match permissions.mode() & SHARED_FILE_MODE == SHARED_FILE_MODE {
        true => Ok(()),
        false => file.set_permissions(std::fs::Permissions::from_mode(SHARED_FILE_MODE)),
    }
}

/// Access to a file or folder for users other than its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAccess {
    /// The mode, with the special bits.
    pub mode: u32,
    /// Whether everyone on this machine can read the file or list the folder.
    pub everyone_reads: bool,
    /// Whether everyone on this machine can change the file or the contents of the folder.
    pub everyone_writes: bool,
    /// Whether the setgid bit is set, so that new files in the folder belong to the folder's group.
    pub is_setgid: bool,
    /// Whether the folder is a shared temporary folder such as `/tmp`.
    pub is_shared_temporary: bool,
}

/// Reads the permissions of a file or folder. `None` if the file or folder does not exist, or if the platform has no
/// Unix permission bits.
pub fn read_access(path: &Path) -> Option<FileAccess> {
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).ok()?.permissions()) & 0o7777;
        Some(FileAccess {
            mode,
            everyone_reads: mode & 0o004 != 0,
            everyone_writes: mode & 0o002 != 0,
            is_setgid: mode & 0o2000 != 0,
            is_shared_temporary: mode & 0o1000 != 0,
        })
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// Overwrites the content of a file with zeros and syncs it. Other copies of the blocks on the disk cannot be reached
/// from here.
///
/// # Errors
/// If the file cannot be written or synced.
pub fn overwrite_with_zeros(file: &mut File) -> io::Result<()> {
    let length = file.metadata()?.len();
    file.rewind()?;
    io::copy(&mut io::repeat(0).take(length), file)?;
    file.sync_all()
}

/// Restricts an existing file to its owner. A file that is not regular is left alone.
///
/// # Errors
/// If the mode of the file cannot be read or set.
pub fn restrict_to_owner(file: &File) -> io::Result<()> {
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
    fn overwritten_file_keeps_its_length_and_has_only_zeros() {
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
        for (existing, expected) in
            [(ExistingFile::Keep, "newore"), (ExistingFile::Truncate, "new"), (ExistingFile::Append, "beforenew")]
        {
            fs::write(&path, "before").unwrap();
            open_file(&path, existing).unwrap().write_all(b"new").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{existing:?}");
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

    #[cfg(unix)]
    #[test]
    fn new_files_in_a_shared_folder_are_accessible_to_its_group() {
        use std::os::unix::fs::PermissionsExt as _;

        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        let temporary = tempfile::tempdir().unwrap();
        let state = temporary.path().join("state");
        fs::create_dir(&state).unwrap();
        for (shared, folder, file) in
            [(0o2770, 0o2770, 0o660), (0o770, 0o700, 0o600), (0o2750, 0o2700, 0o600), (0o700, 0o700, 0o600)]
        {
            fs::set_permissions(&state, fs::Permissions::from_mode(shared)).unwrap();
            let runs = state.join(format!("runs-{shared:o}"));
            create_folder(&runs).unwrap();
            assert_eq!(mode(&runs), folder, "{shared:o}");
            for existing in [ExistingFile::Keep, ExistingFile::Truncate, ExistingFile::Append, ExistingFile::CreateNew]
            {
                let path = runs.join(format!("{existing:?}"));
                open_file(&path, existing).unwrap();
                assert_eq!(mode(&path), file, "{shared:o} {existing:?}");
                assert_eq!(open_file(&path, existing).is_ok(), existing != ExistingFile::CreateNew);
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
                let _ = open_file(&path, existing);
                assert_eq!(mode(&path), 0o600, "an existing file keeps its mode");
            }
            let new = tempfile::NamedTempFile::new_in(&runs).unwrap();
            adopt_permissions(new.as_file(), &runs).unwrap();
            assert_eq!(mode(new.path()), file, "{shared:o}");
        }
    }
}
