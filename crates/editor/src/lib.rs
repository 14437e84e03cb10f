//! Editor support for writing campaigns: findings, explanations, completions and definitions.
//!
//! An [`EditorSession`] holds the open documents and answers the requests of the Language Server Protocol. It reads
//! lists, templates and profiles through the loaders of the other crates, with the unsaved texts in place of the files.
//! The session writes nothing, and uses neither the ledger nor the network. `campaign lsp` reads and writes the
//! protocol's messages.
//!
//! Checking a list takes time. [`EditorSession::refresh`] therefore returns [`ListCheck`]s, which another thread runs,
//! and which stop once the text changes.

mod completion;
mod cursor;
mod drafts;
mod explanation;
mod protocol;
mod session;

use std::path::Path;

use campaign_core::finding::did_you_mean;
use campaign_manifest::KeyPlace;
use campaign_sandbox::top_of_scenario;

pub use drafts::{ListCheck, ListOutcome};
pub use protocol::ColumnUnit;
pub use session::EditorSession;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DocumentKind {
    /// A campaign file.
    Campaign,
    /// A file of gateway profiles.
    Gateways,
    /// A sandbox scenario.
    Scenario,
    /// A text file that campaigns use as a template.
    Template,
    /// Another kind of file, which gets no findings, explanations or completions.
    Other,
}

impl DocumentKind {
    /// Detects the kind of a document from its name and its keys. An empty YAML file counts as a campaign, because it
    /// might become one.
    fn detect(path: &Path, text: &str) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("txt") => return Self::Template,
            Some("yaml" | "yml") => {}
            _ => return Self::Other,
        }
        if path.file_stem().is_some_and(|stem| stem == "gateways") {
            return Self::Gateways;
        }
        let names: Vec<&str> = text.lines().filter_map(top_key).collect();
        if names.is_empty() {
            return Self::Campaign;
        }
        let count_known = |place: KeyPlace| {
            let keys: Vec<&str> = place.keys().iter().map(|key| key.name).collect();
            names.iter().filter(|name| did_you_mean(name, keys.iter().copied()).is_some()).count()
        };
        let (campaign, scenario) = (count_known(KeyPlace::top_of_campaign()), count_known(top_of_scenario()));
        // Most of the top-level keys must be known, at least with similar spelling.
        match names.len() {
            total if scenario > campaign && scenario * 2 > total => Self::Scenario,
            total if campaign * 2 > total => Self::Campaign,
            _ if text.lines().any(|line| line.trim_start().starts_with("base_url:")) => Self::Gateways,
            _ => Self::Other,
        }
    }

    /// The location of the top-level keys. `None` if this kind of document has no keys.
    fn top_place(self) -> Option<KeyPlace> {
        match self {
            Self::Campaign => Some(KeyPlace::top_of_campaign()),
            Self::Gateways => Some(KeyPlace::top_of_gateways()),
            Self::Scenario => Some(top_of_scenario()),
            Self::Template | Self::Other => None,
        }
    }
}

/// The top-level key at the beginning of a line. `None` if the line has no such key.
fn top_key(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once(':')?;
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '"' | '\''));
    (is_name && (rest.is_empty() || rest.starts_with([' ', '\r']))).then(|| name.trim_matches(['"', '\'', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_kind_is_inferred_from_file_name_and_keys() {
        for (name, text, expected) in [
            ("sale.yaml", "", DocumentKind::Campaign),
            ("sale.yaml", "# new\n\nname: x\n", DocumentKind::Campaign),
            ("sale.yml", "recipents: { file: a.csv }\nchanels: []\n", DocumentKind::Campaign),
            ("gateways.yaml", "name: x\n", DocumentKind::Gateways),
            ("staging.yaml", "main:\n  base_url: https://x.example\n", DocumentKind::Gateways),
            ("bad-day.yaml", "seed: 7\nspeed: 60\nchannels: {}\n", DocumentKind::Scenario),
            ("sms.txt", "name: x\n", DocumentKind::Template),
            ("ci.yaml", "name: CI\non: push\njobs:\n  a: {}\n", DocumentKind::Other),
            ("compose.yaml", "services:\n  db: {}\nnetworks: {}\n", DocumentKind::Other),
            ("main.rs", "", DocumentKind::Other),
        ] {
            assert_eq!(DocumentKind::detect(Path::new(name), text), expected, "{name}: {text}");
        }
    }
}
