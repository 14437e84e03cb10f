//! Mutation tests: patches with wrong implementations, and the tests that must fail with them.
//!
//! The first lines of a patch name its mistake and its test. A patch has no file names and no line numbers: each hunk
//! is found by its code, wherever that code is, and whitespace is ignored. So a patch still fits after code has moved.
//! Every `cargo test` checks that each patch fits and that its test exists. To check that the test fails, the crate
//! must be built once per patch: `cargo test --test stories mistakes -- --ignored`. A mistake that tests can
//! plant behind a port, such as the ledger, needs no patch. It is a variant in
//! `crates/engine/src/delivery/simulation/mistakes.rs`. README.md in this folder lists both kinds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::house::repository;

/// A planted mistake.
struct Patch {
    name: String,
    text: String,
}

/// A piece of code and its replacement.
#[derive(Default)]
struct Hunk {
    before: String,
    after: String,
}

/// A copy of the workspace for planting mistakes. All mistakes share its build folder, so that only changed crates are
/// rebuilt.
struct WorkspaceCopy {
    tree: PathBuf,
    target: PathBuf,
    /// The program with the stories, built without a mistake.
    stories: PathBuf,
}

/// A file that patches can change.
#[derive(Clone)]
struct Source {
    path: PathBuf,
    text: String,
    squashed: String,
}

/// The source files of the workspace, which patches can change.
#[derive(Clone)]
struct Sources(Vec<Source>);

impl Source {
    fn new(path: PathBuf, text: String) -> Self {
        Self { squashed: squash(&text), path, text }
    }
}

impl Patch {
    fn read_all() -> Vec<Self> {
        let entries = fs::read_dir(repository().join("tests/mistakes")).expect("the folder of the patches");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let is_patch = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "patch");
        let mut paths: Vec<PathBuf> = paths.filter(is_patch).collect();
        paths.sort();
        let name = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
        let read = |path: PathBuf| Self { name: name(&path), text: fs::read_to_string(&path).expect("a patch") };
        paths.into_iter().map(read).collect()
    }

    /// The crate of the test, or `stories`, and the test in it that must fail.
    fn test(&self) -> (&str, &str) {
        let line = self.text.lines().find_map(|line| line.strip_prefix("caught by: "));
        line.and_then(|line| line.split_once(' ')).unwrap_or_else(|| panic!("{} names no test", self.name))
    }

    fn hunks(&self) -> Vec<Hunk> {
        let mut hunks: Vec<Hunk> = Vec::new();
        for line in self.text.lines() {
            if line == "@@" {
                hunks.push(Hunk::default());
            } else if let Some(hunk) = hunks.last_mut() {
                let (mark, code) = line.split_at_checked(1).unwrap_or((" ", ""));
                if mark != "+" {
                    hunk.before.push_str(code);
                    hunk.before.push('\n');
                }
                if mark != "-" {
                    hunk.after.push_str(code);
                    hunk.after.push('\n');
                }
            }
        }
        hunks
    }
}

impl WorkspaceCopy {
    /// Copies the workspace and builds its stories without a mistake.
    fn build() -> Self {
        let target = repository().join("target/mistakes");
        let mut copy = Self { tree: target.join("tree"), target, stories: PathBuf::new() };
        copy.restore();
        let output = copy.cargo(&["test", "--test", "stories", "--no-run", "--message-format", "json"]);
        let messages = String::from_utf8_lossy(&output.stdout);
        let built = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let mut stories = built.filter(|message| message["target"]["name"] == "stories");
        let program = stories.find_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
        copy.stories = program.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        copy
    }

    /// Removes the mistakes planted so far.
    fn restore(&self) {
        copy(repository(), &self.tree);
    }

    fn cargo(&self, arguments: &[&str]) -> Output {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(arguments).current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        cargo.output().expect("cargo")
    }

    /// The file that the first hunk of a patch changes.
    fn first_file_of(&self, patch: &Patch) -> PathBuf {
        let sources = Sources::read(&self.tree);
        let position = patch.hunks().first().map(|hunk| sources.locate(hunk));
        let (index, _) = position.expect("a hunk").unwrap_or_else(|problem| panic!("{}: {problem}", patch.name));
        sources.0[index].path.clone()
    }

