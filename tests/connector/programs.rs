//! Programs named in campaign files: the connector never starts them, and starts no run without an approval.

use serde_json::{Value, json};

use super::campaigns::campaigns_folder;
use super::runs::{OPTIONS, approve};
use super::stdio::Conversation;
use super::{Connector, parse_result};
use crate::support::{
    Answer, Folder, Gateway, Process, Reachable, SandboxProcess, Terminal, in_files, phone, until, with_ledger,
};

/// A campaign's own command, which adds a line to a file when it runs.
const CAMPAIGN_COMMAND: &str = "notify: { command: [sh, -c, \"echo >> campaign-ran\"] }\n";

/// The operator's command, in the profile.
const PROFILE_COMMAND: &str = "local:\n  policy: { notify: { command: [sh, -c, \"echo >> profile-ran\"] } }\n";

/// A connector that offers a folder's campaigns, over one of the two transports.
enum Client {
    Http(Connector),
    Stdio(Conversation),
}

/// Functions that start a connector in a folder, one per transport.
const TRANSPORTS: [fn(Folder) -> Client; 2] = [
    |folder| Client::Http(Connector::start_in(folder, &OPTIONS)),
    |folder| Client::Stdio(Conversation::start_in(folder, &OPTIONS)),
];

impl Client {
    /// Calls a tool and returns the answer.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        match self {
            Self::Http(connector) => parse_result(&connector.call(tool, arguments)),
            Self::Stdio(conversation) => {
                let params = json!({ "name": tool, "arguments": arguments });
                let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
                parse_result(&conversation.ask(&call)["result"])
            }
        }
    }

    fn plan(&mut self) -> String {
        let planned = self.call("plan_campaign", &json!({ "campaign": "sale" }));
        planned["digest"].as_str().unwrap_or_else(|| panic!("{planned}")).to_owned()
    }

    fn run(&mut self, digest: &str) -> Value {
        self.call("run_campaign", &json!({ "campaign": "sale", "digest": digest }))
    }

    /// Waits until the latest run is in this state.
    fn wait_for_state(&mut self, state: &str) {
        until("the run ends", || self.call("run_status", &json!({ "campaign": "sale" }))["state"] == state);
    }

    fn folder(&self) -> &Folder {
        match self {
            Self::Http(connector) => &connector.folder,
            Self::Stdio(conversation) => conversation.folder(),
        }
    }

    /// Stops the connector after its runs and notifications. Returns its folder.
    fn stop(self) -> Folder {
        let (ended, folder) = match self {
            Self::Http(connector) => connector.finish_with_folder(),
            Self::Stdio(conversation) => conversation.finish_with_folder(),
        };
        ended.exits(0);
        folder
    }
}

/// Creates the campaigns folder, with these lines at the top of the campaign.
fn campaigns_folder_with_top(gateway: &impl Reachable, top: &str) -> Folder {
    let folder = campaigns_folder(gateway);
    folder.replace("campaigns/sale.yaml", "name: sale\n", &format!("name: sale\n{top}"));
    folder
}

/// Returns the number of times that a command ran.
fn count_command_runs(folder: &Folder, name: &str) -> usize {
    std::fs::read_to_string(folder.path(name)).map_or(0, |text| text.lines().count())
}

/// Counts the records in a table of the ledger.
fn count_records(folder: &Folder, table: &'static str) -> i64 {
    let mut records = 0;
    with_ledger(folder, async |ledger| {
        let count = match table {
            "runs" => "SELECT count(*) FROM runs",
            _ => "SELECT count(*) FROM notifications",
        };
        records = sqlx::query_scalar(count).fetch_one(ledger).await.expect("a number");
    });
    records
}

fn assert_refused(answer: &Value, words: &str) {
    assert_eq!(answer["code"], "campaign_refused", "{answer}");
    assert!(answer["error"].as_str().is_some_and(|error| error.contains(words)), "{words}: {answer}");
}

