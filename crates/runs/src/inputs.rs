//! Inputs of a campaign: profile, texts, data tables and recipients.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read, Sink, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use secrecy::SecretString;

use super::list::{DecodedList, find_encoding_hints};
use super::number_files::{FileOptOuts, FileStates, read_file_states, read_suppressed_numbers};
use super::recipient_consent::read_consents;
use super::{CampaignList, EarlierCountries, Error, ListSurvey, Profiles};
use campaign_content::audience::{
    DecodedText, EncodingHints, LAST_HEADER_ROW, ListHeader, ListPlace, RecipientReader, clean_cell, decode_table,
    read_rows,
};
use campaign_content::message::{LookupTable, find_mentions};
use campaign_core::calendar::Occurrence;
use campaign_core::domain::{MessageContent, NamedTemplate, OperationKind, Row, Spending, Stage, compose_accents};
use campaign_core::finding::{Finding, Rule, did_you_mean, join_names, quote_for_yaml, rules};
use campaign_engine::check::{
    AnyList, CompiledCampaign, Consents, PrepareError, Survey, SurveyExclusions, SurveyInputs, Tee, TextCache,
    TextInputs, check_against_profile, check_campaign_notices, check_consent_source, check_embedded_rows,
    check_invalid_rows, check_list_limit, check_lookup_table, check_opted_out_rows, check_texts, check_unknown_zones,
    check_until_passed, find_text_problems, prepare_campaign, reader_settings, render_edition, survey_recipients,
};
use campaign_engine::report::{MAX_SHEET_ROWS, is_workbook};
use campaign_ledger::{NumberSet, RowState};
use campaign_manifest::{
    Campaign, CampaignBrief, CampaignDay, Destination, Gaps, LoadedFile, PathScope, Profile, TableFile,
    describe_file_open_error, load_campaign_within,
};

/// The size of the read buffer for lists, in bytes.
pub(super) const BUFFER_BYTES: usize = 1 << 16;

/// A campaign with its loaded files.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The campaign, with the gateway that the command names, if any.
    pub campaign: Campaign,
    /// The list, if it is available.
    pub list: CampaignList,
    decoded: Arc<DecodedList>,
    texts: Arc<TextCache>,
    /// The destination; `Rehearsal` as a placeholder if the profile cannot be used.
    pub destination: Destination,
    /// The findings: warnings and notes, and errors only if the inputs could not be loaded completely.
    pub warnings: Vec<Finding>,
    /// The date that texts use as `today`.
    pub today: String,
    /// The gateway in the campaign file, even if the command names another one.
    pub own_gateway: String,
    /// The states of the suppression files just before they were first read.
    pub(super) suppression: Arc<OnceLock<FileStates>>,
}

/// Inputs that might have errors.
pub(super) struct LoadedInputs {
    pub(super) inputs: Inputs,
    /// Whether the campaign file and its profile could be read completely.
    pub(super) is_complete: bool,
    /// Whether the campaign names a gateway that has no profile.
    lacks_profile: bool,
}

/// The names and sources of the included and extended texts.
pub(super) type Includes = Vec<(String, String)>;

/// Reads the API key of a profile.
///
/// # Errors
/// If the key is missing or cannot be read.
pub fn read_api_key(profile: &Profile) -> Result<SecretString, Error> {
    profile.api_key.read_secret("the API key (`api_key`)", &|name| std::env::var(name).ok()).map_err(Error::Input)
}

/// Whether a text of the campaign, or an included text, mentions `today`.
pub(super) fn mentions_today(brief: &CampaignBrief, includes: &Includes) -> bool {
    let is_mentioned = |text: &NamedTemplate| find_mentions(text).names.contains("today");
    let mut texts = brief.all_contents().flat_map(|content| &content.stages).flat_map(Stage::texts);
    let included = |(name, source): &(String, String)| NamedTemplate { name: name.clone(), source: source.clone() };
    texts.any(|(_, text)| is_mentioned(text)) || includes.iter().map(included).any(|text| is_mentioned(&text))
}

