//! The command that is suggested is pasted as it stands, and means the same ledger and the same gateways.

use std::process::Command;

use crate::support::{Answer, Finished, Folder, Gateway, KEY, KEY_VARIABLE, Process, campaign, telling};

/// What a person types behind each command by hand: a ledger and gateways in places with blanks in their names.
const OPTIONS: &str = "--state-dir 'my state' --gateways 'it'\\''s here/gateways.yaml'";

/// A campaign whose ledger and gateways are found by options alone.
fn sale(gateway: &Gateway) -> Folder {
    let sale = campaign().through(gateway).write();
    std::fs::create_dir(sale.path("it's here")).expect("a folder");
    std::fs::rename(sale.path("gateways.yaml"), sale.path("it's here/gateways.yaml")).expect("moved");
    sale
}

/// Has a shell run the line in this folder, where nothing but the line names a ledger.
fn pasted(sale: &Folder, line: &str) -> Finished {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_campaign"));
    let mut command = Command::new("/bin/sh");
    command.current_dir(sale.path(".")).env_clear().env("HOME", sale.path("home")).env(KEY_VARIABLE, KEY);
    command.env("PATH", binary.parent().expect("a folder")).args(["-c", line]);
    Process::start(command).finish()
}

/// The command of the last line of an output, or of its object.
fn next(finished: &Finished) -> String {
    let next = match serde_json::from_str::<serde_json::Value>(&finished.stdout) {
        Ok(object) => object["next"].as_str().expect("a command").to_owned(),
        Err(_) => {
            let last = finished.stdout.lines().last().expect("lines");
            last.strip_prefix("next: ").unwrap_or_else(|| panic!("{}", finished.told())).to_owned()
        }
    };
    let first = next.split(", or ").next().expect("a command");
    first.to_owned()
}

/// Pastes what each command suggests, from `line` on; the words behind `campaign`, one for each.
fn follow(sale: &Folder, line: &str, steps: usize) -> Vec<String> {
    let mut line = format!("{line} {OPTIONS}");
    let mut said = Vec::new();
    for _ in 0..steps {
        let finished = pasted(sale, &line);
        assert!(!matches!(finished.code(), Some(2 | 6 | 74) | None), "{}", finished.told());
        assert!(!sale.path("home/.local").exists(), "another ledger was looked for: {}", finished.told());
        line = next(&finished);
        assert!(line.ends_with(OPTIONS), "{}", finished.told());
        said.push(line.split(' ').nth(1).expect("a command").to_owned());
    }
    said
}

#[test]
fn every_command_from_check_to_results_keeps_its_ledger() {
    let gateway = Gateway::accepting();
    let sale = sale(&gateway);
    let said = follow(&sale, "campaign check sale.yaml", 4);
    assert_eq!(said, ["preview", "run", "status", "results"]);
    assert_eq!(gateway.phones().len(), 3, "nobody got it twice");
}

#[test]
fn stopped_run_resumes_from_its_own_ledger() {
    for json in ["", " --json"] {
        let _case = telling(format!("case: `{json}`"));
        let gateway = Gateway::accepting();
        let sale = sale(&gateway);
        let stopped = format!("campaign run sale.yaml --limit 1{json}");
        assert_eq!(follow(&sale, &stopped, 2), ["run", "status"]);
        assert_eq!(gateway.phones().len(), 3, "nobody got it twice");
    }
}

#[test]
fn unfinished_messages_are_reported_if_nothing_is_in_doubt() {
    let gateway = Gateway::accepting();
    let sale = sale(&gateway);
    let stopped = format!("campaign run sale.yaml --limit 1 {OPTIONS}");
    pasted(&sale, &stopped).exits(0);
    assert_eq!(follow(&sale, "campaign reconcile sale", 2), ["run", "status"]);
    assert_eq!(gateway.phones().len(), 3);
}

#[test]
fn rehearsal_leads_to_the_gateway_of_the_campaign() {
    let gateway = Gateway::accepting();
    let sale = sale(&gateway);
    let rehearsal = pasted(&sale, &format!("campaign run sale.yaml --gateway sandbox {OPTIONS}")).exits(0);
    rehearsal.says(&format!("campaign run sale.yaml --gateway local {OPTIONS}"));
}

#[test]
fn suggested_selection_of_doubt_and_rejections_finds_its_rows() {
    let gateway = Gateway::answering([Answer::CloseRead]);
    let in_doubt = sale(&gateway);
    let run = format!("campaign run sale.yaml --no-wait {OPTIONS}");
    let finished = pasted(&in_doubt, &run).exits(4);
    let commands = finished.stdout.lines().filter_map(|line| line.split_once("campaign ").map(|(_, command)| command));
    let commands: Vec<&str> = commands.collect();
    assert!(commands.len() > 1 && commands.iter().all(|command| command.contains(OPTIONS)), "{}", finished.told());
    assert_eq!(follow(&in_doubt, "campaign status sale", 1), ["reconcile"]);
    assert_eq!(follow(&in_doubt, "campaign show sale --row 2", 2)[0], "reconcile");
    let gateway = Gateway::always(Answer::items(|operation| crate::support::rejected(operation, "No route")));
    let refused = sale(&gateway);
    let finished = pasted(&refused, &format!("campaign run sale.yaml --keep-going {OPTIONS}")).exits(3);
    let rows = pasted(&refused, &next(&finished)).exits(0);
    assert_eq!(crate::support::Results::parse(&rows.stdout).states(), ["rejected"; 3]);
    let unknown = pasted(&refused, &format!("campaign status nobody {OPTIONS}")).exits(2);
    unknown.says(&format!("`campaign status {OPTIONS}`"));
}

#[test]
fn environment_value_is_not_quoted() {
    let sale = campaign().write();
    let finished = sale.campaign(&["check", "sale.yaml"]).exits(0);
    assert_eq!(next(&finished), "campaign preview sale.yaml");
}