    /// Plants the mistake and runs its test. Returns the output if the test does not fail.
    #[expect(clippy::print_stderr, reason = "the run is slow, and `--nocapture` shows its progress")]
    fn test(&self, patch: &Patch) -> Option<String> {
        self.restore();
        let mut sources = Sources::read(&self.tree);
        sources.apply_all(&patch.hunks()).unwrap_or_else(|problem| panic!("{}: {problem}", patch.name));
        sources.write();
        let (binary, test) = patch.test();
        let failure = format!("test {test} ... FAILED");
        let caught = |output: &Output| String::from_utf8_lossy(&output.stdout).contains(&failure);
        // Most stories only start the program, so the stories built without the mistake can test it.
        let mut output = (binary == "stories").then(|| self.run_story(test)).flatten();
        if !output.as_ref().is_some_and(caught) {
            let package = if binary == "campaign" { binary.to_owned() } else { format!("campaign-{binary}") };
            let kind: &[&str] = if binary == "stories" { &["--test", "stories"] } else { &["--lib", "-p", &package] };
            output = Some(self.cargo(&[&["test"], kind, &["--", "--exact", test]].concat()));
        }
        let output = output.expect("an output");
        let [printed, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        let result = match errors.contains("error: could not compile") {
            true => "does not compile",
            false if caught(&output) => "caught",
            false => "not caught",
        };
        eprintln!("{}: {result}", patch.name);
        (result != "caught").then(|| format!("{}: {result} ({test})\n{printed}\n{errors}", patch.name))
    }

    /// Builds only the program, and runs a story. Returns `None` if the program does not compile.
    fn run_story(&self, test: &str) -> Option<Output> {
        let built = self.cargo(&["build", "--bins", "--features", "failpoints"]);
        let mut story = Command::new(&self.stories);
        story.args(["--exact", test]).current_dir(&self.tree);
        built.status.success().then(|| story.output().expect("the stories"))
    }
}

impl Sources {
    fn read(root: &Path) -> Self {
        let mut sources = Self(Vec::new());
        sources.add_folder(&root.join("src"));
        sources.add_folder(&root.join("crates"));
        sources
    }

    fn add_folder(&mut self, folder: &Path) {
        for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                self.add_folder(&path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                self.0.push(Source::new(path, text));
            }
        }
    }

    /// The index of the file that contains the code of a hunk, and the position in its squashed text.
    fn locate(&self, hunk: &Hunk) -> Result<(usize, usize), String> {
        let pattern = squash(&hunk.before);
        let positions = |(index, source): (usize, &Source)| {
            source.squashed.match_indices(&pattern).map(|(at, _)| (index, at)).collect::<Vec<_>>()
        };
        let found: Vec<_> = self.0.iter().enumerate().flat_map(positions).collect();
        match found[..] {
            [position] => Ok(position),
            _ => Err(format!("found {} times, expected once:\n{}", found.len(), hunk.before)),
        }
    }

    /// Replaces the code of a hunk.
    fn apply(&mut self, hunk: &Hunk) -> Result<(), String> {
        let (index, at) = self.locate(hunk)?;
        let Source { path, text, .. } = &mut self.0[index];
        let range = unsquashed_range(text, at, squash(&hunk.before).len());
        text.replace_range(range, hunk.after.trim());
        self.0[index] = Source::new(std::mem::take(path), std::mem::take(text));
        Ok(())
    }

    /// Applies hunks in order, so that a later hunk cannot match code that an earlier one replaced.
    fn apply_all(&mut self, hunks: &[Hunk]) -> Result<(), String> {
        hunks.iter().try_for_each(|hunk| self.apply(hunk))
    }

    fn write(&self) {
        for Source { path, text, .. } in &self.0 {
            if fs::read_to_string(path).is_ok_and(|old| old != *text) {
                fs::write(path, text).expect("a file");
            }
        }
    }
}

/// Code without whitespace.
fn squash(code: &str) -> String {
    code.chars().filter(|character| !character.is_whitespace()).collect()
}

/// The range of a text that corresponds to `length` bytes of its squashed form, starting at `at`.
fn unsquashed_range(text: &str, at: usize, length: usize) -> std::ops::Range<usize> {
    let mut bytes = 0;
    let mut begin = 0;
    for (index, character) in text.char_indices().filter(|(_, character)| !character.is_whitespace()) {
        if bytes == at {
            begin = index;
        }
        bytes += character.len_utf8();
        if bytes == at + length {
            return begin..index + character.len_utf8();
        }
    }
    begin..text.len()
}

