//! Completions, hover explanations, code actions and definitions.

use serde_json::Value;

use super::{CAMPAIGN, Editor};

fn labels(answer: &Value) -> Vec<&str> {
    let items = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| item["label"].as_str().expect("a label")).collect()
}

#[test]
fn completions_match_the_cursor_position() {
    let mut editor = Editor::start();
    for (text, needle, offered, not_offered) in [
        ("", "", "recipients", "seed"),
        ("name: x\n", "name: x\n", "channels", "name"),
        ("recipients:\n  ", "recipients:\n  ", "region", "channels"),
        ("name: x\npurpose: ", "purpose: ", "service", "true"),
        ("name: x\ngateway: ", "gateway: ", "main", "production"),
        ("name: x\nchannels:\n  - ", "- ", "viber", "name"),
        (CAMPAIGN, "signature: ", "Shop", "sms"),
        (CAMPAIGN, "Hi {{ ", "plan", "phones"),
        (CAMPAIGN, "from {{ s", "shop", "name"),
    ] {
        editor.open("new.yaml", text);
        let answer = editor.ask_at("textDocument/completion", ("new.yaml", text), needle);
        let labels = labels(&answer);
        assert!(labels.contains(&offered) && !labels.contains(&not_offered), "{needle:?}: {labels:?}");
    }
    editor.finish().0.exits(0);
}

#[test]
fn columns_are_explained_with_masked_samples() {
    let mut editor = Editor::start();
    let text = CAMPAIGN.replace("{{ plan }}", "{{ plan }} {{ phone }}");
    editor.open("sale.yaml", &text);
    editor.wait_for_rules("sale.yaml", &[]);
    let mut hover_text = |needle: &str| {
        let answer = editor.ask_at("textDocument/hover", ("sale.yaml", &text), needle);
        answer["contents"]["value"].as_str().unwrap_or_default().to_owned()
    };
    assert!(hover_text("{{ pla").contains("for example `gold`, `basic`"));
    let phone = hover_text("{{ pho");
    assert!(phone.contains("`+…01`") && !phone.contains("380500000001"), "{phone}");
    assert!(hover_text("{{ sho").contains("`Olena`"));
    assert!(hover_text("recip").contains("The list of recipients"));
    assert!(hover_text("Hi").contains("**`message`**"));
    editor.finish().0.exits(0);
}

#[test]
fn hover_over_a_finding_explains_its_rule() {
    let mut editor = Editor::start();
    let text = CAMPAIGN.replace("signature", "signatur");
    editor.open("sale.yaml", &text);
    editor
        .wait_for_message(|message| message["params"]["diagnostics"].as_array().is_some_and(|shown| !shown.is_empty()));
    let answer = editor.ask_at("textDocument/hover", ("sale.yaml", &text), "signa");
    assert!(answer["contents"]["value"].as_str().is_some_and(|text| text.contains("`unknown-key`")), "{answer}");
    editor.finish().0.exits(0);
}

#[test]
fn code_action_corrects_a_misspelt_key() {
    let mut editor = Editor::start();
    let text = CAMPAIGN.replace("signature", "signatur");
    editor.open("sale.yaml", &text);
    let range = serde_json::json!({ "start": { "line": 5, "character": 0 }, "end": { "line": 5, "character": 9 } });
    let params = serde_json::json!({
        "textDocument": { "uri": editor.uri("sale.yaml") }, "range": range, "context": { "diagnostics": [] },
    });
    let actions = editor.ask("textDocument/codeAction", params);
    assert_eq!(actions[0]["kind"], "quickfix", "{actions}");
    let edits = actions[0]["edit"]["changes"][editor.uri("sale.yaml")].clone();
    assert_eq!(edits[0]["newText"], "signature", "{actions}");
    assert_eq!(edits[0]["range"]["start"], serde_json::json!({ "line": 5, "character": 6 }));
    editor.finish().0.exits(0);
}

#[test]
fn go_to_definition_opens_list_template_and_profile() {
    let mut editor = Editor::start();
    let text = format!("{CAMPAIGN}gateway: main\n").replace("\"Hi {{ plan }} from {{ shop }}\"", "{ file: sms.txt }");
    editor.folder.write("templates/sms.txt", "Hi {{ plan }}");
    editor.open("sale.yaml", &text);
    editor.wait_for_message(|message| message["method"] == "textDocument/publishDiagnostics");
    for (needle, file) in
        [("file: li", "/list.csv"), ("file: sms", "/templates/sms.txt"), ("gateway: m", "/gateways.yaml")]
    {
        let answer = editor.ask_at("textDocument/definition", ("sale.yaml", &text), needle);
        assert!(answer["uri"].as_str().is_some_and(|uri| uri.ends_with(file)), "{needle}: {answer}");
    }
    assert!(editor.ask_at("textDocument/definition", ("sale.yaml", &text), "signature: S").is_null());
    editor.finish().0.exits(0);
}
