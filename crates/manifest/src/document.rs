//! Reading YAML files against a table of keys, with all problems as findings.
//!
//! This module reads campaign files and all other files that people write. It reports all problems at once, each with
//! its location and the probable correction.

use std::io::{ErrorKind, Read as _};
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use super::keys::{CAMPAIGN, check_root, find_key, find_meant_key, is_known_key, is_text_key};
use super::profile::conceal_addresses;
use super::value::parse_cap;
use super::yaml::{KnownKeys, MapEntry, Scalar, find_slips, scalar_to_json};
use super::{CampaignPath, yaml};
use campaign_core::domain::{FrequencyCap, choose_plural, format_count};
use campaign_core::finding::{Finding, Severity, SourceLocation, SourceText, rules};

pub use super::keys::{KeySpec, ValueShape, build_schema};
pub use super::value::Seconds;
pub use super::yaml::Node;

/// A kind of file: its name in findings and its keys.
#[derive(Clone, Copy, Debug)]
pub struct FileKind {
    /// The name of the file in findings: `the campaign file`.
    pub file: &'static str,
    /// The subject of the file, for messages, such as `the campaign`.
    pub owner: &'static str,
    /// The keys at the top level.
    pub keys: &'static [KeySpec],
}

/// Reads a file, checks it against the keys of its kind, and converts it to a value with `resolve`.
pub fn load_file<T>(
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
    // After a typo, the rest of the file does not mean what its author intended.
    let has_slips = report.replace_slip_findings(value.is_some());
    LoadedFile::new(value.filter(|_| !has_slips), conceal_secrets(&source, report.into_findings()))
}

/// Hides possible secrets in the source text that findings quote.
fn conceal_secrets(source: &SourceText, mut findings: Vec<Finding>) -> Vec<Finding> {
    let concealed = SourceText::new(source.path(), conceal_addresses(source.text()));
    for place in findings.iter_mut().filter_map(|finding| finding.place.as_mut()) {
        if place.source.path() == source.path() {
            place.source = concealed.clone();
        }
    }
    findings
}

/// The maximum number of findings about one file.
const MAX_FINDINGS: usize = 100;

/// The result of reading a file: a value and all findings.
#[derive(Clone, Debug)]
pub struct LoadedFile<T> {
    /// The value; `None` if a finding is an error.
    pub value: Option<T>,
    /// The readable parts of a file with errors, which serve only to find more problems.
    pub draft: Option<T>,
    /// All findings.
    pub findings: Vec<Finding>,
}

impl<T> LoadedFile<T> {
    /// The result of loading a file. If any finding is an error, the value is kept only as a draft.
    pub fn new(value: Option<T>, findings: Vec<Finding>) -> Self {
        let has_errors = findings.iter().any(Finding::is_error);
        let (value, draft) = if has_errors { (None, value) } else { (value, None) };
        Self { value, draft, findings }
    }
}

/// Collects the findings about one file.
pub struct FindingCollector {
    /// The file as findings show it.
    pub source: SourceText,
    /// The findings so far.
    pub findings: Vec<Finding>,
    /// The keys of the whole file, to recognize keys in the wrong location.
    pub root: &'static [KeySpec],
}

impl FindingCollector {
    /// An empty collector for campaign and gateway files.
    pub fn new(source: &SourceText) -> Self {
        Self::with_root(source, CAMPAIGN)
    }

    /// An empty collector for a file with these keys.
    pub fn with_root(source: &SourceText, root: &'static [KeySpec]) -> Self {
        Self { source: source.clone(), findings: Vec::new(), root }
    }

