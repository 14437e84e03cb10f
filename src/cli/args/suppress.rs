//! The arguments of the suppression list.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use secrecy::SecretString;

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
