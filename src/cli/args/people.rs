//! The arguments of `find`, `forget` and `purge`.

use clap::{ArgGroup, Args};
use jiff::SignedDuration;
use secrecy::SecretString;

use super::SelectionArgs;
use crate::manifest::Seconds;

#[derive(Debug, Args)]
pub(in crate::cli) struct ForgetArgs {
    /// Phone number in international format, or in the national format of --region
    pub(in crate::cli) phone: SecretString,
    #[command(flatten)]
    pub(in crate::cli) region: RegionOption,
    /// Erase without asking
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PurgeArgs {
    /// Purge runs without any activity for this long, such as 400d
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub(in crate::cli) older_than: SignedDuration,
    /// Purge without asking
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
}

/// The age at which receipts for a run are no longer expected.
const RECEIPT_PERIOD: SignedDuration = SignedDuration::from_hours(4 * 24);

/// An age such as 400d.
fn parse_age(text: &str) -> Result<SignedDuration, String> {
    let seconds = text.parse::<Seconds>().map_err(|_| "use a duration such as `400d`".to_owned())?;
    match SignedDuration::from_secs(seconds.0.into()) {
        age if age < RECEIPT_PERIOD => {
            Err("the duration must be at least 4d, because receipts can still arrive until then".to_owned())
        }
        age => Ok(age),
    }
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("number").required(true).args(["phone", "to"])))]
pub(in crate::cli) struct FindArgs {
    /// Phone number in international format, or in the national format of --region
    pub(in crate::cli) phone: Option<SecretString>,
    #[command(flatten)]
    pub(in crate::cli) region: RegionOption,
    #[command(flatten)]
    pub(in crate::cli) selection: SelectionArgs,
}

/// The country of a number that is typed.
#[derive(Debug, Args)]
pub(in crate::cli) struct RegionOption {
    /// Country of a national number, such as UA [default: the `region` that your campaigns share]
    ///
    /// There is a default only if all campaign files in this folder, and those of all runs in the ledger, have the same `region`.
    #[arg(long, value_name = "COUNTRY")]
    pub(in crate::cli) region: Option<String>,
}
