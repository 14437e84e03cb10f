//! Rules that Cargo does not check: the layers of crates and modules, the size of files, and names in documents.

mod debug_forms;
mod opened_files;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use campaign_core::domain::{Channel, OperationKind};
use regex::Regex;

/// The crates in layers, from the top. A crate uses only crates of lower layers; Cargo itself would also allow others.
const CRATES: &[&[&str]] = &[
    &["campaign"],
    &["server", "editor"],
    &["runs"],
    &["engine"],
    &["sandbox"],
    &["manifest", "content", "gateway", "ledger"],
    &["core", "net"],
];

/// The crates that the sandbox may use. The sandbox shares no wire types with the client, so that one mistake cannot
/// hide on both sides. `manifest` reads scenario files. None of these crates knows the contract.
const SANDBOX_MAY_USE: [&str; 3] = ["core", "net", "manifest"];

/// The modules of a crate in layers, from the top. A module uses only modules of lower layers.
const MODULES: &[(&str, &[&[&str]])] = &[
    ("server", &[&["webhook", "scheduler", "connector", "web"]]),
    ("runs", &[&["notify", "draft"]]),
    ("engine", &[&["report"], &["delivery"], &["check"]]),
    ("content", &[&["audience", "message"]]),
    ("core", &[&["calendar", "domain", "finding", "failpoint", "private", "panics", "regular_file"]]),
    ("net", &[&["metrics", "http_client"]]),
];

/// Names of arguments, terminals and exit codes, which only the command line may use.
const COMMAND_LINE_NAMES: [&str; 9] =
    ["clap", "console", "indicatif", "ExitCode", "exit", "IsTerminal", "stdin", "stdout", "std::process"];

/// Exceptions below the command line: file, name and reason.
const ALLOWED_NAMES: [(&str, &str, &str); 9] = [
    ("crates/engine/src/report/results_file.rs", "std::process", "a temporary file is named after its process"),
    ("crates/runs/src/notify/targets.rs", "std::process", "the streams of a notification program"),
    ("crates/runs/src/notify/targets.rs", "stdin", "the standard input of a notification program"),
    ("crates/runs/src/notify/targets.rs", "stdout", "the standard output of a notification program"),
    ("crates/runs/src/fetch/command.rs", "std::process", "the streams of a program that prints a list"),
    ("crates/runs/src/fetch/command.rs", "stdin", "a program that prints a list has no input"),
    ("crates/runs/src/fetch/command.rs", "stdout", "the list that the program prints"),
    ("crates/ledger/src/sqlite/schema.rs", "exit", "a column of earlier versions that a migration removes"),
    ("crates/runs/src/tests.rs", "exit", "a method of a trace subscriber in a test"),
];

/// The paths of frozen copies in the state folder, as the code writes them.
const FROZEN_COPY_PATHS: [&str; 4] =
    ["\"frozen.json\"", "\"recipients.csv\"", "join(\"runs\")", "with_file_name(\"runs\")"];

/// The maximum number of lines of a file, without its inline tests.
const MAX_LINES: usize = 650;

pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder with the source files of a crate. The command line is `campaign`.
fn source_folder(name: &str) -> PathBuf {
    match name {
        "campaign" => repository().join("src"),
        name => repository().join("crates").join(name).join("src"),
    }
}

/// The names of the crates, including the command line.
fn crates() -> Vec<String> {
    let entries = fs::read_dir(repository().join("crates")).expect("a folder").map(|entry| entry.expect("an entry"));
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.push("campaign".to_owned());
    names
}

/// The Rust files of all crates.
pub(crate) fn source_files() -> Vec<PathBuf> {
    crates().iter().flat_map(|name| files(&source_folder(name))).collect()
}

/// The path of a file, relative to the repository.
fn relative_path(file: &Path) -> String {
    file.strip_prefix(repository()).expect("in the repository").to_string_lossy().into_owned()
}

/// The path of a file as the documents write it: relative to `crates`, without `src`.
fn document_path(file: &Path) -> String {
    relative_path(file).replacen("crates/", "", 1).replacen("/src/", "/", 1)
}

