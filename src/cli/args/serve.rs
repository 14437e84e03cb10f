//! The arguments of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use ipnet::IpNet;
use reqwest::Url;

use crate::web::is_name;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct ServeArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: Option<ServeCommand>,
    /// Serve the dashboard on this address; port 0 selects a free port
    #[arg(long, default_value = "127.0.0.1:8040", value_name = "ADDRESS")]
    pub(in crate::cli) listen: SocketAddr,
    /// Campaign files or folders whose schedules fire here [default: all active schedules]
    ///
    /// The webhook endpoint accepts receipts for the gateway profiles of these campaigns and for earlier runs.
    #[arg(value_name = "DIR|FILE", value_hint = clap::ValueHint::AnyPath)]
    pub(in crate::cli) campaigns: Vec<PathBuf>,
    /// Serve the webhook endpoint on this address [default: 127.0.0.1:8041 if a profile has `hook`]
    ///
    /// This is the only endpoint that must be reachable from the internet.
    #[arg(long, value_name = "ADDRESS")]
    pub(in crate::cli) hooks: Option<SocketAddr>,
    /// Trust forwarded client addresses from proxies in this network; can be repeated
    #[arg(long, value_name = "CIDR")]
    pub(in crate::cli) trusted_proxy: Vec<IpNet>,
    /// Public URL of the dashboard behind a proxy, such as https://campaign.example.com
    #[arg(long, value_name = "URL", value_parser = parse_web_address)]
    pub(in crate::cli) pages_url: Option<Url>,
    /// Serve runs as JSON at /api/runs to clients with the token in this file
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) token_file: Option<PathBuf>,
    /// Serve /metrics on this address instead of the dashboard's
    #[arg(long, value_name = "ADDRESS")]
    pub(in crate::cli) metrics: Option<SocketAddr>,
}

/// Commands about the people who can sign in to the dashboard.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ServeCommand {
    /// Create a one-time sign-in link for the dashboard
    Link(LinkArgs),
    /// List the people who can sign in to the dashboard
    List,
    /// Revoke all links and sessions of a person at once
    Revoke {
        /// Name of the person for whom the link was created
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LinkArgs {
    /// Name of the person, recorded with each of their decisions
    #[arg(long = "for", value_name = "NAME", value_parser = parse_person_name)]
    pub(in crate::cli) name: String,
    /// Allow decisions: stop runs, resolve rows in doubt, pause schedules, add opt-outs [default: view only]
    #[arg(long)]
    pub(in crate::cli) decide: bool,
}

/// A name of a person.
fn parse_person_name(text: &str) -> Result<String, &'static str> {
    is_name(text).then(|| text.to_owned()).ok_or("use 1 to 64 characters on one line")
}

/// A URL that a browser can open.
fn parse_web_address(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    url.ok_or("use a URL such as https://campaign.example.com")
}
