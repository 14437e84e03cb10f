//! Confinement of campaign paths: an assistant's campaign opens no file outside its folder, and its errors reveal
//! nothing about such files.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::campaigns::campaigns_folder;
use super::stdio::Conversation;
use super::{Connector, parse_result};
use crate::support::{Folder, Gateway, phone};

/// Content of files that no caller may see.
const MARKER: &str = "marker-of-a-secret";

/// Keys that name a path, each with a campaign whose path is `PATH`.
const KEYS: [(&str, &str); 14] = [
    ("list", "recipients: { file: PATH }\nchannels: [hlr]\n"),
    ("stop-list", "recipients: { file: list.csv, suppress: [PATH] }\nCHANNELS"),
    ("stop-map", "recipients: { file: list.csv, suppress: [{ file: PATH, phone: phone }] }\nCHANNELS"),
    ("consents", "recipients: { file: list.csv, consent: { file: PATH, phone: phone } }\nCHANNELS"),
    ("table", "recipients: { file: list.csv }\ndata: { s: { file: PATH, key: phone } }\nCHANNELS"),
    ("results", "recipients: { file: list.csv }\nresults: PATH\nCHANNELS"),
    ("text", "recipients: { file: list.csv }\nchannels: [ sms: { signature: OlenaCo, message: { file: PATH } } ]\n"),
    (
        "chosen",
        "recipients: { file: list.csv }\nchannels: [ sms: { signature: OlenaCo, message: { by: name, texts: { a: { file: PATH } } } } ]\n",
    ),
    (
        "caption",
        "recipients: { file: list.csv }\nchannels:\n  - viber:\n      signature: OlenaCo\n      carousel:\n        - caption: { file: PATH }\n        - caption: x\n",
    ),
    (
        "include",
        "recipients: { file: list.csv }\nchannels: [ sms: { signature: OlenaCo, message: \"{% include 'PATH' %}\" } ]\n",
    ),
    ("header", "recipients: { url: \"http://127.0.0.1:1/x\", headers: { Authorization: { file: PATH } } }\nCHANNELS"),
    ("database", "recipients: { sql: \"select 1\", from: { file: PATH } }\nCHANNELS"),
    ("notify", "recipients: { file: list.csv }\nnotify: { url: { file: PATH } }\nCHANNELS"),
    ("notify-local", "recipients: { file: list.csv }\nnotify: { url: { file: PATH }, local: true }\nCHANNELS"),
];

const CHANNELS: &str = "channels: [ sms: { signature: OlenaCo, message: \"Hello\" } ]\n";

/// Schema keys called `file`, each with the campaign above that uses it.
const FILE_KEYS: [(&str, &str); 11] = [
    ("caption.file", "caption"),
    ("caption.texts[].file", "chosen"),
    ("data[].file", "table"),
    ("message.file", "text"),
    ("message.texts[].file", "chosen"),
    ("notify.url.file", "notify"),
    ("recipients.file", "list"),
    ("recipients.from.file", "database"),
    ("recipients.headers[].file", "header"),
    ("recipients.suppress[].file", "stop-map"),
    ("recipients.consent.file", "consents"),
];

/// Entries outside the folder. The refusal is the same for all of them.
const OUTSIDE: [&str; 6] = ["secret.csv", "missing.csv", "closed.csv", "drawer", "pipe.csv", "secret.yaml"];

/// Forms of a path to an entry outside the folder. `OUT` is its name, `ROOT` the folder around the campaigns.
const PATH_FORMS: [&str; 6] = ["../OUT", "below/../../OUT", "ROOT/OUT", "to-OUT", "whole-to-OUT", "up/OUT"];

/// File of the campaign under test, rewritten for each case.
const FILE: &str = "reach.yaml";

/// Creates a folder of campaigns with the entries of `OUTSIDE` around it.
fn folder_with_entries_outside() -> Folder {
    let folder = campaigns_folder(&Gateway::accepting());
    let root = folder.path(".").canonicalize().expect("a folder");
    folder.write("campaigns/below/x.txt", "x");
    folder.write("drawer/secret.txt", MARKER);
    folder.write_secret("secret.csv", &format!("phone,name\n{},{MARKER}\n", phone(2)));
    folder.write("closed.csv", MARKER);
    let chmod = Command::new("chmod").arg("000").arg(folder.path("closed.csv")).status();
    let mkfifo = Command::new("mkfifo").arg(folder.path("pipe.csv")).status();
    assert!(chmod.is_ok_and(|status| status.success()) && mkfifo.is_ok_and(|status| status.success()));
    symlink("..", folder.path("campaigns/up")).expect("a link");
    for name in OUTSIDE {
        symlink(format!("../{name}"), folder.path(&format!("campaigns/to-{name}"))).expect("a link");
        symlink(root.join(name), folder.path(&format!("campaigns/whole-to-{name}"))).expect("a link");
    }
    folder
}

fn campaign(yaml: &str, path: &str) -> String {
    yaml.replace("CHANNELS", CHANNELS).replace("PATH", path)
}

