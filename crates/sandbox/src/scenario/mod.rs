//! Scenarios: accounts, prices, delivery behaviour and faults of a sandbox, and reading them from a file.
//!
//! A scenario is plain data, valid by construction. It has no clock, and decides only whether a condition applies;
//! `faults` and `platform` read the scenario and act on it. Random choices depend only on the seed and on the decision
//! to be made, so a scenario always gives the same results.

mod behaviour;
mod fault;
mod keys;

pub use behaviour::{Behaviour, Behaviours, Exception, ReadBehaviour, ReplyBehaviour};
pub use fault::{Blindness, FaultEffect, ScenarioCondition, ScenarioFault, WebhookFault};
pub(crate) use fault::{EnvelopeFacts, MessageFacts, RandomDraw};

use std::fmt;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use crate::server::webhook_client::is_loopback_host;
use campaign_core::domain::{Amount, Channel};
use campaign_core::finding::{Finding, SourceText, rules};
use campaign_manifest::document::{self, ConfigSection, FileKind, FindingCollector, LoadedFile, Node, Seconds};
use campaign_manifest::{CampaignPath, KeyPlace, Rate};
use keys::{ACCOUNT, PRICES, SCENARIO, WEBHOOKS};

/// The behaviour of a sandbox.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The seed of random draws.
    pub seed: u64,
    /// The number of seconds of virtual time that pass in one real second.
    pub speed: u32,
    /// The accounts, at least one; the first without a key uses the server's key.
    pub accounts: Vec<AccountSettings>,
    /// The rate limit of each account; `None` for no limit.
    pub limit: Option<OperationLimit>,
    /// The price of a part, per channel.
    pub prices: PartPrices,
    /// Whether undelivered messages are charged for the last channel that was tried.
    pub charge_undelivered: bool,
    /// The behaviour, per channel.
    pub behaviours: Behaviours,
    /// Exceptions; the first that applies to a message and channel counts.
    pub exceptions: Vec<Exception>,
    /// The faults, in the order of the file.
    pub faults: Vec<ScenarioFault>,
    /// The time for which an accepted message remains unknown to `status`.
    pub status_lag: Duration,
    /// A wrong answer to `status`, if any.
    pub status_blind: Option<Blindness>,
    /// When webhooks are sent again, and which statuses they report.
    pub webhooks: WebhookBehaviour,
    /// The duration of each step in the review of a Viber template.
    pub template_review: Duration,
    /// Whether Viber templates end as `approved`; otherwise as `rejected`.
    pub templates_approved: bool,
}

/// An account of the gateway. Its key is never logged.
#[derive(Clone, PartialEq)]
pub struct AccountSettings {
    /// The API key; `None` for the account that uses the server's key.
    pub key: Option<String>,
    /// The initial balance.
    pub balance: Amount,
    /// The currency code.
    pub currency: String,
    /// The notification address, for statuses that are not sent to a `hook` (contract 6.4).
    pub notify: Option<String>,
    /// Whether the account has a WhatsApp route.
    pub whatsapp: bool,
    /// The sender names with their statuses; `None` if every well-formed name is valid.
    pub senders: Option<Vec<(String, SenderStatus)>>,
}

/// The status of a sender name at the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderStatus {
    /// Not verified yet, so the name cannot be used.
    New,
    /// Verified.
    Checked,
}

impl SenderStatus {
    /// The name of the status in the gateway's answers.
    pub fn name(self) -> &'static str {
        match self {
            SenderStatus::New => "New",
            SenderStatus::Checked => "Checked",
        }
    }
}

/// A rate limit for operations, in virtual time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperationLimit {
    /// Operations per second; positive and finite.
    pub rate: f64,
    /// The number of operations at once after a pause.
    pub burst: NonZeroU32,
}

/// The price of one part, per channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartPrices([Amount; Channel::ALL.len()]);

impl PartPrices {
    /// The price of a part on a channel.
    pub fn for_channel(&self, channel: Channel) -> Amount {
        self.0[channel as usize]
    }

    /// Sets the price of a part on a channel.
    pub fn set(&mut self, channel: Channel, price: Amount) {
        self.0[channel as usize] = price;
    }
}

/// The retries of webhooks, and the statuses that they report.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookBehaviour {
    /// The waits before retries of a webhook that did not get 200.
    pub retry: Vec<Duration>,
    /// Whether an asynchronous `pipeline` sends all final statuses to its `hook`, and not just rejections.
    pub async_pipeline: bool,
    /// Whether a webhook also reports the failure of each earlier channel.
    pub intermediate: bool,
}

