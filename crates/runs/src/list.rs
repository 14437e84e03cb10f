//! The recipient list: its source, format, survey, countries, samples and changes.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash as _, Hasher as _};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use roaring::RoaringBitmap;
use rustc_hash::FxHasher;

use super::guard::{count_sent_by_day, find_capped_numbers, find_excluded_numbers};
use super::inputs::{BUFFER_BYTES, Includes};
use super::launch::Session;
use super::resume::find_settled_exclusions;
use super::{
    Error, FetchedList, Inputs, RunEvent, RunObserver, SentRecipients, find_opted_out_numbers, find_sent_recipients,
    run_blocking,
};
use campaign_content::audience::{Chunk, DecodedText, EncodingHints, ListPlace, RecipientReader, decode, find_list};
use campaign_core::calendar::country_of_zone;
use campaign_core::domain::{
    Budget, CountryFinder, CountrySet, Language, ListFormat, MessageContent, Phone, Region, Row, RowSet, Spending,
    Stage,
};
use campaign_core::finding::{Finding, rules};
use campaign_core::regular_file;
use campaign_engine::check::online::Cost;
use campaign_engine::check::{
    Consents, NIGHT, RunStart, Survey, SurveyExclusions, check_campaign_zone_fallback, check_changed_rows,
    check_consent_dates, check_costly_characters, check_differing_duplicates, check_embedded_rows, check_empty_cells,
    check_inverted_zones, check_landlines, check_limits, check_new_countries, check_night, check_opted_out_rows,
    check_row_anomalies, check_timing, check_unknown_zones, check_unused_consents, reader_settings, sum_recipients,
};
use campaign_engine::report::{
    RowPreview, find_unknown_results, format_count, format_thousands, load_spending, preview_rows,
};
use campaign_ledger::{BudgetScope, Copies, Ledger, NumberFilter, NumberSet, Run, RunFilter};
use campaign_manifest::{Campaign, CampaignBrief, CampaignPath, Profile, RecipientSource, describe_list_open_error};

/// The recipient list of a campaign, if it is available.
#[derive(Clone, Debug)]
pub enum CampaignList {
    /// A file of the user.
    File(CampaignPath),
    /// A fetched list.
    Fetched(Arc<FetchedList>),
    /// The copy of a resumed run.
    Copies(Copies),
    /// The list was not fetched. The path is the display name of the list.
    NotFetched(PathBuf),
}

impl CampaignList {
    /// The list of these recipients; a list that is not a file counts as not fetched.
    pub(super) fn for_recipients(recipients: &RecipientSource) -> Self {
        match recipients {
            RecipientSource::File(path) => Self::File(path.clone()),
            other => Self::NotFetched(other.to_string().into()),
        }
    }

    /// Whether the list was not fetched.
    pub fn is_unfetched(&self) -> bool {
        matches!(self, Self::NotFetched(_))
    }

    /// Opens the list as text in UTF-8. `None` if it was not fetched.
    pub(super) fn open(&self, format: &ListFormat, hints: EncodingHints) -> Option<Result<DecodedText, Box<Finding>>> {
        let (opened, place) = match self {
            Self::File(file) => (file.open_file(), file.path()),
            Self::Fetched(list) => (regular_file::open(list.path()), list.place()),
            Self::Copies(copies) => {
                let open_error = |error| Box::new(describe_list_open_error(copies.place().as_ref(), &error));
                return Some(copies.open_list().map(DecodedText::from_utf8).map_err(open_error));
            }
            Self::NotFetched(_) => return None,
        };
        let opened = opened.map_err(|error| Box::new(describe_list_open_error(place, &error)));
        Some(opened.and_then(|file| decode(file, place, format, hints)))
    }

    /// Finds the probable place of the list in its file, if this place differs from the place in `format`.
    pub(super) fn find_likely_place(&self, format: &ListFormat, hints: EncodingHints) -> Option<ListPlace> {
        match self {
            Self::File(file) => find_list(|| file.open_file(), file.path(), format, hints),
            Self::Fetched(list) => find_list(|| regular_file::open(list.path()), list.place(), format, hints),
            Self::Copies(_) | Self::NotFetched(_) => None,
        }
    }

    /// Whether the list can be read.
    pub(super) fn is_available(&self) -> bool {
        match self {
            Self::File(path) => path.is_present(),
            Self::Fetched(_) | Self::Copies(_) => true,
            Self::NotFetched(_) => false,
        }
    }

