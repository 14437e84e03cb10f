//! Everything that the repository shows works: the examples, `init`, and the README, each in a copy of its own.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// How long one command may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A copy of what a user of the repository has, with a ledger of its own.
struct Workspace(TempDir);

impl Workspace {
    fn empty() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn with_examples() -> Self {
        let workspace = Self::empty();
        for name in ["campaigns", "campaigns/scenarios", "templates"] {
            let (from, to) = (repository().join(name), workspace.path(name));
            fs::create_dir(&to).expect("a folder");
            for file in files(&from) {
                fs::copy(&file, to.join(file.file_name().expect("a name"))).expect("a copy");
            }
        }
        fs::copy(repository().join("gateways.yaml"), workspace.path("gateways.yaml")).expect("a copy");
        workspace
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    fn campaign(&self, arguments: &[&str]) -> Output {
        let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_campaign"));
        command.current_dir(self.0.path()).timeout(PATIENCE).env_remove("CAMPAIGN_GATEWAYS");
        command.env("CAMPAIGN_STATE_DIR", self.path("state")).env("CAMPAIGN_SANDBOX_KEY", "sandbox");
        command.env("XDG_CONFIG_HOME", self.path("config")).args(arguments);
        command.output().expect("the program starts")
    }

    /// Runs a command that has to succeed and gives back what it printed.
    fn fine(&self, arguments: &[&str]) -> String {
        let output = self.campaign(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "campaign {}\n{said}", arguments.join(" "));
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// The campaign files of the repository, by their names in a workspace.
fn examples() -> Vec<String> {
    let files = files(&repository().join("campaigns"));
    let campaigns = files.iter().filter(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    campaigns.map(|path| format!("campaigns/{}", path.file_name().expect("a name").to_string_lossy())).collect()
}

/// The rows of a CSV file, by its headers.
fn rows(file: &Path) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(file).expect("a CSV file");
    reader.deserialize().map(|row| row.expect("a row")).collect()
}

/// The number of recipients in a list of one line each.
fn recipients(list: &Path) -> usize {
    fs::read_to_string(list).expect("a list").lines().count() - 1
}

fn object(text: &str) -> Value {
    serde_json::from_str(text).expect("one JSON object")
}

/// Runs a campaign and looks at its summary and its results.
fn run_and_examine(workspace: &Workspace, file: &str, state: &str) {
    let list = workspace.path(file).with_extension("csv").display().to_string().replace("-async.csv", ".csv");
    let expected = recipients(Path::new(&list));
    let summary = object(&workspace.fine(&["run", file, "--json"]));
    assert_eq!(summary["rows"], expected, "{file}");
    let counts = summary["counts"].as_object().expect("counts");
    assert_eq!(counts.values().filter_map(Value::as_u64).sum::<u64>(), expected as u64, "{file}: {summary}");
    assert!(counts.keys().all(|key| [state, "skipped"].contains(&key.as_str())), "{file}: {summary}");
    let results = rows(&workspace.path(summary["results"].as_str().expect("results")));
    assert_eq!(results.len(), expected, "{file}");
    for row in results.iter().filter(|row| row["state"] == state) {
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
fn every_example_passes_the_check_and_shows_each_row() {
    let workspace = Workspace::with_examples();
    for file in examples() {
        let check = object(&workspace.fine(&["check", &file, "--json"]));
        assert_eq!(check["findings"], Value::Array(Vec::new()), "{file}");
        let shown = workspace.fine(&["preview", &file, "--json"]);
        assert_eq!(shown.lines().count(), recipients(&workspace.path(&file).with_extension("csv")), "{file}");
        let dry = object(&workspace.fine(&["run", &file, "--dry-run", "--json"]));
        let results = rows(&workspace.path(dry["results"].as_str().expect("results")));
        assert!(results.iter().all(|row| ["planned", "skipped"].contains(&row["state"].as_str())), "{file}");
    }
}

#[test]
fn every_scenario_plays_what_it_says() {
    for (scenario, exit, said) in [
        ("fallback", 0, "delivered"),
        ("bad-day", 4, "in doubt"),
        ("out-of-money", 5, "Not enough money"),
        ("new-sender", 5, "Error in Alpha-name"),
        ("replies", 0, "delivered"),
    ] {
        let workspace = Workspace::with_examples();
        let file = format!("campaigns/scenarios/{scenario}.yaml");
        let output = workspace.campaign(&["run", "campaigns/welcome.yaml", "--scenario", &file]);
        let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "{scenario}\n{told}");
        assert!(told.contains(said), "{scenario}\n{told}");
    }
    assert_eq!(files(&repository().join("campaigns/scenarios")).len(), 5, "each has a line here");
}

#[test]
fn the_scenario_in_the_readme_is_understood() {
    let workspace = Workspace::with_examples();
    let [scenario] = <[String; 1]>::try_from(blocks("yaml scenario")).expect("one scenario");
    fs::write(workspace.path("scenario.yaml"), scenario).expect("a scenario");
    let output = workspace.campaign(&["run", "campaigns/welcome.yaml", "--scenario", "scenario.yaml"]);
    assert_ne!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_example_is_accepted_on_the_synchronous_endpoint() {
    let workspace = Workspace::with_examples();
    for file in examples() {
        run_and_examine(&workspace, &file, "accepted");
    }
}

#[test]
fn every_example_is_queued_on_the_asynchronous_endpoint() {
    let workspace = Workspace::with_examples();
    for file in examples() {
        let text = fs::read_to_string(workspace.path(&file)).expect("a campaign");
        let copy = file.replace(".yaml", "-async.yaml");
        fs::write(workspace.path(&copy), format!("{text}\nendpoint: async\n")).expect("a copy");
        run_and_examine(&workspace, &copy, "queued");
    }
}

#[test]
fn the_examples_use_every_kind_of_operation_that_they_promise() {
    let workspace = Workspace::with_examples();
    let kinds: Vec<String> = examples()
        .iter()
        .map(|file| {
            let shown = workspace.fine(&["preview", file, "--json", "--rows", "2"]);
            object(&shown)["operation"]["type"].as_str().expect("a type").to_owned()
        })
        .collect();
    for kind in ["sms", "viber", "rcs+viber+sms", "pipeline", "hlr"] {
        assert!(kinds.iter().any(|found| found == kind), "no example sends `{kind}`: {kinds:?}");
    }
}

#[test]
fn whoever_follows_the_next_command_gets_from_init_to_results() {
    let workspace = Workspace::empty();
    let mut command = "campaign init demo".to_owned();
    for _ in 0..4 {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let said = workspace.fine(&words);
        command = said.lines().find_map(|line| line.strip_prefix("next: ")).unwrap_or_default().to_owned();
    }
    let results = rows(&workspace.path("results/demo.sandbox.csv"));
    assert!(!results.is_empty() && results.iter().all(|row| !row["msg_id"].is_empty()), "{results:?}");
}

#[test]
fn init_overwrites_nothing_and_then_writes_nothing() {
    for taken in ["demo.yaml", "demo.csv", "templates/demo.sms.txt"] {
        let workspace = Workspace::empty();
        fs::create_dir(workspace.path("templates")).expect("a folder");
        fs::write(workspace.path(taken), "mine").expect("a file");
        let output = workspace.campaign(&["init", "demo", "--json"]);
        assert_eq!(output.status.code(), Some(2), "{taken}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(taken), "{taken}");
        assert_eq!(fs::read_to_string(workspace.path(taken)).expect("a file"), "mine");
        let written = files(workspace.0.path()).len() + files(&workspace.path("templates")).len();
        assert_eq!(written, 1, "{taken}");
    }
}

#[test]
fn init_writes_a_campaign_for_a_list_that_is_there() {
    let workspace = Workspace::empty();
    fs::create_dir(workspace.path("lists")).expect("a folder");
    let list = "\u{feff}№;Ім'я;Мобільний;plan\n1;Олена;050 000 00 01;gold\n2;;067 000 00 02;\n";
    fs::write(workspace.path("lists/Наші клієнти.csv"), list).expect("a list");
    let written = object(&workspace.fine(&["init", "spring", "--from", "lists/Наші клієнти.csv", "--json"]));
    assert_eq!(written["files"], serde_json::json!(["spring.yaml", "templates/spring.sms.txt"]));
    assert_eq!(written["next"], "campaign check spring.yaml");
    let shown = workspace.fine(&["preview", "spring.yaml", "--json"]);
    let texts: Vec<String> = shown.lines().map(|line| object(line)["operation"]["sms_message"].to_string()).collect();
    assert!(texts[0].contains("Hello, Олена!") && texts[1].contains("Hello!"), "{texts:?}");
}

#[test]
fn init_takes_only_names_that_a_campaign_can_have() {
    let workspace = Workspace::empty();
    for name in ["Demo", "../demo", "a b", "", "зима", &"x".repeat(65)] {
        assert_eq!(workspace.campaign(&["init", name]).status.code(), Some(2), "{name:?}");
    }
    assert!(files(workspace.0.path()).is_empty());
}

/// A fenced block of the README: its language and its lines.
fn blocks(language: &str) -> Vec<String> {
    let readme = fs::read_to_string(repository().join("README.md")).expect("a README");
    let opening = format!("```{language}\n");
    readme.split(&opening).skip(1).filter_map(|rest| Some(rest.split("\n```").next()?.to_owned())).collect()
}

#[test]
fn every_campaign_in_the_readme_passes_the_check() {
    let campaigns: Vec<String> = blocks("yaml").into_iter().filter(|block| block.contains("channels:")).collect();
    assert!(!campaigns.is_empty(), "the README shows no campaign");
    for (number, text) in campaigns.iter().enumerate() {
        let workspace = Workspace::with_examples();
        let gateways = blocks("yaml").into_iter().filter(|block| block.contains("base_url:")).collect::<String>();
        fs::write(workspace.path("gateways.yaml"), gateways).expect("profiles");
        let file = format!("campaigns/readme-{number}.yaml");
        fs::write(workspace.path(&file), text).expect("a campaign");
        workspace.fine(&["check", &file]);
        workspace.fine(&["run", &file, "--dry-run"]);
    }
}

/// `campaign sandbox` on a port of its own; dropped, it ends.
struct Server {
    child: Child,
    base_url: String,
}

impl Server {
    fn start() -> Self {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_campaign"))
            .args(["sandbox", "--listen", "127.0.0.1:0", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the sandbox starts");
        let mut out = BufReader::new(child.stdout.take().expect("its output"));
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = out.read_line(&mut line).map(|_| sender.send(line));
        });
        let mut server = Self { child, base_url: String::new() };
        let line = receiver.recv_timeout(PATIENCE).expect("the sandbox listens");
        object(&line)["base_url"].as_str().expect("an address").clone_into(&mut server.base_url);
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

#[test]
fn every_command_in_the_readme_works_in_its_order() {
    let workspace = Workspace::with_examples();
    let server = Server::start();
    let gateways = fs::read_to_string(workspace.path("gateways.yaml")).expect("profiles");
    let gateways = gateways.replace("http://127.0.0.1:8025", &server.base_url);
    fs::write(workspace.path("gateways.yaml"), gateways).expect("profiles");
    fs::copy(repository().join("campaigns/new-arrivals.csv"), workspace.path("clients.csv")).expect("a list");
    let blocks = blocks("sh");
    // The sandbox is running, and a live gateway is not for tests.
    let left_out = |line: &&str| !line.starts_with("campaign sandbox") && !line.contains("production");
    let commands = blocks.iter().flat_map(|block| block.lines()).map(|line| line.split("  #").next().unwrap_or(line));
    let commands: Vec<&str> = commands.filter(|line| line.starts_with("campaign ")).filter(left_out).collect();
    assert!(commands.len() > 10, "{commands:?}");
    for command in commands {
        let words: Vec<&str> = command.split_whitespace().skip(1).collect();
        workspace.fine(&words);
    }
}

#[test]
fn the_profiles_shown_for_a_live_gateway_are_right() {
    let workspace = Workspace::with_examples();
    let shown = fs::read_to_string(workspace.path("gateways.yaml")).expect("profiles");
    let production = shown.split("# production:").nth(1).expect("a commented profile");
    let production: String = production.lines().map(|line| format!("{}\n", line.trim_start_matches('#'))).collect();
    fs::write(workspace.path("gateways.yaml"), format!("production:{production}")).expect("profiles");
    workspace.fine(&["run", "campaigns/welcome.yaml", "--dry-run", "--gateway", "production"]);
}
