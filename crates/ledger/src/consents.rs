//! Evidence of consent: what a run knew about the consent of each recipient when it began.
//!
//! Evidence belongs to the rows of a run. It never changes, but is erased when a number is forgotten or a run is
//! purged.

use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{LedgerFuture, RowSpan, RunId};
use campaign_core::domain::{ConsentCells, Row};

/// The evidence of a row's consent, as it was written in the list or file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentEvidence {
    /// The row of the recipient in the run.
    pub row: Row,
    /// The answer.
    pub value: String,
    /// The time at which the consent was given.
    pub at: String,
    /// The place where the consent was given.
    pub source: String,
    /// The wording that the recipient agreed to.
    pub wording: String,
}

/// The evidence of consecutive rows. Equal texts are stored once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsentBlock {
    texts: Vec<String>,
    /// The rows in ascending order, each with the indexes of answer, time, source and wording among the texts.
    rows: Vec<(Row, [u32; 4])>,
}

impl ConsentBlock {
    /// The maximum number of rows in a block.
    pub const MAX_ROWS: usize = 1_024;

    /// The first and the last row. `None` if the block has no rows.
    pub fn span(&self) -> Option<RowSpan> {
        let ((first, _), (last, _)) = self.rows.first().zip(self.rows.last())?;
        Some(RowSpan { first: *first, last: *last })
    }

    /// The evidence of the rows in a span.
    pub(crate) fn list_evidence(&self, span: RowSpan) -> impl Iterator<Item = ConsentEvidence> {
        let text_at = |index: u32| self.texts.get(index as usize).cloned().unwrap_or_default();
        let rows = self.rows.iter().filter(move |(row, _)| span.contains(*row));
        rows.map(move |(row, indexes)| {
            let [value, at, source, wording] = indexes.map(text_at);
            ConsentEvidence { row: *row, value, at, source, wording }
        })
    }

    /// A copy of the block without the evidence and texts of the forgotten rows. `None` if the block has no evidence of
    /// these rows.
    pub(crate) fn without_rows(&self, forgotten: &RoaringBitmap) -> Option<Self> {
        let Self { texts: _, rows } = self;
        if !rows.iter().any(|(row, _)| forgotten.contains(row.get())) {
            return None;
        }
        let mut remaining = ConsentBlockBuilder::default();
        for evidence in self.list_evidence(self.span()?) {
            let ConsentEvidence { row, value, at, source, wording } = &evidence;
            if !forgotten.contains(row.get()) {
                remaining.add_row(*row, ConsentCells { value, at, source, wording });
            }
        }
        Some(remaining.build())
    }
}

/// Builds a block row by row.
#[derive(Debug, Default)]
pub struct ConsentBlockBuilder {
    block: ConsentBlock,
    /// The index of each text in the block.
    text_indexes: FxHashMap<String, u32>,
}

impl ConsentBlockBuilder {
    /// Adds the evidence of a row, which must come after all rows added before.
    pub fn add_row(&mut self, row: Row, cells: ConsentCells<'_>) {
        let ConsentCells { value, at, source, wording } = cells;
        let indexes = [value, at, source, wording].map(|text| self.intern_text(text));
        self.block.rows.push((row, indexes));
    }

    /// The index of a text. Adds the text if it is missing.
    fn intern_text(&mut self, text: &str) -> u32 {
        if let Some(index) = self.text_indexes.get(text) {
            return *index;
        }
        let index = u32::try_from(self.block.texts.len()).unwrap_or(u32::MAX);
        self.block.texts.push(text.to_owned());
        self.text_indexes.insert(text.to_owned(), index);
        index
    }

    /// Whether the block has the maximum number of rows.
    pub fn is_full(&self) -> bool {
        self.block.rows.len() >= ConsentBlock::MAX_ROWS
    }

    /// Whether the block has no rows.
    pub fn is_empty(&self) -> bool {
        self.block.rows.is_empty()
    }

    /// Returns the finished block.
    pub fn build(self) -> ConsentBlock {
        self.block
    }
}

/// Evidence of consent in a ledger.
pub trait ConsentStore: Send + Sync {
    /// The evidence of these rows, in ascending order of rows. Rows without evidence are omitted.
    fn load_consents(&self, run: RunId, rows: RowSpan) -> LedgerFuture<'_, Vec<ConsentEvidence>>;
}
