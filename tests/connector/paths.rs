//! Paths that a campaign names: an assistant's campaign opens nothing outside of its folder, and learns nothing of it.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::{Value, json};

use super::campaigns::house;
use super::stdio::Conversation;
use super::{Connector, told};
use crate::support::{Folder, Gateway, phone};

/// What stands in files that nobody may see.
const MARKER: &str = "marker-of-a-secret";

/// The keys that name a path, each with a campaign whose path is `PATH`.
const KEYS: [(&str, &str); 13] = [
    ("list", "recipients: { file: PATH }\nchannels: [hlr]\n"),
    ("stop-list", "recipients: { file: list.csv, suppress: [PATH] }\nCHANNELS"),
    ("stop-map", "recipients: { file: list.csv, suppress: [{ file: PATH, phone: phone }] }\nCHANNELS"),
    ("table", "recipients: { file: list.csv }\ndata: { s: { file: PATH, key: phone } }\nCHANNELS"),
    ("results", "recipients: { file: list.csv }\nresults: PATH\nCHANNELS"),
    ("text", "recipients: { file: list.csv }\nchannels: [ sms: { signature: OlenaCo, message: { file: PATH } } ]\n"),
    (
        "chosen",
        "recipients: { file: list.csv }\nchannels: [ sms: { signature: OlenaCo, message: { by: name, texts: { a: { file: PATH } } } } ]\n",
    ),
    (
        "caption",
        "recipients: { file: list.csv }\nchannels: [ viber: { signature: OlenaCo, carousel: [{ caption: { file: PATH } }, { caption: x }] } ]\n",
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

/// Keys of the schema that are called `file`, each with the campaign above that has it.
const FILE_KEYS: [(&str, &str); 10] = [
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
];

/// What may stand outside: whatever it is, the refusal is the same.
const OUTSIDE: [&str; 6] = ["secret.csv", "missing.csv", "closed.csv", "drawer", "pipe.csv", "campaigns/list.csv"];

/// How a campaign names something outside; `OUT` is its name there, `ROOT` the folder around the campaigns.
const WAYS: [&str; 6] = ["../OUT", "below/../../OUT", "ROOT/OUT", "to-OUT", "whole-to-OUT", "up/OUT"];

/// A folder of campaigns that reach out by every key in every way, and the names of their files.
fn reaching_house() -> (Folder, Vec<Vec<String>>) {
    let folder = house(&Gateway::accepting());
    let root = folder.path(".").canonicalize().expect("a folder");
    folder.write("campaigns/below/x.txt", "x");
    folder.write("drawer/secret.txt", MARKER);
    folder.write_secret("secret.csv", &format!("phone,name\n{},{MARKER}\n", phone(2)));
    folder.write("closed.csv", MARKER);
    let closed = Command::new("chmod").arg("000").arg(folder.path("closed.csv")).status();
    let piped = Command::new("mkfifo").arg(folder.path("pipe.csv")).status();
    assert!(closed.is_ok_and(|status| status.success()) && piped.is_ok_and(|status| status.success()));
    symlink("..", folder.path("campaigns/up")).expect("a link");
    for name in OUTSIDE {
        let plain = name.replace('/', "-");
        symlink(format!("../{name}"), folder.path(&format!("campaigns/to-{plain}"))).expect("a link");
        symlink(root.join(name), folder.path(&format!("campaigns/whole-to-{plain}"))).expect("a link");
    }
    let mut groups = Vec::new();
    for (key, yaml) in KEYS {
        for (number, way) in WAYS.into_iter().enumerate() {
            let file = |(index, name): (usize, &str)| {
                let link = way.starts_with("to-") || way.starts_with("whole-");
                let name = if link { name.replace('/', "-") } else { name.to_owned() };
                let path = way.replace("OUT", &name).replace("ROOT", &root.display().to_string());
                let file = format!("{key}-{number}-{index}.yaml");
                folder.write(&format!("campaigns/{file}"), &campaign(yaml, &path));
                file
            };
            groups.push(OUTSIDE.into_iter().enumerate().map(file).collect());
        }
    }
    (folder, groups)
}

fn campaign(yaml: &str, path: &str) -> String {
    yaml.replace("CHANNELS", CHANNELS).replace("PATH", path)
}

/// The calls about a campaign file.
fn calls(file: &str) -> [(&'static str, Value); 4] {
    let about = json!({ "campaign": file });
    let digest = json!({ "campaign": file, "digest": "0123456789abcdef" });
    [
        ("check_campaign", about.clone()),
        ("preview_campaign", about.clone()),
        ("plan_campaign", about),
        ("run_campaign", digest),
    ]
}

/// Fails unless the campaigns of each group are refused in the same words, whatever they reach for.
fn all_refused(groups: &[Vec<String>], mut call: impl FnMut(&str, &Value) -> Value) {
    for group in groups {
        let mut refusals: Vec<Vec<String>> = Vec::new();
        for (file, name) in group.iter().zip(OUTSIDE) {
            let each = calls(file).into_iter().map(|(tool, arguments)| {
                let result = call(tool, &arguments);
                refused(tool, file, &result);
                let plain = result.to_string().replace(file, "FILE").replace(name, "OUT");
                plain.replace(&name.replace('/', "-"), "OUT")
            });
            refusals.push(each.collect());
        }
        for other in &refusals[1..] {
            assert_eq!(other, &refusals[0], "{group:?}: the refusal tells what is there");
        }
    }
}

/// Fails unless a tool refuses a campaign with a place and a remedy, and shows nothing of what it reaches for.
fn refused(tool: &str, file: &str, result: &Value) {
    let text = result.to_string();
    assert!(!text.contains(MARKER), "{tool} {file}: {text}");
    let leads_out = |words: &str| words.contains("outside of the folder") || words.contains("leads out of");
    let document = told(result);
    if tool == "check_campaign" {
        let findings = document["findings"].as_array().expect("findings");
        let found = findings.iter().find(|finding| finding["message"].as_str().is_some_and(leads_out));
        let found = found.unwrap_or_else(|| panic!("{tool} {file}: {text}"));
        assert_eq!(document["ok"], false, "{file}: {text}");
        assert!(found["line"].is_u64() && found["column"].is_u64(), "{file}: {found}");
        return;
    }
    let error = document["error"].as_str().unwrap_or_default();
    assert_eq!(document["code"], "campaign_refused", "{tool} {file}: {text}");
    assert!(leads_out(error) && error.contains(&format!("{file}:")), "{tool} {file}: {error}");
}

#[test]
fn no_key_opens_a_file_outside_of_the_folder_over_http() {
    let (folder, groups) = reaching_house();
    let connector = Connector::within(folder, &["--campaigns", "campaigns", "--allow-send"]);
    all_refused(&groups, |tool, arguments| connector.call(tool, arguments));
    let listed = connector.call("list_campaigns", &json!({}));
    for item in told(&listed)["items"].as_array().expect("items").iter().filter(|item| item["file"] != "sale.yaml") {
        // Its includes are looked at when its texts are, and a table when it is used.
        let late = ["include-", "sale"].iter().any(|name| item["file"].as_str().expect("a name").starts_with(name));
        assert!(late || item["errors"].as_u64() > Some(0), "{item}");
    }
    assert!(!listed.to_string().contains(MARKER));
}

#[test]
fn no_key_opens_a_file_outside_of_the_folder_over_stdio() {
    let (folder, groups) = reaching_house();
    let mut client = Conversation::begin(folder, &["--campaigns", "campaigns", "--allow-send"]);
    all_refused(&groups, |tool, arguments| {
        let params = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        client.ask(&call)["result"].clone()
    });
    client.end().exits(0);
}

/// The keys called `file` in a schema, from the name of the text on where they are of a channel.
fn file_keys(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let Some(members) = schema.as_object() else {
        schema.as_array().into_iter().flatten().for_each(|schema| file_keys(schema, path, found));
        return;
    };
    for (name, member) in members {
        match name.as_str() {
            "properties" => {
                for (key, schema) in member.as_object().into_iter().flatten() {
                    let whole = format!("{path}.{key}");
                    if key == "file" {
                        let text = ["message.", "caption."].iter().find_map(|text| whole.find(text));
                        found.insert(whole[text.unwrap_or(1)..].to_owned());
                    }
                    file_keys(schema, &whole, found);
                }
            }
            "items" | "additionalProperties" => file_keys(member, &format!("{path}[]"), found),
            _ => file_keys(member, path, found),
        }
    }
}

#[test]
fn every_file_key_of_the_schema_is_tried_here() {
    let printed = Folder::new(false).campaign(&["schema"]).exits(0).stdout;
    let mut found = BTreeSet::new();
    file_keys(&serde_json::from_str(&printed).expect("a schema"), "", &mut found);
    let tried: BTreeSet<String> = FILE_KEYS.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(found, tried, "add a campaign with the new key to `KEYS`");
    for (key, name) in FILE_KEYS {
        assert!(KEYS.iter().any(|(known, _)| *known == name), "{key} has no campaign");
    }
}

#[test]
fn paths_inside_of_the_folder_and_its_templates_are_opened() {
    let folder = house(&Gateway::accepting());
    let whole = folder.path("campaigns").canonicalize().expect("a folder");
    folder.write("campaigns/below/stop.csv", &format!("phone\n{}\n", phone(2)));
    folder.write("campaigns/below/stores.csv", "name;street\nPerson 3;Rynok 2\n");
    folder.write("templates/hello.txt", "Hello {{ name }}, {{ stores['Person 3'].street }}");
    symlink("below/stores.csv", folder.path("campaigns/linked.csv")).expect("a link");
    symlink(whole.join("below"), folder.path("campaigns/whole")).expect("a link");
    let connector = Connector::within(folder, &["--campaigns", "campaigns"]);
    for table in ["linked.csv", "whole/stores.csv", "below/stores.csv"] {
        let list = "file: ./below/../list.csv, max_invalid: 50%, suppress: [whole/stop.csv]";
        let message = "channels: [ sms: { signature: OlenaCo, message: { file: hello.txt } } ]";
        let top = format!("results: below/new/r.csv\ndata: {{ stores: {{ file: {table}, key: name }} }}");
        connector.folder.write("campaigns/inside.yaml", &format!("recipients: {{ {list} }}\n{top}\n{message}\n"));
        let checked = told(&connector.call("check_campaign", &json!({ "campaign": "inside.yaml" })));
        assert_eq!((&checked["ok"], &checked["counts"]["planned"]), (&json!(true), &json!(2)), "{table}: {checked}");
    }
}

#[test]
fn default_results_behind_a_link_are_refused() {
    let folder = house(&Gateway::accepting());
    folder.write("elsewhere/x", "x");
    symlink("../elsewhere", folder.path("campaigns/results")).expect("a link");
    let connector = Connector::within(folder, &["--campaigns", "campaigns"]);
    let checked = told(&connector.call("check_campaign", &json!({ "campaign": "sale.yaml" })));
    assert_eq!((&checked["ok"], &checked["findings"][0]["rule"]), (&json!(false), &json!("path-outside")), "{checked}");
    // A person's command writes there as before.
    connector.folder.campaign(&["run", "campaigns/sale.yaml"]).exits(3);
    assert!(connector.folder.path("elsewhere/sale.sandbox.csv").exists());
}
