//! The arguments of `sandbox`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(in crate::cli) struct SandboxArgs {
    /// Listen on this address; port 0 selects a free port
    #[arg(long, default_value = "127.0.0.1:8025", value_name = "ADDRESS")]
    pub(in crate::cli) listen: SocketAddr,
    /// Accept this API key [default: sandbox; required if other machines can connect]
    #[arg(long, value_name = "KEY")]
    pub(in crate::cli) key: Option<String>,
    /// Use this scenario, which defines accounts, prices, delays and faults
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) scenario: Option<PathBuf>,
    /// Log every event to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) journal: Option<PathBuf>,
    /// Send statuses of messages without a `hook` to this URL, as if it were set in the first account's API settings
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) notify: Option<String>,
    /// Send webhooks to any host, not only to this machine
    #[arg(long)]
    pub(in crate::cli) any_hook: bool,
    /// Print what the sandbox assumes where the gateway's contract is silent, and exit
    #[arg(long)]
    pub(in crate::cli) assumptions: bool,
}
