//! The arguments of `connector`.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use reqwest::Url;

use super::{GatewayOption, Global, LedgerUrl};
use crate::connector::Client;

/// How many numbers an hour are looked up unless the operator says otherwise.
const LOOKUPS: NonZeroU32 = NonZeroU32::new(60).expect("more than none");

#[derive(Debug, Args)]
pub(in crate::cli) struct ConnectorArgs {
    /// The address that it listens on; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:8787", value_name = "ADDRESS")]
    pub(in crate::cli) listen: SocketAddr,
    #[command(flatten)]
    pub(in crate::cli) through: GatewayOption,
    /// Offer the tools that send, each call of which has to be confirmed; without it no message leaves
    #[arg(long)]
    pub(in crate::cli) allow_send: bool,
    /// Let each confirmed call wait until `campaign approve DIGEST` in a terminal of yours, which shows exactly what it does
    #[arg(long, requires = "allow_send")]
    pub(in crate::cli) approve: bool,
    /// The most messages that are sent within an hour through the profile, whoever sends them
    #[arg(long, value_name = "N", default_value = "20", requires = "allow_send")]
    pub(in crate::cli) max_sends_per_hour: NonZeroU32,
    /// The most numbers that assistants look up within an hour through the profile; lookups by `campaign gateway lookup` count
    #[arg(long, value_name = "N", default_value_t = LOOKUPS)]
    pub(in crate::cli) max_lookups_per_hour: NonZeroU32,
    /// Send only to the numbers of this list
    #[arg(long, value_name = "FILE", requires = "allow_send")]
    pub(in crate::cli) only_to: Option<PathBuf>,
    /// Refuse calls without a key by HTTP 401, which has some clients ask their users to log in; otherwise the tool says so
    #[arg(long)]
    pub(in crate::cli) require_key: bool,
    /// A page whose scripts may call it, and by whose host it is reached, such as https://assistant.example.com
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub(in crate::cli) origin: Option<Url>,
    /// Answer the program that started it on standard input and output instead of listening, with the key of the profile
    #[arg(long, conflicts_with_all = ["listen", "require_key", "origin", "json"])]
    pub(in crate::cli) stdio: bool,
    /// Show the campaigns of this folder as well, to who has the key of the profile, and with --allow-send have them sent once
    /// a person approved their plan; the lists of people are in this folder, too, and nothing outside of it is opened
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(in crate::cli) campaigns: Option<PathBuf>,
    /// Print what a program of an assistant needs to find the connector, or with --stdio to start it, as these options say;
    /// nothing is started, and a variable stands for the key
    #[arg(long)]
    pub(in crate::cli) print_config: bool,
    /// Print it as the whole file of this program; `generic` is the entry alone
    #[arg(long, value_name = "CLIENT", default_value = Client::Generic.name(), value_parser = client(), requires = "print_config")]
    pub(in crate::cli) client: Client,
}

impl ConnectorArgs {
    /// What stands behind the program's name to start the same one over standard input and output, whatever folder it is
    /// started in; `gateways` is the file in which its profile is.
    pub(in crate::cli) fn to_start(&self, global: &Global, gateways: PathBuf) -> Vec<String> {
        // Each by its name: a lock that is added later is not forgotten here.
        let Self {
            through,
            campaigns,
            allow_send,
            approve,
            max_sends_per_hour,
            max_lookups_per_hour,
            only_to,
            listen: _,
            require_key: _,
            origin: _,
            stdio: _,
            print_config: _,
            client: _,
        } = self;
        let path = |path: PathBuf| std::path::absolute(&path).unwrap_or(path).to_string_lossy().into_owned();
        let options = [
            ("--gateway", through.gateway.clone()),
            ("--campaigns", campaigns.clone().map(path)),
            ("--gateways", Some(path(gateways))),
            ("--ledger", global.ledger.as_ref().and_then(LedgerUrl::repeatable)),
            ("--state-dir", global.state_dir.clone().map(path)),
            ("--max-sends-per-hour", allow_send.then(|| max_sends_per_hour.to_string())),
            ("--max-lookups-per-hour", (*max_lookups_per_hour != LOOKUPS).then(|| max_lookups_per_hour.to_string())),
            ("--only-to", only_to.clone().map(path)),
        ];
        let given = options.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]));
        let locks = [allow_send.then_some("--allow-send"), approve.then_some("--approve")];
        let flags = ["connector", "--stdio"].into_iter().chain(locks.into_iter().flatten());
        flags.map(ToOwned::to_owned).chain(given.flatten()).collect()
    }
}

/// The names of the clients, which shells then offer.
fn client() -> impl TypedValueParser<Value = Client> {
    PossibleValuesParser::new(Client::ALL.map(Client::name))
        .try_map(|name| Client::from_name(&name).ok_or("there is no such client"))
}

/// The origin of a page: an address without a path.
fn origin(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).ok().filter(|url| url.origin().is_tuple() && url.path() == "/" && url.query().is_none());
    url.ok_or("it has to be an address without a path, such as https://assistant.example.com")
}