/// Finds the profile of a live campaign, or returns the findings that explain why there is none. Conflicts between the
/// campaign and the profile are added to `findings`.
fn find_live_profile(
    campaign: &Campaign,
    gateway: Option<&str>,
    profiles: &Profiles,
    findings: &mut Vec<Finding>,
) -> Result<Result<Profile, Vec<Finding>>, Error> {
    let gateways = match profiles.load(Some(campaign.file.as_path())) {
        Ok(gateways) => gateways,
        Err(Error::Findings(problems)) => return Ok(Err(problems)),
        Err(error) => return Err(error),
    };
    let place = campaign.places.locate_key("gateway").filter(|_| gateway.is_none());
    let profile = match gateways.find_profile(&campaign.brief.gateway) {
        Ok(profile) => profile.clone(),
        Err(mut problems) => {
            problems.iter_mut().filter(|finding| finding.place.is_none()).for_each(|finding| {
                finding.place.clone_from(&place);
            });
            return Ok(Err(problems));
        }
    };
    findings.extend(check_against_profile(campaign, &profile));
    if !campaign.requires_consent {
        findings.extend(check_consent_source(campaign, Some(&profile)));
    }
    findings.extend(gateways.collect_warnings());
    Ok(Ok(profile))
}

impl Inputs {
    /// Loads a campaign file for a day, and the profile of the named gateway, or else of the campaign's gateway.
    ///
    /// # Errors
    /// If the inputs have errors, all of which are returned.
    pub fn load(file: &Path, gateway: Option<&str>, profiles: &Profiles, day: CampaignDay) -> Result<Self, Error> {
        Self::load_with_scope(file, gateway, profiles, day, PathScope::Anywhere)
    }

    /// Loads a campaign file within this scope, which applies to the file's own path and to the paths in it.
    ///
    /// # Errors
    /// If the inputs have errors, all of which are returned.
    pub fn load_with_scope(
        file: &Path,
        gateway: Option<&str>,
        profiles: &Profiles,
        day: CampaignDay,
        scope: PathScope,
    ) -> Result<Self, Error> {
        let LoadedInputs { inputs, is_complete, lacks_profile } =
            Self::load_parts(file, gateway, profiles, day, scope)?;
        if is_complete && !inputs.warnings.iter().any(Finding::is_error) {
            return Ok(inputs);
        }
        let until_finding = inputs.check_until(day);
        let other_problems = inputs.find_other_problems(!matches!(day, CampaignDay::Coming(_)));
        let findings = [inputs.warnings, until_finding.into_iter().collect(), other_problems].concat();
        let (name, file) = (inputs.campaign.brief.gateway, inputs.campaign.file);
        Err(if lacks_profile { Error::UnknownGateway { name, file, findings } } else { Error::Findings(findings) })
    }

    /// Loads a file and its profile with everything that can be read, even if there are errors.
    ///
    /// # Errors
    /// If nothing can be read; the error contains the reasons.
    pub(super) fn load_parts(
        file: &Path,
        gateway: Option<&str>,
        profiles: &Profiles,
        day: CampaignDay,
        scope: PathScope,
    ) -> Result<LoadedInputs, Error> {
        let LoadedFile { value, draft, mut findings } = load_with_tables(file, day, scope);
        // The readable parts of a file with errors are checked too, so that all mistakes are reported at once.
        let mut is_complete = value.is_some();
        let Some(campaign) = value.or(draft) else { return Err(Error::Findings(findings)) };
        let own_gateway = campaign.brief.gateway.clone();
        let campaign = match gateway {
            Some(gateway) => campaign.with_gateway(gateway),
            None => campaign,
        };
        findings.extend(check_campaign_notices(&campaign));
        findings.extend(check_texts(&campaign));
        findings.extend(check_consent_source(&campaign, None));
        let mut lacks_profile = false;
        let destination = if campaign.brief.is_rehearsal() {
            Destination::Rehearsal
        } else {
            match find_live_profile(&campaign, gateway, profiles, &mut findings)? {
                Ok(profile) => Destination::Live(Box::new(profile)),
                Err(problems) => {
                    lacks_profile = problems.iter().any(|finding| *finding.rule == rules::UNKNOWN_GATEWAY);
                    findings.extend(problems);
                    // The destination is only a placeholder: without a profile, the campaign is checked but never run.
                    is_complete = false;
                    Destination::Rehearsal
                }
            }
        };
        let (today, list) = (campaign.today.to_string(), CampaignList::for_recipients(&campaign.recipients));
        let (decoded, texts) = (Arc::default(), Arc::default());
        let (suppression, warnings) = (Arc::default(), findings);
        let inputs = Self { campaign, list, decoded, texts, destination, warnings, today, own_gateway, suppression };
        Ok(LoadedInputs { inputs, is_complete, lacks_profile })
    }

