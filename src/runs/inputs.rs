//! Loading what a campaign file names: profile, texts, recipients.

use std::io::{BufReader, Read, Sink, Write};
use std::path::Path;
use std::sync::Arc;

use secrecy::SecretString;

use super::decoded_list::DecodedList;
use super::suppress_files::{FileOptOuts, read_suppressed};
use super::{CampaignList, Error, ListSurvey, Profiles, tables};
use crate::audience::{DecodedText, LAST_HEADER_ROW, ListPlace};
use crate::calendar::Occurrence;
use crate::check::{
    CompiledCampaign, PrepareError, Survey, SurveyExclusions, SurveyInputs, Tee, TextInputs, check_against_profile,
    check_campaign_notices, check_texts, check_until_over, find_text_problems, prepare_campaign, render_edition,
    survey_recipients,
};
use crate::domain::{MessageContent, NamedTemplate, Row};
use crate::finding::{Finding, Rule, rules};
use crate::ledger::{NumberSet, RowState};
use crate::manifest::{Campaign, CampaignBrief, CampaignDay, Destination, LoadedFile, PathScope, Profile};
use crate::report::{MAX_SHEET_ROWS, is_workbook};

/// How much of a list is read at once.
const BUFFER_BYTES: usize = 1 << 16;

/// A campaign with everything its files say.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The campaign.
    pub campaign: Campaign,
    /// Its list, as far as it is at hand.
    pub list: CampaignList,
    decoded: Arc<DecodedList>,
    /// Where it goes.
    pub destination: Destination,
    /// What is worth knowing and refuses nothing.
    pub warnings: Vec<Finding>,
    /// The date that texts see.
    pub today: String,
    /// The gateway that the campaign itself names, whatever was named instead.
    pub own_gateway: String,
}

/// The texts that others include or extend, by name.
pub(super) type Includes = Vec<(String, String)>;

/// The API key of a profile.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn read_api_key(profile: &Profile) -> Result<SecretString, Error> {
    profile.api_key.read_secret("the API key (`api_key`)", &|name| std::env::var(name).ok()).map_err(Error::Input)
}

/// Whether a text of a campaign says the date, or one that is included.
pub(super) fn mentions_today(brief: &CampaignBrief, includes: &Includes) -> bool {
    let says = |source: &str| source.contains("today");
    let in_content = |content: &MessageContent<NamedTemplate>| {
        content.try_map_texts(|text| if says(&text.source) { Err(()) } else { Ok(()) }).is_err()
    };
    brief.all_contents().any(in_content) || includes.iter().any(|(_, source)| says(source))
}

/// The profile of a campaign that is sent for real, or why there is none. The findings include keys of the campaign that exceed
/// the profile.
fn find_live_profile(
    campaign: &Campaign,
    named: Option<&str>,
    profiles: &Profiles,
    findings: &mut Vec<Finding>,
) -> Result<Result<Profile, Vec<Finding>>, Error> {
    let gateways = match profiles.load(Some(campaign.file.as_path())) {
        Ok(gateways) => gateways,
        Err(Error::Findings(problems)) => return Ok(Err(problems)),
        Err(error) => return Err(error),
    };
    let place = campaign.places.locate_key("gateway").filter(|_| named.is_none());
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
    findings.extend(gateways.collect_warnings());
    Ok(Ok(profile))
}

impl Inputs {
    /// Loads a campaign file for a day, and the profile of its gateway or of the one named instead.
    ///
    /// # Errors
    /// With everything that is wrong with them.
    pub fn load(file: &Path, gateway: Option<&str>, profiles: &Profiles, day: CampaignDay) -> Result<Self, Error> {
        Self::load_with_reach(file, gateway, profiles, (day, PathScope::Anywhere))
    }

