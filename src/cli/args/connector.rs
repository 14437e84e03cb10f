//! The arguments of `connector`.

use std::net::SocketAddr;

use clap::Args;
use reqwest::Url;

use super::GatewayOption;

#[derive(Debug, Args)]
pub(in crate::cli) struct ConnectorArgs {
    /// The address that it listens on; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:8787", value_name = "ADDRESS")]
    pub(in crate::cli) listen: SocketAddr,
    #[command(flatten)]
    pub(in crate::cli) through: GatewayOption,
    /// Refuse calls without a key by HTTP 401, which has some clients ask their users to log in; otherwise the tool says so
    #[arg(long)]
    pub(in crate::cli) require_key: bool,
    /// A page whose scripts may call it, and by whose host it is reached, such as https://assistant.example.com
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub(in crate::cli) origin: Option<Url>,
}

/// The origin of a page: an address without a path.
fn origin(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).ok().filter(|url| url.origin().is_tuple() && url.path() == "/" && url.query().is_none());
    url.ok_or("it has to be an address without a path, such as https://assistant.example.com")
}
