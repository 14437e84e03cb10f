//! Examples of `campaign explain`: `check` reports each rule for its own example.

use std::collections::BTreeMap;
use std::thread;

use serde_json::Value;

use crate::support::{Folder, KEY_VARIABLE};

/// Rules that `check` cannot report from example files alone. They need another command, the gateway, the ledger, an
/// assistant or a large file.
const NOT_IN_FILES: &[&str] = &[
    "account-key",
    "address",
    "balance-too-low",
    "changed-row",
    "check",
    "fallback-outside",
    "fault-effect",
    "file-empty",
    "file-encoding",
    "file-missing",
    "file-too-large",
    "file-unreadable",
    "gateways-form",
    "key-refused",
    "list-form",
    "more-findings",
    "no-phones",
    "not-known",
    "notify-command",
    "notify-elsewhere",
    "online-unknown",
    "opt-out-row",
    "path-outside",
    "promised-receipts",
    "purchases-unusable",
    "recipients-cell-errors",
    "recipients-encoding",
    "recipients-hidden-rows",
    "recipients-not-csv",
    "recipients-sheet",
    "recipients-source",
    "recipients-too-large",
    "recipients-too-many-columns",
    "recipients-unreadable",
    "run-refused",
    "sender-unknown",
    "suppress-row",
    "text-too-long",
    "too-many-invalid",
    "uncertain-encoding",
    "unconfirmed-replica",
    "unfamiliar-ledger",
];

/// Three recipients, so that a limit of one message a day is exceeded even if midnight is near.
const LIST: &str =
    "phone,first_name,code\n380501234567,Olena,NEW-126\n380671234567,Taras,NEW-163\n380931234567,Petro,NEW-187\n";
const TABLE: &str = "city,address\nKyiv,Shop Street 1\n";
const PROFILE: &str = "production: { }";

/// Splits an example into the keys of the campaign and its files by name.
fn split_example(example: &str) -> (Vec<&str>, BTreeMap<&str, String>) {
    let (mut keys, mut files): (Vec<&str>, BTreeMap<&str, String>) = Default::default();
    let mut file: Option<(&str, usize)> = None;
    for line in example.lines() {
        let file_start =
            line.split_once(": ").filter(|(name, _)| [".csv", ".txt", ".yaml"].iter().any(|end| name.ends_with(end)));
        if let Some((name, first)) = file_start {
            file = Some((name, name.len() + 2));
            files.insert(name, format!("{first}\n"));
        } else if let Some((name, indent)) = file.filter(|(_, indent)| line.starts_with(&" ".repeat(*indent))) {
            let text = files.get_mut(name).expect("the file");
            *text += &format!("{}\n", &line[indent..]);
        } else {
            file = None;
            keys.push(line);
        }
    }
    (keys, files)
}

/// A campaign file with the keys of an example. A key `message` is put into an SMS.
fn campaign_yaml(keys: &[&str], text_file: Option<&str>) -> String {
    let has = |key: &str| keys.iter().any(|line| line.starts_with(key));
    let mut yaml = String::new();
    if !has("gateway:") {
        yaml += "gateway: production\n";
    }
    if !has("recipients") {
        yaml += "recipients: { file: list.csv }\n";
    }
    for line in keys.iter().filter(|line| !line.starts_with("message:")) {
        yaml += &format!("{line}\n");
    }
    if !has("channels:") {
        let default = text_file.map_or("message: \"Hi!\"".to_owned(), |name| format!("message: {{ file: {name} }}"));
        let message = keys.iter().find(|line| line.starts_with("message:")).map_or(default, |line| (*line).to_owned());
        yaml += &format!("channels:\n  - sms:\n      signature: OlenaCo\n      {message}\n");
    }
    yaml
}

/// The gateway profile of an example, completed with the required keys.
fn profile_yaml(example: &str) -> String {
    let mut profile = example.to_owned();
    for (key, value) in
        [("rate", "100/s"), ("api_key", "{ env: NO_SUCH_KEY }"), ("base_url", "\"https://gateway.example\"")]
    {
        if !profile.contains(&format!("{key}:")) {
            let separator = if profile.contains("{ }") { " " } else { ", " };
            profile = profile.replacen("{ ", &format!("{{ {key}: {value}{separator}"), 1);
        }
    }
    profile + "\n"
}

/// The campaign file of an example, and the findings of `check`, each as `rule: message`.
fn check_example(example: &str) -> (String, Vec<String>) {
    let (keys, files) = split_example(example);
    let folder = Folder::new(false);
    folder.write("list.csv", LIST);
    folder.write("stores.csv", TABLE);
    for (name, text) in &files {
        folder.write(name, text);
    }
    folder.write("gateways.yaml", &profile_yaml(files.get("gateways.yaml").map_or(PROFILE, |text| text.trim_end())));
    let yaml = campaign_yaml(&keys, files.keys().find(|name| name.ends_with(".txt") && **name == "sale.txt").copied());
    folder.write("sale.yaml", &yaml);
    let mut command = folder.command(&["check", "sale.yaml", "--json"]);
    command.env_remove(KEY_VARIABLE);
    let checked = crate::support::Process::start(command).finish();
    let found: Value = serde_json::from_str(&checked.stdout).unwrap_or_default();
    let findings = found["findings"].as_array().into_iter().flatten();
    let line = |finding: &Value| format!("{}: {}", finding["rule"].as_str().unwrap_or_default(), finding["message"]);
    (yaml, findings.map(line).collect())
}

#[test]
fn check_reports_each_rule_in_the_example_of_that_rule() {
    let explained = Folder::new(false).campaign(&["explain", "--json"]).exits(0).json();
    let rules = explained["rules"].as_array().expect("rules");
    let text = |rule: &Value, key: &str| rule[key].as_str().expect("a text").to_owned();
    let rules: Vec<(String, String)> = rules.iter().map(|rule| (text(rule, "rule"), text(rule, "example"))).collect();
    for id in NOT_IN_FILES {
        assert!(rules.iter().any(|(rule, _)| rule == id), "unknown rule `{id}`");
    }
    let checked: Vec<_> = rules.iter().filter(|(id, _)| !NOT_IN_FILES.contains(&id.as_str())).collect();
    let wrong: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = checked
            .chunks(checked.len().div_ceil(4))
            .map(|chunk| {
                scope.spawn(move || {
                    let missed = chunk.iter().filter_map(|(id, example)| {
                        let (yaml, found) = check_example(example);
                        let is_found = found.iter().any(|finding| finding.starts_with(&format!("{id}: ")));
                        (!is_found).then(|| format!("{id} is not found in:\n{yaml}but:\n{}\n", found.join("\n")))
                    });
                    missed.collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("the thread ends")).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
