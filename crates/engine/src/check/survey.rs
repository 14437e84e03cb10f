//! Survey of a list before the first message, in one pass: numbers, duplicates, messages and counts. Also the reader
//! that hashes the list as it is read, and can copy it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;

use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

use super::column_cells::{EmptyCells, EmptyUses, ListColumn, OptedOutCells, UnmatchedCells, list_columns};
use super::compiled_campaign::{
    AnyList, CompiledCampaign, ComposeFailure, ComposedMessage, Composer, FILTERED, to_finding,
};
use super::consent::{ConsentFinder, Consents};
use super::exclusions::{DUPLICATE, HOLDOUT, SurveyExclusions};
use super::parallel::{count_cores, process_in_order};
use super::row_anomalies::{
    AnomalyDetector, AnomalyRowsByColumn, Comparison, DateComparison, FoundAnomaly, MessageShapes, RepeatedNumbers,
    ReportedComparisons, add_anomalies, hash_message,
};
use super::timing::{LocalZones, RecipientZones};
use super::{RecipientCountries, rules};
use campaign_content::audience::{Chunk, SeenNumbers, ValidNumber, contains_row};
use campaign_content::message::{BranchFinder, EmptyCellFinder, EmptyCellUse, FilledMessage, TextProblem};
use campaign_core::calendar::SentByDay;
use campaign_core::domain::{
    ConsentVerdict, CostlyCharacters, CountryFinder, MessageContent, NO_CONSENT, Phone, Region, Row, Stage,
    find_costly_characters, measure_sms,
};
use campaign_core::finding::Finding;
use campaign_ledger::{ExcludedRows, RowState, StateCounts};
use campaign_manifest::{CampaignBrief, DuplicatePolicy, SourceMap};

/// The maximum number of example messages that are kept.
const MAX_EXAMPLES: usize = 3;

/// The inputs of a survey, apart from the compiled campaign.
pub struct SurveyInputs<'a> {
    /// The campaign.
    pub brief: &'a CampaignBrief,
    /// The recipients to skip.
    pub excluded: &'a SurveyExclusions,
    /// The column with time zones, if the window depends on it.
    pub zones: Option<&'a str>,
    /// Whether the window depends on the countries of numbers.
    pub by_country: bool,
    /// The recorded consents, if the campaign has any.
    pub consents: Option<&'a Consents>,
}

/// The facts about all recipients before anything is sent.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The number of recipients: rows that are neither the header nor blank.
    pub recipients: u64,
    /// The last row with a recipient.
    pub last_row: Row,
    /// The rows with a recipient.
    pub rows: RoaringBitmap,
    /// The rows that are never sent, with the reason.
    pub left_out: ExcludedRows,
    /// The findings about texts, by the reason of the invalid rows.
    pub failing: BTreeMap<String, Finding>,
    /// The billed parts of all planned messages: the parts of each SMS, or one for a message without SMS.
    pub parts: u64,
    /// The planned rows by variant and number of SMS parts.
    pub by_size: RowsBySize,
    /// The planned rows whose message shows an empty cell, by text and column.
    pub empty: Vec<EmptyCells>,
    /// The planned rows whose SMS is longer because of a few characters, by those characters.
    pub costly: BTreeMap<Vec<char>, CostlyRows>,
    /// The planned rows whose number is not a mobile number, so that no channel of the message can reach it.
    pub landlines: RoaringBitmap,
    /// The planned rows with anomalies, and the rows that a comparison with a date can have filtered by mistake.
    pub anomalies: AnomalyRowsByColumn,
    /// The comparisons in texts that match no row, with their index.
    pub unmatched_comparisons: Vec<(usize, Comparison)>,
    /// The comparisons of columns with dates.
    pub date_comparisons: Vec<DateComparison>,
    /// The columns of the list, except the phone columns.
    pub columns: Vec<ListColumn>,
    /// The rows with a cell that looks like a row.
    pub embedded_rows: RoaringBitmap,
    /// The time zones of the planned rows.
    pub zones: RecipientZones,
    /// The rows skipped as duplicates whose message differs from the sent message.
    pub differing_duplicates: RoaringBitmap,
    /// The planned rows whose cells record an opt-out, by column.
    pub opted_out: Vec<OptedOutCells>,
    /// The rows whose consents have no readable date, but whose recipients would get a message with a readable date.
    /// They are rows of the consent file if the campaign has one, or else of the list.
    pub undated_consents: RoaringBitmap,
    /// The planned rows without consent, although the campaign records consents. Empty if consent is required, because
    /// such rows are then skipped.
    pub without_consent: RoaringBitmap,
    /// The number of recipients that a new edition for all recipients would have.
    pub all_recipients: u64,
    /// The messages of the edition that count towards `per_day`, by day.
    pub sent_by_day: SentByDay,
    /// The planned rows by the shape of their messages.
    pub shapes: MessageShapes,
    /// The planned rows by the country of their number.
    pub countries: RecipientCountries,
    /// The planned rows by the time zone of their number.
    pub local_zones: LocalZones,
    /// The first planned messages, at most three.
    pub examples: Vec<ExampleMessage>,
}

