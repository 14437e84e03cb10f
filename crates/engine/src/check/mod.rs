//! Checks before a run: the survey of its list and texts, the account, and the rules behind the findings.
//!
//! Most facts come from files. [`online`] judges the gateway's answers to requests that other modules make. Checks send
//! nothing, and store nothing permanently except the run's copy of the list.

mod campaign_tests;
mod column_cells;
mod compiled_campaign;
mod consent;
mod exclusions;
mod made_up_recipient;
pub mod online;
mod parallel;
mod row_anomalies;
pub mod rules;
mod survey;
mod timing;

pub use campaign_tests::{TestOutcome, TestResult, TestedCampaign, run_each_test, run_given_test};
pub use column_cells::{DistinctValues, EmptyCells, ListColumn, OptedOutCells};
pub use compiled_campaign::{
    AnyList, CompiledCampaign, ComposeFailure, ComposedMessage, Composer, FILTERED, PrepareError, Recipe, TextCache,
    TextInputs, find_text_problems, prepare_campaign, reader_settings, render_edition,
};
pub use consent::{ConsentFinder, ConsentRegister, Consents};
pub use exclusions::{
    ALREADY_SENT, CappedNumbers, CurrentRow, DUPLICATE, EXCLUDED, EarlierOutcome, EarlierRow, EarlierRun, HOLDOUT,
    MIGHT_BE_SENT, REJECTED_IN_RUN, SentRows, SurveyExclusions, TextHash, find_equal_range,
};
pub use made_up_recipient::{MadeUpError, MadeUpMessage, MadeUpOutcome, MadeUpRecipient};
pub use parallel::{count_cores, process_in_order};
pub use row_anomalies::{AnomalyRows, AnomalyRowsByColumn, Comparison, DateComparison, MessageShapes, RowAnomaly};
pub use rules::{
    ABROAD_LIMIT, CountryCount, DatabaseValue, NIGHT, RECIPIENTS_LIMIT, RecipientCountries, TextDamage,
    check_abroad_limit, check_against_profile, check_campaign_notices, check_campaign_zone_fallback,
    check_changed_rows, check_consent_dates, check_consent_source, check_costly_characters, check_differing_duplicates,
    check_embedded_rows, check_empty_cells, check_includes, check_invalid_rows, check_inverted_zones, check_landlines,
    check_limits, check_list_limit, check_lookup_table, check_message, check_new_countries, check_night,
    check_no_messages, check_opted_out_rows, check_promised_receipts, check_recipients_limit, check_replicas,
    check_row_anomalies, check_texts, check_unknown_zones, check_until_passed, check_unused_consents, collect_notes,
    describe_abroad, describe_countries, list_format_note, missing_zone_column_finding, sum_recipients,
    unfamiliar_ledger_finding,
};
pub(crate) use survey::count_sms_parts;
pub use survey::{CostlyRows, ExampleMessage, MessageSize, RowsBySize, Survey, SurveyInputs, Tee, survey_recipients};
pub use timing::{
    LocalZones, RecipientZones, RowClocks, RunStart, check_immediate_run, check_timing, count_sending_days,
    zone_of_number,
};

#[cfg(test)]
mod channel_key_tests;
