//! Command-line arguments of `test`, `run`, `plan`, `approve`, `resolve` and `retry`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use secrecy::SecretString;

use super::ProgressForm;
use super::campaign::FetchOption;
use super::results::{PAGE_FILE, PAGE_HEADING, PageArgs};
use campaign_core::domain::RowSet;
use campaign_ledger::RowState;
use campaign_manifest::Seconds;

/// The headings of the options of `run`, `plan` and `retry`.
const RECIPIENTS: &str = "Recipients";
const CONFIRMATION: &str = "Confirmation and approval";
const REHEARSAL: &str = "Rehearsal";

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Send to this number, in international format or the national format of the campaign's `region`; can be repeated
    #[arg(long, value_name = "PHONE", required = true)]
    pub(crate) to: Vec<SecretString>,
    /// Send the message for this row of the list [default: the first row with a message]
    #[arg(long, value_name = "N")]
    pub(crate) row: Option<u32>,
    #[command(flatten)]
    pub(crate) list: FetchOption,
    /// Send through this gateway instead of the campaign's own
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway: Option<String>,
    /// Send even outside the campaign's or gateway's sending window
    #[arg(long)]
    pub(crate) outside_window: bool,
    /// Proceed without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Send through this gateway instead of the campaign's own
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway: Option<String>,
    /// Send a scheduled campaign now, in addition to its scheduled runs
    #[arg(long, conflicts_with = "when_due")]
    pub(crate) now: bool,
    /// Wait until a scheduled campaign is due, then send it
    #[arg(long, conflicts_with_all = ["dry_run", "again", "accept_changes"])]
    pub(crate) when_due: bool,
    /// Continue even if many messages are rejected
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Do not wait for a sending window or the next day
    ///
    /// If the window is closed, the command stops with exit code 5. After sending, it asks the gateway just once about rows
    /// in doubt.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Share the run with other processes that run `campaign worker`
    #[arg(long, conflicts_with_all = ["dry_run", "limit", "rows", "real_time", "scenario"])]
    pub(crate) shared: bool,
    /// Choose how progress is shown on standard error
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) progress: ProgressForm,
    /// Send only the next N messages, then pause (for specific rows, use --rows)
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = RECIPIENTS)]
    pub(crate) limit: Option<u64>,
    /// Send only to these rows, for example 2-51,60 (to limit the number of messages, use --limit)
    #[arg(long, value_name = "ROWS", help_heading = RECIPIENTS)]
    pub(crate) rows: Option<RowSet>,
    /// Send to all N recipients again, including those who already got the message
    #[arg(long, value_name = "N", help_heading = RECIPIENTS)]
    pub(crate) again: Option<u64>,
    /// Send without asking
    #[arg(short, long, help_heading = CONFIRMATION)]
    pub(crate) yes: bool,
    /// Send only if the campaign still matches the plan with this digest
    #[arg(long, value_name = "DIGEST", conflicts_with_all = ["dry_run", "accept_changes"], help_heading = CONFIRMATION)]
    pub(crate) plan: Option<String>,
    /// Send what this token approves; the approver gets the token from `campaign approve --key`
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["dry_run", "accept_changes"], help_heading = CONFIRMATION)]
    pub(crate) approval: Option<String>,
    /// Allow up to N recipients, even if that exceeds the gateway profile's limit
    #[arg(long, value_name = "N", help_heading = CONFIRMATION)]
    pub(crate) up_to: Option<u64>,
    /// Allow up to N recipients abroad, even if that exceeds the gateway profile's limit
    #[arg(long, value_name = "N", help_heading = CONFIRMATION)]
    pub(crate) up_to_abroad: Option<u64>,
    /// Start a new run with the changed files; recipients who already got the message are skipped
    #[arg(long, help_heading = CONFIRMATION)]
    pub(crate) accept_changes: bool,
    /// Confirm that this is the campaign file from earlier runs, moved to a new location
    #[arg(long, help_heading = CONFIRMATION)]
    pub(crate) moved: bool,
    /// Send without checking the key, sender names and balance with the gateway first
    #[arg(long, conflicts_with = "dry_run", help_heading = CONFIRMATION)]
    pub(crate) offline: bool,
    /// Send even though the ledger might not contain all earlier messages
    #[arg(long, conflicts_with = "dry_run", help_heading = CONFIRMATION)]
    pub(crate) new_ledger: bool,
    /// Accept that N recipients might get the message twice
    ///
    /// Required after the ledger has been restored from a backup.
    #[arg(long, value_name = "N", conflicts_with = "dry_run", help_heading = CONFIRMATION)]
    pub(crate) i_accept_duplicates: Option<u64>,
    /// Do everything except send messages
    #[arg(long, conflicts_with_all = [
        "limit", "rows", "again", "keep_going", "real_time", "scenario",
    ], help_heading = REHEARSAL)]
    pub(crate) dry_run: bool,
    /// Rehearse at the rate of a live run, and wait for its sending windows and daily limits
    #[arg(long, help_heading = REHEARSAL)]
    pub(crate) real_time: bool,
    /// Rehearse with the prices, delays and faults in this scenario
    #[arg(long, value_name = "FILE", help_heading = REHEARSAL)]
    pub(crate) scenario: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) list: FetchOption,
    /// Plan only the next N messages (for specific rows, use --rows)
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = RECIPIENTS)]
    pub(crate) limit: Option<u64>,
    /// Plan only these rows, for example 2-51,60 (to limit the number of messages, use --limit)
    #[arg(long, value_name = "ROWS", help_heading = RECIPIENTS)]
    pub(crate) rows: Option<RowSet>,
    /// Plan the campaign for this gateway instead of its own
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway: Option<String>,
    /// Plan to send to all N recipients again, including those who already got the message
    #[arg(long, value_name = "N", help_heading = RECIPIENTS)]
    pub(crate) again: Option<u64>,
    /// Allow up to N recipients, even if that exceeds the gateway profile's limit
    #[arg(long, value_name = "N")]
    pub(crate) up_to: Option<u64>,
    /// Allow up to N recipients abroad, even if that exceeds the gateway profile's limit
    #[arg(long, value_name = "N")]
    pub(crate) up_to_abroad: Option<u64>,
    /// Write a page for the approver to this file: messages, number of recipients and cost
    #[arg(id = PAGE_FILE, long = "out", value_name = "FILE", help_heading = PAGE_HEADING)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// Digest of a plan or of an assistant's request; its first few characters are enough
    #[arg(required_unless_present = "new_key")]
    pub(crate) digest: Option<String>,
    /// Sign with the private key in this file, if the profile lists approvers
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Approve all scheduled runs of the campaign for this period, for example 90d
    #[arg(long, value_name = "DURATION", requires = "up_to", value_parser = parse_validity)]
    pub(crate) standing: Option<SignedDuration>,
    /// Approve at most N recipients per scheduled run
    #[arg(long, value_name = "N", requires = "standing")]
    pub(crate) up_to: Option<u64>,
    /// Create the private key NAME.key and print the line to add to the profile
    #[arg(long, value_name = "NAME", conflicts_with_all = ["digest", "key", "standing", "up_to"])]
    pub(crate) new_key: Option<String>,
}

