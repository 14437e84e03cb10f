//! A handful of records that owns its texts, so that it can go to another thread.

use std::fmt;

use crate::domain::Row;

/// Up to [`Chunk::CAPACITY`] records of one file; reused, it allocates nothing.
#[derive(Default)]
pub struct Chunk {
    /// The cells of all records, one behind the other.
    text: String,
    /// Where each cell of `text` ends.
    ends: Vec<usize>,
    rows: Vec<Row>,
    /// Cells per record.
    width: usize,
}

/// One record of a [`Chunk`].
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'a> {
    /// The record's row.
    pub row: Row,
    /// The record's cells.
    pub fields: RecordFields<'a>,
}

/// The cells of one record, in the order of the header.
#[derive(Clone, Copy)]
pub struct RecordFields<'a> {
    text: &'a str,
    start: usize,
    ends: &'a [usize],
}

impl Chunk {
    /// The most records that a chunk holds.
    pub const CAPACITY: usize = 1_024;
    /// Bytes of text after which no further record is added.
    const MAX_TEXT: usize = 1 << 20;
    /// After this many cells no record is added: an empty cell has no text but still takes eight bytes.
    const MAX_CELLS: usize = 1 << 17;

    /// A chunk without records.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many records the chunk holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the chunk holds no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The record at that position of the chunk, from 0.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<RecordRef<'_>> {
        let row = *self.rows.get(index)?;
        Some(RecordRef { row, fields: self.record_fields(index) })
    }

    /// The records in the file's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RecordRef<'_>> {
        self.rows.iter().enumerate().map(|(index, &row)| RecordRef { row, fields: self.record_fields(index) })
    }

    fn record_fields(&self, index: usize) -> RecordFields<'_> {
        let first = index * self.width;
        let start = first.checked_sub(1).map_or(0, |before| self.ends[before]);
        RecordFields { text: &self.text, start, ends: &self.ends[first..first + self.width] }
    }

    /// Whether no further record should be added.
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= Self::CAPACITY || self.text.len() >= Self::MAX_TEXT || self.ends.len() >= Self::MAX_CELLS
    }

    /// Forgets the records and expects others of that many cells.
    pub(super) fn reset(&mut self, width: usize) {
        self.text.clear();
        self.ends.clear();
        self.rows.clear();
        self.width = width;
    }

    /// Adds a record, which has as many cells as the chunk expects.
    pub(super) fn push(&mut self, row: Row, record: &csv::StringRecord) {
        debug_assert_eq!(record.len(), self.width, "ragged records are refused before they come here");
        let mut end = self.text.len();
        self.text.push_str(record.as_slice());
        self.ends.extend(record.iter().map(|cell| {
            end += cell.len();
            end
        }));
        self.rows.push(row);
    }
}

impl<'a> RecordFields<'a> {
    /// The cell of that column, from 0; empty outside the header.
    #[must_use]
    pub fn get(&self, column: usize) -> &'a str {
        let Some(&end) = self.ends.get(column) else { return "" };
        let start = column.checked_sub(1).map_or(self.start, |before| self.ends[before]);
        &self.text[start..end]
    }

    /// How many cells there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The cells from the first column to the last.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let fields = *self;
        (0..fields.ends.len()).map(move |column| fields.get(column))
    }
}

/// Shows the size alone: cells are personal.
impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({} records)", self.len())
    }
}

/// Shows the number of cells alone: cells are personal.
impl fmt::Debug for RecordFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fields({} cells)", self.ends.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk() -> Chunk {
        let mut chunk = Chunk::new();
        chunk.reset(2);
        chunk.push(Row::new(2), &csv::StringRecord::from(vec!["+380501234567", ""]));
        chunk.push(Row::new(5), &csv::StringRecord::from(vec!["", "Олена"]));
        chunk
    }

    #[test]
    fn cell_is_returned_by_row_and_column() {
        let chunk = chunk();
        let read: Vec<(u32, Vec<&str>)> =
            chunk.iter().map(|record| (record.row.get(), record.fields.iter().collect())).collect();
        assert_eq!(read, [(2, vec!["+380501234567", ""]), (5, vec!["", "Олена"])]);
        assert_eq!(chunk.get(1).unwrap().fields.get(1), "Олена");
        assert_eq!(chunk.get(1).unwrap().fields.get(2), "");
        assert!(chunk.get(2).is_none());
    }

    #[test]
    fn chunk_of_empty_cells_has_a_memory_limit() {
        let mut chunk = Chunk::new();
        chunk.reset(16_384);
        let record = csv::StringRecord::from(vec![""; 16_384]);
        while !chunk.is_full() {
            chunk.push(Row::new(2), &record);
        }
        assert_eq!(chunk.len(), 8);
    }

    #[test]
    fn debug_output_of_chunk_has_no_personal_data() {
        let chunk = chunk();
        let logged = format!("{chunk:?} {:?}", chunk.get(0));
        assert!(!logged.contains("1234567"), "{logged}");
    }

    #[test]
    fn chunk_can_be_sent_to_another_thread() {
        fn goes<T: Send + 'static>(_: &T) {}
        goes(&chunk());
    }
}
