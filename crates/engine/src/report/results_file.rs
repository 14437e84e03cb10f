//! Results files: one row per recipient in list order, written atomically. Another run's results are kept as a backup.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::columns::RecipientColumns;
use super::layout::{Layout, ResultsFormat, choose_excel_separator};
use super::ledger_loss::LossSign;
use super::listing::Listing;
use super::run_figures::RunFigures;
use super::target::{ResultsTarget, detect_delimiter, is_workbook, open_text};
use super::workbook::{self, FigureRow};
use crate::check::count_cores;
use campaign_core::failpoint;
use campaign_core::finding::Finding;
use campaign_core::private::{self, ExistingFile};
use campaign_ledger::LedgerError;
use campaign_manifest::{CampaignBrief, CampaignPath, HeldFolder};

/// An error while writing results.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The ledger, or the frozen inputs of the run, could not be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The frozen list cannot be read, or does not have the columns of the frozen campaign.
    #[error("cannot read the run's copy of the list: {0}")]
    Recipients(String),
    /// The frozen list is not the list that the run started with.
    #[error(
        "the copy of the list in `{0}` is not the list that the run started with, so its rows cannot be identified"
    )]
    ListChanged(PathBuf),
    /// The existing file contains messages that the ledger does not know.
    #[error("the ledger does not contain all messages that were sent: {sign}; nothing was written")]
    LedgerIncomplete {
        /// The name of the newest run in the results, such as `sale@2`.
        run: String,
        /// The evidence against the ledger.
        sign: LossSign,
    },
    /// The existing file must not be replaced.
    #[error("cannot write the results: {0}")]
    PathBlocked(String),
    /// The existing file contains the results of another run and could not be renamed.
    #[error("`{path}` contains the results of another run and could not be renamed, so it was not replaced: {error}")]
    BackupFailed {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The file could not be written.
    #[error("cannot write the results to `{path}`: {error}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
}

/// The size of the buffer for writing a results file.
const WRITE_BUFFER_BYTES: usize = 1 << 16;

