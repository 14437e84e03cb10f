//! Files of phone numbers that are maintained outside the ledger: suppression files and consent files.
//!
//! A run rereads suppression files that change while it sends, or while it waits for its window or for the next day.
//! Each worker of a shared run does so too.

use std::sync::Arc;
use std::time::Duration;

use roaring::RoaringTreemap;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep};

use super::launch::Session;
use super::opt_outs::is_other_column;
use super::{Error, Inputs, run_blocking};
use campaign_content::audience::{DecodedText, NumberColumns, PhoneProblem, decode_table};
use campaign_core::domain::{Phone, Region, Row, choose_plural, format_count};
use campaign_core::finding::{Finding, SourceLocation, rules};
use campaign_engine::delivery::{LateOptOuts, OptedOutFuture};
use campaign_manifest::{
    Campaign, CampaignBrief, CampaignPath, FileState, Profile, SendingTerms, SuppressionFile, describe_file_open_error,
};

/// The header of the phone column, if there are no cells that reveal it.
const DEFAULT_HEADER: &str = "phone";

/// The maximum number of rows that a finding names.
const MAX_NAMED_ROWS: usize = 5;

/// A file of phone numbers, in any format of a list of recipients.
pub(super) struct NumberFile<'f> {
    pub(super) file: &'f CampaignPath,
    /// The header of the phone column, if it is specified.
    pub(super) phone: Option<&'f str>,
    /// The region of national numbers.
    pub(super) region: Option<Region>,
}

/// The rows of a file without a usable phone number.
pub(super) struct UnreadRows(Vec<(Row, PhoneProblem)>);

impl NumberFile<'_> {
    fn open(&self) -> Result<DecodedText, Finding> {
        let path = self.file.path();
        let opened = self.file.open_file().map_err(|error| describe_file_open_error("it", path, &error))?;
        decode_table(opened, path, self.region).map_err(|finding| *finding)
    }

    /// The header of the phone column, if the cells do not reveal it.
    pub(super) fn header(&self) -> &str {
        self.phone.unwrap_or(DEFAULT_HEADER)
    }

    /// Finds the phone columns. `None` if there are none. `is_other` returns whether a header belongs to a column with
    /// other content. A file without rows is valid.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn find_columns(&self, is_other: impl Fn(&str) -> bool) -> Result<Option<NumberColumns>, Finding> {
        let path = self.file.path();
        if self.phone.is_none() {
            match NumberColumns::detect(self.open()?, path, self.region, is_other) {
                Err(finding) if finding.rule == &rules::RECIPIENTS_EMPTY => {}
                detected => return detected.map_err(|finding| *finding),
            }
        }
        NumberColumns::with_header(self.open()?, path, self.header()).map_err(|finding| *finding)
    }

    /// Passes the phone numbers to `add`, together with their rows and the cells under `other_headers`. Returns the
    /// labels of the columns that contain phone numbers, and the rows without a usable number.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn read_numbers<const N: usize>(
        &self,
        columns: &NumberColumns,
        other_headers: [Option<&str>; N],
        mut add: impl FnMut(Row, Phone, [&str; N]),
    ) -> Result<(Vec<String>, UnreadRows), Finding> {
        let (has_names, mut unread) = (other_headers.iter().any(Option::is_some), Vec::new());
        let add_row = |row: Row, number: Result<Phone, PhoneProblem>, cells: [&str; N]| match number {
            // Only a file that contains nothing but numbers can have a number in place of its header.
            _ if row == Row::HEADER && has_names => {}
            Ok(phone) => add(row, phone, cells),
            Err(PhoneProblem::Empty) => {}
            Err(_) if unread.last().is_some_and(|(last, _)| *last == row) => {}
            Err(problem) => unread.push((row, problem)),
        };
        let labels = columns
            .read_numbers(self.open()?, self.file.path(), self.region, other_headers, add_row)
            .map_err(|finding| *finding)?;
        Ok((labels, UnreadRows(unread)))
    }
}

impl UnreadRows {
    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Whether a number has no country code, and the region of national numbers is unknown.
    pub(super) fn has_national_number(&self) -> bool {
        self.0.iter().any(|(_, problem)| *problem == PhoneProblem::National)
    }

    /// Names the first rows with their problems.
    pub(super) fn describe(&self) -> String {
        name_first_rows(self.0.iter().map(|(row, problem)| format!("row {row} ({problem})")))
    }
}

/// Joins the names of the first rows, and adds the number of the others.
pub(super) fn name_first_rows(mut rows: impl ExactSizeIterator<Item = String>) -> String {
    let named: Vec<String> = rows.by_ref().take(MAX_NAMED_ROWS).collect();
    let more = if rows.len() > 0 { format!(" and {} more", rows.len()) } else { String::new() };
    named.join(", ") + &more
}

