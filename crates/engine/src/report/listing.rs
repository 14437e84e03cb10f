//! Listing of a run: its frozen list, the outcome of each row, and the rows that a person selects.

use std::io::{self, BufReader, Read, Sink};
use std::iter::Peekable;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};

use roaring::RoaringBitmap;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinHandle;

use super::ResultsError;
use super::columns::{Exclusion, RecipientColumns, RowFacts, RowFormatter, VariantLookup};
use super::earlier_messages::{EarlierMessages, EarlierRuns};
use super::layout::Layout;
use super::row_records::{RowRecord, RowRecords};
use crate::check::{Tee, reader_settings};
use campaign_content::audience::{Chunk, ListHeader, RecipientReader};
use campaign_core::domain::{Channel, OperationKind, Phone, Row, RowSet};
use campaign_core::finding::Finding;
use campaign_ledger::{Copies, ExcludedRows, ListReader, RowState, Run, RunActivity};
use campaign_manifest::CampaignBrief;

/// The list and the known facts of a run to be listed.
pub struct Listing<'a> {
    /// The frozen recipient list.
    pub recipients: ListSource<'a>,
    /// The SHA-256 of the list when it was frozen, in hexadecimal.
    pub recipients_sha256: &'a str,
    /// The frozen campaign.
    pub brief: &'a CampaignBrief,
    /// The run; `None` for a dry run.
    pub run: Option<&'a Run>,
    /// The operation type.
    pub kind: OperationKind,
    /// The rows that are never sent.
    pub left_out: &'a ExcludedRows,
    /// Selects rows by condition.
    pub selection: RowSelection,
    /// Selects rows by number; `None` for all rows.
    pub only: Option<&'a RoaringBitmap>,
    /// The outcomes of rows; `None` if nothing was sent.
    pub records: Option<RowRecords<'a>>,
    /// The runs whose messages skipped rows can refer to.
    pub earlier: Option<EarlierRuns<'a>>,
}

impl<'a> Listing<'a> {
    /// Opens the recipient list.
    pub(super) fn open_reader(&self) -> Result<RecipientReader<FrozenList>, ResultsError> {
        let list = FrozenList::open(self.recipients)?;
        Ok(RecipientReader::open(list, self.recipients.path(), &reader_settings(self.brief))?)
    }

    /// The activity of the run.
    pub(super) fn activity(&self) -> RunActivity {
        self.records.as_ref().map_or(RunActivity::Idle, RowRecords::activity)
    }

    /// Creates the formatter for the rows of this listing.
    pub(super) fn row_formatter(
        &self,
        layout: Layout,
        recipients: &RecipientColumns,
        header: &ListHeader,
    ) -> RowFormatter {
        RowFormatter {
            layout,
            recipient_positions: recipients.find_positions(header),
            variants: VariantLookup::from_brief(self.brief, recipients.has_variants),
            kind: self.kind,
            run: self.run.map(|run| (run.clone(), run.name())),
            selection: self.selection.clone(),
            only: self.only.cloned(),
            region: self.brief.region,
            phones: header.phones().clone(),
            activity: self.activity(),
        }
    }

    /// Starts to read the rows of the listing, each with its outcome.
    pub(super) fn into_rows(
        self,
        reader: RecipientReader<FrozenList>,
    ) -> Result<ListingRows<'a, impl Iterator<Item = ExcludedRow<'a>>>, ResultsError> {
        Ok(ListingRows {
            list: ReadAheadList::spawn(reader),
            sha256: self.recipients_sha256,
            left_out: self.left_out.iter_by_row().peekable(),
            records: self.records,
            earlier: self.earlier.map(EarlierRuns::open_messages).transpose()?,
        })
    }
}

/// A row that is never sent, with its state and reason.
type ExcludedRow<'a> = (Row, RowState, &'a str);

/// The rows of a listing, in groups.
pub(super) struct ListingRows<'a, I: Iterator> {
    list: ReadAheadList,
    sha256: &'a str,
    left_out: Peekable<I>,
    records: Option<RowRecords<'a>>,
    earlier: Option<EarlierMessages<'a>>,
}