impl fmt::Debug for AccountSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountSettings")
            .field("key", &self.key.as_ref().map(|_| "…"))
            .field("balance", &self.balance)
            .field("currency", &self.currency)
            .field("whatsapp", &self.whatsapp)
            .field("senders", &self.senders)
            .finish_non_exhaustive()
    }
}

const SCENARIO_FILE: FileKind = FileKind { file: "the scenario file", owner: "the scenario", keys: SCENARIO };

/// Reads a scenario file. Problems become findings with a location in the file.
pub fn load_scenario(path: &Path) -> LoadedFile<Scenario> {
    load_scenario_within(&CampaignPath::anywhere(path))
}

/// Reads a scenario file within the scope of its path.
pub fn load_scenario_within(path: &CampaignPath) -> LoadedFile<Scenario> {
    let loaded = document::load_file(path, SCENARIO_FILE, |root, report| {
        Some(read_scenario(ConfigSection::new(Some(&root), SCENARIO), report))
    });
    match loaded.findings.as_slice() {
        // Every key is optional, so an empty file is the default scenario.
        [only] if *only.rule == rules::FILE_EMPTY => LoadedFile::new(Some(Scenario::default()), Vec::new()),
        _ => loaded,
    }
}

/// The place of a scenario file's top-level keys.
pub fn top_of_scenario() -> KeyPlace {
    KeyPlace::top_of(SCENARIO)
}

/// The JSON Schema (draft 2020-12) of a scenario file.
pub fn scenario_schema() -> serde_json::Value {
    let mut schema = document::build_schema("A sandbox scenario", SCENARIO);
    // Every key is optional, so an empty file is the default scenario.
    schema["type"] = serde_json::json!(["object", "null"]);
    schema
}

impl Default for Scenario {
    /// The scenario of an empty file. The defaults are in the table of keys.
    fn default() -> Self {
        read_scenario(
            ConfigSection::new(None, SCENARIO),
            &mut FindingCollector::with_root(&SourceText::new("", ""), SCENARIO),
        )
    }
}

impl Default for AccountSettings {
    fn default() -> Self {
        read_account(ConfigSection::new(None, ACCOUNT))
    }
}

impl Default for PartPrices {
    fn default() -> Self {
        read_prices(ConfigSection::new(None, PRICES))
    }
}

impl Default for WebhookBehaviour {
    fn default() -> Self {
        read_webhooks(ConfigSection::new(None, WEBHOOKS))
    }
}

/// Reads a scenario. Invalid values are reported and ignored.
fn read_scenario(root: ConfigSection<'_>, report: &mut FindingCollector) -> Scenario {
    let behaviours = behaviour::read_behaviours(root.subsection("channels"), report);
    let (status, templates) = (root.subsection("status"), root.subsection("templates"));
    Scenario {
        seed: root.parse_value("seed").unwrap_or_default(),
        speed: root.parse_value("speed").unwrap_or(1),
        accounts: read_accounts(root, report),
        limit: read_limit(root.subsection("limits")),
        prices: read_prices(root.subsection("prices")),
        charge_undelivered: root.parse_value("charge_undelivered").unwrap_or_default(),
        exceptions: behaviour::read_exceptions(list_items(root, "exceptions"), &behaviours, report),
        behaviours,
        faults: fault::read_faults(list_items(root, "faults"), report),
        status_lag: read_duration(status, "lag").unwrap_or_default(),
        status_blind: status.text("blind").and_then(|word| match word {
            "denies" => Some(Blindness::Denies),
            "affirms" => Some(Blindness::Affirms),
            _ => None,
        }),
        webhooks: read_webhooks(root.subsection("webhooks")),
        template_review: read_duration(templates, "review").unwrap_or_default(),
        templates_approved: templates.parse_value("approved").unwrap_or_default(),
    }
}

/// Reads the duration under a key. Returns `None` if the key is missing or the duration is invalid.
pub(super) fn read_duration(section: ConfigSection<'_>, key: &str) -> Option<Duration> {
    section.parse_value::<Seconds>(key).map(Duration::from)
}

/// The items of a list; empty if the key is missing or not a list.
fn list_items<'n>(section: ConfigSection<'n>, key: &str) -> &'n [Node] {
    section.find_value(key).and_then(Node::as_items).unwrap_or_default()
}

