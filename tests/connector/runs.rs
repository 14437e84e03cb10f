//! Campaign runs started by an assistant: only a plan that a person approved is sent.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::campaigns::{campaign, campaigns_folder};
use super::stdio::Conversation;
use super::{Connector, LISTEN, parse_result};
use crate::support::{Folder, SandboxProcess, Terminal, closed_window, in_files, phone, until};

pub(super) const OPTIONS: [&str; 3] = ["--campaigns", "campaigns", "--allow-send"];

fn connector(folder: Folder) -> Connector {
    Connector::start_in(folder, &OPTIONS)
}

/// Plans a campaign and returns the digest.
pub(super) fn plan(connector: &Connector, name: &str) -> String {
    let result = connector.call("plan_campaign", &json!({ "campaign": name }));
    assert_eq!(result["isError"], false, "{result}");
    parse_result(&result)["digest"].as_str().expect("a digest").to_owned()
}

fn run(connector: &Connector, name: &str, digest: &str) -> Value {
    parse_result(&connector.call("run_campaign", &json!({ "campaign": name, "digest": digest })))
}

/// Approves a plan in the operator's terminal.
pub(super) fn approve(folder: &Folder, digest: &str) {
    let terminal = Terminal::start(folder.command(&["approve", digest]));
    terminal.shows("Type yes").types("yes");
    terminal.shows("approved ");
    terminal.finish().exits(0);
}

/// Waits until the latest run of `sale` ends.
fn wait_for_run(connector: &Connector) -> Value {
    let mut status = Value::Null;
    until("the run ends", || {
        status = parse_result(&connector.call("run_status", &json!({ "campaign": "sale" })));
        status["state"] != "sending"
    });
    status
}

#[test]
fn campaign_is_sent_once_after_a_person_approves_its_plan() {
    let sandbox = SandboxProcess::start();
    let connector = connector(campaigns_folder(&sandbox));
    let planned = parse_result(&connector.call("plan_campaign", &json!({ "campaign": "sale" })));
    assert_eq!((&planned["messages"], &planned["gateway"]), (&json!(3), &json!("local")));
    assert_eq!(planned["counts"], json!({ "planned": 3, "skipped": 1, "invalid": 1 }));
    let digest = planned["digest"].as_str().expect("a digest");
    let command = format!("campaign approve {}", &digest[..16]);
    assert!(planned["how_to"].as_str().is_some_and(|how_to| how_to.contains(&command)), "{planned}");

    let pending = run(&connector, "sale", digest);
    assert_eq!(
        (&pending["started"], &pending["pending"], &pending["messages"]),
        (&json!(false), &json!(true), &json!(3))
    );
    assert!(pending["how_to"].as_str().is_some_and(|how_to| how_to.contains(&command)), "{pending}");
    assert!(sandbox.journal().is_empty());

    approve(&connector.folder, digest);
    assert!(sandbox.journal().is_empty(), "an approval sends nothing");
    let started = run(&connector, "sale.yaml", &digest[..16]);
    assert_eq!((&started["started"], &started["run"]), (&json!(true), &json!("sale@1")), "{started}");
    let status = wait_for_run(&connector);
    assert_eq!(
        (&status["run"], &status["state"], &status["gateway"]),
        (&json!("sale@1"), &json!("finished"), &json!("local"))
    );
    assert_eq!(sandbox.messages(), (2..5).map(|row| (phone(row), 1)).collect());
    let again = run(&connector, "sale", digest);
    assert_eq!((&again["started"], again.get("pending")), (&json!(false), None), "{again}");
    connector.folder.campaign(&["results", "sale@1"]).exits(0);
    assert_eq!(sandbox.messages().values().sum::<usize>(), 3);
}

