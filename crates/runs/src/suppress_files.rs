//! Suppression files under `suppress`: opt-outs that the ledger does not have.

use std::sync::Arc;

use roaring::RoaringTreemap;

use super::launch::Session;
use super::opt_outs::is_other_column;
use super::suppression_watch::FileStates;
use super::{Error, run_blocking};
use campaign_content::audience::{NumberColumns, PhoneProblem, decode_table};
use campaign_core::domain::{Phone, Purpose, Region, Row, choose_plural, format_count};
use campaign_core::finding::{Finding, SourceLocation, rules};
use campaign_manifest::{Campaign, Profile, SuppressionFile, describe_unopened_file};

/// The header of the phone column in an empty file.
const DEFAULT_HEADER: &str = "phone";

/// The maximum number of rows without a number that a warning names.
const MAX_NAMED_ROWS: usize = 5;

/// The opt-outs in the files.
#[derive(Clone, Debug, Default)]
pub(super) struct FileOptOuts {
    /// The numbers that opted out.
    pub(super) numbers: RoaringTreemap,
    /// Warnings about rows without a usable number, whose recipients still get messages.
    pub(super) warnings: Vec<Finding>,
}

/// Reads the suppression files of a campaign and its profile. Service messages ignore these files.
///
/// # Errors
/// If files are missing, unreadable or without phone numbers. In these cases, nothing is sent.
pub(super) fn read_suppressed(campaign: &Campaign, profile: Option<&Profile>) -> Result<FileOptOuts, Vec<Finding>> {
    if campaign.brief.purpose == Purpose::Service {
        return Ok(FileOptOuts::default());
    }
    read_files(list_files(campaign, profile), campaign.brief.region, |key| campaign.places.locate_key(key))
}

/// Reads the suppression files of a profile, for a marketing message without a campaign. National numbers in the files
/// belong to `region`.
///
/// # Errors
/// If files are missing, unreadable or without phone numbers. In these cases, nothing is sent.
pub(super) fn read_suppressed_by_profile(
    profile: &Profile,
    region: Option<Region>,
) -> Result<FileOptOuts, Vec<Finding>> {
    read_files(profile.suppress.iter(), region, |_| None)
}

/// Reads suppression files. `place` returns the place of a file's key.
fn read_files<'f>(
    files: impl Iterator<Item = &'f SuppressionFile>,
    region: Option<Region>,
    place: impl Fn(&str) -> Option<SourceLocation>,
) -> Result<FileOptOuts, Vec<Finding>> {
    let (mut suppressed, mut errors) = (FileOptOuts::default(), Vec::new());
    for file in files {
        let at_its_key = |finding: Finding| match place(&file.key) {
            Some(place) => finding.at(place),
            None => finding,
        };
        match read_file(file, file.region.or(region)) {
            Ok(FileNumbers { numbers, unread }) if numbers.is_empty() && !unread.is_empty() => {
                let message =
                    format!("no row in `{}` has a usable number: {}", file.file.display(), describe_unread(&unread));
                let finding = Finding::new(&rules::SUPPRESS_FILE, message).help(unread_help(&unread));
                errors.push(at_its_key(finding));
            }
            Ok(FileNumbers { numbers, unread }) => {
                suppressed.numbers |= numbers;
                if !unread.is_empty() {
                    let rows = unread.len() as u64;
                    let message = format!(
                        "{} in `{}` {} no usable number: {}",
                        format_count(rows, "row"),
                        file.file.display(),
                        choose_plural(rows, "has", "have"),
                        describe_unread(&unread)
                    );
                    let finding = Finding::new(&rules::SUPPRESS_ROW, message).help(unread_help(&unread));
                    suppressed.warnings.push(at_its_key(finding));
                }
            }
            Err(finding) => {
                let message = format!("cannot use the suppression list `{}`: {}", file.file.display(), finding.message);
                let finding = match finding.help {
                    Some(help) => Finding::new(&rules::SUPPRESS_FILE, message).help(help),
                    None => Finding::new(&rules::SUPPRESS_FILE, message),
                };
                errors.push(at_its_key(finding));
            }
        }
    }
    if errors.is_empty() { Ok(suppressed) } else { Err(errors) }
}

