//! The arguments of the commands about the ledger.

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
}