/// The Rust files in a folder and its subfolders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let rust = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    rust.chain(folders.iter().flat_map(|folder| self::files(folder))).collect()
}

/// The top-level modules in the `crate::` paths of a text, without its comments.
fn used_modules(text: &str) -> BTreeSet<String> {
    let code: String = text.lines().map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n").collect();
    let mut used = BTreeSet::new();
    for (_, path) in code.match_indices("crate::").map(|(at, path)| (at, &code[at + path.len()..])) {
        match path.strip_prefix('{') {
            Some(group) => used.extend(first_names(group)),
            None => used.extend(first_name(path)),
        }
    }
    used
}

/// The first name of a path.
fn first_name(path: &str) -> Option<String> {
    let path = path.trim_start();
    let end = path.find(|character: char| !(character.is_alphanumeric() || character == '_')).unwrap_or(path.len());
    (end > 0).then(|| path[..end].to_owned())
}

/// The first name of each path in a group. The names in nested groups are skipped.
fn first_names(group: &str) -> Vec<String> {
    let (mut depth, mut names, mut begin) = (0_usize, Vec::new(), 0);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                names.extend(first_name(&group[begin..at]));
                begin = at + 1;
                if character == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    names
}

/// Whether `user` may use `used`: only if both are the same or `used` is in a lower layer.
fn may_use(layers: &[&[&str]], user: &str, used: &str) -> bool {
    let layer = |name: &str| layers.iter().position(|layer| layer.contains(&name));
    user == used || layer(user).zip(layer(used)).is_some_and(|(user, used)| used > user)
}