/// The billing units of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageSize {
    /// The index of the variant; 0 without variants.
    pub arm: usize,
    /// The number of its SMS parts; 0 if it has no SMS.
    pub sms_parts: u32,
}

impl MessageSize {
    /// The number of billed parts: the parts of the message's SMS, or one if the message has no SMS.
    pub fn billed_parts(self) -> u64 {
        self.sms_parts.max(1).into()
    }
}

/// Rows by the size of their messages.
pub type RowsBySize = BTreeMap<MessageSize, RoaringBitmap>;

/// Rows whose SMS is longer because of the same characters.
#[derive(Clone, Debug, Default)]
pub struct CostlyRows {
    /// The planned rows whose SMS has additional parts.
    pub rows: RoaringBitmap,
    /// The number of additional parts.
    pub extra_parts: u64,
    /// The parts of the first message, with and without these characters.
    pub first: (usize, usize),
}

impl CostlyRows {
    fn add_row(&mut self, row: Row, parts: usize, without: usize) {
        if self.rows.is_empty() {
            self.first = (parts, without);
        }
        self.rows.insert(row.get());
        self.extra_parts += (parts - without) as u64;
    }
}

/// One of the first planned messages of a survey.
#[derive(Clone, Debug)]
pub struct ExampleMessage {
    /// The row in the list.
    pub row: Row,
    /// The recipient's number.
    pub phone: Phone,
    /// The text of the message.
    pub content: MessageContent<Cow<'static, str>>,
}

impl Survey {
    /// Counts the rows by state, before the first message is sent.
    pub fn count_by_state(&self) -> StateCounts {
        let mut counts = StateCounts::default();
        let (skipped, invalid) =
            (self.left_out.count_rows(RowState::Skipped), self.left_out.count_rows(RowState::Invalid));
        counts.add(RowState::Skipped, skipped);
        counts.add(RowState::Invalid, invalid);
        counts.add(RowState::Planned, self.recipients - skipped - invalid);
        counts
    }

    /// Counts by state the rows for which `is_selected` returns true.
    pub fn count_matching(&self, is_selected: impl Fn(Row) -> bool) -> StateCounts {
        let rows: RoaringBitmap = self.rows.iter().filter(|row| is_selected(Row::new(*row))).collect();
        let mut counts = StateCounts::default();
        for (state, _, left_out) in self.left_out.sets() {
            counts.add(state, left_out.intersection_len(&rows));
        }
        counts.add(RowState::Planned, rows.len() - counts.total());
        counts
    }

    /// The rows that will get a message.
    pub fn planned_rows(&self) -> RoaringBitmap {
        &self.rows - self.left_out.rows()
    }

    /// The number of planned messages.
    pub fn count_planned(&self) -> u64 {
        self.count_by_state().get(RowState::Planned)
    }

    /// The number of billed parts of the messages for `rows`.
    pub fn count_parts(&self, rows: &RoaringBitmap) -> u64 {
        self.by_size.iter().map(|(size, size_rows)| size.billed_parts() * size_rows.intersection_len(rows)).sum()
    }
}

