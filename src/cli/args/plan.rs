//! The arguments of `plan` and `approve`.

use std::path::PathBuf;

use clap::Args;
use jiff::SignedDuration;

use super::check::FetchOption;
use super::page::{PAGE, PAGE_FILE, PageArgs};
use super::run::RECIPIENTS;
use crate::domain::RowSet;
use crate::manifest::Seconds;

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanArgs {
    /// Campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    #[command(flatten)]
    pub(in crate::cli) list: FetchOption,
    /// Plan only the next N messages (for specific rows, use --rows)
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = RECIPIENTS)]
    pub(in crate::cli) limit: Option<u64>,
    /// Plan only these rows, such as 2-51,60 (for a number of messages, use --limit)
    #[arg(long, value_name = "ROWS", help_heading = RECIPIENTS)]
    pub(in crate::cli) rows: Option<RowSet>,
    /// Plan the campaign for this gateway instead of its own
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) gateway: Option<String>,
    /// Plan to send to all N recipients again, including those who already got the message
    #[arg(long, value_name = "N", help_heading = RECIPIENTS)]
    pub(in crate::cli) again: Option<u64>,
    /// Allow up to N recipients, even above the limit of the gateway profile
    #[arg(long, value_name = "N")]
    pub(in crate::cli) up_to: Option<u64>,
    /// Write a page for the approver to this file: messages, number of recipients and cost
    #[arg(id = PAGE_FILE, long = "out", value_name = "FILE", help_heading = PAGE)]
    pub(in crate::cli) out: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) page: PageArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ApproveArgs {
    /// Digest of a plan or of an assistant's request; its first characters are enough
    #[arg(required_unless_present = "new_key")]
    pub(in crate::cli) digest: Option<String>,
    /// Sign with the private key in this file, if the profile lists approvers
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) key: Option<PathBuf>,
    /// Approve all scheduled runs of the campaign for this long, such as 90d
    #[arg(long, value_name = "DURATION", requires = "up_to", value_parser = parse_validity)]
    pub(in crate::cli) standing: Option<SignedDuration>,
    /// Approve at most N recipients per scheduled run
    #[arg(long, value_name = "N", requires = "standing")]
    pub(in crate::cli) up_to: Option<u64>,
    /// Create the private key NAME.key and print the line to add to the profile
    #[arg(long, value_name = "NAME", conflicts_with_all = ["digest", "key", "standing", "up_to"])]
    pub(in crate::cli) new_key: Option<String>,
}

/// The longest validity of an approval.
const MAX_VALIDITY: SignedDuration = SignedDuration::from_hours(24 * 366);

/// A duration such as 90d, of at most 366 days.
pub(super) fn parse_validity(text: &str) -> Result<SignedDuration, String> {
    let seconds = text.parse::<Seconds>().map_err(|_| "use a duration such as `90d` or `12h`".to_owned())?;
    match SignedDuration::from_secs(seconds.0.into()) {
        time if time.is_zero() || time > MAX_VALIDITY => {
            Err("the duration must be more than zero and at most 366d".to_owned())
        }
        time => Ok(time),
    }
}