/// The crates of this workspace that a crate depends on, without the dependencies of its tests.
fn dependencies(name: &str) -> Vec<String> {
    let folder = source_folder(name);
    let manifest = fs::read_to_string(folder.with_file_name("Cargo.toml")).expect("a manifest");
    let section =
        manifest.split("\n[").find_map(|section| section.strip_prefix("dependencies]")).expect("dependencies");
    let names = section.lines().filter_map(|line| line.strip_prefix("campaign-")?.split_once('.'));
    names.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn crates_use_only_lower_layers() {
    let mut broken = Vec::new();
    for user in crates().iter().filter(|name| *name != "testing") {
        let is_listed = CRATES.iter().any(|layer| layer.contains(&user.as_str()));
        assert!(is_listed, "`{user}` is in no layer; add it to `CRATES`");
        let used = dependencies(user);
        assert!(!used.is_empty() || ["core", "net"].contains(&user.as_str()), "{user}");
        let wrong = |used: &String| !may_use(CRATES, user, used);
        broken.extend(used.into_iter().filter(wrong).map(|used| format!("`{user}` uses `{used}`")));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    let used = dependencies("sandbox");
    assert!(used.iter().all(|used| SANDBOX_MAY_USE.contains(&used.as_str())), "the sandbox uses {used:?}");
}

/// The crates that `cargo tree` lists with these arguments, each with the features that it is built with.
fn features(arguments: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--offline", "--prefix", "none", "--format", "{p}|{f}|"]).args(arguments);
    let output = tree.current_dir(repository()).output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut features = BTreeMap::<String, BTreeSet<String>>::new();
    for line in String::from_utf8_lossy(&output.stdout).lines().filter(|line| !line.is_empty()) {
        let mut parts = line.split('|');
        let (name, listed) = (parts.next().expect("a crate"), parts.next().expect("its features"));
        features.entry(name.replace(" (proc-macro)", "")).or_default().insert(listed.to_owned());
    }
    features
}

#[test]
fn tests_enable_no_features_that_the_program_lacks() {
    let program = features(&["--package", "campaign", "--edges", "normal,build"]);
    let tests = features(&["--workspace", "--edges", "normal,build,dev"]);
    let is_own = |name: &str| name.starts_with("campaign v");
    let differ = |name: &&String| !is_own(name) && program[*name] != tests[*name];
    let differing: Vec<&String> = program.keys().filter(differ).collect();
    assert!(program.len() > 100, "{program:?}");
    assert!(
        differing.is_empty(),
        "`cargo test` would build these crates, and all that use them, again after `cargo run`; add the features under \
         `Not used directly` in Cargo.toml: {differing:?}"
    );
}

/// The fuzz targets are outside the workspace and have their own lock file, which no other test reads.
#[test]
fn lock_file_of_the_fuzz_targets_is_current() {
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let output = metadata.current_dir(repository()).output().expect("cargo");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("metadata");
    let lock = fs::read_to_string(repository().join("fuzz/Cargo.lock")).expect("a lock file");
    let (mut checked, mut missing) = (0, Vec::new());
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name");
        let entry = format!("name = \"{name}\"\n");
        // The fuzz targets do not use the command line and the editor.
        let Some(locked) = lock.split("[[package]]").find(|locked| locked.contains(&entry)) else { continue };
        checked += 1;
        let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
        let needed = dependencies.filter(|needed| needed["kind"] != "dev" && needed["optional"] == false);
        let needed = needed.map(|needed| needed["name"].as_str().expect("a name"));
        let is_locked = |needed: &&str| {
            [format!(" \"{needed}\","), format!(" \"{needed} ")].iter().any(|line| locked.contains(line))
        };
        missing.extend(needed.filter(|needed| !is_locked(needed)).map(|needed| format!("{name}: {needed}")));
    }
    assert!(checked >= 9, "{checked} crates");
    assert!(missing.is_empty(), "run `cargo metadata` in `fuzz/` to update its lock file: {missing:?}");
}

#[test]
fn build_scripts_share_compiled_crates_with_the_program() {
    let program = features(&["--package", "campaign", "--edges", "normal,build"]);
    let built_twice: Vec<_> = program.iter().filter(|(_, features)| features.len() > 1).map(|(name, _)| name).collect();
    let is_known =
        |name: &&&String| ["either v", "regex v", "regex-automata v"].iter().any(|known| name.starts_with(known));
    assert!(
        built_twice.iter().all(|name| is_known(&name)),
        "the first build compiles some of these crates twice; add the features to `[build-dependencies]`: {built_twice:?}"
    );
    let manifest = fs::read_to_string(repository().join("Cargo.toml")).expect("a manifest");
    let units = |profile: &str| {
        let section = manifest.split("\n[").find_map(|section| section.strip_prefix(profile)).expect("a profile");
        section.lines().find(|line| line.starts_with("codegen-units")).map(str::to_owned)
    };
    assert_eq!(units("profile.dev]"), units("profile.dev.build-override]"));
}

#[test]
fn packages_optimise_every_crate() {
    let manifest = fs::read_to_string(repository().join("Cargo.toml")).expect("a manifest");
    let levels = |profile: &str| -> BTreeMap<String, String> {
        let sections = manifest.split("\n[").filter_map(|section| section.strip_prefix(profile)?.split_once("]\n"));
        sections.map(|(package, keys)| (package.to_owned(), keys.trim().to_owned())).collect()
    };
    let (release, dist) = (levels("profile.release.package."), levels("profile.dist.package."));
    assert!(release.len() > 3 && release.values().all(|keys| keys.starts_with("opt-level = 0")), "{release:?}");
    // `dist` inherits from `release`, so it must set the level of each of these crates again.
    assert_eq!(release.keys().collect::<Vec<_>>(), dist.keys().collect::<Vec<_>>());
    assert!(dist.values().all(|keys| keys.starts_with("opt-level = 3")), "{dist:?}");
}

#[test]
fn modules_use_only_lower_layers_of_their_crate() {
    let mut broken = Vec::new();
    for (name, layers) in MODULES {
        for module in layers.iter().flat_map(|layer| layer.iter()) {
            let folder = source_folder(name).join(module);
            let file = folder.with_extension("rs");
            let files = if folder.exists() { files(&folder) } else { vec![file] };
            for file in files {
                let used = used_modules(&fs::read_to_string(&file).expect("a file"));
                let wrong = used.iter().filter(|used| !may_use(layers, module, used));
                broken.extend(wrong.map(|used| format!("{}: `{module}` uses `{used}`", relative_path(&file))));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn used_modules_are_found_in_every_path_syntax() {
    let text = "use crate::domain::{Phone, Row};\nuse crate::{gateway::{Reply, self}, ledger, report::Summary};\n\
                fn f(x: crate::message::Text) {} // crate::sandbox\npub(in crate::cli) fn g() {}\n";
    let expected = ["cli", "domain", "gateway", "ledger", "message", "report"];
    assert_eq!(used_modules(text), expected.map(str::to_owned).into());
}

#[test]
fn crate_may_use_only_itself_and_lower_layers() {
    assert!(may_use(CRATES, "campaign", "runs") && may_use(CRATES, "runs", "engine") && may_use(CRATES, "net", "net"));
    assert!(!may_use(CRATES, "engine", "runs") && !may_use(CRATES, "manifest", "content"));
    assert!(!may_use(CRATES, "sandbox", "engine") && !may_use(CRATES, "core", "net"));
    assert!(!may_use(CRATES, "runs", "nothing") && !may_use(CRATES, "nothing", "core"));
}

/// Whether a line contains a name as a whole word.
fn contains_word(line: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

#[test]
fn only_the_command_line_uses_arguments_and_terminals() {
    let mut found = Vec::new();
    for file in source_files().into_iter().filter(|file| !file.starts_with(source_folder("campaign"))) {
        let path = relative_path(&file);
        let text = fs::read_to_string(&file).expect("a file");
        if path.contains("tests/") {
            continue;
        }
        let code = without_tests(&text);
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let named = COMMAND_LINE_NAMES.iter().chain(&["tokio::signal"]).filter(|word| contains_word(line, word));
            let is_allowed = |word: &str| ALLOWED_NAMES.iter().any(|(file, named, _)| path == *file && *named == word);
            found.extend(
                named.filter(|word| !is_allowed(word)).map(|word| format!("{path}: `{word}` in {}", line.trim())),
            );
        }
    }
    assert!(found.is_empty(), "only the command line may use these:\n{}", found.join("\n"));
}

#[test]
fn only_the_file_adapter_knows_the_paths_of_frozen_copies() {
    let mut named = BTreeSet::new();
    for file in source_files().into_iter().filter(|file| !is_test(file)) {
        let text = fs::read_to_string(&file).expect("a file");
        let code = without_tests(&text);
        // The template for the list of a new campaign has the same name as a frozen copy.
        let code = code.replace("include_str!(\"recipients.csv\")", "");
        if FROZEN_COPY_PATHS.iter().any(|name| code.contains(name)) {
            named.insert(relative_path(&file));
        }
    }
    assert_eq!(named, ["crates/ledger/src/sqlite/copies.rs".to_owned()].into(), "copies are opened through the ledger");
}

#[test]
fn files_named_in_architecture_and_contributing_exist() {
    let repository = repository();
    let files: Vec<PathBuf> =
        ["src", "crates", "tests", "benches"].iter().flat_map(|name| files(&repository.join(name))).collect();
    let exists =
        |name: &str| files.iter().any(|path| path.ends_with(name) || Path::new(&document_path(path)).ends_with(name));
    let mut named = 0;
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(repository.join(document)).expect("a document");
        // Every second part of the split text was within backticks.
        let names = text.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs") && !name.contains("NAME"));
        for name in names {
            named += 1;
            assert!(exists(name), "{document} names `{name}`, which does not exist");
        }
    }
    assert!(named > 50, "only {named}");
}

/// The documents with commands that run some of the tests.
const DOCUMENTS_WITH_COMMANDS: [&str; 5] = ["CONTRIBUTING.md", "AGENTS.md", "justfile", "tests/proof.py", ".ci/run"];

/// `cargo test NAME` also succeeds if no test matches NAME, so an outdated name would go unnoticed.
#[test]
fn documented_test_commands_match_at_least_one_story() {
    let mut commands = 0;
    for document in DOCUMENTS_WITH_COMMANDS {
        let text = fs::read_to_string(repository().join(document)).expect("a document");
        for line in text.lines() {
            let Some((_, rest)) = line.split_once("--test stories ") else { continue };
            let rest = rest.split(['`', '"']).next().unwrap_or_default();
            let (before, after) = rest.split_once("-- ").unwrap_or((rest, ""));
            let is_ignored = after.contains("--ignored");
            let names = before.split_whitespace().chain(after.split_whitespace());
            for name in names.filter(|name| !name.starts_with('-') && *name != "NAME" && name.parse::<u8>().is_err()) {
                let mut list = Command::new(std::env::current_exe().expect("this program"));
                list.args([name, "--list"]).args(is_ignored.then_some("--ignored"));
                let listed = String::from_utf8(list.output().expect("the list of tests").stdout).expect("text");
                commands += 1;
                assert!(listed.contains(": test\n"), "{document}: no story matches `{name}`");
            }
        }
    }
    assert!(commands > 20, "only {commands}");
}

#[test]
fn documented_test_commands_match_at_least_one_unit_test() {
    let sources: Vec<String> = files(&repository().join("crates"))
        .iter()
        .filter(|file| file.extension() == Some("rs".as_ref()))
        .map(|file| fs::read_to_string(file).expect("a file"))
        .collect();
    let mut commands = 0;
    for document in DOCUMENTS_WITH_COMMANDS {
        let text = fs::read_to_string(repository().join(document)).expect("a document");
        for (_, rest) in text.lines().filter_map(|line| line.split_once("cargo test --lib ")) {
            let filter = rest.split(['`', '"', ' ']).next().unwrap_or_default();
            if filter == "NAME" {
                continue;
            }
            let names_tests = |line: &str| {
                let name = line.trim_start();
                let is_named = ["fn ", "async fn ", "mod "].iter().any(|keyword| name.starts_with(keyword));
                is_named && name.contains(filter)
            };
            commands += 1;
            assert!(sources.iter().any(|text| text.lines().any(names_tests)), "{document}: no test matches `{filter}`");
        }
    }
    assert!(commands > 5, "only {commands}");
}

#[test]
fn functions_named_in_architecture_and_contributing_exist() {
    let repository = repository();
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let mut words: BTreeSet<String> = BTreeSet::new();
    for folder in ["src", "crates", "tests", "benches"] {
        for file in files(&repository.join(folder)).iter().filter(|file| file.extension() == Some("rs".as_ref())) {
            let text = fs::read_to_string(file).expect("a file");
            words.extend(text.split(|c| !is_word(c)).filter(|word| word.contains('_')).map(str::to_owned));
        }
    }
    // The package `yaml_serde` is used under another name.
    words.insert("yaml_serde".to_owned());
    let mut named = 0;
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md", "AGENTS.md"] {
        let text = fs::read_to_string(repository.join(document)).expect("a document");
        let names = text.split('`').skip(1).step_by(2).map(|name| name.trim_end_matches("()"));
        for name in names.filter(|name| name.contains('_') && name.chars().all(is_word)) {
            named += 1;
            assert!(words.contains(name), "{document} names `{name}`, which does not exist");
        }
    }
    assert!(named > 20, "only {named}");
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<String> = source_files()
        .into_iter()
        .map(|file| (without_tests(&fs::read_to_string(&file).expect("a file")).lines().count(), file))
        .filter(|(lines, _)| *lines > MAX_LINES)
        .map(|(lines, file)| format!("{}: {lines} lines", file.display()))
        .collect();
    assert!(long.is_empty(), "longer than {MAX_LINES} lines:\n{}", long.join("\n"));
}

/// A file without its inline test modules, which are at its end.
pub(crate) fn without_tests(text: &str) -> &str {
    static MODULE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?m)^#\[cfg\(test\)\]\n(#\[[^\n]*\n)*(pub(\([a-z]+\))? )?mod \w+ \{").expect("a pattern")
    });
    MODULE.find(text).map_or(text, |found| &text[..found.start()])
}

