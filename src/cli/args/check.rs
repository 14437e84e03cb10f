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
    /// Fetch a list that is no file, by the program, address, query or run that the campaign names; only of a campaign file
    /// that you trust
    #[arg(long)]
    pub(in crate::cli) fetch: bool,
    /// Ask the gateway too: whether it takes the key, knows the sender names, and has enough money
    #[arg(long)]
    pub(in crate::cli) online: bool,
    /// Check for this gateway instead of the campaign's
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) gateway: Option<String>,
    /// Take warnings for errors
    #[arg(long)]
    pub(in crate::cli) strict: bool,
    /// How findings are printed: for people, as one JSON object, as commands of a GitHub workflow, as a SARIF log
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "json")]
    pub(in crate::cli) format: Option<Format>,
    /// Print every value in force and where it comes from, as YAML, and look at no list
    #[arg(long, conflicts_with_all = ["online", "format", "strict"])]
    pub(in crate::cli) show_settings: bool,
}

/// How `check` prints what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Format {
    /// For people
    Text,
    /// One object, as --json
    Json,
    /// Commands of a GitHub workflow, which mark the lines
    Github,
    /// A SARIF 2.1.0 log
    Sarif,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ExplainArgs {
    /// A rule such as empty-cell, as it stands in a finding [default: all are listed]
    pub(in crate::cli) rule: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PreviewArgs {
    /// The campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    /// Fetch a list that is no file, by the program, address, query or run that the campaign names; only of a campaign file
    /// that you trust
    #[arg(long)]
    pub(in crate::cli) fetch: bool,
    /// Rows as a spreadsheet numbers them, such as 2-6,60 [default: the first three; with --html 20; with --json all]
    #[arg(long)]
    pub(in crate::cli) rows: Option<RowSet>,
    /// Show it as it goes through this gateway instead of the campaign's
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) gateway: Option<String>,
    /// Write a page to this file that shows the messages as phones do
    #[arg(id = PAGE_FILE, long = "html", value_name = "FILE", help_heading = PAGE)]
    pub(in crate::cli) html: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) page: PageArgs,
}