/// Reads the list to its end and examines every recipient.
///
/// # Errors
/// If the list is damaged or lacks a required column, or if its rows break a rule of the campaign.
pub fn survey_recipients(
    prepared: &mut CompiledCampaign<AnyList<'_>>,
    inputs: &SurveyInputs<'_>,
) -> Result<Survey, Vec<Finding>> {
    let CompiledCampaign { reader, recipe, .. } = prepared;
    let (phone_column, delimiter) = (reader.header().phone(), reader.delimiter());
    let stages = inputs.brief.all_contents().flat_map(|content| &content.stages);
    let texts = stages.flat_map(Stage::texts).map(|(_, text)| text);
    let detector = AnomalyDetector::for_texts(recipe, texts, inputs.brief.condition.as_ref());
    let zones = inputs.zones.map(|name| {
        let column = reader.header().find_column(name);
        column.ok_or_else(|| vec![rules::missing_zone_column_finding(name, reader.header())])
    });
    let zones = zones.transpose()?;
    let consents = inputs.consents.map(|consents| consents.find_columns(reader.header()));
    let consents = consents.transpose().map_err(|finding| vec![finding])?;
    let consent_columns = consents.iter().flat_map(ConsentFinder::used_columns);
    let used = recipe.used_columns().into_iter().chain(zones).chain(consent_columns).collect();
    let columns = list_columns(reader.header(), &used);
    let opted_out = OptedOutCells::from_columns(&columns);
    let unmatched = UnmatchedCells::for_campaign(inputs.brief, reader.header());
    let skips_duplicates = inputs.brief.duplicates != DuplicatePolicy::Allow;
    let mut read_error = None;
    let produce = || {
        let mut chunk = Chunk::new();
        match reader.read_chunk(&mut chunk) {
            Ok(true) => Some(chunk),
            Ok(false) => None,
            Err(finding) => {
                read_error = Some(*finding);
                None
            }
        }
    };
    let examine = |(composer, finders, branches): &mut Examiner<'_>, chunk: Chunk| {
        let examined: Vec<ExaminedRecord> = chunk
            .iter()
            .map(|record| {
                let ComposedMessage { number: ValidNumber { phone, landline }, arm, message } =
                    composer.compose(record)?;
                let parts = count_sms_parts(message);
                // A message of one part cannot need fewer parts.
                let costly = message.billed_text().filter(|_| parts > 1).and_then(find_costly_characters);
                let landline = landline && message.channels().all(|channel| channel.facts().mobile);
                let cell = |column| recipe.cell_text(record.fields, column);
                let empty = finders[arm].find(record.row, cell);
                let branches = branches[arm].as_mut().map_or(0, |finder| finder.find(record.row, cell));
                let anomalies = detector.find_anomalies(record.fields, message, !empty.is_empty());
                let hash = if skips_duplicates { hash_message(message) } else { 0 };
                let is_held_out = recipe.allocation.is_held_out(phone);
                let consent = consents.as_ref().map(|consents| consents.judge(record.fields, phone));
                Ok(SendableRecord {
                    phone,
                    arm,
                    sms_parts: parts,
                    costly,
                    landline,
                    empty,
                    branches,
                    anomalies,
                    hash,
                    is_held_out,
                    consent: consent.unwrap_or_default(),
                })
            })
            .collect();
        let embedded = chunk.iter().filter(|record| contains_row(record.fields, phone_column, delimiter));
        let embedded: Vec<Row> = embedded.map(|record| record.row).collect();
        let is_filtered = |examined: &ExaminedRecord| examined.as_ref().is_err_and(|failed| failed.reason == FILTERED);
        let filtered = chunk.iter().zip(&examined).filter(|(_, examined)| is_filtered(examined));
        let unlike_dates = filtered.map(|(record, _)| (record.row, detector.find_unlike_dates(record.fields)));
        let unlike_dates: Vec<(Row, Vec<FoundAnomaly>)> = unlike_dates.filter(|(_, found)| !found.is_empty()).collect();
        (chunk, examined, embedded, unlike_dates)
    };
    let mut tally = SurveyTally { opted_out, unmatched, ..SurveyTally::default() };
    let mut composer = recipe.composer();
    process_in_order(
        count_cores(),
        produce,
        || (recipe.composer(), recipe.empty_cell_finders(), recipe.branch_finders()),
        examine,
        |(chunk, examined, embedded, unlike_dates)| {
            let mut unlike_dates = unlike_dates.into_iter().peekable();
            tally.embedded_rows.extend(embedded.iter().map(|row| row.get()));
            for (record, examined) in chunk.iter().zip(examined) {
                if let Some((row, found)) = unlike_dates.next_if(|(row, _)| *row == record.row) {
                    add_anomalies(&mut tally.anomalies, row, found);
                }
                if let Err(failure) = &examined {
                    tally.unmatched.add_cell(record.fields, &failure.reason);
                }
                let Some((phone, country)) = tally.add_record(inputs, record.row, examined) else { continue };
                let local_zone = tally.local_zones.add_row(record.row, phone, country);
                tally.opted_out.iter_mut().for_each(|cells| cells.add_row(record.row, record.fields));
                let cell = zones.map(|zones| record.fields.get(zones).trim());
                if let Some(cell) = cell {
                    tally.zones.add_cell(record.row, cell);
                }
                if cell.is_some() || inputs.by_country {
                    tally.zones.count_row(local_zone.filter(|_| inputs.by_country), cell);
                }
                if tally.examples.len() < MAX_EXAMPLES
                    && let Ok(ComposedMessage { message, .. }) = composer.compose(record)
                {
                    tally.examples.push(ExampleMessage {
                        row: record.row,
                        phone,
                        content: message.content().to_owned_texts(),
                    });
                }
            }
            ControlFlow::Continue(())
        },
    );
    match read_error {
        Some(finding) => Err(vec![finding]),
        None => {
            let empty = tally.empty.group_by_text(&recipe.empty_cell_finders());
            tally.into_survey(inputs, columns, empty, recipe.places.as_ref(), detector.into_comparisons())
        }
    }
}