    /// Calls `read` with the file and the names of its keys.
    pub(crate) fn with_keys<T>(&self, read: impl FnOnce(&SourceText, KnownKeys<'_>) -> T) -> T {
        let (is_key, is_text) = (|name: &str| is_known_key(name, self.root), |name: &str| is_text_key(name, self.root));
        read(&self.source, KnownKeys { is_key: &is_key, is_text: &is_text })
    }

    /// Replaces findings caused by typing mistakes with findings about the mistakes. Returns whether it found any
    /// mistakes. A file without errors is not searched.
    ///
    /// A mistake changes what its top-level key means. If the file could be parsed (`is_parsed`), findings about other
    /// top-level keys are kept.
    pub(crate) fn replace_slip_findings(&mut self, is_parsed: bool) -> bool {
        if !self.findings.iter().any(Finding::is_error) {
            return false;
        }
        let slips = find_slips(self.source.text(), |name| is_known_key(name, self.root));
        if slips.is_empty() {
            return false;
        }
        let blocks: Vec<_> = slips.iter().map(|(span, _)| self.top_level_span(span.start)).collect();
        self.findings.retain(|finding| {
            let Some(place) = &finding.place else { return false };
            // An empty span reports a missing top-level key, which might be the key with the mistake.
            let is_missing_key = place.span.is_empty();
            is_parsed && !is_missing_key && !blocks.iter().any(|block| block.contains(&place.span.start))
        });
        slips.into_iter().for_each(|(span, finding)| self.add(&span, finding));
        true
    }

    /// The span of the top-level key that contains the byte `at`, with all lines of its value.
    fn top_level_span(&self, at: usize) -> Range<usize> {
        let text = self.source.text();
        let (mut line_start, mut key_start) = (0, 0);
        for line in text.split_inclusive('\n') {
            if line.starts_with(|character: char| character.is_alphanumeric() || matches!(character, '"' | '\'')) {
                if line_start > at {
                    return key_start..line_start;
                }
                key_start = line_start;
            }
            line_start += line.len();
        }
        // The range also contains the position after the last byte.
        key_start..text.len() + 1
    }

    /// Adds a finding about these bytes of the file.
    pub fn add(&mut self, span: &Range<usize>, finding: Finding) {
        self.findings.push(finding.at(SourceLocation::new(&self.source, span.clone())));
    }

    /// The findings in the order of the file, without duplicates. If there are many, the last finding states the
    /// number of hidden findings.
    pub(crate) fn into_findings(mut self) -> Vec<Finding> {
        let start = |finding: &Finding| finding.place.as_ref().map(|place| place.span.start);
        self.findings.sort_by_key(start);
        self.findings.dedup();
        let rest = self.findings.split_off(self.findings.len().min(MAX_FINDINGS));
        if !rest.is_empty() {
            let worst = rest.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Warning);
            let more = rest.len() as u64;
            let message =
                format!("{} {} not shown", format_count(more, "more problem"), choose_plural(more, "is", "are"));
            let finding = Finding { severity: worst, ..Finding::new(&rules::MORE_FINDINGS, message) };
            self.findings.push(finding.help("fix the problems above, then check again"));
        }
        self.findings
    }

    /// The text of these bytes of the file.
    pub(crate) fn source_slice(&self, span: &Range<usize>) -> &str {
        self.source.text().get(span.clone()).unwrap_or("")
    }
}

/// A map with the table of its keys; a missing map has all defaults.
///
/// A section reads only values that the structure check accepted and ignores all others.
#[derive(Clone, Copy)]
pub struct ConfigSection<'n> {
    node: Option<&'n Node>,
    keys: &'static [KeySpec],
}

impl<'n> ConfigSection<'n> {
    /// A section with these keys, whose map can be missing.
    pub fn new(node: Option<&'n Node>, keys: &'static [KeySpec]) -> Self {
        Self { node, keys }
    }

    /// A section with the same keys for another map.
    pub(crate) fn with_node(self, node: Option<&'n Node>) -> Self {
        Self { node, ..self }
    }

