//! Arguments as clients write them: whole-number floats, nulls, repeated members and invalid phone numbers.

use serde_json::{Value, json};

use super::stdio::Conversation;
use super::{Connector, folder_with_profile, parse_result, tool_call};
use crate::support::{Answer, Gateway, KEY_VARIABLE};

/// Builds a tool call with exactly this JSON text as its arguments.
fn raw_call(tool: &str, arguments: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#)
}

/// Returns the answers over HTTP, after checking that stdio gives the same answers.
fn ask_over_both_transports(gateway: &Gateway, options: &[&str], messages: &[String]) -> Vec<Value> {
    let connector = Connector::start(gateway, options);
    let mut client = Conversation::start_in(folder_with_profile(gateway, &format!("env: {KEY_VARIABLE}")), options);
    let answers = messages.iter().map(|message| {
        let http = connector.post(&[], message).json();
        assert_eq!(client.ask_raw(message), http, "{message}");
        http
    });
    answers.collect()
}

fn problems(answer: &Value) -> Vec<String> {
    let refusal = parse_result(&answer["result"]);
    assert_eq!(refusal["refused"], true, "{refusal}");
    let problems = refusal["problems"].as_array().expect("a list").iter();
    problems.map(|problem| problem.as_str().expect("a sentence").to_owned()).collect()
}

#[test]
fn whole_floats_are_integers_in_every_preview() {
    let gateway = Gateway::accepting();
    let viber = |lifetime: &str| {
        let arguments =
            r#"{"phone": 3.80501234567e11, "sender": "OlenaCo", "text": "Hi", "id": 4711.0, "lifetime": LIFETIME}"#;
        raw_call("send_viber", &arguments.replace("LIFETIME", lifetime))
    };
    let accepted = ["3600.0", "3.6e3", "3600"];
    let refused = ["3600.5", "1e300", "-0.0", "9007199254740993", "\"3600\"", "59", "true"];
    let messages: Vec<String> = accepted.into_iter().chain(refused).map(viber).collect();
    let answers = ask_over_both_transports(&gateway, &["--allow-send"], &messages);
    for answer in &answers[..accepted.len()] {
        let refusal = parse_result(&answer["result"]);
        let expected = json!({
            "phone": "…4567", "channels": ["viber"], "sender": "OlenaCo", "text": "Hi", "id": 4711, "lifetime": 3600,
            "viber_type": "text",
        });
        assert_eq!((&refusal["preview"], &refusal["problems"]), (&expected, &json!([])), "{refusal}");
    }
    for answer in &answers[accepted.len()..] {
        let problems = problems(answer);
        assert!(
            problems.len() == 1 && problems[0].starts_with("`lifetime` must be a whole number from "),
            "{problems:?}"
        );
    }
    assert!(gateway.sends().is_empty());
}

#[test]
fn whole_floats_are_sent_as_they_are_shown() {
    let gateway = Gateway::accepting();
    let connector = Connector::start(&gateway, &["--allow-send"]);
    let arguments = r#"{"phone": "380501234567", "sender": "OlenaCo", "text": "Hi", "id": 4711.0, "lifetime": 3600.0, "confirm": true}"#;
    let accepted = parse_result(&connector.post(&[], &raw_call("send_viber", arguments)).json()["result"]);
    assert_eq!((&accepted["accepted"], &accepted["id"]), (&json!(true), &json!(4711)), "{accepted}");
    let sent = gateway.sends().pop().expect("a request").operations().remove(0);
    assert_eq!((&sent["id"], &sent["viber_lifetime"]), (&json!(4711), &json!(3600)), "{sent}");
}

