//! Personal data of recipients: found in all runs, and forgotten on request.

mod finding;
mod forgetting;
mod purging;

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Finished, Folder, phone};

/// The number of a row in international format.
fn number(row: usize) -> String {
    format!("+{}", phone(row))
}

/// The output of `find` for the number of a row.
fn find(folder: &Folder, row: usize) -> Finished {
    folder.campaign(&["find", &number(row), "--json"])
}

/// The files in a folder, recursively.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The number of a row as text, as a SQLite integer, and as a packed varint.
fn spellings(row: usize) -> Vec<Vec<u8>> {
    let digits = phone(row);
    let mut packed = Vec::new();
    let mut rest = digits;
    while rest >= 128 {
        packed.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    packed.push(rest as u8);
    vec![digits.to_string().into_bytes(), digits.to_be_bytes()[2..].to_vec(), packed]
}

/// The files that contain any of these byte strings.
fn files_containing(files: Vec<PathBuf>, needles: &[Vec<u8>]) -> Vec<String> {
    let has = |path: &PathBuf| {
        let bytes = fs::read(path).expect("a file");
        needles.iter().any(|needle| bytes.windows(needle.len()).any(|window| window == needle))
    };
    files.into_iter().filter(has).map(|path| path.display().to_string()).collect()
}
