//! What is kept of a person: found in all runs, forgotten when somebody asks for it.

mod finding;
mod forgetting;
mod purging;

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Finished, Folder, phone};

/// The number of a row as people write it.
fn number(row: usize) -> String {
    format!("+{}", phone(row))
}

/// What `find` tells of the number of a row.
fn find(folder: &Folder, row: usize) -> Finished {
    folder.campaign(&["find", &number(row), "--json"])
}

/// The files under a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The number of a row as text, as SQLite has a number, and as packed records have it.
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

/// Those of these files that hold any of these.
fn with_any(files: Vec<PathBuf>, needles: &[Vec<u8>]) -> Vec<String> {
    let has = |path: &PathBuf| {
        let bytes = fs::read(path).expect("a file");
        needles.iter().any(|needle| bytes.windows(needle.len()).any(|window| window == needle))
    };
    files.into_iter().filter(has).map(|path| path.display().to_string()).collect()
}
