//! Effective settings of a campaign and where each value comes from.

use serde_json::Value;

use super::campaign::Campaign;
use super::keys::{CAMPAIGN, CHANNELS, KeySpec, ValueShape, parse_channel_item};
use super::profile::Profile;
use super::value::Rate;
use super::yaml::{Node, node_to_json};
use campaign_core::domain::CountrySet;
use campaign_core::finding::SourceLocation;

/// The maps whose defaults apply if they are missing.
const DEFAULT_MAPS: [&str; 2] = ["delivery", "delivery.stop_after"];

/// A setting in effect.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The path of the key, such as `delivery.rate`.
    pub key: String,
    /// The value, with its YAML type.
    pub value: Value,
    /// The origin of the value.
    pub origin: SettingOrigin,
}

/// The origin of a value.
#[derive(Clone, Debug)]
pub enum SettingOrigin {
    /// Written in the file.
    Written(SourceLocation),
    /// The default, because the file does not define the key.
    Default,
    /// Derived from something else, which this text names.
    Follows(&'static str),
    /// Defined by the gateway profile.
    Profile(String),
    /// Given on the command line.
    CommandLine,
}

/// The effective settings of a campaign with a profile, in the order in which the keys are documented.
///
/// `is_gateway_given` means that the gateway was given on the command line. For a secret, the value is the place where
/// the secret is stored.
pub fn list_settings(campaign: &Campaign, profile: Option<&Profile>, is_gateway_given: bool) -> Vec<Setting> {
    let mut collector = SettingsCollector { campaign, settings: Vec::new() };
    collector.collect_map(CAMPAIGN, Some(campaign.places.root_node()), "");
    if let Some(profile) = profile {
        collector.apply_profile(profile);
    }
    if is_gateway_given {
        collector.put_setting("gateway", campaign.brief.gateway.as_str().into(), SettingOrigin::CommandLine);
    }
    collector.settings
}

struct SettingsCollector<'c> {
    campaign: &'c Campaign,
    settings: Vec<Setting>,
}

