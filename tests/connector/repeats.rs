//! Duplicate protection: the same message to the same number is sent at most once a minute, across all connectors on a
//! ledger.

use std::thread;

use serde_json::{Value, json};

use super::secrets::{contains_marker, list_files};
use super::stdio::Conversation;
use super::{Connector, LISTEN, folder_with_profile, parse_result, tool_call};
use crate::support::{Answer, Clock, Folder, Gateway, KEY_VARIABLE, in_files};

const PHONE: u64 = 380_501_234_567;
const SENDING: [&str; 1] = ["--allow-send"];

fn sms(text: &str) -> Value {
    json!({ "phone": PHONE, "text": text, "sender": "OlenaCo", "confirm": true })
}

/// Starts a second connector in the folder.
fn second_connector(folder: &Folder) -> Connector {
    Connector::spawn(folder.command(&[&LISTEN[..], &SENDING].concat()), Folder::new(false))
}

/// Sends an SMS and returns `accepted` or the error code.
fn send(connector: &Connector, text: &str) -> Value {
    let answer = parse_result(&connector.call("send_sms", &sms(text)));
    if answer["accepted"] == true { json!("accepted") } else { answer["code"].clone() }
}

#[test]
fn texts_that_differ_only_in_whitespace_are_one_message() {
    let gateway = Gateway::accepting();
    let connector = Connector::start(&gateway, &SENDING);
    assert_eq!(send(&connector, "Добрий день, Київ"), "accepted");
    for same in ["Добрий день, Київ ", "\n Добрий день, Київ", "Добрий  день,\r\nКиїв", "Добрий\u{a0}день, Киі\u{308}в"]
    {
        assert_eq!(send(&connector, same), "repeated", "{same:?}");
    }
    assert_eq!(send(&connector, "добрий день, Київ"), "accepted", "case counts");
    let stage = json!({ "signature": "OlenaCo", "message": "Добрий день, Київ" });
    let chain = json!({ "phone": PHONE, "channels": ["sms"], "sms": stage, "confirm": true });
    assert_eq!(parse_result(&connector.call("send_chain", &chain))["code"], "repeated", "any tool");
    assert_eq!(gateway.phones(), [PHONE; 2]);
}

#[test]
fn repeats_are_refused_across_connectors_and_restarts() {
    let gateway = Gateway::accepting();
    let folder = folder_with_profile(&gateway, &format!("env: {KEY_VARIABLE}"));
    let mut client = Conversation::start_in(folder, &SENDING);
    let other = second_connector(client.folder());
    let call = serde_json::from_str::<Value>(&tool_call("send_sms", &sms("Hi"))).expect("a message");
    assert_eq!(parse_result(&client.ask(&call)["result"])["accepted"], true);
    assert_eq!(send(&other, "Hi "), "repeated");
    assert_eq!(parse_result(&client.ask(&call)["result"])["code"], "repeated");
    let restarted = second_connector(client.folder());
    other.finish().exits(0);
    assert_eq!(send(&restarted, "Hi"), "repeated");
    let mut again = sms("Hi");
    again["repeat"] = json!(true);
    assert_eq!(parse_result(&restarted.call("send_sms", &again))["accepted"], true);
    assert_eq!(gateway.phones(), [PHONE; 2]);
}

#[test]
fn two_concurrent_connectors_send_a_message_once() {
    let gateway = Gateway::accepting();
    let first = Connector::start(&gateway, &SENDING);
    let other = second_connector(&first.folder);
    for text in ["Hi", "Ho", "Ha"] {
        let codes = thread::scope(|scope| {
            let calls: Vec<_> = [&first, &other, &first, &other]
                .map(|connector| scope.spawn(move || send(connector, text)))
                .into_iter()
                .collect();
            calls.into_iter().map(|call| call.join().expect("an answer")).collect::<Vec<_>>()
        });
        assert_eq!(codes.iter().filter(|code| *code == "accepted").count(), 1, "{codes:?}");
        assert_eq!(codes.iter().filter(|code| *code == "repeated").count(), 3, "{codes:?}");
    }
    assert_eq!(gateway.phones(), [PHONE; 3]);
}

#[test]
fn rejected_message_can_be_sent_by_another_connector() {
    let gateway = Gateway::answering([Answer::rejection("No route"), Answer::CloseRead]).with_key_checks();
    let first = Connector::start(&gateway, &SENDING);
    let other = second_connector(&first.folder);
    assert_eq!(send(&first, "Hi"), "platform_error");
    // The request was sent, but its answer was lost.
    assert_eq!(send(&other, "Hi"), "unknown_outcome");
    assert_eq!(send(&first, "Hi"), "repeated");
}

#[test]
fn message_can_be_sent_again_after_a_minute() {
    let _files = in_files();
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let folder = folder_with_profile(&gateway, &format!("env: {KEY_VARIABLE}"));
    let command = folder.command_after(&clock.adjustable(), &[&LISTEN[..], &SENDING].concat());
    let connector = Connector::spawn(command, folder);
    assert_eq!(send(&connector, "Hi"), "accepted");
    clock.advance(50);
    assert_eq!(send(&connector, "Hi"), "repeated");
    clock.advance(70);
    assert_eq!(send(&connector, "Hi"), "accepted");
    assert_eq!(gateway.phones(), [PHONE; 2]);
}

#[test]
fn repeat_detection_does_not_store_the_text() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let connector = Connector::start(&gateway, &SENDING);
    assert_eq!(send(&connector, "marker-of-a-text"), "accepted");
    let (ended, folder) = connector.finish_with_folder();
    ended.exits(0);
    for file in list_files(&folder.path("state")) {
        let bytes = std::fs::read(&file).expect("a file");
        assert!(!contains_marker(&bytes, "marker-of-a-text"), "{}", file.display());
    }
}
