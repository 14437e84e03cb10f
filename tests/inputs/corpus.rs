//! Realistic lists and campaigns in `corpus/`, each with its expected result.
//!
//! `lists/NAME.csv` has its expectation in `NAME.yaml`:
//!
//! - `told`: words of the output of `init --from`;
//! - `rows`: for each spreadsheet row, the number and message that `preview` shows, or the reason for no message (`⏎`
//!   is a line break);
//! - `refused`: words of the output of `init` if it writes no campaign.
//!
//! `campaigns/NAME.spoilt` is a campaign file. `NAME.said` holds the exit code of `check`, words of its output, and
//! words after `not:` that it must not print.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::support::{Folder, note_on_failure};

/// The expected result of a list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    /// The origin of the list.
    about: String,
    #[serde(default)]
    told: Vec<String>,
    /// The text of the SMS.
    text: Option<String>,
    /// `max_invalid` of the campaign.
    most_invalid: Option<String>,
    #[serde(default)]
    rows: BTreeMap<u32, String>,
    #[serde(default)]
    refused: Vec<String>,
}

fn corpus(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/corpus").join(kind)
}

/// The files in a folder with this extension, by their stems.
fn files(folder: &Path, ending: &str) -> BTreeMap<String, PathBuf> {
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let files = files.filter(|path| path.extension().is_some_and(|found| found == ending));
    files.map(|path| (path.file_stem().expect("a name").to_string_lossy().into_owned(), path)).collect()
}

#[test]
fn list_is_read_as_intended_or_refused_with_advice() {
    let lists = files(&corpus("lists"), "csv");
    assert!(lists.len() >= 40);
    for (name, list) in lists {
        let _case = note_on_failure(format!("case: {name}"));
        let expected = fs::read_to_string(list.with_extension("yaml")).expect("an expectation");
        let expected: Expected = serde_yaml::from_str(&expected).expect("an expectation");
        assert!(!expected.about.is_empty());
        let (folder, file) = (Folder::new(false), format!("{name}.csv"));
        fs::copy(&list, folder.path(&file)).expect("a copy");
        let mut output = folder.campaign(&["init", &name, "--from", &file]);
        let Some(text) = expected.text else {
            output = output.exits(2);
            assert!(!expected.refused.is_empty() && expected.rows.is_empty());
            expected.refused.iter().fold(output, |output, words| output.says(words));
            assert!(!folder.path(&format!("{name}.yaml")).exists());
            continue;
        };
        expected.told.iter().fold(output.exits(0), |output, words| output.says(words));
        folder.write(&format!("templates/{name}.sms.txt"), &text);
        if let Some(share) = expected.most_invalid {
            folder.replace(&format!("{name}.yaml"), "recipients:\n", &format!("recipients:\n  max_invalid: {share}\n"));
        }
        let shown = folder.campaign(&["preview", &format!("{name}.yaml"), "--json"]).exits(0);
        let rows: BTreeMap<u32, String> = shown.stdout.lines().map(parse_row).collect();
        assert!(expected.rows.keys().last() <= rows.keys().last(), "{rows:?}");
        let every_row_is_expected =
            expected.rows.len() == rows.len() || expected.told.iter().any(|words| words.contains("valid number"));
        assert!(every_row_is_expected, "{rows:?}");
        for (row, expected) in expected.rows {
            let got = rows.get(&row).unwrap_or_else(|| panic!("no row {row} in {rows:?}"));
            let has_expected_reason = expected.starts_with("invalid: ") && got.starts_with(&expected);
            assert!(
                *got == expected.replace('⏎', "\n") || has_expected_reason,
                "row {row}: expected {expected:?}, got {got:?}"
            );
        }
    }
}

/// Parses a line of `preview --json` into a row number, and the message or the reason for no message.
fn parse_row(line: &str) -> (u32, String) {
    let shown: Value = serde_json::from_str(line).expect("an object");
    let number = shown["row"].as_u64().and_then(|row| row.try_into().ok()).expect("a row");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let got = match shown.get("operation") {
        Some(sms) => format!("{} {}", sms["phone"], text(&sms["sms_message"])),
        None => format!("{}: {}", text(&shown["state"]), text(&shown["reason"])),
    };
    (number, got)
}

#[test]
fn broken_campaign_gets_advice_for_its_author() {
    let expectations = files(&corpus("campaigns"), "said");
    assert!(expectations.len() >= 30);
    let folder = Folder::new(false);
    for entry in fs::read_dir(corpus("campaigns")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().replace(".spoilt", ".yaml");
        fs::copy(path, folder.path(&name)).expect("a copy");
    }
    for (name, expectation) in expectations {
        let _case = note_on_failure(format!("case: {name}"));
        let checked = folder.campaign(&["check", &format!("{name}.yaml")]);
        let output = format!("{}{}", checked.stdout, checked.stderr);
        for words in fs::read_to_string(expectation).expect("an expectation").lines() {
            if let Some(code) = words.strip_prefix("exit ") {
                assert_eq!(checked.code(), code.parse().ok(), "{}", checked.details());
            } else if let Some(words) = words.strip_prefix("not: ") {
                assert!(!output.contains(words), "`{words}` in {}", checked.details());
            } else {
                assert!(output.contains(words), "no `{words}` in {}", checked.details());
            }
        }
    }
}