    /// The entry of the key in the file.
    pub fn entry(&self, key: &str) -> Option<&'n MapEntry> {
        self.node?.find_entry(key)
    }

    /// The value of a key, if there is one.
    pub fn find_value(&self, key: &str) -> Option<&'n Node> {
        self.entry(key).map(|entry| &entry.value).filter(|value| !value.is_null())
    }

    /// Whether the map contains a misspelling of this key, which is reported as an unknown key.
    pub(crate) fn has_misspelling(&self, key: &str) -> bool {
        let entries = self.node.and_then(Node::as_entries).unwrap_or_default();
        let is_unknown = |entry: &&MapEntry| find_key(self.keys, &entry.key).is_none();
        entries.iter().filter(is_unknown).any(|entry| find_meant_key(&entry.key, self.keys) == Some(key))
    }

    /// The entries whose keys are unknown.
    pub(crate) fn unknown_entries(&self) -> impl Iterator<Item = &'n MapEntry> {
        let (entries, keys) = (self.node.and_then(Node::as_entries).unwrap_or_default(), self.keys);
        entries.iter().filter(move |entry| find_key(keys, &entry.key).is_none())
    }

    /// Whether the key has a value.
    pub fn has_value(&self, key: &str) -> bool {
        self.find_value(key).is_some()
    }

    /// The text that the file has for a key, ignoring the default, and the location of the text.
    pub fn typed_text(&self, key: &str) -> Option<(&'n str, &'n Range<usize>)> {
        let node = self.find_value(key)?;
        Some((node.as_scalar()?.text.trim(), &node.span))
    }

    /// The text of a key, or the key's default.
    pub fn text(&self, key: &str) -> Option<&'n str> {
        match self.typed_text(key) {
            Some((text, _)) => Some(text),
            None => find_key(self.keys, key)?.default,
        }
    }

    /// The frequency cap under a key.
    pub(crate) fn parse_cap(&self, key: &str) -> Option<FrequencyCap> {
        parse_cap(self.typed_text(key)?.0).ok()
    }

    /// The parsed value of a key, or the parsed default.
    pub fn parse_value<T: FromStr>(&self, key: &str) -> Option<T> {
        match self.find_value(key) {
            Some(node) => parse_scalar(node.as_scalar()?),
            None => self.text(key)?.parse().ok(),
        }
    }

    /// The texts of the list under a key, or of the default list.
    pub fn list_items(&self, key: &str) -> Vec<&'n str> {
        let typed = self.find_value(key).and_then(Node::as_items);
        match typed {
            Some(items) => items.iter().filter_map(|item| Some(item.as_scalar()?.text.trim())).collect(),
            None => find_key(self.keys, key).and_then(|key| key.default).map(split_default_list).unwrap_or_default(),
        }
    }

    /// The parsed items of the list under a key, or of the default list.
    pub(crate) fn parse_items<T: FromStr>(&self, key: &str) -> Vec<T> {
        match self.find_value(key).and_then(Node::as_items) {
            Some(items) => items.iter().filter_map(|item| parse_scalar(item.as_scalar()?)).collect(),
            None => self.list_items(key).into_iter().filter_map(|text| text.parse().ok()).collect(),
        }
    }

    /// The map under a key.
    pub fn subsection(&self, key: &str) -> ConfigSection<'n> {
        let keys: &'static [KeySpec] = match find_key(self.keys, key).map(|key| key.shape) {
            Some(ValueShape::Map(keys)) => keys,
            _ => &[],
        };
        ConfigSection { node: self.find_value(key), keys }
    }
}

/// Parses a value as it was typed, or else as YAML's core schema reads it (`True`, `0x1F`).
fn parse_scalar<T: FromStr>(scalar: &Scalar) -> Option<T> {
    scalar.text.trim().parse().ok().or_else(|| scalar_to_json(scalar).to_string().parse().ok())
}

