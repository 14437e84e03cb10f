//! The arguments of `plan` and `approve`.

use std::path::PathBuf;

use clap::Args;
use jiff::SignedDuration;

use super::WHO;
use super::page::{PAGE, PAGE_FILE, PageArgs};
use crate::domain::RowSet;
use crate::manifest::Seconds;

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanArgs {
    /// The campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    /// Fetch a list that is no file, by the program, address, query or run that the campaign names; only of a campaign file
    /// that you trust
    #[arg(long)]
    pub(in crate::cli) fetch: bool,
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
    /// Write a page to this file, for whoever approves it: what is sent, to how many, at what cost
    #[arg(id = PAGE_FILE, long = "out", value_name = "FILE", help_heading = PAGE)]
    pub(in crate::cli) out: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) page: PageArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ApproveArgs {
    /// What `campaign plan` printed, or the beginning of it
    #[arg(required_unless_present = "new_key")]
    pub(in crate::cli) digest: Option<String>,
    /// Sign it with the private half in this file, where the profile names who approves
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) key: Option<PathBuf>,
    /// Approve all that is due by the campaign's schedule for so long, such as 90d
    #[arg(long, value_name = "TIME", requires = "up_to", value_parser = time)]
    pub(in crate::cli) standing: Option<SignedDuration>,
    /// To so many people at most, each time
    #[arg(long, value_name = "N", requires = "standing")]
    pub(in crate::cli) up_to: Option<u64>,
    /// Make a pair of keys: NAME.key, and the line for the profile
    #[arg(long, value_name = "NAME", conflicts_with_all = ["digest", "key", "standing", "up_to"])]
    pub(in crate::cli) new_key: Option<String>,
}

/// The longest time for which an approval stands.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 366);

/// A time such as 90d, of a year at most.
pub(super) fn time(text: &str) -> Result<SignedDuration, String> {
    let seconds = text.parse::<Seconds>().map_err(|_| "write it like `90d` or `12h`".to_owned())?;
    match SignedDuration::from_secs(seconds.0.into()) {
        time if time.is_zero() || time > LONGEST => Err("it must be longer than nothing and at most 366d".to_owned()),
        time => Ok(time),
    }
}
