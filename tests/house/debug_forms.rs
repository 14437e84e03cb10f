//! `Debug` output: messages to users contain none, and implementations use the names of their types.

use std::fs;

use regex::Regex;

use super::{is_test, relative_path, source_files, without_tests};

/// Files that use `Debug` formatting to quote a string.
const ALLOWED: [(&str, &str); 6] = [
    ("crates/manifest/src/resolve/texts.rs", "a header in quotes, as YAML writes it"),
    ("crates/manifest/src/resolve/recipients.rs", "a header in quotes, as YAML writes it"),
    ("crates/content/src/audience/columns.rs", "a header in quotes, as YAML writes it"),
    ("crates/content/src/audience/list_findings.rs", "a sheet in quotes, as YAML writes it"),
    ("crates/runs/src/inputs.rs", "a sheet in quotes, as YAML writes it"),
    ("crates/engine/src/check/rules/cell_values.rs", "a column in quotes, as a text writes it"),
];

#[test]
fn messages_use_no_debug_formatting() {
    let mut found = Vec::new();
    for file in source_files().into_iter().filter(|file| !is_test(file)) {
        let path = relative_path(&file);
        if ALLOWED.iter().any(|(allowed, _)| *allowed == path) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a file");
        let code = without_tests(&text);
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let is_assertion = |line: &&str| line.contains("assert") || line.contains("panic!");
        let shown = lines.filter(|line| line.contains(":?}") && !is_assertion(line));
        found.extend(shown.map(|line| format!("{path}: {}", line.trim())));
    }
    assert!(found.is_empty(), "a message uses Debug formatting; use Display:\n{}", found.join("\n"));
}

#[test]
fn debug_names_match_a_type_in_the_same_file() {
    let debug_name = Regex::new(r#"debug_(?:struct|tuple)\("(\w+)"\)"#).expect("a pattern");
    let mut wrong = Vec::new();
    for file in source_files() {
        let text = fs::read_to_string(&file).expect("a file");
        for found in debug_name.captures_iter(&text) {
            let name = &found[1];
            let is_defined = ["struct", "enum"].iter().any(|kind| text.contains(&format!("{kind} {name}")));
            if !is_defined {
                wrong.push(format!("{}: {name}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "these types are not in their file:\n{}", wrong.join("\n"));
}