impl<'a, I: Iterator<Item = ExcludedRow<'a>>> ListingRows<'a, I> {
    /// Reads the next group, with the facts about each row. `None` at the end, or if the list cannot be read further;
    /// then [`ListingRows::finish`] returns the error.
    pub(super) async fn next_chunk(&mut self) -> Result<Option<(Chunk, Vec<RowFacts>)>, ResultsError> {
        let Some(chunk) = self.list.next_chunk().await else { return Ok(None) };
        let mut facts = Vec::with_capacity(chunk.len());
        let first_and_last = chunk.get(0).zip(chunk.get(chunk.len().saturating_sub(1)));
        if let (Some(records), Some((first, last))) = (&mut self.records, first_and_last) {
            records.read_rows(first.row, last.row).await?;
        }
        if let (Some(earlier), Some((_, last))) = (&mut self.earlier, first_and_last) {
            earlier.look_up_through(last.row).await?;
        }
        for recipient in chunk.iter() {
            let record = self.records.as_mut().and_then(|records| records.take_loaded(recipient.row));
            let excluded = self.left_out.next_if(|(row, ..)| *row == recipient.row);
            let exclusion = excluded.map(|(_, state, reason)| Exclusion { state, reason: reason.to_owned() });
            let earlier = self.earlier.as_mut().and_then(|earlier| earlier.take_message(recipient.row));
            facts.push(RowFacts { record, exclusion, earlier });
        }
        Ok(Some((chunk, facts)))
    }

    /// Verifies that the list was read to the end and is the frozen list. Returns the record reader.
    pub(super) async fn finish(self) -> Result<Option<RowRecords<'a>>, ResultsError> {
        self.list.verify_hash(self.sha256).await?;
        Ok(self.records)
    }
}

/// The size of the read buffer.
const BUFFER_BYTES: usize = 1 << 16;

/// The location of a recipient list.
#[derive(Clone, Copy)]
pub enum ListSource<'a> {
    /// The user's own list.
    Outside {
        /// The path as the user wrote it.
        path: &'a Path,
        /// Opens it as UTF-8 text.
        open: &'a (dyn Fn() -> io::Result<ListReader> + Sync),
    },
    /// A run's copy of its list.
    Copies(&'a Copies),
}

impl<'a> ListSource<'a> {
    /// The path of the list, for display.
    pub(super) fn path(self) -> &'a Path {
        match self {
            Self::Outside { path, .. } => path,
            Self::Copies(copies) => copies.place().as_ref(),
        }
    }

    fn open(self) -> io::Result<ListReader> {
        match self {
            Self::Outside { open, .. } => open(),
            Self::Copies(copies) => copies.open_list(),
        }
    }
}

/// A recipient list that is hashed while it is read.
pub(super) struct FrozenList {
    /// The path to show.
    path: PathBuf,
    tee: Tee<BufReader<ListReader>, Sink>,
}

impl FrozenList {
    /// Opens the list.
    pub(super) fn open(source: ListSource<'_>) -> Result<Self, ResultsError> {
        let list = source.open().map_err(list_read_error)?;
        Ok(Self { path: source.path().to_owned(), tee: Tee::new(BufReader::with_capacity(BUFFER_BYTES, list), None) })
    }

    /// Reads the rest of the list, and verifies that the whole list has this SHA-256 in hexadecimal.
    pub(super) fn verify_hash(mut self, sha256: &str) -> Result<(), ResultsError> {
        let read = self.tee.finish().map_err(list_read_error)?;
        if read == sha256 { Ok(()) } else { Err(ResultsError::ListChanged(self.path)) }
    }
}

impl Read for FrozenList {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.tee.read(buffer)
    }
}

fn list_read_error(error: io::Error) -> ResultsError {
    ResultsError::Recipients(error.to_string())
}

/// The number of groups that are read ahead.
const CHUNKS_AHEAD: usize = 4;

/// A list that a separate thread reads ahead.
pub(super) struct ReadAheadList {
    groups: Receiver<Chunk>,
    reading: JoinHandle<Result<FrozenList, Box<Finding>>>,
}

impl ReadAheadList {
    /// Starts a task that continues to read at the reader's position.
    pub(super) fn spawn(mut reader: RecipientReader<FrozenList>) -> Self {
        let (sender, groups) = channel(CHUNKS_AHEAD);
        let reading = tokio::task::spawn_blocking(move || {
            loop {
                let mut group = Chunk::new();
                if !reader.read_chunk(&mut group)? || sender.blocking_send(group).is_err() {
                    // The list ended, or the receiver was dropped.
                    return Ok(reader.into_input());
                }
            }
        });
        Self { groups, reading }
    }

    /// Waits for the next group. `None` at the end, or if the list cannot be read further; then
    /// [`ReadAheadList::verify_hash`] returns the error.
    pub(super) async fn next_chunk(&mut self) -> Option<Chunk> {
        self.groups.recv().await
    }

    /// Reads the rest of the list, and verifies that the whole list has this SHA-256 in hexadecimal.
    pub(super) async fn verify_hash(self, sha256: &str) -> Result<(), ResultsError> {
        drop(self.groups);
        let reading = self.reading.await.map_err(|error| match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(error) => ResultsError::Recipients(error.to_string()),
        })?;
        reading.map_err(|finding| vec![*finding])?.verify_hash(sha256)
    }
}

/// The conditions for a row to be listed. All must match; the default lists every row.
#[derive(Clone, Debug, Default)]
pub struct RowSelection {
    /// Only these rows.
    pub rows: Option<RowSet>,
    /// Only the rows of this number.
    pub phone: Option<Phone>,
    /// Only rows in one of these states; all if there are none.
    pub states: Vec<RowState>,
    /// Only rows whose error contains one of these texts, in any case; all if there are none.
    pub errors: Vec<String>,
    /// Only rows whose message counts for one of these channels; all if there are none.
    pub channels: Vec<Channel>,
}