/// Writes the results to a temporary file, which then replaces the target file. Only the owner can read the file.
/// Returns the figures of the runs whose figures are calculated in the same pass.
///
/// # Errors
/// If the ledger or the recipients cannot be read, the file cannot be written, or the existing file is not a results
/// file.
pub async fn write_results_file(
    target: &ResultsTarget,
    format: ResultsFormat,
    listings: Vec<Listing<'_>>,
) -> Result<Vec<RunFigures>, ResultsError> {
    let failed = |error| ResultsError::Write { path: target.path().to_owned(), error };
    // The path is only valid while the folder is open.
    let (path, _folder) = resolve_target(target)?;
    let (temporary, file) = create_temporary_file(&path).map_err(failed)?;
    let written = async {
        let format = if is_workbook(&path) { ResultsFormat::Workbook } else { format };
        let mut out = BufWriter::with_capacity(WRITE_BUFFER_BYTES, file);
        let figures = write_results(&mut out, format, listings).await.map_err(|error| match error {
            ResultsError::Write { error, .. } => failed(error),
            other => other,
        })?;
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        if format == ResultsFormat::Workbook {
            let temporary = temporary.clone();
            let summary = figures.first().map(workbook::figure_rows).unwrap_or_default();
            let converted = tokio::task::spawn_blocking(move || convert_to_workbook(&temporary, &summary)).await;
            converted.map_err(io::Error::other).flatten().map_err(failed)?;
        }
        file.sync_all().map_err(failed)?;
        failpoint::pass("results.written");
        // Another file might be at this path by now.
        target.resolve_path().map_err(ResultsError::PathBlocked)?;
        fs::rename(&temporary, &path).and_then(|()| private::sync_entry(&path)).map_err(failed)?;
        failpoint::pass("results.renamed");
        Ok(figures)
    }
    .await;
    if written.is_err() {
        // The first error is reported, so a failure to remove the file is ignored.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Verifies that results can be written to `target`, without writing any results.
///
/// # Errors
/// If the folder or a file in it cannot be created, or the existing file is not a results file.
pub fn check_target(target: &ResultsTarget) -> Result<(), ResultsError> {
    let (path, _folder) = resolve_target(target)?;
    let probe = create_temporary_file(&path).and_then(|(temporary, _)| fs::remove_file(temporary));
    probe.map_err(|error| ResultsError::Write { path: target.path().to_owned(), error })
}

/// Resolves the path of the results, and creates the folder if it does not exist. A folder that an assistant can name
/// is held open.
pub(super) fn resolve_target(target: &ResultsTarget) -> Result<(PathBuf, Option<HeldFolder>), ResultsError> {
    let failed = |error| ResultsError::Write { path: target.path().to_owned(), error };
    let path = target.resolve_path().map_err(ResultsError::PathBlocked)?;
    let folder_lock = target.file().hold_folder(true).map_err(failed)?;
    Ok(match folder_lock {
        Some(folder) => (folder.file_path(path.file_name().unwrap_or_default()), Some(folder)),
        None => {
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                private::create_folder(folder).map_err(failed)?;
            }
            (path, None)
        }
    })
}

/// Replaces a CSV file with a workbook of the same rows, and adds a sheet with `figures` if there are any.
fn convert_to_workbook(file: &Path, figures: &[FigureRow]) -> io::Result<()> {
    let csv = File::open(file)?;
    // An open file can still be read to its end after it is removed.
    fs::remove_file(file)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    workbook::write_workbook(csv, figures, private::open_file(file, ExistingFile::CreateNew)?, folder)
}

/// Creates a temporary file in the folder of `path` that only the owner can read. Returns its path and the open file.
pub(super) fn create_temporary_file(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    // An earlier process with the same ID might have left such a file. Removing a link does not touch its target.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = private::open_file(&temporary, ExistingFile::CreateNew)?;
    Ok((temporary, file))
}

/// Writes the rows of `listings`, one list after another, and verifies that each list is the frozen list. Returns the
/// figures of the runs whose figures are calculated in the same pass.
///
/// # Errors
/// If the ledger or the recipients cannot be read, or `out` cannot be written.
pub async fn write_results(
    out: impl Write,
    format: ResultsFormat,
    listings: Vec<Listing<'_>>,
) -> Result<Vec<RunFigures>, ResultsError> {
    let mut recipients = RecipientColumns::default();
    let mut delimiter = Layout::COMMA;
    // Users know the newest list best, so its columns come first.
    for listing in listings.iter().rev() {
        let reader = listing.open_reader()?;
        if recipients.is_empty() {
            let CampaignBrief { region, timezone, .. } = listing.brief;
            delimiter = choose_excel_separator(reader.delimiter(), *region, timezone.as_deref());
        }
        recipients.add_header(reader.header());
        recipients.has_variants |= !listing.brief.variants.is_empty();
    }
    let layout = Layout::for_format(format, &recipients, delimiter);
    let mut writer = ResultsWriter { out, separator: layout.separator(), has_content: false };
    writer.out.write_all(&layout.encode_header(&recipients)).map_err(write_error)?;
    let mut figures = Vec::new();
    for listing in listings {
        figures.extend(writer.write_list(&layout, &recipients, listing).await?);
    }
    writer.out.flush().map_err(write_error)?;
    Ok(figures)
}

/// The output for rows.
struct ResultsWriter<W> {
    out: W,
    /// The separator between groups of rows.
    separator: &'static [u8],
    has_content: bool,
}

impl<W: Write> ResultsWriter<W> {
    /// Writes the rows of a list: reads rows and outcomes in groups, and formats the groups on all cores.
    async fn write_list(
        &mut self,
        layout: &Layout,
        recipients: &RecipientColumns,
        listing: Listing<'_>,
    ) -> Result<Option<RunFigures>, ResultsError> {
        let recipient_count = listing.run.map_or(0, |run| run.recipients);
        let reader = listing.open_reader()?;
        let formatter = Arc::new(listing.row_formatter(layout.clone(), recipients, reader.header()));
        let mut rows = listing.into_rows(reader)?;
        let (mut formatting, max_groups) = (VecDeque::new(), count_cores());
        while let Some((chunk, facts)) = rows.next_chunk().await? {
            let formatter = Arc::clone(&formatter);
            formatting.push_back(tokio::task::spawn_blocking(move || formatter.format_rows(&chunk, &facts)));
            if formatting.len() > max_groups {
                self.write_next(&mut formatting).await?;
            }
        }
        while !formatting.is_empty() {
            self.write_next(&mut formatting).await?;
        }
        Ok(rows.finish().await?.and_then(|records| records.into_figures(recipient_count)))
    }

    /// Waits until the first group of rows is formatted, and writes it.
    async fn write_next(&mut self, formatting: &mut VecDeque<JoinHandle<Vec<u8>>>) -> Result<(), ResultsError> {
        let Some(rows) = formatting.pop_front() else { return Ok(()) };
        let rows = rows.await.map_err(|error| write_error(io::Error::other(error)))?;
        if rows.is_empty() {
            return Ok(());
        }
        if self.has_content {
            self.out.write_all(self.separator).map_err(write_error)?;
        }
        self.has_content = true;
        self.out.write_all(&rows).map_err(write_error)
    }
}

impl From<Vec<Finding>> for ResultsError {
    fn from(findings: Vec<Finding>) -> Self {
        Self::Recipients(findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("; "))
    }
}

fn write_error(error: io::Error) -> ResultsError {
    ResultsError::Write { path: PathBuf::from("standard output"), error }
}

/// The position of the `run` column, counted from 0.
const RUN_COLUMN: usize = 16;
/// The size of the blocks that are compared.
const COMPARE_BYTES: usize = 1 << 16;

/// A backup of the results of another run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultsBackup {
    /// The run of these results.
    pub run: String,
    /// The path of the backup.
    pub path: PathBuf,
}

