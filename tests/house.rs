//! Rules for `src`: allowed dependencies between modules, and the size of files.

mod debug_forms;
mod opened_files;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use campaign::domain::{Channel, OperationKind};
use regex::Regex;

/// The layers, from the top. A module uses only modules of lower layers.
const LAYERS: &[&[&str]] = &[
    &["cli"],
    &["webhook", "scheduler", "connector", "web"],
    &["runs"],
    &["notify"],
    &["report"],
    &["delivery"],
    &["check", "sandbox", "draft"],
    &["manifest", "audience", "message", "gateway", "ledger"],
    &[
        "calendar",
        "domain",
        "finding",
        "net",
        "metrics",
        "failpoint",
        "private",
        "http_client",
        "panics",
        "regular_file",
    ],
];

/// The modules that the sandbox may use. It shares no wire types with the client, so that one mistake cannot hide on both
/// sides. `manifest` reads scenario files, `private` opens the journal, `net` accepts clients and `http_client` posts
/// webhooks; none of them knows the contract.
const SANDBOX_MAY_USE: &[&str] = &["domain", "finding", "manifest", "private", "net", "http_client"];

/// Names of arguments, terminals and exit codes, which only `cli` may use.
const OF_THE_COMMAND_LINE: [&str; 9] =
    ["clap", "console", "indicatif", "ExitCode", "exit", "IsTerminal", "stdin", "stdout", "std::process"];

/// Exceptions below `cli`: file, name and reason.
const NAMED_BELOW: [(&str, &str, &str); 9] = [
    ("failpoint.rs", "std::process", "a test ends the process here"),
    ("report/results.rs", "std::process", "a temporary file is named after its process"),
    ("notify/command.rs", "std::process", "the streams of a notification program"),
    ("notify/command.rs", "stdin", "the standard input of a notification program"),
    ("notify/command.rs", "stdout", "the standard output of a notification program"),
    ("runs/fetch/command.rs", "std::process", "the streams of a program that prints a list"),
    ("runs/fetch/command.rs", "stdin", "a program that prints a list has no input"),
    ("runs/fetch/command.rs", "stdout", "the list that the program prints"),
    ("ledger/sqlite/schema.rs", "exit", "a column of earlier versions that a migration removes"),
];

/// The names of the copies of runs in the state folder.
const OF_THE_COPIES: [&str; 4] =
    ["\"frozen.json\"", "\"recipients.csv\"", "join(\"runs\")", "with_file_name(\"runs\")"];

/// The most lines of a file, its inline tests aside.
const LONGEST: usize = 650;

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The Rust files in a folder and its subfolders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let rust = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    rust.chain(folders.iter().flat_map(|folder| self::files(folder))).collect()
}

