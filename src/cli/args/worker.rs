//! The arguments of `worker`.

use std::net::SocketAddr;

use clap::Args;

#[derive(Debug, Args)]
pub(in crate::cli) struct WorkerArgs {
    /// Serve /metrics on this address
    #[arg(long, value_name = "ADDRESS")]
    pub(in crate::cli) metrics: Option<SocketAddr>,
}
