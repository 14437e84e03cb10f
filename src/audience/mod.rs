//! Recipients: a file becomes a stream of numbered records with phone numbers.
//!
//! [`decode`] makes text in UTF-8 of whatever somebody has a list in: other encodings, packed files, workbooks.
//! [`decode_table`] does so for every other table: opt-outs, purchases, results.
//! A [`Reader`] finds out how the file is written, resolves its columns and hands out [`Chunk`]s
//! of records under the row numbers that a spreadsheet shows. [`parse`] turns a cell into a
//! phone number, [`Seen`] knows which numbers were met before, and [`suggest`] looks at a list
//! that nobody described yet; [`read_columns`] reads some columns of any other file.
//!
//! Memory holds a chunk, never the list. Nothing here decides what becomes of a recipient: no
//! template, no channel and no policy for duplicates is known in this room.

mod cells;
mod chunk;
mod column;
mod columns;
mod decoding;
mod dialect;
mod digits;
mod evidence;
mod forgotten;
mod form_trouble;
mod header_match;
mod inspection;
mod intake;
mod list_place;
mod naming;
mod phone_columns;
mod phones;
mod problem;
mod quoted_lines;
mod reader;
mod records;
mod rows;
mod seen;
mod short_cut;
mod suggestion;
mod trouble;
mod workbook;

pub use chunk::{Chunk, RecordFields, RecordRef};
pub use column::{clean_cell, is_shortened, read_columns};
pub use columns::{ListHeader, ListSettings, NamedColumns};
pub use decoding::{DecodedText, DetectedFormat, SheetInfo, SpoolReader, SpooledFile, decode, decode_table};
pub use digits::expand_power_of_ten;
pub use forgotten::write_without_rows;
pub use inspection::{CELL_LIMIT, contains_row};
pub use intake::RECORD_LIMIT;
pub use list_place::{LAST_HEADER_ROW, ListPlace, find_list};
pub use phone_columns::PhoneColumns;
pub use phones::{ValidNumber, parse_number, parse_phone_number};
pub use problem::PhoneProblem;
pub use reader::{RecipientReader, RejectedList};
pub use rows::read_rows;
pub use seen::SeenNumbers;
pub use suggestion::{ColumnSuggestion, parse_header_number, suggest_columns, suggest_for_number_file};
