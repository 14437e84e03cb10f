//! The same on systems where a file cannot be opened from the handle of its folder: the whole path is resolved, compared and
//! then opened without its links. A link that is put in place in between is not noticed.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{HeldFolder, dangling, is_dots, outside_error};

/// The most names of a folder that suggestions are made from.
const MOST_NAMES: usize = 1_000;

/// Opens what stands at a path below a folder.
pub(super) fn open(folder: &Path, below: &Path) -> io::Result<File> {
    File::open(real(folder, below)?)
}

/// Resolves a path and opens nothing.
pub(super) fn look(folder: &Path, below: &Path) -> io::Result<()> {
    real(folder, below).map(drop)
}

/// Resolves a folder below a folder, and creates it if requested.
pub(super) fn hold(folder: &Path, below: &Path, create: bool) -> io::Result<HeldFolder> {
    if create {
        fs::create_dir_all(folder.join(below))?;
    }
    Ok(HeldFolder { path: real(folder, below)?, _handle: None })
}

/// Whether something stands at a path below a folder.
pub(super) fn exists(folder: &Path, below: &Path) -> bool {
    real(folder, below).is_ok()
}

/// Whether a link stands at a path below a folder.
pub(super) fn is_link(folder: &Path, below: &Path) -> bool {
    folder.join(below).is_symlink()
}

/// The names of what stands in a folder below a folder; none if it cannot be read.
pub(super) fn names(folder: &Path, below: &Path) -> Vec<String> {
    let entries = real(folder, below).and_then(fs::read_dir).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name()).filter(|name| !is_dots(name));
    names.filter_map(|name| name.into_string().ok()).take(MOST_NAMES).collect()
}

fn real(folder: &Path, below: &Path) -> io::Result<PathBuf> {
    let path = folder.join(below);
    match path.canonicalize() {
        Ok(real) if real.starts_with(folder) => Ok(real),
        Ok(_) => Err(outside_error()),
        // What a link leads to is not said, whether it is there or not.
        Err(error) if error.kind() == ErrorKind::NotFound && path.is_symlink() => {
            let target = fs::read_link(&path)?;
            if target.is_relative() && target.components().all(|part| part.as_os_str() != "..") {
                return Err(dangling());
            }
            Err(outside_error())
        }
        Err(error) => Err(error),
    }
}
