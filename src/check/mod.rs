//! The survey: campaign, recipients and texts looked at together before anything is sent.
//!
//! Everything that can be known before the first message is found here: most of it without the
//! gateway, and in [`online`] what follows from its answers, which others asked for. Nothing is
//! sent, nobody is asked, and nothing durable is written but the copy of the recipients that a run freezes.

mod broken_text;
#[cfg(test)]
mod carried_tests;
mod clocks;
mod column;
mod empty_cells;
mod excluded;
mod odd;
pub mod online;
mod opted_out_cells;
mod parallel;
mod prepare;
mod recipe;
mod repeated_numbers;
pub mod rules;
mod sent_rows;
mod shapes;
mod survey;
mod tee;
mod timing;
mod unmatched_cells;
mod zones;

pub use broken_text::Damage;
pub use clocks::LocalZones;
pub use column::Column;
pub use empty_cells::EmptyCells;
pub use excluded::{ALREADY_SENT, DUPLICATE, EXCLUDED, Excluded, HOLDOUT, MIGHT_BE_SENT};
pub use odd::{Comparison, OddRows, OddRowsByColumn, Oddity};
pub use opted_out_cells::{OptedOutCells, Values};
pub use parallel::{cores, ordered};
pub use prepare::{CompiledCampaign, Texts, Unprepared, edition, prepare, settings, text_problems};
pub use recipe::{Composed, Composer, FILTERED, Recipe, Uncomposed};
pub use rules::{
    DatabaseValue, against_includes, against_message, against_profile, against_texts, changed_rows, costly_characters,
    differing_duplicates, empty_cells, invalid_rows, inverted_zones, landlines, list_form, list_over_limits,
    no_messages, notes, odd_rows, opted_out_rows, over_limits, promised_receipts, rows_within, unconfirmed_replica,
    unfamiliar_ledger, unfilled_notice, unknown_zones, until_over, zone_column,
};
pub use sent_rows::{EarlierFate, EarlierRow, EarlierRun, ListedRow, SentRows, TextHash, equal_range};
pub use shapes::Shapes;
pub(crate) use survey::sms_parts;
pub use survey::{CostlyRows, First, RowsBySize, Size, Survey, Terms, survey};
pub use tee::Tee;
pub use timing::{RunStart, timing_findings};
pub use zones::{RowClocks, Zones};
