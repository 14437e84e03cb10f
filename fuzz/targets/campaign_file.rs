//! Fuzz target for campaign files: campaign and libyaml find the same values in an accepted file.

use std::fs;

use jiff::civil::date;
use serde_yaml::Value;

use campaign_core::finding::Finding;
use campaign_manifest::document::{self, FileKind, Node};
use campaign_manifest::{Campaign, CampaignDay, CampaignPath, LoadedFile, PathScope, load_campaign_within};

/// A kind of file whose keys are not checked.
const ANY_FILE: FileKind = FileKind { file: "the file", owner: "the file", keys: &[] };

/// Checks how these bytes are read as a campaign file.
pub(super) fn check(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder_path = folder.path().canonicalize().expect("a path");
    let path = folder_path.join("sale.yaml");
    fs::write(&path, data).expect("a file");
    let load = || {
        let scope = PathScope::within(&folder_path).expect("a folder");
        load_campaign_within(&path, CampaignDay::Is(date(2026, 12, 1)), scope)
    };
    let loaded: LoadedFile<Campaign> = load();
    super::check_findings(&loaded.findings);
    let is_refused = loaded.findings.iter().any(Finding::is_error);
    assert_eq!(loaded.value.is_none(), is_refused, "no value without an error: {:?}", loaded.findings);
    let messages = |loaded: &LoadedFile<Campaign>| {
        loaded.findings.iter().map(|finding| finding.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(messages(&loaded), messages(&load()), "a second reading differs");
    if let (Some(campaign), Ok(text)) = (&loaded.value, std::str::from_utf8(data))
        && let Some(theirs) = super::read_with_libyaml(text)
    {
        let node: LoadedFile<Node> =
            document::load_file(&CampaignPath::anywhere(&path), ANY_FILE, |root, _| Some(root));
        let node = node.value.or(node.draft).expect("the tree of an accepted campaign");
        compare_values(&node, &theirs);
        let name = theirs.get("name").and_then(Value::as_str).or(campaign.brief.name.as_str().into());
        assert_eq!(name, Some(campaign.brief.name.as_str()), "the campaign has another name");
    }
}

/// Checks that both readers found the same lists, keys and texts.
fn compare_values(ours: &Node, theirs: &Value) {
    match theirs {
        Value::Sequence(theirs) => {
            let ours = ours.as_items().expect("both readers find a list");
            assert_eq!(ours.len(), theirs.len(), "the lists have different lengths");
            ours.iter().zip(theirs).for_each(|(ours, theirs)| compare_values(ours, theirs));
        }
        Value::Mapping(theirs) => {
            let ours = ours.as_entries().expect("both readers find a map");
            assert_eq!(ours.len(), theirs.len(), "the maps have different sizes");
            for (ours, (key, value)) in ours.iter().zip(theirs) {
                if let Value::String(key) = key {
                    assert_eq!(&ours.key, key, "the keys differ");
                }
                compare_values(&ours.value, value);
            }
        }
        Value::String(theirs) => {
            assert_eq!(&ours.as_scalar().expect("both readers find a text").text, theirs, "the texts differ");
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            assert!(ours.as_scalar().is_some(), "only libyaml finds a single value: {theirs:?}");
        }
        Value::Tagged(_) => panic!("a tag was accepted: {theirs:?}"),
    }
}