    /// The path of the list as findings show it.
    pub(super) fn place(&self) -> &Path {
        match self {
            Self::File(file) => file.path(),
            Self::NotFetched(path) => path,
            Self::Fetched(list) => list.place(),
            Self::Copies(copies) => copies.place().as_ref(),
        }
    }
}

/// Derives hints about the encoding of lists and tables from the settings and texts of a campaign.
pub(super) fn find_encoding_hints(brief: &CampaignBrief) -> EncodingHints {
    let zone_country = || country_of_zone(brief.timezone.as_deref()?)?.parse().ok();
    let only_country = || match brief.countries.as_ref()?.countries() {
        [country] => Some(*country),
        _ => None,
    };
    let country = brief.language.and_then(Language::main_country).or_else(zone_country).or_else(only_country);
    let headers = brief.columns.iter().map(|(_, header)| header);
    let constants = brief.vars.iter().map(|(_, value)| value);
    let texts = brief.all_contents().flat_map(|content| &content.stages).flat_map(Stage::texts).map(|(_, text)| text);
    let sources = texts.chain(&brief.condition).map(|text| &text.source);
    let is_cyrillic = headers.chain(constants).chain(sources).any(|text| contains_cyrillic(text));
    EncodingHints { region: brief.region, country, is_cyrillic }
}

/// Whether a text contains characters of the Unicode blocks Cyrillic and Cyrillic Supplement.
fn contains_cyrillic(text: &str) -> bool {
    text.chars().any(|character| matches!(character, '\u{400}'..='\u{52f}'))
}

/// The cached text of a list, because decoding is expensive, and the detected format of the list.
#[derive(Default)]
pub(super) struct DecodedList {
    decoded: Mutex<Option<DecodedText>>,
    format: Mutex<Option<String>>,
    /// Reading ends once this flag is set.
    stop: Option<Arc<AtomicBool>>,
}

impl DecodedList {
    /// A list whose reading ends with an error once `stop` is set.
    pub(super) fn with_stop_flag(stop: Arc<AtomicBool>) -> Self {
        Self { stop: Some(stop), ..Self::default() }
    }

    /// Opens the list from its beginning.
    pub(super) fn open(&self, list: &CampaignList, campaign: &Campaign) -> Result<DecodedText, Finding> {
        let opened = self.open_decoded(list, campaign)?;
        Ok(match &self.stop {
            Some(stop) => opened.with_stop_flag(Arc::clone(stop)),
            None => opened,
        })
    }

    /// Opens the decoded text, from the cache if possible.
    fn open_decoded(&self, list: &CampaignList, campaign: &Campaign) -> Result<DecodedText, Finding> {
        let mut cache = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reopened) = cache.as_ref().and_then(DecodedText::reopen) {
            return Ok(reopened);
        }
        let opened = list.open(&campaign.format, find_encoding_hints(&campaign.brief));
        let Some(decoded) = opened else { return Err(unfetched_list_finding(campaign)) };
        let decoded = decoded.map_err(|finding| locate_at_key(*finding, campaign))?;
        *cache = decoded.reopen();
        Ok(decoded)
    }

    /// Stores the detected format of the list, which is reported at the end.
    pub(super) fn set_format(&self, format: Option<String>) {
        *self.format.lock().unwrap_or_else(PoisonError::into_inner) = format;
    }

    /// The detected format of the list, if it was read and is not CSV in UTF-8.
    pub(super) fn format(&self) -> Option<String> {
        self.format.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Omits all fields, because the content is personal.
impl fmt::Debug for DecodedList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodedList").finish_non_exhaustive()
    }
}

/// The finding that a list was not checked, because it was not fetched.
fn unfetched_list_finding(campaign: &Campaign) -> Finding {
    let Campaign { recipients, places, .. } = campaign;
    let message =
        format!("the list ({recipients}) was not checked, because it is fetched only during a run or with `--fetch`");
    Finding::new(&rules::RECIPIENTS_UNSEEN, message)
        .at(places.locate_key(&format!("recipients.{}", recipients.source_key())))
}

