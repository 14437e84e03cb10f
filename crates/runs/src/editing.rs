//! Draft campaigns in an editor: their findings, and the columns of their lists.
//!
//! A draft uses the unsaved texts of the editor. It never uses the ledger or the network, and it can never be sent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;

use super::check_campaign::check_inputs;
use super::inputs::LoadedInputs;
use super::{Error, Inputs, Profiles};
use campaign_content::audience::{Chunk, NamedColumns, RecipientReader, clean_cell};
use campaign_core::domain::ListFormat;
use campaign_core::finding::{Finding, SourceLocation, SourceText, mask_numbers, rules};
use campaign_engine::check::{RunStart, SurveyExclusions, reader_settings};
use campaign_manifest::{Campaign, CampaignDay, CampaignPath, FileState, PathScope, UnsavedTexts};

/// The maximum number of sample values of a column.
const MAX_SAMPLES: usize = 3;
/// The maximum number of characters of a sample value.
const SAMPLE_CHARACTERS: usize = 40;
/// The maximum number of templates that are searched for includes.
const MAX_INCLUDES: usize = 200;

/// A campaign that is being written, with all of its readable parts.
#[derive(Clone, Debug)]
pub struct DraftCampaign {
    inputs: Option<Inputs>,
    /// Whether the file and its profile have no errors, so that the whole list can be checked.
    is_valid: bool,
    findings: Vec<Finding>,
    /// The files that the texts of the campaign include by a literal name, directly or indirectly.
    included: BTreeSet<PathBuf>,
    unsaved: UnsavedTexts,
    now: Timestamp,
}

/// The state that the findings about a list depend on: the texts, and the state of the list's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListKey {
    list: Option<(PathBuf, Option<FileState>)>,
    texts: Vec<String>,
    unsaved: UnsavedTexts,
}

/// The state that the columns of a list depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnsKey {
    list: PathBuf,
    state: Option<FileState>,
    names: Vec<(String, String)>,
    format: ListFormat,
}

/// A column of a list, with some of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledColumn {
    /// The name in templates.
    pub name: String,
    /// The header in the list.
    pub header: String,
    /// Up to three different values, with masked phone numbers.
    pub samples: Vec<String>,
}

