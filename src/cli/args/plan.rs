//! The arguments of `plan` and `approve`.

use std::path::PathBuf;

use clap::Args;

use super::WHO;
use crate::domain::RowSet;

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanArgs {
    /// The campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    /// The first N of the rows that are left, as `run` would send to them
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = WHO)]
    pub(in crate::cli) limit: Option<u64>,
    /// These rows only, such as 2-51,60
    #[arg(long, help_heading = WHO)]
    pub(in crate::cli) rows: Option<RowSet>,
    /// Through this gateway instead of the campaign's
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) gateway: Option<String>,
    /// To everybody once more; N is their number
    #[arg(long, value_name = "N", help_heading = WHO)]
    pub(in crate::cli) again: Option<u64>,
    /// Allow up to N recipients, above the gateway's own limit
    #[arg(long, value_name = "N")]
    pub(in crate::cli) up_to: Option<u64>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ApproveArgs {
    /// What `campaign plan` printed, or the beginning of it
    pub(in crate::cli) digest: String,
}