/// Points a finding about the list to the campaign-file key that caused it.
fn locate_at_key(finding: Finding, campaign: &Campaign) -> Finding {
    let help_names = |key: &str| finding.help.as_ref().is_some_and(|help| help.contains(&format!("delete `{key}`")));
    let key = if finding.rule == &rules::RECIPIENTS_MISSING {
        Some("file")
    } else if finding.rule == &rules::RECIPIENTS_SHEET {
        Some("sheet")
    } else if finding.rule == &rules::RECIPIENTS_KEY_MISMATCH {
        ["encoding", "delimiter", "sheet"].into_iter().find(|key| help_names(key))
    } else {
        None
    };
    match key.and_then(|key| campaign.places.locate_key(&format!("recipients.{key}"))) {
        Some(place) => finding.at(place),
        None => finding,
    }
}

/// A survey with the inputs that a run freezes.
#[derive(Debug)]
pub struct ListSurvey {
    /// The survey of the recipients.
    pub survey: Survey,
    /// The included and extended texts, by name.
    pub includes: Includes,
    /// SHA-256 of the recipients as text in UTF-8, in hexadecimal.
    pub sha256: String,
    /// The format of the list, if it is not plain CSV in UTF-8.
    pub format: Option<String>,
    /// Findings about the sheet of the list, and about files of opt-outs and consents.
    pub file_findings: Vec<Finding>,
    /// The recorded consents, if the campaign has any.
    pub consents: Option<Consents>,
    /// The ledger's information about the countries of the account.
    pub earlier: EarlierCountries,
    /// The amounts that the edition has used of its limits. Zero for a rehearsal, or if the spending of a purged run is
    /// unknown.
    pub spent: Spending,
    /// The time at which the surveyed unfinished run began, from which its `until` counts. `None` for a new run.
    pub began_at: Option<Timestamp>,
}

impl ListSurvey {
    /// Estimates the cost of messages to these rows. Returns `None` if there is no profile, or the profile has no
    /// prices.
    pub fn compute_cost(&self, inputs: &Inputs, rows: &RoaringBitmap) -> Option<Cost> {
        let profile = inputs.destination.profile().filter(|profile| !profile.prices.is_empty())?;
        Some(Cost::estimate(profile, &inputs.campaign.brief, &self.survey, rows))
    }

    /// The campaign, with the deadline of the unfinished run if the survey is for one.
    pub fn campaign_with_deadline<'c>(&self, campaign: &'c Campaign, start: RunStart) -> Cow<'c, Campaign> {
        // Scheduled occurrences begin new runs, so the deadline of the unfinished run does not apply to them.
        match self.began_at.filter(|_| matches!(start, RunStart::At(_))) {
            Some(began_at) => Cow::Owned(campaign.with_fixed_deadline(began_at)),
            None => Cow::Borrowed(campaign),
        }
    }

    /// Collects findings, mostly warnings, for example about landlines, empty values, expensive characters, misleading
    /// time-zone names, and limits that are reached before the last message. If the run can never send, one of the
    /// findings is an error.
    pub fn warnings(&self, inputs: &Inputs, start: RunStart) -> Vec<Finding> {
        let mut findings = self.warnings_for_rows(inputs, &self.survey.planned_rows(), start);
        if matches!(start, RunStart::At(_)) {
            // Nothing is sent now, so the result of a check must not depend on the hour.
            let depends_on_hour = |finding: &Finding| *finding.rule == NIGHT;
            let soften = |finding: Finding| if depends_on_hour(&finding) { finding.into_note() } else { finding };
            findings = findings.into_iter().map(soften).collect();
        }
        findings
    }

    /// Collects warnings, as [`Self::warnings`] does, but for messages to these rows only.
    pub fn warnings_for_rows(&self, inputs: &Inputs, rows: &RoaringBitmap, start: RunStart) -> Vec<Finding> {
        let mut findings = self.file_findings.clone();
        findings.extend(check_changed_rows(&self.survey));
        findings.extend(check_opted_out_rows(&self.survey, &inputs.campaign.brief));
        findings.extend(check_consent_dates(&self.survey, &inputs.campaign));
        findings.extend(check_unused_consents(&self.survey, &inputs.campaign));
        findings.extend(check_differing_duplicates(&self.survey, &inputs.campaign));
        findings.extend(check_embedded_rows(&self.survey));
        findings.extend(check_landlines(&self.survey));
        findings.extend(check_empty_cells(&self.survey, &inputs.campaign.places));
        findings.extend(check_costly_characters(&self.survey, &inputs.campaign.brief, inputs.destination.profile()));
        findings.extend(check_row_anomalies(&self.survey));
        findings.extend(check_new_countries(&self.survey, &self.earlier.new, rows));
        findings.extend(check_unknown_zones(&self.survey));
        findings.extend(check_inverted_zones(&inputs.campaign, &self.survey, start.now()));
        let profile = inputs.destination.profile();
        findings.extend(check_limits(&inputs.campaign, profile, &self.survey, rows, self.spent));
        findings.extend(check_campaign_zone_fallback(&inputs.campaign, profile, &self.survey, rows));
        findings.extend(check_night(&inputs.campaign, profile, &self.survey, rows, start));
        let campaign = self.campaign_with_deadline(&inputs.campaign, start);
        let timing = check_timing(&campaign, profile, Some((&self.survey, rows.len())), start);
        // The check covers the time zones of all planned rows, so its errors might not apply to a part of them.
        let is_part = rows.len() < self.survey.count_planned();
        findings.extend(timing.into_iter().filter(|finding| !is_part || !finding.is_error()));
        findings
    }
}

