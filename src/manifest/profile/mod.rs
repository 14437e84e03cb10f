//! Profiles: where a gateway is, which key opens it and what it allows.
//!
//! A profile names the place of its key. The key itself is read by [`KeySource::read`] alone,
//! and no finding shows it, even where somebody wrote it into the file.

mod addition;
mod address;
mod approval;
mod gateways;
mod key_source;
mod load;
mod opt_out_words;
mod policy;
mod search;

use std::num::NonZeroU32;

pub use addition::{NewProfile, append_profile};
pub use address::EndpointUrl;
pub(super) use address::is_loopback_host;
pub use approval::ApprovalRule;
pub use gateways::Gateways;
pub use key_source::SecretSource;
pub use load::load_gateways;
pub(super) use load::{is_environment_name, read_secret_source};
pub use search::GatewaySearch;

use super::{NotifySettings, Rate, Resource, SendingWindow, SuppressionFile};
use crate::domain::{Amount, Channel, FrequencyCap, LOOPBACK};

/// Where a gateway's webhooks are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSettings {
    /// The address of the receiver from outside.
    pub public_url: EndpointUrl,
    /// Where the secrets are kept that addresses are signed with: the first signs, all verify.
    pub secrets: Vec<SecretSource>,
}

/// One gateway's settings.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The profile's name.
    pub name: String,
    /// The address of the synchronous endpoint (contract 4.1).
    pub base_url: EndpointUrl,
    /// The address of the asynchronous endpoint (contract 4.2).
    pub async_url: Option<EndpointUrl>,
    /// Where the API key is kept.
    pub api_key: SecretSource,
    /// The account's allowance.
    pub rate: Rate,
    /// The most operations in an envelope.
    pub batch_limit: NonZeroU32,
    /// The most recipients of a run that was not told to exceed it.
    pub recipients_limit: Option<u32>,
    /// How often a number is written to by all campaigns, whatever a campaign says.
    pub cap: Option<FrequencyCap>,
    /// Whom no campaign through it sends marketing to, besides those whom the ledger knows.
    pub suppress: Vec<SuppressionFile>,
    /// When messages may leave, whatever a campaign says.
    pub window: Option<SendingWindow>,
    /// Who is told, besides whom a campaign names.
    pub notify: Option<NotifySettings>,
    /// HTTP statuses that prove that nothing was executed.
    pub trust_status: Vec<u16>,
    /// Texts of item errors that stop a run.
    pub fatal_errors: Vec<String>,
    /// The proxy that requests go through.
    pub proxy: Option<String>,
    /// The account that rate and guard belong to: the host, unless the profile says otherwise.
    pub account: String,
    /// What a message of a channel costs, an SMS per part, in the account's currency.
    pub prices: Vec<(Channel, Amount)>,
    /// Whose approval a large run needs.
    pub approval: Option<ApprovalRule>,
    /// The currency of the prices.
    pub currency: Option<String>,
    /// Where webhooks are taken.
    pub hook: Option<WebhookSettings>,
    /// The words by which its recipients opt out, besides those that everybody knows.
    pub opt_out_words: Vec<String>,
    /// The gateway's words for a sender name that is verified; the contract leaves the set open (contract 2.5).
    pub sender_verified: Vec<String>,
    /// Its programs, addresses and sources besides the endpoints.
    pub resources: Vec<Resource>,
}

impl Profile {
    /// What a message of this channel costs, an SMS per part; nothing where the profile does not say.
    #[must_use]
    pub fn price_per_message(&self, channel: Channel) -> Option<Amount> {
        self.prices.iter().find(|(priced, _)| *priced == channel).map(|(_, price)| *price)
    }

    /// The most operations of an envelope to it: no more than it takes, and no more than a second of its rate.
    #[must_use]
    pub fn max_envelope_size(&self) -> usize {
        let second = self.rate.per_second().map_or(usize::MAX, |rate| (rate as usize).max(1));
        second.min(self.batch_limit.get() as usize)
    }

    /// Whether nothing of it leaves this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let local = |address: &EndpointUrl| address.is_loopback();
        local(&self.base_url) && self.async_url.as_ref().is_none_or(local)
    }

    /// The hosts that the ledger compares: those of both endpoints. Every loopback address is the host [`LOOPBACK`].
    #[must_use]
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

    /// Where the key and the messages go: the hosts of both endpoints, one word if they are the same.
    #[must_use]
    pub fn format_hosts(&self) -> String {
        let base = self.base_url.host_and_port();
        match self.async_url.as_ref().map(EndpointUrl::host_and_port) {
            Some(other) if other != base => format!("{base} and {other}"),
            _ => base,
        }
    }
}