impl DraftCampaign {
    /// Loads a campaign file with the profiles, and finds all problems that do not depend on its list.
    pub fn load(file: &Path, profiles: &Profiles, now: Timestamp) -> Self {
        let (unsaved, day) = (profiles.unsaved.clone(), CampaignDay::Of(now));
        let loaded = Inputs::load_parts(file, None, profiles, day, PathScope::Editor(unsaved.clone()));
        let LoadedInputs { mut inputs, is_complete, .. } = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                let findings = remove_irrelevant_findings(into_findings(error));
                return Self { inputs: None, is_valid: false, findings, included: BTreeSet::new(), unsaved, now };
            }
        };
        let texts = find_included_texts(&inputs.campaign);
        let included = texts.values().map(|text| text.path().to_owned()).collect();
        inputs.campaign.places.set_included_texts(texts);
        let is_valid = is_complete && !inputs.warnings.iter().any(Finding::is_error);
        let mut findings = match is_valid {
            true => check_inputs(&inputs, None, RunStart::for_campaign(&inputs.campaign, now)),
            false => [inputs.warnings.clone(), inputs.check_until(day).into_iter().collect()].concat(),
        };
        findings.extend(inputs.find_other_problems(false));
        Self { inputs: Some(inputs), is_valid, findings: remove_irrelevant_findings(findings), included, unsaved, now }
    }

    /// The problems that do not depend on the list.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Checks the list and returns all problems, including problems in rows. `None` if `stop` was set in the meantime.
    pub fn check_list(&self, stop: &Arc<AtomicBool>) -> Option<Vec<Finding>> {
        let Some(inputs) = &self.inputs else { return Some(self.findings.clone()) };
        let inputs = inputs.with_stop_flag(Arc::clone(stop));
        let mut findings = Vec::new();
        if self.is_valid {
            match inputs.run_survey(&SurveyExclusions::default(), None) {
                Ok(list) => {
                    let start = RunStart::for_campaign(&inputs.campaign, self.now);
                    findings.extend(check_inputs(&inputs, Some(&list), start));
                }
                Err(error) => {
                    findings.clone_from(&self.findings);
                    findings.extend(into_findings(error));
                }
            }
            if !stop.load(Ordering::Relaxed) {
                findings.extend(inputs.run_tests().into_iter().flat_map(|test| test.findings));
            }
        } else {
            findings.clone_from(&self.findings);
            findings.extend(inputs.find_other_problems(true));
        }
        (!stop.load(Ordering::Relaxed)).then(|| remove_irrelevant_findings(findings))
    }

    /// Returns the state that the findings of [`Self::check_list`] depend on, for detecting changes.
    pub fn list_key(&self) -> ListKey {
        let list = self.list_file().map(|list| (list.path().to_owned(), list.read_state()));
        let texts = self.campaign().map(|campaign| {
            let file_texts = campaign.places.file_texts().map(|(_, text)| text.to_owned());
            std::iter::once(campaign.places.source().to_owned()).chain(file_texts).collect()
        });
        ListKey { list, texts: texts.unwrap_or_default(), unsaved: self.unsaved.clone() }
    }

    /// Returns the state that the columns of the list depend on, for detecting changes. `None` if the campaign names no
    /// list file.
    pub fn columns_key(&self) -> Option<ColumnsKey> {
        let (campaign, list) = (self.campaign()?, self.list_file()?);
        let (names, format) = (campaign.brief.columns.clone(), campaign.format.clone());
        Some(ColumnsKey { list: list.path().to_owned(), state: list.read_state(), names, format })
    }

    /// The columns of the list, with sample values. Empty if the list cannot be read or was not fetched.
    pub fn sample_columns(&self) -> Vec<SampledColumn> {
        let Some(inputs) = &self.inputs else { return Vec::new() };
        let (settings, place) = (reader_settings(&inputs.campaign.brief), inputs.list.place());
        let Ok(list) = inputs.decode_list() else { return Vec::new() };
        match RecipientReader::open_with_columns(list, place, &settings) {
            Ok(mut reader) => {
                let (headers, names) = (reader.header().headers().to_vec(), reader.header().names().to_vec());
                let mut chunk = Chunk::new();
                // The rows before a broken row are samples too.
                let _ = reader.read_chunk(&mut chunk);
                let samples = (0..headers.len()).map(|column| sample_cells(&chunk, column));
                let columns = names.into_iter().zip(headers).zip(samples);
                columns.map(|((name, header), samples)| SampledColumn { name, header, samples }).collect()
            }
            Err(rejected) => {
                let NamedColumns { headers, names } = rejected.columns.unwrap_or_default();
                let named = names.into_iter().zip(headers);
                named.map(|(name, header)| SampledColumn { name, header, samples: Vec::new() }).collect()
            }
        }
    }

    /// The file of the list, if the campaign names one.
    pub fn list_file(&self) -> Option<&CampaignPath> {
        self.campaign()?.recipients.list_file()
    }

    /// The campaign, as far as it can be read.
    pub fn campaign(&self) -> Option<&Campaign> {
        self.inputs.as_ref().map(|inputs| &inputs.campaign)
    }

    /// The location of the key that names the list.
    pub fn locate_list(&self) -> Option<SourceLocation> {
        let Campaign { recipients, places, .. } = self.campaign()?;
        let key = format!("recipients.{}", recipients.source_key());
        places.locate_key(&key).or_else(|| places.locate_key("recipients"))
    }

    /// Whether the campaign uses this text file, or includes it by its literal name.
    pub fn uses_text(&self, path: &Path) -> bool {
        let is_named = |campaign: &Campaign| campaign.places.text_files().any(|file| file == path);
        self.included.contains(path) || self.campaign().is_some_and(is_named)
    }
}