/// Surveys all recipients for a new run on a blocking thread; if there is a ledger, its exclusions apply.
///
/// # Errors
/// If the inputs are wrong, or the ledger cannot be read.
pub async fn survey_list(
    inputs: &Arc<Inputs>,
    ledger: Option<&dyn Ledger>,
    observer: &RunObserver,
) -> Result<ListSurvey, Error> {
    survey_list_for_run(inputs, ledger, None, observer).await
}

/// Surveys all recipients as [`survey_list`] does, but for the unfinished run `resumed` if there is one.
pub(super) async fn survey_list_for_run(
    inputs: &Arc<Inputs>,
    ledger: Option<&dyn Ledger>,
    resumed: Option<&Run>,
    observer: &RunObserver,
) -> Result<ListSurvey, Error> {
    let shared = Arc::clone(inputs);
    let edition = run_blocking(move || Ok::<_, Error>(shared.compile_campaign()?.edition)).await??;
    if inputs.destination.is_live()
        && let Some(sign) = find_unknown_results(ledger, &inputs.campaign.results_file()).await?
    {
        observer(RunEvent::Contradicted(sign));
    }
    let Some(ledger) = ledger else {
        // Without a ledger, `find_excluded_numbers` refuses a campaign with `exclude`.
        let excluded = SurveyExclusions {
            excluded: find_excluded_numbers(None, inputs, observer).await?,
            capped: find_capped_numbers(None, inputs).await?,
            ..SurveyExclusions::default()
        };
        let listed = Arc::clone(inputs);
        let survey = run_blocking(move || listed.run_survey(&excluded, None)).await??;
        return survey.with_earlier_countries(None, inputs, &NumberSet::default()).await;
    };
    let edition = resumed.map_or(edition, |run| run.edition.clone());
    let sent = find_sent_recipients(ledger, inputs, &edition).await?;
    survey_unsent(inputs, ledger, &sent, resumed, observer).await
}

/// Surveys the recipients for a new run of an edition whose earlier messages are `sent`, or for the unfinished run
/// `resumed` of this edition.
pub(super) async fn survey_unsent(
    inputs: &Arc<Inputs>,
    ledger: &dyn Ledger,
    sent: &SentRecipients,
    resumed: Option<&Run>,
    observer: &RunObserver,
) -> Result<ListSurvey, Error> {
    let excluded = match resumed {
        Some(run) => find_settled_exclusions(ledger, inputs, run).await?,
        None => {
            let cancelled = sent.find_cancelled(ledger).await?.numbers;
            sent.find_exclusions(ledger, inputs, cancelled, None, observer).await?.survey
        }
    };
    let listed = Arc::clone(inputs);
    let survey = run_blocking(move || listed.run_survey(&excluded, None)).await??;
    let mut survey = survey.with_spending(ledger, inputs, &sent.edition).await?;
    survey.began_at = resumed.map(|run| run.began_at);
    survey.with_earlier_countries(Some(ledger), inputs, &sent.numbers).await
}

/// The maximum number of sample messages in a proposal.
const MAX_SAMPLES: usize = 5;

/// The message of one row as an example.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The row.
    pub row: Row,
    /// The recipient.
    pub phone: Phone,
    /// The name of its variant. `None` without variants.
    pub variant: Option<String>,
    /// The content, rendered with the values of the row.
    pub content: MessageContent<Cow<'static, str>>,
}