impl ResultsTarget {
    /// Reads the name of the run whose results are at this path. `None` if there are no results of a run.
    pub fn read_run_name(&self) -> Option<String> {
        read_run_name(self.file())
    }

    /// Chooses the target for a run whose results must not be written to this path: its `recorded` file, or else
    /// `NAME@N`. N is the number of the run, or a higher number if the file contains other data.
    #[must_use]
    pub fn choose_for_earlier_run(&self, run: &str, recorded: Option<&Path>) -> Self {
        let numbers = parse_run_number(run).unwrap_or(1)..=u32::MAX;
        let numbered = numbers.map(|number| self.with_path(&numbered_path(self.path(), number)));
        let mut targets = recorded.map(|path| self.with_path(path)).into_iter().chain(numbered);
        let is_usable = |target: &Self| {
            target.path().symlink_metadata().is_err() || target.read_run_name().is_some_and(|name| name == run)
        };
        targets.find(is_usable).unwrap_or_else(|| self.clone())
    }
}

/// Reads the name of the run from the first row of a results file. `None` if the file has no rows, or the first row
/// names no run.
pub(super) fn read_run_name(file: &CampaignPath) -> Option<String> {
    let mut head = Vec::new();
    // 2 MiB contain the first row even after a very long header.
    open_text(file).ok()?.take(1 << 21).read_to_end(&mut head).ok()?;
    let delimiter = detect_delimiter(&head)?;
    let mut results = csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(head.as_slice());
    let mut record = csv::ByteRecord::new();
    results.read_byte_record(&mut record).ok().filter(|has_row| *has_row)?;
    let run = std::str::from_utf8(record.get(RUN_COLUMN)?).ok()?;
    parse_run_number(run).map(|_| run.to_owned())
}

/// The number of a run in its name: the `3` of `sale@3`.
fn parse_run_number(run: &str) -> Option<u32> {
    run.rsplit_once('@')?.1.parse().ok()
}

