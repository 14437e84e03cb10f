//! HTTP access checks of the connector: hosts, origins, methods, content types and sizes.

use serde_json::json;

use super::Connector;
use crate::support::Gateway;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[test]
fn health_response_has_three_fields_and_needs_no_key() {
    let gateway = Gateway::accepting();
    let connector = Connector::for_gateway(&gateway);
    let answer = connector.ask("GET /health", &[], "");
    let domain = crate::support::Reachable::base_url(&gateway).trim_start_matches("http://").to_owned();
    assert_eq!((answer.status, answer.json()), (200, json!({ "ok": true, "domain": domain, "send_enabled": false })));
}

#[test]
fn requests_with_a_foreign_origin_or_host_are_rejected() {
    let connector = Connector::start(&Gateway::accepting(), &["--origin", "https://assistant.example"]);
    for (header, status) in [
        (("Origin", "http://localhost:6274"), 200),
        (("Origin", "https://assistant.example"), 200),
        (("Origin", "https://stranger.example"), 403),
        (("Origin", "http://assistant.example"), 403),
        (("Origin", "null"), 403),
        (("Origin", "http://127.0.0.1.stranger.example"), 403),
        (("Host", "stranger.example"), 403),
        (("Host", "assistant.example"), 200),
        (("Host", "localhost"), 200),
    ] {
        assert_eq!(connector.post(&[header], PING).status, status, "{header:?}");
    }
}

#[test]
fn invalid_http_requests_get_the_matching_status() {
    let connector = Connector::for_gateway(&Gateway::accepting());
    let get = connector.ask("GET /mcp", &[], "");
    assert_eq!(get.status, 405);
    assert!(get.head.to_ascii_lowercase().contains("allow: post"), "{}", get.head);
    assert_eq!(connector.ask("DELETE /mcp", &[], "").status, 405);
    assert_eq!(connector.post(&[("Content-Type", "text/plain")], PING).status, 415);
    assert_eq!(connector.post(&[("Content-Type", "application/json; charset=utf-8")], PING).status, 200);
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"pad\":\"{}\"}}", "x".repeat(300 * 1024));
    assert_eq!(connector.post(&[], &long).status, 413);
    let unknown_page = connector.ask("GET /.well-known/oauth-protected-resource", &[], "");
    assert_eq!((unknown_page.status, unknown_page.json()["error"].is_string()), (404, true));
}
