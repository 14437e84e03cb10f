//! What is listed: the recipients of a run and what became of each, read from the first row to the last.

use std::iter::Peekable;

use roaring::RoaringBitmap;

use super::ResultsError;
use super::earlier_messages::{EarlierMessages, EarlierRuns};
use super::frozen_list::{FrozenList, ListSource};
use super::layout::Layout;
use super::list_ahead::ReadAheadList;
use super::own_columns::RecipientColumns;
use super::row_records::RowRecords;
use super::row_selection::RowSelection;
use super::row_writer::{Exclusion, RowFacts, RowWriter, VariantLookup};
use crate::audience::{Chunk, ListHeader, RecipientReader};
use crate::check::reader_settings;
use crate::domain::{OperationKind, Row};
use crate::ledger::{ExcludedRows, RowState, Run, RunActivity};
use crate::manifest::CampaignBrief;

/// What is listed: the recipients and what is known of the run.
pub struct Listing<'a> {
    /// The recipients, frozen.
    pub recipients: ListSource<'a>,
    /// The SHA-256 that they had when they were frozen, in hexadecimal.
    pub recipients_sha256: &'a str,
    /// The campaign, frozen.
    pub brief: &'a CampaignBrief,
    /// The run; nothing for a dry run.
    pub run: Option<&'a Run>,
    /// The kind of its operations.
    pub kind: OperationKind,
    /// The rows that are never sent.
    pub left_out: &'a ExcludedRows,
    /// Only the rows that match it.
    pub selection: RowSelection,
    /// Only these rows; all where there is nothing.
    pub only: Option<&'a RoaringBitmap>,
    /// What became of them; without it nothing was sent.
    pub records: Option<RowRecords<'a>>,
    /// The runs whose messages skipped rows can refer to.
    pub earlier: Option<EarlierRuns<'a>>,
}

impl<'a> Listing<'a> {
    /// A reader of its recipients.
    pub(super) fn open_reader(&self) -> Result<RecipientReader<FrozenList>, ResultsError> {
        let list = FrozenList::open(self.recipients)?;
        Ok(RecipientReader::open(list, self.recipients.path(), &reader_settings(self.brief))?)
    }

    /// What is being done about its run.
    pub(super) fn activity(&self) -> RunActivity {
        self.records.as_ref().map_or(RunActivity::Idle, RowRecords::activity)
    }

    /// How its rows are written.
    pub(super) fn row_writer(&self, layout: Layout, own: &RecipientColumns, header: &ListHeader) -> RowWriter {
        RowWriter {
            layout,
            own: own.find_positions(header),
            variants: VariantLookup::from_brief(self.brief, own.has_variants),
            kind: self.kind,
            run: self.run.map(|run| (run.clone(), run.name())),
            selection: self.selection.clone(),
            only: self.only.cloned(),
            region: self.brief.region,
            phones: header.phones().clone(),
            activity: self.activity(),
        }
    }

    /// Its rows with what became of them.
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

/// A row that is never sent, in which state, and why.
type ExcludedRow<'a> = (Row, RowState, &'a str);

/// The rows of a listing, one group after another.
pub(super) struct ListingRows<'a, I: Iterator> {
    list: ReadAheadList,
    sha256: &'a str,
    left_out: Peekable<I>,
    records: Option<RowRecords<'a>>,
    earlier: Option<EarlierMessages<'a>>,
}

impl<'a, I: Iterator<Item = ExcludedRow<'a>>> ListingRows<'a, I> {
    /// The next group with what became of each of its rows; nothing at the end, or where the list cannot be read on, which
    /// [`Rows::finish`] has to be asked.
    pub(super) async fn next_chunk(&mut self) -> Result<Option<(Chunk, Vec<RowFacts>)>, ResultsError> {
        let Some(chunk) = self.list.next_chunk().await else { return Ok(None) };
        let mut facts = Vec::with_capacity(chunk.len());
        let ends = chunk.get(0).zip(chunk.get(chunk.len().saturating_sub(1)));
        if let (Some(records), Some((first, last))) = (&mut self.records, ends) {
            records.read_through(first.row, last.row).await?;
        }
        if let (Some(earlier), Some((_, last))) = (&mut self.earlier, ends) {
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

    /// Makes sure that the list could be read to its end and is the one that was frozen; gives what the records came to.
    pub(super) async fn finish(self) -> Result<Option<RowRecords<'a>>, ResultsError> {
        self.list.verify_hash(self.sha256).await?;
        Ok(self.records)
    }
}