/// Backs up the results of a run as `NAME@N` in the same folder. N is the number of the run, or a higher number if a
/// file with this name exists. The original file stays until the new results replace it.
///
/// # Errors
/// If the file cannot be linked or copied.
pub(super) fn back_up_results(path: &Path, run: &str) -> io::Result<PathBuf> {
    let first = parse_run_number(run).unwrap_or(1);
    for number in first..=u32::MAX {
        let backup = numbered_path(path, number);
        match link_or_copy(path, &backup) {
            Ok(()) => {
                private::sync_entry(&backup)?;
                return Ok(backup);
            }
            // An earlier process made this backup, but ended before it replaced the original.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && has_same_content(path, &backup) => {
                return Ok(backup);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The path with `@N` before its extension.
fn numbered_path(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("@{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Creates a hard link to a file, or copies the file if the file system does not support hard links. Never overwrites
/// an existing file.
fn link_or_copy(path: &Path, backup: &Path) -> io::Result<()> {
    match fs::hard_link(path, backup) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {}
        linked => return linked,
    }
    let mut source = File::open(path)?;
    let mut copy = private::open_file(backup, ExistingFile::CreateNew)?;
    let copied = io::copy(&mut source, &mut copy).and_then(|_| copy.sync_all());
    if copied.is_err() {
        // An incomplete copy is removed. The first error is reported.
        let _ = fs::remove_file(backup);
    }
    copied
}

/// Whether two files have the same bytes. False if a file cannot be read.
fn has_same_content(first: &Path, second: &Path) -> bool {
    let compare = || -> io::Result<bool> {
        let (first, second) = (File::open(first)?, File::open(second)?);
        if first.metadata()?.len() != second.metadata()?.len() {
            return Ok(false);
        }
        let mut first = BufReader::with_capacity(COMPARE_BYTES, first);
        let mut second = BufReader::with_capacity(COMPARE_BYTES, second);
        let (mut first_block, mut second_block) = ([0; COMPARE_BYTES], [0; COMPARE_BYTES]);
        loop {
            let first_count = fill_buffer(&mut first, &mut first_block)?;
            let second_count = fill_buffer(&mut second, &mut second_block)?;
            if first_block[..first_count] != second_block[..second_count] {
                return Ok(false);
            }
            if first_count == 0 {
                return Ok(true);
            }
        }
    };
    compare().unwrap_or(false)
}

/// Reads until the buffer is full or the file ends.
fn fill_buffer(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::columns::COLUMN_NAMES;

    fn results_csv(run: &str) -> String {
        let mut cells = vec![String::new(); COLUMN_NAMES.len()];
        cells[RUN_COLUMN] = run.to_owned();
        format!("{}\n{}\n", COLUMN_NAMES.join(","), cells.join(","))
    }

    #[test]
    fn run_column_index_matches_its_name() {
        assert_eq!(COLUMN_NAMES[RUN_COLUMN], "run");
    }

    #[test]
    fn run_name_is_read_from_the_first_row() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sale.csv");
        let run = |text: &str| {
            fs::write(&path, text).unwrap();
            read_run_name(&CampaignPath::anywhere(&path))
        };
        assert_eq!(run(&results_csv("sale@3")), Some("sale@3".to_owned()));
        assert_eq!(run(&results_csv("sale@3").replace(',', ";")), Some("sale@3".to_owned()));
        assert_eq!(run(&format!("\u{feff}{}", results_csv("зима@12"))), Some("зима@12".to_owned()));
        for none in [
            results_csv(""),
            COLUMN_NAMES.join(","),
            String::new(),
            "phone,name\n1,2\n".to_owned(),
            results_csv("sale"),
        ] {
            assert_eq!(run(&none), None, "{none}");
        }
    }

    #[test]
    fn earlier_run_gets_a_file_without_other_data() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let target = ResultsTarget::new(CampaignPath::anywhere(at("sale.csv")), Vec::new());
        let choose = |recorded: Option<&Path>| target.choose_for_earlier_run("sale@1", recorded).path().to_owned();
        assert_eq!(choose(None), at("sale@1.csv"));
        assert_eq!(choose(Some(&at("own.csv"))), at("own.csv"), "the file was deleted");
        for (own, chosen) in [("sale@1", "own.csv"), ("sale@2", "sale@1.csv")] {
            fs::write(at("own.csv"), results_csv(own)).unwrap();
            assert_eq!(choose(Some(&at("own.csv"))), at(chosen));
        }
        fs::write(at("sale@1.csv"), results_csv("sale@1")).unwrap();
        assert_eq!(choose(None), at("sale@1.csv"), "the run's own earlier results");
        fs::write(at("sale@1.csv"), "my work").unwrap();
        assert_eq!(choose(None), at("sale@2.csv"));
    }

    #[test]
    fn backup_gets_an_unused_name_and_overwrites_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("sale.csv"), "one").unwrap();
        assert_eq!(back_up_results(&at("sale.csv"), "sale@1").unwrap(), at("sale@1.csv"));
        assert_eq!(
            back_up_results(&at("sale.csv"), "sale@1").unwrap(),
            at("sale@1.csv"),
            "equal results need no second backup"
        );
        fs::remove_file(at("sale.csv")).unwrap();
        fs::write(at("sale.csv"), "two").unwrap();
        assert_eq!(back_up_results(&at("sale.csv"), "sale@1").unwrap(), at("sale@2.csv"));
        fs::create_dir(at("sale@3.csv")).unwrap();
        fs::remove_file(at("sale.csv")).unwrap();
        fs::write(at("sale.csv"), "three").unwrap();
        assert_eq!(back_up_results(&at("sale.csv"), "sale@3").unwrap(), at("sale@4.csv"), "a folder is in the way");
        let read = |name: &str| fs::read_to_string(at(name)).unwrap();
        assert_eq!([read("sale@1.csv"), read("sale@2.csv"), read("sale@4.csv")], ["one", "two", "three"]);
        for (name, backup) in [("a.b.xlsx", "a.b@7.xlsx"), ("plain", "plain@7")] {
            assert_eq!(numbered_path(Path::new(name), 7), Path::new(backup));
        }
    }
}
