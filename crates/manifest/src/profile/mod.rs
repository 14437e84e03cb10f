//! Gateway profiles: address, key, prices and limits of a gateway, and who must approve large runs.
//!
//! A profile says where its key is stored. Only [`SecretSource::read_secret`] reads the key, and no finding shows it,
//! even if it is written in the file.

mod gateways;
mod load;
mod secret;

pub use gateways::{ABROAD_LIMIT, GatewaySearch, Gateways, NewProfile, append_profile};
pub use load::load_gateways;
pub(super) use load::{is_environment_name, read_secret_source};
pub use secret::SecretSource;
pub(super) use secret::{conceal_addresses, conceal_keys};

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use campaign_core::domain::{Amount, Channel, CountrySet, FrequencyCap, LOOPBACK, Region};
use campaign_core::finding::{Finding, rules};
use reqwest::Url;

use super::document::FindingCollector;
use super::{NotifySettings, Rate, Resource, SendingWindow, SuppressionFile};
use crate::document::ConfigSection;
use crate::keys::OTHER_COUNTRIES;
use crate::value::ParseValueError;
use crate::yaml::Node;

/// The prefix of a written public key, which names the signature algorithm.
const KEY_PREFIX: &str = "ed25519:";

/// The webhook endpoint to which a gateway sends receipts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSettings {
    /// The public address of the endpoint.
    pub public_url: EndpointUrl,
    /// The locations of the secrets that sign addresses: the first signs, all verify.
    pub secrets: Vec<SecretSource>,
}

/// The settings of one gateway.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The profile's name.
    pub name: String,
    /// The URL of the synchronous endpoint (contract 4.1).
    pub base_url: EndpointUrl,
    /// The URL of the asynchronous endpoint (contract 4.2).
    pub async_url: Option<EndpointUrl>,
    /// The location of the API key.
    pub api_key: SecretSource,
    /// The rate limit of the account.
    pub rate: Rate,
    /// The maximum number of operations in an envelope.
    pub batch_limit: NonZeroU32,
    /// The maximum number of recipients of a run without explicit permission to exceed it.
    pub recipients_limit: Option<u32>,
    /// The countries that campaigns usually reach. `None` if the profile names none.
    pub home: Option<CountrySet>,
    /// The maximum number of recipients outside `home` in an edition without explicit permission to exceed it.
    pub abroad_limit: Option<u32>,
    /// The frequency cap over all campaigns.
    pub cap: Option<FrequencyCap>,
    /// Opted-out numbers in addition to the ledger's; no campaign sends marketing to them.
    pub suppress: Vec<SuppressionFile>,
    /// Whether marketing needs the recipient's consent, regardless of the campaign.
    pub requires_consent: bool,
    /// Whether campaigns must respect opt-outs, so that none of them can be mandatory.
    pub forbids_mandatory: bool,
    /// The sending window, regardless of the campaign.
    pub window: Option<SendingWindow>,
    /// The countries that messages may reach, regardless of the campaign. `None` for all.
    pub countries: Option<CountrySet>,
    /// Notifications in addition to those of a campaign.
    pub notify: Option<NotifySettings>,
    /// HTTP statuses that prove that no operation was executed.
    pub trust_status: Vec<u16>,
    /// Errors of operations that stop a run.
    pub fatal_errors: Vec<String>,
    /// Errors of operations that mean that the recipient opted out.
    pub opt_out_errors: Vec<String>,
    /// The proxy for requests.
    pub proxy: Option<String>,
    /// The account to which the rate limit and the guard apply: the host, unless the profile names an account.
    pub account: String,
    /// The price of a message by channel, in the account's currency; for SMS, the price of a part.
    pub prices: Vec<(Channel, MessagePrice)>,
    /// The people who must approve large runs.
    pub approval: Option<ApprovalRule>,
    /// The currency of the prices.
    pub currency: Option<String>,
    /// The webhook endpoint.
    pub hook: Option<WebhookSettings>,
    /// Additional opt-out words.
    pub opt_out_words: Vec<String>,
    /// Additional opt-in words.
    pub opt_in_words: Vec<String>,
    /// The gateway's terms for a verified sender name; the contract leaves the set open (contract 2.5).
    pub sender_verified: Vec<String>,
    /// The profile's programs, addresses and sources, without the endpoints.
    pub resources: Vec<Resource>,
}

impl Profile {
    /// The price of a message on this channel (for SMS, per part), if the profile defines one.
    pub fn price_per_message(&self, channel: Channel) -> Option<&MessagePrice> {
        self.prices.iter().find(|(priced, _)| *priced == channel).map(|(_, price)| price)
    }