    /// Returns a finding if the campaign's `until` has passed.
    pub(super) fn check_until(&self, day: CampaignDay) -> Option<Finding> {
        match day {
            CampaignDay::Of(now) => check_until_passed(&self.campaign, now),
            CampaignDay::Is(_) | CampaignDay::Coming(_) => None,
        }
    }

    /// Returns a copy of the inputs whose list can no longer be read once `stop` is set.
    pub(super) fn with_stop_flag(&self, stop: Arc<AtomicBool>) -> Self {
        Self { decoded: Arc::new(DecodedList::with_stop_flag(stop)), ..self.clone() }
    }

    /// The inputs for an occurrence, with the edition and results file of that occurrence.
    #[must_use]
    pub fn for_occurrence(self, occurrence: &Occurrence) -> Self {
        let campaign = self.campaign.with_edition(&occurrence.format_nominal_time());
        let edition = render_edition(&campaign.brief, &self.today).unwrap_or_else(|| occurrence.format_nominal_time());
        Self { campaign: campaign.with_results_for_edition(&edition), ..self }
    }

    /// The inputs without the notification command of the campaign. The profile's notification command is kept.
    #[must_use]
    pub fn without_notify_command(mut self) -> Self {
        self.campaign = self.campaign.without_notify_command();
        self
    }

    /// The inputs with this list.
    pub(super) fn with_list(&self, list: CampaignList) -> Self {
        Self { list, decoded: Arc::default(), ..self.clone() }
    }

    /// Opens the recipients and compiles the texts.
    ///
    /// # Errors
    /// If the inputs have errors, all of which are returned.
    pub fn compile_campaign(&self) -> Result<CompiledCampaign<DecodedText>, Error> {
        let input = self.open_list()?;
        self.compile_list(input)
    }

    /// Surveys all recipients except the `excluded` ones, and writes the list to `copy` if it is given.
    ///
    /// # Errors
    /// If the list cannot be read or copied, or if errors prevent sending, all of which are returned.
    pub fn run_survey(
        &self,
        excluded: &SurveyExclusions,
        copy: Option<Box<dyn Write + Send>>,
    ) -> Result<ListSurvey, Error> {
        let FileOptOuts { numbers, warnings } = self.read_suppressed_numbers()?;
        let mut opted_out = excluded.opted_out.clone();
        opted_out |= NumberSet::new(numbers, None);
        let countries = self.campaign.brief.allowed_countries(self.destination.profile());
        let excluded = SurveyExclusions { opted_out, countries, ..excluded.clone() };
        let consents =
            read_consents(&self.campaign, self.destination.profile(), self.campaign.today).map_err(Error::Findings)?;
        let list = self.open_list()?;
        let list_format = Arc::clone(list.format());
        let mut tee = Tee::new(BufReader::with_capacity(BUFFER_BYTES, list), copy);
        let surveyed = self
            .survey_reader(&mut tee, &excluded, consents.as_ref().map(|read| &read.consents))
            .and_then(|surveyed| Ok((surveyed, tee.finish().map_err(|error| self.unreadable_error(&error))?)));
        // A failed copy also stops the reading, although the list is intact.
        if let Some(error) = tee.take_copy_failure() {
            return Err(Error::Storage(error.to_string()));
        }
        let ((survey, includes, delimiter), sha256) = surveyed?;
        if excluded.rows.as_ref().is_some_and(|rows| rows.sha256 != sha256) {
            return Err(self.changed_error());
        }
        self.refuse_too_many_rows(survey.last_row)?;
        let format = list_format.describe(delimiter);
        self.decoded.set_format(format.clone());
        let mut file_findings = [list_format.warnings(), warnings].concat();
        file_findings.extend(consents.iter().flat_map(|read| read.warnings.iter().cloned()));
        if has_invalid_row_near_top(&survey) {
            file_findings.extend(self.find_title_row(&rules::RECIPIENTS_TITLE));
        }
        let (consents, earlier) = (consents.map(|read| read.consents), EarlierCountries::default());
        let spent = Spending::default();
        Ok(ListSurvey { survey, includes, sha256, format, file_findings, consents, earlier, spent, began_at: None })
    }