#[test]
fn inline_tests_are_cut_and_declared_test_modules_are_not() {
    let file = "#[cfg(test)]\nmod walk_tests;\nuse x;\n#[cfg(test)]\n#[expect(y)]\nmod more_tests {\n}\n";
    assert_eq!(without_tests(file), "#[cfg(test)]\nmod walk_tests;\nuse x;\n");
}

/// The code of a file without tests, comments and strings.
fn code(text: &str) -> String {
    // A string that continues on the next line counts as one line.
    let code = without_tests(text).replace("\\\n", " ");
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| line.split('"').step_by(2).collect::<Vec<_>>().join("\"") + "\n").collect()
}

/// Whether a file contains only tests.
fn is_test(file: &Path) -> bool {
    let mut ancestors = file.ancestors().take_while(|path| !path.ends_with("src"));
    ancestors.any(|path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let above = ["mod.rs", "lib.rs"].map(|name| fs::read_to_string(path.with_file_name(name)).unwrap_or_default());
        // Declared in `mod.rs`, or in the file next to the folder.
        let beside = path.parent().map(|folder| fs::read_to_string(folder.with_extension("rs")).unwrap_or_default());
        let declared = format!("#[cfg(test)]\nmod {name};");
        above.iter().any(|above| above.contains(&declared)) || beside.is_some_and(|beside| beside.contains(&declared))
    })
}

