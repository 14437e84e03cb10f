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

pub use broken_text::TextDamage;
pub use clocks::LocalZones;
pub use column::ListColumn;
pub use empty_cells::EmptyCells;
pub use excluded::{ALREADY_SENT, DUPLICATE, EXCLUDED, HOLDOUT, MIGHT_BE_SENT, SurveyExclusions};
pub use odd::{AnomalyRows, AnomalyRowsByColumn, Comparison, RowAnomaly};
pub use opted_out_cells::{DistinctValues, OptedOutCells};
pub use parallel::{count_cores, process_in_order};
pub use prepare::{
    CompiledCampaign, PrepareError, TextInputs, find_text_problems, prepare_campaign, reader_settings, render_edition,
};
pub use recipe::{ComposeFailure, ComposedMessage, Composer, FILTERED, Recipe};
pub use rules::{
    DatabaseValue, check_against_profile, check_campaign_notices, check_changed_rows, check_costly_characters,
    check_differing_duplicates, check_embedded_rows, check_empty_cells, check_includes, check_invalid_rows,
    check_inverted_zones, check_landlines, check_limits, check_list_limit, check_message, check_no_messages,
    check_opted_out_rows, check_promised_receipts, check_replicas, check_row_anomalies, check_texts,
    check_unknown_zones, check_until_over, collect_notes, list_form_note, missing_zone_column,
    unfamiliar_ledger_finding,
};
pub use sent_rows::{CurrentRow, EarlierOutcome, EarlierRow, EarlierRun, SentRows, TextHash, find_equal_range};
pub use shapes::MessageShapes;
pub(crate) use survey::count_sms_parts;
pub use survey::{CostlyRows, ExampleMessage, MessageSize, RowsBySize, Survey, SurveyInputs, survey_recipients};
pub use tee::Tee;
pub use timing::{RunStart, check_timing};
pub use zones::{RecipientZones, RowClocks};