    /// Reads the suppression files of the campaign and its profile.
    pub(super) fn read_suppressed_numbers(&self) -> Result<FileOptOuts, Error> {
        let profile = self.destination.profile();
        // The state is recorded before the files are read, so that a later comparison detects changes while reading.
        self.suppression.get_or_init(|| read_file_states(self.campaign.suppression_files(profile)));
        read_suppressed_numbers(&self.campaign, profile).map_err(Error::Findings)
    }

    /// The error for a list that changed while it was being read, so it is unknown which rows have a message.
    pub(super) fn changed_error(&self) -> Error {
        Error::Input(format!(
            "the list `{}` changed while it was being read; run the command again",
            self.campaign.recipients
        ))
    }

    /// Refuses a list with more rows than a worksheet of results can hold, before anything is sent.
    fn refuse_too_many_rows(&self, last: Row) -> Result<(), Error> {
        if last.get() <= MAX_SHEET_ROWS || !is_workbook(self.campaign.results_file().path()) {
            return Ok(());
        }
        let message = "the list has more rows than fit in a worksheet (1,048,575 below the header)";
        let finding = Finding::new(&rules::RESULTS_OVERWRITE, message).help("specify a `.csv` file under `results`");
        Err(Error::Findings(vec![finding.at(self.campaign.places.locate_key("results"))]))
    }

    /// The detected format of the list, if it was read and is not CSV in UTF-8.
    pub fn list_format(&self) -> Option<String> {
        self.decoded.format()
    }

    /// Returns the included texts and the SHA-256 of the list, by which changed inputs are detected.
    pub(super) fn compute_fingerprint(&self) -> Result<(Includes, String), Error> {
        let includes = self.compile_campaign()?.recipe.list_included_sources().to_vec();
        let hashed = Tee::new(self.open_list()?, None::<Sink>).finish();
        let sha256 = hashed.map_err(|error| self.unreadable_error(&error))?;
        Ok((includes, sha256))
    }

    /// Surveys a list from a reader. Returns the survey, the included texts, and the delimiter between cells.
    fn survey_reader(
        &self,
        list: impl Read + Send,
        excluded: &SurveyExclusions,
        consents: Option<&Consents>,
    ) -> Result<(Survey, Includes, u8), Error> {
        let list: AnyList<'_> = Box::new(list);
        let mut prepared = self.compile_list(list)?;
        let by_country = self.campaign.uses_recipient_zones(self.destination.profile());
        let (brief, zones) = (&self.campaign.brief, self.campaign.zone_column());
        let terms = SurveyInputs { brief, excluded, zones, by_country, consents };
        let survey = survey_recipients(&mut prepared, &terms)
            .map_err(|findings| Error::Findings(self.locate_column_findings(findings)))?;
        Ok((survey, prepared.recipe.list_included_sources().to_vec(), prepared.reader.delimiter()))
    }