#[test]
fn hunk_matches_code_regardless_of_whitespace() {
    let hunk = Hunk { before: "  a(b,\n  c)\n".into(), after: "  a(c)\n".into() };
    let source = |text: &str| Sources(vec![Source::new(PathBuf::new(), text.to_owned())]);
    let mut once = source("ä\nfn f() {\n    a( b, c );\n}\n");
    once.apply(&hunk).expect("it fits");
    assert_eq!(once.0[0].text, "ä\nfn f() {\n    a(c);\n}\n");
    assert!(source("a(b)").apply(&hunk).is_err_and(|problem| problem.starts_with("found 0 times")));
    assert!(source("a(b, c); a(b, c)").apply(&hunk).is_err_and(|problem| problem.starts_with("found 2 times")));
}

#[test]
fn every_patch_applies_and_names_an_existing_test() {
    let patches = Patch::read_all();
    assert!(patches.len() >= 17, "{} patches", patches.len());
    let sources = Sources::read(repository());
    let mut problems = Vec::new();
    for patch in patches {
        let hunks = patch.hunks();
        assert!(!hunks.is_empty(), "{} changes nothing", patch.name);
        let applied = match &hunks[..] {
            [hunk] => sources.locate(hunk).map(drop),
            hunks => sources.clone().apply_all(hunks),
        };
        problems.extend(applied.err().map(|problem| format!("{}: {problem}", patch.name)));
        let (binary, test) = patch.test();
        let name = test.rsplit("::").next().expect("a name");
        let folder = match binary {
            "stories" => repository().join("tests"),
            "campaign" => repository().join("src"),
            name => repository().join("crates").join(name).join("src"),
        };
        // A test of the conformance suite is generic over the ledger.
        let exists = ["(", "<"].iter().any(|opening| any_file_contains(&folder, &format!("fn {name}{opening}")));
        if !exists {
            problems.push(format!("{}: test `{test}` not found", patch.name));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn readme_names_only_existing_tests() {
    let readme = fs::read_to_string(repository().join("tests/mistakes/README.md")).expect("the page");
    let mut sources = Sources::read(repository());
    sources.add_folder(&repository().join("tests"));
    let names = readme.split('`').skip(1).step_by(2).filter_map(|quoted| Some(quoted.rsplit_once("::")?.1));
    let is_defined = |name: &str| {
        let definitions = [format!("fn {name}"), format!("mod {name}")];
        sources.0.iter().any(|source| definitions.iter().any(|definition| source.text.contains(definition)))
    };
    let missing: Vec<&str> = names.filter(|name| !is_defined(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Whether any Rust file in a folder and its subfolders contains a text.
fn any_file_contains(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).any(|path| {
        if path.is_dir() {
            return any_file_contains(&path, text);
        }
        let rust = path.extension().is_some_and(|extension| extension == "rs");
        rust && fs::read_to_string(&path).expect("a file").contains(text)
    })
}

/// `MISTAKE=approval,retry` selects the patches whose names contain one of these words.
#[test]
#[ignore = "builds the workspace once per mistake: cargo test --test stories mistakes -- --ignored"]
fn every_patch_is_caught_by_its_test() {
    let mut patches = Patch::read_all();
    if let Ok(words) = std::env::var("MISTAKE") {
        patches.retain(|patch| words.split(',').any(|word| patch.name.contains(word)));
    }
    assert!(!patches.is_empty(), "no patch has this name");
    let workspace = WorkspaceCopy::build();
    // Patches of neighbouring files with tests in the same binary follow one another, so that less is rebuilt.
    patches.sort_by_cached_key(|patch| (patch.test().0.to_owned(), workspace.first_file_of(patch)));
    let missed: Vec<String> = patches.iter().filter_map(|patch| workspace.test(patch)).collect();
    assert!(missed.is_empty(), "{} of {} were not caught:\n{}", missed.len(), patches.len(), missed.join("\n"));
}

/// Copies the files that a build needs. Identical files are not touched, so that only changed code is rebuilt.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let (path, name) = (entry.path(), entry.file_name());
        let target = to.join(&name);
        if path.is_dir() {
            if name != "target" && name != ".git" {
                copy(&path, &target);
            }
            continue;
        }
        let is_equal = fs::read(&target).is_ok_and(|existing| existing == fs::read(&path).expect("a file"));
        if !is_equal {
            fs::copy(&path, &target).expect("a copy");
        }
    }
}
