//! Programs of campaign files: the connector starts none, and begins no run that nobody approved.

use serde_json::{Value, json};

use super::campaigns::house;
use super::runs::{OPTIONS, approve};
use super::stdio::Conversation;
use super::{Connector, told};
use crate::support::{
    Answer, Folder, Gateway, Process, Reachable, SandboxProcess, Terminal, in_files, phone, until, with_ledger,
};

/// A command of a campaign file, which leaves a file where it runs.
const OF_THE_CAMPAIGN: &str = "notify: { command: [sh, -c, \"echo >> of-the-campaign\"] }\n";

/// The command of the operator, in the profile.
const OF_THE_PROFILE: &str = "local:\n  policy: { notify: { command: [sh, -c, \"echo >> of-the-profile\"] } }\n";

/// A connector with the campaigns of a folder, over one of its transports.
enum Client {
    Http(Connector),
    Stdio(Conversation),
}

/// Both transports, each as the function that starts a connector in a folder.
const TRANSPORTS: [fn(Folder) -> Client; 2] = [
    |folder| Client::Http(Connector::within(folder, &OPTIONS)),
    |folder| Client::Stdio(Conversation::begin(folder, &OPTIONS)),
];

impl Client {
    /// What a tool answers.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        match self {
            Self::Http(connector) => told(&connector.call(tool, arguments)),
            Self::Stdio(conversation) => {
                let params = json!({ "name": tool, "arguments": arguments });
                let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
                told(&conversation.ask(&call)["result"])
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

    /// Waits until the latest run ended in this state.
    fn ends(&mut self, state: &str) {
        until("the run ends", || self.call("run_status", &json!({ "campaign": "sale" }))["state"] == state);
    }

    fn folder(&self) -> &Folder {
        match self {
            Self::Http(connector) => &connector.folder,
            Self::Stdio(conversation) => conversation.folder(),
        }
    }

    /// Ends it after its runs and their notifications, and gives its folder.
    fn leave(self) -> Folder {
        let (ended, folder) = match self {
            Self::Http(connector) => connector.ended(),
            Self::Stdio(conversation) => conversation.ended(),
        };
        ended.exits(0);
        folder
    }
}

/// The house of campaigns with these lines at the top of the campaign.
fn house_with(gateway: &impl Reachable, top: &str) -> Folder {
    let folder = house(gateway);
    folder.replace("campaigns/sale.yaml", "name: sale\n", &format!("name: sale\n{top}"));
    folder
}

/// How often a command ran.
fn runs_of(folder: &Folder, name: &str) -> usize {
    std::fs::read_to_string(folder.path(name)).map_or(0, |text| text.lines().count())
}

/// How many records of a table the ledger has.
fn records(folder: &Folder, table: &'static str) -> i64 {
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

fn refused(answer: &Value, words: &str) {
    assert_eq!(answer["code"], "campaign_refused", "{answer}");
    assert!(answer["error"].as_str().is_some_and(|error| error.contains(words)), "{words}: {answer}");
}

#[test]
fn command_of_a_campaign_never_runs_and_the_profiles_does() {
    let _files = in_files();
    for start in TRANSPORTS {
        // The run stops at the first answer, and goes on to its end.
        let gateway = Gateway::answering([Answer::refused("Invalid message type")]);
        let folder = house_with(&gateway, OF_THE_CAMPAIGN);
        folder.replace("gateways.yaml", "local:\n", OF_THE_PROFILE);
        let mut client = start(folder);
        let digest = client.plan();
        approve(client.folder(), &digest);
        for (state, notified) in [("stopped", 1), ("finished", 2)] {
            assert_eq!(client.run(&digest)["started"], true, "{state}");
            client.ends(state);
            until("the profile's command ran", || runs_of(client.folder(), "of-the-profile") == notified);
        }
        assert_eq!(records(client.folder(), "notifications"), 2, "only those of the profile");
        assert_eq!(runs_of(client.folder(), "of-the-campaign"), 0);
        client.leave();
    }
}

#[test]
fn command_that_another_process_recorded_is_left_to_it() {
    let _files = in_files();
    for start in TRANSPORTS {
        let gateway = Gateway::answering([Answer::refused("Invalid message type")]);
        let folder = house_with(&gateway, "");
        // The operator's own run records its command, which fails for now.
        let failing = "name: sale\nnotify: { command: [sh, -c, \"test -e ready && echo >> of-the-campaign\"] }\n";
        folder.replace("campaigns/sale.yaml", "name: sale\n", failing);
        folder.campaign(&["run", "campaigns/sale.yaml", "--gateway", "local", "--no-wait"]).exits(5);
        assert_eq!(records(&folder, "notifications"), 1);
        folder.write("ready", "");
        let mut client = start(folder);
        let digest = client.plan();
        approve(client.folder(), &digest);
        assert_eq!(client.run(&digest)["started"], true);
        client.ends("finished");
        // It waits for its notifications before it ends.
        let folder = client.leave();
        assert_eq!(runs_of(&folder, "of-the-campaign"), 0);
    }
}

#[test]
fn run_without_recipients_does_not_begin() {
    let _files = in_files();
    let numbers: Vec<String> = (2..5).map(|row| format!("+{}", phone(row))).collect();
    for start in TRANSPORTS {
        for suppressed in [false, true] {
            let gateway = Gateway::accepting();
            let folder = house_with(&gateway, "notify: { url: { file: nowhere.url } }\n");
            folder.replace("gateways.yaml", "local:\n", OF_THE_PROFILE);
            if suppressed {
                for number in &numbers {
                    folder.campaign(&["suppress", "add", number]).exits(0);
                }
            } else {
                let never = "recipients: { where: 'name == \"Nobody\"', empty: ok, file";
                folder.replace("campaigns/sale.yaml", "recipients: { file", never);
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
            assert_eq!((records(client.folder(), "runs"), records(client.folder(), "notifications")), (0, 0));
            assert_eq!(runs_of(client.folder(), "of-the-profile"), 0);
            assert!(gateway.requests().is_empty());
            client.leave();
        }
    }
}

#[test]
fn run_without_recipients_left_needs_its_own_approval() {
    let _files = in_files();
    for start in TRANSPORTS {
        let gateway = Gateway::accepting();
        let folder = house_with(&gateway, "");
        // Everybody has a message, and the process dies before the run ends.
        let mut command = folder.command(&["run", "campaigns/sale.yaml", "--gateway", "local", "--no-wait"]);
        command.env("CAMPAIGN_FAILPOINT", "results.written:1");
        assert_ne!(Process::start(command).finish().code(), Some(0));
        assert_eq!(gateway.phones().len(), 3);
        let mut client = start(folder);
        let digest = client.plan();
        refused(&client.run(&digest), "sale@1 has no recipients left");
        client.leave();
    }
}

#[test]
fn command_or_address_added_after_the_approval_is_refused() {
    let _files = in_files();
    for start in TRANSPORTS {
        let sandbox = SandboxProcess::start();
        let mut client = start(house_with(&sandbox, ""));
        let digest = client.plan();
        approve(client.folder(), &digest);
        let added = [
            (OF_THE_CAMPAIGN, "the program `notify.command` changed"),
            ("notify: { url: { env: URL } }\n", "the address `notify.url` changed"),
            ("data: { names: { file: list.csv, key: name } }\n", "the source `data.names` changed"),
        ];
        for (lines, words) in added {
            client.folder().replace("campaigns/sale.yaml", "name: sale\n", &format!("name: sale\n{lines}"));
            refused(&client.run(&digest), words);
            client.folder().replace("campaigns/sale.yaml", lines, "");
        }
        assert!(sandbox.journal().is_empty());
        assert_eq!(records(client.folder(), "runs"), 0);
        assert_eq!(client.run(&digest)["started"], true, "the approved campaign is sent");
        client.ends("finished");
        assert_eq!(runs_of(client.folder(), "of-the-campaign"), 0);
        client.leave();
    }
}

#[test]
fn plan_check_and_approve_show_the_command_of_a_campaign() {
    let sandbox = SandboxProcess::start();
    for start in TRANSPORTS {
        let folder = house_with(&sandbox, OF_THE_CAMPAIGN);
        folder.replace("gateways.yaml", "local:\n", OF_THE_PROFILE);
        let mut client = start(folder);
        let planned = client.call("plan_campaign", &json!({ "campaign": "sale" }));
        let resource = |key: &str, kind: &str, value: &str| json!({ "key": key, "kind": kind, "value": value });
        let expected = json!([
            resource("recipients.file", "source", "list.csv"),
            resource("notify.command", "program", "sh -c 'echo >> of-the-campaign'"),
            resource("profile.policy.notify.command", "program", "sh -c 'echo >> of-the-profile'"),
        ]);
        assert_eq!(planned["resources"], expected);
        let note = planned["notes"][0].as_str().unwrap_or_default();
        assert!(note.contains("does not start `notify.command`"), "{planned}");
        let checked = client.call("check_campaign", &json!({ "campaign": "sale" }));
        let findings = checked["findings"].as_array().expect("findings");
        let note = findings.iter().find(|finding| finding["rule"] == "notify-command");
        assert!(note.is_some_and(|note| note["severity"] == "note" && note["line"] == 2), "{checked}");
        assert_eq!(checked["ok"], true);
        let digest = planned["digest"].as_str().expect("a digest");
        let asked = Terminal::start(client.folder().command(&["approve", digest]));
        asked.shows("program `notify.command`: sh -c 'echo >> of-the-campaign'");
        asked.shows("not started if an assistant runs the campaign");
        asked.shows("program `profile.policy.notify.command`").shows("Type yes").types("no");
        asked.finish().exits(2);
        client.leave();
    }
}
