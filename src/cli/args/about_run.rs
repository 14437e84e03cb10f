//! The arguments of what is done about a run after it was sent.

use std::path::PathBuf;

use super::ProgressForm;
use clap::{Args, ValueEnum};

use crate::domain::RowSet;
use crate::ledger::State;
use crate::runs;

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["all", "rows", "file"])))]
pub(in crate::cli) struct ResolveArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(in crate::cli) run: String,
    /// All rows in doubt
    #[arg(long)]
    pub(in crate::cli) all: bool,
    /// These rows, such as 3,7
    #[arg(long)]
    pub(in crate::cli) rows: Option<RowSet>,
    /// The rows of a CSV file or workbook with a column `id`, or `row` and `to`, such as a part of the results
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) file: Option<PathBuf>,
    /// What they count as
    #[arg(long = "as", value_enum, value_name = "DECISION")]
    pub(in crate::cli) decision: Decision,
    /// Why, for those who look at it later
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) why: Option<String>,
    /// Accept that people may get the message twice; N is the number of rows
    #[arg(long, value_name = "N")]
    pub(in crate::cli) i_accept_duplicates: Option<u64>,
}

/// What a person decides about rows in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Decision {
    /// They went out
    Sent,
    /// They did not; nothing is sent now
    NotSent,
    /// They are to be sent again
    SendAgain,
}

/// What is sent again, by the words of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum RetriedState {
    /// The gateway refused them
    Rejected,
    /// They did not go out
    #[value(name = "not_sent", alias = "not-sent")]
    NotSent,
    /// The gateway took them, and they did not arrive
    Failed,
}

impl From<RetriedState> for State {
    fn from(state: RetriedState) -> Self {
        match state {
            RetriedState::Rejected => Self::Rejected,
            RetriedState::NotSent => Self::NotSent,
            RetriedState::Failed => Self::Failed,
        }
    }
}

impl From<Decision> for runs::Decision {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Sent => Self::Sent,
            Decision::NotSent => Self::NotSent,
            Decision::SendAgain => Self::SendAgain,
        }
    }
}

impl Decision {
    /// The word of the option.
    pub(in crate::cli) fn name(self) -> &'static str {
        match self {
            Decision::Sent => "sent",
            Decision::NotSent => "not-sent",
            Decision::SendAgain => "send-again",
        }
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RetryArgs {
    /// How progress is shown, on standard error
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(in crate::cli) progress: ProgressForm,
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(in crate::cli) run: String,
    /// Only rows in this state, or in these behind commas; what failed to be delivered is sent again for `failed` alone
    #[arg(
        long = "state",
        value_enum,
        value_name = "STATE",
        value_delimiter = ',',
        default_value = "rejected,not_sent"
    )]
    pub(in crate::cli) states: Vec<RetriedState>,
    /// Only rows with this text in their error
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) error: Option<String>,
    /// Send without asking
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
    /// Do not stop because of rejected messages
    #[arg(long)]
    pub(in crate::cli) keep_going: bool,
    /// Ask about rows in doubt once at the end, and do not stay to ask again
    #[arg(long)]
    pub(in crate::cli) no_wait: bool,
    /// Accept that N recipients might get a message twice, because the gateway did not confirm that their messages
    /// failed, or because the ledger was restored from a backup
    #[arg(long, value_name = "N")]
    pub(in crate::cli) i_accept_duplicates: Option<u64>,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("message").required(true).args(["row", "to"])))]
pub(in crate::cli) struct ShowArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(in crate::cli) run: String,
    /// The row in the list; the header is 1
    #[arg(long, value_name = "N")]
    pub(in crate::cli) row: Option<u32>,
    /// The number it went to, with its country's code
    #[arg(long, value_name = "PHONE")]
    pub(in crate::cli) to: Option<String>,
}
