//! The results: one row per recipient in the file's order, whatever became of it.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::excel_separator::choose_excel_separator;
use super::layout::{Layout, ResultsFormat};
use super::ledger_loss::LossSign;
use super::listing::Listing;
use super::own_columns::RecipientColumns;
use super::run_figures::RunFigures;
use super::target::{ResultsTarget, is_workbook};
use super::workbook::{self, FigureRow};
use crate::check::count_cores;
use crate::failpoint;
use crate::finding::Finding;
use crate::ledger::LedgerError;
use crate::manifest::{CampaignBrief, HeldFolder};
use crate::private::{self, ExistingFile};

/// Why results could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The ledger, or what the run froze, could not be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The frozen recipients could not be read, or are no list with the frozen campaign's columns.
    #[error("cannot read the run's copy of the list: {0}")]
    Recipients(String),
    /// The frozen recipients are not those that the run began with.
    #[error(
        "the copy of the list in `{0}` is not the list that the run started with, so its rows cannot be identified"
    )]
    ListChanged(PathBuf),
    /// What stands at the place of a run's results tells of messages that the ledger does not know of.
    #[error("the ledger does not contain all messages that were sent: {sign}; nothing was written")]
    LedgerIncomplete {
        /// The run.
        run: String,
        /// What contradicts the ledger.
        sign: LossSign,
    },
    /// What stands at the place of the results is not theirs to replace.
    #[error("cannot write the results: {0}")]
    PathBlocked(String),
    /// The results of another run are at this place and could not be kept under another name.
    #[error("`{path}` contains the results of another run and could not be renamed, so it was not replaced: {error}")]
    BackupFailed {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The file could not be written.
    #[error("cannot write the results `{path}`: {error}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

/// Writes the results to a temporary file beside their place, then puts it there whole, readable by its owner alone. Gives the
/// figures of the runs whose records make them.
///
/// # Errors
/// When the ledger or the recipients cannot be read, or the file cannot be written, or what stands there is no results.
pub async fn write_results_file(
    target: &ResultsTarget,
    style: ResultsFormat,
    listings: Vec<Listing<'_>>,
) -> Result<Vec<RunFigures>, ResultsError> {
    let failed = |error| ResultsError::Write { path: target.path().to_owned(), error };
    // The folder is held until the end.
    let (path, _folder) = resolve_target(target)?;
    let (temporary, file) = create_temporary_file(&path).map_err(failed)?;
    let written = async {
        let style = if is_workbook(&path) { ResultsFormat::Workbook } else { style };
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let figures = write_results(&mut out, style, listings).await.map_err(|error| match error {
            ResultsError::Write { error, .. } => failed(error),
            other => other,
        })?;
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        if style == ResultsFormat::Workbook {
            let temporary = temporary.clone();
            let summary = figures.first().map(workbook::figure_rows).unwrap_or_default();
            let made = tokio::task::spawn_blocking(move || convert_to_workbook(&temporary, &summary)).await;
            made.map_err(io::Error::other).flatten().map_err(failed)?;
        }
        file.sync_all().map_err(failed)?;
        failpoint::pass("results.written");
        // Something else may have taken the place meanwhile.
        target.resolve_path().map_err(ResultsError::PathBlocked)?;
        fs::rename(&temporary, &path).and_then(|()| private::sync_entry(&path)).map_err(failed)?;
        failpoint::pass("results.renamed");
        Ok(figures)
    }
    .await;
    if written.is_err() {
        // The reason that is reported is the first one.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Makes sure that results can be written to their place, without writing any.
///
/// # Errors
/// When the folder or a file in it cannot be created, or what stands there is no results.
pub fn check_target(target: &ResultsTarget) -> Result<(), ResultsError> {
    let (path, _folder) = resolve_target(target)?;
    let tried = create_temporary_file(&path).and_then(|(temporary, _)| fs::remove_file(temporary));
    tried.map_err(|error| ResultsError::Write { path: target.path().to_owned(), error })
}

/// The path of the results, in an existing folder. A folder that an assistant may have named is held open.
pub(super) fn resolve_target(target: &ResultsTarget) -> Result<(PathBuf, Option<HeldFolder>), ResultsError> {
    let failed = |error| ResultsError::Write { path: target.path().to_owned(), error };
    let path = target.resolve_path().map_err(ResultsError::PathBlocked)?;
    let held = target.file().hold_folder(true).map_err(failed)?;
    Ok(match held {
        Some(folder) => (folder.file_path(path.file_name().unwrap_or_default()), Some(folder)),
        None => {
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                private::create_folder(folder).map_err(failed)?;
            }
            (path, None)
        }
    })
}

/// Replaces the CSV in a file with a workbook of its rows, with a sheet of these figures if there are any.
fn convert_to_workbook(file: &Path, figures: &[FigureRow]) -> io::Result<()> {
    let csv = File::open(file)?;
    // What is open can be read to its end without a name.
    fs::remove_file(file)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    workbook::write_workbook(csv, figures, private::open_file(file, ExistingFile::CreateNew)?, folder)
}

fn create_temporary_file(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    // An earlier process with the same number may have left one. Removing a link does not touch its target.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = private::open_file(&temporary, ExistingFile::CreateNew)?;
    Ok((temporary, file))
}

/// Writes the rows of these lists, one list after another, and tells whether they were those that were frozen. Gives the figures
/// of the runs whose records make them.
///
/// # Errors
/// When the ledger or the recipients cannot be read, or `out` cannot be written.
pub async fn write_results(
    out: impl Write,
    style: ResultsFormat,
    listings: Vec<Listing<'_>>,
) -> Result<Vec<RunFigures>, ResultsError> {
    let mut own = RecipientColumns::default();
    let mut delimiter = Layout::COMMA;
    // The newest list is the one that people know.
    for listing in listings.iter().rev() {
        let reader = listing.open_reader()?;
        if own.is_empty() {
            let CampaignBrief { region, timezone, .. } = listing.brief;
            delimiter = choose_excel_separator(reader.delimiter(), *region, timezone.as_deref());
        }
        own.add_header(reader.header());
        own.has_variants |= !listing.brief.variants.is_empty();
    }
    let layout = Layout::for_format(style, &own, delimiter);
    let mut sheet = ResultsWriter { out, separator: layout.separator(), has_content: false };
    sheet.out.write_all(&layout.write_header(&own)).map_err(write_error)?;
    let mut figures = Vec::new();
    for listing in listings {
        figures.extend(sheet.write_list(&layout, &own, listing).await?);
    }
    sheet.out.flush().map_err(write_error)?;
    Ok(figures)
}

/// Where rows are written to.
struct ResultsWriter<W> {
    out: W,
    /// What stands between two groups of rows.
    separator: &'static [u8],
    has_content: bool,
}

impl<W: Write> ResultsWriter<W> {
    /// Rows and what became of them are read here, one group after another; they are formatted on all cores.
    async fn write_list(
        &mut self,
        layout: &Layout,
        own: &RecipientColumns,
        listing: Listing<'_>,
    ) -> Result<Option<RunFigures>, ResultsError> {
        let count = listing.run.map_or(0, |run| run.recipients);
        let reader = listing.open_reader()?;
        let writer = Arc::new(listing.row_writer(layout.clone(), own, reader.header()));
        let mut rows = listing.into_rows(reader)?;
        let (mut formatting, at_once) = (VecDeque::new(), count_cores());
        while let Some((chunk, facts)) = rows.next_chunk().await? {
            let writer = Arc::clone(&writer);
            formatting.push_back(tokio::task::spawn_blocking(move || writer.format_rows(&chunk, &facts)));
            if formatting.len() > at_once {
                self.write_next(&mut formatting).await?;
            }
        }
        while !formatting.is_empty() {
            self.write_next(&mut formatting).await?;
        }
        Ok(rows.finish().await?.and_then(|records| records.into_figures(count)))
    }

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
