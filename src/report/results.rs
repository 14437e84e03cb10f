//! The results: one row per recipient in the file's order, whatever became of it.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::frozen_list::FrozenList;
use super::layout::Layout;
use super::ledger_loss::LossSign;
use super::row_records::RowRecords;
use super::row_writer::{Exclusion, RowFacts, RowWriter};
use super::target::Target;
use crate::audience::{Chunk, Header, Reader};
use crate::check::{cores, settings};
use crate::domain::{IdRange, OperationKind};
use crate::failpoint;
use crate::finding::Finding;
use crate::ledger::{Activity, LedgerError, LeftOut, State};
use crate::manifest::Brief;
use crate::private::{self, Existing};

/// Why results could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The ledger could not be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// What the run froze cannot be read.
    #[error("the frozen copies in `{}` cannot be read: {error}", folder.display())]
    Frozen {
        /// The run's folder.
        folder: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The frozen recipients could not be read, or are no list with the frozen campaign's columns.
    #[error("the copy of the recipients cannot be used: {0}")]
    Recipients(String),
    /// The frozen recipients are not those that the run began with.
    #[error(
        "the copy of the recipients, `{0}`, is not what the run began with, so nobody can tell whose rows are whose; put it \
         back, or begin anew with `run FILE --accept-changes`"
    )]
    Changed(PathBuf),
    /// What stands at the place of a run's results tells of messages that the ledger does not know of.
    #[error("nothing was written, because the ledger knows less than what is there: {sign}")]
    Contradicted {
        /// The run.
        run: String,
        /// What contradicts the ledger.
        sign: LossSign,
    },
    /// What stands at the place of the results is not theirs to replace.
    #[error("the results cannot be written: {0}")]
    InTheWay(String),
    /// The file could not be written.
    #[error("the results `{path}` cannot be written: {error}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

/// What is listed: the recipients and what is known of the run.
pub struct Listing<'a> {
    /// The recipients, frozen.
    pub recipients: &'a Path,
    /// The SHA-256 that they had when they were frozen, in hexadecimal.
    pub recipients_sha256: &'a str,
    /// The campaign, frozen.
    pub brief: &'a Brief,
    /// The run's name; empty for a dry run.
    pub run: &'a str,
    /// The kind of its operations.
    pub kind: OperationKind,
    /// The identifiers of its rows.
    pub ids: Option<IdRange>,
    /// The identifiers of orders to send rows again as new messages, the first first.
    pub orders: &'a [IdRange],
    /// The rows that are never sent.
    pub left_out: &'a LeftOut,
    /// Only rows in one of these states; all when there are none.
    pub states: &'a [State],
}