/// The messages of an existing run that this invocation would send.
#[derive(Debug)]
pub struct RestOfRun {
    /// The campaign with the run's list.
    pub inputs: Arc<Inputs>,
    /// The survey of the list.
    pub survey: ListSurvey,
    /// The rows of these messages.
    pub rows: RoaringBitmap,
    /// Sample messages.
    pub samples: Vec<Sample>,
}

impl ListSurvey {
    /// Picks at most five sample messages to these rows, to show each variant and each outcome of a condition.
    ///
    /// # Errors
    /// If the list cannot be read again.
    pub fn pick_samples(&self, inputs: &Inputs, rows: &RoaringBitmap) -> Result<Vec<Sample>, Error> {
        let chosen = self.survey.shapes.pick_samples(rows, MAX_SAMPLES);
        let numbers: Vec<String> = chosen.iter().map(Row::to_string).collect();
        let Ok(chosen) = numbers.join(",").parse::<RowSet>() else { return Ok(Vec::new()) };
        let arms = inputs.campaign.brief.list_arms();
        let mut samples = Vec::new();
        let add = |row, preview: RowPreview<'_>| {
            if let RowPreview::Message { phone, content } = preview {
                let arm = self.survey.shapes.find_arm(row).and_then(|arm| arms.get(arm));
                let variant = arm.and_then(|arm| arm.name).map(str::to_owned);
                samples.push(Sample { row, phone, variant, content: content.to_owned_texts() });
            }
        };
        let previewed =
            preview_rows(&mut inputs.compile_campaign()?, &self.survey.left_out, Some(&chosen), numbers.len(), add);
        previewed.map_err(|finding| Error::Findings(vec![*finding]))?;
        Ok(samples)
    }
}

impl Session {
    /// Surveys the list of a run, and samples the rows that `choose` selects for this invocation. Recipients who opted
    /// out or reached a cap are skipped.
    pub(super) async fn survey_rest(
        &self,
        run: &Run,
        choose: impl FnOnce(&Survey) -> Result<RoaringBitmap, Error>,
    ) -> Result<RestOfRun, Error> {
        let inputs = self.load_inputs_with_stored_list(run).await?;
        let ledger = self.adapters.ledger.as_ref();
        let opted_out = find_opted_out_numbers(ledger, &inputs).await?.numbers;
        let sent_by_day = count_sent_by_day(ledger, &inputs, &run.edition).await?;
        let capped = find_capped_numbers(Some(ledger), &inputs).await?;
        let excluded = SurveyExclusions { opted_out, capped, sent_by_day, ..SurveyExclusions::default() };
        let listed = Arc::clone(&inputs);
        let survey = run_blocking(move || listed.run_survey(&excluded, None)).await??;
        let survey = survey.with_spending(ledger, &inputs, &run.edition).await?;
        let rows = choose(&survey.survey)?;
        let samples = survey.pick_samples(&inputs, &rows)?;
        Ok(RestOfRun { inputs, survey, rows, samples })
    }
}

/// The header of a list, and a hash of each of its records in ascending order.
struct ListContent {
    headers: Vec<String>,
    records: Vec<u64>,
}

/// An opened list with the campaign that defines its columns.
pub(super) struct CampaignRecords<'b, R> {
    pub(super) list: io::Result<R>,
    pub(super) brief: &'b CampaignBrief,
}

/// Describes how a list changed.
pub(super) fn describe_list_changes(
    before: CampaignRecords<'_, impl Read>,
    current: CampaignRecords<'_, impl Read>,
) -> String {
    let (Some(before), Some(current)) = (ListContent::read(before), ListContent::read(current)) else {
        return "different content".to_owned();
    };
    if before.headers != current.headers {
        return "different columns".to_owned();
    }
    match current.count_differences(&before) {
        (0, 0) => "rows in a different order or format".to_owned(),
        (added, 0) => format!("{} added", format_count(added, "row")),
        (0, removed) => format!("{} removed", format_count(removed, "row")),
        (added, removed) => format!("{} added, {} removed", format_count(added, "row"), format_thousands(removed)),
    }
}

