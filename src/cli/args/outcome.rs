//! The arguments of `outcome`.

use std::path::PathBuf;

use clap::Args;
use jiff::SignedDuration;

use super::plan::parse_validity;

#[derive(Debug, Args)]
pub(in crate::cli) struct OutcomeArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(in crate::cli) run: String,
    /// CSV file or workbook of purchases or other actions, with phone numbers and times
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    /// Column with the time of each purchase or action
    #[arg(long, value_name = "COLUMN")]
    pub(in crate::cli) at: String,
    /// Count actions within this time after the message
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = parse_validity)]
    pub(in crate::cli) within: SignedDuration,
    /// Column with the amount of each purchase
    #[arg(long, value_name = "COLUMN")]
    pub(in crate::cli) amount: Option<String>,
    /// Column with the phone numbers [default: detected from its cells]
    #[arg(long, value_name = "COLUMN")]
    pub(in crate::cli) phone: Option<String>,
    /// Country of national numbers, such as UA [default: the campaign's `region`]
    #[arg(long, value_name = "COUNTRY")]
    pub(in crate::cli) region: Option<String>,
}
