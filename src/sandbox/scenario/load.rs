//! A scenario file becomes a [`Scenario`].

use std::path::Path;
use std::time::Duration;

use super::channels::PRICES;
use super::keys::{ACCOUNT, SCENARIO, WEBHOOKS};
use super::{AccountSettings, Blindness, Limit, Prices, Scenario, SenderStatus, Webhooks, behaviour, fault};
use crate::domain::{Amount, Channel};
use crate::finding::{Finding, Source, rules};
use crate::manifest::Rate;
use crate::manifest::document::{self, FileKind, LoadedFile, Node, Report, Seconds, Section};
use crate::sandbox::doors::names::is_loopback;

const SCENARIO_FILE: FileKind = FileKind { file: "the scenario file", owner: "the scenario", keys: SCENARIO };

/// Reads a scenario file; every problem that it shows is a finding with its place.
#[must_use]
pub fn load_scenario(path: &Path) -> LoadedFile<Scenario> {
    let loaded =
        document::load(path, SCENARIO_FILE, |root, report| Some(scenario(Section::new(Some(&root), SCENARIO), report)));
    match loaded.findings.as_slice() {
        // Every key is optional, so that an empty file is the usual scenario.
        [only] if *only.rule == rules::FILE_EMPTY => LoadedFile::new(Some(Scenario::default()), Vec::new()),
        _ => loaded,
    }
}

/// The JSON Schema (draft 2020-12) of a scenario file.
#[must_use]
pub fn schema() -> serde_json::Value {
    let mut schema = document::schema_of("A sandbox scenario", SCENARIO);
    // Every key is optional, so that an empty file is the usual scenario.
    schema["type"] = serde_json::json!(["object", "null"]);
    schema
}

impl Default for Scenario {
    /// What a file says that is silent: the defaults stand in the table of the keys.
    fn default() -> Self {
        scenario(Section::new(None, SCENARIO), &mut Report::of(&Source::new("", ""), SCENARIO))
    }
}

impl Default for AccountSettings {
    fn default() -> Self {
        account(Section::new(None, ACCOUNT))
    }
}

impl Default for Prices {
    fn default() -> Self {
        prices(Section::new(None, PRICES))
    }
}

impl Default for Webhooks {
    fn default() -> Self {
        webhooks(Section::new(None, WEBHOOKS))
    }
}

/// The scenario that a file describes; what is wrong with it is told and left out.
fn scenario(root: Section<'_>, report: &mut Report) -> Scenario {
    let behaviours = behaviour::behaviours(root.section("channels"), report);
    let (status, templates) = (root.section("status"), root.section("templates"));
    Scenario {
        seed: root.parsed("seed").unwrap_or_default(),
        speed: root.parsed("speed").unwrap_or(1),
        accounts: accounts(root, report),
        limit: limit(root.section("limits")),
        prices: prices(root.section("prices")),
        charge_undelivered: root.parsed("charge_undelivered").unwrap_or_default(),
        exceptions: behaviour::exceptions(items(root, "exceptions"), &behaviours, report),
        behaviours,
        faults: fault::faults(items(root, "faults"), report),
        status_lag: seconds(status, "lag").unwrap_or_default(),
        status_blind: status.text("blind").and_then(|word| match word {
            "denies" => Some(Blindness::Denies),
            "affirms" => Some(Blindness::Affirms),
            _ => None,
        }),
        webhooks: webhooks(root.section("webhooks")),
        template_review: seconds(templates, "review").unwrap_or_default(),
        templates_approved: templates.parsed("approved").unwrap_or_default(),
    }
}

/// A time under a key.
pub(super) fn seconds(section: Section<'_>, key: &str) -> Option<Duration> {
    section.parsed::<Seconds>(key).map(|seconds| Duration::from_secs(seconds.0.into()))
}

/// The items of a list under a key; none where it is missing or no list.
fn items<'n>(section: Section<'n>, key: &str) -> &'n [Node] {
    section.value(key).and_then(Node::items).unwrap_or_default()
}

