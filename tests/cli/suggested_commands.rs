//! Suggested commands: pasted unchanged, they use the same ledger and the same gateways.

use std::process::Command;

use crate::support::{Answer, Finished, Folder, Gateway, KEY, KEY_VARIABLE, Process, campaign, note_on_failure};

/// Options that the user adds to each command: a ledger and gateway profiles at paths with spaces.
const OPTIONS: &str = "--state-dir 'my state' --gateways 'it'\\''s here/gateways.yaml'";

/// Creates a campaign whose ledger and gateways are found only through options.
fn campaign_with_options(gateway: &Gateway) -> Folder {
    let sale = campaign().through(gateway).write();
    std::fs::create_dir(sale.path("it's here")).expect("a folder");
    std::fs::rename(sale.path("gateways.yaml"), sale.path("it's here/gateways.yaml")).expect("moved");
    sale
}

/// Runs the line in a shell in this folder. Only the line itself names a ledger.
fn run_in_shell(sale: &Folder, line: &str) -> Finished {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_campaign"));
    let mut command = Command::new("/bin/sh");
    command.current_dir(sale.path(".")).env_clear().env("HOME", sale.path("home")).env(KEY_VARIABLE, KEY);
    command.env("PATH", binary.parent().expect("a folder")).args(["-c", line]);
    Process::start(command).finish()
}

/// Returns the suggested command: the last line of the output, or `next` of the JSON object.
fn suggested_command(finished: &Finished) -> String {
    let next = match serde_json::from_str::<serde_json::Value>(&finished.stdout) {
        Ok(object) => object["next"].as_str().expect("a command").to_owned(),
        Err(_) => {
            let last = finished.stdout.lines().last().expect("lines");
            last.strip_prefix("next: ").unwrap_or_else(|| panic!("{}", finished.details())).to_owned()
        }
    };
    let first = next.split(", or ").next().expect("a command");
    first.to_owned()
}

/// Follows `steps` suggested commands, starting with `line`. Returns the command names.
fn follow_suggestions(sale: &Folder, line: &str, steps: usize) -> Vec<String> {
    let mut line = format!("{line} {OPTIONS}");
    let mut commands = Vec::new();
    for _ in 0..steps {
        let finished = run_in_shell(sale, &line);
        assert!(!matches!(finished.code(), Some(2 | 6 | 74) | None), "{}", finished.details());
        assert!(!sale.path("home/.local").exists(), "another ledger was looked for: {}", finished.details());
        line = suggested_command(&finished);
        assert!(line.ends_with(OPTIONS), "{}", finished.details());
        commands.push(line.split(' ').nth(1).expect("a command").to_owned());
    }
    commands
}

#[test]
fn suggested_commands_from_check_to_results_use_the_same_ledger() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_options(&gateway);
    let commands = follow_suggestions(&sale, "campaign check sale.yaml", 4);
    assert_eq!(commands, ["preview", "run", "status", "results"]);
    assert_eq!(gateway.phones().len(), 3, "no message is sent twice");
}

#[test]
fn suggested_commands_resume_a_run_from_its_own_ledger() {
    for json in ["", " --json"] {
        let _case = note_on_failure(format!("case: `{json}`"));
        let gateway = Gateway::accepting();
        let sale = campaign_with_options(&gateway);
        let limited_run = format!("campaign run sale.yaml --limit 1{json}");
        assert_eq!(follow_suggestions(&sale, &limited_run, 2), ["run", "status"]);
        assert_eq!(gateway.phones().len(), 3, "no message is sent twice");
    }
}

#[test]
fn reconcile_suggests_resuming_if_no_message_is_in_doubt() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_options(&gateway);
    let limited_run = format!("campaign run sale.yaml --limit 1 {OPTIONS}");
    run_in_shell(&sale, &limited_run).exits(0);
    assert_eq!(follow_suggestions(&sale, "campaign reconcile sale", 2), ["run", "status"]);
    assert_eq!(gateway.phones().len(), 3);
}

#[test]
fn rehearsal_suggests_a_run_on_the_gateway_of_the_campaign() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_options(&gateway);
    let rehearsal = run_in_shell(&sale, &format!("campaign run sale.yaml --gateway sandbox {OPTIONS}")).exits(0);
    rehearsal.says(&format!("campaign run sale.yaml --gateway local {OPTIONS}"));
}

#[test]
fn suggestions_for_doubt_and_rejections_repeat_the_options() {
    let gateway = Gateway::answering([Answer::CloseRead]);
    let in_doubt = campaign_with_options(&gateway);
    let run = format!("campaign run sale.yaml --no-wait {OPTIONS}");
    let finished = run_in_shell(&in_doubt, &run).exits(4);
    let commands = finished.stdout.lines().filter_map(|line| line.split_once("campaign ").map(|(_, command)| command));
    let commands: Vec<&str> = commands.collect();
    assert!(commands.len() > 1 && commands.iter().all(|command| command.contains(OPTIONS)), "{}", finished.details());
    assert_eq!(follow_suggestions(&in_doubt, "campaign status sale", 1), ["reconcile"]);
    assert_eq!(follow_suggestions(&in_doubt, "campaign show sale --row 2", 2)[0], "reconcile");
    let gateway = Gateway::always(Answer::items(|operation| crate::support::rejected(operation, "No route")));
    let refused = campaign_with_options(&gateway);
    let finished = run_in_shell(&refused, &format!("campaign run sale.yaml --keep-going {OPTIONS}")).exits(3);
    let rows = run_in_shell(&refused, &suggested_command(&finished)).exits(0);
    assert_eq!(crate::support::Results::parse(&rows.stdout).states(), ["rejected"; 3]);
    let unknown = run_in_shell(&refused, &format!("campaign status nobody {OPTIONS}")).exits(2);
    unknown.says(&format!("`campaign status {OPTIONS}`"));
}

#[test]
fn option_from_the_environment_is_not_repeated() {
    let sale = campaign().write();
    let finished = sale.campaign(&["check", "sale.yaml"]).exits(0);
    assert_eq!(suggested_command(&finished), "campaign preview sale.yaml");
}
