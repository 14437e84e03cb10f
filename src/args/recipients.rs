//! Command-line arguments of the commands about recipients: `find`, `forget`, `purge` and `suppress`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use jiff::SignedDuration;
use secrecy::SecretString;

use super::{LanguageName, SelectionArgs};
use campaign_manifest::Seconds;

#[derive(Debug, Args)]
pub(crate) struct ForgetArgs {
    /// Phone number in international format, or in the national format of --region
    pub(crate) phone: SecretString,
    #[command(flatten)]
    pub(crate) region: RegionOption,
    /// Erase without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// Purge runs that have had no activity for this period, for example 400d
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub(crate) older_than: SignedDuration,
    /// Purge without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// The age at which receipts for a run are no longer expected.
const RECEIPT_PERIOD: SignedDuration = SignedDuration::from_hours(4 * 24);

/// Parses an age such as 400d.
fn parse_age(text: &str) -> Result<SignedDuration, String> {
    let seconds = text.parse::<Seconds>().map_err(|_| "use a duration such as `400d`".to_owned())?;
    match SignedDuration::from(seconds) {
        age if age < RECEIPT_PERIOD => {
            Err("the duration must be at least 4d, because receipts can still arrive for newer runs".to_owned())
        }
        age => Ok(age),
    }
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("number").required(true).args(["phone", "to"])))]
pub(crate) struct FindArgs {
    /// Phone number in international format, or in the national format of --region
    pub(crate) phone: Option<SecretString>,
    #[command(flatten)]
    pub(crate) region: RegionOption,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    pub(crate) evidence: EvidenceArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Evidence options")]
pub(crate) struct EvidenceArgs {
    /// Show the purpose, consent and approvals for each message, and a digest
    ///
    /// Consent is shown as recorded when each run began, even if the list has changed since.
    #[arg(long)]
    pub(crate) evidence: bool,
    /// Write the evidence to this file, as HTML (.html) or JSON (.json)
    #[arg(long, value_name = "FILE", requires = "evidence")]
    pub(crate) out: Option<PathBuf>,
    /// Sign the digest with the private key in this file, as created by `campaign approve --new-key`
    #[arg(long, value_name = "FILE", requires = "evidence")]
    pub(crate) key: Option<PathBuf>,
    /// Language of the page [default: the system's language if available, otherwise en]
    #[arg(long, value_enum, value_name = "LANGUAGE", requires = "out")]
    pub(crate) lang: Option<LanguageName>,
}

/// The country of a number that is typed.
#[derive(Debug, Args)]
pub(crate) struct RegionOption {
    /// Country of a number that has no country code, such as UA [default: the `region` that your campaigns share]
    ///
    /// There is a default only if all campaign files in this folder, and those of all runs in the ledger, have the same `region`.
    #[arg(long, value_name = "COUNTRY")]
    pub(crate) region: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SuppressCommand {
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
pub(crate) struct NumberArgs {
    /// Phone number in international format, or in the national format of --region
    pub(crate) phone: SecretString,
    #[command(flatten)]
    pub(crate) terms: TermsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Phone number in international format, or in the national format of --region
    #[arg(required_unless_present = "source", conflicts_with = "source")]
    pub(crate) phone: Option<SecretString>,
    /// Undo all imports of this file, or the single import with this source
    ///
    /// `suppress list` shows the sources. Opt-outs from replies, opt-outs added by hand and those older than the import
    /// are kept.
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// Remove without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) terms: TermsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// CSV file or workbook with a column of phone numbers, or an exported suppression list
    #[arg(id = "list", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Import without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) terms: TermsArgs,
}

/// The name of a scope that is not one campaign.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ScopeName {
    /// Marketing messages of all campaigns
    Marketing,
    /// All messages, including service messages, unless they are mandatory
    All,
}

#[derive(Debug, Args)]
pub(crate) struct TermsArgs {
    /// Scope of the opt-outs
    ///
    /// With `remove`, only opt-outs with this scope are removed [default: all of them]. With the other commands, the
    /// default is `marketing`, or the scope in the file.
    #[arg(long, value_enum, conflicts_with = "campaign")]
    pub(crate) scope: Option<ScopeName>,
    /// Limit the opt-out to marketing messages from this campaign [default: all campaigns]
    ///
    /// With `remove`, only opt-outs from this campaign are removed.
    #[arg(long, value_name = "NAME")]
    pub(crate) campaign: Option<String>,
    /// Record this reason
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Country of national numbers, such as UA [default: the `region` of the campaign]
    ///
    /// Without --campaign, the default is the `region` that all campaigns in this folder and in the ledger share.
    #[arg(long, value_name = "COUNTRY")]
    pub(crate) region: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SuppressListArgs {
    /// List only opt-outs limited to this campaign
    #[arg(long, value_name = "NAME")]
    pub(crate) campaign: Option<String>,
}