/// Whether two lists differ only in these rows, whose recipients were forgotten in the first list.
pub(super) fn lists_match_except(
    before: CampaignRecords<'_, impl Read>,
    current: CampaignRecords<'_, impl Read>,
    forgotten: &[u32],
) -> bool {
    let (Some(before), Some(current)) = (read_hashed_rows(before), read_hashed_rows(current)) else { return false };
    let ((old_headers, old_rows), (headers, rows)) = (before, current);
    let is_match = |((old_row, old_hash), (row, hash)): (&HashedRow, &HashedRow)| {
        old_row == row && (old_hash == hash || forgotten.contains(row))
    };
    old_headers == headers && old_rows.len() == rows.len() && old_rows.iter().zip(&rows).all(is_match)
}

/// A row, and a hash of its record.
type HashedRow = (u32, u64);

/// Reads the header of a list and hashes the records, in order. Returns `None` if the list cannot be read completely.
fn read_hashed_rows(records: CampaignRecords<'_, impl Read>) -> Option<(Vec<String>, Vec<HashedRow>)> {
    let CampaignRecords { list, brief } = records;
    let list = BufReader::with_capacity(BUFFER_BYTES, list.ok()?);
    // Problems with the list are reported elsewhere.
    let mut reader = RecipientReader::open(list, Path::new(""), &reader_settings(brief)).ok()?;
    let headers = reader.header().headers().to_vec();
    let (mut records, mut chunk) = (Vec::new(), Chunk::new());
    while reader.read_chunk(&mut chunk).ok()? {
        records.extend(chunk.iter().map(|record| {
            let mut hasher = FxHasher::default();
            record.fields.iter().for_each(|cell| cell.hash(&mut hasher));
            (record.row.get(), hasher.finish())
        }));
    }
    Some((headers, records))
}

impl ListContent {
    /// Reads a list to compare it; returns `None` if the list cannot be read completely.
    fn read(records: CampaignRecords<'_, impl Read>) -> Option<Self> {
        let (headers, records) = read_hashed_rows(records)?;
        let mut records: Vec<u64> = records.into_iter().map(|(_, hash)| hash).collect();
        records.sort_unstable();
        Some(Self { headers, records })
    }

    /// Counts the records that only this list has, and the records that only `other` has. Each duplicate counts.
    fn count_differences(&self, other: &Self) -> (u64, u64) {
        let (mut added, mut removed) = (0, 0);
        let (mut own_records, mut other_records) = (self.records.iter().peekable(), other.records.iter().peekable());
        loop {
            match (own_records.peek(), other_records.peek()) {
                (None, None) => return (added, removed),
                (Some(own), Some(foreign)) if own == foreign => {
                    own_records.next();
                    other_records.next();
                }
                (Some(own), foreign) if foreign.is_none_or(|foreign| own < foreign) => {
                    added += 1;
                    own_records.next();
                }
                _ => {
                    removed += 1;
                    other_records.next();
                }
            }
        }
    }
}

/// The ledger's information about the countries of an account. The default is an account without runs.
#[derive(Clone, Debug, Default)]
pub struct EarlierCountries {
    /// The countries of the list outside `home` that no earlier run of the account reached.
    pub new: Vec<Region>,
    /// The number of recipients outside `home` who already have a message of the edition.
    pub sent_abroad: u64,
}

impl ListSurvey {
    /// Adds what the ledger knows about the countries outside `home`; `sent` contains the numbers with a message of the
    /// edition.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub(super) async fn with_earlier_countries(
        mut self,
        ledger: Option<&dyn Ledger>,
        inputs: &Inputs,
        sent: &NumberSet,
    ) -> Result<Self, Error> {
        let profile = inputs.destination.profile();
        if let Some((profile, home)) = profile.and_then(|profile| Some((profile, profile.home.as_ref()?))) {
            if profile.abroad_limit.is_some() {
                self.earlier.sent_abroad = count_abroad(sent.clone(), home.clone()).await?;
            }
            if inputs.campaign.brief.effective_home(Some(profile)).is_some() {
                let abroad = self.survey.countries.count_abroad(home, &self.survey.planned_rows());
                let abroad = abroad.into_iter().filter_map(|count| count.country).collect();
                self.earlier.new = match ledger {
                    Some(ledger) => find_new_countries(ledger, inputs, abroad).await?,
                    None => abroad,
                };
            }
        }
        Ok(self)
    }

    /// Adds what the runs of an edition have used of its limits.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub(super) async fn with_spending(
        mut self,
        ledger: &dyn Ledger,
        inputs: &Inputs,
        edition: &str,
    ) -> Result<Self, Error> {
        let (campaign, loopback) = (&inputs.campaign, inputs.destination.is_loopback());
        if campaign.limits != Budget::default() && inputs.destination.is_live() {
            let scope = BudgetScope { campaign: &campaign.brief.name, edition, loopback };
            let mut runs = ledger.list_runs(RunFilter::for_campaign(scope.campaign)).await?;
            runs.retain(|run| scope.includes(run));
            self.spent = load_spending(ledger, &runs).await?.unwrap_or_default();
        }
        Ok(self)
    }

    /// Counts the recipients outside `home` who already have a message of the edition or would get one.
    pub fn count_abroad(&self, profile: &Profile) -> u64 {
        let Some(home) = &profile.home else { return 0 };
        let planned = self.survey.countries.count_abroad(home, &self.survey.planned_rows());
        self.earlier.sent_abroad + sum_recipients(&planned)
    }
}

