//! The arguments of the commands about people.

use clap::Args;
use jiff::SignedDuration;
use secrecy::SecretString;

use crate::manifest::Seconds;

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
pub(in crate::cli) struct PurgeArgs {
    /// Runs of which nothing was sent or done for so long, such as 400d
    #[arg(long, value_name = "TIME", value_parser = age)]
    pub(in crate::cli) older_than: SignedDuration,
    /// Purge them without asking
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
}

/// For how long what becomes of messages is followed at least, so that receipts may come.
const FOLLOWED: SignedDuration = SignedDuration::from_hours(4 * 24);

/// An age such as 400d.
fn age(text: &str) -> Result<SignedDuration, String> {
    let seconds = text.parse::<Seconds>().map_err(|_| "write it like `400d`".to_owned())?;
    match SignedDuration::from_secs(seconds.0.into()) {
        age if age < FOLLOWED => Err("it must be 4d at least: until then receipts may come".to_owned()),
        age => Ok(age),
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct FindArgs {
    /// The number: international, or national with --region
    pub(in crate::cli) phone: SecretString,
    /// The country of national numbers, such as UA
    #[arg(long, value_name = "ISO")]
    pub(in crate::cli) region: Option<String>,
}
