//! The arguments of the commands about a person.

use clap::Args;
use secrecy::SecretString;

#[derive(Debug, Args)]
pub(in crate::cli) struct ForgetArgs {
    /// The number: international, or national with --region
    pub(in crate::cli) phone: SecretString,
    /// The country of national numbers, such as UA
    #[arg(long, value_name = "ISO")]
    pub(in crate::cli) region: Option<String>,
    /// Forget it without asking
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct FindArgs {
    /// The number: international, or national with --region
    pub(in crate::cli) phone: SecretString,
    /// The country of national numbers, such as UA
    #[arg(long, value_name = "ISO")]
    pub(in crate::cli) region: Option<String>,
}
