//! Campaigns with one typical mistake each: `spoilt/NN.yaml`, its list and its texts.
//!
//! The files do not name the mistake. The output of `check` must be enough to correct each of them, and these tests pin
//! the rules that it reports.

use std::fs;
use std::path::Path;

use crate::support::{Folder, note_on_failure};

/// The number of the campaign, the exit code of `check`, and the first rule it reports.
const EXPECTED_RULES: [(u32, i32, &str); 43] = [
    (1, 2, "yaml-tab"),
    (2, 2, "yaml-quote"),
    (3, 2, "unquoted-template"),
    (4, 2, "cut-text"),
    (5, 2, "yaml-indentation"),
    (6, 2, "unknown-key"),
    (7, 2, "unknown-key"),
    (8, 2, "unknown-key"),
    (9, 2, "missing-key"),
    (10, 2, "unknown-gateway"),
    (11, 2, "rate-limit"),
    (12, 2, "missing-endpoint"),
    (13, 2, "wrong-type"),
    (14, 2, "yaml-duplicate-key"),
    (15, 2, "recipients-unknown-column"),
    (16, 2, "recipients-phone-column"),
    (17, 2, "recipients-phone-column"),
    (18, 2, "too-many-invalid"),
    (19, 2, "recipients-ragged-row"),
    (20, 2, "recipients-missing"),
    (21, 2, "text-file"),
    (22, 2, "recipients-unclosed-quote"),
    (23, 2, "recipients-empty"),
    (24, 2, "duplicate-number"),
    (25, 2, "unknown-variable"),
    (26, 2, "text-syntax"),
    (27, 0, "foreign-placeholder"),
    (28, 2, "unknown-filter"),
    (29, 2, "text-syntax"),
    (30, 2, "looks-like-a-file"),
    (31, 2, "text-refused"),
    (32, 2, "too-many-invalid"),
    (33, 2, "viber-type"),
    (34, 2, "out-of-range"),
    (35, 2, "text-refused"),
    (36, 2, "codes-only"),
    (37, 2, "not-carried"),
    (38, 2, "schedule"),
    (39, 0, "placeholder-value"),
    (40, 0, "cell-is-text"),
    (41, 0, "broken-link"),
    (42, 0, "two-scripts"),
    (43, 2, "unknown-timezone"),
];

/// Rules that report the same mistake again, for single rows or in YAML's words.
const REPEATED_RULES: [&str; 4] = ["invalid-row", "yaml-quote", "unused-column", "same-for-all"];

/// Corrections that follow the advice literally: words of the help, the text to replace, and its replacement.
const CORRECTIONS: [(u32, &str, &str, &str); 12] = [
    (1, "start this line with 6 spaces", "\t  ", "      "),
    (5, "to align with `signature`, use 6 spaces", "\n     message", "\n      message"),
    (8, "as in `delivery: { rate: 10/s }`", "rate: 20/s", "delivery: { rate: 20/s }"),
    (9, "`signature: OlenaCo` under `sms`, two spaces deeper", "- sms:\n", "- sms:\n      signature: OlenaCo\n"),
    (13, "at most `2d`", "30 days", "2d"),
    (14, "under the first one, and remove this line", "shop: Olena\n", "shop: Olena\n  link: https://shop.example\n"),
    (29, "`{% endif %}` after the text", "else %}Hello!", "else %}Hello!{% endif %}"),
    (33, "add `link: …`", "button: Shop now\n", "button: Shop now\n      link: https://shop.example\n"),
    (38, "`\"Mon, Thu 10:00\"`", "Monday at 10", "\"Mon, Thu 10:00\""),
    (
        39,
        "`{{ NAME | default(value='…', boolean=true) }}`",
        "{{ first_name }}",
        "{{ first_name | default(value='friend', boolean=true) }}",
    ),
    (40, "`{% if vip == 'true' %}`", "{% if vip %}", "{% if vip == 'true' %}"),
    (41, "`https://shop.example`", "https:/shop", "https://shop"),
];

/// A folder with the campaigns.
fn copy_campaigns() -> Folder {
    let spoilt = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/spoilt");
    let folder = Folder::new(false);
    for entry in fs::read_dir(spoilt).expect("a folder") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, folder.path(&path.file_name().expect("a name").to_string_lossy())).expect("a copy");
    }
    folder
}

/// The findings of `check` in one campaign.
fn findings(folder: &Folder, number: u32) -> Vec<serde_json::Value> {
    let mut command = folder.command(&["check", &format!("{number:02}.yaml"), "--json"]);
    command.env("CAMPAIGN_API_KEY", "x");
    let report = crate::support::Process::start(command).finish().json();
    report["findings"].as_array().expect("findings").clone()
}

#[test]
fn check_advice_fixes_the_campaign_when_applied_literally() {
    let folder = copy_campaigns();
    for (number, help, mistake, correction) in CORRECTIONS {
        let _case = note_on_failure(format!("case: {number:02}.yaml"));
        let says = |finding: &serde_json::Value| finding["help"].as_str().is_some_and(|text| text.contains(help));
        let report = findings(&folder, number);
        assert!(report.iter().any(says), "no `{help}` in {report:#?}");
        let name = format!("{number:02}.yaml");
        match number {
            14 => folder.replace(&name, "\nvars:\n  link: https://shop.example\n", ""),
            39 => folder.replace("39.csv", ",None,", ",,"),
            _ => {}
        }
        folder.replace(&name, mistake, correction);
        assert_eq!(findings(&folder, number), Vec::<serde_json::Value>::new());
    }
}

#[test]
fn broken_campaign_triggers_only_its_rule_with_advice() {
    let folder = copy_campaigns();
    let names = fs::read_dir(folder.path(".")).expect("a folder");
    let names = names.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let campaigns = names.filter(|name| name.ends_with(".yaml") && name != "gateways.yaml").count();
    assert_eq!(campaigns, EXPECTED_RULES.len(), "each campaign is listed");
    for (number, code, rule) in EXPECTED_RULES {
        let _case = note_on_failure(format!("case: {number:02}.yaml"));
        let mut command = folder.command(&["check", &format!("{number:02}.yaml"), "--json"]);
        command.env("CAMPAIGN_API_KEY", "x");
        let report = crate::support::Process::start(command).finish().exits(code).json();
        let findings = report["findings"].as_array().expect("findings");
        let id = |finding: &serde_json::Value| finding["rule"].as_str().expect("a rule").to_owned();
        let others: Vec<String> = findings
            .iter()
            .map(id)
            .filter(|found| found != rule && !REPEATED_RULES.contains(&found.as_str()))
            .collect();
        assert!(findings.iter().any(|finding| id(finding) == rule), "no {rule}: {report:#}");
        assert!(others.is_empty(), "besides {rule}: {others:?}");
        for finding in findings.iter().filter(|finding| id(finding) == rule) {
            assert!(finding["help"].is_string(), "{rule} does not say what to do: {finding:#}");
        }
    }
}
