//! The arguments of the suppression list.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use secrecy::SecretString;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum SuppressCommand {
    /// Put a number on the list: it gets no marketing any more
    Add(NumberArgs),
    /// Remove a number from the list, or undo the import of a file
    Remove(RemoveArgs),
    /// Add all numbers in a file; shows the changes and asks first. If any row is invalid, nothing is imported
    Import(ImportArgs),
    /// Print the list as CSV, which can be imported
    Export(ListedArgs),
    /// Show who is on the list
    List(ListedArgs),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct NumberArgs {
    /// The number: international, or national with --region
    pub(in crate::cli) phone: SecretString,
    #[command(flatten)]
    pub(in crate::cli) terms: TermsArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RemoveArgs {
    /// The number: international, or national with --region
    #[arg(required_unless_present = "source", conflicts_with = "source")]
    pub(in crate::cli) phone: Option<SecretString>,
    /// Undo an import: remove what it added, by its file or by the source that the list shows. Opt-outs that were on the list
    /// before, replies and numbers that were added by hand stay
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) source: Option<String>,
    /// Remove without asking
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
    #[command(flatten)]
    pub(in crate::cli) terms: TermsArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ImportArgs {
    /// A list (CSV or a workbook) with a column of numbers; an export also has scope, reason, source, at and gateways
    #[arg(id = "list", value_name = "CSV")]
    pub(in crate::cli) file: PathBuf,
    /// Import without asking
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
    #[command(flatten)]
    pub(in crate::cli) terms: TermsArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TermsArgs {
    /// Only this campaign [default: everything]
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) campaign: Option<String>,
    /// Why, in your words
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) reason: Option<String>,
    /// The country of national numbers, such as UA
    #[arg(long, value_name = "ISO")]
    pub(in crate::cli) region: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ListedArgs {
    /// Only who opted out of this campaign alone
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) campaign: Option<String>,
}
