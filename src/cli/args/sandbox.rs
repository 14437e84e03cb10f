//! The arguments of `sandbox`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(in crate::cli) struct SandboxArgs {
    /// The address to listen on; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:8025", value_name = "ADDRESS")]
    pub(in crate::cli) listen: SocketAddr,
    /// The API key that it accepts [default on this machine's own addresses: sandbox]
    #[arg(long)]
    pub(in crate::cli) key: Option<String>,
    /// Play this scenario: accounts, prices, lags and faults
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) scenario: Option<PathBuf>,
    /// Write all that happens to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) journal: Option<PathBuf>,
    /// Tell this address of statuses that no hook keeps, as the API settings of the first account would
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) notify: Option<String>,
    /// Send webhooks to any host, and not only to this machine
    #[arg(long)]
    pub(in crate::cli) any_hook: bool,
    /// Print what it assumes where the gateway's contract is silent
    #[arg(long)]
    pub(in crate::cli) assumptions: bool,
}
