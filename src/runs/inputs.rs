//! Loading what a campaign file names: profile, texts, recipients.

use std::io::{BufReader, Read, Sink, Write};
use std::path::Path;
use std::sync::Arc;

use secrecy::SecretString;

use super::decoded_list::DecodedList;
use super::suppress_files::{Suppressed, suppressed};
use super::{Error, List, ListSurvey, Profiles, tables};
use crate::audience::{Decoded, LAST_HEADER_ROW, ListPlace};
use crate::calendar::Occurrence;
use crate::check::{
    CompiledCampaign, Excluded, Survey, Tee, Terms, Texts, Unprepared, against_profile, against_texts, edition,
    prepare, survey, text_problems, unfilled_notice, until_over,
};
use crate::domain::{Content, Row, Text};
use crate::finding::{Finding, Rule, rules};
use crate::ledger::{NumberSet, State};
use crate::manifest::{Brief, Campaign, Day, Destination, LoadedFile, Profile, Reach};
use crate::report::{MOST_ROWS, is_workbook};

/// How much of a list is read at once.
const BUFFER: usize = 1 << 16;

/// A campaign with everything its files say.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The campaign.
    pub campaign: Campaign,
    /// Its list, as far as it is at hand.
    pub list: List,
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
pub fn key_of(profile: &Profile) -> Result<SecretString, Error> {
    profile.api_key.read("the API key (`api_key`)", &|name| std::env::var(name).ok()).map_err(Error::Input)
}

/// Whether a text of a campaign says the date, or one that is included.
pub(super) fn mentions_today(brief: &Brief, includes: &Includes) -> bool {
    let says = |source: &str| source.contains("today");
    let in_content =
        |content: &Content<Text>| content.try_map(|text| if says(&text.source) { Err(()) } else { Ok(()) }).is_err();
    brief.contents().any(in_content) || includes.iter().any(|(_, source)| says(source))
}

/// The profile of a campaign that is sent for real, or why there is none. The findings include keys of the campaign that exceed
/// the profile.
fn live(
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
    let place = campaign.places.of_key("gateway").filter(|_| named.is_none());
    let profile = match gateways.profile(&campaign.brief.gateway) {
        Ok(profile) => profile.clone(),
        Err(mut problems) => {
            problems.iter_mut().filter(|finding| finding.place.is_none()).for_each(|finding| {
                finding.place.clone_from(&place);
            });
            return Ok(Err(problems));
        }
    };
    findings.extend(against_profile(campaign, &profile));
    findings.extend(gateways.warnings());
    Ok(Ok(profile))
}

impl Inputs {
    /// Loads a campaign file for a day, and the profile of its gateway or of the one named instead.
    ///
    /// # Errors
    /// With everything that is wrong with them.
    pub fn load(file: &Path, gateway: Option<&str>, profiles: &Profiles, day: Day) -> Result<Self, Error> {
        Self::load_within(file, gateway, profiles, (day, Reach::Anywhere))
    }