/// The tools of a worker that examines records.
type Examiner<'r> = (Composer<'r>, Vec<EmptyCellFinder<'r>>, Vec<Option<BranchFinder<'r>>>);

/// The result of examining a record: its message, or the reason it has none.
type ExaminedRecord = Result<SendableRecord, ComposeFailure>;

/// A record with a message.
struct SendableRecord {
    phone: Phone,
    /// The index of the message's variant.
    arm: usize,
    /// The parts of the message's SMS; 0 without SMS.
    sms_parts: u32,
    /// The characters that make the SMS longer.
    costly: Option<CostlyCharacters>,
    /// Whether no channel of the message can reach the number.
    landline: bool,
    /// The empty cells that the message shows.
    empty: Vec<EmptyCellUse>,
    /// The branches of conditions that the message takes, one bit each.
    branches: u64,
    /// The anomalies of the row.
    anomalies: Vec<FoundAnomaly>,
    /// The hash of the message.
    hash: u64,
    /// Whether the recipient is in the holdout group.
    is_held_out: bool,
    /// The consent of the recipient.
    consent: ConsentVerdict,
}

#[derive(Default)]
struct SurveyTally {
    recipients: u64,
    rows: RoaringBitmap,
    seen_numbers: SeenNumbers,
    /// The number of planned rows of each phone number. Used only if caps apply and a number can get several messages.
    messages: FxHashMap<Phone, u32>,
    /// Like `messages`, but for a new round to all recipients.
    messages_again: FxHashMap<Phone, u32>,
    left_out: ExcludedRows,
    failing: BTreeMap<String, TextProblem>,
    by_size: RowsBySize,
    empty: EmptyUses,
    costly: BTreeMap<Vec<char>, CostlyRows>,
    landlines: RoaringBitmap,
    embedded_rows: RoaringBitmap,
    zones: RecipientZones,
    opted_out: Vec<OptedOutCells>,
    undated_consents: RoaringBitmap,
    without_consent: RoaringBitmap,
    anomalies: AnomalyRowsByColumn,
    all_recipients: u64,
    shapes: MessageShapes,
    countries: RecipientCountries,
    local_zones: LocalZones,
    country_finder: CountryFinder,
    examples: Vec<ExampleMessage>,
    /// The first row with the number of an earlier row.
    repeated: Option<(Row, Phone)>,
    repeated_numbers: RepeatedNumbers,
    unmatched: UnmatchedCells,
}

