//! Deployment samples: all commands and options exist.

use std::fs;
use std::path::Path;

use crate::support::campaign;

/// The arguments of all `campaign` commands in a file of `deploy/`.
fn sample_commands(name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name)).expect("a file");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let words = lines.filter_map(|line| {
        let line = line.strip_prefix("CMD ").map(|list| list.replace(['[', ']', '"', ','], "")).or_else(|| {
            let rest = line.split_once("campaign run ").map(|(_, rest)| format!("run {rest}"));
            let rest =
                rest.or_else(|| line.split_once("campaign reconcile ").map(|(_, rest)| format!("reconcile {rest}")));
            rest.or_else(|| line.strip_prefix("ExecStart=/usr/local/bin/campaign ").map(str::to_owned))
        })?;
        Some(line.split(" >>").next()?.split_whitespace().map(str::to_owned).collect())
    });
    words.collect()
}

#[test]
fn every_command_of_the_samples_for_servers_is_understood() {
    let folder = campaign().write();
    for (file, number) in [("campaign.service", 1), ("Containerfile", 1), ("crontab", 2)] {
        let commands = sample_commands(file);
        assert_eq!(commands.len(), number, "{file}: {commands:?}");
        for mut words in commands {
            // Unknown arguments are rejected before the help is printed.
            words.push("--help".to_owned());
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            folder.campaign(&words).exits(0);
        }
    }
}