/// The maximum validity of an approval, and the maximum of `outcome --within`.
const MAX_VALIDITY: SignedDuration = SignedDuration::from_hours(24 * 366);

/// Parses a duration such as 90d, which must be more than zero and at most 366 days.
pub(super) fn parse_validity(text: &str) -> Result<SignedDuration, String> {
    let seconds = text.parse::<Seconds>().map_err(|_| "use a duration such as `90d` or `12h`".to_owned())?;
    match SignedDuration::from(seconds) {
        time if time.is_zero() || time > MAX_VALIDITY => {
            Err("the duration must be more than zero and at most 366d".to_owned())
        }
        time => Ok(time),
    }
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["all", "rows", "file"])))]
pub(crate) struct ResolveArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(crate) run: String,
    /// Select all rows in doubt
    #[arg(long)]
    pub(crate) all: bool,
    /// Select these rows, for example 3,7
    #[arg(long, value_name = "ROWS")]
    pub(crate) rows: Option<RowSet>,
    /// Select the rows in this CSV file or workbook, for example an extract from the results
    ///
    /// The file needs an `id` column, or `row` and `to` columns.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Record this decision for the rows
    #[arg(long = "as", value_enum, value_name = "DECISION")]
    pub(crate) decision: DecisionArg,
    /// Record a reason for the decision
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
    /// Accept that the recipients in these N rows might get the message twice
    #[arg(long, value_name = "N")]
    pub(crate) i_accept_duplicates: Option<u64>,
}

/// A decision about rows in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecisionArg {
    /// The messages were sent
    Sent,
    /// The messages were not sent; send nothing now
    NotSent,
    /// Send the messages again
    SendAgain,
}

/// The states whose messages can be sent again, by their names in the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RetriedState {
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

impl From<DecisionArg> for campaign_runs::DoubtDecision {
    fn from(decision: DecisionArg) -> Self {
        match decision {
            DecisionArg::Sent => Self::Sent,
            DecisionArg::NotSent => Self::NotSent,
            DecisionArg::SendAgain => Self::SendAgain,
        }
    }
}

impl DecisionArg {
    /// The value of the option for this decision.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DecisionArg::Sent => "sent",
            DecisionArg::NotSent => "not-sent",
            DecisionArg::SendAgain => "send-again",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(crate) run: String,
    /// Send only messages in these states, for example rejected,failed
    ///
    /// Messages that could not be delivered are sent again only if you include `failed`.
    #[arg(
        long = "state",
        value_enum,
        value_name = "STATE",
        value_delimiter = ',',
        default_value = "rejected,not_sent"
    )]
    pub(crate) states: Vec<RetriedState>,
    /// Send only messages whose error contains this text; can be repeated
    ///
    /// The search ignores case.
    #[arg(long = "error", value_name = "TEXT")]
    pub(crate) errors: Vec<String>,
    /// Continue even if many messages are rejected
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Do not wait for a sending window or the next day
    ///
    /// If the window is closed, the command stops with exit code 5. After sending, it asks the gateway just once about rows
    /// in doubt.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Choose how progress is shown on standard error
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) progress: ProgressForm,
    /// Send without asking
    #[arg(short, long, help_heading = CONFIRMATION)]
    pub(crate) yes: bool,
    /// Accept that N recipients might get the message twice
    ///
    /// Required if the gateway did not confirm that the messages failed, or if the ledger has been restored from a backup.
    #[arg(long, value_name = "N", help_heading = CONFIRMATION)]
    pub(crate) i_accept_duplicates: Option<u64>,
}
