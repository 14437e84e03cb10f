//! Balance, sender names and message statuses: output for people and programs, and a reason for every failure.

use serde_json::json;

use super::{account_gateway, answer, folder, live_folder, profile};
use crate::support::{
    Answer, Folder, Gateway, KEY, Process, Request, SandboxProcess, campaign, note_on_failure, rejected,
    unreachable_url,
};

#[test]
fn balance_keeps_its_digits_and_is_readable() {
    // The body contains the number as literal text, because a float would change its digits.
    let body = r#"{"success":true,"data":[{"success":true,"data":{"amount":1234567.10000000001,"currency":"UAH"}}]}"#;
    let page = || Answer::Http { status: 200, headers: Vec::new(), body: body.as_bytes().to_vec() };
    let gateway = Gateway::answering([page(), page()]);
    let folder = folder(&gateway);
    let shown = folder.campaign(&["gateway", "balance"]).exits(0);
    assert_eq!(shown.stdout, "local: 1 234 567.10000000001 UAH\n");
    let output = folder.campaign(&["gateway", "balance", "--json"]).exits(0).stdout;
    assert_eq!(
        output,
        "{\"version\":1,\"gateway\":\"local\",\"amount\":1234567.10000000001,\"currency\":\"UAH\",\"exit\":0}\n"
    );
    let request = &gateway.requests()[0];
    assert_eq!(request.path(), "/api/json.php");
    assert_eq!(request.header("content-type"), ["application/json"]);
    assert_eq!(request.json(), json!({ "auth": KEY, "data": [{ "type": "balance" }] }));
}

#[test]
fn sender_names_are_shown_with_their_statuses() {
    let senders = json!([{ "name": "OlenaCo", "status": "Checked" }, { "name": "Fresh\u{1b}[2J" }]);
    let gateway = account_gateway(move |_| senders.clone());
    let folder = folder(&gateway);
    let shown = folder.campaign(&["gateway", "senders", "--gateway", "local"]).exits(0);
    assert!(shown.stdout.contains("OlenaCo") && shown.stdout.contains("Checked"), "{}", shown.details());
    assert!(!shown.stdout.contains('\u{1b}'), "{}", shown.details());
    let output = folder.campaign(&["gateway", "senders", "--json"]).exits(0).json();
    assert_eq!(output["senders"][0], json!({ "name": "OlenaCo", "status": "Checked" }));
    assert_eq!((&output["exit"], &output["senders"][1]["status"]), (&json!(0), &json!("")));
    assert_eq!(gateway.requests()[0].operations(), [json!({ "type": "sender" })]);
}

#[test]
fn statuses_are_queried_by_either_identifier_in_one_request() {
    let gateway = Gateway::accepting().with_statuses(|operation| match operation["id"].as_u64() {
        Some(8) => rejected(operation, "no such message"),
        _ => json!({ "success": true, "data": { "id": "7", "msg_id": operation.get("msg_id").cloned().unwrap_or(json!("99")),
            "type": "viber", "status": "READ", "updated": "2026-11-21T10:00:00+02:00" } }),
    });
    let folder = folder(&gateway);
    let mut command = folder.command(&["gateway", "status", "7"]);
    command.env("TZ", "Asia/Tokyo");
    Process::start(command).finish().exits(0).says("READ").says("2026-11-21 17:00:00\n");
    let output = folder.campaign(&["gateway", "status", "7", "8", "--json"]).exits(3).json();
    assert_eq!(output["statuses"][0]["updated"], "2026-11-21T10:00:00+02:00", "JSON has the gateway's text");
    assert_eq!((&output["statuses"][0]["type"], &output["statuses"][0]["status"]), (&json!("viber"), &json!("READ")));
    assert_eq!((&output["statuses"][1]["id"], &output["exit"]), (&json!(8), &json!(3)));
    assert!(output["error"].as_str().is_some_and(|error| error.contains("no such message")), "{output}");
    folder.campaign(&["gateway", "status", "--msg-id", "99", "00a"]).exits(0);
    let requests: Vec<_> = gateway.requests().iter().map(Request::operations).collect();
    let status = |member: &str, id: serde_json::Value| json!({ "type": "status", member: id });
    assert_eq!(requests[1], [status("id", json!(7)), status("id", json!(8))]);
    assert_eq!(requests[2], [status("msg_id", json!(99)), status("msg_id", json!("00a"))]);
    folder.campaign(&["gateway", "status", "a-1"]).exits(2).says("--msg-id");
}

/// A failure: its name, the gateway's answer, the exit code, and a part of the output.
type Failure = (&'static str, fn() -> Answer, i32, &'static str);