    /// The same of a file whose paths have this reach, as has its own.
    ///
    /// # Errors
    /// With everything that is wrong with them.
    pub fn load_within(
        file: &Path,
        gateway: Option<&str>,
        profiles: &Profiles,
        (day, reach): (Day, Reach),
    ) -> Result<Self, Error> {
        let LoadedFile { value, draft, mut findings } = tables::load(file, day, reach);
        // The readable parts of a file with errors are checked too, so that all mistakes are reported at once.
        let mut is_whole = value.is_some();
        let Some(campaign) = value.or(draft) else { return Err(Error::Findings(findings)) };
        let own_gateway = campaign.brief.gateway.clone();
        let campaign = match gateway {
            Some(gateway) => campaign.sent_through(gateway),
            None => campaign,
        };
        findings.extend(unfilled_notice(&campaign));
        findings.extend(against_texts(&campaign));
        let mut is_unknown = false;
        let destination = if campaign.brief.is_rehearsal() {
            Destination::Rehearsal
        } else {
            match live(&campaign, gateway, profiles, &mut findings)? {
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
        let (today, list) = (campaign.today.to_string(), List::of(&campaign.recipients));
        let inputs =
            Self { campaign, list, decoded: Arc::default(), destination, warnings: findings, today, own_gateway };
        if is_whole && !inputs.warnings.iter().any(Finding::is_error) {
            return Ok(inputs);
        }
        let over = match day {
            Day::Of(now) => until_over(&inputs.campaign, now),
            Day::Is(_) | Day::Coming(_) => None,
        };
        let others = inputs.other_problems(!matches!(day, Day::Coming(_)));
        let findings = [inputs.warnings, over.into_iter().collect(), others].concat();
        let (name, file) = (inputs.campaign.brief.gateway, inputs.campaign.file);
        Err(if is_unknown { Error::UnknownGateway { name, file, findings } } else { Error::Findings(findings) })
    }

    /// The same as an occurrence of the campaign's schedule sends it: with its own edition and results.
    #[must_use]
    pub fn of_occurrence(self, occurrence: &Occurrence) -> Self {
        let campaign = self.campaign.of_edition(&occurrence.name());
        let edition = edition(&campaign.brief, &self.today).unwrap_or_else(|| occurrence.name());
        Self { campaign: campaign.with_results_of(&edition), ..self }
    }

    /// The same without the program that the campaign itself starts to notify someone. That of the profile stays.
    #[must_use]
    pub fn without_notify_command(mut self) -> Self {
        self.campaign = self.campaign.without_notify_command();
        self
    }

    /// The same with its list at hand.
    pub(super) fn with_list(&self, list: List) -> Self {
        Self { list, decoded: Arc::default(), ..self.clone() }
    }

    /// Opens the recipients and compiles the texts.
    ///
    /// # Errors
    /// With everything that is wrong with them.
    pub fn open(&self) -> Result<CompiledCampaign<Decoded>, Error> {
        let input = self.list()?;
        self.prepare(input)
    }

    /// Looks at all recipients, of whom these are left out, and copies them where somebody wants a copy.
    ///
    /// # Errors
    /// When the list cannot be read or copied, or with everything that makes it impossible to send.
    pub fn survey(&self, excluded: &Excluded, copy: Option<Box<dyn Write + Send>>) -> Result<ListSurvey, Error> {
        let Suppressed { numbers, warnings } =
            suppressed(&self.campaign, self.destination.profile()).map_err(Error::Findings)?;
        let mut opted_out = excluded.opted_out.clone();
        opted_out |= NumberSet::new(numbers, None);
        let excluded = Excluded { opted_out, ..excluded.clone() };
        let list = self.list()?;
        let written = Arc::clone(list.written());
        let mut tee = Tee::new(BufReader::with_capacity(BUFFER, list), copy);
        let surveyed = self
            .survey_through(&mut tee, &excluded)
            .and_then(|surveyed| Ok((surveyed, tee.finish().map_err(|error| self.unreadable(&error))?)));
        // A copy that fails ends the reading too, and the list is not to blame.
        if let Some(error) = tee.copy_failure() {
            return Err(Error::Storage(error.to_string()));
        }
        let ((survey, includes, delimiter), sha256) = surveyed?;
        if excluded.rows.as_ref().is_some_and(|rows| rows.sha256 != sha256) {
            return Err(self.changed_meanwhile());
        }
        self.refuse_full_sheet(survey.last_row)?;
        let form = written.told(delimiter);
        self.decoded.tell(form.clone());
        let mut of_files = [written.warnings(), &warnings].concat();
        if has_invalid_row_on_top(&survey) {
            of_files.extend(self.title(&rules::RECIPIENTS_TITLE));
        }
        Ok(ListSurvey { survey, includes, sha256, form, of_files })
    }

    /// An error that the list changed a moment ago, so it is unknown which of its rows have a message.
    pub(super) fn changed_meanwhile(&self) -> Error {
        Error::Input(format!(
            "the list `{}` changed while it was being read; run the command again",
            self.campaign.recipients
        ))
    }

    /// Refuses a list whose results no sheet of a workbook holds, before anything is sent.
    fn refuse_full_sheet(&self, last: Row) -> Result<(), Error> {
        if last.get() <= MOST_ROWS || !is_workbook(self.campaign.results_file().path()) {
            return Ok(());
        }
        let message = "the list has more rows than fit in a worksheet (1,048,575 below the header)";
        let finding = Finding::new(&rules::RESULTS_OVERWRITE, message).help("name a `.csv` file under `results`");
        Err(Error::Findings(vec![finding.at(self.campaign.places.of_key("results"))]))
    }

    /// How the list was found to be written, where it was read and is no CSV in UTF-8.
    #[must_use]
    pub fn list_form(&self) -> Option<String> {
        self.decoded.told()
    }

    /// The texts that others include, and the hash of the recipients: what tells a changed input.
    pub(super) fn fingerprint(&self) -> Result<(Includes, String), Error> {
        let includes = self.open()?.recipe.includes().to_vec();
        let hashed = Tee::new(self.list()?, None::<Sink>).finish();
        let sha256 = hashed.map_err(|error| self.unreadable(&error))?;
        Ok((includes, sha256))
    }

    /// What the list says of everybody, the texts that others include, and what stands between cells.
    fn survey_through(&self, list: impl Read + Send, excluded: &Excluded) -> Result<(Survey, Includes, u8), Error> {
        let mut prepared = self.prepare(list)?;
        let by_country = self.campaign.goes_by_country(self.destination.profile());
        let terms = Terms { brief: &self.campaign.brief, excluded, zones: self.campaign.zone_column(), by_country };
        let survey = survey(&mut prepared, &terms).map_err(|findings| Error::Findings(self.at_window(findings)))?;
        Ok((survey, prepared.recipe.includes().to_vec(), prepared.reader.delimiter()))
    }

    /// The findings of a survey. If the list lacks the column of zones, the campaign file is wrong.
    pub(super) fn at_window(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        for finding in findings.iter_mut().filter(|finding| *finding.rule == rules::WINDOW) {
            finding.place = self.campaign.places.of_key("delivery.window.zone");
        }
        findings
    }

    pub(super) fn unreadable(&self, error: &std::io::Error) -> Error {
        Error::Input(format!("cannot read the list `{}`: {error}", self.campaign.recipients))
    }

    /// The list; where it cannot be opened, the texts are judged all the same, so that mending one shows no other.
    pub(super) fn list(&self) -> Result<Decoded, Error> {
        self.decoded.open(&self.list, &self.campaign).map_err(|finding| {
            let known = if self.list.is_unseen() { self.warnings.clone() } else { Vec::new() };
            Error::Findings([known, vec![finding], self.text_problems()].concat())
        })
    }

    /// Problems of the texts that do not depend on the columns of the list.
    pub(super) fn text_problems(&self) -> Vec<Finding> {
        self.with_texts(|texts| text_problems(&self.campaign.brief, texts, &self.today))
    }

    pub(super) fn prepare<R: Read>(&self, input: R) -> Result<CompiledCampaign<R>, Error> {
        let prepared = self.prepare_brief(&self.campaign.brief, input);
        prepared.map_err(|unprepared| Error::Findings(self.with_likely_place(self.with_rows(unprepared))))
    }

    /// The same of another brief.
    pub(super) fn prepare_brief<R: Read>(&self, brief: &Brief, input: R) -> Result<CompiledCampaign<R>, Unprepared> {
        let list = (input, self.list.place());
        self.with_texts(|texts| prepare(brief, list, texts, &self.today))
    }

    /// The list, wherever it comes from.
    pub(super) fn decoded(&self) -> Result<Decoded, Finding> {
        self.decoded.open(&self.list, &self.campaign)
    }

    /// The findings, with the probable sheet or row of the list if its columns were not found.
    fn with_likely_place(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
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
                advise(first, &place);
                // They prove nothing about the other columns either.
                let first = first.clone();
                findings.retain(|finding| !of_names.contains(&finding.rule) && !of_columns.contains(&finding.rule));
                findings.insert(0, first);
            }
            Some(first) if of_names.contains(&first.rule) => {
                let Some(title) = self.title(&rules::RECIPIENTS_NO_HEADER) else { return findings };
                findings.retain(|finding| !of_names.contains(&finding.rule));
                findings.insert(0, title);
            }
            _ => {}
        }
        findings
    }

