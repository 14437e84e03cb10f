//! The value of `--ledger`. It might contain a password, so it is never shown.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use crate::ledger::PostgresAddress;

/// The URL of a shared ledger as it was typed. It is parsed where it is used, so that no parser of arguments repeats it.
#[derive(Clone)]
pub(in crate::cli) struct LedgerUrl(String);

impl LedgerUrl {
    /// The URL without its password, for commands that are suggested. `None` if it is not a URL.
    pub(in crate::cli) fn without_password(&self) -> Option<String> {
        Some(PostgresAddress::parse(self.url()?).ok()?.url_without_password().to_owned())
    }

    /// The URL. `None` if the variable is empty.
    pub(in crate::cli) fn url(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|url| !url.is_empty())
    }
}

impl FromStr for LedgerUrl {
    type Err = Infallible;

    fn from_str(url: &str) -> Result<Self, Infallible> {
        Ok(Self(url.to_owned()))
    }
}

impl fmt::Debug for LedgerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LedgerUrl")
    }
}