/// The texts that the texts of a campaign include by a literal name, directly or through other included texts.
fn find_included_texts(campaign: &Campaign) -> BTreeMap<String, SourceText> {
    let file_texts = campaign.places.file_texts().map(|(_, text)| text.to_owned());
    let mut texts: Vec<String> = std::iter::once(campaign.places.source().to_owned()).chain(file_texts).collect();
    let mut included = BTreeMap::new();
    while let Some(text) = texts.pop() {
        for name in find_included_names(&text) {
            if included.len() >= MAX_INCLUDES || included.contains_key(&name) {
                continue;
            }
            if let Ok((file, text)) = campaign.folders.read_text(&name) {
                texts.push(text.clone());
                included.insert(name, SourceText::new(file, text));
            }
        }
    }
    included
}

/// The names after `include` and `extends` in a text, which can be a YAML file.
fn find_included_names(text: &str) -> Vec<String> {
    let words = ["include", "extends"].into_iter().flat_map(|word| text.match_indices(word));
    let names = words.filter_map(|(at, word)| {
        let rest = text[at + word.len()..].trim_start().trim_start_matches('\\');
        let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
        let (name, _) = rest[1..].split_once(quote)?;
        Some(name.trim_end_matches('\\').to_owned())
    });
    names.collect()
}

