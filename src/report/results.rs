//! The results CSV: one row per recipient in the file's order, whatever became of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::cell::harmless;
use super::sweep::{Fate, Sweep};
use crate::audience::{Chunk, Fields, Reader, Region, Settings, parse};
use crate::domain::{IdRange, MsgId, OperationKind, Phone, Row};
use crate::finding::Finding;
use crate::ledger::{ENDED_EARLY, LedgerError, LeftOut, Outcome, State};
use crate::manifest::Brief;

/// The columns that stand before the recipient's own.
const COLUMNS: [&str; 17] = [
    "row",
    "id",
    "to",
    "state",
    "operation",
    "msg_id",
    "request_id",
    "parts",
    "gateway_status",
    "reason",
    "error",
    "submitted_at",
    "updated_at",
    "delivered_by",
    "delivered_at",
    "answer",
    "run",
];

/// Why results could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The ledger could not be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The frozen recipients could not be read.
    #[error("the copy of the recipients cannot be read: {0}")]
    Recipients(String),
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
    /// The campaign, frozen.
    pub brief: &'a Brief,
    /// The run's name; empty for a dry run.
    pub run: &'a str,
    /// The kind of its operations.
    pub kind: OperationKind,
    /// The identifiers of its rows.
    pub ids: Option<IdRange>,
    /// The rows that are never sent.
    pub left_out: &'a LeftOut,
    /// Only rows in one of these states; all when there are none.
    pub states: &'a [State],
}

/// Where the fate of each row comes from.
pub enum Fates<'a> {
    /// From the ledger; an intent alone is `sending` while the run has an owner, and in doubt otherwise.
    Ledger {
        /// The envelopes.
        sweep: Sweep<'a>,
        /// Whether a process is sending.
        owned: bool,
    },
    /// Nothing was sent.
    None,
}

/// Writes the results to a temporary file beside `path`, then puts it in place whole, readable by its owner alone.
///
/// # Errors
/// When the ledger or the recipients cannot be read, or the file cannot be written.
pub async fn write_file(path: &Path, listing: &Listing<'_>, fates: Fates<'_>) -> Result<(), ResultsError> {
    let failed = |error| ResultsError::Write { path: path.to_owned(), error };
    let (temporary, file) = create_beside(path).map_err(failed)?;
    let written = async {
        let mut out = BufWriter::with_capacity(1 << 16, file);
        write_results(&mut out, listing, fates).await.map_err(|error| match error {
            ResultsError::Write { error, .. } => failed(error),
            other => other,
        })?;
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        fs::rename(&temporary, path).map_err(failed)
    }
    .await;
    if written.is_err() {
        // The reason that is reported is the first one.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    Ok((temporary.clone(), options.open(temporary)?))
}

/// Writes the results as CSV (RFC 4180).
///
/// # Errors
/// When the ledger or the recipients cannot be read, or `out` cannot be written.
pub async fn write_results(out: impl Write, listing: &Listing<'_>, mut fates: Fates<'_>) -> Result<(), ResultsError> {
    let region = listing.brief.region.as_deref().and_then(|region| region.parse().ok());
    let mut reader = open(listing, region)?;
    let mut lines = Lines::new(out, listing, region, reader.header().phone());
    lines.header(reader.header().headers())?;
    let mut left_out = listing.left_out.in_order().peekable();
    let mut chunk = Chunk::new();
    while reader.read_chunk(&mut chunk).map_err(|finding| damaged(vec![*finding]))? {
        for record in chunk.iter() {
            let fate = match &mut fates {
                Fates::Ledger { sweep, .. } => sweep.take(record.row).await?,
                Fates::None => None,
            };
            let reason = left_out.next_if(|(row, ..)| *row == record.row).map(|(_, state, reason)| (state, reason));
            let owned = matches!(fates, Fates::Ledger { owned: true, .. });
            lines.line(record.row, record.fields, &Known { fate, reason, owned })?;
        }
    }
    lines.finish()
}

fn open(listing: &Listing<'_>, region: Option<Region>) -> Result<Reader<BufReader<File>>, ResultsError> {
    let file = File::open(listing.recipients)
        .map_err(|error| ResultsError::Recipients(format!("{}: {error}", listing.recipients.display())))?;
    let settings = Settings { columns: listing.brief.columns.clone(), region };
    Reader::open(BufReader::new(file), listing.recipients, &settings).map_err(damaged)
}

fn damaged(findings: Vec<Finding>) -> ResultsError {
    ResultsError::Recipients(findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("; "))
}

/// All that is known of one row.
struct Known<'a> {
    fate: Option<Fate>,
    reason: Option<(State, &'a str)>,
    owned: bool,
}

impl Known<'_> {
    fn state(&self) -> State {
        match (&self.fate, &self.reason) {
            (Some(Fate { settled: Some((_, outcome)), .. }), _) => outcome.state(),
            (Some(_), _) if self.owned => State::Sending,
            (Some(_), _) => State::InDoubt,
            (None, Some((state, _))) => *state,
            (None, None) => State::Planned,
        }
    }
}