    /// The maximum number of operations in an envelope: what the gateway accepts or what the rate allows in one second,
    /// whichever is less.
    pub fn max_envelope_size(&self) -> usize {
        let per_second_limit = self.rate.per_second().map_or(usize::MAX, |rate| (rate as usize).max(1));
        per_second_limit.min(self.batch_limit.get() as usize)
    }

    /// Whether all requests stay on this machine.
    pub fn is_loopback(&self) -> bool {
        self.base_url.is_loopback() && self.async_url.as_ref().is_none_or(EndpointUrl::is_loopback)
    }

    /// The hosts of both endpoints, which the ledger compares. Every loopback address is the host [`LOOPBACK`].
    pub fn trusted_hosts(&self) -> String {
        let host = |address: &EndpointUrl| match address.is_loopback() {
            true => LOOPBACK.to_owned(),
            false => address.host_and_port(),
        };
        let base = host(&self.base_url);
        match self.async_url.as_ref().map(host) {
            Some(other) if other != base => format!("{base} and {other}"),
            _ => base,
        }
    }

    /// The hosts of both endpoints for display, or one host if both endpoints have the same.
    pub fn format_hosts(&self) -> String {
        let base = self.base_url.host_and_port();
        match self.async_url.as_ref().map(EndpointUrl::host_and_port) {
            Some(other) if other != base => format!("{base} and {other}"),
            _ => base,
        }
    }
}

/// The URL of an endpoint without its path: `https://`, or `http://` for loopback addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointUrl(Url);

impl EndpointUrl {
    /// Parses a URL.
    ///
    /// # Errors
    /// The problem and its remedy.
    pub fn parse(text: &str) -> Result<Self, (String, &'static str)> {
        const URL_HELP: &str = "write a URL such as `https://gateway.example`";
        if !text.contains("://") {
            return Err((format!("`{text}` does not start with `https://`"), URL_HELP));
        }
        let url = Url::parse(text).map_err(|error| (format!("`{text}` is not a URL: {error}"), URL_HELP))?;
        let reject = |message: &str, help| Err((message.to_owned(), help));
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return reject("the URL does not start with `https://` and a host name", URL_HELP);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return reject("the URL contains a user name or a password", "remove the part before `@`");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return reject("the URL contains a query or a fragment", "remove `?` or `#` and everything after it");
        }
        if ["/api/json.php", "/v1/json"].iter().any(|path| url.path().trim_end_matches('/').ends_with(path)) {
            return reject("the URL includes the endpoint's path", "remove the path; it is added to each request");
        }
        let address = Self(url);
        if address.0.scheme() == "http" && !address.is_loopback() {
            return reject("plain `http` sends the API key unencrypted", "use `https://`");
        }
        Ok(address)
    }

    /// The URL without a trailing slash.
    pub fn as_str(&self) -> &str {
        self.0.as_str().trim_end_matches('/')
    }

    /// The host, followed by the port unless it is the default. The final dot of a fully qualified name is removed.
    pub fn host_and_port(&self) -> String {
        let host = self.0.host_str().unwrap_or_default().trim_end_matches('.');
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Whether the host is this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback_host(self.0.host_str().unwrap_or_default())
    }
}