/// Files that contain facts about single channels. Adding a channel does not change them.
const CHANNEL_FACTS: &[(&str, &[&str])] = &[
    // Sample runs for tests.
    ("crates/testing/src/lib.rs", &["Sms", "Viber"]),
    // Commands that send a single gateway request.
    ("crates/engine/src/delivery/single.rs", &["Hlr", "CallOtp"]),
    // Tools of the connector send on one channel.
    ("crates/server/src/connector/tools/send.rs", &["Sms", "Viber", "Rcs"]),
    // Only the answer to a code call contains a code.
    ("crates/gateway/src/json_api/reply.rs", &["CallOtp"]),
    // The gateway's list of sender names might contain only SMS senders.
    ("crates/engine/src/check/rules/environment.rs", &["Sms"]),
    // Phones cannot reply to the sender name of an SMS.
    ("crates/engine/src/check/rules/opt_out_instructions.rs", &["Sms"]),
    // An account might have no route for WhatsApp.
    ("crates/sandbox/src/platform/account.rs", &["Whatsapp"]),
    // Operations that are answered immediately.
    ("crates/sandbox/src/platform/operations.rs", &["Hlr", "CallOtp"]),
    // The contract has templates for these channels, with a command each.
    ("crates/gateway/src/json_api/inquiry/account.rs", &["Sms", "Viber"]),
    ("crates/server/src/connector/methods.rs", &["Sms"]),
    ("crates/server/src/connector/tools/account.rs", &["Sms", "Viber"]),
    ("src/consent.rs", &["Sms", "Viber"]),
    ("src/gateway/mod.rs", &["Sms", "Viber"]),
    ("src/suggested.rs", &["Sms", "Viber"]),
    // A webhook reports the result of a call.
    ("crates/sandbox/src/webhooks.rs", &["Voice"]),
];

