//! Recipients: a CSV file becomes a stream of numbered records with phone numbers.
//!
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
mod dialect;
mod digits;
mod evidence;
mod inspection;
mod intake;
mod naming;
mod phones;
mod problem;
mod reader;
mod records;
mod seen;
mod suggestion;
mod trouble;

pub use chunk::{Chunk, Fields, RecordRef};
pub use column::{is_shortened, plain, read_columns};
pub use columns::{Header, Settings};
pub use inspection::holds_a_row;
pub use phones::parse;
pub use problem::PhoneProblem;
pub use reader::Reader;
pub use seen::Seen;
pub use suggestion::{Suggestion, suggest};
