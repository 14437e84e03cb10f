//! Reading a YAML file against the table of its keys, whatever it is about.
//!
//! A campaign is read by it, and so is every other file that people write: all its problems are
//! told at once, each with its place and what was probably meant.

use std::path::Path;

use super::CampaignPath;
use super::conceal::conceal_addresses;
use super::file::read_source;
use super::keys::check_root;
use super::yaml;
use crate::finding::{Finding, SourceText};

pub(crate) use super::keys::{KeySpec, ValueShape, build_schema};
pub(crate) use super::report::{FindingCollector, LoadedFile};
pub(crate) use super::section::ConfigSection;
pub(crate) use super::value::Seconds;
pub(crate) use super::yaml::Node;

/// What a kind of file is called in findings, and which keys it may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileKind {
    /// The file: `the campaign file`.
    pub(crate) file: &'static str,
    /// What it describes: `the campaign`.
    pub(crate) owner: &'static str,
    /// The keys of its top.
    pub(crate) keys: &'static [KeySpec],
}

/// Reads a file of that kind, checks its structure and makes a value of it.
pub(crate) fn load_file<T>(
    path: &Path,
    kind: FileKind,
    resolve: impl FnOnce(Node, &mut FindingCollector) -> Option<T>,
) -> LoadedFile<T> {
    load_path(&CampaignPath::anywhere(path), kind, resolve)
}

/// The same of a file with a reach.
pub(super) fn load_path<T>(
    path: &CampaignPath,
    kind: FileKind,
    resolve: impl FnOnce(Node, &mut FindingCollector) -> Option<T>,
) -> LoadedFile<T> {
    let source = match read_source(path, kind.file) {
        Ok(source) => source,
        Err(finding) => return LoadedFile::new(None, vec![*finding]),
    };
    let mut report = FindingCollector::with_root(&source, kind.keys);
    let value = yaml::read_tree(&mut report).and_then(|root| {
        check_root(&root, kind.owner, &mut report);
        resolve(root, &mut report)
    });
    // After a slip, the rest of the file does not have the meaning that its author intended.
    let slipped = report.replace_slip_findings(value.is_some());
    LoadedFile::new(value.filter(|_| !slipped), conceal_secrets(&source, report.into_findings()))
}

/// The same findings, showing nothing of the file that should have been a secret.
fn conceal_secrets(source: &SourceText, mut findings: Vec<Finding>) -> Vec<Finding> {
    let shown = SourceText::new(source.path(), conceal_addresses(source.text()));
    for place in findings.iter_mut().filter_map(|finding| finding.place.as_mut()) {
        if place.source.path() == source.path() {
            place.source = shown.clone();
        }
    }
    findings
}
