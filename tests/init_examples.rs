//! The example campaigns that `init --example` writes.

use std::collections::BTreeSet;
use std::fs;

use crate::examples::{campaign, empty, files, parse_json, repository, run_ok};
use crate::support::{Folder, Results};

/// The names of the examples, which are the names of their folders.
fn list_examples() -> BTreeSet<String> {
    let entries = fs::read_dir(repository().join("crates/runs/src/draft/examples")).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// A folder with a new campaign `spring` from an example, and the paths of its files.
fn with_example(example: &str) -> (Folder, Vec<String>) {
    let folder = empty();
    let written = parse_json(&run_ok(&folder, &["init", "spring", "--example", example, "--json"]));
    assert_eq!(written["next"], "campaign check spring.yaml", "{example}");
    let paths = written["files"].as_array().expect("files").iter();
    let paths: Vec<String> = paths.map(|path| path.as_str().expect("a path").to_owned()).collect();
    (folder, paths)
}

#[test]
fn every_init_example_passes_check_and_rehearsal() {
    for example in list_examples() {
        let (folder, _) = with_example(&example);
        let check = parse_json(&run_ok(&folder, &["check", "spring.yaml", "--strict", "--json"]));
        let findings = check["findings"].as_array().expect("findings");
        assert!(findings.iter().all(|finding| finding["severity"] == "note"), "{example}: {check}");
        run_ok(&folder, &["preview", "spring.yaml"]);
        let summary = parse_json(&run_ok(&folder, &["run", "spring.yaml", "--json"]));
        let rows = fs::read_to_string(folder.path("spring.csv")).expect("a list").lines().count() - 1;
        assert!((12..=20).contains(&rows) && summary["rows"] == rows, "{example}: {summary}");
        let results = Results::read(&folder.path(summary["results"].as_str().expect("results")));
        let states = results.states();
        let accepted = states.iter().filter(|state| **state == "accepted").count();
        assert!(states.iter().all(|state| ["accepted", "skipped"].contains(state)), "{example}: {states:?}");
        assert!(accepted >= 4, "{example}: {states:?}");
    }
}

#[test]
fn suggested_commands_lead_from_an_example_to_its_rehearsal() {
    for example in list_examples() {
        let folder = empty();
        let mut command = format!("campaign init spring --example {example}");
        for _ in 0..4 {
            let words: Vec<&str> = command.split(' ').skip(1).collect();
            let output = run_ok(&folder, &words);
            command = output.lines().find_map(|line| line.strip_prefix("next: ")).unwrap_or_default().to_owned();
        }
        assert!(folder.path("results/spring.sandbox.csv").exists(), "{example}");
    }
}

#[test]
fn every_init_example_uses_its_texts_in_both_languages() {
    for example in list_examples() {
        let (folder, paths) = with_example(&example);
        let texts: Vec<&String> = paths.iter().filter(|path| path.contains(".uk.") || path.contains(".en.")).collect();
        let count_texts = |language: &str| texts.iter().filter(|path| path.contains(language)).count();
        assert!(count_texts(".uk.") > 0 && count_texts(".uk.") == count_texts(".en."), "{example}: {texts:?}");
        for path in &texts {
            let text = fs::read_to_string(folder.path(path)).expect("a text");
            let is_ukrainian = text.contains(|c: char| ('а'..='я').contains(&c));
            assert_eq!(is_ukrainian, path.contains(".uk."), "{example}: {path}");
            fs::write(folder.path(path), format!("text {path}")).expect("a text");
        }
        let shown = run_ok(&folder, &["preview", "spring.yaml", "--json"]);
        for path in &texts {
            assert!(shown.contains(&format!("text {path}")), "{example}: no row uses {path}");
        }
    }
}

#[test]
fn schedules_of_init_examples_are_valid() {
    let mut scheduled = BTreeSet::new();
    for example in list_examples() {
        let (folder, _) = with_example(&example);
        let text = fs::read_to_string(folder.path("spring.yaml")).expect("a campaign");
        if !text.contains("\n# schedule: ") {
            continue;
        }
        folder.replace("spring.yaml", "\n# schedule: ", "\nschedule: ");
        run_ok(&folder, &["check", "spring.yaml", "--strict"]);
        let next = run_ok(&folder, &["schedule", "next", "spring.yaml"]);
        assert!(next.contains("(Europe/Kyiv)"), "{example}: {next}");
        scheduled.insert(example);
    }
    assert_eq!(scheduled, ["birthday", "debt", "newsletter", "reminder"].map(str::to_owned).into());
}

#[test]
fn init_examples_use_only_example_numbers_and_domains() {
    let link = regex::Regex::new(r"https?://([A-Za-z0-9.-]+)").expect("a pattern");
    for example in list_examples() {
        let (folder, paths) = with_example(&example);
        for path in paths.iter().filter(|path| *path != "campaign.schema.json") {
            let text = fs::read_to_string(folder.path(path)).expect("a file");
            for host in link.captures_iter(&text).map(|found| found[1].to_owned()) {
                assert!(host.ends_with(".example"), "{example}: {path}: {host}");
            }
        }
        let list = fs::read_to_string(folder.path("spring.csv")).expect("a list");
        let mut rows = list.lines().skip(1);
        assert!(rows.all(|row| row.starts_with("+38050000") && row.find(',') == Some(13)), "{example}: {list}");
    }
}

#[test]
fn init_example_refuses_to_overwrite_files_and_writes_nothing() {
    for example in list_examples() {
        let (_, paths) = with_example(&example);
        for existing in paths.iter().filter(|path| *path != "campaign.schema.json") {
            let folder = empty();
            for name in ["templates", "scenarios"] {
                fs::create_dir(folder.path(name)).expect("a folder");
            }
            fs::write(folder.path(existing), "mine").expect("a file");
            let output = campaign(&folder, &["init", "spring", "--example", &example]).exits(2);
            assert!(output.stderr.contains(&format!("`{existing}` already exists")), "{}", output.details());
            assert_eq!(fs::read_to_string(folder.path(existing)).expect("a file"), "mine");
            let written: usize =
                ["", "templates", "scenarios"].iter().map(|name| files(&folder.path(name)).len()).sum();
            assert_eq!(written, 1, "{example}: {existing}");
        }
    }
}

#[test]
fn init_help_lists_every_example() {
    let help = run_ok(&empty(), &["init", "--help"]);
    let own = help.lines().take_while(|line| *line != "Global options:");
    let listed = own.filter_map(|line| line.trim_start().strip_prefix("- ")?.split_once(':'));
    let listed: Vec<(&str, &str)> = listed.collect();
    assert_eq!(listed.iter().map(|(name, _)| (*name).to_owned()).collect::<BTreeSet<_>>(), list_examples(), "{help}");
    assert!(listed.iter().all(|(_, summary)| !summary.trim().is_empty()), "{help}");
}

#[test]
fn unknown_init_example_is_refused_and_known_ones_are_listed() {
    let folder = empty();
    let output = campaign(&folder, &["init", "spring", "--example", "birthdays"]).exits(2);
    for example in list_examples() {
        assert!(output.stderr.contains(&example), "{}", output.details());
    }
    assert!(output.stderr.contains("similar value exists: 'birthday'"), "{}", output.details());
    assert!(files(&folder.path("")).is_empty());
}

#[test]
fn init_example_cannot_be_combined_with_a_list() {
    let folder = empty();
    folder.write("clients.csv", "phone\n+380500000001\n");
    for list in [&["--from", "clients.csv"][..], &["--sheet", "Clients"], &["--header-row", "2"]] {
        let output = campaign(&folder, &[&["init", "spring", "--example", "sale"], list].concat()).exits(2);
        assert!(output.stderr.contains("'--example <EXAMPLE>' cannot be used with"), "{}", output.details());
    }
    assert_eq!(files(&folder.path("")).len(), 1);
}

#[test]
fn suggestion_for_an_invalid_name_keeps_the_example() {
    let output = campaign(&empty(), &["init", "Spring Sale", "--example", "sale"]).exits(2);
    assert!(output.stderr.contains("campaign init spring-sale --example sale"), "{}", output.details());
}