#[test]
fn campaign_run_by_an_assistant_skips_rows_without_consent() {
    let sandbox = SandboxProcess::start();
    let folder = campaigns_folder(&sandbox);
    folder.replace("campaigns/sale.yaml", "max_invalid", "consent: { file: yes.csv, source: where }, max_invalid");
    folder.replace("campaigns/sale.yaml", "recipients:", "consent: required\nrecipients:");
    folder.write("campaigns/yes.csv", &format!("phone,where\n{},a form\n", phone(3)));
    let connector = connector(folder);
    let planned = parse_result(&connector.call("plan_campaign", &json!({ "campaign": "sale" })));
    assert_eq!(planned["counts"], json!({ "planned": 1, "skipped": 3, "invalid": 1 }), "{planned}");
    let digest = planned["digest"].as_str().expect("a digest");
    approve(&connector.folder, digest);
    assert_eq!(run(&connector, "sale", digest)["started"], true);
    wait_for_run(&connector);
    assert_eq!(sandbox.messages(), [(phone(3), 1)].into());
    let number = format!("+{}", phone(3));
    let evidence = connector.folder.campaign(&["find", &number, "--evidence", "--json"]).exits(0).json();
    let message = &evidence["evidence"]["messages"][0];
    assert_eq!(message["consent"]["source"], "a form");
    assert_eq!(message["approvals"].as_array().map(Vec::len), Some(1), "{message}");
}

#[test]
fn campaign_that_differs_from_its_approval_is_not_sent() {
    let sandbox = SandboxProcess::start();
    let folder = campaigns_folder(&sandbox);
    folder.write("campaigns/other.yaml", &campaign("other", "list.csv"));
    let connector = connector(folder);
    let (sale, other) = (plan(&connector, "sale"), plan(&connector, "other"));
    assert_ne!(sale, other);
    let refused = |name: &str, digest: &str, words: &str| {
        let error = run(&connector, name, digest);
        assert_eq!(error["code"], "campaign_refused", "{error}");
        assert!(error["error"].as_str().is_some_and(|error| error.contains(words)), "{words}: {error}");
    };
    refused("sale", "0123456789abcdef", "there is no plan");
    approve(&connector.folder, &other);
    refused("sale", &other, "this run differs from plan");
    assert_eq!(run(&connector, "sale", &sale)["pending"], true, "another campaign was approved");
    approve(&connector.folder, &sale);
    // The approval does not cover later changes.
    connector.folder.replace("campaigns/sale.yaml", "Hello", "Goodbye");
    refused("sale", &sale, "this run differs from plan");
    connector.folder.replace("campaigns/sale.yaml", "Goodbye", "Hello");
    connector.folder.replace("campaigns/list.csv", "Person 2", "Person Two");
    refused("sale", &sale, "this run differs from plan");
    for arguments in [
        json!({ "campaign": "sale" }),
        json!({ "campaign": "sale", "digest": "" }),
        json!({ "campaign": "sale", "digest": &sale[..15] }),
        json!({ "campaign": "sale", "digest": sale.to_uppercase() + "%" }),
        json!({ "campaign": "sale", "digest": sale, "confirm": true }),
        json!({ "campaign": "sale", "digest": sale, "approved": true }),
    ] {
        let result = connector.call("run_campaign", &arguments);
        assert_eq!(parse_result(&result)["code"], "invalid_argument", "{arguments}");
    }
    assert!(sandbox.journal().is_empty());
}

#[test]
fn unsigned_approval_is_refused_if_a_key_is_required() {
    let sandbox = SandboxProcess::start();
    let folder = campaigns_folder(&sandbox);
    let keys = folder.campaign(&["approve", "--new-key", "olha", "--json"]).exits(0).json();
    let public = keys["public"].as_str().expect("a public half");
    let rule = format!("local:\n  approval: {{ above: 0, by: {{ Olha: \"{public}\" }} }}\n");
    let connector = connector(folder);
    let digest = plan(&connector, "sale");
    approve(&connector.folder, &digest);
    connector.folder.replace("gateways.yaml", "local:\n", &rule);
    let pending = run(&connector, "sale", &digest);
    let signed = format!("campaign approve {} --key FILE", &digest[..16]);
    assert_eq!(pending["pending"], true, "{pending}");
    assert!(pending["how_to"].as_str().is_some_and(|how_to| how_to.contains(&signed)), "{pending}");
    assert!(sandbox.journal().is_empty());
    connector.folder.campaign(&["approve", &digest, "--key", "olha.key", "--json"]).exits(0);
    assert_eq!(run(&connector, "sale", &digest)["started"], true);
    assert_eq!(wait_for_run(&connector)["state"], "finished");
}

