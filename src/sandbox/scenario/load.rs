//! A scenario file becomes a [`Scenario`].

use std::path::Path;
use std::time::Duration;

use super::channels::PRICES;
use super::keys::{ACCOUNT, SCENARIO, WEBHOOKS};
use super::{
    AccountSettings, Blindness, OperationLimit, PartPrices, Scenario, SenderStatus, WebhookBehaviour, behaviour, fault,
};
use crate::domain::{Amount, Channel};
use crate::finding::{Finding, SourceText, rules};
use crate::manifest::Rate;
use crate::manifest::document::{self, ConfigSection, FileKind, FindingCollector, LoadedFile, Node, Seconds};
use crate::sandbox::doors::names::is_loopback_host;

const SCENARIO_FILE: FileKind = FileKind { file: "the scenario file", owner: "the scenario", keys: SCENARIO };

/// Reads a scenario file; every problem that it shows is a finding with its place.
#[must_use]
pub fn load_scenario(path: &Path) -> LoadedFile<Scenario> {
    let loaded = document::load_file(path, SCENARIO_FILE, |root, report| {
        Some(read_scenario(ConfigSection::new(Some(&root), SCENARIO), report))
    });
    match loaded.findings.as_slice() {
        // Every key is optional, so that an empty file is the usual scenario.
        [only] if *only.rule == rules::FILE_EMPTY => LoadedFile::new(Some(Scenario::default()), Vec::new()),
        _ => loaded,
    }
}

/// The JSON Schema (draft 2020-12) of a scenario file.
#[must_use]
pub fn scenario_schema() -> serde_json::Value {
    let mut schema = document::build_schema("A sandbox scenario", SCENARIO);
    // Every key is optional, so that an empty file is the usual scenario.
    schema["type"] = serde_json::json!(["object", "null"]);
    schema
}

impl Default for Scenario {
    /// What a file says that is silent: the defaults stand in the table of the keys.
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

/// The scenario that a file describes; what is wrong with it is told and left out.
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

/// A time under a key.
pub(super) fn read_duration(section: ConfigSection<'_>, key: &str) -> Option<Duration> {
    section.parse_value::<Seconds>(key).map(|seconds| Duration::from_secs(seconds.0.into()))
}

/// The items of a list under a key; none where it is missing or no list.
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
    /// Has the first account tell this address of statuses that no `hook` keeps (contract 6.4).
    ///
    /// # Errors
    /// If it is no web address.
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

/// What speaks against an address for statuses.
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

/// What each account may send; `unlimited` is no limit.
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
        retry: waits.map(|seconds| Duration::from_secs(seconds.0.into())).collect(),
        async_pipeline: section.parse_value("async_pipeline").unwrap_or_default(),
        intermediate: section.parse_value("intermediate").unwrap_or_default(),
    }
}