#[test]
fn whole_floats_count_as_integers_in_read_only_tools() {
    let list = json!([{ "id": 5 }, { "id": 6 }, { "id": 7 }]);
    let gateway = Gateway::always(Answer::items(move |operation| match operation["type"].as_str() {
        Some("template/list") => json!({ "success": true, "data": list }),
        other => panic!("{other:?}"),
    }));
    let connector = Connector::for_gateway(&gateway);
    let ask = |tool, arguments| parse_result(&connector.post(&[], &raw_call(tool, arguments)).json()["result"]);
    for arguments in [r#"{"limit": 1.0, "offset": 1.0}"#, r#"{"limit": 1e0, "offset": 10e-1}"#] {
        let page = ask("sms_templates", arguments);
        assert_eq!(page, json!({ "items": [{ "id": 6 }], "total": 3, "truncated": true }));
    }
    assert_eq!(ask("sms_templates", r#"{"offset": -0.0}"#)["total"], 3);
    assert_eq!(ask("message_status", r#"{"id": 4711.0}"#)["status"], "ACCEPTED");
    let request_count = gateway.requests().len();
    for (tool, arguments, name) in [
        ("sms_templates", r#"{"limit": 1.5}"#, "`limit`"),
        ("sms_templates", r#"{"limit": 0.0}"#, "`limit`"),
        ("sms_templates", r#"{"offset": 1e300}"#, "`offset`"),
        ("message_status", r#"{"id": 9007199254740992}"#, "`id`"),
        ("message_status", r#"{"id": 9007199254740993.0}"#, "`id`"),
        ("message_status", r#"{"id": 18446744073709551616}"#, "`id`"),
        ("message_status", r#"{"id": -0.0}"#, "`id`"),
    ] {
        let error = ask(tool, arguments);
        let words = error["error"].as_str().expect("words");
        assert_eq!(error["code"], "invalid_argument");
        assert!(words.starts_with(name) && words.contains("must be a whole number from"), "{words}");
    }
    assert_eq!(gateway.requests().len(), request_count);
}

#[test]
fn repeated_members_of_a_call_are_refused_at_any_depth() {
    let gateway = Gateway::accepting();
    let sms = r#""text": "Hi", "sender": "OlenaCo", "confirm": true"#;
    let mut messages = vec![
        raw_call("send_sms", &format!(r#"{{"phone": 380501234567, "phone": 380501234568, {sms}}}"#)),
        raw_call("send_sms", &format!(r#"{{"phone": 380501234567, "confirm": false, {sms}}}"#)),
        raw_call("send_sms", &format!(r#"{{"phone": 380501234567, "ph\u006fne": 380501234568, {sms}}}"#)),
        raw_call(
            "send_chain",
            r#"{"phone": 380501234567, "channels": ["sms"], "confirm": true,
                "sms": {"message": "Hi", "signature": "OlenaCo", "message": "Ho"}}"#,
        )
        .replace('\n', " "),
    ];
    let repeated = messages[0].replace(r#""phone": 380501234568, "#, "");
    messages.push(repeated.replace(r#""name":"send_sms""#, r#""name":"balance","name":"send_sms""#));
    messages.push(repeated.replace(r#""params":"#, r#""params":{},"params":"#));
    for answer in ask_over_both_transports(&gateway, &["--allow-send"], &messages) {
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32600)), "{answer}");
        let words = answer["error"]["message"].as_str().expect("words");
        assert!(words.ends_with("appears twice"), "{words}");
    }
    let two_ids =
        ask_over_both_transports(&gateway, &[], &[r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#.to_owned()]);
    assert_eq!((&two_ids[0]["id"], &two_ids[0]["error"]["code"]), (&json!(null), &json!(-32600)));
    assert!(gateway.requests().is_empty());
}

#[test]
fn null_counts_as_absent_and_confirms_nothing() {
    let gateway =
        Gateway::always(Answer::items(|_| json!({ "success": true, "data": { "amount": 7, "currency": "UAH" } })));
    let messages = [
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#.to_owned(),
        raw_call("balance", "null"),
        raw_call("send_sms", "null"),
        raw_call(
            "send_viber",
            r#"{"phone": "380501234567", "text": "Hi", "sender": "OlenaCo", "lifetime": null, "image": null, "id": null,
                "viber_type": null, "short_link": null, "repeat": null, "confirm": null}"#,
        )
        .replace('\n', " "),
        raw_call("send_sms", r#"{"phone": null, "text": "Hi", "sender": "OlenaCo", "hook": null}"#),
    ];
    let answers = ask_over_both_transports(&gateway, &["--allow-send"], &messages);
    assert_eq!(answers[0]["result"], json!({}));
    assert_eq!(parse_result(&answers[1]["result"])["amount"], 7);
    assert!(problems(&answers[2]).len() >= 3, "{}", answers[2]);
    let refusal = parse_result(&answers[3]["result"]);
    let expected =
        json!({ "phone": "…4567", "channels": ["viber"], "sender": "OlenaCo", "text": "Hi", "viber_type": "text" });
    assert_eq!((&refusal["preview"], &refusal["problems"]), (&expected, &json!([])), "{refusal}");
    let missing = problems(&answers[4]);
    assert!(missing.iter().any(|problem| problem.starts_with("`phone` is missing")), "{missing:?}");
    assert!(missing.iter().any(|problem| problem.contains("no argument `hook`")), "{missing:?}");
    assert!(gateway.sends().iter().all(|request| request.operations()[0]["type"] == "balance"));
}

#[test]
fn invalid_phone_is_explained_without_showing_the_number() {
    let gateway = Gateway::accepting();
    let table = [
        (json!("38050marker"), "`phone` has letters; write digits only, with the country code first"),
        (json!("380 50 123 45 67"), "`phone` has spaces; write the digits without spaces"),
        (json!("380-50-1234567"), "`phone` has characters other than digits"),
        (json!("0501234567"), "`phone` starts with 0; write the country code first"),
        (json!("38050"), "`phone` has 5 digits"),
        (json!(1234567), "`phone` has 7 digits"),
        (json!("3805012345673805"), "`phone` has 16 digits"),
        (json!("380001234567"), "`phone` is not a valid phone number"),
        (json!(["380501234567"]), "`phone` must be a single phone number"),
        (json!(3.5), "`phone` must be a single phone number"),
    ];
    let lookups: Vec<String> =
        table.iter().map(|(phone, _)| tool_call("lookup_number", &json!({ "phone": phone }))).collect();
    let sms = |phone| tool_call("send_sms", &json!({ "phone": phone, "text": "Hi", "sender": "OlenaCo" }));
    let previews: Vec<String> = table.iter().map(|(phone, _)| sms(phone)).collect();
    let lookups = ask_over_both_transports(&gateway, &["--allow-send"], &lookups);
    let previews = ask_over_both_transports(&gateway, &["--allow-send"], &previews);
    for ((_, words), (lookup, preview)) in table.iter().zip(lookups.iter().zip(&previews)) {
        let error = parse_result(&lookup["result"]);
        assert_eq!(error["code"], "invalid_argument");
        for sentence in [error["error"].as_str().expect("words").to_owned(), problems(preview).join("; ")] {
            assert!(sentence.starts_with(words), "{sentence}");
            assert!(!sentence.contains("50123") && !sentence.contains("marker"), "{sentence}");
        }
    }
    assert!(gateway.requests().is_empty());
}
