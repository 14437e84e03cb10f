//! Command-line arguments of `serve`, `worker`, `schedule` and `connector`.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use ipnet::IpNet;
use reqwest::Url;

use super::{GatewayOption, GlobalOptions, LedgerUrl};
use campaign_net::is_loopback_host;
use campaign_server::connector::AssistantClient;
use campaign_server::web::is_visitor_name;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ServeCommand>,
    /// Serve the dashboard on this address; port 0 selects a free port
    #[arg(long, default_value = "127.0.0.1:8040", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// Campaign files or folders whose schedules this server runs [default: all active schedules]
    ///
    /// The webhook endpoint accepts receipts for these campaigns' gateway profiles and for earlier runs.
    #[arg(value_name = "DIR|FILE", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) campaigns: Vec<PathBuf>,
    /// Serve the webhook endpoint on this address [default: 127.0.0.1:8041 if a profile has `hook`]
    ///
    /// This is the only endpoint that must be reachable from the internet.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) hooks: Option<SocketAddr>,
    /// Trust forwarded client addresses from proxies in this network; can be repeated
    #[arg(long, value_name = "CIDR")]
    pub(crate) trusted_proxy: Vec<IpNet>,
    /// Public URL of the dashboard behind a proxy, such as https://campaign.example.com
    #[arg(long, value_name = "URL", value_parser = parse_public_url)]
    pub(crate) pages_url: Option<Url>,
    /// Allow test messages from the dashboard, but only to the phone numbers in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) test_to: Option<PathBuf>,
    /// Serve runs as JSON at /api/runs to clients with the token in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Serve /metrics on this address instead of the dashboard's
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
}

/// Commands about the people who can sign in to the dashboard.
#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Create a one-time sign-in link for the dashboard
    Link(LinkArgs),
    /// List the people who can sign in to the dashboard
    List,
    /// Revoke all links and sessions of a person immediately
    Revoke {
        /// Name of the person for whom the link was created
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    /// The person's name, which is recorded with each of their decisions
    #[arg(long = "for", value_name = "NAME", value_parser = parse_person_name)]
    pub(crate) name: String,
    /// Allow decisions on the dashboard [default: view only]
    ///
    /// With this link, a person can stop and retry runs, resolve rows in doubt, change opt-outs, pause schedules, send test
    /// messages, and see and download phone numbers.
    #[arg(long)]
    pub(crate) decide: bool,
}

/// Parses the name of a person.
fn parse_person_name(text: &str) -> Result<String, &'static str> {
    is_visitor_name(text).then(|| text.to_owned()).ok_or("use 1 to 64 characters on a single line")
}

/// Parses the public URL of the dashboard.
fn parse_public_url(text: &str) -> Result<Url, &'static str> {
    let url = parse_origin(text, "use a URL without a path, such as https://campaign.example.com")?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if url.host_str().is_some_and(is_loopback_host) => Ok(url),
        _ => Err("sign-in links and sessions are sent to this URL, so it must start with https://"),
    }
}

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Serve /metrics on this address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// Activate the schedule of a campaign
    ///
    /// From then on, `campaign serve` runs the campaign without asking, whenever it is due.
    Add(ScheduleAddArgs),
    /// List schedules and their next runs
    List,
    /// Show when a campaign's schedule fires next
    Next(NextArgs),
    /// Pause a schedule until you resume it
    Pause(ScheduleName),
    /// Resume a paused schedule
    Resume(ScheduleName),
    /// Deactivate and remove a schedule
    Remove(ScheduleName),
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleAddArgs {
    /// Campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Activate without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleName {
    /// Name of the campaign
    #[arg(id = "schedule", value_name = "NAME")]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct NextArgs {
    /// Campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Show the times of the next N runs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) count: u32,
    /// Show runs after this time [default: now]
    ///
    /// Use 2026-12-01 or `2026-12-01 10:00` in the campaign's time zone, or any time with an offset.
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
}

/// The default of `--max-lookups-per-hour`.
const DEFAULT_LOOKUPS_PER_HOUR: NonZeroU32 = NonZeroU32::new(60).expect("more than zero");

