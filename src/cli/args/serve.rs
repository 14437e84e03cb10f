//! The arguments of `serve`.

use std::net::SocketAddr;

use clap::Args;
use reqwest::Url;

#[derive(Debug, Args)]
pub(in crate::cli) struct ServeArgs {
    /// The address of its own door, for this machine and those who look after it; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:8040", value_name = "ADDRESS")]
    pub(in crate::cli) listen: SocketAddr,
    /// The address by which its own door is reached through a proxy, such as https://campaign.example.com
    #[arg(long, value_name = "URL", value_parser = web_address)]
    pub(in crate::cli) pages_url: Option<Url>,
    /// Show /metrics on a door of its own at this address, and not on the own door
    #[arg(long, value_name = "ADDRESS")]
    pub(in crate::cli) metrics: Option<SocketAddr>,
}

/// An address that a browser can go to.
fn web_address(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    url.ok_or("it has to be an address such as https://campaign.example.com")
}
