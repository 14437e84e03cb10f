//! The arguments of `outcome`.

use std::path::PathBuf;

use clap::Args;
use jiff::SignedDuration;

use super::plan::time;

#[derive(Debug, Args)]
pub(in crate::cli) struct OutcomeArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(in crate::cli) run: String,
    /// Purchases or other actions of people: a list (CSV or a workbook) with their numbers and the times
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    /// The column of that file with the times
    #[arg(long, value_name = "COLUMN")]
    pub(in crate::cli) at: String,
    /// How long after the message it counts
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = time)]
    pub(in crate::cli) within: SignedDuration,
    /// The column with the amounts
    #[arg(long, value_name = "COLUMN")]
    pub(in crate::cli) amount: Option<String>,
    /// The column with the numbers [default: found by what stands in it]
    #[arg(long, value_name = "COLUMN")]
    pub(in crate::cli) phone: Option<String>,
    /// The country of national numbers, such as UA [default: the campaign's]
    #[arg(long, value_name = "COUNTRY")]
    pub(in crate::cli) region: Option<String>,
}