    /// A finding that the row read as headers looks like a title, because a lower row has a phone header.
    pub(super) fn title(&self, rule: &'static Rule) -> Option<Finding> {
        let Campaign { form, brief, .. } = &self.campaign;
        if form.header_row.is_some() {
            return None;
        }
        let place = self.list.likely_place(form, brief.region)?;
        let is_below = place.sheet.is_none() && place.names_its_numbers();
        let mut title = is_below.then(|| place.title(rule, None))?;
        advise(&mut title, &place);
        Some(title)
    }

    fn with_texts<T>(&self, look: impl FnOnce(Texts<'_>) -> T) -> T {
        let campaign = &self.campaign;
        let mut load = |name: &str| campaign.folders.read(name).map(|(_, text)| text);
        look(Texts { places: Some(&campaign.places), trims_cells: true, load: &mut load })
    }
}

/// Whether a row without a number is at a place where the headers of a list can be.
fn has_invalid_row_on_top(survey: &Survey) -> bool {
    let is_on_top = |row: u32| row <= LAST_HEADER_ROW;
    survey.left_out.sets().any(|(state, _, rows)| state == State::Invalid && rows.min().is_some_and(is_on_top))
}

/// Adds the keys that make the list readable to a finding.
fn advise(finding: &mut Finding, place: &ListPlace) {
    let sheet = place.sheet.as_ref().map(|sheet| format!("`sheet: {sheet:?}`"));
    let has_row = place.sheet.is_none() || place.header_row > 1;
    let row = has_row.then(|| format!("`header_row: {}`", place.header_row));
    let keys: Vec<String> = sheet.into_iter().chain(row).collect();
    place.advise(finding, &format!("write {} under `recipients`", keys.join(" and ")));
}
