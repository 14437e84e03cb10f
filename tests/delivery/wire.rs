//! HTTP requests to the gateway, byte by byte (contract 2.1, 4.1, 4.2, 5).

use serde_json::Value;

use crate::support::{Gateway, KEY, campaign, phone};

#[test]
fn request_for_one_sms_has_exactly_the_expected_bytes() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(1).through(&gateway).write();
    sale.run(&[]).exits(0);
    let id = sale.results().rows[0]["id"].clone();
    let requests = gateway.requests();
    let body = String::from_utf8(requests[0].body.clone()).expect("UTF-8");
    let operation = format!(
        r#"{{"type":"sms","id":{id},"phone":{},"sms_signature":"OlenaCo","sms_message":"Hello, Person 2"}}"#,
        phone(2)
    );
    assert_eq!(body, format!(r#"{{"auth":"{KEY}","data":[{operation}]}}"#));
    assert_eq!(requests.len(), 1);
}

#[test]
fn requests_are_posted_as_json_to_the_path_of_the_endpoint() {
    for (draft, line) in
        [(campaign(), "POST /api/json.php HTTP/1.1"), (campaign().asynchronous(), "POST /v1/json HTTP/1.1")]
    {
        let gateway = Gateway::accepting();
        let sale = draft.through(&gateway).write();
        sale.run(&[]).exits(0);
        for request in gateway.sends() {
            assert_eq!(request.line, line);
            assert_eq!(request.header("content-type"), ["application/json"]);
        }
        assert_eq!(gateway.phones().len(), 3);
    }
}

#[test]
fn key_is_sent_only_in_the_body() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(0);
    for request in gateway.requests() {
        assert_eq!(request.json()["auth"], KEY);
        assert!(!request.line.contains(KEY) && request.headers.iter().all(|(_, value)| !value.contains(KEY)));
        assert!(request.header("authorization").is_empty() && request.header("cookie").is_empty());
    }
}

#[test]
fn ids_are_unique_whole_numbers_below_2_to_the_53() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(40).through(&gateway).write();
    sale.run(&[]).exits(0);
    sale.run(&["--again", "40"]).exits(0);
    let operations = gateway.sends().into_iter().flat_map(|request| request.operations());
    let mut ids: Vec<u64> = operations.map(|operation| operation["id"].as_u64().expect("a whole number")).collect();
    assert!(ids.iter().all(|&id| id < 1 << 53));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 80);
}

#[test]
fn every_text_arrives_as_it_was_written() {
    let gateway = Gateway::accepting();
    let list = "phone,name\n380501234567,\"Ім'я \"\"Олена\"\" <b>&amp; \\ 🎉\"\n";
    let sale = campaign().with_list(list).through(&gateway).write();
    sale.run(&[]).exits(0);
    let message = &gateway.sends()[0].operations()[0]["sms_message"];
    assert_eq!(message, &Value::from("Hello, Ім'я \"Олена\" <b>&amp; \\ 🎉"));
}