/// Writes the results to a temporary file beside their place, then puts it there whole, readable by its owner alone.
///
/// Without `records` nothing was sent.
///
/// # Errors
/// When the ledger or the recipients cannot be read, or the file cannot be written, or what stands there is no results.
pub async fn write_file(
    target: &Target,
    listing: &Listing<'_>,
    records: Option<RowRecords<'_>>,
) -> Result<(), ResultsError> {
    let failed = |error| ResultsError::Write { path: target.path().to_owned(), error };
    let path = target.judge().map_err(ResultsError::InTheWay)?;
    let (temporary, file) = create_beside(&path).map_err(failed)?;
    let written = async {
        let mut out = BufWriter::with_capacity(1 << 16, file);
        write_results(&mut out, listing, records).await.map_err(|error| match error {
            ResultsError::Write { error, .. } => failed(error),
            other => other,
        })?;
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        failpoint::pass("results.written");
        fs::rename(&temporary, &path).and_then(|()| private::sync_entry(&path)).map_err(failed)?;
        failpoint::pass("results.renamed");
        Ok(())
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
pub fn check_place(target: &Target) -> Result<(), ResultsError> {
    let path = target.judge().map_err(ResultsError::InTheWay)?;
    let tried = create_beside(&path).and_then(|(temporary, _)| fs::remove_file(temporary));
    tried.map_err(|error| ResultsError::Write { path: target.path().to_owned(), error })
}

fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        private::folder(folder)?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let file = private::file(&temporary, Existing::Emptied)?;
    Ok((temporary, file))
}

/// Writes the results as CSV (RFC 4180).
///
/// # Errors
/// When the ledger or the recipients cannot be read, or `out` cannot be written.
pub async fn write_results(
    out: impl Write,
    listing: &Listing<'_>,
    records: Option<RowRecords<'_>>,
) -> Result<(), ResultsError> {
    write_listing(out, |_| Layout::Csv, listing, records).await
}

/// Writes the results as JSON objects by the columns of the CSV, with commas between them.
///
/// `row`, `id` and `parts` are numbers or null, all else is text; no cell is changed for the sake of a spreadsheet.
///
/// # Errors
/// When the ledger or the recipients cannot be read, or `out` cannot be written.
pub async fn write_objects(
    out: impl Write,
    listing: &Listing<'_>,
    records: Option<RowRecords<'_>>,
) -> Result<(), ResultsError> {
    write_listing(out, Layout::json, listing, records).await
}

/// Writes all rows, and tells at the end whether the recipients were those that were frozen.
async fn write_listing(
    out: impl Write,
    layout: impl FnOnce(&Header) -> Layout,
    listing: &Listing<'_>,
    records: Option<RowRecords<'_>>,
) -> Result<(), ResultsError> {
    let mut list = FrozenList::open(listing.recipients)?;
    let reader = Reader::open(&mut list, listing.recipients, &settings(listing.brief))?;
    let layout = layout(reader.header());
    write_rows(out, layout, reader, listing, records).await?;
    list.finish(listing.recipients_sha256)
}

/// Rows and what became of them are read here, one group after another; they are formatted on all cores.
async fn write_rows(
    out: impl Write,
    layout: Layout,
    mut reader: Reader<impl Read>,
    listing: &Listing<'_>,
    mut records: Option<RowRecords<'_>>,
) -> Result<(), ResultsError> {
    let mut sheet = Sheet { out, between: layout.between(), begun: false };
    sheet.out.write_all(&layout.head(reader.header())).map_err(write_error)?;
    let writer = Arc::new(row_writer(listing, layout, reader.header().phone(), records.as_ref()));
    let mut left_out = listing.left_out.in_order().peekable();
    let mut formatting = VecDeque::new();
    loop {
        let mut chunk = Chunk::new();
        if !reader.read_chunk(&mut chunk).map_err(|finding| vec![*finding])? {
            break;
        }
        let mut facts = Vec::with_capacity(chunk.len());
        for recipient in chunk.iter() {
            let record = match &mut records {
                Some(records) => records.take(recipient.row).await?,
                None => None,
            };
            let excluded = left_out.next_if(|(row, ..)| *row == recipient.row);
            let exclusion = excluded.map(|(_, state, reason)| Exclusion { state, reason: reason.to_owned() });
            facts.push(RowFacts { record, exclusion });
        }
        let writer = Arc::clone(&writer);
        formatting.push_back(tokio::task::spawn_blocking(move || writer.lines(&chunk, &facts)));
        if formatting.len() > cores() {
            sheet.write_next(&mut formatting).await?;
        }
    }
    while !formatting.is_empty() {
        sheet.write_next(&mut formatting).await?;
    }
    sheet.out.flush().map_err(write_error)
}

fn row_writer(
    listing: &Listing<'_>,
    layout: Layout,
    phone_column: usize,
    records: Option<&RowRecords<'_>>,
) -> RowWriter {
    RowWriter {
        layout,
        kind: listing.kind,
        run: listing.run.to_owned(),
        ids: listing.ids,
        orders: listing.orders.to_vec(),
        states: listing.states.to_vec(),
        region: listing.brief.region,
        phone_column,
        activity: records.map_or(Activity::Idle, RowRecords::activity),
    }
}

/// Where rows are written to.
struct Sheet<W> {
    out: W,
    /// What stands between two groups of rows.
    between: &'static [u8],
    begun: bool,
}

impl<W: Write> Sheet<W> {
    async fn write_next(&mut self, formatting: &mut VecDeque<JoinHandle<Vec<u8>>>) -> Result<(), ResultsError> {
        let Some(rows) = formatting.pop_front() else { return Ok(()) };
        let rows = rows.await.map_err(|error| write_error(io::Error::other(error)))?;
        if rows.is_empty() {
            return Ok(());
        }
        if self.begun {
            self.out.write_all(self.between).map_err(write_error)?;
        }
        self.begun = true;
        self.out.write_all(&rows).map_err(write_error)
    }
}

impl From<Vec<Finding>> for ResultsError {
    fn from(findings: Vec<Finding>) -> Self {
        Self::Recipients(findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("; "))
    }
}

fn write_error(error: io::Error) -> ResultsError {
    ResultsError::Write { path: PathBuf::from("the output"), error }
}
