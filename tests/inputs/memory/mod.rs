//! Memory limits for hostile lists: a small file that expands is rejected or harmless.

mod ods;
mod text;
mod xls;
mod xlsx;
mod zip;

use std::fs;

use crate::support::{Folder, Process, campaign, in_files};

/// The memory limit of the program for any list, in KiB.
const MAX_MEMORY: u64 = 256 << 10;
/// The maximum size of a hostile file, in bytes.
const MAX_FILE_SIZE: usize = 3 << 20;

/// A campaign with this file as its list.
fn campaign_with_list(name: &str, bytes: &[u8]) -> Folder {
    assert!(bytes.len() < MAX_FILE_SIZE, "{name} has {} bytes", bytes.len());
    let folder = campaign().write();
    fs::write(folder.path(name), bytes).expect("a list");
    folder.replace("sale.yaml", "sale.csv", name);
    folder
}

/// Checks that the list is rejected with these words, in bounded memory.
#[track_caller]
fn assert_refused(name: &str, bytes: &[u8], words: &[&str]) {
    let _files = in_files();
    let folder = campaign_with_list(name, bytes);
    let (ended, memory) = Process::start(folder.command(&["check", "sale.yaml"])).finish_with_peak_memory();
    let ended = words.iter().fold(ended.exits(2), |ended, word| ended.says(word));
    assert!(memory < MAX_MEMORY, "{memory} KiB\n{}", ended.details());
}

/// Checks that the list is read and that the output has these words, in bounded memory.
#[track_caller]
fn assert_read(name: &str, bytes: &[u8], words: &[&str]) {
    let _files = in_files();
    let folder = campaign_with_list(name, bytes);
    let (ended, memory) = Process::start(folder.command(&["check", "sale.yaml"])).finish_with_peak_memory();
    let ended = words.iter().fold(ended.exits(0), |ended, word| ended.says(word));
    assert!(memory < MAX_MEMORY, "{memory} KiB\n{}", ended.details());
}
