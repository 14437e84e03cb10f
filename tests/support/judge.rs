//! The independent judge: `tests/judge`, a Python program that shares no code with the product. It compares what a
//! gateway received with results files.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use super::Folder;

/// The Python interpreter for the judge. `None` without Python 3.11 or newer, because only Rust is required.
fn python() -> Option<&'static str> {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let is_new_enough = || {
        let check = ["-c", "import sys; sys.exit(sys.version_info < (3, 11))"];
        Command::new("python3").args(check).status().is_ok_and(|status| status.success())
    };
    FOUND.get_or_init(is_new_enough).then_some("python3")
}

/// Fails unless the judge finds that the results of a campaign agree with the journal of a gateway.
#[track_caller]
pub(crate) fn judge_results(sale: &Folder, journal: &Path) {
    judge_results_in(&sale.path("results"), journal);
}

/// Fails unless the judge finds that the results files in this folder agree with the journal of a gateway.
#[track_caller]
pub(crate) fn judge_results_in(folder: &Path, journal: &Path) {
    let Some(python) = python() else { return };
    let mut judge = Command::new(python);
    judge.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/judge/judge.py"));
    let results = fs::read_dir(folder).expect("a folder with results");
    let results = results.map(|entry| entry.expect("an entry").path());
    judge.args(results.filter(|path| is_results_file(path)));
    judge.arg("--journal").arg(journal).args(["--exclusive", "--show-numbers"]);
    let output = judge.output().expect("the judge");
    let (verdict, problem) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "the judge disagrees:\n{verdict}{problem}");
}

/// Whether a file has the rows of a run in the format for programs.
fn is_results_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".csv") && !name.ends_with(".people.csv") && !name.contains(".excel")
}

#[test]
fn judge_passes_its_own_tests() {
    let Some(python) = python() else { return };
    let mut tests = Command::new(python);
    tests.args(["-m", "unittest", "discover", "tests/judge"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = tests.output().expect("the tests of the judge");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
