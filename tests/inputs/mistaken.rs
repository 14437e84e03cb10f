//! Typical marketers' mistakes, collected in `mistaken/`: the output of one command must be enough to correct each one.
//!
//! `mistaken/README.md` describes `meant.yaml`: the owner's intention, and the words that the output must contain.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::support::Folder;

/// The campaigns whose error messages are still unclear, with the reason.
const UNCLEAR_CAMPAIGNS: [(&str, &str); 0] = [];
/// The lists whose error messages are still unclear, with the reason.
const UNCLEAR_LISTS: [(&str, &str); 0] = [];

/// The owner's intention.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Intention {
    about: String,
    /// `check`, or `init` for `init --from`.
    command: String,
    list: Option<String>,
    #[serde(default)]
    findings: Vec<RequiredFinding>,
    /// The maximum number of errors.
    at_most: Option<usize>,
    corrected: Correction,
    text: Option<String>,
    max_invalid: Option<String>,
    #[serde(default)]
    rows: BTreeMap<u64, BTreeMap<String, String>>,
}

/// A finding that the owner needs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequiredFinding {
    #[serde(rename = "file")]
    _file: Option<String>,
    #[serde(rename = "line")]
    _line: Option<u64>,
    severity: String,
    meant: String,
    says: Vec<RequiredWords>,
}

/// Words that a message must contain, or alternatives of which one is enough.
#[derive(Deserialize)]
#[serde(untagged)]
enum RequiredWords {
    All(String),
    Any(Vec<String>),
}

/// The owner's correction: replacements in files, or a sentence.
#[derive(Deserialize)]
#[serde(untagged)]
enum Correction {
    Files(Vec<Replacement>),
    InWords(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Replacement {
    file: String,
    replace: String,
    with: String,
}

impl RequiredFinding {
    /// The words missing from a message.
    fn missing_words(&self, message: &str) -> Vec<String> {
        let message = message.to_lowercase();
        let says = |words: &String| message.contains(&words.to_lowercase());
        let missing = self.says.iter().filter(|words| match words {
            RequiredWords::All(words) => !says(words),
            RequiredWords::Any(words) => !words.iter().any(says),
        });
        missing.map(RequiredWords::to_string).collect()
    }

    fn is_severe_enough(&self, severity: &str) -> bool {
        self.severity != "error" || severity == "error"
    }
}

impl std::fmt::Display for RequiredWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RequiredWords::All(words) => f.write_str(words),
            RequiredWords::Any(words) => f.write_str(&words.join(" | ")),
        }
    }
}

/// The cases of a kind, by name.
fn cases(kind: &str) -> BTreeMap<String, PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/mistaken").join(kind);
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), path)).collect()
}

/// A folder with a copy of the case, and its owner's intention.
fn open_case(case: &Path) -> (Folder, Intention) {
    let folder = Folder::new(false);
    copy_files(case, &folder, "");
    let meant = fs::read_to_string(case.join("meant.yaml")).expect("a note");
    (folder, serde_yaml::from_str(&meant).expect("a note"))
}

fn copy_files(from: &Path, folder: &Folder, prefix: &str) {
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = format!("{prefix}{}", path.file_name().expect("a name").to_string_lossy());
        if path.is_dir() {
            fs::create_dir_all(folder.path(&name)).expect("a folder");
            copy_files(&path, folder, &format!("{name}/"));
        } else if name != "meant.yaml" {
            fs::copy(&path, folder.path(&name)).expect("a copy");
        }
    }
}

/// The findings of `check`: for each, the severity, and the message, help and position as one text.
fn check(folder: &Folder, file: &str) -> Vec<(String, String)> {
    let mut command = folder.command(&["check", file, "--json"]);
    command.env("CAMPAIGN_API_KEY", "x");
    let checked = crate::support::Process::start(command).finish();
    let Ok(checked) = serde_json::from_str::<Value>(&checked.stdout) else {
        return vec![("error".to_owned(), checked.details())];
    };
    let findings = checked["findings"].as_array().expect("findings").iter();
    let all = findings.map(|finding| {
        let values = finding.as_object().expect("an object").values();
        let words: Vec<String> = values.map(|value| value.as_str().map_or(value.to_string(), str::to_owned)).collect();
        let position = format!("{}:{}", finding["file"].as_str().unwrap_or_default(), finding["line"]);
        (finding["severity"].as_str().expect("a severity").to_owned(), format!("{} {position}", words.join(" ")))
    });
    all.collect()
}

