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

/// What is done about who may look at the pages of a server on this machine.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ServeCommand {
    /// Make a link that lets somebody in to the pages, once
    Link(LinkArgs),
    /// Show who may look at the pages
    List,
    /// Show somebody out: their links and sessions are over at once
    Revoke {
        /// The name that their link was for
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LinkArgs {
    /// Whom it is for: what they decide is recorded under this name
    #[arg(long = "for", value_name = "NAME", value_parser = person)]
    pub(in crate::cli) name: String,
    /// Let them stop runs, decide about rows in doubt, pause schedules and opt numbers out of marketing; else they look only
    #[arg(long)]
    pub(in crate::cli) decide: bool,
}

/// A name of a person.
fn person(text: &str) -> Result<String, &'static str> {
    is_name(text).then(|| text.to_owned()).ok_or("a name is 1 to 64 signs on one line")
}

/// An address that a browser can go to.
fn web_address(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    url.ok_or("it has to be an address such as https://campaign.example.com")
}
