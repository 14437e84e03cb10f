//! The arguments of the commands that follow a run up: `results`, `show`, `replies`, `status`.

use std::path::PathBuf;

use clap::Args;

use super::SelectionArgs;

#[derive(Debug, Args)]
pub(in crate::cli) struct StatusArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file [default: all runs]
    pub(in crate::cli) run: Option<String>,
    /// Include rehearsals older than a day
    #[arg(long, conflicts_with = "run")]
    pub(in crate::cli) all: bool,
    /// Follow the run until its last receipt; without RUN, follow the run being sent or the latest one
    #[arg(long, conflicts_with = "all")]
    pub(in crate::cli) watch: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ResultsArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(in crate::cli) run: String,
    /// Write to this file (- for standard output): a workbook if its name ends in .xlsx, otherwise CSV
    ///
    /// The default is the run's own results file. With --excel, it is NAME.excel.xlsx next to that file; with --people,
    /// NAME.people.csv. If you select messages, the default is standard output.
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Write a file for Excel: a workbook with a summary, or CSV that Excel reads without losing digits
    #[arg(long, conflicts_with = "json")]
    pub(in crate::cli) excel: bool,
    /// Write one row per recipient of the campaign's edition, across all runs of the edition
    #[arg(long, conflicts_with = "rows")]
    pub(in crate::cli) people: bool,
    #[command(flatten)]
    pub(in crate::cli) selection: SelectionArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ShowArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(in crate::cli) run: String,
    #[command(flatten)]
    pub(in crate::cli) selection: SelectionArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RepliesArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(in crate::cli) run: String,
    /// Write to this file, which must not exist yet [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Show only replies that look like an opt-out but were not recorded as one
    #[arg(long, conflicts_with = "out")]
    pub(in crate::cli) review: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ReconcileArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(in crate::cli) run: String,
    /// Ask about all messages without a final status, not only those in doubt
    #[arg(long)]
    pub(in crate::cli) all: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct StopArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(in crate::cli) run: String,
    /// Cancel the planned rows for good
    ///
    /// Later runs of the same edition skip these recipients, unless you pass `--again`.
    #[arg(long)]
    pub(in crate::cli) for_good: bool,
    /// Cancel without asking
    #[arg(short, long, requires = "for_good")]
    pub(in crate::cli) yes: bool,
}