/// The rows of a preview that differ from the owner's intention.
fn differing_rows(folder: &Folder, file: &str, meant: &Intention) -> Vec<String> {
    if meant.rows.is_empty() {
        return Vec::new();
    }
    let mut command = folder.command(&["preview", file, "--json"]);
    command.env("CAMPAIGN_API_KEY", "x");
    let shown = crate::support::Process::start(command).finish();
    let lines = shown.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let rows: BTreeMap<u64, Value> = lines.filter_map(|line| Some((line["row"].as_u64()?, line))).collect();
    let differs = meant.rows.iter().filter_map(|(row, meant)| {
        let shown = rows.get(row).map(|shown| shown.get("operation").cloned()).unwrap_or_default();
        let matches = match (&shown, meant.get("to")) {
            (Some(operation), Some(_)) => {
                let operation = operation.to_string();
                meant.values().all(|text| {
                    let quoted = Value::from(text.as_str()).to_string();
                    operation.contains(quoted.trim_matches('"'))
                })
            }
            (None, None) => rows.contains_key(row),
            _ => false,
        };
        (!matches).then(|| format!("row {row} is {:?} and not {meant:?}", rows.get(row)))
    });
    let mut differs: Vec<String> = differs.collect();
    if rows.is_empty() {
        differs.push(shown.details());
    }
    differs
}

/// Problems in the messages about a campaign, and in the corrected campaign.
fn campaign_problems(case: &Path) -> Vec<String> {
    let (folder, meant) = open_case(case);
    assert_eq!((meant.command.as_str(), meant.about.is_empty()), ("check", false));
    let found = check(&folder, "campaign.yaml");
    let mut problems = Vec::new();
    for required in &meant.findings {
        let severe = found.iter().filter(|(severity, _)| required.is_severe_enough(severity));
        let missing = severe.map(|(_, message)| required.missing_words(message)).min_by_key(Vec::len);
        match missing {
            None => problems.push(format!("no {} about: {}", required.severity, required.meant)),
            Some(missing) if !missing.is_empty() => {
                problems.push(format!("no message has {missing:?}: {}", required.meant))
            }
            Some(_) => {}
        }
    }
    let errors = found.iter().filter(|(severity, _)| severity == "error").count();
    if meant.at_most.is_some_and(|at_most| errors > at_most) {
        problems.push(format!("{errors} errors, at most {:?}", meant.at_most));
    }
    if !problems.is_empty() {
        problems.push(format!("found: {found:#?}"));
    }
    if let Correction::Files(replacements) = &meant.corrected {
        replacements.iter().for_each(|change| folder.replace(&change.file, &change.replace, &change.with));
    }
    problems.extend(differing_rows(&folder, "campaign.yaml", &meant));
    problems
}

/// Problems in the messages about a list.
fn list_problems(case: &Path) -> Vec<String> {
    let (folder, meant) = open_case(case);
    assert_eq!((meant.command.as_str(), meant.about.is_empty()), ("init", false));
    let list = meant.list.as_deref().expect("a list");
    let mut output = folder.campaign(&["init", "spring", "--from", list]).details();
    let mut differs = Vec::new();
    if folder.path("spring.yaml").exists() {
        output += &folder.campaign(&["check", "spring.yaml"]).details();
        folder.write("templates/spring.sms.txt", &format!("{}\n", meant.text.as_deref().expect("a text")));
        if let Some(share) = &meant.max_invalid {
            folder.replace("spring.yaml", "recipients:\n", &format!("recipients:\n  max_invalid: {share}\n"));
        }
        let mut command = folder.command(&["check", "spring.yaml"]);
        command.env("CAMPAIGN_API_KEY", "x");
        output += &crate::support::Process::start(command).finish().details();
        if matches!(&meant.corrected, Correction::InWords(words) if words == "nothing") {
            differs = differing_rows(&folder, "spring.yaml", &meant);
        }
    }
    let missing = meant.findings.iter().flat_map(|required| required.missing_words(&output));
    let mut problems: Vec<String> = missing.map(|words| format!("`{words}` is missing")).collect();
    if !problems.is_empty() {
        problems.push(output);
    }
    problems.extend(differs);
    problems
}

/// Checks all cases. The cases in `unclear` must fail, so that the list can only become shorter.
fn check_all_cases(kind: &str, unclear: &[(&str, &str)], problems: fn(&Path) -> Vec<String>) {
    let mut wrong = Vec::new();
    for (name, case) in cases(kind) {
        let problems = problems(&case);
        let is_unclear = unclear.iter().any(|(unclear, _)| *unclear == name);
        if is_unclear && problems.is_empty() {
            wrong.push(format!("{name} is clear now: remove it from the list"));
        } else if !is_unclear && !problems.is_empty() {
            wrong.push(format!("{name}\n  {}", problems.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn broken_campaign_can_be_fixed_from_its_error_messages() {
    check_all_cases("campaigns", &UNCLEAR_CAMPAIGNS, campaign_problems);
}

#[test]
fn odd_list_is_understood_or_explained() {
    check_all_cases("lists", &UNCLEAR_LISTS, list_problems);
}
