//! The arguments of `check`, `explain` and `preview`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::page::{PAGE, PAGE_FILE, PageArgs};
use crate::domain::RowSet;

#[derive(Debug, Args)]
pub(in crate::cli) struct CheckArgs {
    /// Campaign files
    #[arg(required = true, id = "campaigns", value_name = "FILE")]
    pub(in crate::cli) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) list: FetchOption,
    /// Ask the gateway whether it accepts the key and sender names, and whether the balance is sufficient
    #[arg(long)]
    pub(in crate::cli) online: bool,
    /// Check the campaign for this gateway instead of its own
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) gateway: Option<String>,
    /// Treat warnings as errors
    #[arg(long)]
    pub(in crate::cli) strict: bool,
    /// Choose how findings are printed
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "json")]
    pub(in crate::cli) format: Option<Format>,
    /// Print all settings in effect and their origin as YAML, without reading the list
    #[arg(long, conflicts_with_all = ["online", "format", "strict"])]
    pub(in crate::cli) show_settings: bool,
}

/// The permission to fetch a list that is not a file.
#[derive(Debug, Args)]
pub(in crate::cli) struct FetchOption {
    /// Fetch the list if it comes from a program, URL, query or earlier run
    ///
    /// Use it only with a campaign file that you trust: the file decides which programs are started and which hosts are
    /// contacted.
    #[arg(long)]
    pub(in crate::cli) fetch: bool,
}

/// How `check` prints findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Format {
    /// Human-readable text
    Text,
    /// One JSON object, as --json prints it
    Json,
    /// Annotations of a GitHub workflow
    Github,
    /// A SARIF 2.1.0 log
    Sarif,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ExplainArgs {
    /// Rule, which each finding shows in brackets, such as empty-cell [default: list all rules]
    pub(in crate::cli) rule: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PreviewArgs {
    /// Campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    #[command(flatten)]
    pub(in crate::cli) which: PreviewedRows,
    #[command(flatten)]
    pub(in crate::cli) list: FetchOption,
    /// Preview the campaign for this gateway instead of its own
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) gateway: Option<String>,
    /// Write previews of how the messages look on a phone to this HTML file
    #[arg(id = PAGE_FILE, long = "html", value_name = "FILE", help_heading = PAGE)]
    pub(in crate::cli) html: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) page: PageArgs,
}

/// The rows that `preview` shows.
#[derive(Debug, Args)]
pub(in crate::cli) struct PreviewedRows {
    /// Show the first N messages to be sent (for specific rows, use --rows)
    ///
    /// Without --first and --rows, the first rows are shown, including those without a message: 3 rows, 20 with --html,
    /// all with --json.
    #[arg(long, value_name = "N", conflicts_with = "rows", value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::cli) first: Option<u32>,
    /// Show these rows, such as 2-6,60 (for the first N messages, use --first)
    ///
    /// Rows are numbered as in a spreadsheet: the header is row 1.
    #[arg(long, value_name = "ROWS")]
    pub(in crate::cli) rows: Option<RowSet>,
}
