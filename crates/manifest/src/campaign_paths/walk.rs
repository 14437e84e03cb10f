//! Walking a path below a folder, without leaving the folder.
//!
//! `by_handle` opens each part relative to the folder before it and never through a link. A link's target is read and
//! walked like the rest of the path, so a link that appears in the meantime cannot lead outside either. `by_path` is
//! for systems that cannot open a file relative to the handle of its folder. It resolves the whole path, checks that
//! the path is within the folder, and opens the resolved path. A link that appears in between is not noticed.

#[cfg(unix)]
pub(super) use by_handle::{check_path, exists_below, hold_folder, is_link_below, list_names, open_below};
#[cfg(not(unix))]
pub(super) use by_path::{check_path, exists_below, hold_folder, is_link_below, list_names, open_below};

use super::{HeldFolder, dangling_link_error, is_dots, outside_path_error};

/// The maximum number of names that suggestions are made from.
const MAX_NAMES: usize = 1_000;

#[cfg(unix)]
mod by_handle {
    use std::ffi::{OsStr, OsString};
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::{Component, Path, PathBuf};

    use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, mkdirat, openat, readlinkat, statat};
    use rustix::io::Errno;

    use super::{HeldFolder, MAX_NAMES, dangling_link_error, is_dots, outside_path_error};

    /// The maximum number of links on one path, as in Linux.
    const MAX_LINKS: usize = 40;

    /// The flags for opening a folder: on Linux without permission to list it, as the system itself does.
    #[cfg(target_os = "linux")]
    const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::PATH);
    #[cfg(not(target_os = "linux"))]
    const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

    /// The flags for opening a file: never waiting for a pipe, and never through a link.
    const FILE: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::NOCTTY);

    /// The treatment of links at the end of a path.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum LastLink {
        Followed,
        Kept,
    }

    /// Opens the file at a path relative to a folder.
    pub(in crate::campaign_paths) fn open_below(folder: &Path, relative: &Path) -> io::Result<File> {
        walk_path(folder, relative, LastLink::Followed, |parent, name| openat(parent, name, FILE, Mode::empty()))
            .map(File::from)
    }

    /// Checks that a path stays within a folder. The last part of the path is not opened.
    pub(in crate::campaign_paths) fn check_path(folder: &Path, relative: &Path) -> io::Result<()> {
        walk_path(folder, relative, LastLink::Followed, |_, _| Ok(()))
    }

    /// Whether the path `relative` in a folder exists.
    pub(in crate::campaign_paths) fn exists_below(folder: &Path, relative: &Path) -> bool {
        let stat = |parent: BorrowedFd<'_>, name: &OsStr| statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
        walk_path(folder, relative, LastLink::Followed, stat).is_ok()
    }

    /// Whether the path `relative` in a folder is a link.
    pub(in crate::campaign_paths) fn is_link_below(folder: &Path, relative: &Path) -> bool {
        let stat = |parent: BorrowedFd<'_>, name: &OsStr| statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
        let status = walk_path(folder, relative, LastLink::Kept, stat);
        status.is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Symlink)
    }

    /// The names of the entries in the folder at `relative`; empty if they cannot be read.
    pub(in crate::campaign_paths) fn list_names(folder: &Path, relative: &Path) -> Vec<String> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let listed = walk_path(folder, relative, LastLink::Followed, |parent, name| {
            let opened = openat(parent, name, flags, Mode::empty())?;
            Dir::read_from(opened)
        });
        let entries = listed.into_iter().flatten().flatten();
        let names = entries.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
        names.filter(|name| !is_dots(name)).filter_map(|name| name.into_string().ok()).take(MAX_NAMES).collect()
    }

    /// Opens the folder at `relative`, and creates it if requested. On Linux, its files are accessed
    /// through the open folder.
    pub(in crate::campaign_paths) fn hold_folder(
        folder: &Path,
        relative: &Path,
        create: bool,
    ) -> io::Result<HeldFolder> {
        let open = || {
            let open_last =
                |parent: BorrowedFd<'_>, name: &OsStr| openat(parent, name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
            walk_path(folder, relative, LastLink::Followed, open_last)
        };
        let handle = match open() {
            Err(error) if create && error.kind() == io::ErrorKind::NotFound && relative != Path::new("") => {
                hold_folder(folder, relative.parent().unwrap_or(Path::new("")), true)?;
                match walk_path(folder, relative, LastLink::Kept, |parent, name| mkdirat(parent, name, Mode::RWXU)) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                    _ => open()?,
                }
            }
            opened => opened?,
        };
        let path = match cfg!(target_os = "linux") {
            true => PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd())),
            false => folder.join(relative),
        };
        Ok(HeldFolder { path, _handle: Some(File::from(handle)) })
    }

    /// Walks to the last part of a path and passes it with its folder to `visit_last`.
    fn walk_path<T>(
        folder: &Path,
        relative: &Path,
        last_link: LastLink,
        visit_last: impl FnOnce(BorrowedFd<'_>, &OsStr) -> Result<T, Errno>,
    ) -> io::Result<T> {
        let top = rustix::fs::open(folder, FOLDER, Mode::empty())?;
        let mut folders: Vec<OwnedFd> = Vec::new();
        let mut remaining = Vec::new();
        prepend_parts(relative, &mut remaining)?;
        let (mut link_count, mut ends_with_link) = (0, false);
        let convert_error = |ends_with_link: bool, error: Errno| match error {
            Errno::NOENT if ends_with_link => dangling_link_error(),
            error => error.into(),
        };
        let name = loop {
            let Some(part) = remaining.pop() else { break OsString::from(".") };
            if part == ".." {
                folders.pop().ok_or_else(outside_path_error)?;
                continue;
            }
            let parent = folders.last().unwrap_or(&top);
            if last_link == LastLink::Kept && remaining.is_empty() {
                break part;
            }
            match readlinkat(parent, &part, Vec::new()) {
                Ok(target) => {
                    link_count += 1;
                    if link_count > MAX_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    ends_with_link |= remaining.is_empty();
                    let target = Path::new(OsStr::from_bytes(target.as_bytes()));
                    let within = match target.is_absolute() {
                        true => {
                            folders.clear();
                            target.strip_prefix(folder).map_err(|_| outside_path_error())?
                        }
                        false => target,
                    };
                    prepend_parts(within, &mut remaining)?;
                }
                // This part is not a link.
                Err(Errno::INVAL) if remaining.is_empty() => break part,
                Err(Errno::INVAL) => {
                    let next = openat(parent, &part, FOLDER | OFlags::NOFOLLOW, Mode::empty());
                    folders.push(next.map_err(|error| convert_error(ends_with_link, error))?);
                }
                Err(error) => return Err(convert_error(ends_with_link, error)),
            }
        };
        let parent = folders.last().unwrap_or(&top);
        visit_last(parent.as_fd(), &name).map_err(|error| match error {
            // A link just replaced the file.
            Errno::LOOP => outside_path_error(),
            error => convert_error(ends_with_link, error),
        })
    }

    /// Adds the parts of a path before the remaining parts.
    fn prepend_parts(path: &Path, remaining: &mut Vec<OsString>) -> io::Result<()> {
        for part in path.components().rev() {
            match part {
                Component::Normal(name) => remaining.push(name.to_owned()),
                Component::ParentDir => remaining.push("..".into()),
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return Err(outside_path_error()),
            }
        }
        Ok(())
    }
}