/// The first distinct values of a column, shortened and with numbers masked.
fn sample_cells(chunk: &Chunk, column: usize) -> Vec<String> {
    let mut samples: Vec<String> = Vec::new();
    for record in chunk.iter() {
        let cell = clean_cell(record.fields.get(column));
        if cell.is_empty() {
            continue;
        }
        let sample = shorten(&mask_numbers(cell));
        if !samples.contains(&sample) {
            samples.push(sample);
        }
        if samples.len() == MAX_SAMPLES {
            break;
        }
    }
    samples
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SAMPLE_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The findings of an error, or a single finding that describes the error.
fn into_findings(error: Error) -> Vec<Finding> {
    match error {
        Error::Findings(findings) | Error::UnknownGateway { findings, .. } => findings,
        other => vec![Finding::new(&rules::FILE_UNREADABLE, other.to_string())],
    }
}

/// Removes duplicate findings, and those about the API key. An editor does not have the environment in which a run
/// reads its API key.
fn remove_irrelevant_findings(findings: Vec<Finding>) -> Vec<Finding> {
    let mut unique_findings: Vec<Finding> = Vec::new();
    for finding in findings {
        if finding.rule != &rules::API_KEY && !unique_findings.contains(&finding) {
            unique_findings.push(finding);
        }
    }
    unique_findings
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const CAMPAIGN: &str =
        "recipients: { file: list.csv }\nchannels:\n  - sms: { signature: Shop, message: { file: a.txt } }\n";

    struct Draft {
        folder: tempfile::TempDir,
    }

    impl Draft {
        fn new(files: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for (name, text) in files {
                fs::write(folder.path().join(name), text).unwrap();
            }
            Self { folder }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        /// The campaign with these unsaved texts.
        fn load(&self, unsaved: &[(&str, &str)]) -> DraftCampaign {
            let texts = unsaved.iter().map(|(name, text)| (self.path(name), Arc::from(*text)));
            let profiles = Profiles { unsaved: UnsavedTexts::new(texts), ..Profiles::default() };
            DraftCampaign::load(&self.path("sale.yaml"), &profiles, "2026-12-01T12:00:00Z".parse().unwrap())
        }
    }

    fn error_rule_ids(findings: &[Finding]) -> Vec<&str> {
        findings.iter().filter(|finding| finding.is_error()).map(|finding| finding.rule.id).collect()
    }

    const LIST: &str = "phone,First name,plan\n+380500000001,Olena,gold\n+380500000002,Ivan,gold\n";

    #[test]
    fn unsaved_texts_replace_the_files_on_disk() {
        let draft = Draft::new(&[("sale.yaml", "wrong"), ("a.txt", "Hello {{ plan"), ("list.csv", LIST)]);
        assert!(!error_rule_ids(draft.load(&[]).findings()).is_empty());
        let broken = draft.load(&[("sale.yaml", CAMPAIGN)]);
        assert_eq!(error_rule_ids(broken.findings()).len(), 1, "{:?}", broken.findings());
        let place = broken.findings().iter().find_map(|finding| finding.place.clone()).unwrap();
        assert_eq!(place.source.path(), draft.path("a.txt"));
        let loaded = draft.load(&[("sale.yaml", CAMPAIGN), ("a.txt", "Hello {{ plan }}")]);
        assert!(error_rule_ids(loaded.findings()).is_empty(), "{:?}", loaded.findings());
    }

    #[test]
    fn campaign_that_exists_only_in_the_editor_is_checked() {
        let draft = Draft::new(&[("a.txt", "Hello"), ("list.csv", LIST)]);
        let unsaved = draft.load(&[("sale.yaml", CAMPAIGN)]);
        assert!(error_rule_ids(unsaved.findings()).is_empty(), "{:?}", unsaved.findings());
    }

    #[test]
    fn unknown_variable_is_reported_only_with_the_list() {
        let draft = Draft::new(&[("sale.yaml", CAMPAIGN), ("a.txt", "Hello {{ plam }}"), ("list.csv", LIST)]);
        let loaded = draft.load(&[]);
        assert!(error_rule_ids(loaded.findings()).is_empty(), "{:?}", loaded.findings());
        let found = loaded.check_list(&Arc::default()).unwrap();
        assert_eq!(error_rule_ids(&found), ["unknown-variable"]);
    }

    #[test]
    fn stopped_check_has_no_result() {
        let draft = Draft::new(&[("sale.yaml", CAMPAIGN), ("a.txt", "Hello"), ("list.csv", LIST)]);
        let stop = Arc::new(AtomicBool::new(true));
        assert!(draft.load(&[]).check_list(&stop).is_none());
        assert!(draft.load(&[]).check_list(&Arc::default()).is_some());
    }

    #[test]
    fn column_samples_contain_only_masked_phone_numbers() {
        let draft = Draft::new(&[("sale.yaml", CAMPAIGN), ("a.txt", "Hello"), ("list.csv", LIST)]);
        let columns = draft.load(&[]).sample_columns();
        let plan = SampledColumn { name: "plan".into(), header: "plan".into(), samples: vec!["gold".into()] };
        assert_eq!(columns.len(), 3);
        assert_eq!(columns[2], plan);
        assert_eq!(columns[0].samples, ["+…01", "+…02"]);
    }

    #[test]
    fn list_key_changes_with_the_texts_and_the_list() {
        let draft = Draft::new(&[("sale.yaml", CAMPAIGN), ("a.txt", "Hello"), ("list.csv", LIST)]);
        let key = draft.load(&[]).list_key();
        assert_eq!(key, draft.load(&[]).list_key());
        assert_ne!(key, draft.load(&[("a.txt", "Hi")]).list_key());
        fs::write(draft.path("list.csv"), format!("{LIST}+380500000003,Ira,basic\n")).unwrap();
        assert_ne!(key, draft.load(&[]).list_key());
        fs::remove_file(draft.path("list.csv")).unwrap();
        assert_ne!(key, draft.load(&[]).list_key());
    }

    #[test]
    fn campaign_uses_directly_and_indirectly_included_texts() {
        let files = [
            ("sale.yaml", CAMPAIGN),
            ("a.txt", "{% include \"b.txt\" %}"),
            ("b.txt", "{% include 'c.txt' %}"),
            ("c.txt", "{% include 'b.txt' %}"),
            ("d.txt", "Hello"),
        ];
        let draft = Draft::new(&files);
        let loaded = draft.load(&[]);
        for (name, expected) in [("a.txt", true), ("b.txt", true), ("c.txt", true), ("d.txt", false)] {
            assert_eq!(loaded.uses_text(&draft.path(name)), expected, "{name}");
        }
    }
}
