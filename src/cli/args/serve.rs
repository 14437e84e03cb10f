//! The arguments of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use ipnet::IpNet;
use reqwest::Url;

#[derive(Debug, Args)]
pub(in crate::cli) struct ServeArgs {
    /// The address of its own door, for this machine and those who look after it; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:8040", value_name = "ADDRESS")]
    pub(in crate::cli) listen: SocketAddr,
    /// Campaign files, or folders of them: of what is armed only these run by themselves here, and their profiles count besides
    /// those that runs were sent through
    #[arg(value_name = "DIR|FILE", value_hint = clap::ValueHint::AnyPath)]
    pub(in crate::cli) campaigns: Vec<PathBuf>,
    /// The address of the receipts' door, the only one that the world has to reach [default: 127.0.0.1:8041 where a
    /// profile has `hook`]
    #[arg(long, value_name = "ADDRESS")]
    pub(in crate::cli) hooks: Option<SocketAddr>,
    /// A network of proxies before the receipts' door, whose word about who sends is believed
    #[arg(long, value_name = "CIDR")]
    pub(in crate::cli) trusted_proxy: Vec<IpNet>,
    /// The address by which its own door is reached through a proxy, such as https://campaign.example.com
    #[arg(long, value_name = "URL", value_parser = web_address)]
    pub(in crate::cli) pages_url: Option<Url>,
    /// Tell runs as JSON at /api/runs, to who has the token in this file
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) token_file: Option<PathBuf>,
    /// Show /metrics on a door of its own at this address, and not on the own door
    #[arg(long, value_name = "ADDRESS")]
    pub(in crate::cli) metrics: Option<SocketAddr>,
}

/// An address that a browser can go to.
fn web_address(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    url.ok_or("it has to be an address such as https://campaign.example.com")
}
