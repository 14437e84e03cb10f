//! Keys that the gateway rejects: a call with such a key changes nothing and does not slow down other callers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::stdio::Conversation;
use super::{Connector, folder_with_profile, parse_result, tool_call};
use crate::support::{Answer, Folder, Gateway, KEY, KEY_VARIABLE, accepted_envelope, campaign, denied};

const PHONE: u64 = 380_501_234_567;

/// Builds a confirmed call of each tool that costs money or changes the account.
fn calls() -> [(&'static str, Value); 6] {
    let (link, image) = ("https://shop.example", "https://cdn.example/a.png");
    let chain = json!({ "message": "Hi", "signature": "OlenaCo" });
    [
        ("send_sms", json!({ "phone": PHONE, "id": 7, "text": "Hi", "sender": "OlenaCo", "confirm": true })),
        ("send_viber", json!({ "phone": PHONE, "text": "Hi", "sender": "OlenaCo", "confirm": true })),
        (
            "send_rcs",
            json!({ "phone": PHONE, "text": "Hi", "sender": "OlenaCo", "image": image, "button": "Buy", "link": link,
                    "confirm": true }),
        ),
        ("send_chain", json!({ "phone": PHONE, "channels": ["sms"], "sms": chain, "confirm": true })),
        ("lookup_number", json!({ "phone": PHONE })),
        ("create_sms_template", json!({ "name": "Sale", "text": "Hi", "confirm": true })),
    ]
}

/// Calls a tool with this key and returns the answer.
fn call_with_key(connector: &Connector, key: &str, tool: &str, arguments: &Value) -> Value {
    let answer = connector.post(&[("Authorization", &format!("Bearer {key}"))], &tool_call(tool, arguments));
    parse_result(&answer.json()["result"])
}

/// Returns the runs in the ledger.
fn runs(folder: &Folder) -> Value {
    folder.campaign(&["status", "--json"]).exits(0).json()["runs"].clone()
}

#[test]
fn refused_key_creates_no_row_and_uses_no_quota() {
    for locks in [&["--allow-send"][..], &["--allow-send", "--approve"]] {
        let gateway = Gateway::always(Answer::for_keys(&[KEY]));
        let limits = ["--max-sends-per-hour", "1", "--max-lookups-per-hour", "1"];
        let connector = Connector::start(&gateway, &[locks, &limits].concat());
        for _ in 0..5 {
            for (tool, arguments) in calls() {
                let error = call_with_key(&connector, "made-up", tool, &arguments);
                assert_eq!(error["code"], "access_denied", "{tool}: {error}");
            }
        }
        assert_eq!(gateway.requests().len(), 1, "the key was checked once");
        assert_eq!(runs(&connector.folder), json!([]));
        // A caller with an accepted key can send the same message with the same `id`, and look up the number.
        let [(sms, message), _, _, _, (lookup, number), _] = calls();
        assert_eq!(parse_result(&connector.call(lookup, &number))["phone"], PHONE.to_string());
        let answer = parse_result(&connector.call(sms, &message));
        let outcome = if locks.len() == 1 { "accepted" } else { "pending" };
        assert_eq!(answer[outcome], true, "{answer}");
    }
}

#[test]
fn refused_key_reveals_neither_opt_outs_nor_windows() {
    let gateway = Gateway::always(Answer::for_keys(&[KEY]));
    let connector = Connector::start(&gateway, &["--allow-send"]);
    connector.folder.campaign(&["suppress", "add", &format!("+{PHONE}")]).exits(0);
    let [(sms, message), ..] = calls();
    assert_eq!(call_with_key(&connector, "made-up", sms, &message)["code"], "access_denied");
    assert_eq!(parse_result(&connector.call(sms, &message))["code"], "opted_out");
    // A preview reveals no more than the confirmed call.
    let mut unconfirmed = message.clone();
    unconfirmed["confirm"] = json!(false);
    let preview = call_with_key(&connector, "made-up", sms, &unconfirmed);
    assert_eq!(preview["problems"], json!(["Access denied"]), "{preview}");
    assert!(
        preview["warnings"][0].as_str().is_some_and(|words| words.contains("does not accept the API key")),
        "{preview}"
    );
    assert!(parse_result(&connector.call(sms, &unconfirmed))["problems"].to_string().contains("suppression list"));
}

#[test]
fn preview_says_why_it_could_not_check_the_key() {
    let gateway = Gateway::always(Answer::status(502));
    let connector = Connector::start(&gateway, &["--allow-send"]);
    let [(sms, mut message), ..] = calls();
    message["confirm"] = json!(false);
    let preview = parse_result(&connector.call(sms, &message));
    assert_eq!(preview["problems"], json!([]), "{preview}");
    assert!(preview["warnings"][0].as_str().is_some_and(|words| words.contains("could not be checked: ")), "{preview}");
}

#[test]
fn message_with_a_revoked_key_keeps_its_row_but_uses_no_quota() {
    // The key is revoked between the key check and the message.
    let gateway = Gateway::always(Answer::from_request(|request| {
        let is_revoked = request.json()["auth"] == "revoked" && !request.is_balance_check();
        if is_revoked { denied() } else { accepted_envelope(request) }
    }));
    let connector = Connector::start(&gateway, &["--allow-send", "--max-sends-per-hour", "1"]);
    let [(sms, message), ..] = calls();
    let error = call_with_key(&connector, "revoked", sms, &message);
    assert_eq!((&error["code"], &error["id"]), (&json!("access_denied"), &json!(7)));
    let request_count = gateway.requests().len();
    let mut other = message.clone();
    other["id"] = json!(8);
    assert_eq!(call_with_key(&connector, "revoked", sms, &other)["code"], "access_denied");
    assert_eq!(gateway.requests().len(), request_count, "the key is not tried again at once");
    assert_eq!(parse_result(&connector.call(sms, &message))["code"], "id_taken");
    assert_eq!(parse_result(&connector.call(sms, &other))["accepted"], true);
    other["id"] = json!(9);
    other["text"] = json!("Ho");
    assert_eq!(parse_result(&connector.call(sms, &other))["code"], "rate_limited", "the sent message counts");
    let status = connector.folder.campaign(&["status", "assistant.message", "--json"]).json();
    assert_eq!(status["counts"].as_object().map(serde_json::Map::len), Some(2), "{status}");
}

#[test]
fn wrong_profile_key_creates_no_row_over_stdio() {
    let gateway = Gateway::always(Answer::for_keys(&["another"]));
    let folder = folder_with_profile(&gateway, &format!("env: {KEY_VARIABLE}"));
    let mut client = Conversation::start_in(folder, &["--allow-send"]);
    for (tool, arguments) in calls() {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = client.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
        assert_eq!(parse_result(&answer["result"])["code"], "access_denied", "{tool}");
    }
    assert_eq!(gateway.requests().len(), 1, "the key was checked once");
    assert_eq!(runs(client.folder()), json!([]));
}

/// Stops a test's callers, even if the test fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn made_up_keys_do_not_slow_down_a_campaign() {
    const MESSAGES: u32 = 40;
    let gateway = Gateway::always(Answer::for_keys(&[KEY]));
    let draft = campaign().to(MESSAGES as usize).through(&gateway).profile("rate: 10/s");
    let draft = draft.delivery("rate: 10/s").delivery("batch: 1");
    let connector = Connector::start_in(draft.write(), &["--allow-send"]);
    let ended = AtomicBool::new(false);
    let [(sms, message), ..] = calls();
    std::thread::scope(|scope| {
        for caller in 0..60 {
            let (connector, ended, message) = (&connector, &ended, &message);
            scope.spawn(move || {
                for call in 0.. {
                    if ended.load(Ordering::SeqCst) {
                        return;
                    }
                    // A third of the callers share one wrong key. The others use a new key for each call.
                    let key = if caller % 3 == 0 { "made-up".to_owned() } else { format!("made-up-{caller}-{call}") };
                    let (tool, arguments) =
                        if caller % 2 == 0 { ("balance", json!({})) } else { (sms, message.clone()) };
                    let code = call_with_key(connector, &key, tool, &arguments)["code"].clone();
                    assert!(code == "access_denied" || code == "rate_limited", "{code}");
                    // 600 calls a second in total, few enough to leave the campaign enough CPU time.
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
        }
        let _ends = StopOnDrop(&ended);
        connector.folder.run(&[]).exits(0);
    });
    let sent: Vec<Instant> = gateway
        .requests()
        .iter()
        .filter(|request| request.json()["auth"] == KEY && !request.phones().is_empty())
        .map(|request| request.at)
        .collect();
    let duration = sent.last().expect("messages").duration_since(sent[0]);
    assert_eq!(sent.len(), MESSAGES as usize);
    // At 10/s, the messages take 3.9 s. The test allows 80 % of that rate, and one more second for a busy machine.
    assert!(duration < Duration::from_millis(4_875 + 1_000), "{duration:?}");
    let balance_requests = gateway.requests().iter().filter(|request| request.is_balance_check()).count();
    assert!(balance_requests <= 12, "{balance_requests} key checks with made-up keys");
    let runs = runs(&connector.folder);
    assert_eq!(runs.as_array().map(Vec::len), Some(1), "{runs}");
}
