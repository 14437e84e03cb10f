//! The arguments of the ledger commands.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Subcommand;

use campaign_ledger::PostgresAddress;

#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Check the records, indexes and copies of lists; change nothing
    Check,
    /// Move the ledger to a database that several machines can share
    ///
    /// All runs move with it. The file in the state folder is kept, but can no longer be used to send.
    Copy {
        /// URL of a database without a ledger, such as postgres://user@host/database
        ///
        /// Keep the password in PGPASSWORD or ~/.pgpass.
        #[arg(long, value_name = "URL")]
        to: LedgerUrl,
    },
    /// Back up the ledger and its copies of campaigns and lists
    ///
    /// Runs can continue sending in the meantime.
    Backup {
        /// New or empty folder
        dir: PathBuf,
    },
    /// Restore a backup
    ///
    /// Rows that might have been sent since the backup are marked as in doubt, and schedules are paused.
    Restore {
        /// Folder of the backup
        dir: PathBuf,
    },
    /// Upgrade the tables of a shared database to this version
    ///
    /// Install this version on all machines first: after the upgrade, the database refuses earlier versions.
    Upgrade,
}

/// The URL of a shared ledger as it was typed.
///
/// It is parsed where it is used: usage errors repeat their argument, and the URL might contain a password.
#[derive(Clone)]
pub(crate) struct LedgerUrl(String);

impl LedgerUrl {
    /// The URL without its password, for suggested commands. `None` if it is not a URL.
    pub(crate) fn without_password(&self) -> Option<String> {
        Some(PostgresAddress::parse(self.url()?).ok()?.url_without_password().to_owned())
    }

    /// The URL. `None` if the variable is empty.
    pub(crate) fn url(&self) -> Option<&str> {
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