/// Builds the calls about the campaign in `FILE`.
fn calls() -> [(&'static str, Value); 5] {
    let arguments = json!({ "campaign": FILE });
    let digest = json!({ "campaign": FILE, "digest": "0123456789abcdef" });
    [
        ("list_campaigns", json!({})),
        ("check_campaign", arguments.clone()),
        ("preview_campaign", arguments.clone()),
        ("plan_campaign", arguments),
        ("run_campaign", digest),
    ]
}

/// Fails unless every `step`-th combination of a key and a path form, starting at index `first`, is refused in the same
/// words for all entries outside the folder.
fn assert_all_refused(campaigns: &Path, first: usize, step: usize, mut call: impl FnMut(&str, &Value) -> Value) {
    let root = campaigns.parent().expect("a folder").canonicalize().expect("a folder").display().to_string();
    let combinations = KEYS.into_iter().flat_map(|key| PATH_FORMS.map(|form| (key, form)));
    for ((key, yaml), form) in combinations.skip(first).step_by(step) {
        let mut refusals: Vec<Vec<String>> = Vec::new();
        for name in OUTSIDE {
            let path = form.replace("OUT", name).replace("ROOT", &root);
            std::fs::write(campaigns.join(FILE), campaign(yaml, &path)).expect("a file");
            let results = calls().into_iter().map(|(tool, arguments)| {
                let result = call(tool, &arguments);
                assert_refused((tool, key, path.as_str()), &result);
                result.to_string().replace(name, "OUT")
            });
            refusals.push(results.collect());
        }
        for other in &refusals[1..] {
            assert_eq!(other, &refusals[0], "{key} {form}: the refusal reveals what is there");
        }
    }
}

/// Fails unless the tool refuses the campaign with a location and a remedy, without content from outside.
fn assert_refused((tool, key, path): (&str, &str, &str), result: &Value) {
    let text = result.to_string();
    assert!(!text.contains(MARKER), "{tool} {key} {path}: {text}");
    let mentions_outside = |words: &str| words.contains("outside the ") || words.contains("outside its folder");
    let document = parse_result(result);
    // Includes are read together with the list, which is not read when campaigns are listed or when a run has no plan.
    let is_include = key == "include";
    match tool {
        "list_campaigns" => {
            let items = document["items"].as_array().expect("items");
            let item = items.iter().find(|item| item["file"] == FILE).expect("the campaign");
            assert!(is_include || item["errors"].as_u64() > Some(0), "{key} {path}: {item}");
        }
        "check_campaign" => {
            let findings = document["findings"].as_array().expect("findings");
            let found = findings.iter().find(|finding| finding["message"].as_str().is_some_and(mentions_outside));
            let found = found.unwrap_or_else(|| panic!("{key} {path}: {text}"));
            assert_eq!(document["ok"], false, "{key} {path}: {text}");
            assert!(found["line"].is_u64() && found["column"].is_u64(), "{key} {path}: {found}");
        }
        _ => {
            let error = document["error"].as_str().unwrap_or_default();
            assert_eq!(document["code"], "campaign_refused", "{tool} {key} {path}: {text}");
            let is_unplanned = tool == "run_campaign" && is_include && error.contains("there is no plan");
            let has_location = error.contains(&format!("{FILE}:"));
            assert!(is_unplanned || mentions_outside(error) && has_location, "{tool} {key} {path}: {error}");
        }
    }
}

#[test]
fn no_campaign_file_key_reads_outside_the_folder_over_http() {
    let connector = Connector::start_in(folder_with_entries_outside(), &["--campaigns", "campaigns", "--allow-send"]);
    assert_all_refused(&connector.folder.path("campaigns"), 0, SAMPLE, |tool, arguments| {
        connector.call(tool, arguments)
    });
}

/// Both transports call the same tools, so the tests take samples. Five and six have no common factor, so all six path
/// forms are covered.
const SAMPLE: usize = 5;

#[test]
fn no_campaign_key_reads_a_file_outside_the_folder_over_stdio() {
    assert_refused_over_stdio(2, SAMPLE);
}

#[test]
#[ignore = "takes ten seconds"]
fn no_campaign_key_with_any_path_form_reads_a_file_outside() {
    assert_refused_over_stdio(0, 1);
}

/// Fails unless these combinations are refused over standard input and output.
fn assert_refused_over_stdio(first: usize, step: usize) {
    let folder = folder_with_entries_outside();
    let campaigns = folder.path("campaigns");
    let mut client = Conversation::start_in(folder, &["--campaigns", "campaigns", "--allow-send"]);
    assert_all_refused(&campaigns, first, step, |tool, arguments| {
        let params = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        client.ask(&call)["result"].clone()
    });
    client.finish().exits(0);
}

/// Collects the keys called `file` in a schema. For a key of a channel, the path starts at the name of the text.
fn collect_file_keys(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let Some(members) = schema.as_object() else {
        schema.as_array().into_iter().flatten().for_each(|schema| collect_file_keys(schema, path, found));
        return;
    };
    for (name, member) in members {
        match name.as_str() {
            "properties" => {
                for (key, schema) in member.as_object().into_iter().flatten() {
                    let full = format!("{path}.{key}");
                    if key == "file" {
                        let text = ["message.", "caption."].iter().find_map(|text| full.find(text));
                        found.insert(full[text.unwrap_or(1)..].to_owned());
                    }
                    collect_file_keys(schema, &full, found);
                }
            }
            "items" | "additionalProperties" => collect_file_keys(member, &format!("{path}[]"), found),
            _ => collect_file_keys(member, path, found),
        }
    }
}

#[test]
fn every_file_key_in_the_schema_is_tested() {
    let printed = Folder::new(false).campaign(&["schema"]).exits(0).stdout;
    let mut found = BTreeSet::new();
    collect_file_keys(&serde_json::from_str(&printed).expect("a schema"), "", &mut found);
    let tested: BTreeSet<String> = FILE_KEYS.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(found, tested, "add a campaign with the new key to `KEYS`");
    for (key, name) in FILE_KEYS {
        assert!(KEYS.iter().any(|(known, _)| *known == name), "{key} has no campaign");
    }
}

#[test]
fn paths_inside_the_folder_and_its_templates_can_be_read() {
    let folder = campaigns_folder(&Gateway::accepting());
    let campaigns = folder.path("campaigns").canonicalize().expect("a folder");
    folder.write("campaigns/below/stop.csv", &format!("phone\n{}\n", phone(2)));
    folder.write("campaigns/below/stores.csv", "name;street\nPerson 3;Rynok 2\n");
    folder.write("templates/hello.txt", "Hello {{ name }}, {{ stores['Person 3'].street }}");
    symlink("below/stores.csv", folder.path("campaigns/linked.csv")).expect("a link");
    symlink(campaigns.join("below"), folder.path("campaigns/whole")).expect("a link");
    let connector = Connector::start_in(folder, &["--campaigns", "campaigns"]);
    for table in ["linked.csv", "whole/stores.csv", "below/stores.csv"] {
        let list = "file: ./below/../list.csv, max_invalid: 50%, suppress: [whole/stop.csv]";
        let message = "channels: [ sms: { signature: OlenaCo, message: { file: hello.txt } } ]";
        let top = format!("results: below/new/r.csv\ndata: {{ stores: {{ file: {table}, key: name }} }}");
        connector.folder.write("campaigns/inside.yaml", &format!("recipients: {{ {list} }}\n{top}\n{message}\n"));
        let checked = parse_result(&connector.call("check_campaign", &json!({ "campaign": "inside.yaml" })));
        assert_eq!((&checked["ok"], &checked["counts"]["planned"]), (&json!(true), &json!(2)), "{table}: {checked}");
    }
}

#[test]
fn default_results_folder_behind_a_symlink_is_refused() {
    let folder = campaigns_folder(&Gateway::accepting());
    folder.write("elsewhere/x", "x");
    symlink("../elsewhere", folder.path("campaigns/results")).expect("a link");
    let connector = Connector::start_in(folder, &["--campaigns", "campaigns"]);
    let checked = parse_result(&connector.call("check_campaign", &json!({ "campaign": "sale.yaml" })));
    assert_eq!((&checked["ok"], &checked["findings"][0]["rule"]), (&json!(false), &json!("path-outside")), "{checked}");
    // A person's command can still write results there.
    connector.folder.campaign(&["run", "campaigns/sale.yaml"]).exits(3);
    assert!(connector.folder.path("elsewhere/sale.sandbox.csv").exists());
}

#[test]
fn results_path_through_a_non_folder_is_refused() {
    let folder = campaigns_folder(&Gateway::accepting());
    for (name, pipe) in [("results", "campaigns/results"), ("file", "campaigns/pipe.csv")] {
        let created = Command::new("mkfifo").arg(folder.path(pipe)).status();
        assert!(created.is_ok_and(|status| status.success()), "{name}");
    }
    folder.write("campaigns/plain", "x");
    let connector = Connector::start_in(folder, &["--campaigns", "campaigns"]);
    let refused = |file: &str, words: &str| {
        let checked = parse_result(&connector.call("check_campaign", &json!({ "campaign": file })));
        let findings = checked["findings"].as_array().expect("findings");
        let found = findings.iter().find(|finding| finding["rule"] == "results-overwrite");
        let found = found.unwrap_or_else(|| panic!("{file}: {checked}"));
        assert!(found["message"].as_str().is_some_and(|message| message.contains(words)), "{file}: {found}");
        assert_eq!(checked["ok"], false, "{file}: {checked}");
        let checked = connector.folder.campaign(&["check", &format!("campaigns/{file}"), "--gateway", "local"]);
        checked.exits(2).says(words);
    };
    // By default, results go to the folder `results`.
    refused("sale.yaml", "is not a folder");
    for (path, words) in [
        ("results/x.csv", "is not a folder"),
        ("plain/deep/x.csv", "is not a folder"),
        ("pipe.csv", "a pipe or a device"),
    ] {
        let yaml = format!("recipients: {{ file: list.csv }}\nresults: {path}\n{CHANNELS}");
        std::fs::write(connector.folder.path("campaigns/piped.yaml"), yaml).expect("a file");
        refused("piped.yaml", words);
    }
}
