//! Small lists that would fill the memory are refused with a finding, or harmless.

mod ods;
mod text;
mod xls;
mod xlsx;
mod zip;

use std::fs;

use crate::support::{Folder, Process, campaign, in_files};

/// The most memory that the program may take for any list, in KiB.
const MOST_MEMORY: u64 = 256 << 10;
/// The most bytes of a hostile file.
const SMALL: usize = 3 << 20;

/// A campaign with that file as its list.
fn with_list(name: &str, bytes: &[u8]) -> Folder {
    assert!(bytes.len() < SMALL, "{name} has {} bytes", bytes.len());
    let folder = campaign().write();
    fs::write(folder.path(name), bytes).expect("a list");
    folder.replace("sale.yaml", "sale.csv", name);
    folder
}

/// Checks a campaign with that list, which is refused with these words, and in bounded memory.
#[track_caller]
fn is_refused(name: &str, bytes: &[u8], words: &[&str]) {
    let _files = in_files();
    let folder = with_list(name, bytes);
    let (ended, memory) = Process::start(folder.command(&["check", "sale.yaml"])).finish_measured();
    let ended = words.iter().fold(ended.exits(2), |ended, word| ended.says(word));
    assert!(memory < MOST_MEMORY, "{memory} KiB\n{}", ended.told());
}

/// The same of a list that is read.
#[track_caller]
fn is_read(name: &str, bytes: &[u8], words: &[&str]) {
    let _files = in_files();
    let folder = with_list(name, bytes);
    let (ended, memory) = Process::start(folder.command(&["check", "sale.yaml"])).finish_measured();
    let ended = words.iter().fold(ended.exits(0), |ended, word| ended.says(word));
    assert!(memory < MOST_MEMORY, "{memory} KiB\n{}", ended.told());
}
