//! Webhook endpoint: forged webhooks, rate limit, timeouts, durable acknowledgement.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Hooked, operations, post, post_with_header, webhook_path, write_secret};
use crate::support::{Gateway, Server, campaign, in_files, run_sql, with_ledger};

#[test]
fn invalid_webhooks_change_nothing() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(2).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let operations = operations(&gateway);
    let (first, second) = (webhook_path(&operations[0]), webhook_path(&operations[1]));
    let delivered = json!({"success": true, "status": "DELIVERED"}).to_string();
    let mac = first.rsplit('/').next().expect("a mac");
    let swapped_mac = format!("{}/{mac}", second.rsplit_once('/').expect("a mac").0);
    for (path, status) in [
        (swapped_mac.as_str(), 404),
        (&first[..first.len() - 1], 404),
        (&first[..first.len() - 16], 404),
        (&first.to_uppercase(), 404),
        ("/h/sale@1/1/00000000000000000000000000000000", 404),
        ("/h/sale@1", 404),
        ("/n/00000000000000000000000000000000", 404),
        ("/healthz", 404),
        ("/metrics", 404),
        ("/", 404),
    ] {
        assert_eq!(post(&hooked.address, path, &delivered), status, "{path}");
    }
    for (body, status) in [
        ("no json", 400),
        ("{}", 400),
        (r#"{"status":"DELIVERED","id":"1"}"#, 200),
        (r#"{"status":"DELIVERED","id":true}"#, 200),
    ] {
        assert_eq!(post(&hooked.address, first, body), status, "{body}");
    }
    let large = format!(r#"{{"status":"DELIVERED","error":"{}"}}"#, "x".repeat(300_000));
    assert_eq!(post(&hooked.address, first, &large), 413);
    assert_eq!(hooked.results().states(), ["accepted", "accepted"]);
    assert_eq!(post(&hooked.address, first, &delivered), 200);
    assert_eq!(hooked.results().states(), ["delivered", "accepted"]);
    drop(server);
}

#[test]
fn forged_webhooks_are_throttled_but_genuine_ones_are_not() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let forged = "/h/sale@1/7/00000000000000000000000000000000";
    let statuses: Vec<u16> = (0..200).map(|_| post(&hooked.address, forged, "{}")).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
    let delivered = json!({"success": true, "status": "DELIVERED"}).to_string();
    assert_eq!(hooked.post(&operations(&gateway)[0], &delivered), 200);
    assert_eq!(hooked.results().states(), ["delivered"]);
    drop(server);
}

#[test]
fn only_the_forging_client_behind_a_trusted_proxy_is_throttled() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = Server::start(&hooked.sale, &["--hooks", &hooked.address, "--trusted-proxy", "127.0.0.1/32"]);
    hooked.sale.run(&[]).exits(0);
    let forged = "/h/sale@1/7/00000000000000000000000000000000";
    let post_from = |sender: &str, path: &str| {
        post_with_header(&hooked.address, path, &format!("X-Forwarded-For: {sender}"), r#"{"status":"DELIVERED"}"#)
    };
    let statuses: Vec<u16> = (0..200).map(|_| post_from("203.0.113.7", forged)).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(post_from("203.0.113.8", forged), 404, "another sender behind the same proxy");
    assert_eq!(post_from("203.0.113.7", webhook_path(&operations(&gateway)[0])), 200, "a valid webhook URL");
    assert_eq!(hooked.results().states(), ["delivered"]);
    drop(server);
}

#[test]
fn silent_client_is_disconnected() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let (path, body) = (webhook_path(&operations(&gateway)[0]).to_owned(), r#"{"status":"DELIVERED"}"#);
    let request = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let started_at = Instant::now();
    // One client sends nothing, one sends part of a request head, and one stays connected after a complete request.
    let silent = ["", &request[..20], &request].map(|sent| {
        let mut stream = TcpStream::connect(&hooked.address).expect("a connection");
        stream.write_all(sent.as_bytes()).expect("sent");
        stream.set_read_timeout(Some(Duration::from_secs(25))).expect("a timeout");
        stream
    });
    let response_sizes = silent.map(|mut stream| {
        let mut response = Vec::new();
        stream.read_to_end(&mut response).expect("the end of the stream");
        response.len()
    });
    assert!(response_sizes[0] == 0 && response_sizes[2] > 0, "{response_sizes:?}");
    assert!(started_at.elapsed() < Duration::from_secs(20), "{:?}", started_at.elapsed());
    drop(server);
}

#[test]
fn run_is_refused_if_the_server_lacks_its_hook_secret() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    write_secret(&hooked.sale, "hook.secret", 't');
    hooked.sale.run(&[]).exits(2).says("the `hook` secret of the profile `local` differs");
    assert!(gateway.sends().is_empty());
    write_secret(&hooked.sale, "old.secret", 's');
    hooked.sale.replace(
        "gateways.yaml",
        "secret: { file: hook.secret }",
        "secret: [{ file: hook.secret }, { file: old.secret }]",
    );
    server.end("TERM").exits(0);
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let operation = &operations(&gateway)[0];
    assert_eq!(hooked.post(operation, r#"{"status":"READ"}"#), 200);
    drop(server);
}

#[test]
fn requested_webhook_endpoint_needs_a_profile_with_a_hook() {
    let sale = campaign().through(&Gateway::accepting()).write();
    sale.campaign(&["serve", "--listen", "127.0.0.1:0", "--hooks", "127.0.0.1:0"])
        .exits(2)
        .says("no profile has a usable `hook`");
    let server = Server::start(&sale, &[]);
    assert!(server.listening()["hooks"].is_null());
}

#[test]
fn acknowledged_receipt_survives_a_kill_of_the_server() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(60).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    for operation in &operations(&gateway) {
        assert_eq!(hooked.post(operation, r#"{"status":"DELIVERED"}"#), 200);
    }
    server.end("KILL");
    assert!(hooked.results().states().iter().all(|state| *state == "delivered"));
}

#[test]
fn webhook_is_acknowledged_only_after_the_ledger_is_written() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let operation = &operations(&gateway)[0];
    let body = r#"{"status":"DELIVERED"}"#;
    let mut waiting = TcpStream::connect(&hooked.address).expect("a connection");
    with_ledger(&hooked.sale, async |ledger| {
        run_sql(ledger, "BEGIN IMMEDIATE").await;
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
            webhook_path(operation),
            body.len()
        );
        waiting.write_all(head.as_bytes()).expect("sent");
        waiting.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
        let early = waiting.read(&mut [0; 64]);
        assert!(early.is_err(), "answered before the commit");
        run_sql(ledger, "ROLLBACK").await;
    });
    waiting.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let mut answer = [0; 12];
    waiting.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200");
    assert_eq!(hooked.results().states(), ["delivered"]);
    drop(server);
}

#[test]
fn incomplete_request_body_times_out() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let operation = &operations(&gateway)[0];
    let mut slow = TcpStream::connect(&hooked.address).expect("a connection");
    let head = format!("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{{", webhook_path(operation));
    slow.write_all(head.as_bytes()).expect("sent");
    assert_eq!(hooked.post(operation, r#"{"status":"DELIVERED"}"#), 200);
    slow.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let mut answer = [0; 12];
    slow.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 408");
    drop(server);
}

#[test]
fn account_webhook_url_is_printed_but_calls_to_it_are_untrusted() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let hook = hooked.sale.campaign(&["gateway", "hook", "local", "--json"]).exits(0).json();
    let address = hook["address"].as_str().expect("an address");
    let path = address.trim_start_matches(&format!("http://{}", hooked.address));
    let receipt = json!({"id": operations(&gateway)[0]["id"].to_string(), "status": "DELIVERED", "success": true});
    assert_eq!(post(&hooked.address, path, &receipt.to_string()), 200);
    assert_eq!(post(&hooked.address, path, "no json"), 400);
    assert_eq!(hooked.results().states(), ["accepted"]);
    // An opt-out is reported nowhere else.
    let reply = |text: &str| {
        let replies = json!([{ "message": text }]);
        json!({"id": operations(&gateway)[0]["id"], "status": "REPLIED", "replies": replies}).to_string()
    };
    let listed = || hooked.sale.campaign(&["suppress", "list", "--json"]).exits(0).json_list().as_array().map(Vec::len);
    for (text, number) in [("Thank you!", 0), ("STOP", 1), ("START", 1)] {
        assert_eq!(post(&hooked.address, path, &reply(text)), 200);
        assert_eq!(listed(), Some(number), "{text}");
    }
    drop(server);
}
