//! The language server protocol: message order, error codes and malformed messages.

use serde_json::{Value, json};

use super::{CAMPAIGN, Editor};

#[test]
fn server_announces_its_capabilities_and_exits_0() {
    let mut editor = Editor::spawn();
    let capabilities = editor.initialize()["capabilities"].clone();
    assert_eq!(capabilities["positionEncoding"], "utf-16");
    for feature in
        ["hoverProvider", "definitionProvider", "codeActionProvider", "completionProvider", "textDocumentSync"]
    {
        assert!(!capabilities[feature].is_null(), "{feature}: {capabilities}");
    }
    let (ended, stderr) = editor.finish();
    ended.exits(0);
    assert_eq!(stderr, "");
}

#[test]
fn utf8_columns_are_used_if_the_editor_offers_them() {
    let mut editor = Editor::spawn();
    let general = json!({ "general": { "positionEncodings": ["utf-16", "utf-8"] } });
    let answer = editor.ask("initialize", json!({ "processId": null, "rootUri": null, "capabilities": general }));
    assert_eq!(answer["capabilities"]["positionEncoding"], "utf-8");
    editor.open("a.yaml", "title: Олена\nvars: { a: \"я\", Б: x }\n");
    editor.wait_for_message(|message| message["method"] == "textDocument/publishDiagnostics");
    let shown = editor.diagnostics("a.yaml");
    let finding = shown.iter().find(|shown| shown["range"]["start"]["line"] == 1).expect("a finding");
    assert_eq!(finding["range"]["start"]["character"], 17, "{shown:?}");
    editor.finish().0.exits(0);
}

#[test]
fn exit_without_shutdown_returns_exit_code_1() {
    let mut editor = Editor::start();
    editor.notify("exit", Value::Null);
    editor.wait().0.exits(1);
    let mut closed = Editor::start();
    drop(closed.input.take());
    closed.wait().0.exits(1);
}

#[test]
fn out_of_order_requests_are_refused() {
    let mut editor = Editor::spawn();
    let code = |response: Value| response["error"]["code"].as_i64();
    assert_eq!(code(editor.request("textDocument/hover", json!({}))), Some(-32002));
    assert_eq!(code(editor.request("shutdown", Value::Null)), Some(-32002));
    editor.initialize();
    assert_eq!(code(editor.request("initialize", json!({ "capabilities": {} }))), Some(-32600));
    assert_eq!(code(editor.request("workspace/nothing", json!({}))), Some(-32601));
    assert_eq!(editor.ask("shutdown", Value::Null), Value::Null);
    assert_eq!(code(editor.request("textDocument/hover", json!({}))), Some(-32600));
    editor.notify("exit", Value::Null);
    editor.wait().0.exits(0);
}

#[test]
fn malformed_messages_get_errors_and_the_server_keeps_running() {
    let mut editor = Editor::start();
    for content in ["{", "[]", "\"x\"", "{\"jsonrpc\":\"2.0\"}", "\u{1F600}"] {
        editor.send_raw(content);
        let refused = editor.wait_for_message(|message| message["id"].is_null() && message["method"].is_null());
        assert_eq!(refused["error"]["code"], -32700, "{content}");
    }
    let code = |response: Value| response["error"]["code"].as_i64();
    for params in [json!({}), json!([]), Value::Null, json!({ "textDocument": { "uri": 7 } })] {
        assert_eq!(code(editor.request("textDocument/hover", params)), Some(-32602));
    }
    for (method, params) in [
        ("textDocument/didOpen", json!({})),
        (
            "textDocument/didOpen",
            json!({ "textDocument": { "uri": "untitled:1", "languageId": "", "version": 1, "text": "a" } }),
        ),
        (
            "textDocument/didChange",
            json!({ "textDocument": { "uri": "file:///no/such", "version": 1 }, "contentChanges": [] }),
        ),
        ("textDocument/didClose", json!({ "textDocument": { "uri": "file:///no/such" } })),
        ("workspace/unknown", json!({})),
        ("$/cancelRequest", json!({ "id": 1 })),
    ] {
        editor.notify(method, params);
    }
    for uri in ["file:///no/such.yaml", "untitled:1", "http://x.example/a.yaml"] {
        let params = json!({ "textDocument": { "uri": uri }, "position": { "line": 0, "character": 0 } });
        assert_eq!(editor.ask("textDocument/hover", params), Value::Null, "{uri}");
    }
    editor.open("sale.yaml", CAMPAIGN);
    let far_position = json!({ "textDocument": { "uri": editor.uri("sale.yaml") }, "position": { "line": 4_000_000_000_u32, "character": 4_000_000_000_u32 } });
    for method in ["textDocument/hover", "textDocument/completion", "textDocument/definition"] {
        let response = editor.request(method, far_position.clone());
        assert!(response["error"].is_null(), "{method}: {response}");
    }
    editor.wait_for_rules("sale.yaml", &[]);
    let (ended, stderr) = editor.finish();
    ended.exits(0);
    assert!(!stderr.contains("panicked"), "{stderr}");
}