    /// Points findings about a missing time-zone or consent column to the key in the campaign file that names the
    /// column.
    pub(super) fn locate_column_findings(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        for finding in findings.iter_mut().filter(|finding| finding.place.is_none()) {
            let locate = |key: &str| self.campaign.places.locate_key(key);
            finding.place = match finding.rule {
                rule if *rule == rules::WINDOW => locate("delivery.window.zone"),
                rule if *rule == rules::CONSENT => {
                    finding.subject.as_deref().and_then(|key| locate(&format!("recipients.consent.{key}")))
                }
                _ => None,
            };
        }
        findings
    }

    pub(super) fn unreadable_error(&self, error: &std::io::Error) -> Error {
        Error::Input(format!("cannot read the list `{}`: {error}", self.campaign.recipients))
    }

    /// Opens the list. If the list cannot be opened, the texts are checked too, to report all mistakes at once.
    pub(super) fn open_list(&self) -> Result<DecodedText, Error> {
        self.decoded.open(&self.list, &self.campaign).map_err(|finding| {
            let warnings = if self.list.is_unfetched() { self.warnings.clone() } else { Vec::new() };
            Error::Findings([warnings, vec![finding], self.find_text_problems()].concat())
        })
    }

    /// Finds problems in the texts that do not depend on the columns of the list.
    pub(super) fn find_text_problems(&self) -> Vec<Finding> {
        self.with_texts(|texts| find_text_problems(&self.campaign.brief, texts, &self.today))
    }

    /// Reads the header of a list and compiles the texts, unless they are already compiled.
    pub(super) fn compile_list<R: Read>(&self, input: R) -> Result<CompiledCampaign<R>, Error> {
        let (brief, place) = (&self.campaign.brief, self.list.place());
        let compiled = self.with_texts(|texts| self.texts.prepare_campaign(brief, input, place, texts, &self.today));
        compiled.map_err(|unprepared| Error::Findings(self.add_likely_place(self.add_row_problems(unprepared))))
    }

    /// Reads the header of a list and compiles the texts of `brief`.
    pub(super) fn compile_brief<R: Read>(
        &self,
        brief: &CampaignBrief,
        input: R,
    ) -> Result<CompiledCampaign<R>, PrepareError> {
        self.with_texts(|texts| prepare_campaign(brief, input, self.list.place(), texts, &self.today))
    }

    /// Reads the header of the list. `None` if the list cannot be read or was not fetched.
    pub(super) fn read_header(&self) -> Option<ListHeader> {
        let settings = reader_settings(&self.campaign.brief);
        let opened = RecipientReader::open(self.decode_list().ok()?, self.list.place(), &settings);
        opened.ok().map(|reader| reader.header().clone())
    }

    /// Reads the header of the list and compiles the texts for a day.
    pub(super) fn compile_for_day(&self, today: &str) -> Result<CompiledCampaign<impl Read + use<>>, Vec<Finding>> {
        let list = BufReader::with_capacity(BUFFER_BYTES, self.decode_list().map_err(|finding| vec![finding])?);
        let brief = &self.campaign.brief;
        let compiled = self.with_texts(|texts| prepare_campaign(brief, list, self.list.place(), texts, today));
        compiled.map_err(|unprepared| unprepared.findings)
    }

    /// Loads a text by the name in `include` or `extends`.
    pub(super) fn load_text(&self, name: &str) -> Result<String, String> {
        self.campaign.folders.read_text(name).map(|(_, text)| text)
    }

    /// Opens the list, without checking the texts.
    pub(super) fn decode_list(&self) -> Result<DecodedText, Finding> {
        self.decoded.open(&self.list, &self.campaign)
    }