#[test]
fn each_failure_has_an_exit_code_and_reason_but_shows_no_key() {
    let cases: [Failure; 7] = [
        ("the key", || Answer::rejection("Access denied"), 7, "the profile `local` reads the key from"),
        ("the envelope", || Answer::rejection("Invalid message type"), 3, "`Invalid message type`"),
        ("the item", || Answer::items(|operation| rejected(operation, KEY)), 3, "[key]"),
        ("a page", || Answer::status(200), 5, "a web page"),
        ("a status", || Answer::status(500), 5, "HTTP 500"),
        ("a break", || Answer::CloseRead, 5, "the connection was lost"),
        ("an odd payload", || answer(|_| json!([])), 5, "no usable response"),
    ];
    for (name, script, code, words) in cases {
        let _case = note_on_failure(format!("case: {name}"));
        let gateway = Gateway::always(script());
        let folder = folder(&gateway);
        let shown = folder.campaign(&["gateway", "balance", "-vv"]).exits(code).says(words);
        assert!(!shown.stderr.contains(KEY) && shown.stdout.is_empty(), "{}", shown.details());
        let output = folder.campaign(&["gateway", "balance", "--json"]).exits(code).json();
        assert_eq!(output["exit"], code);
        assert!(output["error"].as_str().is_some_and(|error| error.contains(words)), "{output}");
        assert_eq!(gateway.requests().len(), 2, "each command sends one request");
    }
    let gateway = Gateway::always(Answer::status_with(429, &["Retry-After: 120"]));
    let folder = folder(&gateway);
    folder.campaign(&["gateway", "senders"]).exits(5).says("HTTP 429").says("slow down for 120 s");
}

#[test]
fn failed_gateway_connection_exits_5_without_any_request() {
    let folder = Folder::new(true);
    folder.write("gateways.yaml", &profile("local", &unreachable_url(), ""));
    folder
        .campaign(&["gateway", "balance"])
        .exits(5)
        .says("connection refused by 127.")
        .says("no request was sent")
        .says("start the sandbox with `campaign sandbox`");
}

#[test]
fn gateway_can_be_named_or_defaults_to_the_only_profile() {
    let gateway = account_gateway(|_| json!({ "amount": 5, "currency": "UAH" }));
    let folder = folder(&gateway);
    folder.campaign(&["gateway", "balance"]).exits(0).says("local: 5.00 UAH");
    folder.campaign(&["gateway", "balance", "--gateway", "locl"]).exits(2).says("did you mean `local`?");
    folder.campaign(&["gateway", "balance", "--gateway", "sandbox"]).exits(2).says("campaign sandbox");
    let profiles = profile("local", &unreachable_url(), "") + &profile("other", &unreachable_url(), "");
    folder.write("gateways.yaml", &profiles);
    folder.campaign(&["gateway", "balance"]).exits(2).says("--gateway NAME").says("`local` and `other`");
    std::fs::remove_file(folder.path("gateways.yaml")).expect("removed");
    folder.campaign(&["gateway", "balance"]).exits(2).says("campaign gateway add NAME");
}

#[test]
fn changed_host_is_refused_before_it_gets_the_key() {
    let gateway = Gateway::always(Answer::CloseRead);
    let folder = live_folder(&gateway);
    folder.campaign(&["gateway", "balance"]).exits(5);
    let before = gateway.requests().len();
    folder.replace("gateways.yaml", "gateway.invalid", "elsewhere.invalid");
    folder.campaign(&["gateway", "balance"]).exits(2).says("campaign gateway trust production");
    assert_eq!(gateway.requests().len(), before);
}

#[test]
fn standalone_sandbox_has_an_account_and_finds_its_messages() {
    let sandbox = SandboxProcess::start();
    let sale = campaign().to(1).through(&sandbox).write();
    sale.campaign(&["check", "sale.yaml", "--online"]).exits(0);
    sale.run(&[]).exits(0);
    let balance = sale.campaign(&["gateway", "balance", "--json"]).exits(0).json();
    assert!(balance["amount"].is_number() && balance["currency"] == "UAH", "{balance}");
    let senders = sale.campaign(&["gateway", "senders", "--json"]).exits(0).json();
    assert_eq!(senders["senders"], json!([]), "the sandbox accepts every sender name");
    sale.replace("sale.yaml", "name: sale\n", "name: sale\nedition: another\n");
    sale.replace("sale.yaml", "OlenaCo", "Another");
    sale.campaign(&["check", "sale.yaml", "--online"]).exits(0);
    let results = sale.results();
    let (id, msg_id) = (results.column("id")[0], results.column("msg_id")[0]);
    let by_id = sale.campaign(&["gateway", "status", id, "--json"]).exits(0).json();
    let by_msg_id = sale.campaign(&["gateway", "status", "--msg-id", msg_id, "--json"]).exits(0).json();
    assert_eq!(by_id["statuses"][0]["msg_id"], by_msg_id["statuses"][0]["msg_id"]);
    sale.campaign(&["gateway", "status", "12345"]).exits(3);
}

#[test]
fn received_statuses_are_kept_when_a_later_request_fails() {
    let gateway = Gateway::accepting().with_status_answer(Answer::from_request(|request| {
        match request.operations()[0]["id"].as_u64() {
            Some(7) => {
                let record = json!({ "id": "7", "msg_id": 99, "type": "sms", "status": "DELIVERED" });
                json!({ "success": true, "data": [{ "success": true, "data": record }] })
            }
            _ => json!({ "success": false, "error": "Too many requests" }),
        }
    }));
    let folder = folder(&gateway);
    folder.replace("gateways.yaml", "local:\n", "local:\n  batch_limit: 1\n");
    let output = folder.campaign(&["gateway", "status", "7", "8", "9", "--json"]).exits(5).json();
    assert_eq!(output["statuses"][0]["status"], "DELIVERED");
    for (index, id) in [(1, 8), (2, 9)] {
        let unanswered = &output["statuses"][index];
        assert_eq!(unanswered["id"], id, "{output}");
        assert!(unanswered["error"].as_str().is_some_and(|error| error.contains("Too many requests")), "{output}");
    }
    assert_eq!(gateway.requests().len(), 2, "a failure stops the requests");
}
