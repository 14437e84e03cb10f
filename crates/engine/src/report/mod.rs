//! Reports about runs and messages: views, results files, previews and progress, all read from the ledger.
//!
//! A report only reads. It makes no decisions and changes no state.

mod columns;
mod dry_run_results;
mod earlier_messages;
mod effect;
mod forecast;
mod format;
mod layout;
mod ledger_loss;
mod listing;
mod message;
mod preview;
mod progress;
mod recipients;
mod replies;
mod results_file;
mod row_pages;
mod row_records;
mod run_figures;
mod run_results;
mod run_view;
mod target;
mod workbook;

pub use dry_run_results::{erase_from_dry_run_results, list_dry_run_results};
pub use earlier_messages::EarlierRuns;
pub use effect::{ArmFigures, CampaignEffect, EffectVerdict, Interval, Proportion, PurchaseFile, Purchases};
pub use forecast::{ChannelForecast, Forecast, LeftOutRows};
pub use format::{
    counts_json, describe_cost, describe_counts, displayed_counts, format_counts, format_counts_with_partial,
    format_duration, format_local_minute, format_local_second, message_json, parse_answer_members, rehearsal_json,
    round_up_duration, sender_json, template_json,
};
pub use layout::ResultsFormat;
pub use ledger_loss::{LossSign, find_stray_runs, find_unknown_results, find_unknown_results_quickly};
pub use listing::{ListSource, Listing, RowSelection};
pub use message::{HistoryEntry, HistoryEvent, MessageDelivery, MessageHistory, TimeCertainty};
pub use preview::{
    MarkedMessage, RowPreview, describe_sms_size, preview_json, preview_marked_rows, preview_rows,
    render_message_preview, render_preview, render_template_preview,
};
pub use progress::{Estimate, SendingProgress};
pub use recipients::{
    EVIDENCE_FORMAT, Evidence, ListColumn, Recipient, RecipientInRun, RecipientKey, RecipientRecord, RecipientsWritten,
    UnreadableRun, find_numbers, find_recipients, find_recipients_by_row, load_cancelled_numbers, load_copies,
    load_display_zone, load_evidence_messages, load_run_numbers, read_list_headers, write_run_recipients,
};
pub use replies::{
    OPT_OUT_COLUMNS, OptOutExportError, OptOutHistory, UnclearReply, export_opt_outs, find_unclear_replies,
    for_each_opt_out, opt_out_json, write_replies,
};
pub use results_file::{ResultsBackup, ResultsError, check_target, write_results, write_results_file};
pub use row_pages::{RowFilter, RowIndex, RowSummary, load_row_summaries};
pub use row_records::{Amendment, RowRecord, RowRecords};

pub use run_figures::{
    ACCEPTED_STATES, ArrivalKind, ChannelFigure, ChannelFigures, DeliveryTimes, FallbackChain, FallbackChainFigure,
    ReasonCount, ReasonCounts, RequestFigures, RowInDoubt, RowsInDoubt, RunCost, RunFigures, RunTerms, Timeline,
    TimelinePoint,
};
pub use run_results::RunResults;
pub use run_view::{
    FAILED_STATES, IN_DOUBT_STATES, NextStep, RunInDoubt, RunList, RunReport, RunStatus, RunView, add_approvals,
    can_retry, damaged_runs_json, find_runs_in_doubt, is_followed, is_owned, load_approvals, load_run_json,
    load_spending, run_entry_json,
};
pub use target::{ProtectedPath, ResultsTarget, is_workbook};
pub use workbook::MAX_SHEET_ROWS;

pub use campaign_core::domain::{format_count, format_thousands};

/// The version of the JSON output, in each top-level object. It changes only if programs that read the output must
/// change; see docs/stability.md.
pub const JSON_VERSION: u8 = 1;