/// The opt-outs in suppression files.
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
pub(super) fn read_suppressed_numbers(
    campaign: &Campaign,
    profile: Option<&Profile>,
) -> Result<FileOptOuts, Vec<Finding>> {
    let locate_key = |key: &str| campaign.places.locate_key(key);
    read_files(campaign.suppression_files(profile), campaign.brief.region, locate_key)
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

/// Reads suppression files. `locate_key` returns the place of a file's key.
fn read_files<'f>(
    files: impl Iterator<Item = &'f SuppressionFile>,
    region: Option<Region>,
    locate_key: impl Fn(&str) -> Option<SourceLocation>,
) -> Result<FileOptOuts, Vec<Finding>> {
    let (mut suppressed, mut errors) = (FileOptOuts::default(), Vec::new());
    for file in files {
        let with_place = |finding: Finding| match locate_key(&file.key) {
            Some(place) => finding.at(place),
            None => finding,
        };
        match read_file(file, region) {
            Ok((numbers, unread)) if numbers.is_empty() && unread.count() > 0 => {
                let message = format!("no row in `{}` has a usable number: {}", file.file.display(), unread.describe());
                let finding = Finding::new(&rules::SUPPRESS_FILE, message).help(unread_help(&unread));
                errors.push(with_place(finding));
            }
            Ok((numbers, unread)) => {
                suppressed.numbers |= numbers;
                let rows = unread.count();
                if rows > 0 {
                    let message = format!(
                        "{} in `{}` {} no usable number: {}",
                        format_count(rows, "row"),
                        file.file.display(),
                        choose_plural(rows, "has", "have"),
                        unread.describe()
                    );
                    let finding = Finding::new(&rules::SUPPRESS_ROW, message).help(unread_help(&unread));
                    suppressed.warnings.push(with_place(finding));
                }
            }
            Err(finding) => {
                let message = format!("cannot use the suppression list `{}`: {}", file.file.display(), finding.message);
                let finding = match finding.help {
                    Some(help) => Finding::new(&rules::SUPPRESS_FILE, message).help(help),
                    None => Finding::new(&rules::SUPPRESS_FILE, message),
                };
                errors.push(with_place(finding));
            }
        }
    }
    if errors.is_empty() { Ok(suppressed) } else { Err(errors) }
}

/// Reads the states of suppression files.
pub(super) fn read_file_states<'f>(files: impl Iterator<Item = &'f SuppressionFile>) -> FileStates {
    files.map(|file| file.file.read_state()).collect()
}

impl Session {
    /// Reads the phone numbers that are in the suppression files now.
    pub(super) async fn read_suppressed_numbers(&self) -> Result<RoaringTreemap, Error> {
        let inputs = Arc::clone(self.inputs());
        Ok(run_blocking(move || inputs.read_suppressed_numbers()).await??.numbers)
    }
}

/// Reads the phone numbers in a file. Also returns the rows without a usable number.
fn read_file(
    SuppressionFile { file, phone, region: own_region, .. }: &SuppressionFile,
    region: Option<Region>,
) -> Result<(RoaringTreemap, UnreadRows), Finding> {
    let file = NumberFile { file, phone: phone.as_deref(), region: own_region.or(region) };
    let columns = file.find_columns(is_other_column)?.ok_or_else(|| match phone {
        Some(header) => Finding::new(&rules::SUPPRESS_FILE, format!("it has no column `{header}`"))
            .help("write the header exactly as in the file, or leave out `phone`"),
        None => missing_column_finding(),
    })?;
    let mut numbers = RoaringTreemap::new();
    let add = |_: Row, phone: Phone, []: [&str; 0]| {
        numbers.insert(phone.to_u64());
    };
    let (_, unread) = file.read_numbers(&columns, [], add)?;
    Ok((numbers, unread))
}

fn missing_column_finding() -> Finding {
    let finding = Finding::new(&rules::NO_PHONES, "it has no column with phone numbers");
    finding.help("specify the column: `{ file: …, phone: \"Header\" }`")
}

fn unread_help(unread: &UnreadRows) -> &'static str {
    match unread.has_national_number() {
        true => "set the country of the numbers: `{ file: …, region: UA }`",
        false => "correct these rows; otherwise, their recipients will still get the message",
    }
}

/// The interval between checks of the files for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The delay before an unreadable file is read again. Another program might be replacing the file.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The states of suppression files. `None` for a file that cannot be opened.
pub(super) type FileStates = Vec<Option<FileState>>;