    /// Adds the likely sheet or row to findings about missing columns, and removes findings that a wrong row explains.
    fn add_likely_place(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        let column_rules = [
            &rules::RECIPIENTS_NO_HEADER,
            &rules::RECIPIENTS_PHONE_COLUMN,
            &rules::RECIPIENTS_UNKNOWN_COLUMN,
            &rules::RECIPIENTS_EMPTY,
        ];
        let (format, hints) = (&self.campaign.format, find_encoding_hints(&self.campaign.brief));
        // Column names from a wrong header row prove nothing about the texts.
        let name_rules = [&rules::UNKNOWN_VARIABLE, &rules::UNKNOWN_COLUMN];
        match findings.first_mut() {
            Some(first) if column_rules.contains(&first.rule) => {
                let Some(place) = self.list.find_likely_place(format, hints) else { return findings };
                add_advice(first, &place);
                // Column names from a wrong header row prove nothing about the other columns either.
                let first = first.clone();
                findings.retain(|finding| !name_rules.contains(&finding.rule) && !column_rules.contains(&finding.rule));
                findings.insert(0, first);
            }
            Some(first) if name_rules.contains(&first.rule) => {
                let Some(title) = self.find_title_row(&rules::RECIPIENTS_NO_HEADER) else { return findings };
                findings.retain(|finding| !name_rules.contains(&finding.rule));
                findings.insert(0, title);
            }
            _ => {}
        }
        findings
    }

    /// Returns a finding if the header row looks like a title because a lower row contains a phone header.
    pub(super) fn find_title_row(&self, rule: &'static Rule) -> Option<Finding> {
        let Campaign { format, brief, .. } = &self.campaign;
        if format.header_row.is_some() {
            return None;
        }
        let place = self.list.find_likely_place(format, find_encoding_hints(brief))?;
        let is_below = place.sheet.is_none() && place.has_phone_header();
        let mut title = is_below.then(|| place.title_finding(rule, None))?;
        add_advice(&mut title, &place);
        Some(title)
    }

