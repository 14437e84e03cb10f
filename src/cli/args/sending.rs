//! The arguments of `run`, `plan`, `approve`, `resolve` and `retry`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::SignedDuration;

use super::ProgressForm;
use super::campaign::FetchOption;
use super::results::{PAGE_FILE, PAGE_HEADING, PageArgs};
use crate::domain::RowSet;
use crate::ledger::RowState;
use crate::manifest::Seconds;
use crate::runs;

/// The headings of the options of `run`.
const RECIPIENTS: &str = "Recipients";
const CONFIRMATION: &str = "Confirmation and approval";
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

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanArgs {
    /// Campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    #[command(flatten)]
    pub(in crate::cli) list: FetchOption,
    /// Plan only the next N messages (for specific rows, use --rows)
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = RECIPIENTS)]
    pub(in crate::cli) limit: Option<u64>,
    /// Plan only these rows, such as 2-51,60 (for a number of messages, use --limit)
    #[arg(long, value_name = "ROWS", help_heading = RECIPIENTS)]
    pub(in crate::cli) rows: Option<RowSet>,
    /// Plan the campaign for this gateway instead of its own
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) gateway: Option<String>,
    /// Plan to send to all N recipients again, including those who already got the message
    #[arg(long, value_name = "N", help_heading = RECIPIENTS)]
    pub(in crate::cli) again: Option<u64>,
    /// Allow up to N recipients, even above the limit of the gateway profile
    #[arg(long, value_name = "N")]
    pub(in crate::cli) up_to: Option<u64>,
    /// Write a page for the approver to this file: messages, number of recipients and cost
    #[arg(id = PAGE_FILE, long = "out", value_name = "FILE", help_heading = PAGE_HEADING)]
    pub(in crate::cli) out: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) page: PageArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ApproveArgs {
    /// Digest of a plan or of an assistant's request; its first characters are enough
    #[arg(required_unless_present = "new_key")]
    pub(in crate::cli) digest: Option<String>,
    /// Sign with the private key in this file, if the profile lists approvers
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) key: Option<PathBuf>,
    /// Approve all scheduled runs of the campaign for this long, such as 90d
    #[arg(long, value_name = "DURATION", requires = "up_to", value_parser = parse_validity)]
    pub(in crate::cli) standing: Option<SignedDuration>,
    /// Approve at most N recipients per scheduled run
    #[arg(long, value_name = "N", requires = "standing")]
    pub(in crate::cli) up_to: Option<u64>,
    /// Create the private key NAME.key and print the line to add to the profile
    #[arg(long, value_name = "NAME", conflicts_with_all = ["digest", "key", "standing", "up_to"])]
    pub(in crate::cli) new_key: Option<String>,
}

/// The maximum validity of an approval.
const MAX_VALIDITY: SignedDuration = SignedDuration::from_hours(24 * 366);

/// Parses a duration such as 90d, of at most 366 days.
pub(super) fn parse_validity(text: &str) -> Result<SignedDuration, String> {
    let seconds = text.parse::<Seconds>().map_err(|_| "use a duration such as `90d` or `12h`".to_owned())?;
    match SignedDuration::from_secs(seconds.0.into()) {
        time if time.is_zero() || time > MAX_VALIDITY => {
            Err("the duration must be more than zero and at most 366d".to_owned())
        }
        time => Ok(time),
    }
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["all", "rows", "file"])))]
pub(in crate::cli) struct ResolveArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(in crate::cli) run: String,
    /// Select all rows in doubt
    #[arg(long)]
    pub(in crate::cli) all: bool,
    /// Select these rows, such as 3,7
    #[arg(long, value_name = "ROWS")]
    pub(in crate::cli) rows: Option<RowSet>,
    /// Select the rows in this CSV file or workbook, such as an extract of the results
    ///
    /// The file needs an `id` column, or `row` and `to` columns.
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) file: Option<PathBuf>,
    /// Record this decision for the rows
    #[arg(long = "as", value_enum, value_name = "DECISION")]
    pub(in crate::cli) decision: DecisionArg,
    /// Record a reason for the decision
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) why: Option<String>,
    /// Accept that the recipients of these N rows might get the message twice
    #[arg(long, value_name = "N")]
    pub(in crate::cli) i_accept_duplicates: Option<u64>,
}

/// A decision about rows in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum DecisionArg {
    /// The messages were sent
    Sent,
    /// The messages were not sent; send nothing now
    NotSent,
    /// Send the messages again
    SendAgain,
}

/// The states whose messages can be sent again, by their names in the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum RetriedState {
    /// The gateway rejected the message
    Rejected,
    /// The message was not sent
    #[value(name = "not_sent", alias = "not-sent")]
    NotSent,
    /// The gateway accepted the message, but delivery failed
    Failed,
}

impl From<RetriedState> for RowState {
    fn from(state: RetriedState) -> Self {
        match state {
            RetriedState::Rejected => Self::Rejected,
            RetriedState::NotSent => Self::NotSent,
            RetriedState::Failed => Self::Failed,
        }
    }
}

impl From<DecisionArg> for runs::DoubtDecision {
    fn from(decision: DecisionArg) -> Self {
        match decision {
            DecisionArg::Sent => Self::Sent,
            DecisionArg::NotSent => Self::NotSent,
            DecisionArg::SendAgain => Self::SendAgain,
        }
    }
}

impl DecisionArg {
    /// The word of the option.
    pub(in crate::cli) fn name(self) -> &'static str {
        match self {
            DecisionArg::Sent => "sent",
            DecisionArg::NotSent => "not-sent",
            DecisionArg::SendAgain => "send-again",
        }
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RetryArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(in crate::cli) run: String,
    /// Send only messages in these states, such as rejected,failed
    ///
    /// Messages that could not be delivered are sent again only if you include `failed`.
    #[arg(
        long = "state",
        value_enum,
        value_name = "STATE",
        value_delimiter = ',',
        default_value = "rejected,not_sent"
    )]
    pub(in crate::cli) states: Vec<RetriedState>,
    /// Send only messages whose error contains this text; can be repeated
    ///
    /// The search ignores case.
    #[arg(long = "error", value_name = "TEXT")]
    pub(in crate::cli) errors: Vec<String>,
    /// Continue even if many messages are rejected
    #[arg(long)]
    pub(in crate::cli) keep_going: bool,
    /// After sending, ask the gateway about rows in doubt only once, then exit
    #[arg(long)]
    pub(in crate::cli) no_wait: bool,
    /// Choose how progress is shown on standard error
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(in crate::cli) progress: ProgressForm,
    /// Send without asking
    #[arg(short, long, help_heading = CONFIRMATION)]
    pub(in crate::cli) yes: bool,
    /// Accept that N recipients might get the message twice
    ///
    /// Required if the gateway did not confirm that the messages failed, or if the ledger was restored from a backup.
    #[arg(long, value_name = "N", help_heading = CONFIRMATION)]
    pub(in crate::cli) i_accept_duplicates: Option<u64>,
}