#[test]
fn connector_runs_profile_commands_but_never_campaign_commands() {
    let _files = in_files();
    for start in TRANSPORTS {
        // The run stops at the first answer and is later resumed and finished.
        let gateway = Gateway::answering([Answer::rejection("Invalid message type")]);
        let folder = campaigns_folder_with_top(&gateway, CAMPAIGN_COMMAND);
        folder.replace("gateways.yaml", "local:\n", PROFILE_COMMAND);
        let mut client = start(folder);
        let digest = client.plan();
        approve(client.folder(), &digest);
        for (state, notifications) in [("stopped", 1), ("finished", 2)] {
            assert_eq!(client.run(&digest)["started"], true, "{state}");
            client.wait_for_state(state);
            until("the profile's command ran", || count_command_runs(client.folder(), "profile-ran") == notifications);
        }
        assert_eq!(count_records(client.folder(), "notifications"), 2, "only the profile's command runs");
        assert_eq!(count_command_runs(client.folder(), "campaign-ran"), 0);
        client.stop();
    }
}

#[test]
fn command_recorded_by_another_process_is_left_to_that_process() {
    let _files = in_files();
    for start in TRANSPORTS {
        let gateway = Gateway::answering([Answer::rejection("Invalid message type")]);
        let folder = campaigns_folder_with_top(&gateway, "");
        // The run started by the operator records its notification command, which fails at first.
        let failing = "name: sale\nnotify: { command: [sh, -c, \"test -e ready && echo >> campaign-ran\"] }\n";
        folder.replace("campaigns/sale.yaml", "name: sale\n", failing);
        folder.campaign(&["run", "campaigns/sale.yaml", "--gateway", "local", "--no-wait"]).exits(5);
        assert_eq!(count_records(&folder, "notifications"), 1);
        folder.write("ready", "");
        let mut client = start(folder);
        let digest = client.plan();
        approve(client.folder(), &digest);
        assert_eq!(client.run(&digest)["started"], true);
        client.wait_for_state("finished");
        // The connector waits for its notifications before it ends.
        let folder = client.stop();
        assert_eq!(count_command_runs(&folder, "campaign-ran"), 0);
    }
}

#[test]
fn run_without_recipients_does_not_start() {
    let _files = in_files();
    let numbers: Vec<String> = (2..5).map(|row| format!("+{}", phone(row))).collect();
    for start in TRANSPORTS {
        for all_suppressed in [false, true] {
            let gateway = Gateway::accepting();
            let folder = campaigns_folder_with_top(&gateway, "notify: { url: { file: nowhere.url } }\n");
            folder.replace("gateways.yaml", "local:\n", PROFILE_COMMAND);
            if all_suppressed {
                for number in &numbers {
                    folder.campaign(&["suppress", "add", number]).exits(0);
                }
            } else {
                let empty_audience = "recipients: { where: 'name == \"Nobody\"', empty: ok, file";
                folder.replace("campaigns/sale.yaml", "recipients: { file", empty_audience);
            }
            let mut client = start(folder);
            let planned = client.call("plan_campaign", &json!({ "campaign": "sale" }));
            assert_eq!(planned["messages"], 0, "{planned}");
            assert!(
                planned["how_to"].as_str().is_some_and(|words| words.contains("would not start a run")),
                "{planned}"
            );
            let answer = client.run(planned["digest"].as_str().expect("a digest"));
            assert_eq!((&answer["started"], &answer["messages"]), (&json!(false), &json!(0)), "{answer}");
            assert!(answer.get("pending").is_none(), "{answer}");
            assert!(answer["how_to"].as_str().is_some_and(|words| words.starts_with("no run was started")), "{answer}");
            assert_eq!(["runs", "notifications"].map(|table| count_records(client.folder(), table)), [0, 0]);
            assert_eq!(count_command_runs(client.folder(), "profile-ran"), 0);
            assert!(gateway.requests().is_empty());
            client.stop();
        }
    }
}