/// Rereads suppression files if they have changed.
pub(super) struct SuppressionWatch {
    files: Arc<[SuppressionFile]>,
    /// The region of national numbers.
    region: Option<Region>,
    /// What to do if a file cannot be used.
    remedy: &'static str,
    known: Mutex<KnownOptOuts>,
}

/// The opt-outs that were added since the run was prepared.
struct KnownOptOuts {
    /// The numbers in the changed files. A number that is removed from a file stays, because the file might be
    /// incomplete while another program writes it.
    numbers: RoaringTreemap,
    /// The states of the files when they were last read. `None` if they were never read.
    states: Option<FileStates>,
    checked_at: Option<Instant>,
}

impl SuppressionWatch {
    /// Watches the files from the time at which these inputs first read them. `None` if no file applies.
    pub(super) fn start(inputs: &Inputs) -> Option<Arc<dyn LateOptOuts>> {
        let files = inputs.campaign.suppression_files(inputs.destination.profile()).cloned().collect();
        let (states, remedy) = (inputs.suppression.get().cloned(), "restore the file, then resume the run");
        Some(Arc::new(Self::new(files, &inputs.campaign.brief, states, remedy)?))
    }

    /// Watches the files that were recorded when a shared run was started, and those of this worker's profile. `None`
    /// if no file applies.
    ///
    /// # Errors
    /// If a file cannot be used on this machine. The worker could then send to recipients who have opted out.
    pub(super) async fn start_for_worker(
        terms: &SendingTerms,
        brief: &CampaignBrief,
        profile: &Profile,
    ) -> Result<Option<Arc<dyn LateOptOuts>>, String> {
        let mut files = terms.policy.suppress.clone();
        for file in profile.suppress.iter().filter(|_| brief.purpose.is_marketing()) {
            let file = SuppressionFile { file: file.file.to_absolute(), ..file.clone() };
            if !files.contains(&file) {
                files.push(file);
            }
        }
        let remedy = "provide the file under this path on this machine; other processes send the run until then";
        let Some(watch) = Self::new(files, brief, None, remedy) else { return Ok(None) };
        drop(watch.update().await?);
        Ok(Some(Arc::new(watch)))
    }

    /// Watches these files, which had these states when they were last read. `None` if there are no files.
    fn new(
        files: Vec<SuppressionFile>,
        brief: &CampaignBrief,
        states: Option<FileStates>,
        remedy: &'static str,
    ) -> Option<Self> {
        let known = Mutex::new(KnownOptOuts { numbers: RoaringTreemap::new(), states, checked_at: None });
        (!files.is_empty()).then(|| Self { files: files.into(), region: brief.region, remedy, known })
    }

    /// Reads the files if they have changed since they were last read. Returns the opt-outs.
    async fn update(&self) -> Result<MutexGuard<'_, KnownOptOuts>, String> {
        let mut known = self.known.lock().await;
        if known.checked_at.is_some_and(|at| at.elapsed() < CHECK_INTERVAL) {
            return Ok(known);
        }
        let changes = match self.read_if_changed(known.states.clone()).await {
            Err(_) => {
                sleep(RETRY_DELAY).await;
                let read = self.read_if_changed(known.states.clone()).await;
                read.map_err(|problem| format!("{problem}; {}", self.remedy))?
            }
            Ok(read) => read,
        };
        if let Some((states, numbers)) = changes {
            known.numbers |= numbers;
            known.states = Some(states);
        }
        known.checked_at = Some(Instant::now());
        Ok(known)
    }

    /// Reads the files if their states differ from `known`.
    async fn read_if_changed(&self, known: Option<FileStates>) -> Result<Option<(FileStates, RoaringTreemap)>, String> {
        let (files, region) = (Arc::clone(&self.files), self.region);
        let read = run_blocking(move || {
            let states = read_file_states(files.iter());
            if known.as_ref() == Some(&states) {
                return Ok(None);
            }
            let read = read_files(files.iter(), region, |_| None).map_err(|findings| describe_findings(&findings))?;
            Ok(Some((states, read.numbers)))
        });
        read.await.map_err(|error| error.to_string())?
    }
}

impl LateOptOuts for SuppressionWatch {
    fn find_opted_out(&self, phones: Vec<Phone>) -> OptedOutFuture<'_> {
        Box::pin(async move {
            let known = self.update().await?;
            Ok(phones.into_iter().filter(|phone| known.numbers.contains(phone.to_u64())).collect())
        })
    }
}

fn describe_findings(findings: &[Finding]) -> String {
    findings.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; ")
}
