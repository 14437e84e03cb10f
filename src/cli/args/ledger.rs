//! The arguments of the commands about the ledger.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum LedgerCommand {
    /// Look at everything in the ledger: each record, each copy, each index; changes nothing
    Check,
}