impl SettingsCollector<'_> {
    /// Collects the settings of a map. If the map is missing, only the defaults are collected.
    fn collect_map(&mut self, keys: &'static [KeySpec], node: Option<&Node>, prefix: &str) {
        for key in keys {
            let path = if prefix.is_empty() { key.name.to_owned() } else { format!("{prefix}.{}", key.name) };
            let value = node
                .and_then(|node| node.find_entry(key.name))
                .map(|entry| &entry.value)
                .filter(|node| !node.is_null());
            match (key.shape, value) {
                (ValueShape::Map(keys), Some(node)) if node.as_entries().is_some() => {
                    self.collect_map(keys, Some(node), &path)
                }
                (ValueShape::Map(keys), None) if DEFAULT_MAPS.contains(&path.as_str()) => {
                    self.collect_map(keys, None, &path)
                }
                (ValueShape::Channels, Some(node)) => self.collect_channels(node.as_items().unwrap_or_default()),
                (_, Some(node)) => self.push_written(path, node_to_json(node)),
                (_, None) => self.push_default(key, path),
            }
        }
    }

    fn collect_channels(&mut self, items: &[Node]) {
        for (index, item) in items.iter().enumerate() {
            let Some(channel_item) = parse_channel_item(item) else { continue };
            let name = channel_item.channel.name();
            let Some(ValueShape::Map(keys)) = CHANNELS.iter().find(|key| key.name == name).map(|key| key.shape) else {
                continue;
            };
            self.collect_map(keys, channel_item.keys, &format!("channels[{index}].{name}"));
        }
        let kind = self.campaign.brief.content.kind.name().into();
        self.put_setting("operation", kind, SettingOrigin::Follows("the channels"));
    }

    fn push_written(&mut self, path: String, value: Value) {
        let place = self.campaign.places.locate_key(&path);
        let origin = place.map_or(SettingOrigin::Default, SettingOrigin::Written);
        self.put_setting(&path, value, origin);
    }

    /// Adds the default value of a missing key, if the key has one.
    fn push_default(&mut self, key: &KeySpec, path: String) {
        let Campaign { brief, results, .. } = self.campaign;
        let (value, origin) = match path.as_str() {
            "name" => (brief.name.as_str().into(), SettingOrigin::Follows("the name of the file")),
            "purpose" => (brief.purpose.name().into(), SettingOrigin::Follows("the channels")),
            "language" if brief.region.is_some() => {
                (brief.text_language().code().into(), SettingOrigin::Follows("the region"))
            }
            "language" => (brief.text_language().code().into(), SettingOrigin::Default),
            "results" => (results.display().to_string().into(), SettingOrigin::Follows("the campaign's name")),
            _ => match key.default {
                Some(default) => (parse_default(default), SettingOrigin::Default),
                None => return,
            },
        };
        self.put_setting(&path, value, origin);
    }

    /// Adds the settings of the profile, and replaces the campaign's rate and batch size if the profile is stricter.
    fn apply_profile(&mut self, profile: &Profile) {
        let origin = || SettingOrigin::Profile(profile.name.clone());
        let delivery = &self.campaign.delivery;
        let has_lower_rate = delivery.rate.is_none_or(|rate| rate > profile.rate);
        let has_lower_batch = delivery.batch > profile.batch_limit;
        let mut add = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                self.put_setting(key, value, origin());
            }
        };
        add("delivery.rate", has_lower_rate.then(|| rate_value(profile.rate)));
        add("delivery.batch", has_lower_batch.then(|| profile.batch_limit.get().into()));
        add("profile.base_url", Some(profile.base_url.to_string().into()));
        add("profile.async_url", profile.async_url.as_ref().map(|url| url.to_string().into()));
        add("profile.account", Some(profile.account.as_str().into()));
        add("profile.rate", Some(rate_value(profile.rate)));
        add("profile.batch_limit", Some(profile.batch_limit.get().into()));
        add("profile.limits.recipients", profile.recipients_limit.map(Into::into));
        add("profile.limits.abroad", profile.abroad_limit.map(Into::into));
        add("profile.home", profile.home.as_ref().map(list_codes));
        add("profile.policy.cap", profile.cap.map(|cap| cap.to_string().into()));
        add("profile.policy.consent", profile.requires_consent.then(|| "required".into()));
        add("profile.policy.window", profile.window.as_ref().map(|window| window.to_string().into()));
        add("profile.policy.mandatory", profile.forbids_mandatory.then(|| "never".into()));
        add("profile.policy.countries", profile.countries.as_ref().map(list_codes));
        add("profile.approval.above", profile.approval.as_ref().map(|rule| rule.above.into()));
        for (channel, price) in &profile.prices {
            add(&format!("profile.prices.{channel}"), Some(price.format_price().into()));
        }
        add("profile.currency", profile.currency.as_deref().map(Into::into));
    }

    /// Adds a setting, or replaces an existing setting with the same key. A written setting is never replaced by a
    /// derived one.
    fn put_setting(&mut self, key: &str, value: Value, origin: SettingOrigin) {
        let setting = Setting { key: key.to_owned(), value, origin };
        let Some(existing) = self.settings.iter_mut().find(|existing| existing.key == key) else {
            return self.settings.push(setting);
        };
        let is_written = matches!(existing.origin, SettingOrigin::Written(_));
        let is_derived = matches!(setting.origin, SettingOrigin::Follows(_));
        if !(is_written && is_derived) {
            *existing = setting;
        }
    }
}

/// The codes of countries.
fn list_codes(countries: &CountrySet) -> Value {
    countries.countries().iter().map(|country| Value::from(country.to_string())).collect()
}

fn rate_value(rate: Rate) -> Value {
    rate.to_string().into()
}

/// Converts a default to a JSON value.
fn parse_default(text: &str) -> Value {
    match text.parse::<u64>() {
        Ok(number) => number.into(),
        Err(_) if matches!(text, "true" | "false") => (text == "true").into(),
        Err(_) => text.into(),
    }
}
