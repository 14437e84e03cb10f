//! Files for teams: pre-commit hooks, the action for pull requests, workflows and issue forms.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{Finished, Folder, Process};

const GOOD: &str = "recipients: { file: list.csv }\nchannels:\n  - sms: { signature: OlenaCo, message: Hello }\n";
/// A campaign whose last line has a misspelt key.
const BROKEN: &str = "recipients: { file: list.csv }\nchannels:\n  - sms: { signature: OlenaCo, mesage: Hello }\n";
/// The finding in the broken campaign in the format of a workflow.
const ANNOTATION: &str = "::error file=campaigns/broken.yaml,line=3";

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read_yaml(file: &str) -> Value {
    serde_yaml::from_str(&fs::read_to_string(repository().join(file)).expect("a file")).expect("YAML")
}

/// Creates a repository with a good and a broken campaign.
fn team_repository() -> Folder {
    let folder = Folder::new(false);
    folder.write("campaigns/good.yaml", GOOD);
    folder.write("campaigns/broken.yaml", BROKEN);
    folder.write("campaigns/list.csv", "phone\n+380500000001\n");
    folder
}

#[test]
fn pre_commit_hooks_find_mistakes() {
    let team = team_repository();
    let hooks = read_yaml(".pre-commit-hooks.yaml");
    let hooks = hooks.as_array().expect("a list");
    assert_eq!(hooks.len(), 2);
    for hook in hooks {
        let entry: Vec<&str> = hook["entry"].as_str().expect("a command").split(' ').collect();
        assert_eq!(entry[0], "campaign", "{hook}");
        let run = |file: &str| team.campaign(&[&entry[1..], &[file]].concat());
        run("campaigns/good.yaml").exits(0);
        run("campaigns/broken.yaml").exits(2).says("unknown key `mesage`").says("campaigns/broken.yaml:3");
    }
}

/// Runs the check of the action with the environment that its last step sets.
fn run_action(team: &Folder, inputs: &[(&str, &str)]) -> Finished {
    let action = read_yaml("action.yml");
    let step = action["runs"]["steps"].as_array().and_then(|steps| steps.last()).expect("a step").clone();
    let script = step["run"].as_str().expect("a command").trim_matches('"');
    let script = script.replace("$GITHUB_ACTION_PATH", repository().to_str().expect("UTF-8"));
    let mut command = Command::new(script);
    command.current_dir(team.path(".")).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", team.path("home"));
    for (variable, value) in step["env"].as_object().expect("variables") {
        let name = value.as_str().expect("an expression").trim_start_matches("${{ inputs.");
        let name = name.split([' ', '}']).next().expect("a name");
        let typed = inputs.iter().find(|(input, _)| *input == name).map(|(_, value)| *value);
        let default = action["inputs"][name]["default"].as_str().unwrap_or_else(|| panic!("no input {name}"));
        command.env(variable, typed.unwrap_or(default));
    }
    Process::start(command).finish()
}

#[test]
fn action_annotates_a_pull_request_and_writes_sarif() {
    let team = team_repository();
    let program = env!("CARGO_BIN_EXE_campaign-with-failpoints");
    let failed = run_action(&team, &[("program", program), ("sarif", "found.sarif")]).exits(2);
    assert!(failed.stdout.contains(ANNOTATION), "{}", failed.details());
    let log: Value = serde_json::from_str(&fs::read_to_string(team.path("found.sarif")).expect("a log")).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    let location = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "campaigns/broken.yaml", "{log}");
    let passed = run_action(&team, &[("program", program), ("files", "campaigns/good.yaml"), ("sarif", "good.sarif")]);
    passed.exits(0);
    assert!(team.path("good.sarif").exists());
    run_action(&team, &[("program", program), ("files", "campaigns/none-*.yaml")]).exits(2).says("none-*.yaml");
    run_action(&team, &[("program", "/nonexistent")]).exits(127);
}

#[test]
fn action_treats_warnings_as_errors_by_default() {
    let team = team_repository();
    // An empty cell causes a warning.
    team.write("campaigns/list.csv", "phone,name\n+380500000001,\n");
    team.write("campaigns/good.yaml", &GOOD.replace("Hello", "\"Hello {{ name }}\""));
    let program = env!("CARGO_BIN_EXE_campaign-with-failpoints");
    let inputs = [("program", program), ("files", "campaigns/good.yaml")];
    let strict = run_action(&team, &inputs);
    let lenient = run_action(&team, &[&inputs[..], &[("strict", "false")]].concat()).exits(0);
    assert!(lenient.stdout.contains("::warning "), "{}", lenient.details());
    strict.exits(2);
}

/// The paths of all files in a folder whose names have this suffix.
fn files_in(folder: &str, suffix: &str) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(repository().join(folder)).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.to_string_lossy().ends_with(suffix)).collect()
}

#[test]
fn workflows_and_issue_forms_are_yaml_with_their_required_keys() {
    let workflows = files_in(".github/workflows", ".yml");
    assert_eq!(workflows.len(), 3, "{workflows:?}");
    for path in workflows {
        let workflow = read_yaml(path.to_str().expect("UTF-8"));
        // Each workflow starts with the least permissions.
        assert_eq!(workflow["permissions"]["contents"], "read", "{}", path.display());
        for (name, job) in workflow["jobs"].as_object().expect("jobs") {
            assert!(job["timeout-minutes"].is_u64() && job["steps"].is_array(), "{}: {name}", path.display());
        }
    }
    for name in ["bug", "idea"] {
        let form = read_yaml(&format!(".github/ISSUE_TEMPLATE/{name}.yml"));
        assert!(form["name"].is_string() && form["description"].is_string(), "{name}");
        let fields = form["body"].as_array().expect("fields");
        let is_input = |field: &&Value| field["type"] != "markdown";
        for field in fields.iter().filter(is_input) {
            assert!(field["id"].is_string() && field["attributes"]["label"].is_string(), "{name}: {field}");
        }
    }
}
