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
pub use effect::{Arm, Effect, Interval, Proportion, PurchaseFile, Purchases, Verdict};
pub use figures::{cost_words, counts_json, counts_line, counts_line_in_part, duration, shown_counts};
pub use forecast::Forecast;
pub use frozen_list::ListSource;
pub use history::{History, HistoryEntry, Incident};
pub use kept_results::KeptResults;
pub use layout::Style;
pub use ledger_loss::{LossSign, stray_runs, unknown_at_a_glance, unknown_results};
pub use listing::Listing;
pub use lookup_answer::answer_members;
pub use message_delivery::{MessageDelivery, TimeCertainty};
pub use next_step::{DOUBTFUL, NextStep, OpenDoubt, REFUSED, open_doubts};
pub use opt_outs::{ListingError, OPT_OUT_COLUMNS, each_opt_out, export_opt_outs, opt_out_json};
pub use past_people::{PastPeopleWritten, cancelled_numbers, past_numbers, write_past_people};
pub use person::{Person, PersonInRun, UnreadRun};
pub use played::played_json;
pub use preview::{message_preview, preview, preview_json};
pub use preview_rows::{MarkedMessage, RowPreview, marked_rows, preview_rows};
pub use progress::SendingProgress;
pub use recipients::{Recipient, RecipientKey, numbers_where, recipients};
pub use replies::write_replies;
pub use results::{ResultsError, check_place, write_file, write_results};
pub use row_index::RowIndex;
pub use row_records::{Amendment, RowRecord, RowRecords};
pub use rows_page::{ListedRow, listed_rows};
pub use run_copies::{campaign_zone, copies_of, zone_of};
pub use run_figures::{
    Arrived, DoubtfulRow, Doubts, Point, Reason, Reasons, RequestFigures, RunFigures, Terms, Timeline, Way, WayFigure,
};
#[cfg(test)]
pub(crate) use run_figures::{Fate, fate, new_run, scene};
pub use run_json::{run_entry_json, run_json};
pub use run_list::{RunList, damaged_runs_json};
pub use run_results::RunResults;
pub use run_standing::{RunStanding, approvals, approved_json};
pub use run_view::{RunStatus, RunView, is_followed, is_owned};
pub use speed::Estimate;
pub use target::{ProtectedPath, Target, is_workbook};
pub use unclear_replies::{UnclearReply, unclear_replies};
pub use workbook::MOST_ROWS;

pub use crate::domain::{plural, thousands};
