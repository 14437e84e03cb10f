//! The example campaigns of the repository, and the files that `init` writes.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Finished, Folder, KEY, Process, Results};

/// An empty folder.
pub(crate) fn empty() -> Folder {
    Folder::new(false)
}

/// A folder with copies of the example files of the repository.
pub(crate) fn with_examples() -> Folder {
    let folder = empty();
    for name in ["campaigns", "campaigns/scenarios", "templates"] {
        let (from, to) = (repository().join(name), folder.path(name));
        fs::create_dir(&to).expect("a folder");
        for file in files(&from) {
            fs::copy(&file, to.join(file.file_name().expect("a name"))).expect("a copy");
        }
    }
    fs::copy(repository().join("gateways.yaml"), folder.path("gateways.yaml")).expect("a copy");
    folder
}

/// Runs a command with the key of the sandbox in its environment.
pub(crate) fn campaign(folder: &Folder, arguments: &[&str]) -> Finished {
    let mut command = folder.command(arguments);
    command.env("CAMPAIGN_SANDBOX_KEY", KEY);
    Process::start(command).finish()
}

/// Runs a command that must succeed; returns its standard output.
#[track_caller]
pub(crate) fn run_ok(folder: &Folder, arguments: &[&str]) -> String {
    campaign(folder, arguments).exits(0).stdout
}

