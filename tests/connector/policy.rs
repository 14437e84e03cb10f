//! A profile's `policy`, applied to an assistant's messages. Only its `countries` apply to lookups.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Connector, LISTEN, folder_with_profile, parse_result};
use crate::support::{Clock, Folder, Gateway, KEY_VARIABLE, Terminal, closed_window, in_files};

const PHONE: u64 = 380_501_234_567;
const OTHER: u64 = 380_501_234_568;

/// Creates a folder whose profile has this policy.
pub(super) fn folder_with_policy(gateway: &Gateway, policy: &str) -> Folder {
    let folder = folder_with_profile(gateway, &format!("env: {KEY_VARIABLE}"));
    let profile = std::fs::read_to_string(folder.path("gateways.yaml")).expect("a profile");
    folder.write("gateways.yaml", &format!("{profile}  policy: {{ {policy} }}\n"));
    folder
}

fn sending_connector(folder: Folder) -> Connector {
    Connector::start_in(folder, &["--allow-send"])
}

/// Builds a confirmed call of each tool that sends a message, with this number and text.
fn calls(phone: u64, text: &str) -> [(&'static str, Value); 4] {
    let (link, image) = ("https://shop.example", "https://cdn.example/a.png");
    let sms = json!({ "message": text, "signature": "OlenaCo" });
    [
        ("send_sms", json!({ "text": text, "sender": "OlenaCo" })),
        ("send_viber", json!({ "text": text, "sender": "OlenaCo" })),
        ("send_rcs", json!({ "text": text, "sender": "OlenaCo", "image": image, "button": "Buy", "link": link })),
        ("send_chain", json!({ "channels": ["sms"], "sms": sms })),
    ]
    .map(|(tool, mut arguments)| {
        arguments["phone"] = json!(phone);
        arguments["confirm"] = json!(true);
        (tool, arguments)
    })
}

fn sms(phone: u64, text: &str) -> Value {
    let [(_, sms), ..] = calls(phone, text);
    sms
}

/// Makes a call that must be refused with this code. Returns the error.
#[track_caller]
fn expect_refusal(connector: &Connector, (tool, arguments): &(&str, Value), code: &str) -> Value {
    let result = connector.call(tool, arguments);
    let error = parse_result(&result);
    assert_eq!((&result["isError"], &error["code"]), (&json!(true), &json!(code)), "{tool}: {error}");
    error
}

#[track_caller]
fn expect_accepted(connector: &Connector, phone: u64, text: &str) {
    let answer = parse_result(&connector.call("send_sms", &sms(phone, text)));
    assert_eq!(answer["accepted"], true, "{answer}");
}

#[test]
fn suppress_files_apply_to_every_sending_tool() {
    let gateway = Gateway::accepting();
    let folder = folder_with_policy(&gateway, "suppress: [house.csv]");
    folder.write("house.csv", &format!("phone\n+{PHONE}\n"));
    let connector = sending_connector(folder);
    for call in calls(PHONE, "Hi") {
        let error = expect_refusal(&connector, &call, "opted_out");
        assert_eq!(error["retryable"], false);
        assert!(!error.to_string().contains(&PHONE.to_string()), "{error}");
    }
    assert!(gateway.sends().is_empty());
    expect_accepted(&connector, OTHER, "Hi");
    // The file is read again for each call. National numbers in the file are read as numbers of the recipient's
    // country.
    connector.folder.write("house.csv", &format!("phone\n0{}\n", OTHER % 1_000_000_000));
    expect_refusal(&connector, &("send_sms", sms(OTHER, "Ho")), "opted_out");
    // Without the file, opt-outs are unknown.
    std::fs::remove_file(connector.folder.path("house.csv")).expect("a file");
    expect_refusal(&connector, &("send_sms", sms(PHONE + 2, "Ho")), "internal");
    assert_eq!(gateway.phones(), [OTHER]);
}

#[test]
fn required_consent_applies_to_every_sending_tool() {
    let gateway = Gateway::accepting();
    let connector = sending_connector(folder_with_policy(&gateway, "consent: required"));
    for call in calls(PHONE, "Hi") {
        assert_eq!(expect_refusal(&connector, &call, "no_consent")["retryable"], false);
    }
    let answer = parse_result(&connector.call("lookup_number", &json!({ "phone": PHONE })));
    assert_eq!(answer["phone"], PHONE.to_string(), "a lookup is not marketing: {answer}");
    assert_eq!(gateway.phones(), [PHONE]);
}

#[test]
fn opt_outs_of_any_scope_apply_to_every_sending_tool() {
    let gateway = Gateway::accepting();
    let folder = folder_with_policy(&gateway, "cap: 9/7d");
    folder.campaign(&["suppress", "add", &format!("+{PHONE}"), "--scope", "all"]).exits(0);
    folder.campaign(&["suppress", "add", &format!("+{OTHER}"), "--scope", "marketing"]).exits(0);
    let connector = sending_connector(folder);
    for phone in [PHONE, OTHER] {
        for call in calls(phone, "Hi") {
            expect_refusal(&connector, &call, "opted_out");
        }
    }
    assert!(gateway.sends().is_empty());
}

#[test]
fn cap_applies_to_every_sending_tool() {
    let gateway = Gateway::accepting();
    let connector = sending_connector(folder_with_policy(&gateway, "cap: 1/7d"));
    expect_accepted(&connector, PHONE, "Hi");
    for call in calls(PHONE, "Ho") {
        assert_eq!(expect_refusal(&connector, &call, "cap_reached")["retryable"], false);
    }
    let connector = connector.restart(&["--allow-send"]);
    expect_refusal(&connector, &("send_sms", sms(PHONE, "Ho")), "cap_reached");
    expect_accepted(&connector, OTHER, "Hi");
    assert_eq!(gateway.phones(), [PHONE, OTHER]);
}

#[test]
fn allowed_countries_apply_to_every_sending_tool_and_lookups() {
    let gateway = Gateway::accepting();
    let connector = sending_connector(folder_with_policy(&gateway, "countries: [UA]"));
    let poland = 48_501_230_001;
    for call in calls(poland, "Hi") {
        let error = expect_refusal(&connector, &call, "country");
        assert!(error["error"].as_str().is_some_and(|words| words.contains("UA")), "{error}");
        assert!(!error.to_string().contains(&poland.to_string()), "{error}");
    }
    expect_refusal(&connector, &("lookup_number", json!({ "phone": poland.to_string() })), "country");
    assert!(gateway.phones().is_empty());
    expect_accepted(&connector, PHONE, "Hi");
    assert_eq!(gateway.phones(), [PHONE]);
}

#[test]
fn caps_count_messages_of_assistants_and_campaigns_together() {
    let gateway = Gateway::accepting();
    let folder = folder_with_policy(&gateway, "cap: 1/7d");
    folder.write("news.csv", &format!("phone\n{PHONE}\n{OTHER}\n"));
    let campaign = "name: news\ngateway: local\nrecipients: { file: news.csv }\n\
                    channels:\n  - sms: { signature: OlenaCo, message: Hello }\n";
    folder.write("news.yaml", campaign);
    let connector = sending_connector(folder);
    expect_accepted(&connector, PHONE, "Hi");
    let run = connector.folder.campaign(&["run", "news.yaml", "--no-wait", "--json"]).exits(0).json();
    assert_eq!(run["counts"], json!({ "accepted": 1, "skipped": 1 }), "{run}");
    expect_refusal(&connector, &("send_sms", sms(OTHER, "Hi")), "cap_reached");
    assert_eq!(gateway.phones(), [PHONE, OTHER]);
    let status = connector.folder.campaign(&["status", "assistant.message", "--json"]).json();
    assert_eq!(status["counts"], json!({ "queued": 1 }));
}

#[test]
fn closed_window_blocks_every_sending_tool() {
    let gateway = Gateway::accepting();
    let (window, opens) = closed_window("Europe/Kyiv");
    let folder = folder_with_policy(&gateway, &format!("window: {window}"));
    let connector = Connector::start_in(folder, &["--allow-send", "--approve"]);
    for call in calls(PHONE, "Hi") {
        let error = expect_refusal(&connector, &call, "outside_window");
        assert_eq!((&error["opens_at"], &error["retryable"]), (&json!(opens.to_string()), &json!(true)), "{error}");
        let time = format!("{} (Europe/Kyiv)", opens.strftime("%Y-%m-%d %H:%M"));
        assert!(error["error"].as_str().is_some_and(|words| words.contains(&time)), "{error}");
    }
    assert!(gateway.sends().is_empty());
    // No approval was requested, and the ledger has no runs.
    assert_eq!(connector.folder.campaign(&["status", "--json"]).exits(0).json()["runs"], json!([]));
}

#[test]
fn message_is_refused_if_the_window_closes_before_it_is_sent() {
    let _files = in_files();
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let folder = folder_with_policy(&gateway, "window: 09:00-20:00");
    folder.replace("gateways.yaml", "rate: unlimited", "rate: 1/min");
    // 17:59:10 UTC is 19:59:10 in Kyiv. The second message would be sent a minute after the first, outside the window.
    let now: Timestamp = "2026-11-26T17:59:10Z".parse().expect("a moment");
    clock.move_to(now - SignedDuration::from_mins(5));
    let command = folder.command_after(&clock.adjustable(), &[&LISTEN[..], &["--allow-send"]].concat());
    let connector = Connector::spawn(command, folder);
    // Check the key some minutes before the first message, because this check counts towards the account's rate.
    assert_eq!(connector.call("message_status", &json!({ "id": 1 }))["isError"], false);
    clock.move_to(now);
    expect_accepted(&connector, PHONE, "Hi");
    let error = expect_refusal(&connector, &("send_sms", sms(OTHER, "Hi")), "outside_window");
    assert_eq!(error["opens_at"], "2026-11-27T09:00:00+02:00[Europe/Kyiv]", "{error}");
    assert_eq!(gateway.phones(), [PHONE]);
}

#[test]
fn caps_opt_outs_and_windows_do_not_block_lookups() {
    let gateway = Gateway::accepting();
    let (window, _) = closed_window("Europe/Kyiv");
    let folder = folder_with_policy(&gateway, &format!("cap: 1/7d, suppress: [house.csv], window: {window}"));
    folder.write("house.csv", &format!("phone\n+{PHONE}\n"));
    let connector = sending_connector(folder);
    for _ in 0..2 {
        let answer = parse_result(&connector.call("lookup_number", &json!({ "phone": PHONE })));
        assert_eq!(answer["phone"], PHONE.to_string(), "{answer}");
    }
    for command in ["lookup", "otp"] {
        connector.folder.campaign(&["gateway", command, &format!("+{PHONE}")]).exits(0);
    }
    assert_eq!(gateway.phones(), [PHONE; 4]);
    expect_refusal(&connector, &("send_sms", sms(PHONE, "Hi")), "outside_window");
}

#[test]
fn approved_message_must_still_pass_every_policy() {
    let gateway = Gateway::accepting();
    let folder = folder_with_policy(&gateway, "suppress: [house.csv]");
    folder.write("house.csv", "phone\n");
    let connector = Connector::start_in(folder, &["--allow-send", "--approve"]);
    let pending = parse_result(&connector.call("send_sms", &sms(PHONE, "Hi")));
    let digest = pending["digest"].as_str().expect("a digest");
    let terminal = Terminal::start(connector.folder.command(&["approve", digest]));
    terminal.shows("Type yes").types("yes");
    terminal.finish().exits(0);
    connector.folder.write("house.csv", &format!("phone\n+{PHONE}\n"));
    expect_refusal(&connector, &("send_sms", sms(PHONE, "Hi")), "opted_out");
    assert!(gateway.sends().is_empty());
    // The approval is still valid.
    connector.folder.write("house.csv", "phone\n");
    expect_accepted(&connector, PHONE, "Hi");
}
