//! Wrong implementations as patches, and the tests that have to fail with them.
//!
//! A patch names its mistake and its test in its first lines. That it still fits, and that its test is still there, is
//! looked at in every `cargo test`; that the test fails with it needs a build for each and is asked for by
//! `cargo test --test stories mistakes -- --ignored`. Mistakes that a port can make need no patch: they are in
//! `src/delivery/simulation/mistakes.rs`, and README.md here lists both.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One patch.
struct Patch {
    path: PathBuf,
    text: String,
}

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

impl Patch {
    fn all() -> Vec<Self> {
        let entries = fs::read_dir(crate_folder().join("tests/mistakes")).expect("the folder of the patches");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let mut paths: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|end| end == "patch")).collect();
        paths.sort();
        let read = |path: PathBuf| Self { text: fs::read_to_string(&path).expect("a patch"), path };
        paths.into_iter().map(read).collect()
    }

    fn name(&self) -> String {
        self.path.file_stem().expect("a name").to_string_lossy().into_owned()
    }

    /// The binary of tests, `lib` or `stories`, and the test in it.
    fn test(&self) -> (&str, &str) {
        let told = self.text.lines().find_map(|line| line.strip_prefix("caught by: "));
        told.and_then(|told| told.split_once(' ')).unwrap_or_else(|| panic!("{} names no test", self.name()))
    }

    /// For each file the passages that the patch expects in it.
    fn expected(&self) -> BTreeMap<&str, Vec<String>> {
        let mut expected: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut file = "";
        for line in self.text.lines() {
            if let Some(path) = line.strip_prefix("--- a/") {
                file = path;
            } else if line.starts_with("@@") {
                expected.entry(file).or_default().push(String::new());
            } else if let Some(passage) = expected.get_mut(file).and_then(|passages| passages.last_mut())
                && let Some(kept) = line.strip_prefix(' ').or_else(|| line.strip_prefix('-'))
                && !line.starts_with("---")
            {
                passage.push_str(kept);
                passage.push('\n');
            }
        }
        expected
    }

    /// Plants the mistake in a copy of the crate and runs its test; tells what was said where that did not fail, or could not be built.
    #[expect(clippy::print_stderr, reason = "all of them take long, and `--nocapture` shows how far they are")]
    fn missed(&self) -> Option<String> {
        // One folder for all of them, so that what they have in common is built once, and stays for the next time.
        let target = crate_folder().join("target/mistakes");
        let tree = target.join("tree");
        copy(crate_folder(), &tree);
        let mut apply = Command::new("patch");
        apply.args(["--strip=1", "--quiet", "--input"]).arg(&self.path).current_dir(&tree);
        assert!(apply.status().expect("`patch` is installed").success(), "{} does not apply", self.name());
        let (binary, test) = self.test();
        let kind: &[&str] = if binary == "lib" { &["--lib"] } else { &["--test", "stories"] };
        let mut cargo = Command::new(env!("CARGO"));
        cargo.arg("test").args(kind).args(["--", "--exact", test]).current_dir(&tree);
        let told = cargo.env("CARGO_TARGET_DIR", &target).output().expect("cargo");
        let said = String::from_utf8_lossy(&told.stdout);
        let error = String::from_utf8_lossy(&told.stderr);
        let caught = said.contains(&format!("test {test} ... FAILED"));
        eprintln!("{}: {}", self.name(), if caught { "caught" } else { "not caught" });
        (!caught).then(|| format!("{} is not caught by {test}:\n{said}\n{error}", self.name()))
    }
}

#[test]
fn every_mistake_still_fits_the_code_and_its_test_is_there() {
    let patches = Patch::all();
    assert!(patches.len() >= 17, "{} patches", patches.len());
    for patch in patches {
        let expected = patch.expected();
        assert!(!expected.is_empty(), "{} changes nothing", patch.name());
        for (file, passages) in expected {
            let text = fs::read_to_string(crate_folder().join(file)).expect("a file that the patch changes");
            for passage in passages {
                assert!(text.contains(&passage), "{} does not fit {file} any more:\n{passage}", patch.name());
            }
        }
        let (binary, test) = patch.test();
        let name = test.rsplit("::").next().expect("a name");
        let folder = crate_folder().join(if binary == "lib" { "src" } else { "tests" });
        // A promise of every ledger is generic over it.
        let is_there = ["(", "<"].iter().any(|opening| holds(&folder, &format!("fn {name}{opening}")));
        assert!(is_there, "{}: there is no test `{test}`", patch.name());
    }
}

/// Whether a Rust file below a folder holds a text.
fn holds(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).any(|path| {
        if path.is_dir() {
            return holds(&path, text);
        }
        let rust = path.extension().is_some_and(|extension| extension == "rs");
        rust && fs::read_to_string(&path).expect("a file").contains(text)
    })
}

#[test]
#[ignore = "builds the crate once per mistake: cargo test --test stories mistakes -- --ignored"]
fn every_mistake_is_caught_by_its_test() {
    let mut patches = Patch::all();
    // Those of one binary after each other, so that less is built anew.
    patches.sort_by_key(|patch| patch.test().0 == "lib");
    let missed: Vec<String> = patches.iter().filter_map(Patch::missed).collect();
    assert!(missed.is_empty(), "{} of {} were not caught:\n{}", missed.len(), patches.len(), missed.join("\n"));
}

/// Makes a folder what a build needs; what it has already is not touched, so that no more is built anew than what differs.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let (path, name) = (entry.path(), entry.file_name());
        let copied = to.join(&name);
        if path.is_dir() {
            if name != "target" && name != ".git" {
                copy(&path, &copied);
            }
            continue;
        }
        let is_same = fs::read(&copied).is_ok_and(|there| there == fs::read(&path).expect("a file"));
        if !is_same {
            fs::copy(&path, &copied).expect("a copy");
        }
    }
}
