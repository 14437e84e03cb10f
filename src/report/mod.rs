//! Projections of the ledger: views of runs and messages, the results, previews, progress.
//!
//! A report reads and shows. It decides nothing and changes no state.

mod account;
mod cell;
mod columns;
mod figures;
mod frozen_list;
mod history;
mod layout;
mod ledger_loss;
mod listing;
mod lookup_answer;
mod next_step;
mod opt_outs;
mod own_columns;
mod people;
mod played;
mod preview;
mod preview_rows;
mod progress;
mod recipients;
mod replies;
mod results;
mod row_records;
mod row_writer;
mod run_copies;
mod run_json;
mod run_results;
mod run_view;
mod speed;
mod target;

pub use account::{message_json, sender_json, sms_template_json, viber_template_json};
pub use figures::{cost_words, counts_json, counts_line, duration, plural, thousands};
pub use frozen_list::ListSource;
pub use history::{History, HistoryEntry, Incident};
pub use layout::Style;
pub use ledger_loss::{LossSign, stray_runs, unknown_results};
pub use listing::Listing;
pub use lookup_answer::answer_members;
pub use next_step::{DOUBTFUL, NextStep, OpenDoubt, REFUSED, open_doubts};
pub use opt_outs::{ListingError, OPT_OUT_COLUMNS, each_opt_out, export_opt_outs, opt_out_json};
pub use played::played_json;
pub use preview::{preview, preview_json};
pub use preview_rows::{RowPreview, preview_rows};
pub use progress::SendingProgress;
pub use recipients::{Recipient, RecipientKey, recipients};
pub use replies::write_replies;
pub use results::{ResultsError, check_place, write_file, write_results};
pub use row_records::{Amendment, RowRecord, RowRecords};
pub use run_copies::copies_of;
pub use run_json::{run_entry_json, run_json};
pub use run_results::RunResults;
pub use run_view::{RunStatus, RunView, is_owned};
pub use speed::Estimate;
pub use target::{ProtectedPath, Target};
