//! Services of `deploy/compose.yaml`: with the commands of that file, they send a run together.

use std::collections::BTreeMap;
use std::path::Path;

use serde_yaml::Value;

use crate::support::{Cluster, Folder, KEY, Process, Reachable as _, SandboxProcess, until};

/// The text and the services of the compose file.
struct ComposeFile {
    text: String,
    services: BTreeMap<String, Value>,
}

impl ComposeFile {
    fn read() -> Self {
        let text = std::fs::read_to_string(repository().join("deploy/compose.yaml")).expect("the compose file");
        let file: BTreeMap<String, Value> = serde_yaml::from_str(&text).expect("YAML");
        let services = serde_yaml::from_value(file["services"].clone()).expect("services");
        Self { text, services }
    }

    /// The arguments of a service.
    fn command(&self, service: &str) -> Vec<String> {
        serde_yaml::from_value(self.services[service]["command"].clone()).expect("a list")
    }

    /// The documented arguments after `run --rm sender`.
    fn documented_commands(&self) -> Vec<Vec<String>> {
        let lines = self.text.lines().filter_map(|line| line.split_once("run --rm sender "));
        lines
            .map(|(_, words)| words.split_whitespace().map(str::to_owned).collect())
            .filter(|words: &Vec<String>| words[0] != "…")
            .collect()
    }
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder that the services mount, with the address of this sandbox.
fn mounted_folder(composed: &ComposeFile, sandbox: &SandboxProcess) -> Folder {
    let folder = Folder::new(false);
    for name in ["campaigns", "templates"] {
        assert!(composed.text.contains(&format!("- ../{name}:/srv/campaigns/{name}")), "{name} is mounted");
        let mut copy = std::process::Command::new("cp");
        copy.arg("-r").arg(repository().join(name)).arg(folder.path(name));
        assert!(copy.status().is_ok_and(|status| status.success()));
    }
    let profiles = std::fs::read_to_string(repository().join("gateways.yaml")).expect("profiles");
    assert!(composed.command("sandbox").ends_with(&["127.0.0.1:8025".to_owned()]));
    let address = "http://127.0.0.1:8025";
    assert_eq!(profiles.matches(address).count(), 2);
    folder.write("gateways.yaml", &profiles.replace(address, &sandbox.base_url()));
    folder
}

#[test]
fn services_of_the_compose_file_send_a_run_together() {
    let Some(cluster) = Cluster::shared() else { return };
    let (composed, sandbox) = (ComposeFile::read(), SandboxProcess::start());
    let folder = mounted_folder(&composed, &sandbox).with_database(&cluster.create_database());
    let start = |arguments: &[String]| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = folder.command(&arguments);
        command.env("CAMPAIGN_SANDBOX_KEY", KEY);
        Process::start(command)
    };
    let use_any_port = |word: String| if word == "0.0.0.0:8040" { "127.0.0.1:0".to_owned() } else { word };
    let server: Vec<String> = composed.command("server").into_iter().map(use_any_port).collect();
    let workers = composed.services["worker"]["deploy"]["replicas"].as_u64().expect("a number");
    let mut running = vec![start(&server)];
    running.extend((0..workers).map(|_| start(&composed.command("worker"))));
    until("all services are ready", || running.iter().all(|process| process.stdout().contains('\n')));
    let commands = composed.documented_commands();
    assert!(commands.iter().any(|words| words.contains(&"--shared".to_owned())), "{commands:?}");
    for words in commands {
        start(&words).finish().exits(0);
    }
    let list = std::fs::read_to_string(folder.path("campaigns/welcome.csv")).expect("a list");
    let messages = sandbox.messages();
    assert_eq!(
        (messages.len(), messages.values().max()),
        (list.lines().count() - 1, Some(&1)),
        "one message per recipient"
    );
    for mut process in running {
        process.signal("TERM");
        process.finish().exits(0);
    }
}
