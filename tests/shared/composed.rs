//! The services of `deploy/compose.yaml`, each started by its own command, on a server of our own: what it says works together.

use std::collections::BTreeMap;
use std::path::Path;

use serde_yaml::Value;

use crate::support::{Cluster, Folder, KEY, Process, Reachable as _, SandboxProcess, until};

/// The part of the compose file that processes are started from.
struct Composed {
    text: String,
    services: BTreeMap<String, Value>,
}

impl Composed {
    fn read() -> Self {
        let text = std::fs::read_to_string(repository().join("deploy/compose.yaml")).expect("the compose file");
        let file: BTreeMap<String, Value> = serde_yaml::from_str(&text).expect("YAML");
        let services = serde_yaml::from_value(file["services"].clone()).expect("services");
        Self { text, services }
    }

    /// What a service is told.
    fn command(&self, service: &str) -> Vec<String> {
        serde_yaml::from_value(self.services[service]["command"].clone()).expect("a list")
    }

    /// What somebody is told to type after `run --rm sender`.
    fn typed(&self) -> Vec<Vec<String>> {
        let typed = self.text.lines().filter_map(|line| line.split_once("run --rm sender "));
        typed
            .map(|(_, words)| words.split_whitespace().map(str::to_owned).collect())
            .filter(|words: &Vec<String>| words[0] != "…")
            .collect()
    }
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What the services are shown of the repository, with the sandbox where this one is.
fn shown(composed: &Composed, sandbox: &SandboxProcess) -> Folder {
    let folder = Folder::new(false);
    for name in ["campaigns", "templates"] {
        assert!(composed.text.contains(&format!("- ../{name}:/srv/campaigns/{name}")), "{name} is shown");
        let mut copy = std::process::Command::new("cp");
        copy.arg("-r").arg(repository().join(name)).arg(folder.path(name));
        assert!(copy.status().is_ok_and(|status| status.success()));
    }
    let profiles = std::fs::read_to_string(repository().join("gateways.yaml")).expect("profiles");
    assert!(composed.command("sandbox").ends_with(&["127.0.0.1:8025".to_owned()]));
    let at = "http://127.0.0.1:8025";
    assert_eq!(profiles.matches(at).count(), 2);
    folder.write("gateways.yaml", &profiles.replace(at, &sandbox.base_url()));
    folder
}

#[test]
fn services_of_the_compose_file_send_a_run_together() {
    let Some(cluster) = Cluster::shared() else { return };
    let (composed, sandbox) = (Composed::read(), SandboxProcess::start());
    let folder = shown(&composed, &sandbox).over(&cluster.database());
    let start = |arguments: &[String]| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = folder.command(&arguments);
        command.env("CAMPAIGN_SANDBOX_KEY", KEY);
        Process::start(command)
    };
    let any_port = |word: String| if word == "0.0.0.0:8040" { "127.0.0.1:0".to_owned() } else { word };
    let server: Vec<String> = composed.command("server").into_iter().map(any_port).collect();
    let workers = composed.services["worker"]["deploy"]["replicas"].as_u64().expect("a number");
    let mut stay = vec![start(&server)];
    stay.extend((0..workers).map(|_| start(&composed.command("worker"))));
    until("all of them are there", || stay.iter().all(|process| process.stdout().contains('\n')));
    let typed = composed.typed();
    assert!(typed.iter().any(|words| words.contains(&"--shared".to_owned())), "{typed:?}");
    for words in typed {
        start(&words).finish().exits(0);
    }
    let list = std::fs::read_to_string(folder.path("campaigns/welcome.csv")).expect("a list");
    let messages = sandbox.messages();
    assert_eq!((messages.len(), messages.values().max()), (list.lines().count() - 1, Some(&1)), "everybody once");
    for mut process in stay {
        process.signal("TERM");
        process.finish().exits(0);
    }
}