/// The items of a default list: plain words between brackets, as in `[Not enough money, No route]`.
fn split_default_list(list: &'static str) -> Vec<&'static str> {
    let inner = list.trim_start_matches('[').trim_end_matches(']');
    inner.split(',').map(str::trim).filter(|word| !word.is_empty()).collect()
}

/// The maximum size of a campaign file, of gateways.yaml and of other configuration files, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Reads a UTF-8 file of at most 1 MiB. Findings call the file `noun`.
pub(super) fn read_source(file: &CampaignPath, noun: &str) -> Result<SourceText, Box<Finding>> {
    let path = file.path();
    let name = path.display();
    let explain_error = |error: std::io::Error| {
        Box::new(match error.kind() {
            ErrorKind::NotFound => Finding::new(&rules::FILE_MISSING, format!("{noun} `{name}` does not exist"))
                .help(suggest_extension(path).unwrap_or_else(|| "check the name and the current folder".to_owned())),
            _ => Finding::new(&rules::FILE_UNREADABLE, format!("cannot read {noun} `{name}`: {error}"))
                .help("check the file and its permissions"),
        })
    };
    let mut bytes = Vec::new();
    file.open_text().and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)).map_err(explain_error)?;
    if bytes.len() as u64 > MAX_BYTES {
        let finding = Finding::new(&rules::FILE_TOO_LARGE, format!("{noun} `{name}` is larger than 1 MiB"));
        return Err(Box::new(finding.help("check that this is the right file; recipients belong in a CSV file")));
    }
    decode_source(path, bytes)
}

/// Suggests the existing YAML file that a name without extension probably means.
fn suggest_extension(path: &Path) -> Option<String> {
    let candidates = ["yaml", "yml"].map(|ending| path.with_added_extension(ending));
    candidates.iter().find(|path| path.is_file()).map(|path| format!("did you mean `{}`?", path.display()))
}

fn decode_source(path: &Path, bytes: Vec<u8>) -> Result<SourceText, Box<Finding>> {
    let error = match String::from_utf8(bytes) {
        Ok(text) => return Ok(SourceText::new(path, text)),
        Err(error) => error,
    };
    let at = error.utf8_error().valid_up_to();
    let text = String::from_utf8_lossy(error.as_bytes());
    let source = SourceText::new(path, text);
    let finding = Finding::new(&rules::FILE_ENCODING, "the file is not encoded in UTF-8")
        .help("save the file as UTF-8; its current encoding is probably Windows-1251 or UTF-16");
    Err(Box::new(finding.at(SourceLocation::new(&source, at..at + '\u{fffd}'.len_utf8()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::PROFILE;

    #[test]
    fn missing_list_key_has_its_default_items() {
        let empty_section = ConfigSection::new(None, PROFILE);
        assert_eq!(empty_section.list_items("fatal_errors"), ["Not enough money"]);
        assert_eq!(empty_section.list_items("sender_verified"), ["Checked"]);
        assert!(empty_section.list_items("trust_status").is_empty());
        assert_eq!(split_default_list("[No route, Not enough money]"), ["No route", "Not enough money"]);
        assert!(split_default_list("[]").is_empty());
    }
}

#[cfg(test)]
mod file_tests {
    use std::fs;

    use super::*;

    fn expect_read_error(bytes: &[u8]) -> Finding {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        fs::write(&path, bytes).unwrap();
        *read_source(&CampaignPath::anywhere(path), "the campaign file").unwrap_err()
    }

    #[test]
    fn unreadable_campaign_file_is_rejected() {
        let large = vec![b'#'; 1024 * 1024 + 1];
        assert_eq!(expect_read_error(&large).rule, "file-too-large");
        let encoding = expect_read_error(b"name: x\nvars: { a: \xcf\xf0\xe8 }\n");
        assert_eq!(encoding.rule, "file-encoding");
        let place = encoding.place.unwrap();
        assert_eq!((place.line_number(), place.column_number()), (2, 12));
        let missing = read_source(&CampaignPath::anywhere("no/such.yaml"), "the campaign file").unwrap_err();
        assert_eq!(missing.message, "the campaign file `no/such.yaml` does not exist");
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("demo.v2.yaml"), "").unwrap();
        let without_extension =
            read_source(&CampaignPath::anywhere(folder.path().join("demo.v2")), "the campaign file").unwrap_err();
        assert!(without_extension.help.is_some_and(|help| help.ends_with("/demo.v2.yaml`?")));
        assert_eq!(read_source(&CampaignPath::anywhere("/"), "the campaign file").unwrap_err().rule, "file-unreadable");
    }
}
