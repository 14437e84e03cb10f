//! The arguments of `campaign report`.

use std::path::PathBuf;

use clap::Args;

use super::page::{PAGE, PAGE_FILE, PageArgs};

#[derive(Debug, Args)]
pub(in crate::cli) struct ReportArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(in crate::cli) run: String,
    /// Write the page to this file [default: NAME.report.html next to the results]
    #[arg(id = PAGE_FILE, long = "out", value_name = "FILE", help_heading = PAGE)]
    pub(in crate::cli) out: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) page: PageArgs,
}