/// Lists the suppression files of a campaign and its profile.
fn list_files<'f>(campaign: &'f Campaign, profile: Option<&'f Profile>) -> impl Iterator<Item = &'f SuppressionFile> {
    campaign.suppress.iter().chain(profile.into_iter().flat_map(|profile| &profile.suppress))
}

/// The states of the suppression files of a campaign and its profile.
pub(super) fn find_file_states(campaign: &Campaign, profile: Option<&Profile>) -> FileStates {
    list_files(campaign, profile).map(|file| file.file.read_state()).collect()
}

impl Session {
    /// Reads the phone numbers that are in the suppression files now.
    pub(super) async fn read_suppressed(&self) -> Result<RoaringTreemap, Error> {
        let inputs = Arc::clone(self.inputs());
        Ok(run_blocking(move || inputs.read_suppressed()).await??.numbers)
    }
}

/// The content of a file.
#[derive(Default)]
struct FileNumbers {
    numbers: RoaringTreemap,
    unread: Vec<(Row, PhoneProblem)>,
}

fn read_file(from: &SuppressionFile, region: Option<Region>) -> Result<FileNumbers, Finding> {
    let path = from.file.path();
    let open = || {
        let file = from.file.open_file().map_err(|error| describe_unopened_file("it", path, &error))?;
        decode_table(file, path, region).map_err(|finding| *finding)
    };
    let columns = match &from.phone {
        Some(header) => NumberColumns::with_header(open()?, path, header).map_err(|finding| *finding)?,
        None => match NumberColumns::detect(open()?, path, region, is_other_column) {
            Ok(found) => found,
            // An empty list of opt-outs is valid.
            Err(finding) if finding.rule == &rules::RECIPIENTS_EMPTY => {
                NumberColumns::with_header(open()?, path, DEFAULT_HEADER).map_err(|finding| *finding)?
            }
            Err(finding) => return Err(*finding),
        },
    };
    let Some(columns) = columns else {
        return Err(match &from.phone {
            Some(header) => Finding::new(&rules::SUPPRESS_FILE, format!("it has no column `{header}`"))
                .help("write the header exactly as in the file, or leave out `phone`"),
            None => missing_column_finding(),
        });
    };
    let mut file_numbers = FileNumbers::default();
    let add_row = |row: Row, number: Result<Phone, PhoneProblem>, []: [&str; 0]| match number {
        Ok(phone) => drop(file_numbers.numbers.insert(phone.to_u64())),
        Err(PhoneProblem::Empty) => {}
        Err(_) if file_numbers.unread.last().is_some_and(|(last, _)| *last == row) => {}
        Err(problem) => file_numbers.unread.push((row, problem)),
    };
    columns.read_numbers(open()?, path, region, [], add_row).map_err(|finding| *finding)?;
    Ok(file_numbers)
}

fn missing_column_finding() -> Finding {
    let finding = Finding::new(&rules::NO_PHONES, "it has no column with phone numbers");
    finding.help("specify the column: `{ file: …, phone: \"Header\" }`")
}

fn describe_unread(unread: &[(Row, PhoneProblem)]) -> String {
    let named: Vec<String> =
        unread.iter().take(MAX_NAMED_ROWS).map(|(row, problem)| format!("row {row} ({problem})")).collect();
    let more = unread.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    named.join(", ") + &more
}

fn unread_help(unread: &[(Row, PhoneProblem)]) -> &'static str {
    match unread.iter().any(|(_, problem)| *problem == PhoneProblem::National) {
        true => "set the country of the numbers: `{ file: …, region: UA }`",
        false => "correct these rows; otherwise, their recipients will still get the message",
    }
}
