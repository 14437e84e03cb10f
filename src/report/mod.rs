//! Projections of the ledger: views of runs and messages, the results, previews, progress.
//!
//! A report reads and shows. It decides nothing and changes no state.

mod account;
mod cell;
mod channel_figures;
mod columns;
mod earlier_messages;
mod effect;
mod excel_separator;
mod figures;
mod forecast;
mod frozen_list;
mod history;
mod kept_results;
mod layout;
mod ledger_loss;
mod list_ahead;
mod listing;
mod local_time;
mod lookup_answer;
mod message_delivery;
mod next_step;
mod opt_outs;
mod own_columns;
mod past_people;
mod people;
mod person;
mod played;
mod preview;
mod preview_rows;
mod progress;
mod recipients;
mod replies;
mod results;
mod row_index;
mod row_records;
mod row_selection;
mod row_writer;
mod rows_page;
mod run_copies;
mod run_figures;
mod run_json;
mod run_list;
mod run_results;
mod run_standing;
mod run_view;
mod speed;
mod target;
mod unclear_replies;
mod workbook;
mod workbook_summary;

pub use account::{message_json, sender_json, sms_template_json, viber_template_json};
pub use channel_figures::{ChannelFigure, ChannelFigures, DeliveryTimes};
pub use earlier_messages::EarlierRuns;
pub use effect::{ArmFigures, CampaignEffect, EffectVerdict, Interval, Proportion, PurchaseFile, Purchases};
pub use figures::{
    counts_json, describe_cost, describe_counts, displayed_counts, format_counts, format_counts_in_part,
    format_duration,
};
pub use forecast::{ChannelForecast, Forecast, LeftOutRows};
pub use frozen_list::ListSource;
pub use history::{HistoryEntry, HistoryEvent, MessageHistory};
pub use kept_results::ResultsBackup;
pub use layout::ResultsFormat;
pub use ledger_loss::{LossSign, find_stray_runs, find_unknown_results, find_unknown_results_quickly};
pub use listing::Listing;
pub use local_time::{format_local_minute, format_local_second};
pub use lookup_answer::parse_answer_members;
pub use message_delivery::{MessageDelivery, TimeCertainty};
pub use next_step::{FAILED_STATES, IN_DOUBT_STATES, NextStep, RunInDoubt, find_runs_in_doubt};
pub use opt_outs::{OPT_OUT_COLUMNS, OptOutExportError, export_opt_outs, for_each_opt_out, opt_out_json};
pub use past_people::{RecipientsWritten, load_cancelled_numbers, load_run_numbers, write_run_recipients};
pub use person::{RecipientInRun, RecipientRecord, UnreadableRun};
pub use played::rehearsal_json;
pub use preview::{describe_sms_size, preview_json, render_message_preview, render_preview};
pub use preview_rows::{MarkedMessage, RowPreview, preview_marked_rows, preview_rows};
pub use progress::SendingProgress;
pub use recipients::{Recipient, RecipientKey, find_numbers, find_recipients, find_recipients_by_row};
pub use replies::write_replies;
pub use results::{ResultsError, check_target, write_results, write_results_file};
pub use row_index::RowIndex;
pub use row_records::{Amendment, RowRecord, RowRecords};
pub use row_selection::RowSelection;
pub use rows_page::{RowSummary, load_row_summaries};
pub use run_copies::{load_campaign_zone, load_copies, load_display_zone};
pub use run_figures::{
    ArrivalKind, FallbackChain, FallbackChainFigure, ReasonCount, ReasonCounts, RequestFigures, RowInDoubt,
    RowsInDoubt, RunFigures, RunTerms, Timeline, TimelinePoint,
};
#[cfg(test)]
pub(crate) use run_figures::{RowCase, build_run, new_run, row_case};
pub use run_json::{run_entry_json, run_json};
pub use run_list::{RunList, damaged_runs_json};
pub use run_results::RunResults;
pub use run_standing::{RunReport, add_approvals, load_approvals};
pub use run_view::{RunStatus, RunView, is_followed, is_owned};
pub use speed::Estimate;
pub use target::{ProtectedPath, ResultsTarget, is_workbook};
pub use unclear_replies::{UnclearReply, find_unclear_replies};
pub use workbook::MAX_SHEET_ROWS;

pub use crate::domain::{format_count, format_thousands};
