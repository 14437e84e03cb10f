//! The arguments of the commands about the ledger.

use std::path::PathBuf;

use clap::Subcommand;

use super::LedgerUrl;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum LedgerCommand {
    /// Look at everything in the ledger: each record, each copy, each index; changes nothing
    Check,
    /// Move it from the file in the state folder to a database that several machines share, with all runs; the file stays and
    /// sends nothing any more
    Copy {
        /// The database, such as postgres://user@host/database, which has no ledger yet; its password belongs into PGPASSWORD
        #[arg(long, value_name = "URL")]
        to: LedgerUrl,
    },
    /// Make a backup in a new folder, whoever sends meanwhile: the ledger, and what its runs are sent from
    Backup {
        /// The folder, which is new or empty
        dir: PathBuf,
    },
    /// Put a backup back; rows that may have been sent since it was made are in doubt, and schedules are paused
    Restore {
        /// The folder of the backup
        dir: PathBuf,
    },
    /// Bring the tables of a database that machines share to this version, once all of them have it; earlier versions are
    /// refused from then on
    Upgrade,
}