    fn with_texts<T>(&self, action: impl FnOnce(TextInputs<'_>) -> T) -> T {
        let mut load = |name: &str| self.load_text(name);
        action(TextInputs { places: Some(&self.campaign.places), trims_cells: true, load: &mut load })
    }
}

/// Whether one of the first rows, any of which might be the list's real header, has no valid phone number.
fn has_invalid_row_near_top(survey: &Survey) -> bool {
    let is_near_top = |row: u32| row <= LAST_HEADER_ROW;
    survey.left_out.sets().any(|(state, _, rows)| state == RowState::Invalid && rows.min().is_some_and(is_near_top))
}

/// Adds help to a finding: the keys with which the list can be read.
fn add_advice(finding: &mut Finding, place: &ListPlace) {
    let sheet = place.sheet.as_ref().map(|sheet| format!("`sheet: {}`", quote_for_yaml(sheet)));
    let has_row = place.sheet.is_none() || place.header_row > 1;
    let row = has_row.then(|| format!("`header_row: {}`", place.header_row));
    let keys: Vec<String> = sheet.into_iter().chain(row).collect();
    place.add_advice(finding, &format!("write {} under `recipients`", keys.join(" and ")));
}

/// The maximum number of rows of a table.
const MAX_ROWS: usize = 10_000;
/// The maximum number of columns of a table.
const MAX_COLUMNS: usize = 500;
/// The maximum number of cells of a table. Each cell takes about 150 bytes of memory, even if it is empty.
const MAX_CELLS: usize = 250_000;
/// The maximum number of bytes of all cells of a table.
const MAX_BYTES: usize = 1 << 20;
/// The maximum number of bytes of the headers, which each row repeats in memory.
const MAX_HEADER_BYTES: usize = 8 << 10;

/// Loads a campaign file with its tables. The findings include problems of the file and of the tables.
pub(super) fn load_with_tables(file: &Path, day: CampaignDay, scope: PathScope) -> LoadedFile<Campaign> {
    let mut loaded = load_campaign_within(file, day, scope);
    let Some(campaign) = loaded.value.as_mut().or(loaded.draft.as_mut()) else { return loaded };
    let hints = find_encoding_hints(&campaign.brief);
    let mut tables = Vec::new();
    for table_file in &campaign.data {
        match read_table(table_file, hints) {
            Ok((table, warning)) => {
                campaign.folders.add_inline_text(LookupTable::source_name(&table_file.name), table.to_source());
                loaded.findings.extend(warning);
                tables.push((table_file.name.clone(), table));
            }
            Err(finding) => {
                let message = format!("the table `{}` cannot be used: {}", table_file.name, finding.message);
                let place = campaign.places.locate_key(&format!("data.{}", table_file.name));
                let help = finding.help.unwrap_or_else(|| "use the same format as for recipient lists".to_owned());
                loaded.findings.push(Finding::new(&rules::DATA_FILE, message).help(help).at(place));
            }
        }
    }
    loaded.findings.extend(tables.iter().flat_map(|(name, table)| check_lookup_table(campaign, name, table)));
    loaded
}

/// Reads a lookup table. Also returns the warning about its encoding, if there is one.
fn read_table(table_file: &TableFile, hints: EncodingHints) -> Result<(LookupTable, Option<Finding>), Finding> {
    let path = table_file.file.path();
    let file = table_file
        .file
        .open_file()
        .map_err(|error| describe_file_open_error(&format!("`{}`", path.display()), path, &error))?;
    let text = decode_table(file, path, hints).map_err(|finding| *finding)?;
    let format = Arc::clone(text.format());
    let (mut rows, mut bytes) = (BTreeMap::<String, Vec<String>>::new(), 0);
    let columns = read_rows(text, path, |headers, row, cells| {
        let refuse = |message: String, help: &str| Err(Box::new(Finding::new(&rules::DATA_FILE, message).help(help)));
        if headers.len() > MAX_COLUMNS || headers.iter().map(String::len).sum::<usize>() > MAX_HEADER_BYTES {
            let message = "it has more than 500 columns or 8 KiB of headers".to_owned();
            return refuse(message, "remove the columns that no template uses");
        }
        let column = find_key_column(headers, &table_file.key)?;
        let cells: Vec<String> = (0..headers.len()).map(|column| clean_cell(cells.get(column)).to_owned()).collect();
        let key = compose_accents(&cells[column]).into_owned();
        bytes += cells.iter().map(String::len).sum::<usize>();
        if key.is_empty() {
            return refuse(
                format!("row {row} has no value under `{}`", table_file.key),
                "fill in the cell, or remove the row",
            );
        }
        if rows.len() == MAX_ROWS || (rows.len() + 1) * headers.len() > MAX_CELLS || bytes > MAX_BYTES {
            let message = "it has more than 10,000 rows, 250,000 cells or 1 MiB of text".to_owned();
            return refuse(message, "keep tables small: put data that varies by recipient in columns of the list");
        }
        match rows.insert(key, cells) {
            None => Ok(()),
            Some(_) => refuse(
                format!("row {row} has the same `{}` as an earlier row", table_file.key),
                "remove the duplicate row: each key must be unique",
            ),
        }
    })
    .map_err(|finding| *finding)?;
    find_key_column(&columns, &table_file.key).map_err(|finding| *finding)?;
    let mut names = BTreeSet::new();
    if let Some(duplicate) = columns.iter().find(|name| !names.insert(name.as_str())) {
        let finding = Finding::new(&rules::DATA_FILE, format!("it has more than one column named `{duplicate}`"));
        return Err(finding.help("rename one of them"));
    }
    Ok((LookupTable { columns, rows }, format.encoding_warning().cloned()))
}

/// Finds the index of the key column.
fn find_key_column(headers: &[String], key: &str) -> Result<usize, Box<Finding>> {
    let composed_key = compose_accents(key.trim());
    headers.iter().position(|header| compose_accents(header) == composed_key).ok_or_else(|| {
        let finding = Finding::new(&rules::DATA_FILE, format!("it has no column `{key}`"));
        let help = match did_you_mean(key, headers.iter().map(String::as_str)) {
            Some(suggestion) => format!("did you mean `{suggestion}`?"),
            None => format!("use one of the table's columns: {}", join_names(headers.iter().map(String::as_str))),
        };
        finding.help(help).into()
    })
}

impl Inputs {
    /// Finds the problems in the list, texts and rows of a campaign whose file or profile is invalid.
    ///
    /// The list is not checked if `includes_list` is false, or if the list is unknown or must be fetched.
    pub(super) fn find_other_problems(&self, includes_list: bool) -> Vec<Finding> {
        let gaps = &self.campaign.gaps;
        let findings = if !includes_list || gaps.list || self.list.is_unfetched() {
            self.find_text_problems()
        } else {
            match self.decode_list() {
                Err(finding) => [vec![finding], self.find_text_problems()].concat(),
                Ok(list) => match self.compile_brief(&self.campaign.brief, list) {
                    Ok(_) => self.find_row_problems(),
                    Err(unprepared) => self.add_row_problems(unprepared),
                },
            }
        };
        findings.into_iter().filter(|finding| is_independent(finding, gaps, &self.warnings)).collect()
    }

