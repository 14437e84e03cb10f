//! Recipient lists: a file becomes a stream of numbered records with phone numbers.
//!
//! [`decode`] converts any list to UTF-8 text: other encodings, compressed files and workbooks. [`decode_table`] does
//! the same for other tables: opt-outs, purchases, results. A [`RecipientReader`] detects the format, resolves the
//! columns and returns [`Chunk`]s of records, numbered like the rows of a spreadsheet. [`parse_phone_number`] turns a
//! cell into a phone number, [`SeenNumbers`] finds duplicates, and [`suggest_columns`] describes an unknown list.
//! [`NumberColumns`] reads all phone numbers of a file of opt-outs or consents, and [`read_columns`] reads some columns
//! of any other file. [`write_with_erased_rows`] erases recipients from a list.
//!
//! Only one chunk is in memory at a time, never the whole list. This module does not decide whether a recipient gets a
//! message: it knows nothing about templates, channels or the policy for duplicates.

mod columns;
mod decoding;
mod list_findings;
mod number_file;
mod phone_columns;
mod phones;
mod raw_records;
mod reader;
mod records;
mod suggestion;
mod workbook;

pub use columns::{ListHeader, ListSettings, NamedColumns};
pub use decoding::{
    DecodedText, DetectedFormat, EncodingHints, SheetInfo, SpoolReader, SpooledFile, decode, decode_table,
};
pub use number_file::NumberColumns;
pub use phone_columns::PhoneColumns;
pub use phones::{
    PhoneProblem, ValidNumber, example_mobile_numbers, expand_scientific_notation, parse_number, parse_phone_number,
};
pub use raw_records::RECORD_LIMIT;
pub use reader::{
    Chunk, RecipientReader, RecordFields, RecordRef, RejectedList, SeenNumbers, clean_cell, is_shortened_number,
    read_columns, read_rows, trim_cell,
};
pub use records::{CELL_LIMIT, contains_row, write_with_erased_rows};
pub use suggestion::{ColumnSuggestion, LAST_HEADER_ROW, ListPlace, find_list, suggest_columns};
