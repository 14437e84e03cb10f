//! The value of `--ledger`, which may hold a password: nothing shows it.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use crate::ledger::PostgresAddress;

/// What was given as the address of a shared ledger; whether it is one is found out where it is used, so that no parser
/// repeats it.
#[derive(Clone)]
pub(in crate::cli) struct LedgerUrl(String);

impl LedgerUrl {
    /// As it may be repeated, without its password; nothing where it is no address.
    pub(in crate::cli) fn repeatable(&self) -> Option<String> {
        Some(PostgresAddress::parse(self.given()?).ok()?.repeatable().to_owned())
    }

    /// The address; nothing where the variable is empty.
    pub(in crate::cli) fn given(&self) -> Option<&str> {
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