impl SurveyTally {
    /// Adds an examined record. Returns the record's phone number and country if the record gets a message.
    fn add_record(
        &mut self,
        inputs: &SurveyInputs<'_>,
        row: Row,
        examined: ExaminedRecord,
    ) -> Option<(Phone, Option<Region>)> {
        self.recipients += 1;
        self.rows.insert(row.get());
        let examined = match examined {
            Ok(examined) => examined,
            Err(ComposeFailure { state, reason, problem }) => {
                self.left_out.insert(row, state, &reason);
                if let Some(problem) = problem {
                    self.failing.entry(reason.into_owned()).or_insert(*problem);
                }
                return None;
            }
        };
        let SendableRecord {
            phone,
            arm,
            sms_parts,
            costly,
            landline,
            empty,
            branches,
            anomalies,
            hash,
            is_held_out,
            consent,
        } = examined;
        let is_undated = consent == ConsentVerdict::Undated;
        let needs_consent = inputs.consents.is_some_and(Consents::is_required);
        let lacks_consent = inputs.consents.is_some() && !needs_consent && consent != ConsentVerdict::Given;
        let consent = if needs_consent { consent } else { ConsentVerdict::Given };
        let allows_duplicates = inputs.brief.duplicates == DuplicatePolicy::Allow;
        let is_repeated = !allows_duplicates && !self.seen_numbers.insert(phone);
        let country = self.country_finder.find_country(phone);
        let planned = self.messages.get(&phone).copied().unwrap_or_default();
        let reason = inputs.excluded.find_skip_reason(Some(row), phone, country, consent, planned);
        let counts_messages = allows_duplicates && !inputs.excluded.capped.is_empty();
        if !is_repeated && !is_held_out {
            let planned = self.messages_again.get(&phone).copied().unwrap_or_default();
            let find_reason_in_new_round = || inputs.excluded.find_skip_reason(None, phone, country, consent, planned);
            if (reason.is_none() && !counts_messages) || find_reason_in_new_round().is_none() {
                self.all_recipients += 1;
                if counts_messages {
                    *self.messages_again.entry(phone).or_default() += 1;
                }
            }
        }
        // A repeated number is skipped anyway, and is compared with the first message below.
        if let Some((state, reason)) = inputs.excluded.settled.find_reason(row).filter(|_| !is_repeated) {
            self.left_out.insert(row, state, reason);
            return None;
        }
        if is_undated && reason.is_none_or(|reason| reason == NO_CONSENT) {
            let recorded_in = inputs.consents.and_then(|consents| consents.find_file_row(phone)).unwrap_or(row);
            self.undated_consents.insert(recorded_in.get());
        }
        if let Some(reason) = reason {
            self.left_out.insert(row, RowState::Skipped, reason);
            return None;
        }
        if is_repeated {
            self.repeated.get_or_insert((row, phone));
            self.repeated_numbers.add_skipped_row(row, phone, hash);
            self.left_out.insert(row, RowState::Skipped, DUPLICATE);
            return None;
        }
        // This reason is checked last, because the holdout group consists of recipients who would otherwise get a
        // message.
        if is_held_out {
            self.left_out.insert(row, RowState::Skipped, HOLDOUT);
            return None;
        }
        if !allows_duplicates {
            self.repeated_numbers.add_sent_message(phone, hash);
        } else if counts_messages {
            *self.messages.entry(phone).or_default() += 1;
        }
        if landline {
            self.landlines.insert(row.get());
        }
        if lacks_consent {
            self.without_consent.insert(row.get());
        }
        if let Some(CostlyCharacters { characters, parts, without }) = costly {
            self.costly.entry(characters).or_default().add_row(row, parts, without);
        }
        add_anomalies(&mut self.anomalies, row, anomalies);
        self.empty.add_row(row, arm, empty);
        self.shapes.add_row(row, arm, branches);
        self.countries.add_row(row, country);
        self.by_size.entry(MessageSize { arm, sms_parts }).or_default().insert(row.get());
        Some((phone, country))
    }