/// Counts the phone numbers outside these countries.
async fn count_abroad(numbers: NumberSet, home: CountrySet) -> Result<u64, Error> {
    run_blocking(move || {
        let mut finder = CountryFinder::default();
        numbers.phones().filter(|phone| !home.contains(finder.find_country(*phone))).count() as u64
    })
    .await
}

/// Finds which of these countries no run of the account has reached yet. The latest runs are read first.
async fn find_new_countries(
    ledger: &dyn Ledger,
    inputs: &Inputs,
    mut countries: Vec<Region>,
) -> Result<Vec<Region>, Error> {
    if countries.is_empty() {
        return Ok(countries);
    }
    let runs = ledger.list_runs(RunFilter { live: true, ..RunFilter::all() }).await?;
    let (account, loopback) = (inputs.destination.account_name(), inputs.destination.is_loopback());
    let account_runs = runs.iter().rev().filter(|run| run.account == account && run.suppression.loopback == loopback);
    for run in account_runs {
        let numbers = ledger.load_numbers(NumberFilter::Sent(&[run.key])).await?;
        countries = run_blocking(move || {
            let (mut finder, mut remaining) = (CountryFinder::default(), countries);
            for phone in numbers.phones() {
                if remaining.is_empty() {
                    break;
                }
                let country = finder.find_country(phone);
                remaining.retain(|new| Some(*new) != country);
            }
            remaining
        })
        .await?;
        if countries.is_empty() {
            break;
        }
    }
    Ok(countries)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use campaign_manifest::{CampaignDay, load_campaign};

    /// The country and the alphabet that a campaign suggests for its list.
    fn find_hints(keys: &str, recipients: &str, message: &str) -> (Option<String>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sale.yaml");
        let yaml = format!(
            "{keys}recipients: {{ file: sale.csv{recipients} }}\nchannels:\n\
             - sms: {{ signature: Co, message: {message} }}\n"
        );
        fs::write(&path, &yaml).unwrap();
        let loaded = load_campaign(&path, CampaignDay::Of(Timestamp::UNIX_EPOCH));
        let campaign = loaded.value.or(loaded.draft).unwrap_or_else(|| panic!("{yaml}: {:?}", loaded.findings));
        let hints = find_encoding_hints(&campaign.brief);
        (hints.region.or(hints.country).map(|country| country.to_string()), hints.is_cyrillic)
    }

    #[test]
    fn campaign_suggests_the_country_and_alphabet_of_its_list() {
        for (keys, recipients, message, country, is_cyrillic) in [
            ("", "", "Hi", None, false),
            ("language: en\n", "", "Hi", None, false),
            ("language: uk\ntimezone: Europe/Warsaw\n", "", "Hi", Some("UA"), false),
            ("timezone: Europe/Kyiv\ncountries: [PL]\n", "", "Hi", Some("UA"), false),
            ("timezone: Europe/Kiev\n", "", "Hi", Some("UA"), false),
            ("countries: [UA]\n", "", "Hi", Some("UA"), false),
            ("countries: [UA, PL]\n", "", "Hi", None, false),
            ("language: uk\n", ", region: PL", "Hi", Some("PL"), false),
            ("", "", "Привіт", None, true),
            ("vars: { shop: Оленка }\n", "", "Hi", None, true),
            ("", ", where: 'unsubscribed != \"так\"'", "Hi", None, true),
            ("", ", columns: { phone: Телефон }", "Hi", None, true),
        ] {
            let expected = (country.map(str::to_owned), is_cyrillic);
            assert_eq!(find_hints(keys, recipients, message), expected, "{keys}{recipients}{message}");
        }
    }
}
