//! Protocol messages (JSON-RPC and HTTP headers) in each revision.

use serde_json::{Value, json};

use super::Connector;
use crate::support::Gateway;

const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
const MODERN: &str = "2026-07-28";

/// Headers and a message, with the expected status and error code.
type Case<'a> = (Vec<(&'a str, &'a str)>, String, u16, i64);

/// Builds a valid message of the revision without a handshake.
fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": "a", "method": method, "params": params })
}

#[test]
fn handshake_selects_a_revision_that_both_sides_support() {
    let connector = Connector::for_gateway(&Gateway::accepting());
    for (requested, selected) in
        LEGACY.map(|known| (known, known)).into_iter().chain([("2024-11-05", LEGACY[0]), (MODERN, LEGACY[0])])
    {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": requested, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
        let result = connector.post(&[], &hello.to_string()).json()["result"].clone();
        assert_eq!((&result["protocolVersion"], &result["serverInfo"]["name"]), (&json!(selected), &json!("campaign")));
        assert_eq!(result["capabilities"], json!({ "tools": {} }));
        assert_eq!(result.get("resultType"), None);
    }
    let notification = connector.post(&[], r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!((notification.status, notification.body.as_str()), (202, ""));
    for version in LEGACY {
        let ping = connector.post(&[("MCP-Protocol-Version", version)], r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert_eq!(ping.json(), json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    }
}

#[test]
fn messages_without_a_handshake_name_their_revision() {
    let connector = Connector::for_gateway(&Gateway::accepting());
    let headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "server/discover")];
    let answer = connector.post(&headers, &modern("server/discover", json!({})).to_string());
    let result = &answer.json()["result"];
    assert_eq!(result["supportedVersions"], json!([MODERN, LEGACY[0], LEGACY[1], LEGACY[2]]));
    assert_eq!((&result["resultType"], result["ttlMs"].is_u64()), (&json!("complete"), true));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "campaign");
    let listed = connector.post(
        &[("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")],
        &modern("tools/list", json!({})).to_string(),
    );
    let names: Vec<String> = listed.json()["result"]["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(names, ["balance", "senders", "message_status", "sms_templates", "viber_templates", "lookup_number"]);
    for encoded in ["balance", "=?base64?YmFsYW5jZQ==?="] {
        let headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", encoded)];
        let call =
            connector.post(&headers, &modern("tools/call", json!({ "name": "balance", "arguments": {} })).to_string());
        assert_eq!((call.status, &call.json()["result"]["resultType"]), (200, &json!("complete")));
    }
}

#[test]
fn invalid_request_gets_the_expected_code_and_status() {
    let connector = Connector::for_gateway(&Gateway::accepting());
    let list = modern("tools/list", json!({}));
    let without = |key: &str| {
        let mut message = list.clone();
        message["params"]["_meta"].as_object_mut().expect("an object").remove(key);
        message.to_string()
    };
    let future = list.to_string().replace(MODERN, "2099-01-01");
    let valid_headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")];
    let call = modern("tools/call", json!({ "name": "balance" })).to_string();
    let call_headers =
        |name: &'static str| [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", name)];
    let table: Vec<Case<'_>> = vec![
        (vec![], "{".into(), 400, -32700),
        (vec![], "[]".into(), 400, -32600),
        (vec![], r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#.into(), 400, -32600),
        (vec![], r#"{"id":1,"method":"ping"}"#.into(), 400, -32600),
        (vec![], r#"{"jsonrpc":"2.0","id":1}"#.into(), 400, -32600),
        (vec![], r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.into(), 400, -32600),
        (vec![], r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.into(), 400, -32600),
        (vec![], r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#.into(), 400, -32600),
        (vec![], r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#.into(), 200, -32601),
        (vec![], r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_sms","arguments":{"confirm":true}}}"#.into(), 200, -32602),
        (vec![("MCP-Protocol-Version", "2099-01-01")], r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.into(), 400, -32022),
        // Two revisions in one message are a contradiction, even if only one of them is known.
        (valid_headers.to_vec(), future.clone(), 400, -32020),
        (vec![("MCP-Protocol-Version", "2099-01-01"), ("Mcp-Method", "tools/list")], list.to_string(), 400, -32020),
        (vec![("MCP-Protocol-Version", "2099-01-01"), ("Mcp-Method", "tools/list")], future, 400, -32022),
        (valid_headers.to_vec(), without("io.modelcontextprotocol/protocolVersion"), 400, -32602),
        (valid_headers.to_vec(), without("io.modelcontextprotocol/clientCapabilities"), 400, -32602),
        (vec![], list.to_string(), 400, -32020),
        (vec![("MCP-Protocol-Version", MODERN)], list.to_string(), 400, -32020),
        (vec![("MCP-Protocol-Version", LEGACY[0]), ("Mcp-Method", "tools/list")], list.to_string(), 400, -32020),
        (vec![("MCP-Protocol-Version", MODERN), ("Mcp-Method", "ping")], list.to_string(), 400, -32020),
        (call_headers("senders").to_vec(), call.clone(), 400, -32020),
        (call_headers("=?base64?%%?=").to_vec(), call, 400, -32020),
        (vec![("MCP-Protocol-Version", MODERN), ("Mcp-Method", "ping")], modern("ping", json!({})).to_string(), 404, -32601),
    ];
    for (headers, message, status, code) in table {
        let answer = connector.post(&headers, &message);
        let error = answer.json();
        assert_eq!((answer.status, &error["error"]["code"]), (status, &json!(code)), "{headers:?} {message} {error}");
        if code == -32022 {
            assert_eq!(error["error"]["data"]["requested"], "2099-01-01");
            assert_eq!(error["error"]["data"]["supported"][0], MODERN);
        }
    }
    // For an unreadable message, the error has a null `id` in the old revisions, and no `id` in the new one.
    assert_eq!(connector.post(&[], "{").json().get("id"), Some(&Value::Null));
    assert_eq!(connector.post(&[("MCP-Protocol-Version", MODERN)], "{").json().get("id"), None);
}