    fn into_survey(
        self,
        inputs: &SurveyInputs<'_>,
        columns: Vec<ListColumn>,
        empty: Vec<EmptyCells>,
        places: Option<&SourceMap>,
        comparisons: ReportedComparisons,
    ) -> Result<Survey, Vec<Finding>> {
        let brief = inputs.brief;
        let parts = self.by_size.iter().map(|(size, rows)| size.billed_parts() * rows.len()).sum();
        let Self { unmatched, .. } = self;
        let failing = self.failing.into_iter().map(|(reason, problem)| {
            let finding = unmatched.add_cells_help(to_finding(problem, places), &reason);
            (reason, finding)
        });
        let survey = Survey {
            recipients: self.recipients,
            last_row: self.rows.max().map_or(Row::HEADER, Row::new),
            rows: self.rows,
            left_out: self.left_out,
            failing: failing.collect(),
            parts,
            by_size: self.by_size,
            empty,
            costly: self.costly,
            landlines: self.landlines,
            embedded_rows: self.embedded_rows,
            zones: self.zones,
            differing_duplicates: self.repeated_numbers.differing,
            opted_out: self.opted_out,
            undated_consents: self.undated_consents,
            without_consent: self.without_consent,
            all_recipients: self.all_recipients,
            shapes: self.shapes,
            countries: self.countries,
            local_zones: self.local_zones,
            examples: self.examples,
            anomalies: self.anomalies,
            unmatched_comparisons: comparisons.unmatched,
            date_comparisons: comparisons.dates,
            columns,
            sent_by_day: inputs.excluded.sent_by_day.clone(),
        };
        let mut findings: Vec<Finding> = rules::check_duplicate_number(brief, self.repeated).into_iter().collect();
        findings.extend(rules::check_invalid_share(brief, &survey));
        findings.extend(rules::check_empty_selection(brief, &survey));
        findings.extend(rules::check_no_text_chosen(brief, &survey, &unmatched));
        if findings.is_empty() {
            findings = rules::check_failing_texts(brief, &survey);
        }
        if findings.is_empty() { Ok(survey) } else { Err(findings) }
    }
}

/// The number of parts in the message's SMS; 0 if the message has no SMS.
pub(crate) fn count_sms_parts(message: FilledMessage<'_>) -> u32 {
    message.billed_text().map_or(0, |text| u32::try_from(measure_sms(text).parts).unwrap_or(u32::MAX))
}

/// A reader that hashes its input, and optionally copies it.
///
/// If the copy fails, reading also fails; [`Tee::take_copy_failure`] returns the cause.
pub struct Tee<R, W> {
    input: R,
    copy: Option<W>,
    copy_failure: Option<io::Error>,
    hash: Sha256,
}

impl<R: Read, W: Write> Tee<R, W> {
    /// A reader of `input` that also writes everything to `copy`.
    pub fn new(input: R, copy: Option<W>) -> Self {
        Self { input, copy, copy_failure: None, hash: Sha256::new() }
    }

    /// Takes the error that occurred while writing the copy, if there was one.
    pub fn take_copy_failure(&mut self) -> Option<io::Error> {
        self.copy_failure.take()
    }

    /// Reads to the end and flushes the copy. Returns the SHA-256 of everything, in hexadecimal.
    ///
    /// # Errors
    /// If reading or copying fails.
    pub fn finish(&mut self) -> io::Result<String> {
        io::copy(self, &mut io::sink())?;
        self.write_copy(W::flush)?;
        let hash = std::mem::take(&mut self.hash).finalize();
        Ok(hash.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Runs an operation on the copy, if there is a copy, and stores any error of this operation.
    fn write_copy(&mut self, write: impl FnOnce(&mut W) -> io::Result<()>) -> io::Result<()> {
        let Some(Err(error)) = self.copy.as_mut().map(write) else { return Ok(()) };
        let read_error = io::Error::new(error.kind(), "the copy cannot be written");
        self.copy_failure = Some(error);
        Err(read_error)
    }
}

impl<R: Read, W: Write> Read for Tee<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        let read = &buffer[..count];
        self.write_copy(|copy| copy.write_all(read))?;
        self.hash.update(read);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_and_hash_cover_the_whole_file() {
        let mut copy = Vec::new();
        let mut tee = Tee::new(&b"abc"[..], Some(&mut copy));
        let mut first = [0];
        tee.read_exact(&mut first).unwrap();
        let hash = tee.finish().unwrap();
        assert_eq!(copy, b"abc");
        assert_eq!(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn copy_failure_is_distinguished_from_a_read_failure() {
        let mut full = [0; 2];
        let mut tee = Tee::new(&b"abc"[..], Some(&mut full[..]));
        assert!(tee.read_to_end(&mut Vec::new()).is_err());
        assert_eq!(tee.take_copy_failure().map(|error| error.kind()), Some(io::ErrorKind::WriteZero));
        let folder = tempfile::tempdir().unwrap();
        let mut tee = Tee::new(std::fs::File::open(folder.path()).unwrap(), Some(Vec::new()));
        assert!(tee.finish().is_err());
        assert!(tee.take_copy_failure().is_none(), "a folder cannot be read, and its copy is fine");
    }
}
