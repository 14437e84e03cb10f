//! The arguments of `run`.

use std::path::PathBuf;

use clap::Args;

use super::ProgressForm;
use crate::domain::RowSet;

/// The headings of the options of `run`.
pub(super) const RECIPIENTS: &str = "Recipients";
pub(super) const CONFIRMATION: &str = "Confirmation and approval";
const REHEARSAL: &str = "Rehearsal";

#[derive(Debug, Args)]
pub(in crate::cli) struct RunArgs {
    /// Campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    /// Send through this gateway instead of the campaign's own
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) gateway: Option<String>,
    /// Send a scheduled campaign now
    #[arg(long, conflicts_with = "when_due")]
    pub(in crate::cli) now: bool,
    /// Wait until a scheduled campaign is due, then send it
    #[arg(long, conflicts_with_all = ["dry_run", "again", "accept_changes"])]
    pub(in crate::cli) when_due: bool,
    /// Continue even if many messages are rejected
    #[arg(long)]
    pub(in crate::cli) keep_going: bool,
    /// After sending, ask the gateway about rows in doubt only once, then exit
    #[arg(long)]
    pub(in crate::cli) no_wait: bool,
    /// Share the run with other processes that run `campaign worker`
    #[arg(long, conflicts_with_all = ["dry_run", "limit", "rows", "real_time", "scenario"])]
    pub(in crate::cli) shared: bool,
    /// Choose how progress is shown on standard error
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(in crate::cli) progress: ProgressForm,
    /// Send only the next N messages, then pause (for specific rows, use --rows)
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = RECIPIENTS)]
    pub(in crate::cli) limit: Option<u64>,
    /// Send only to these rows, such as 2-51,60 (for a number of messages, use --limit)
    #[arg(long, value_name = "ROWS", help_heading = RECIPIENTS)]
    pub(in crate::cli) rows: Option<RowSet>,
    /// Send to all N recipients again, including those who already got the message
    #[arg(long, value_name = "N", help_heading = RECIPIENTS)]
    pub(in crate::cli) again: Option<u64>,
    /// Send without asking
    #[arg(short, long, help_heading = CONFIRMATION)]
    pub(in crate::cli) yes: bool,
    /// Send only if the campaign still matches the plan with this digest
    #[arg(long, value_name = "DIGEST", conflicts_with_all = ["dry_run", "accept_changes"], help_heading = CONFIRMATION)]
    pub(in crate::cli) plan: Option<String>,
    /// Send what this token approves; the approver gets the token from `campaign approve --key`
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["dry_run", "accept_changes"], help_heading = CONFIRMATION)]
    pub(in crate::cli) approval: Option<String>,
    /// Allow up to N recipients, even above the limit of the gateway profile
    #[arg(long, value_name = "N", help_heading = CONFIRMATION)]
    pub(in crate::cli) up_to: Option<u64>,
    /// Start a new run with the changed files; recipients who already got the message are skipped
    #[arg(long, help_heading = CONFIRMATION)]
    pub(in crate::cli) accept_changes: bool,
    /// Confirm that this is the campaign file of earlier runs, moved to a new place
    #[arg(long, help_heading = CONFIRMATION)]
    pub(in crate::cli) moved: bool,
    /// Send without checking the key, sender names and balance with the gateway first
    #[arg(long, conflicts_with = "dry_run", help_heading = CONFIRMATION)]
    pub(in crate::cli) offline: bool,
    /// Send even though the ledger might not contain all earlier messages
    #[arg(long, conflicts_with = "dry_run", help_heading = CONFIRMATION)]
    pub(in crate::cli) new_ledger: bool,
    /// Accept that N recipients might get the message twice
    ///
    /// Required after the ledger was restored from a backup.
    #[arg(long, value_name = "N", conflicts_with = "dry_run", help_heading = CONFIRMATION)]
    pub(in crate::cli) i_accept_duplicates: Option<u64>,
    /// Do everything except send messages
    #[arg(long, conflicts_with_all = [
        "limit", "rows", "again", "keep_going", "real_time", "scenario",
    ], help_heading = REHEARSAL)]
    pub(in crate::cli) dry_run: bool,
    /// Rehearse at the rate of a live run
    #[arg(long, help_heading = REHEARSAL)]
    pub(in crate::cli) real_time: bool,
    /// Rehearse with the prices, delays and faults in this scenario
    #[arg(long, value_name = "FILE", help_heading = REHEARSAL)]
    pub(in crate::cli) scenario: Option<PathBuf>,
}
