//! What a person writes into a program of an assistant.

use serde_json::{Value, json};

use crate::support::{Folder, KEY};

#[test]
fn each_client_gets_the_entry_in_the_form_of_its_own_file_and_with_its_own_variable() {
    let folder = Folder::new(false);
    let table = [
        (Some("claude"), "/mcpServers/campaign", "Bearer ${CAMPAIGN_KEY}"),
        (Some("cursor"), "/mcpServers/campaign", "Bearer ${env:CAMPAIGN_KEY}"),
        (Some("vscode"), "/servers/campaign", "Bearer ${input:campaign-key}"),
        (Some("generic"), "", "Bearer ${CAMPAIGN_KEY}"),
        (None, "", "Bearer ${CAMPAIGN_KEY}"),
    ];
    for (client, place, bearer) in table {
        let named = client.map_or(vec![], |client| vec!["--client", client]);
        for form in [&[][..], &["--json"]] {
            let arguments = [&["connector", "--print-config", "--listen", "127.0.0.1:9000"], &named[..], form].concat();
            let printed = folder.campaign(&arguments).exits(0);
            let file: Value =
                serde_json::from_str(&printed.stdout).expect("what is printed is the file, and nothing else");
            let entry =
                json!({ "type": "http", "url": "http://127.0.0.1:9000/mcp", "headers": { "Authorization": bearer } });
            assert_eq!(file.pointer(place), Some(&entry), "{client:?}");
            assert!(!printed.stdout.contains(KEY), "{}", printed.stdout);
        }
    }
    let asked = folder.campaign(&["connector", "--print-config", "--client", "vscode"]).exits(0);
    let file: Value = serde_json::from_str(&asked.stdout).expect("JSON");
    // Its variable is one that it asks for, without showing what is typed.
    assert_eq!((&file["inputs"][0]["id"], &file["inputs"][0]["password"]), (&json!("campaign-key"), &json!(true)));
}

#[test]
fn an_entry_names_the_address_by_which_a_client_reaches_the_connector() {
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
    // An entry for a port that is picked at each start would be wrong tomorrow.
    folder.campaign(&["connector", "--print-config", "--listen", "127.0.0.1:0"]).exits(2).says("--listen");
    folder.campaign(&["connector", "--client", "claude"]).exits(2).says("--print-config");
}
