//! Tests of the YAML reader: comparison with another reader, and malformed files.

mod comparison;
mod fuzz;
mod random;

use std::path::{Path, PathBuf};
use std::{env, fs};

use super::*;
use crate::document::FindingCollector;
use campaign_core::finding::{Finding, SourceText};

/// The tree and the findings of a text.
fn parse_text(text: &str) -> (Option<Node>, Vec<Finding>) {
    let mut report = FindingCollector::new(&SourceText::new("a.yaml", text));
    let node = read_tree(&mut report);
    let findings = report.into_findings();
    (node.filter(|_| !findings.iter().any(Finding::is_error)), findings)
}

/// The YAML files of the repository.
fn list_yaml_files() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    collect_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), &mut files);
    assert!(files.len() >= 12, "{} files", files.len());
    files
}

fn collect_files(folder: &Path, files: &mut Vec<(PathBuf, String)>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Files that are broken on purpose need not be YAML.
        if path.is_dir() && name != "target" && name != "spoilt" && !name.starts_with('.') {
            collect_files(&path, files);
        } else if name.ends_with(".yaml") {
            let text = fs::read_to_string(&path).unwrap();
            files.push((path, text));
        }
    }
}

#[test]
fn aliases_that_repeat_a_long_value_are_refused() {
    let file = |aliases: usize| {
        let repeated: String = (0..aliases).map(|number| format!("b{number}: *a\n")).collect();
        format!("a: &a {}\n{repeated}", "x".repeat(300_000))
    };
    assert!(parse_text(&file(3)).0.is_some());
    let (_, findings) = parse_text(&file(4));
    assert_eq!(findings.len(), 1);
    assert!(findings[0].message.contains("aliases in the file expand to more than 1 MiB"), "{}", findings[0].message);
}