#[derive(Debug, Args)]
pub(crate) struct ConnectorArgs {
    /// Listen on this address; port 0 selects a free port
    #[arg(long, default_value = "127.0.0.1:8787", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) gateway_option: GatewayOption,
    /// Offer tools that send messages; each call must be confirmed
    #[arg(long)]
    pub(crate) allow_send: bool,
    /// Require `campaign approve DIGEST` at your terminal for each confirmed call
    #[arg(long, requires = "allow_send")]
    pub(crate) approve: bool,
    /// Limit messages through the gateway to N per hour
    #[arg(long, value_name = "N", default_value = "20", requires = "allow_send")]
    pub(crate) max_sends_per_hour: NonZeroU32,
    /// Limit lookups through the gateway to N per hour, including `campaign gateway lookup`
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LOOKUPS_PER_HOUR)]
    pub(crate) max_lookups_per_hour: NonZeroU32,
    /// Send only to the numbers in this list
    #[arg(long, value_name = "FILE", requires = "allow_send")]
    pub(crate) only_to: Option<PathBuf>,
    /// Respond with HTTP 401 to calls without a key; some clients then ask the user to log in
    ///
    /// Otherwise, the tool's result says that the key is missing.
    #[arg(long)]
    pub(crate) require_key: bool,
    /// Allow scripts from this origin and requests to its host, for example https://assistant.example.com
    #[arg(long, value_name = "ORIGIN", value_parser = parse_assistant_origin)]
    pub(crate) origin: Option<Url>,
    /// Communicate over standard input and output instead of HTTP, with the profile's key
    #[arg(long, conflicts_with_all = ["listen", "require_key", "origin", "json"])]
    pub(crate) stdio: bool,
    /// Offer tools for the campaigns in this folder
    ///
    /// Callers need the profile's key. With --allow-send, a campaign can be sent once a person has approved its plan.
    /// Recipient lists must be in this folder too; files outside it are not opened.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) campaigns: Option<PathBuf>,
    /// Print the configuration for an MCP client, and exit
    ///
    /// With --stdio, the client starts a connector; otherwise, it connects to a running one. The configuration contains
    /// a variable instead of the key.
    #[arg(long)]
    pub(crate) print_config: bool,
    /// Print the whole configuration file for this client; `generic` prints only the entry
    #[arg(long, value_name = "CLIENT", default_value = AssistantClient::Generic.name(), value_parser = client_parser(), requires = "print_config")]
    pub(crate) client: AssistantClient,
}

impl ConnectorArgs {
    /// Returns the arguments that start this connector over standard input and output from any folder. `gateways` is
    /// the file with the gateway profile of the connector.
    pub(crate) fn start_arguments(&self, global: &GlobalOptions, gateways: PathBuf) -> Vec<String> {
        // Destructured, so that a new option must be handled here.
        let Self {
            gateway_option,
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
            ("--gateway", gateway_option.gateway.clone()),
            ("--campaigns", campaigns.clone().map(path)),
            ("--gateways", Some(path(gateways))),
            ("--ledger", global.ledger.as_ref().and_then(LedgerUrl::without_password)),
            ("--state-dir", global.state_dir.clone().map(path)),
            ("--max-sends-per-hour", allow_send.then(|| max_sends_per_hour.to_string())),
            (
                "--max-lookups-per-hour",
                (*max_lookups_per_hour != DEFAULT_LOOKUPS_PER_HOUR).then(|| max_lookups_per_hour.to_string()),
            ),
            ("--only-to", only_to.clone().map(path)),
        ];
        let set_options = options.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]));
        let switches = [allow_send.then_some("--allow-send"), approve.then_some("--approve")];
        let flags = ["connector", "--stdio"].into_iter().chain(switches.into_iter().flatten());
        flags.map(ToOwned::to_owned).chain(set_options.flatten()).collect()
    }
}

/// Creates a parser for client names, which shells can complete.
fn client_parser() -> impl TypedValueParser<Value = AssistantClient> {
    PossibleValuesParser::new(AssistantClient::ALL.map(AssistantClient::name))
        .try_map(|name| AssistantClient::from_name(&name).ok_or("unknown client"))
}

/// Parses the origin of the pages whose scripts can use the connector.
fn parse_assistant_origin(text: &str) -> Result<Url, &'static str> {
    parse_origin(text, "use a URL without a path, such as https://assistant.example.com")
}

/// Parses an origin: a URL with only a scheme, a host and a port. `help` is the error for all other texts.
fn parse_origin(text: &str, help: &'static str) -> Result<Url, &'static str> {
    let is_origin = |url: &Url| format!("{}/", url.origin().ascii_serialization()) == url.as_str();
    Url::parse(text).ok().filter(is_origin).ok_or(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_url_is_an_origin_with_https_or_on_loopback() {
        for text in ["https://x.example", "https://x.example:8443/", "http://localhost:8040", "http://[::1]:8040"] {
            parse_public_url(text).unwrap();
        }
        for (text, help) in [
            ("http://x.example", "https://"),
            ("http://192.168.1.7:8040", "https://"),
            ("ftp://localhost", "https://"),
            ("https://x.example/campaign", "without a path"),
            ("https://x.example?x", "without a path"),
            ("https://x.example#x", "without a path"),
            ("https://u:p@x.example", "without a path"),
            ("https://u@x.example", "without a path"),
            ("x.example", "without a path"),
        ] {
            assert!(parse_public_url(text).unwrap_err().contains(help), "{text}");
        }
        assert!(parse_assistant_origin("https://u:p@x.example").is_err());
    }
}