#[test]
fn assistant_cannot_run_a_scheduled_campaign() {
    let sandbox = SandboxProcess::start();
    let folder = campaigns_folder(&sandbox);
    let scheduled =
        format!("timezone: Europe/Kyiv\nschedule: {{ every: day 10:00 }}\n{}", campaign("later", "list.csv"));
    folder.write("campaigns/later.yaml", &scheduled);
    let connector = connector(folder);
    for (tool, arguments) in [
        ("plan_campaign", json!({ "campaign": "later" })),
        ("run_campaign", json!({ "campaign": "later", "digest": "0123456789abcdef" })),
    ] {
        let error = parse_result(&connector.call(tool, &arguments));
        assert_eq!(error["code"], "campaign_refused", "{error}");
        assert!(error["error"].as_str().is_some_and(|words| words.contains("has a schedule")), "{error}");
    }
    assert!(sandbox.journal().is_empty());
}

/// Creates the campaigns folder with a list of forty recipients and a slow account.
fn slow_campaigns_folder(sandbox: &SandboxProcess) -> Folder {
    let folder = campaigns_folder(sandbox);
    let rows: Vec<String> = (2..42).map(|row| format!("{},Person {row}\n", phone(row))).collect();
    folder.write("campaigns/list.csv", &format!("phone,name\n{}", rows.concat()));
    folder.replace("gateways.yaml", "rate: unlimited", "rate: 20/s");
    folder
}

#[test]
fn signal_stops_a_connector_run_and_its_approval_stays_valid() {
    let sandbox = SandboxProcess::start();
    let connector = connector(slow_campaigns_folder(&sandbox));
    let digest = plan(&connector, "sale");
    approve(&connector.folder, &digest);
    assert_eq!(run(&connector, "sale", &digest)["started"], true);
    let busy = run(&connector, "sale", &digest);
    assert_eq!(busy["code"], "busy", "{busy}");
    until("some messages were sent", || !sandbox.messages().is_empty());
    let (ended, folder) = connector.finish_with_folder();
    ended.exits(0);
    let sent = sandbox.messages().len();
    assert!((1..40).contains(&sent), "{sent}");
    let status = folder.campaign(&["status", "sale@1", "--json"]).json();
    assert_eq!((&status["state"], &status["counts"]["planned"]), (&json!("stopped"), &json!(40 - sent)));
    folder.replace("gateways.yaml", "rate: 20/s", "rate: unlimited");
    let connector = Connector::start_in(folder, &OPTIONS);
    assert_eq!(run(&connector, "sale", &digest)["run"], "sale@1");
    assert_eq!(wait_for_run(&connector)["state"], "finished");
    assert_eq!(sandbox.messages(), (2..42).map(|row| (phone(row), 1)).collect());
}

#[test]
fn connector_waits_until_the_run_of_its_client_ends() {
    let sandbox = SandboxProcess::start();
    let mut client = Conversation::start_in(slow_campaigns_folder(&sandbox), &OPTIONS);
    let call = |client: &mut Conversation, tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        parse_result(
            &client.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))["result"],
        )
    };
    let planned = call(&mut client, "plan_campaign", json!({ "campaign": "sale" }));
    let digest = planned["digest"].as_str().expect("a digest");
    approve(client.folder(), digest);
    assert_eq!(call(&mut client, "run_campaign", json!({ "campaign": "sale", "digest": digest }))["started"], true);
    client.finish().exits(0);
    assert_eq!(sandbox.messages().len(), 40);
}

#[test]
fn assistant_plan_skips_cancelled_recipients() {
    let sandbox = SandboxProcess::start();
    let folder = campaigns_folder(&sandbox);
    folder.campaign(&["run", "campaigns/sale.yaml", "--gateway", "local", "--limit", "1", "--no-wait"]);
    folder.campaign(&["stop", "sale", "--for-good", "--yes"]).says("2 rows cancelled");
    let connector = connector(folder);
    let planned = parse_result(&connector.call("plan_campaign", &json!({ "campaign": "sale" })));
    assert_eq!(planned["counts"], json!({ "skipped": 4, "invalid": 1 }), "{planned}");
    let started = run(&connector, "sale", planned["digest"].as_str().expect("a digest"));
    assert_ne!(started["started"], json!(true), "{started}");
    assert_eq!(sandbox.messages(), [(phone(2), 1)].into());
}