    /// The same of a file whose paths have this reach, as has its own.
    ///
    /// # Errors
    /// With everything that is wrong with them.
    pub fn load_with_reach(
        file: &Path,
        gateway: Option<&str>,
        profiles: &Profiles,
        (day, reach): (CampaignDay, PathScope),
    ) -> Result<Self, Error> {
        let LoadedFile { value, draft, mut findings } = tables::load_with_tables(file, day, reach);
        // The readable parts of a file with errors are checked too, so that all mistakes are reported at once.
        let mut is_whole = value.is_some();
        let Some(campaign) = value.or(draft) else { return Err(Error::Findings(findings)) };
        let own_gateway = campaign.brief.gateway.clone();
        let campaign = match gateway {
            Some(gateway) => campaign.with_gateway(gateway),
            None => campaign,
        };
        findings.extend(check_campaign_notices(&campaign));
        findings.extend(check_texts(&campaign));
        let mut is_unknown = false;
        let destination = if campaign.brief.is_rehearsal() {
            Destination::Rehearsal
        } else {
            match find_live_profile(&campaign, gateway, profiles, &mut findings)? {
                Ok(profile) => Destination::Live(Box::new(profile)),
                Err(problems) => {
                    is_unknown = problems.iter().any(|finding| *finding.rule == rules::UNKNOWN_GATEWAY);
                    findings.extend(problems);
                    // Nothing is sent elsewhere if the gateway is unknown.
                    is_whole = false;
                    Destination::Rehearsal
                }
            }
        };
        let (today, list) = (campaign.today.to_string(), CampaignList::for_recipients(&campaign.recipients));
        let inputs =
            Self { campaign, list, decoded: Arc::default(), destination, warnings: findings, today, own_gateway };
        if is_whole && !inputs.warnings.iter().any(Finding::is_error) {
            return Ok(inputs);
        }
        let over = match day {
            CampaignDay::Of(now) => check_until_over(&inputs.campaign, now),
            CampaignDay::Is(_) | CampaignDay::Coming(_) => None,
        };
        let others = inputs.find_other_problems(!matches!(day, CampaignDay::Coming(_)));
        let findings = [inputs.warnings, over.into_iter().collect(), others].concat();
        let (name, file) = (inputs.campaign.brief.gateway, inputs.campaign.file);
        Err(if is_unknown { Error::UnknownGateway { name, file, findings } } else { Error::Findings(findings) })
    }

    /// The same as an occurrence of the campaign's schedule sends it: with its own edition and results.
    #[must_use]
    pub fn for_occurrence(self, occurrence: &Occurrence) -> Self {
        let campaign = self.campaign.with_edition(&occurrence.format_nominal());
        let edition = render_edition(&campaign.brief, &self.today).unwrap_or_else(|| occurrence.format_nominal());
        Self { campaign: campaign.with_results_for_edition(&edition), ..self }
    }

    /// The same without the program that the campaign itself starts to notify someone. That of the profile stays.
    #[must_use]
    pub fn without_notify_command(mut self) -> Self {
        self.campaign = self.campaign.without_notify_command();
        self
    }

    /// The same with its list at hand.
    pub(super) fn with_list(&self, list: CampaignList) -> Self {
        Self { list, decoded: Arc::default(), ..self.clone() }
    }

    /// Opens the recipients and compiles the texts.
    ///
    /// # Errors
    /// With everything that is wrong with them.
    pub fn compile_campaign(&self) -> Result<CompiledCampaign<DecodedText>, Error> {
        let input = self.open_list()?;
        self.compile_list(input)
    }

    /// Looks at all recipients, of whom these are left out, and copies them where somebody wants a copy.
    ///
    /// # Errors
    /// When the list cannot be read or copied, or with everything that makes it impossible to send.
    pub fn survey_recipients(
        &self,
        excluded: &SurveyExclusions,
        copy: Option<Box<dyn Write + Send>>,
    ) -> Result<ListSurvey, Error> {
        let FileOptOuts { numbers, warnings } =
            read_suppressed(&self.campaign, self.destination.profile()).map_err(Error::Findings)?;
        let mut opted_out = excluded.opted_out.clone();
        opted_out |= NumberSet::new(numbers, None);
        let excluded = SurveyExclusions { opted_out, ..excluded.clone() };
        let list = self.open_list()?;
        let written = Arc::clone(list.format());
        let mut tee = Tee::new(BufReader::with_capacity(BUFFER_BYTES, list), copy);
        let surveyed = self
            .survey_through(&mut tee, &excluded)
            .and_then(|surveyed| Ok((surveyed, tee.finish().map_err(|error| self.unreadable_error(&error))?)));
        // A copy that fails ends the reading too, and the list is not to blame.
        if let Some(error) = tee.copy_failure() {
            return Err(Error::Storage(error.to_string()));
        }
        let ((survey, includes, delimiter), sha256) = surveyed?;
        if excluded.rows.as_ref().is_some_and(|rows| rows.sha256 != sha256) {
            return Err(self.changed_error());
        }
        self.refuse_full_sheet(survey.last_row)?;
        let form = written.describe(delimiter);
        self.decoded.set_form(form.clone());
        let mut of_files = [written.warnings(), &warnings].concat();
        if has_invalid_row_on_top(&survey) {
            of_files.extend(self.find_title_row(&rules::RECIPIENTS_TITLE));
        }
        Ok(ListSurvey { survey, includes, sha256, form, file_findings: of_files })
    }