    /// Adds problems in the rows of the list to the findings about a campaign that cannot be compiled.
    pub(super) fn add_row_problems(&self, PrepareError { findings, has_rows }: PrepareError) -> Vec<Finding> {
        let rows = if has_rows { self.find_row_problems() } else { Vec::new() };
        [findings, rows].concat()
    }

    /// Finds the problems in the rows of the list, independent of the texts.
    fn find_row_problems(&self) -> Vec<Finding> {
        let brief = strip_texts(&self.campaign.brief);
        let with_condition = CampaignBrief { condition: self.campaign.brief.condition.clone(), ..brief.clone() };
        let Ok(list) = self.decode_list() else { return Vec::new() };
        let open = |list| -> AnyList<'static> { Box::new(BufReader::new(list)) };
        let (brief, prepared) = match self.compile_brief(&with_condition, open(list)) {
            Ok(prepared) => (with_condition, Ok(prepared)),
            Err(_) => match self.decode_list() {
                Ok(list) => (brief.clone(), self.compile_brief(&brief, open(list))),
                Err(_) => return Vec::new(),
            },
        };
        let Ok(mut prepared) = prepared else { return Vec::new() };
        let (excluded, zones) = (SurveyExclusions::default(), self.campaign.zone_column());
        let by_country = self.campaign.uses_recipient_zones(self.destination.profile());
        let terms = SurveyInputs { brief: &brief, excluded: &excluded, zones, by_country, consents: None };
        // If the condition is wrong, it is unknown which rows are selected, but damaged rows can still be reported.
        let is_selection_known = brief.condition.is_some() == self.campaign.brief.condition.is_some();
        let findings = match survey_recipients(&mut prepared, &terms) {
            Ok(survey) => [
                check_invalid_rows(&survey),
                check_opted_out_rows(&survey, &brief),
                check_embedded_rows(&survey).into_iter().collect(),
                check_list_limit(&self.campaign, &survey).filter(|_| is_selection_known).into_iter().collect(),
                check_unknown_zones(&survey).into_iter().collect(),
            ]
            .concat(),
            Err(findings) => self.locate_column_findings(findings),
        };
        findings.into_iter().filter(|finding| is_selection_known || finding.place.is_some()).collect()
    }
}

/// Removes the texts from a campaign to check only the rows of its list.
fn strip_texts(brief: &CampaignBrief) -> CampaignBrief {
    let content = MessageContent { kind: OperationKind::Pipeline, stages: Vec::new() };
    let (edition, condition, tables, variants) = (None, None, Vec::new(), Vec::new());
    CampaignBrief { content, edition, condition, tables, variants, ..brief.clone() }
}

/// Whether a finding is more than a consequence of other mistakes in the campaign file.
fn is_independent(finding: &Finding, gaps: &Gaps, reported: &[Finding]) -> bool {
    // A wrong region or column in the file can be the reason that numbers are invalid.
    if ["recipients-phone-column", "too-many-invalid", "invalid-row", "over-limits"].contains(&finding.rule.id) {
        return !gaps.recipients;
    }
    if *finding.rule == rules::UNKNOWN_VARIABLE {
        return finding.subject.as_deref().is_none_or(|name| !gaps.might_define(name));
    }
    *finding.rule != rules::DATA_FILE || !reported.iter().any(|other| *other.rule == rules::DATA_FILE)
}