fn accounts(root: Section<'_>, report: &mut Report) -> Vec<AccountSettings> {
    let mut accounts: Vec<AccountSettings> = Vec::new();
    for node in items(root, "accounts") {
        let section = Section::new(Some(node), ACCOUNT);
        if let Some((address, span)) = section.typed("notify")
            && let Some(finding) = against_notify(address)
        {
            report.at(span, finding);
        }
        let account = AccountSettings { senders: senders(section, report), ..account(section) };
        if accounts.iter().any(|other| other.key == account.key) {
            let message = match account.key {
                Some(_) => "two accounts have this key",
                None => "two accounts have no key",
            };
            let span = section.typed("key").map_or(&node.span, |(_, span)| span);
            report.at(span, Finding::new(&rules::ACCOUNT_KEY, message).help("give each account a different `key`"));
        }
        accounts.push(account);
    }
    if accounts.is_empty() { vec![AccountSettings::default()] } else { accounts }
}

fn account(section: Section<'_>) -> AccountSettings {
    let text = |key| section.text(key).map(str::to_owned);
    AccountSettings {
        key: text("key"),
        balance: section.parsed("balance").unwrap_or_default(),
        currency: text("currency").unwrap_or_default(),
        notify: text("notify"),
        whatsapp: section.parsed("whatsapp").unwrap_or_default(),
        senders: None,
    }
}

impl Scenario {
    /// Has the first account tell this address of statuses that no `hook` keeps (contract 6.4).
    ///
    /// # Errors
    /// If it is no web address.
    pub fn notify(&mut self, address: String) -> Result<(), Finding> {
        if let Some(finding) = against_notify(&address).filter(Finding::is_error) {
            return Err(finding);
        }
        if let Some(first) = self.accounts.first_mut() {
            first.notify = Some(address);
        }
        Ok(())
    }
}

/// What speaks against an address for statuses.
fn against_notify(address: &str) -> Option<Finding> {
    let url = reqwest::Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    match url.as_ref().and_then(reqwest::Url::host_str) {
        None => {
            let finding = Finding::new(&rules::ADDRESS, format!("`{address}` is not a URL"));
            Some(finding.help("write, for example, `http://127.0.0.1:9000/status`"))
        }
        Some(host) if is_loopback(host) => None,
        Some(host) => {
            let finding = Finding::new(&rules::NOTIFY_ELSEWHERE, format!("`{host}` is not on this machine"));
            Some(finding.help("use `campaign sandbox --any-hook` to send webhooks to other machines"))
        }
    }
}

fn senders(section: Section<'_>, report: &mut Report) -> Option<Vec<(String, SenderStatus)>> {
    let mut senders = Vec::new();
    for entry in section.value("senders")?.entries()? {
        let Some(scalar) = entry.value.scalar() else { continue };
        let status = match scalar.text.as_str() {
            "Checked" => SenderStatus::Checked,
            "New" => SenderStatus::New,
            other => {
                let finding =
                    Finding::new(&rules::UNKNOWN_VALUE, format!("`{other}` is not a valid status for a sender name"));
                report.at(&entry.value.span, finding.help("write `Checked` or `New`"));
                continue;
            }
        };
        senders.push((entry.key.clone(), status));
    }
    Some(senders)
}

/// What each account may send; `unlimited` is no limit.
fn limit(section: Section<'_>) -> Option<Limit> {
    let rate = section.parsed::<Rate>("rate")?.per_second()?;
    Some(Limit { rate, burst: section.parsed("burst")? })
}

fn prices(section: Section<'_>) -> Prices {
    let price = |channel: Channel| section.parsed(channel.name()).unwrap_or_default();
    let mut prices = Prices([Amount::default(); Channel::ALL.len()]);
    Channel::ALL.into_iter().for_each(|channel| prices.set(channel, price(channel)));
    prices
}

fn webhooks(section: Section<'_>) -> Webhooks {
    let waits = section.items("retry").into_iter().filter_map(|wait| wait.parse::<Seconds>().ok());
    Webhooks {
        retry: waits.map(|seconds| Duration::from_secs(seconds.0.into())).collect(),
        async_pipeline: section.parsed("async_pipeline").unwrap_or_default(),
        intermediate: section.parsed("intermediate").unwrap_or_default(),
    }
}
