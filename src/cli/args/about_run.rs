//! The arguments of `resolve` and `retry`, which decide about messages of a run.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::ProgressForm;
use super::run::CONFIRMATION;
use crate::domain::RowSet;
use crate::ledger::RowState;
use crate::runs;

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
