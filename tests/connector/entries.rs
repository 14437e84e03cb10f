//! Configuration entries that `--print-config` prints for assistant programs.

use serde_json::{Value, json};

use crate::support::{Folder, KEY, in_files};

#[test]
fn each_client_gets_its_own_entry_format_and_variable() {
    let folder = Folder::new(false);
    let table = [
        (Some("claude"), "/mcpServers/campaign", "Bearer ${CAMPAIGN_KEY}"),
        (Some("cursor"), "/mcpServers/campaign", "Bearer ${env:CAMPAIGN_KEY}"),
        (Some("vscode"), "/servers/campaign", "Bearer ${input:campaign-key}"),
        (Some("generic"), "", "Bearer ${CAMPAIGN_KEY}"),
        (None, "", "Bearer ${CAMPAIGN_KEY}"),
    ];
    for (client, pointer, bearer) in table {
        let client_args = client.map_or(vec![], |client| vec!["--client", client]);
        for form in [&[][..], &["--json"]] {
            let arguments =
                [&["connector", "--print-config", "--listen", "127.0.0.1:9000"], &client_args[..], form].concat();
            let printed = folder.campaign(&arguments).exits(0);
            let file: Value = serde_json::from_str(&printed.stdout).expect("the output is exactly the file");
            let entry =
                json!({ "type": "http", "url": "http://127.0.0.1:9000/mcp", "headers": { "Authorization": bearer } });
            assert_eq!(file.pointer(pointer), Some(&entry), "{client:?}");
            assert!(!printed.stdout.contains(KEY), "{}", printed.stdout);
        }
    }
    let output = folder.campaign(&["connector", "--print-config", "--client", "vscode"]).exits(0);
    let file: Value = serde_json::from_str(&output.stdout).expect("JSON");
    // `password` makes the editor hide the key while the user types it.
    assert_eq!((&file["inputs"][0]["id"], &file["inputs"][0]["password"]), (&json!("campaign-key"), &json!(true)));
}

#[test]
fn client_entry_names_the_address_of_the_connector() {
    let folder = Folder::new(false);
    for (arguments, url) in [
        (&[][..], "http://127.0.0.1:8787/mcp"),
        (&["--listen", "0.0.0.0:9000"], "http://127.0.0.1:9000/mcp"),
        (&["--origin", "https://assistant.example"], "https://assistant.example/mcp"),
    ] {
        let printed = folder.campaign(&[&["connector", "--print-config"], arguments].concat()).exits(0);
        let entry: Value = serde_json::from_str(&printed.stdout).expect("JSON");
        assert_eq!(entry["url"], url, "{arguments:?}");
    }
    // With port 0, the system chooses another port at each start, so an entry would soon be wrong.
    folder.campaign(&["connector", "--print-config", "--listen", "127.0.0.1:0"]).exits(2).says("--listen");
    folder.campaign(&["connector", "--client", "claude"]).exits(2).says("--print-config");
}

#[test]
fn client_entry_for_stdio_has_every_requested_option() {
    let folder = Folder::new(false);
    folder.write("gateways.yaml", "one: { base_url: \"http://127.0.0.1:1\", api_key: { file: one.key }, rate: 1/s }\n");
    let locks =
        ["--allow-send", "--approve", "--max-sends-per-hour", "5", "--only-to", "team.csv", "--campaigns", "sales"];
    let locks = [&locks[..], &["--max-lookups-per-hour", "7"]].concat();
    let printed = folder.campaign(&[&["connector", "--stdio", "--print-config"], &locks[..]].concat()).exits(0);
    let entry: Value = serde_json::from_str(&printed.stdout).expect("JSON");
    let arguments: Vec<&str> = entry["args"].as_array().expect("arguments").iter().filter_map(Value::as_str).collect();
    let value_of = |option: &str| {
        let index = arguments.iter().position(|word| *word == option)?;
        arguments.get(index + 1).copied()
    };
    assert!(arguments.contains(&"--allow-send") && arguments.contains(&"--approve"), "{arguments:?}");
    assert_eq!((value_of("--max-sends-per-hour"), value_of("--max-lookups-per-hour")), (Some("5"), Some("7")));
    for (option, file) in [("--only-to", "team.csv"), ("--campaigns", "sales")] {
        let path = value_of(option).expect("a path");
        assert!(path.starts_with('/') && path.ends_with(file), "{option}: {path}");
    }
}