#[test]
fn run_with_no_recipients_left_is_refused() {
    let _files = in_files();
    for start in TRANSPORTS {
        let gateway = Gateway::accepting();
        let folder = campaigns_folder_with_top(&gateway, "");
        // Every recipient has a message, and the process dies before the run ends.
        let mut command = folder.command(&["run", "campaigns/sale.yaml", "--gateway", "local", "--no-wait"]);
        command.env("CAMPAIGN_FAILPOINT", "results.written:1");
        assert_ne!(Process::start(command).finish().code(), Some(0));
        assert_eq!(gateway.phones().len(), 3);
        let mut client = start(folder);
        let digest = client.plan();
        assert_refused(&client.run(&digest), "sale@1 has no recipients left");
        client.stop();
    }
}

#[test]
fn command_or_address_added_after_the_approval_is_refused() {
    let _files = in_files();
    for start in TRANSPORTS {
        let sandbox = SandboxProcess::start();
        let mut client = start(campaigns_folder_with_top(&sandbox, ""));
        let digest = client.plan();
        approve(client.folder(), &digest);
        let additions = [
            (CAMPAIGN_COMMAND, "the program `notify.command` changed"),
            ("notify: { url: { env: URL } }\n", "the address `notify.url` changed"),
            ("data: { names: { file: list.csv, key: name } }\n", "the source `data.names` changed"),
        ];
        for (lines, words) in additions {
            client.folder().replace("campaigns/sale.yaml", "name: sale\n", &format!("name: sale\n{lines}"));
            assert_refused(&client.run(&digest), words);
            client.folder().replace("campaigns/sale.yaml", lines, "");
        }
        assert!(sandbox.journal().is_empty());
        assert_eq!(count_records(client.folder(), "runs"), 0);
        assert_eq!(client.run(&digest)["started"], true, "the approved campaign is sent");
        client.wait_for_state("finished");
        assert_eq!(count_command_runs(client.folder(), "campaign-ran"), 0);
        client.stop();
    }
}

#[test]
fn notification_commands_are_shown_before_approval() {
    let sandbox = SandboxProcess::start();
    for start in TRANSPORTS {
        let folder = campaigns_folder_with_top(&sandbox, CAMPAIGN_COMMAND);
        folder.replace("gateways.yaml", "local:\n", PROFILE_COMMAND);
        let mut client = start(folder);
        let planned = client.call("plan_campaign", &json!({ "campaign": "sale" }));
        let resource = |key: &str, kind: &str, value: &str| json!({ "key": key, "kind": kind, "value": value });
        let expected = json!([
            resource("recipients.file", "source", "list.csv"),
            resource("notify.command", "program", "sh -c 'echo >> campaign-ran'"),
            resource("profile.policy.notify.command", "program", "sh -c 'echo >> profile-ran'"),
        ]);
        assert_eq!(planned["resources"], expected);
        let note = planned["notes"][0].as_str().unwrap_or_default();
        assert!(note.contains("does not run the campaign's `notify.command`"), "{planned}");
        let checked = client.call("check_campaign", &json!({ "campaign": "sale" }));
        let findings = checked["findings"].as_array().expect("findings");
        let note = findings.iter().find(|finding| finding["rule"] == "notify-command");
        assert!(note.is_some_and(|note| note["severity"] == "note" && note["line"] == 2), "{checked}");
        assert_eq!(checked["ok"], true);
        let digest = planned["digest"].as_str().expect("a digest");
        let terminal = Terminal::start(client.folder().command(&["approve", digest]));
        terminal.shows("program `notify.command`: sh -c 'echo >> campaign-ran'");
        terminal.shows("not started if an assistant runs the campaign");
        terminal.shows("program `profile.policy.notify.command`").shows("Type yes").types("no");
        terminal.finish().exits(2);
        client.stop();
    }
}
