//! The arguments of the commands about the ledger.

use std::path::PathBuf;

use clap::Subcommand;

use super::LedgerUrl;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum LedgerCommand {
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