#[test]
fn client_entry_for_stdio_passes_on_webhook_secrets() {
    let folder = Folder::new(false);
    let hook =
        "{ public_url: \"https://hooks.example\", secret: [{ env: HOOK_NEW }, { file: old.key }, { env: HOOK_OLD }] }";
    let profile = format!(
        "one: {{ base_url: \"http://127.0.0.1:1\", api_key: {{ env: SENDER_KEY }}, rate: 1/s, hook: {hook} }}\n"
    );
    folder.write("gateways.yaml", &profile);
    let printed = |client: &str, options: &[&str]| -> Value {
        let command = [&["connector", "--stdio", "--print-config", "--client", client], options].concat();
        serde_json::from_str(&folder.campaign(&command).exits(0).stdout).expect("the output is exactly the file")
    };
    let key = json!({ "SENDER_KEY": "${SENDER_KEY}" });
    let all = json!({ "SENDER_KEY": "${SENDER_KEY}", "HOOK_NEW": "${HOOK_NEW}", "HOOK_OLD": "${HOOK_OLD}" });
    assert_eq!(printed("generic", &[])["env"], key, "inquiries need no webhook secret");
    assert_eq!(printed("generic", &["--allow-send"])["env"], all);
    assert_eq!(printed("generic", &["--campaigns", "sales"])["env"], all);
    let file = printed("vscode", &["--allow-send"]);
    let ids: Vec<_> = file["inputs"].as_array().expect("inputs").iter().map(|input| input["id"].clone()).collect();
    assert_eq!(ids, ["campaign-key", "campaign-hook-secret-1", "campaign-hook-secret-2"]);
    let env = &file["servers"]["campaign"]["env"];
    assert_eq!(env["HOOK_OLD"], "${input:campaign-hook-secret-2}", "{env}");
}

#[test]
fn client_entry_for_stdio_works_in_any_folder_without_a_key() {
    let _files = in_files();
    let folder = Folder::new(false);
    let profile = "one: { base_url: \"http://127.0.0.1:1\", api_key: { env: SENDER_KEY }, rate: 1/s }\n\
                   two: { base_url: \"http://127.0.0.1:1\", api_key: { file: two.key }, rate: 1/s }\n";
    folder.write("gateways.yaml", profile);
    let printed = |client: &str, gateway: &str| -> Value {
        let command = ["connector", "--stdio", "--print-config", "--client", client, "--gateway", gateway];
        let printed = folder.campaign(&command).exits(0);
        serde_json::from_str(&printed.stdout).expect("the output is exactly the file")
    };
    let folder_path = folder.path("").canonicalize().expect("a folder");
    let folder_path = folder_path.to_str().expect("a path").trim_end_matches('/').to_owned();
    for (client, pointer, variable) in [
        ("claude", "/mcpServers/campaign", "${SENDER_KEY}"),
        ("cursor", "/mcpServers/campaign", "${env:SENDER_KEY}"),
        ("vscode", "/servers/campaign", "${input:campaign-key}"),
        ("generic", "", "${SENDER_KEY}"),
    ] {
        for (gateway, in_environment) in [("one", true), ("two", false)] {
            let file = printed(client, gateway);
            let entry = file.pointer(pointer).expect("an entry");
            let state = format!("{folder_path}/state");
            let gateways = format!("{folder_path}/gateways.yaml");
            let arguments =
                ["connector", "--stdio", "--gateway", gateway, "--gateways", &gateways, "--state-dir", &state];
            assert_eq!((&entry["type"], &entry["args"]), (&json!("stdio"), &json!(arguments)), "{client}");
            assert!(entry["command"].as_str().is_some_and(|command| command.starts_with('/')), "{entry}");
            // Only a key that comes from the environment must be passed on.
            let expected_env = in_environment.then(|| json!({ "SENDER_KEY": variable }));
            assert_eq!(entry.get("env"), expected_env.as_ref(), "{client}");
            assert_eq!(file.get("inputs").is_some(), client == "vscode" && in_environment);
        }
    }
}