impl RowSelection {
    /// Whether every row is listed.
    pub fn is_unfiltered(&self) -> bool {
        let Self { rows, phone, states, errors, channels } = self;
        rows.is_none() && phone.is_none() && states.is_empty() && errors.is_empty() && channels.is_empty()
    }

    /// Whether a row meets the conditions that can be checked without cells.
    pub(super) fn matches(&self, row: Row, state: RowState, record: Option<&RowRecord>) -> bool {
        let channel = || record.and_then(RowRecord::channel);
        self.rows.as_ref().is_none_or(|rows| rows.contains(row))
            && (self.states.is_empty() || self.states.contains(&state))
            && (self.channels.is_empty() || channel().is_some_and(|channel| self.channels.contains(&channel)))
    }

    /// Whether a row meets the conditions on the phone number and the error. If there is no error text, the gateway
    /// status is searched instead.
    pub(super) fn matches_cells(&self, phone: Option<Phone>, error: &str, status: &str) -> bool {
        let error = if error.is_empty() { status } else { error }.to_lowercase();
        (self.phone.is_none() || self.phone == phone)
            && (self.errors.is_empty() || self.errors.iter().any(|text| error.contains(&text.to_lowercase())))
    }

    /// Whether a condition needs the cells of a row.
    pub(super) fn needs_cells(&self) -> bool {
        self.phone.is_some() || !self.errors.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::report::ListSource;
    use campaign_content::audience::ListSettings;
    use campaign_ledger::ListReader;

    /// A list of `rows` rows that is read ahead, and the list's SHA-256.
    fn read_ahead(rows: u64) -> (ReadAheadList, String) {
        let rows: String = (0..rows).map(|row| format!("{}\n", 380_501_000_000 + row)).collect();
        let text = format!("phone\n{rows}");
        let sha256 = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        let open = || Ok(Box::new(io::Cursor::new(text.clone())) as ListReader);
        let path = Path::new("list.csv");
        let list = FrozenList::open(ListSource::Outside { path, open: &open }).unwrap();
        (ReadAheadList::spawn(RecipientReader::open(list, path, &ListSettings::default()).unwrap()), sha256)
    }

    #[tokio::test]
    async fn each_row_is_read_once_in_order() {
        let (mut list, sha256) = read_ahead(20_000);
        let mut next = 2;
        while let Some(group) = list.next_chunk().await {
            for record in group.iter() {
                assert_eq!(record.row.get(), next);
                next += 1;
            }
        }
        assert_eq!(next, 20_002);
        list.verify_hash(&sha256).await.unwrap();
    }

    #[tokio::test]
    async fn hash_covers_the_whole_list_even_if_few_rows_are_read() {
        for count in [0, 1] {
            let (mut list, sha256) = read_ahead(20_000);
            for _ in 0..count {
                assert!(list.next_chunk().await.is_some());
            }
            list.verify_hash(&sha256).await.unwrap();
            let (list, _) = read_ahead(20_001);
            assert!(matches!(list.verify_hash(&sha256).await, Err(ResultsError::ListChanged(_))), "{count}");
        }
    }

    #[tokio::test]
    async fn read_error_is_reported_at_the_end() {
        let open = || Ok(Box::new(io::Cursor::new("phone,name\n380501000002,Olena\n380501000003\n")) as ListReader);
        let path = Path::new("list.csv");
        let list = FrozenList::open(ListSource::Outside { path, open: &open }).unwrap();
        let mut list = ReadAheadList::spawn(RecipientReader::open(list, path, &ListSettings::default()).unwrap());
        while list.next_chunk().await.is_some() {}
        assert!(matches!(list.verify_hash("").await, Err(ResultsError::Recipients(_))));
    }

    #[test]
    fn row_selection_combines_all_conditions() {
        let selection = RowSelection {
            rows: Some("2-4".parse().unwrap()),
            states: vec![RowState::Rejected],
            errors: vec!["no ROUTE".to_owned(), "money".to_owned()],
            ..RowSelection::default()
        };
        assert!(selection.matches(Row::new(3), RowState::Rejected, None));
        assert!(!selection.matches(Row::new(5), RowState::Rejected, None));
        assert!(!selection.matches(Row::new(3), RowState::Accepted, None));
        assert!(selection.matches_cells(None, "No route", ""));
        assert!(selection.matches_cells(None, "", "NO ROUTE"), "the status counts without an error");
        assert!(!selection.matches_cells(None, "Timeout", "NO ROUTE"));
        let by_sms = RowSelection { channels: vec![Channel::Sms], ..RowSelection::default() };
        assert!(!by_sms.matches(Row::new(2), RowState::Planned, None), "nothing was sent by any channel");
        assert!(RowSelection::default().is_unfiltered() && !by_sms.is_unfiltered());
    }
}