pub(crate) fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// The paths of the example campaigns, relative to the repository.
fn list_examples() -> Vec<String> {
    let files = files(&repository().join("campaigns"));
    let campaigns = files.iter().filter(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    campaigns.map(|path| format!("campaigns/{}", path.file_name().expect("a name").to_string_lossy())).collect()
}

/// The number of recipients in a list with one line per recipient.
fn count_recipients(list: &Path) -> usize {
    fs::read_to_string(list).expect("a list").lines().count() - 1
}

pub(crate) fn parse_json(text: &str) -> Value {
    serde_json::from_str(text).expect("one JSON object")
}

/// Runs a campaign, and checks its summary and its results.
fn run_and_check(folder: &Folder, file: &str, state: &str) {
    let list = folder.path(file).with_extension("csv").display().to_string().replace("-async.csv", ".csv");
    let expected = count_recipients(Path::new(&list));
    let summary = parse_json(&run_ok(folder, &["run", file, "--json"]));
    assert_eq!(summary["rows"], expected, "{file}");
    let counts = summary["counts"].as_object().expect("counts");
    assert_eq!(counts.values().filter_map(Value::as_u64).sum::<u64>(), expected as u64, "{file}: {summary}");
    assert!(counts.keys().all(|key| [state, "skipped"].contains(&key.as_str())), "{file}: {summary}");
    let results = Results::read(&folder.path(summary["results"].as_str().expect("results")));
    assert_eq!(results.rows.len(), expected, "{file}");
    for row in results.rows.iter().filter(|row| row["state"] == state) {
        let evidence = match (state, row["operation"].as_str()) {
            ("queued", _) => "request_id",
            (_, "hlr" | "call/otp") => "answer",
            _ => "msg_id",
        };
        assert!(!row[evidence].is_empty(), "{file}: no {evidence} in {row:?}");
        assert!(!row["id"].is_empty() && row["to"].starts_with("380"), "{file}: {row:?}");
    }
}

#[test]
fn every_example_passes_check_and_preview_shows_each_row() {
    let folder = with_examples();
    for file in list_examples() {
        let check = parse_json(&run_ok(&folder, &["check", &file, "--json"]));
        assert_eq!(check["findings"], Value::Array(Vec::new()), "{file}");
        let shown = run_ok(&folder, &["preview", &file, "--json"]);
        assert_eq!(shown.lines().count(), count_recipients(&folder.path(&file).with_extension("csv")), "{file}");
        let dry = parse_json(&run_ok(&folder, &["run", &file, "--dry-run", "--json"]));
        let results = Results::read(&folder.path(dry["results"].as_str().expect("results")));
        assert!(results.states().iter().all(|state| ["planned", "skipped"].contains(state)), "{file}");
    }
}

#[test]
fn every_example_scenario_has_the_expected_outcome() {
    for (scenario, exit, expected) in [
        ("fallback", 0, "delivered"),
        ("bad-day", 4, "in doubt"),
        ("out-of-money", 5, "Not enough money"),
        ("new-sender", 5, "Error in Alpha-name"),
        ("replies", 0, "delivered"),
    ] {
        let folder = with_examples();
        let file = format!("campaigns/scenarios/{scenario}.yaml");
        let output =
            campaign(&folder, &["run", "campaigns/welcome.yaml", "--scenario", &file]).exits(exit).says(expected);
        // The built-in sandbox stops when the run ends, so there is nothing to reconcile.
        assert!(!output.stdout.contains("campaign reconcile"), "{}", output.details());
    }
    assert_eq!(files(&repository().join("campaigns/scenarios")).len(), 5, "every scenario is tested here");
}

#[test]
fn every_example_is_accepted_on_the_synchronous_endpoint() {
    let folder = with_examples();
    for file in list_examples() {
        run_and_check(&folder, &file, "accepted");
    }
}

#[test]
fn every_example_is_queued_on_the_asynchronous_endpoint() {
    let folder = with_examples();
    for file in list_examples() {
        let text = fs::read_to_string(folder.path(&file)).expect("a campaign");
        let copy = file.replace(".yaml", "-async.yaml");
        fs::write(folder.path(&copy), format!("{text}\nendpoint: async\n")).expect("a copy");
        run_and_check(&folder, &copy, "queued");
    }
}

#[test]
fn examples_use_every_kind_of_operation() {
    let folder = with_examples();
    let kinds: Vec<String> = list_examples()
        .iter()
        .map(|file| {
            let shown = run_ok(&folder, &["preview", file, "--json", "--rows", "2"]);
            parse_json(&shown)["operation"]["type"].as_str().expect("a type").to_owned()
        })
        .collect();
    for kind in ["sms", "viber", "rcs+viber+sms", "pipeline", "hlr"] {
        assert!(kinds.iter().any(|found| found == kind), "no example sends `{kind}`: {kinds:?}");
    }
}

#[test]
fn suggested_commands_lead_from_init_to_results() {
    let folder = empty();
    let mut command = "campaign init demo".to_owned();
    for _ in 0..4 {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let output = run_ok(&folder, &words);
        command = output.lines().find_map(|line| line.strip_prefix("next: ")).unwrap_or_default().to_owned();
    }
    let results = Results::read(&folder.path("results/demo.sandbox.csv"));
    let ids = results.column("msg_id");
    assert!(!ids.is_empty() && ids.iter().all(|id| !id.is_empty()), "{results:?}");
}

#[test]
fn init_refuses_to_overwrite_files_and_writes_nothing() {
    for existing in ["demo.yaml", "demo.csv", "templates/demo.sms.txt"] {
        let folder = empty();
        fs::create_dir(folder.path("templates")).expect("a folder");
        fs::write(folder.path(existing), "mine").expect("a file");
        let output = campaign(&folder, &["init", "demo", "--json"]).exits(2);
        assert!(output.stdout.contains(existing), "{}", output.details());
        assert_eq!(fs::read_to_string(folder.path(existing)).expect("a file"), "mine");
        let written = files(&folder.path("")).len() + files(&folder.path("templates")).len();
        assert_eq!(written, 1, "{existing}");
    }
}

#[test]
fn init_writes_a_campaign_for_an_existing_list() {
    let folder = empty();
    fs::create_dir(folder.path("lists")).expect("a folder");
    let list = "\u{feff}№;Ім'я;Мобільний;plan\n1;Олена;050 000 00 01;gold\n2;;067 000 00 02;\n";
    fs::write(folder.path("lists/Наші клієнти.csv"), list).expect("a list");
    let written = parse_json(&run_ok(&folder, &["init", "spring", "--from", "lists/Наші клієнти.csv", "--json"]));
    assert_eq!(
        written["files"],
        serde_json::json!(["spring.yaml", "templates/spring.sms.txt", "campaign.schema.json"])
    );
    assert_eq!(written["next"], "campaign check spring.yaml");
    let shown = run_ok(&folder, &["preview", "spring.yaml", "--json"]);
    let texts: Vec<String> =
        shown.lines().map(|line| parse_json(line)["operation"]["sms_message"].to_string()).collect();
    assert!(texts[0].contains("Hello, Олена!") && texts[1].contains("Hello!"), "{texts:?}");
}

#[test]
fn init_accepts_only_valid_campaign_names() {
    let folder = empty();
    for name in ["Demo", "../demo", "a b", "", "зима", &"x".repeat(65)] {
        campaign(&folder, &["init", name]).exits(2);
    }
    assert!(files(&folder.path("")).is_empty());
}

#[test]
fn commented_production_profile_is_valid() {
    let folder = with_examples();
    let shown = fs::read_to_string(folder.path("gateways.yaml")).expect("profiles");
    let production = shown.split("# production:").nth(1).expect("a commented profile");
    let production: String = production.lines().map(|line| format!("{}\n", line.trim_start_matches('#'))).collect();
    fs::write(folder.path("gateways.yaml"), format!("production:{production}")).expect("profiles");
    run_ok(&folder, &["run", "campaigns/welcome.yaml", "--dry-run", "--gateway", "production"]);
}
