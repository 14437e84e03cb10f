//! Known inputs of the fuzz targets: seeds, inputs from earlier searches, and inputs that once broke a property.

#[path = "../fuzz/targets/mod.rs"]
mod targets;

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use targets::TARGETS;

/// The maximum total size of all corpora.
const MAX_BYTES: u64 = 1 << 20;

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// The files of a target; empty if its folder does not exist.
fn list_inputs(folder: &str, target: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(fuzz_folder().join(folder).join(target)) else { return Vec::new() };
    let mut inputs: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    inputs.sort();
    inputs
}

#[test]
fn fuzz_target_properties_hold_for_all_known_inputs() {
    let mut broken = Vec::new();
    for target in &TARGETS {
        let inputs = [list_inputs("corpus", target.name), list_inputs("crashes", target.name)].concat();
        assert!(!inputs.is_empty(), "{} has no inputs", target.name);
        for input in inputs {
            let bytes = fs::read(&input).expect("an input");
            if catch_unwind(|| (target.check)(&bytes)).is_err() {
                broken.push(input);
            }
        }
    }
    assert!(broken.is_empty(), "the property of the target does not hold for {broken:?}");
}

#[test]
fn every_corpus_has_a_target_and_total_size_is_limited() {
    let names: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    let folders = fs::read_dir(fuzz_folder().join("corpus")).expect("corpora");
    let folders: BTreeSet<String> =
        folders.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(folders, names);
    let inputs = TARGETS.iter().flat_map(|target| list_inputs("corpus", target.name));
    let bytes: u64 = inputs.map(|input| input.metadata().expect("a file").len()).sum();
    assert!(bytes <= MAX_BYTES, "the corpora have {bytes} bytes");
}
