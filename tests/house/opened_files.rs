//! Files that can open a path. Only `manifest/campaign_paths` resolves and opens the paths that a campaign names.

use std::collections::BTreeSet;
use std::fs;

use super::{code, files, is_test, names_word, source};

/// The modules that handle campaigns, or the paths that a campaign names.
const MODULES: [&str; 9] =
    ["manifest", "audience", "message", "check", "delivery", "report", "notify", "runs", "connector"];

/// Names without which code cannot open or inspect a file.
const WORDS: [&str; 15] = [
    "fs",
    "regular_file",
    "rustix",
    "exists",
    "try_exists",
    "is_file",
    "is_dir",
    "is_symlink",
    "metadata",
    "symlink_metadata",
    "canonicalize",
    "read_dir",
    "read_link",
    "from_path",
    "open_workbook",
];

/// Files of these modules that use such words, and what they open. None of it is a path that a campaign names.
const OPENING: [(&str, &[&str], &str); 25] = [
    ("audience/decoding/mod.rs", &["fs", "metadata"], "a temporary file without a name"),
    ("audience/workbook/mod.rs", &["fs"], "a temporary file without a name"),
    ("audience/workbook/xlsx.rs", &["fs"], "a temporary file without a name"),
    ("connector/campaigns/mod.rs", &["canonicalize"], "the folder of the operator"),
    ("manifest/campaign_paths/mod.rs", &["fs", "regular_file", "exists", "canonicalize"], "the one place"),
    ("manifest/campaign_paths/walk.rs", &["fs", "rustix"], "the one place"),
    (
        "manifest/campaign_paths/walk_by_path.rs",
        &["fs", "is_symlink", "canonicalize", "read_dir", "read_link"],
        "the one place, on other systems",
    ),
    ("manifest/document.rs", &["fs", "is_file", "read_dir"], "names beside a missing file, for suggestions"),
    ("manifest/profile/load.rs", &["exists"], "the file of profiles"),
    ("manifest/profile/secret.rs", &["fs", "regular_file", "metadata"], "a secret, by a path that was resolved"),
    ("manifest/text_folders.rs", &["fs", "regular_file"], "a text that a person names as an argument"),
    ("notify/command.rs", &["fs"], "a test"),
    ("report/effect/purchases.rs", &["regular_file"], "an argument of a person"),
    ("report/results.rs", &["fs", "metadata"], "results that are written or replaced, at a place that was checked"),
    (
        "report/target.rs",
        &["fs", "is_file", "is_dir", "is_symlink", "metadata", "symlink_metadata", "canonicalize"],
        "whether results may be written there, once the reach allows it",
    ),
    ("report/workbook.rs", &["fs"], "results that are written"),
    (
        "runs/erasure.rs",
        &["fs", "metadata"],
        "results of earlier runs, named by the ledger, and a file of the state folder",
    ),
    ("runs/fetch/command.rs", &["rustix"], "the process of a program"),
    ("runs/fetch/mod.rs", &["fs", "read_dir"], "the state folder"),
    (
        "runs/find.rs",
        &["fs", "exists", "is_file", "canonicalize", "read_dir"],
        "an argument of a person, and the campaign file of a run, named by the ledger",
    ),
    ("runs/ledger_health.rs", &["fs", "exists"], "results that a person has put aside"),
    ("runs/list.rs", &["regular_file"], "a list that was fetched, in the state folder"),
    ("runs/opt_outs.rs", &["regular_file"], "an argument of a person"),
    ("runs/profiles.rs", &["exists"], "the file of profiles"),
    ("runs/resolve.rs", &["regular_file"], "an argument of a person"),
];

/// Files of `manifest` that store a plain path, and which. A path of a campaign is a `CampaignPath`.
const PLAIN_PATHS: [(&str, &str); 8] = [
    ("manifest/campaign.rs", "the campaign file itself"),
    ("manifest/campaign_paths/mod.rs", "the one place"),
    ("manifest/campaign_paths/walk.rs", "the one place"),
    ("manifest/campaign_paths/walk_by_path.rs", "the one place"),
    ("manifest/profile/gateways.rs", "the file of the profiles"),
    ("manifest/profile/secret.rs", "a secret, by a path that was resolved"),
    ("manifest/recipients.rs", "the folder in which a program of a person works"),
    ("manifest/text_folders.rs", "a text as it is shown"),
];

/// The code of each file of some modules, by its path in `src`, without tests.
fn code_of(modules: &[&str]) -> Vec<(String, String)> {
    let files = modules.iter().flat_map(|module| files(&source().join(module))).filter(|file| !is_test(file));
    let read = files.map(|file| {
        let within = file.strip_prefix(source()).expect("in src").to_string_lossy().into_owned();
        (within, code(&fs::read_to_string(&file).expect("a file")))
    });
    read.collect()
}

fn named<'w>(code: &str, words: &[&'w str]) -> BTreeSet<&'w str> {
    let lines = || code.lines().map(|line| line.split("//").next().unwrap_or_default());
    words.iter().filter(|word| lines().any(|line| names_word(line, word))).copied().collect()
}

#[test]
fn only_one_module_opens_paths_that_a_campaign_names() {
    let mut seen = BTreeSet::new();
    for (file, code) in code_of(&MODULES) {
        let words = named(&code, &WORDS);
        let listed = OPENING.iter().find(|(name, _, _)| *name == file);
        let known: BTreeSet<&str> = listed.iter().flat_map(|(_, words, _)| words.iter().copied()).collect();
        let advice = "open paths of a campaign with `CampaignPath`, or add the file to the list";
        assert_eq!(words, known, "`{file}` uses other names than `OPENING` lists: {advice}");
        seen.extend(listed.map(|(name, _, _)| *name));
    }
    assert_eq!(seen.len(), OPENING.len(), "a listed file does not exist");
}

#[test]
fn campaign_keys_store_no_plain_path() {
    let found: BTreeSet<String> = code_of(&["manifest"])
        .into_iter()
        .filter(|(_, code)| names_word(code, "PathBuf"))
        .map(|(file, _)| file)
        .collect();
    let listed: BTreeSet<String> = PLAIN_PATHS.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(found, listed, "resolve the path of a key with `CampaignPaths`, and store it as a `CampaignPath`");
}

#[test]
fn connector_loads_campaigns_within_its_folder() {
    for (file, code) in code_of(&["connector"]) {
        for word in ["load_campaign", "Anywhere", "anywhere"] {
            assert!(!names_word(&code, word), "{file} uses `{word}`");
        }
        assert!(!code.contains("Inputs::load("), "{file} loads a campaign with any reach");
    }
}