#[test]
fn started_run_reports_when_its_window_opens() {
    let sandbox = SandboxProcess::start();
    let folder = campaigns_folder(&sandbox);
    let (window, opens) = closed_window("Europe/Kyiv");
    let window = format!("timezone: Europe/Kyiv\ndelivery: {{ window: {window} }}\n");
    folder.write("campaigns/sale.yaml", &(window + &campaign("sale", "list.csv")));
    let connector = connector(folder);
    let digest = plan(&connector, "sale");
    approve(&connector.folder, &digest);
    let started = run(&connector, "sale", &digest);
    assert_eq!((&started["started"], &started["run"]), (&json!(true), &json!("sale@1")), "{started}");
    let status = parse_result(&connector.call("run_status", &json!({ "campaign": "sale" })));
    assert_eq!(status["state"], "sending");
    for waiting in [&started, &status] {
        let until: Timestamp = waiting["waiting_until"].as_str().and_then(|at| at.parse().ok()).expect("a time");
        assert!(until.duration_since(opens.timestamp()).unsigned_abs().as_secs() < 2, "{opens}: {waiting}");
        assert!(waiting["waiting_for"].as_str().is_some_and(|why| why.contains("window is closed")), "{waiting}");
    }
    let (ended, folder) = connector.finish_with_folder();
    ended.exits(0);
    assert_eq!(folder.campaign(&["status", "sale@1", "--json"]).json()["counts"]["planned"], 3);
    assert!(sandbox.messages().is_empty());
}

/// Creates the campaigns folder after its campaign was sent from the command line.
fn sent_campaigns_folder(sandbox: &SandboxProcess) -> Folder {
    let folder = campaigns_folder(sandbox);
    folder.campaign(&["run", "campaigns/sale.yaml", "--gateway", "local", "--no-wait", "--yes"]).exits(3);
    folder
}

/// Calls a tool for the campaign, and returns the refusal and its advice.
fn refusal(connector: &Connector, tool: &str) -> (String, String) {
    let result = parse_result(&connector.call(tool, &json!({ "campaign": "sale" })));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if tool != "check_campaign" {
        assert_eq!(result["code"], "campaign_refused", "{tool}: {result}");
        return (text(&result["error"]), text(&result["how_to"]));
    }
    assert_eq!(result["ok"], false, "{result}");
    let findings = result["findings"].as_array().cloned().unwrap_or_default();
    let error = findings.into_iter().find(|finding| finding["severity"] == "error").expect("an error");
    (text(&error["message"]), text(&error["help"]))
}

#[test]
fn campaign_tools_refuse_a_ledger_that_lacks_sent_messages() {
    let _files = in_files();
    let sandbox = SandboxProcess::start();
    let folder = sent_campaigns_folder(&sandbox);
    let mut command = folder.command(&[&LISTEN, &OPTIONS[..]].concat());
    command.env("CAMPAIGN_STATE_DIR", folder.path("elsewhere"));
    let connector = Connector::spawn(command, folder);
    for tool in ["check_campaign", "preview_campaign", "plan_campaign", "run_status"] {
        let (error, advice) = refusal(&connector, tool);
        assert!(error.contains("3 unknown messages"), "{tool}: {error}");
        assert!(advice.contains("use that ledger") && advice.contains("--new-ledger"), "{tool}: {advice}");
    }
    assert_eq!(sandbox.messages().len(), 3);
}

#[test]
fn refused_campaign_tools_say_what_a_person_can_do() {
    let sandbox = SandboxProcess::start();
    let connector = connector(sent_campaigns_folder(&sandbox));
    let digest = plan(&connector, "sale");
    connector.folder.replace("campaigns/sale.yaml", "Hello", "Goodbye");
    for tool in ["check_campaign", "plan_campaign"] {
        let (_, advice) = refusal(&connector, tool);
        assert!(advice.starts_with("tell the user") && advice.contains("`--accept-changes`"), "{tool}: {advice}");
    }
    let refused = run(&connector, "sale", &digest);
    assert_eq!(refused["code"], "campaign_refused", "{refused}");
    assert!(refused["how_to"].as_str().is_some_and(|how_to| how_to.starts_with("tell the user")), "{refused}");
    assert_eq!(sandbox.messages().len(), 3);
}