/// The top module of a file; `main` or `lib` for these two files.
fn module(file: &Path) -> String {
    let within = file.strip_prefix(source()).expect("in src");
    let first = within.components().next().expect("a name").as_os_str().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// The top modules in the `crate::` paths of a text, comments aside.
fn used_modules(text: &str) -> BTreeSet<String> {
    let code: String = text.lines().map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n").collect();
    let mut used = BTreeSet::new();
    for (_, path) in code.match_indices("crate::").map(|(at, path)| (at, &code[at + path.len()..])) {
        match path.strip_prefix('{') {
            Some(group) => used.extend(names_in(group)),
            None => used.extend(name(path)),
        }
    }
    used
}

/// The first name of a path.
fn name(path: &str) -> Option<String> {
    let path = path.trim_start();
    let end = path.find(|character: char| !(character.is_alphanumeric() || character == '_')).unwrap_or(path.len());
    (end > 0).then(|| path[..end].to_owned())
}

/// The first name of each path in a group, nested groups included.
fn names_in(group: &str) -> Vec<String> {
    let (mut depth, mut names, mut begin) = (0_usize, Vec::new(), 0);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                names.extend(name(&group[begin..at]));
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

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn may_use(user: &str, used: &str) -> bool {
    let below = layer(user).zip(layer(used)).is_some_and(|(user, used)| used > user);
    user == used || (below && (user != "sandbox" || SANDBOX_MAY_USE.contains(&used)))
}

#[test]
fn modules_use_only_lower_layers() {
    let mut broken = Vec::new();
    for file in files(&source()) {
        let user = module(&file);
        if matches!(user.as_str(), "main" | "lib") {
            continue;
        }
        assert!(layer(&user).is_some(), "`{user}` is in no layer; add it to `LAYERS`");
        for used in used_modules(&fs::read_to_string(&file).expect("a file")) {
            if !may_use(&user, &used) {
                broken.push(format!("{}: `{user}` uses `{used}`", file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn layers_are_found_in_every_form_of_a_path() {
    let text = "use crate::domain::{Phone, Row};\nuse crate::{gateway::{Reply, self}, ledger, report::Summary};\n\
                fn f(x: crate::message::Text) {} // crate::sandbox\npub(in crate::cli) fn g() {}\n";
    let expected = ["cli", "domain", "gateway", "ledger", "message", "report"];
    assert_eq!(used_modules(text), expected.map(str::to_owned).into());
    assert!(
        may_use("cli", "runs") && may_use("runs", "report") && !may_use("report", "runs") && !may_use("runs", "cli")
    );
    assert!(may_use("report", "delivery") && may_use("cli", "sandbox") && may_use("sandbox", "domain"));
    assert!(!may_use("delivery", "report") && !may_use("manifest", "audience") && !may_use("sandbox", "gateway"));
    assert!(!may_use("sandbox", "check") && !may_use("check", "sandbox") && !may_use("sandbox", "message"));
    assert!(!may_use("domain", "finding") && !may_use("domain", "cli") && !may_use("check", "nothing"));
}

/// Whether a line contains a name as a whole word.
fn names_word(line: &str, word: &str) -> bool {
    let part = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !before.ends_with(part) && !after.starts_with(part)
    })
}

#[test]
fn only_the_command_line_uses_arguments_and_terminals() {
    let mut found = Vec::new();
    for file in files(&source()).into_iter().filter(|file| !matches!(module(file).as_str(), "cli" | "main" | "lib")) {
        let within = file.strip_prefix(source()).expect("in src").to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).expect("a file");
        if within.contains("tests/") {
            continue;
        }
        let code = without_tests(&text);
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let named = OF_THE_COMMAND_LINE.iter().chain(&["tokio::signal"]).filter(|word| names_word(line, word));
            let excused = |word: &str| NAMED_BELOW.iter().any(|(file, named, _)| within == *file && *named == word);
            found.extend(
                named.filter(|word| !excused(word)).map(|word| format!("{within}: `{word}` in {}", line.trim())),
            );
        }
    }
    assert!(found.is_empty(), "only `cli` may use these:\n{}", found.join("\n"));
}

#[test]
fn only_the_file_adapter_of_copies_knows_their_paths() {
    let mut named = BTreeSet::new();
    for file in files(&source()).into_iter().filter(|file| !is_test(file)) {
        let text = fs::read_to_string(&file).expect("a file");
        let code = without_tests(&text);
        // The list of a new campaign has the same name.
        let code = code.replace("include_str!(\"recipients.csv\")", "");
        if OF_THE_COPIES.iter().any(|name| code.contains(name)) {
            named.insert(file.strip_prefix(source()).expect("in src").to_string_lossy().into_owned());
        }
    }
    assert_eq!(named, ["ledger/sqlite/copies.rs".to_owned()].into(), "copies are opened through the ledger");
}

#[test]
fn files_named_in_architecture_and_contributing_exist() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let there: Vec<PathBuf> =
        ["src", "tests", "benches"].iter().flat_map(|name| files(&repository.join(name))).collect();
    let is_there = |name: &str| there.iter().any(|path| path.ends_with(name));
    let mut named = 0;
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(repository.join(document)).expect("a document");
        // Every second part is within backticks.
        let names = text.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs") && !name.contains("NAME"));
        for name in names {
            named += 1;
            assert!(is_there(name), "{document} names `{name}`, which does not exist");
        }
    }
    assert!(named > 50, "only {named}");
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<String> = files(&source())
        .into_iter()
        .map(|file| (without_tests(&fs::read_to_string(&file).expect("a file")).lines().count(), file))
        .filter(|(lines, _)| *lines > LONGEST)
        .map(|(lines, file)| format!("{}: {lines} lines", file.display()))
        .collect();
    assert!(long.is_empty(), "longer than {LONGEST} lines:\n{}", long.join("\n"));
}

/// A file without its inline test modules, which are at its end.
pub(crate) fn without_tests(text: &str) -> &str {
    let module = Regex::new(r"(?m)^#\[cfg\(test\)\]\n(#\[[^\n]*\n)*(pub(\([a-z]+\))? )?mod \w+ \{").expect("a pattern");
    module.find(text).map_or(text, |found| &text[..found.start()])
}

#[test]
fn inline_tests_are_cut_and_declared_test_modules_are_not() {
    let file = "#[cfg(test)]\nmod walk_tests;\nuse x;\n#[cfg(test)]\n#[expect(y)]\nmod more_tests {\n}\n";
    assert_eq!(without_tests(file), "#[cfg(test)]\nmod walk_tests;\nuse x;\n");
}

/// The code of a file without tests, comments and strings.
fn code(text: &str) -> String {
    let code = without_tests(text);
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| line.split('"').step_by(2).collect::<Vec<_>>().join("\"") + "\n").collect()
}

/// Whether a file contains only tests.
fn is_test(file: &Path) -> bool {
    let mut ways = file.ancestors().take_while(|way| *way != source());
    ways.any(|way| {
        let name = way.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let above = fs::read_to_string(way.with_file_name("mod.rs")).unwrap_or_default();
        // Declared in `mod.rs`, or in the file next to the folder.
        let beside = way.parent().map(|folder| fs::read_to_string(folder.with_extension("rs")).unwrap_or_default());
        let declared = format!("#[cfg(test)]\nmod {name};");
        above.contains(&declared) || beside.is_some_and(|beside| beside.contains(&declared))
    })
}

/// Files with facts about single channels, which a new channel does not touch.
const SPECIAL: &[(&str, &[&str])] = &[
    // Single gateway commands.
    ("src/delivery/single.rs", &["Hlr", "CallOtp"]),
    // Tools of the connector send on one channel.
    ("src/connector/tools/send.rs", &["Sms", "Viber", "Rcs"]),
    // Only a code call has such an answer.
    ("src/gateway/json_api/reply.rs", &["CallOtp"]),
    // The list of sender names might contain SMS senders only.
    ("src/check/rules/environment.rs", &["Sms"]),
    // An account might have no route for WhatsApp.
    ("src/sandbox/platform/account.rs", &["Whatsapp"]),
    // Operations that are answered at once.
    ("src/sandbox/platform/operations.rs", &["Hlr", "CallOtp"]),
    // A webhook reports the result of a call.
    ("src/sandbox/webhooks.rs", &["Voice"]),
];

#[test]
fn new_channel_touches_the_files_that_contributing_lists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let contributing = fs::read_to_string(root.join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
    let chapter =
        contributing.split("**A channel.**").nth(1).and_then(|rest| rest.split("\n**").next()).expect("its chapter");
    let numbered = chapter.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let listed: BTreeSet<&str> = numbered.filter_map(|line| line.split('`').nth(1)).collect();
    assert!((3..=8).contains(&listed.len()), "{listed:?}");
    let variants: Vec<String> = Channel::ALL.iter().map(|channel| format!("{channel:?}")).collect();
    let (mut named, mut foreign) = (BTreeSet::new(), Vec::new());
    for file in files(&source()).into_iter().filter(|file| !is_test(file)) {
        let code = code(&fs::read_to_string(&file).expect("a file"));
        let words: BTreeSet<&str> = code.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
        let found: Vec<&str> = variants.iter().map(String::as_str).filter(|variant| words.contains(variant)).collect();
        let path = file.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
        let special = SPECIAL.iter().find(|(file, _)| *file == path).map_or(&[][..], |(_, variants)| variants);
        if found.is_empty() || found.iter().all(|variant| special.contains(variant)) {
            continue;
        }
        let path =
            if found.len() == 1 && path.starts_with("src/domain/channel/") { CHANNEL_FILE.to_owned() } else { path };
        if !listed.contains(path.as_str()) {
            foreign.push(format!("{path}: {found:?}"));
        }
        named.insert(path);
    }
    assert!(foreign.is_empty(), "missing in the list of CONTRIBUTING:\n{}", foreign.join("\n"));
    let idle: Vec<&&str> = listed.iter().filter(|file| file.starts_with("src/") && !named.contains(**file)).collect();
    assert!(idle.is_empty(), "listed in CONTRIBUTING, but without a channel: {idle:?}");
}

/// The path of a channel in CONTRIBUTING.
const CHANNEL_FILE: &str = "src/domain/channel/NAME.rs";

#[test]
fn new_rule_is_a_static_and_a_line_in_the_list() {
    let folder = source().join("check/rules");
    let list = fs::read_to_string(folder.join("mod.rs")).expect("the list");
    let mut rules = 0;
    for file in files(&source()) {
        let text = code(&fs::read_to_string(&file).expect("a file"));
        let made = ["error", "warning", "note"]
            .iter()
            .map(|form| text.matches(&format!("Rule::{form}(")).count())
            .sum::<usize>();
        if file.starts_with(source().join("finding")) || made == 0 {
            continue;
        }
        let shown = file.display();
        assert!(file.parent() == Some(&folder), "{shown}: rules belong to `check/rules` or `finding/rules`");
        let topic = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let whole = fs::read_to_string(&file).expect("a file");
        let statics = text.split("static ").skip(1).filter_map(|rest| Some(rest.split_once(": Rule =")?.0));
        let names: Vec<&str> = statics.filter(|name| !name.contains(char::is_whitespace)).collect();
        assert_eq!(names.len(), made, "{shown}: each rule is a static");
        for name in names {
            assert!(list.contains(&format!("&{topic}::{name}")), "`{name}` is in no list of check/rules/mod.rs");
            let id = format!("\"{}\"", name.to_lowercase().replace('_', "-"));
            assert!(whole.contains(&id), "{shown}: the static `{name}` has the name of its rule, {id}");
            rules += 1;
        }
    }
    let is_static = |name: &str| name.starts_with(|c: char| c.is_ascii_uppercase());
    let is_line =
        |rest: &&str| rest.split_once("::").is_some_and(|(topic, name)| !topic.contains(' ') && is_static(name));
    assert_eq!(rules, list.split('&').filter(is_line).count(), "each rule is in one list");
}

#[test]
fn every_operation_has_a_pair_of_request_and_answer() {
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
    // `init`, `schema` and `sandbox` have neither ledger nor gateways.
    const COMMANDS: [&str; 11] =
        ["check", "preview", "run", "stop", "status", "results", "reconcile", "resolve", "retry", "show", "gateway"];
    let mut found = Vec::new();
    for file in files(&source()) {
        let text = fs::read_to_string(&file).expect("a file");
        let code = without_tests(&text);
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            // A command with arguments can be pasted; a bare one in backticks is only mentioned.
            let typed = |command: &str| {
                let words = format!("campaign {command} ");
                line.split_once(&words).is_some_and(|(_, rest)| !rest.starts_with("--help"))
            };
            if line.contains('"') && COMMANDS.iter().any(|command| typed(command)) {
                found.push(format!("{}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "write these with `Output::command`:\n{}", found.join("\n"));
}
