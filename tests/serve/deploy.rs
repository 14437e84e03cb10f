//! Deployment samples: their commands and options exist, and the image copies every source file that Cargo needs.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::campaign;

/// The arguments of all `campaign` commands in a file of `deploy/`.
fn sample_commands(name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name)).expect("a file");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let commands = lines.filter_map(|line| {
        let line = line.strip_prefix("CMD ").map(|list| list.replace(['[', ']', '"', ','], "")).or_else(|| {
            let rest = line.split_once("campaign run ").map(|(_, rest)| format!("run {rest}"));
            let rest =
                rest.or_else(|| line.split_once("campaign reconcile ").map(|(_, rest)| format!("reconcile {rest}")));
            rest.or_else(|| line.strip_prefix("ExecStart=/usr/local/bin/campaign ").map(str::to_owned))
        })?;
        Some(line.split(" >>").next()?.split_whitespace().map(str::to_owned).collect())
    });
    commands.collect()
}

#[test]
fn every_command_in_the_deployment_samples_is_valid() {
    let folder = campaign().write();
    for (file, expected_count) in
        [("campaign.service", 1), ("campaign-worker.service", 1), ("Containerfile", 1), ("crontab", 2)]
    {
        let commands = sample_commands(file);
        assert_eq!(commands.len(), expected_count, "{file}: {commands:?}");
        for mut words in commands {
            // Unknown arguments are rejected before the help is printed.
            words.push("--help".to_owned());
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            folder.campaign(&words).exits(0);
        }
    }
}

#[test]
fn image_copies_every_manifest_and_target_of_the_workspace() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(repository.join("deploy/Containerfile")).expect("a file");
    let lines = text.lines().filter_map(|line| line.strip_prefix("COPY ")).filter(|line| !line.starts_with("--from"));
    let copied: Vec<&str> = lines.flat_map(|line| line.split(' ').rev().skip(1)).collect();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(repository);
    let metadata: Value = serde_json::from_slice(&cargo.output().expect("cargo").stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 10, "{packages:?}");
    for package in packages {
        let targets = package["targets"].as_array().expect("targets").iter().map(|target| &target["src_path"]);
        for path in targets.chain([&package["manifest_path"]]) {
            let path = Path::new(path.as_str().expect("a path")).strip_prefix(repository).expect("in the repository");
            assert!(copied.iter().any(|copied| path.starts_with(copied)), "{} is not copied", path.display());
        }
    }
}