fn read_accounts(root: ConfigSection<'_>, report: &mut FindingCollector) -> Vec<AccountSettings> {
    let mut accounts: Vec<AccountSettings> = Vec::new();
    for node in list_items(root, "accounts") {
        let section = ConfigSection::new(Some(node), ACCOUNT);
        if let Some((address, span)) = section.typed_text("notify")
            && let Some(finding) = notify_finding(address)
        {
            report.add(span, finding);
        }
        let account = AccountSettings { senders: read_senders(section, report), ..read_account(section) };
        if accounts.iter().any(|other| other.key == account.key) {
            let message = match account.key {
                Some(_) => "two accounts have this key",
                None => "two accounts have no key",
            };
            let span = section.typed_text("key").map_or(&node.span, |(_, span)| span);
            report.add(span, Finding::new(&rules::ACCOUNT_KEY, message).help("give each account a different `key`"));
        }
        accounts.push(account);
    }
    if accounts.is_empty() { vec![AccountSettings::default()] } else { accounts }
}

fn read_account(section: ConfigSection<'_>) -> AccountSettings {
    let text = |key| section.text(key).map(str::to_owned);
    AccountSettings {
        key: text("key"),
        balance: section.parse_value("balance").unwrap_or_default(),
        currency: text("currency").unwrap_or_default(),
        notify: text("notify"),
        whatsapp: section.parse_value("whatsapp").unwrap_or_default(),
        senders: None,
    }
}

impl Scenario {
    /// Sets the first account's notification address, for statuses that are not sent to a `hook` (contract 6.4).
    ///
    /// # Errors
    /// The address is not a web address.
    pub fn set_notify_address(&mut self, address: String) -> Result<(), Finding> {
        if let Some(finding) = notify_finding(&address).filter(Finding::is_error) {
            return Err(finding);
        }
        if let Some(first) = self.accounts.first_mut() {
            first.notify = Some(address);
        }
        Ok(())
    }
}

/// Returns a finding if a notification address is invalid or not on this machine.
fn notify_finding(address: &str) -> Option<Finding> {
    let url = reqwest::Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    match url.as_ref().and_then(reqwest::Url::host_str) {
        None => {
            let finding = Finding::new(&rules::ADDRESS, format!("`{address}` is not a URL"));
            Some(finding.help("write, for example, `http://127.0.0.1:9000/status`"))
        }
        Some(host) if is_loopback_host(host) => None,
        Some(host) => {
            let finding = Finding::new(&rules::NOTIFY_ELSEWHERE, format!("`{host}` is not on this machine"));
            Some(finding.help("use `campaign sandbox --any-hook` to send webhooks to other machines"))
        }
    }
}

fn read_senders(section: ConfigSection<'_>, report: &mut FindingCollector) -> Option<Vec<(String, SenderStatus)>> {
    let mut senders = Vec::new();
    for entry in section.find_value("senders")?.as_entries()? {
        let Some(scalar) = entry.value.as_scalar() else { continue };
        let status = match scalar.text.as_str() {
            "Checked" => SenderStatus::Checked,
            "New" => SenderStatus::New,
            other => {
                let finding =
                    Finding::new(&rules::UNKNOWN_VALUE, format!("`{other}` is not a valid status for a sender name"));
                report.add(&entry.value.span, finding.help("write `Checked` or `New`"));
                continue;
            }
        };
        senders.push((entry.key.clone(), status));
    }
    Some(senders)
}

/// Reads the rate limit of the accounts. Returns `None` for `unlimited` or an invalid value.
fn read_limit(section: ConfigSection<'_>) -> Option<OperationLimit> {
    let rate = section.parse_value::<Rate>("rate")?.per_second()?;
    Some(OperationLimit { rate, burst: section.parse_value("burst")? })
}

fn read_prices(section: ConfigSection<'_>) -> PartPrices {
    let price = |channel: Channel| section.parse_value(channel.name()).unwrap_or_default();
    let mut prices = PartPrices([Amount::default(); Channel::ALL.len()]);
    Channel::ALL.into_iter().for_each(|channel| prices.set(channel, price(channel)));
    prices
}

fn read_webhooks(section: ConfigSection<'_>) -> WebhookBehaviour {
    let waits = section.list_items("retry").into_iter().filter_map(|wait| wait.parse::<Seconds>().ok());
    WebhookBehaviour {
        retry: waits.map(Duration::from).collect(),
        async_pipeline: section.parse_value("async_pipeline").unwrap_or_default(),
        intermediate: section.parse_value("intermediate").unwrap_or_default(),
    }
}