    /// An error that the list changed a moment ago, so it is unknown which of its rows have a message.
    pub(super) fn changed_error(&self) -> Error {
        Error::Input(format!(
            "the list `{}` changed while it was being read; run the command again",
            self.campaign.recipients
        ))
    }

    /// Refuses a list whose results no sheet of a workbook holds, before anything is sent.
    fn refuse_full_sheet(&self, last: Row) -> Result<(), Error> {
        if last.get() <= MAX_SHEET_ROWS || !is_workbook(self.campaign.results_file().path()) {
            return Ok(());
        }
        let message = "the list has more rows than fit in a worksheet (1,048,575 below the header)";
        let finding = Finding::new(&rules::RESULTS_OVERWRITE, message).help("name a `.csv` file under `results`");
        Err(Error::Findings(vec![finding.at(self.campaign.places.locate_key("results"))]))
    }

    /// How the list was found to be written, where it was read and is no CSV in UTF-8.
    #[must_use]
    pub fn list_form(&self) -> Option<String> {
        self.decoded.form()
    }

    /// The texts that others include, and the hash of the recipients: what tells a changed input.
    pub(super) fn compute_fingerprint(&self) -> Result<(Includes, String), Error> {
        let includes = self.compile_campaign()?.recipe.list_includes().to_vec();
        let hashed = Tee::new(self.open_list()?, None::<Sink>).finish();
        let sha256 = hashed.map_err(|error| self.unreadable_error(&error))?;
        Ok((includes, sha256))
    }

    /// What the list says of everybody, the texts that others include, and what stands between cells.
    fn survey_through(
        &self,
        list: impl Read + Send,
        excluded: &SurveyExclusions,
    ) -> Result<(Survey, Includes, u8), Error> {
        let mut prepared = self.compile_list(list)?;
        let by_country = self.campaign.uses_recipient_zones(self.destination.profile());
        let terms =
            SurveyInputs { brief: &self.campaign.brief, excluded, zones: self.campaign.zone_column(), by_country };
        let survey = survey_recipients(&mut prepared, &terms)
            .map_err(|findings| Error::Findings(self.locate_window_findings(findings)))?;
        Ok((survey, prepared.recipe.list_includes().to_vec(), prepared.reader.delimiter()))
    }

    /// The findings of a survey. If the list lacks the column of zones, the campaign file is wrong.
    pub(super) fn locate_window_findings(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        for finding in findings.iter_mut().filter(|finding| *finding.rule == rules::WINDOW) {
            finding.place = self.campaign.places.locate_key("delivery.window.zone");
        }
        findings
    }

    pub(super) fn unreadable_error(&self, error: &std::io::Error) -> Error {
        Error::Input(format!("cannot read the list `{}`: {error}", self.campaign.recipients))
    }

    /// The list; where it cannot be opened, the texts are judged all the same, so that mending one shows no other.
    pub(super) fn open_list(&self) -> Result<DecodedText, Error> {
        self.decoded.open(&self.list, &self.campaign).map_err(|finding| {
            let known = if self.list.is_unfetched() { self.warnings.clone() } else { Vec::new() };
            Error::Findings([known, vec![finding], self.find_text_problems()].concat())
        })
    }