#[test]
fn new_channel_touches_the_files_that_contributing_lists() {
    let root = repository();
    let contributing = fs::read_to_string(root.join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
    let chapter =
        contributing.split("**A channel.**").nth(1).and_then(|rest| rest.split("\n**").next()).expect("its chapter");
    let numbered = chapter.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let listed: BTreeSet<&str> = numbered.filter_map(|line| line.split('`').nth(1)).collect();
    assert!((3..=8).contains(&listed.len()), "{listed:?}");
    let variants: Vec<String> = Channel::ALL.iter().map(|channel| format!("{channel:?}")).collect();
    let (mut named, mut foreign) = (BTreeSet::new(), Vec::new());
    for file in source_files().into_iter().filter(|file| !is_test(file)) {
        let code = code(&fs::read_to_string(&file).expect("a file"));
        let words: BTreeSet<&str> = code.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
        let found: Vec<&str> = variants.iter().map(String::as_str).filter(|variant| words.contains(variant)).collect();
        let path = relative_path(&file);
        let special = CHANNEL_FACTS.iter().find(|(file, _)| *file == path).map_or(&[][..], |(_, variants)| variants);
        if found.is_empty() || found.iter().all(|variant| special.contains(variant)) {
            continue;
        }
        let is_channel = path.starts_with("crates/core/src/domain/channel/") && !path.ends_with("/mod.rs");
        let path = if is_channel { CHANNEL_FILE.to_owned() } else { document_path(&file) };
        if !listed.contains(path.as_str()) {
            foreign.push(format!("{path}: {found:?}"));
        }
        named.insert(path);
    }
    assert!(foreign.is_empty(), "missing from the list in CONTRIBUTING:\n{}", foreign.join("\n"));
    let unused: Vec<&&str> = listed
        .iter()
        .filter(|file| !file.starts_with("tests/") && file.ends_with(".rs") && !named.contains(**file))
        .collect();
    assert!(unused.is_empty(), "listed in CONTRIBUTING, but without a channel: {unused:?}");
}

/// The path of a channel in CONTRIBUTING.
const CHANNEL_FILE: &str = "core/domain/channel/NAME.rs";

#[test]
fn new_rule_needs_only_an_entry_in_a_list_of_its_file() {
    let folder = source_folder("engine").join("check/rules");
    let groups = fs::read_to_string(folder.join("mod.rs")).expect("the groups");
    let mut rules = 0;
    for file in source_files() {
        let source = fs::read_to_string(&file).expect("a file");
        let text = code(&source);
        let blocks: Vec<&str> = text.split("define_rules! {").skip(1).collect();
        let builds_rule = ["error", "warning", "note"].iter().any(|form| text.contains(&format!("Rule::{form}(")));
        if file.starts_with(source_folder("core").join("finding")) || (blocks.is_empty() && !builds_rule) {
            continue;
        }
        let shown = file.display();
        assert!(
            file.parent() == Some(&folder),
            "{shown}: rules belong to `engine/check/rules` or `core/finding/rules`"
        );
        assert!(!builds_rule, "{shown}: each rule is in a list of `define_rules!`");
        let topic = file.file_stem().expect("a name").to_string_lossy().into_owned();
        for block in blocks {
            let block = block.split("\n}").next().unwrap_or_default();
            let (list, entries) = block.trim_start().split_once(':').expect("a list");
            let uses = groups.matches(&format!("{topic}::{list}")).count();
            assert_eq!(uses, 1, "{shown}: `{list}` is in one group of `mod.rs`");
            for entry in entries.lines().filter_map(|line| line.strip_suffix(" = \" {")) {
                let name = entry.rsplit(' ').next().expect("a name");
                let id = name.to_lowercase().replace('_', "-");
                assert!(
                    source.contains(&format!("{name} = \"{id}\" {{")),
                    "{shown}: `{name}` has the name of its rule"
                );
                rules += 1;
            }
        }
    }
    assert!(rules > 70, "only {rules} rules");
}

#[test]
fn every_operation_has_a_contract_request_and_response() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract");
    let pairs = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let pairs: Vec<String> = pairs.map(|pair| fs::read_to_string(pair).expect("a pair").replace(' ', "")).collect();
    for kind in OperationKind::ALL {
        let typed = format!("\"type\":\"{kind}\"");
        assert!(pairs.iter().any(|pair| pair.contains(&typed)), "no pair of tests/contract has a `{kind}`");
    }
}

#[test]
fn suggested_commands_are_built_only_with_output_command() {
    // `init`, `schema` and `sandbox` use neither a ledger nor gateways.
    const COMMANDS: [&str; 11] =
        ["check", "preview", "run", "stop", "status", "results", "reconcile", "resolve", "retry", "show", "gateway"];
    let mut found = Vec::new();
    for file in source_files() {
        let text = fs::read_to_string(&file).expect("a file");
        let code = without_tests(&text);
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            // A command with arguments can be pasted; a bare one in backticks is only mentioned.
            let is_typed = |command: &str| {
                let words = format!("campaign {command} ");
                line.split_once(&words).is_some_and(|(_, rest)| !rest.starts_with("--help"))
            };
            if line.contains('"') && COMMANDS.iter().any(|command| is_typed(command)) {
                found.push(format!("{}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "write these with `Output::command`:\n{}", found.join("\n"));
}
