//! Walking a path below a folder, one part at a time, without leaving the folder.
//!
//! Each part is opened relative to the folder before it and never through a link. A link's target is read and walked
//! like the rest of the path, so a link that appears in the meantime cannot lead outside either.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, mkdirat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::{HeldFolder, dangling_link_error, is_dots, outside_path_error};

/// The maximum number of links on one path, as in Linux.
const MAX_LINKS: usize = 40;
/// The maximum number of names that suggestions are made from.
const MAX_NAMES: usize = 1_000;

/// The flags for opening a folder: on Linux without permission to list it, as the system itself does.
#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::PATH);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// The flags for opening a file: never waiting for a pipe, and never through a link.
const FILE: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::NOCTTY);

/// How links at the end of a path are handled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastLink {
    Followed,
    Kept,
}

/// Opens the path below a folder.
pub(super) fn open_below(folder: &Path, below: &Path) -> io::Result<File> {
    walk_path(folder, below, LastLink::Followed, |here, name| openat(here, name, FILE, Mode::empty())).map(File::from)
}

/// Walks a path without opening its last part.
pub(super) fn check_path(folder: &Path, below: &Path) -> io::Result<()> {
    walk_path(folder, below, LastLink::Followed, |_, _| Ok(()))
}

/// Whether the path below a folder exists.
pub(super) fn exists_below(folder: &Path, below: &Path) -> bool {
    let stat = |here: BorrowedFd<'_>, name: &OsStr| statat(here, name, AtFlags::SYMLINK_NOFOLLOW);
    walk_path(folder, below, LastLink::Followed, stat).is_ok()
}

/// Whether the path below a folder is a link.
pub(super) fn is_link_below(folder: &Path, below: &Path) -> bool {
    let stat = |here: BorrowedFd<'_>, name: &OsStr| statat(here, name, AtFlags::SYMLINK_NOFOLLOW);
    let found = walk_path(folder, below, LastLink::Kept, stat);
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
}

/// The names in a folder below a folder; empty if it cannot be read.
pub(super) fn list_names(folder: &Path, below: &Path) -> Vec<String> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let listed = walk_path(folder, below, LastLink::Followed, |here, name| {
        let opened = openat(here, name, flags, Mode::empty())?;
        Dir::read_from(opened)
    });
    let entries = listed.into_iter().flatten().flatten();
    let names = entries.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
    names.filter(|name| !is_dots(name)).filter_map(|name| name.into_string().ok()).take(MAX_NAMES).collect()
}

/// Opens a folder below a folder, and creates it if requested. On Linux, its files are accessed through the open
/// folder.
pub(super) fn hold_folder(folder: &Path, below: &Path, create: bool) -> io::Result<HeldFolder> {
    let open = || {
        let opened = |here: BorrowedFd<'_>, name: &OsStr| openat(here, name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
        walk_path(folder, below, LastLink::Followed, opened)
    };
    let handle = match open() {
        Err(error) if create && error.kind() == io::ErrorKind::NotFound && below != Path::new("") => {
            hold_folder(folder, below.parent().unwrap_or(Path::new("")), true)?;
            match walk_path(folder, below, LastLink::Kept, |here, name| mkdirat(here, name, Mode::RWXU)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => open()?,
            }
        }
        opened => opened?,
    };
    let path = match cfg!(target_os = "linux") {
        true => PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd())),
        false => folder.join(below),
    };
    Ok(HeldFolder { path, _handle: Some(File::from(handle)) })
}

/// Walks to the last part of a path and passes it with its folder to `last`.
fn walk_path<T>(
    folder: &Path,
    below: &Path,
    last_link: LastLink,
    last: impl FnOnce(BorrowedFd<'_>, &OsStr) -> Result<T, Errno>,
) -> io::Result<T> {
    let top = rustix::fs::open(folder, FOLDER, Mode::empty())?;
    let mut folders: Vec<OwnedFd> = Vec::new();
    let mut ahead = Vec::new();
    prepend_parts(below, &mut ahead)?;
    let (mut links, mut hangs) = (0, false);
    let missing = |hangs: bool, error: Errno| match error {
        Errno::NOENT if hangs => dangling_link_error(),
        error => error.into(),
    };
    let name = loop {
        let Some(part) = ahead.pop() else { break OsString::from(".") };
        if part == ".." {
            folders.pop().ok_or_else(outside_path_error)?;
            continue;
        }
        let here = folders.last().unwrap_or(&top);
        if last_link == LastLink::Kept && ahead.is_empty() {
            break part;
        }
        match readlinkat(here, &part, Vec::new()) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP.into());
                }
                hangs |= ahead.is_empty();
                let target = Path::new(OsStr::from_bytes(target.as_bytes()));
                let within = match target.is_absolute() {
                    true => {
                        folders.clear();
                        target.strip_prefix(folder).map_err(|_| outside_path_error())?
                    }
                    false => target,
                };
                prepend_parts(within, &mut ahead)?;
            }
            // This part is not a link.
            Err(Errno::INVAL) if ahead.is_empty() => break part,
            Err(Errno::INVAL) => {
                let next = openat(here, &part, FOLDER | OFlags::NOFOLLOW, Mode::empty());
                folders.push(next.map_err(|error| missing(hangs, error))?);
            }
            Err(error) => return Err(missing(hangs, error)),
        }
    };
    let here = folders.last().unwrap_or(&top);
    last(here.as_fd(), &name).map_err(|error| match error {
        // A link just replaced the file.
        Errno::LOOP => outside_path_error(),
        error => missing(hangs, error),
    })
}

/// Adds the parts of a path before the remaining parts.
fn prepend_parts(path: &Path, ahead: &mut Vec<OsString>) -> io::Result<()> {
    for part in path.components().rev() {
        match part {
            Component::Normal(name) => ahead.push(name.to_owned()),
            Component::ParentDir => ahead.push("..".into()),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return Err(outside_path_error()),
        }
    }
    Ok(())
}