    /// Problems of the texts that do not depend on the columns of the list.
    pub(super) fn find_text_problems(&self) -> Vec<Finding> {
        self.with_texts(|texts| find_text_problems(&self.campaign.brief, texts, &self.today))
    }

    pub(super) fn compile_list<R: Read>(&self, input: R) -> Result<CompiledCampaign<R>, Error> {
        let prepared = self.compile_brief(&self.campaign.brief, input);
        prepared.map_err(|unprepared| Error::Findings(self.add_likely_place(self.add_row_problems(unprepared))))
    }

    /// The same of another brief.
    pub(super) fn compile_brief<R: Read>(
        &self,
        brief: &CampaignBrief,
        input: R,
    ) -> Result<CompiledCampaign<R>, PrepareError> {
        let list = (input, self.list.place());
        self.with_texts(|texts| prepare_campaign(brief, list, texts, &self.today))
    }

    /// The list, wherever it comes from.
    pub(super) fn decode_list(&self) -> Result<DecodedText, Finding> {
        self.decoded.open(&self.list, &self.campaign)
    }

    /// The findings, with the probable sheet or row of the list if its columns were not found.
    fn add_likely_place(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        let of_columns = [
            &rules::RECIPIENTS_NO_HEADER,
            &rules::RECIPIENTS_PHONE_COLUMN,
            &rules::RECIPIENTS_UNKNOWN_COLUMN,
            &rules::RECIPIENTS_EMPTY,
        ];
        let (form, region) = (&self.campaign.form, self.campaign.brief.region);
        // Names of another row's cells prove nothing about the texts.
        let of_names = [&rules::UNKNOWN_VARIABLE, &rules::UNKNOWN_COLUMN];
        match findings.first_mut() {
            Some(first) if of_columns.contains(&first.rule) => {
                let Some(place) = self.list.likely_place(form, region) else { return findings };
                add_advice(first, &place);
                // They prove nothing about the other columns either.
                let first = first.clone();
                findings.retain(|finding| !of_names.contains(&finding.rule) && !of_columns.contains(&finding.rule));
                findings.insert(0, first);
            }
            Some(first) if of_names.contains(&first.rule) => {
                let Some(title) = self.find_title_row(&rules::RECIPIENTS_NO_HEADER) else { return findings };
                findings.retain(|finding| !of_names.contains(&finding.rule));
                findings.insert(0, title);
            }
            _ => {}
        }
        findings
    }

    /// A finding that the row read as headers looks like a title, because a lower row has a phone header.
    pub(super) fn find_title_row(&self, rule: &'static Rule) -> Option<Finding> {
        let Campaign { form, brief, .. } = &self.campaign;
        if form.header_row.is_some() {
            return None;
        }
        let place = self.list.likely_place(form, brief.region)?;
        let is_below = place.sheet.is_none() && place.has_phone_header();
        let mut title = is_below.then(|| place.title_finding(rule, None))?;
        add_advice(&mut title, &place);
        Some(title)
    }

    fn with_texts<T>(&self, look: impl FnOnce(TextInputs<'_>) -> T) -> T {
        let campaign = &self.campaign;
        let mut load = |name: &str| campaign.folders.read_text(name).map(|(_, text)| text);
        look(TextInputs { places: Some(&campaign.places), trims_cells: true, load: &mut load })
    }
}

/// Whether a row without a number is at a place where the headers of a list can be.
fn has_invalid_row_on_top(survey: &Survey) -> bool {
    let is_on_top = |row: u32| row <= LAST_HEADER_ROW;
    survey.left_out.sets().any(|(state, _, rows)| state == RowState::Invalid && rows.min().is_some_and(is_on_top))
}

/// Adds the keys that make the list readable to a finding.
fn add_advice(finding: &mut Finding, place: &ListPlace) {
    let sheet = place.sheet.as_ref().map(|sheet| format!("`sheet: {sheet:?}`"));
    let has_row = place.sheet.is_none() || place.header_row > 1;
    let row = has_row.then(|| format!("`header_row: {}`", place.header_row));
    let keys: Vec<String> = sheet.into_iter().chain(row).collect();
    place.add_advice(finding, &format!("write {} under `recipients`", keys.join(" and ")));
}