/// Writes lines into a CSV.
struct Lines<'a, W: Write> {
    csv: csv::Writer<W>,
    listing: &'a Listing<'a>,
    region: Option<Region>,
    phone_column: usize,
    /// The line that is being written, reused.
    record: csv::ByteRecord,
}

impl<'a, W: Write> Lines<'a, W> {
    fn new(out: W, listing: &'a Listing<'a>, region: Option<Region>, phone_column: usize) -> Self {
        Self { csv: csv::Writer::from_writer(out), listing, region, phone_column, record: csv::ByteRecord::new() }
    }

    fn header(&mut self, own: &[String]) -> Result<(), ResultsError> {
        for column in COLUMNS {
            self.cell(column);
        }
        for header in own {
            let taken = COLUMNS.contains(&header.as_str());
            self.cell(&if taken { format!("{header}_in") } else { header.clone() });
        }
        self.end_line()
    }

    fn line(&mut self, row: Row, own: Fields<'_>, known: &Known<'_>) -> Result<(), ResultsError> {
        let state = known.state();
        if !self.listing.states.is_empty() && !self.listing.states.contains(&state) {
            return Ok(());
        }
        let Listing { kind, run, ids, .. } = *self.listing;
        let sent = known.fate.as_ref();
        let settled = sent.and_then(|fate| fate.settled.as_ref());
        let outcome = settled.map(|(_, outcome)| outcome);
        let (reason, error, request_id, answer) = texts(outcome, known.reason);
        let reason = if state == State::InDoubt && outcome.is_none() { ENDED_EARLY } else { reason };
        let operation = if matches!(state, State::Skipped | State::Invalid) { "" } else { kind.name() };
        let phone = match sent {
            Some(fate) => Some(fate.phone),
            None => parse(own.get(self.phone_column), self.region).ok(),
        };
        self.number(Some(row.get().into()));
        self.number(sent.and_then(|_| Some(ids?.id(row)?.get())));
        self.number(phone.map(Phone::get));
        self.cell(state.name());
        self.cell(operation);
        self.accepted(outcome, request_id);
        self.cell(""); // gateway_status
        self.cell(reason);
        self.cell(error);
        self.cell(sent.map_or("", |fate| &fate.submitted_at));
        self.cell(settled.map_or("", |(at, _)| at));
        self.cell(""); // delivered_by
        self.cell(""); // delivered_at
        self.cell(answer);
        self.cell(run);
        for cell in own.iter() {
            self.cell(cell);
        }
        self.end_line()
    }

    /// The columns `msg_id`, `request_id` and `parts`.
    fn accepted(&mut self, outcome: Option<&Outcome>, request_id: &str) {
        let (msg_id, parts) = match outcome {
            Some(Outcome::Accepted { msg_id, parts, .. }) => (msg_id.as_ref(), *parts),
            _ => (None, None),
        };
        match msg_id {
            Some(MsgId::Number(number)) => self.number(Some(*number)),
            Some(MsgId::Text(text)) => self.cell(text),
            None => self.cell(""),
        }
        self.cell(request_id);
        self.number(parts.map(u64::from));
    }

    fn number(&mut self, number: Option<u64>) {
        match number {
            Some(number) => self.record.push_field(itoa::Buffer::new().format(number).as_bytes()),
            None => self.record.push_field(b""),
        }
    }

    fn cell(&mut self, cell: &str) {
        self.record.push_field(harmless(cell).as_bytes());
    }

    fn end_line(&mut self) -> Result<(), ResultsError> {
        self.csv.write_byte_record(&self.record).map_err(write_error)?;
        self.record.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(), ResultsError> {
        self.csv.flush().map_err(|error| write_error(error.into()))
    }
}

/// The columns `reason`, `error`, `request_id` and `answer`.
fn texts<'a>(outcome: Option<&'a Outcome>, left_out: Option<(State, &'a str)>) -> (&'a str, &'a str, &'a str, &'a str) {
    match outcome {
        None => (left_out.map_or("", |(_, reason)| reason), "", "", ""),
        Some(Outcome::Accepted { answer, .. }) => ("", "", "", answer.as_deref().unwrap_or("")),
        Some(Outcome::Queued { request_id }) => ("", "", request_id, ""),
        Some(Outcome::Rejected { error }) => ("", error, "", ""),
        Some(Outcome::NotSent { reason } | Outcome::InDoubt { reason }) => (reason, "", "", ""),
    }
}

fn write_error(error: csv::Error) -> ResultsError {
    let error = match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    };
    ResultsError::Write { path: PathBuf::from("the output"), error }
}
