//! Source files that are allowed to open paths. Only `manifest/campaign_paths` resolves and opens the paths that a
//! campaign names.

use std::collections::BTreeSet;
use std::fs;

use super::{code, contains_word, files, is_test, relative_path, repository};

/// The folders that handle campaigns, or the paths that a campaign names.
const FOLDERS: [&str; 6] = [
    "crates/manifest/src",
    "crates/content/src",
    "crates/engine/src",
    "crates/runs/src",
    "crates/editor/src",
    "crates/server/src/connector",
];

/// Code that writes the first files of a campaign, at paths that a person names.
const DRAFTS: &str = "crates/runs/src/draft";

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

/// Files in `FOLDERS` that use any of `WORDS`, and what they open. Only `campaign_paths` opens paths that a campaign
/// names.
const OPENING_FILES: [(&str, &[&str], &str); 25] = [
    ("crates/content/src/audience/decoding/mod.rs", &["fs", "metadata"], "a temporary file without a name"),
    ("crates/content/src/audience/workbook/mod.rs", &["fs"], "a temporary file without a name"),
    ("crates/content/src/audience/workbook/xlsx.rs", &["fs"], "a temporary file without a name"),
    ("crates/server/src/connector/campaigns/mod.rs", &["canonicalize"], "the folder of the operator"),
    (
        "crates/manifest/src/campaign_paths/mod.rs",
        &["fs", "regular_file", "exists", "metadata", "canonicalize"],
        "the module that opens campaign paths",
    ),
    (
        "crates/manifest/src/campaign_paths/walk.rs",
        &["fs", "rustix", "is_symlink", "canonicalize", "read_dir", "read_link"],
        "the module that opens campaign paths, also on systems other than Unix",
    ),
    ("crates/manifest/src/document.rs", &["is_file"], "a name beside a missing file, for suggestions"),
    (
        "crates/manifest/src/recipients.rs",
        &["fs", "is_file", "read_dir"],
        "names beside a missing list, for suggestions",
    ),
    ("crates/manifest/src/profile/load.rs", &["exists"], "the file of profiles"),
    (
        "crates/manifest/src/profile/secret.rs",
        &["fs", "regular_file", "metadata"],
        "a secret, by a path that was resolved",
    ),
    ("crates/manifest/src/text_folders.rs", &["regular_file"], "a text that a person names as an argument"),
    (
        "crates/engine/src/report/dry_run_results.rs",
        &["fs", "is_file", "read_dir", "canonicalize"],
        "results of dry runs, in folders of results that the ledger names",
    ),
    ("crates/engine/src/report/effect.rs", &["regular_file"], "an argument of a person"),
    (
        "crates/engine/src/report/results_file.rs",
        &["fs", "metadata", "symlink_metadata"],
        "results that are written or replaced, at a path that was checked",
    ),
    (
        "crates/engine/src/report/target.rs",
        &["fs", "is_file", "is_dir", "is_symlink", "metadata", "symlink_metadata", "canonicalize"],
        "whether results may be written there, once the reach allows it",
    ),
    ("crates/engine/src/report/workbook.rs", &["fs"], "results that are written"),
    (
        "crates/runs/src/erasure.rs",
        &["fs", "metadata"],
        "results of earlier runs, named by the ledger, and a file of the state folder",
    ),
    ("crates/runs/src/fetch/command.rs", &["rustix"], "the process of a program"),
    ("crates/runs/src/fetch/mod.rs", &["fs", "read_dir"], "the state folder"),
    (
        "crates/runs/src/find.rs",
        &["fs", "exists", "is_file", "canonicalize", "read_dir"],
        "an argument of a person, and the campaign file of a run, named by the ledger",
    ),
    ("crates/runs/src/ledger_health.rs", &["fs", "exists"], "results that a person has put aside"),
    ("crates/runs/src/list.rs", &["regular_file"], "a list that was fetched, in the state folder"),
    ("crates/runs/src/opt_outs.rs", &["regular_file"], "an argument of a person"),
    ("crates/runs/src/profiles.rs", &["exists"], "the file of profiles"),
    ("crates/runs/src/resolve.rs", &["regular_file"], "an argument of a person"),
];

/// Files of `manifest` that store a plain path, and which path. A path of a campaign is a `CampaignPath`.
const PLAIN_PATHS: [(&str, &str); 7] = [
    ("crates/manifest/src/campaign.rs", "the campaign file itself"),
    ("crates/manifest/src/campaign_paths/mod.rs", "the module that opens campaign paths"),
    ("crates/manifest/src/campaign_paths/walk.rs", "the module that opens campaign paths"),
    ("crates/manifest/src/profile/gateways.rs", "the file of the profiles"),
    ("crates/manifest/src/profile/secret.rs", "a secret, by a path that was resolved"),
    ("crates/manifest/src/recipients.rs", "the folder in which a program of a person works"),
    ("crates/manifest/src/text_folders.rs", "a text as it is shown"),
];

/// The path and the code of each file in these folders, without tests and drafts.
fn read_code(folders: &[&str]) -> Vec<(String, String)> {
    let files = folders
        .iter()
        .flat_map(|folder| files(&repository().join(folder)))
        .filter(|file| !is_test(file) && !file.starts_with(repository().join(DRAFTS)));
    let code = files.map(|file| (relative_path(&file), code(&fs::read_to_string(&file).expect("a file"))));
    code.collect()
}

fn find_words<'w>(code: &str, words: &[&'w str]) -> BTreeSet<&'w str> {
    let lines = || code.lines().map(|line| line.split("//").next().unwrap_or_default());
    words.iter().filter(|word| lines().any(|line| contains_word(line, word))).copied().collect()
}

#[test]
fn only_one_module_opens_paths_that_a_campaign_names() {
    let mut found_files = BTreeSet::new();
    for (file, code) in read_code(&FOLDERS) {
        let words = find_words(&code, &WORDS);
        let listed = OPENING_FILES.iter().find(|(name, _, _)| *name == file);
        let known: BTreeSet<&str> = listed.iter().flat_map(|(_, words, _)| words.iter().copied()).collect();
        let advice = "open paths of a campaign with `CampaignPath`, or add the file to the list";
        assert_eq!(words, known, "`{file}` uses other names than `OPENING_FILES` lists: {advice}");
        found_files.extend(listed.map(|(name, _, _)| *name));
    }
    assert_eq!(found_files.len(), OPENING_FILES.len(), "a listed file does not exist");
}

#[test]
fn campaign_keys_store_no_plain_path() {
    let found: BTreeSet<String> = read_code(&["crates/manifest/src"])
        .into_iter()
        .filter(|(_, code)| contains_word(code, "PathBuf"))
        .map(|(file, _)| file)
        .collect();
    let listed: BTreeSet<String> = PLAIN_PATHS.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(found, listed, "resolve the path of a key with `CampaignPaths`, and store it as a `CampaignPath`");
}

#[test]
fn connector_loads_campaigns_only_from_its_folder() {
    for (file, code) in read_code(&["crates/server/src/connector"]) {
        for word in ["load_campaign", "Anywhere", "anywhere"] {
            assert!(!contains_word(&code, word), "{file} uses `{word}`");
        }
        assert!(!code.contains("Inputs::load("), "{file} loads a campaign with any reach");
    }
}