/// Whether a host is this machine.
pub(crate) fn is_loopback_host(host: &str) -> bool {
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

impl fmt::Display for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The approval rule of a gateway: which runs need an approval, and who can approve them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRule {
    /// Runs with more recipients need an approval.
    pub above: u32,
    /// The people who can approve, each with a public key.
    pub by: Vec<(String, ApproverKey)>,
}

/// The public Ed25519 key (RFC 8032) of a person who can approve runs: `ed25519:` and 43 characters
/// of base64url.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApproverKey([u8; 32]);

impl ApproverKey {
    /// The key from these bytes; `None` if the length is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The bytes of the key.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for ApproverKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl FromStr for ApproverKey {
    type Err = ParseValueError;

    fn from_str(text: &str) -> Result<Self, ParseValueError> {
        let bytes = text.strip_prefix(KEY_PREFIX).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        bytes.and_then(|bytes| Self::from_bytes(&bytes)).ok_or(ParseValueError)
    }
}

/// Reads who must approve large runs. An invalid key is reported, because its owner could never approve a run.
fn read_approval(section: ConfigSection<'_>, report: &mut FindingCollector) -> Option<ApprovalRule> {
    let above = section.parse_value("above")?;
    let by = section.entry("by")?;
    let mut keys = Vec::new();
    let approvers = by.value.as_entries()?;
    for person in approvers {
        let text = person.value.as_scalar()?.text.trim();
        match text.parse() {
            Ok(key) => keys.push((person.key.clone(), key)),
            Err(ParseValueError) => {
                let message = match text.starts_with("ed25519-private:") {
                    true => format!("the value of `{}` is a private key, which only its owner should have", person.key),
                    false => format!("the value of `{}` is not a public key", person.key),
                };
                let help = "write `ed25519:` followed by the 43 characters that `approve --new-key NAME` prints \
                            after it";
                report.add(&person.value.span, Finding::new(&rules::APPROVER_KEY, message).help(help));
            }
        }
    }
    if approvers.is_empty() {
        let finding = Finding::new(&rules::APPROVER_KEY, "`by` lists no approvers, so no run can be approved");
        report.add(
            &by.key_span,
            finding.help("create a key with `approve --new-key NAME` and add the line that it prints"),
        );
    }
    Some(ApprovalRule { above, by: keys })
}

/// The price of a message on a channel; for SMS, the price of a part.
#[derive(Clone, Debug, PartialEq)]
pub struct MessagePrice {
    /// The prices of some countries.
    pub by_country: Vec<(Region, Amount)>,
    /// The price for all other countries, and for numbers of an unknown country.
    pub others: Amount,
}

impl MessagePrice {
    /// The price for a number of this country.
    pub fn for_country(&self, country: Option<Region>) -> Amount {
        let country_price = self.by_country.iter().find(|(priced, _)| Some(*priced) == country);
        country_price.map_or(self.others, |(_, price)| *price)
    }

    /// The highest price of all countries.
    pub fn highest_price(&self) -> Amount {
        self.by_country.iter().map(|(_, price)| *price).fold(self.others, Amount::max)
    }

    /// The price as a profile writes it: `0.80`, or `UA: 0.80, else: 4.00`.
    pub fn format_price(&self) -> String {
        if self.by_country.is_empty() {
            return self.others.to_string();
        }
        let country_prices = self.by_country.iter().map(|(country, price)| format!("{country}: {price}"));
        country_prices.chain([format!("{OTHER_COUNTRIES}: {}", self.others)]).collect::<Vec<_>>().join(", ")
    }
}

/// The prices of a profile.
fn read_prices(section: ConfigSection<'_>) -> Vec<(Channel, MessagePrice)> {
    let read = |channel: Channel| Some((channel, read_price(section.find_value(channel.name())?)?));
    Channel::ALL.into_iter().filter_map(read).collect()
}

/// The price under a key; `None` if it is wrong, which the structure check reports.
fn read_price(value: &Node) -> Option<MessagePrice> {
    let parse_amount = |node: &Node| node.as_scalar()?.text.trim().parse::<Amount>().ok();
    let Some(entries) = value.as_entries() else {
        return Some(MessagePrice { by_country: Vec::new(), others: parse_amount(value)? });
    };
    let mut price =
        MessagePrice { by_country: Vec::new(), others: parse_amount(&value.find_entry(OTHER_COUNTRIES)?.value)? };
    for entry in entries.iter().filter(|entry| entry.key != OTHER_COUNTRIES) {
        price.by_country.push((entry.key.parse().ok()?, parse_amount(&entry.value)?));
    }
    Some(price)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn endpoint_url_is_https_or_loopback() {
        let cases = [
            ("https://gateway.example", "https://gateway.example", "gateway.example", false),
            ("https://gateway.example:8443/", "https://gateway.example:8443", "gateway.example:8443", false),
            ("https://gateway.example/eu/", "https://gateway.example/eu", "gateway.example", false),
            ("http://127.0.0.1:8025", "http://127.0.0.1:8025", "127.0.0.1:8025", true),
            ("http://localhost", "http://localhost", "localhost", true),
            ("http://[::1]:80", "http://[::1]", "[::1]", true),
        ];
        for (text, expected, host, loopback) in cases {
            let address = EndpointUrl::parse(text).unwrap();
            assert_eq!(
                (address.as_str(), address.host_and_port().as_str(), address.is_loopback()),
                (expected, host, loopback)
            );
        }
    }

    #[test]
    fn unsafe_endpoint_urls_are_rejected() {
        let cases = [
            "http://gateway.example",
            "http://127.0.0.1.example",
            "https://user:secret@gateway.example",
            "https://gateway.example?key=1",
            "https://gateway.example/#x",
            "https://gateway.example/api/json.php",
            "ftp://gateway.example",
            "gateway.example",
            "https://",
            "",
        ];
        for text in cases {
            assert!(EndpointUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn approver_key_round_trips_and_other_text_is_rejected() {
        let key = ApproverKey([7; 32]);
        let text = key.to_string();
        assert_eq!((text.len(), text.parse()), (8 + 43, Ok(key)));
        for other in ["", "ed25519:", "ed25519:AAAA", &text[8..], &format!("{text}="), &text.replace("ed25519", "rsa")]
        {
            assert_eq!(other.parse::<ApproverKey>(), Err(ParseValueError), "{other}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text: String) {
            let _ = EndpointUrl::parse(&text);
        }
    }
}