#[cfg(not(unix))]
mod by_path {
    use std::fs::{self, File};
    use std::io::{self, ErrorKind};
    use std::path::{Path, PathBuf};

    use super::{HeldFolder, MAX_NAMES, dangling_link_error, is_dots, outside_path_error};

    /// Opens the file at a path relative to a folder.
    pub(in crate::campaign_paths) fn open_below(folder: &Path, relative: &Path) -> io::Result<File> {
        File::open(resolve_real_path(folder, relative)?)
    }

    /// Checks that a path stays within a folder. The file is not opened.
    pub(in crate::campaign_paths) fn check_path(folder: &Path, relative: &Path) -> io::Result<()> {
        resolve_real_path(folder, relative).map(drop)
    }

    /// Resolves the folder at `relative`, and creates it if requested.
    pub(in crate::campaign_paths) fn hold_folder(
        folder: &Path,
        relative: &Path,
        create: bool,
    ) -> io::Result<HeldFolder> {
        if create {
            fs::create_dir_all(folder.join(relative))?;
        }
        Ok(HeldFolder { path: resolve_real_path(folder, relative)?, _handle: None })
    }

    /// Whether the path `relative` in a folder exists.
    pub(in crate::campaign_paths) fn exists_below(folder: &Path, relative: &Path) -> bool {
        resolve_real_path(folder, relative).is_ok()
    }

    /// Whether the path `relative` in a folder is a link.
    pub(in crate::campaign_paths) fn is_link_below(folder: &Path, relative: &Path) -> bool {
        folder.join(relative).is_symlink()
    }

    /// The names of the entries in the folder at `relative`; empty if they cannot be read.
    pub(in crate::campaign_paths) fn list_names(folder: &Path, relative: &Path) -> Vec<String> {
        let entries = resolve_real_path(folder, relative).and_then(fs::read_dir).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name()).filter(|name| !is_dots(name));
        names.filter_map(|name| name.into_string().ok()).take(MAX_NAMES).collect()
    }

    fn resolve_real_path(folder: &Path, relative: &Path) -> io::Result<PathBuf> {
        let path = folder.join(relative);
        match path.canonicalize() {
            Ok(real) if real.starts_with(folder) => Ok(real),
            Ok(_) => Err(outside_path_error()),
            // The error must not reveal whether a target outside the folder exists.
            Err(error) if error.kind() == ErrorKind::NotFound && path.is_symlink() => {
                let target = fs::read_link(&path)?;
                if target.is_relative() && target.components().all(|part| part.as_os_str() != "..") {
                    return Err(dangling_link_error());
                }
                Err(outside_path_error())
            }
            Err(error) => Err(error),
        }
    }
}
