//! Path resolution for systems that cannot open a file relative to the handle of its folder: the whole path is
//! resolved, compared and then opened without its links. A link that appears in between is not noticed.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{HeldFolder, dangling_link_error, is_dots, outside_path_error};

/// The maximum number of names that suggestions are made from.
const MAX_NAMES: usize = 1_000;

/// Opens the path below a folder.
pub(super) fn open_below(folder: &Path, below: &Path) -> io::Result<File> {
    File::open(resolve_real_path(folder, below)?)
}

/// Resolves a path without opening it.
pub(super) fn check_path(folder: &Path, below: &Path) -> io::Result<()> {
    resolve_real_path(folder, below).map(drop)
}

/// Resolves a folder below a folder, and creates it if requested.
pub(super) fn hold_folder(folder: &Path, below: &Path, create: bool) -> io::Result<HeldFolder> {
    if create {
        fs::create_dir_all(folder.join(below))?;
    }
    Ok(HeldFolder { path: resolve_real_path(folder, below)?, _handle: None })
}

/// Whether the path below a folder exists.
pub(super) fn exists_below(folder: &Path, below: &Path) -> bool {
    resolve_real_path(folder, below).is_ok()
}

/// Whether the path below a folder is a link.
pub(super) fn is_link_below(folder: &Path, below: &Path) -> bool {
    folder.join(below).is_symlink()
}

/// The names in a folder below a folder; empty if it cannot be read.
pub(super) fn list_names(folder: &Path, below: &Path) -> Vec<String> {
    let entries = resolve_real_path(folder, below).and_then(fs::read_dir).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name()).filter(|name| !is_dots(name));
    names.filter_map(|name| name.into_string().ok()).take(MAX_NAMES).collect()
}

fn resolve_real_path(folder: &Path, below: &Path) -> io::Result<PathBuf> {
    let path = folder.join(below);
    match path.canonicalize() {
        Ok(real) if real.starts_with(folder) => Ok(real),
        Ok(_) => Err(outside_path_error()),
        // The target of a link is not revealed, whether it exists or not.
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
