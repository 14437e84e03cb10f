//! The arguments about recipients: `find`, `forget`, `purge` and the suppression list.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
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

/// Parses an age such as 400d.
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

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum SuppressCommand {
    /// Add a number to the list, so that it receives no more marketing messages
    Add(NumberArgs),
    /// Remove a number from the list, or undo an import
    Remove(RemoveArgs),
    /// Add all numbers in a file
    ///
    /// Shows the changes and asks first. If any row is invalid, nothing is imported.
    Import(ImportArgs),
    /// Print the list as CSV that `import` can read
    Export(SuppressListArgs),
    /// List the numbers with scope, reason, source and time
    List(SuppressListArgs),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct NumberArgs {
    /// Phone number in international format, or in the national format of --region
    pub(in crate::cli) phone: SecretString,
    #[command(flatten)]
    pub(in crate::cli) terms: TermsArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RemoveArgs {
    /// Phone number in international format, or in the national format of --region
    #[arg(required_unless_present = "source", conflicts_with = "source")]
    pub(in crate::cli) phone: Option<SecretString>,
    /// Undo all imports of this file, or the single import with this source
    ///
    /// `suppress list` shows the sources. Opt-outs from replies, opt-outs added by hand and those older than the import
    /// are kept.
    #[arg(long, value_name = "SOURCE")]
    pub(in crate::cli) source: Option<String>,
    /// Remove without asking
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
    #[command(flatten)]
    pub(in crate::cli) terms: TermsArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ImportArgs {
    /// CSV file or workbook with a column of phone numbers, or an export of the list
    #[arg(id = "list", value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    /// Import without asking
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
    #[command(flatten)]
    pub(in crate::cli) terms: TermsArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TermsArgs {
    /// Limit the opt-out to this campaign [default: all campaigns]
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) campaign: Option<String>,
    /// Record this reason
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) reason: Option<String>,
    /// Country of national numbers, such as UA [default: the `region` of the campaign]
    ///
    /// Without --campaign, the default is the `region` that all campaigns in this folder and in the ledger share.
    #[arg(long, value_name = "COUNTRY")]
    pub(in crate::cli) region: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SuppressListArgs {
    /// List only opt-outs limited to this campaign
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) campaign: Option<String>,
}
