//! Every value that a campaign is sent with, and where it comes from.

use serde_json::Value;

use super::campaign::Campaign;
use super::keys::{CAMPAIGN, CHANNELS, Key, Shape, channel_item};
use super::profile::Profile;
use super::value::Rate;
use super::yaml::{Node, core_json};
use crate::finding::Place;

/// The maps whose defaults hold where nobody wrote them.
const HOLD_UNWRITTEN: [&str; 2] = ["delivery", "delivery.stop_after"];

/// A value that is in force.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its key with the keys above it, such as `delivery.rate`.
    pub key: String,
    /// The value, with the type that YAML gives it.
    pub value: Value,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a value comes from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// It was written.
    Written(Place),
    /// It holds where nobody wrote another one.
    Default,
    /// It follows from something else, which these words name.
    Follows(&'static str),
    /// The gateway's profile says it.
    Profile(String),
    /// It was named on the command line.
    CommandLine,
}

/// The values that a campaign is sent with through a profile, in the order of their documentation.
///
/// `named` tells whether the gateway was named besides the campaign. Secrets are the places where they are kept.
#[must_use]
pub fn settings(campaign: &Campaign, profile: Option<&Profile>, named: bool) -> Vec<Setting> {
    let mut settings = Settings { campaign, found: Vec::new() };
    settings.map(CAMPAIGN, Some(campaign.places.root()), "");
    if let Some(profile) = profile {
        settings.of_profile(profile);
    }
    if named {
        settings.put("gateway", campaign.brief.gateway.as_str().into(), Origin::CommandLine);
    }
    settings.found
}

struct Settings<'c> {
    campaign: &'c Campaign,
    found: Vec<Setting>,
}

impl Settings<'_> {
    /// The keys of a map, which may not be there.
    fn map(&mut self, keys: &'static [Key], node: Option<&Node>, above: &str) {
        for key in keys {
            let path = if above.is_empty() { key.name.to_owned() } else { format!("{above}.{}", key.name) };
            let value =
                node.and_then(|node| node.get(key.name)).map(|entry| &entry.value).filter(|node| !node.is_null());
            match (key.shape, value) {
                (Shape::Map(keys), Some(node)) if node.entries().is_some() => self.map(keys, Some(node), &path),
                (Shape::Map(keys), None) if HOLD_UNWRITTEN.contains(&path.as_str()) => self.map(keys, None, &path),
                (Shape::Channels, Some(node)) => self.channels(node.items().unwrap_or_default()),
                (_, Some(node)) => self.written(path, core_json(node)),
                (_, None) => self.unwritten(key, path),
            }
        }
    }

    fn channels(&mut self, items: &[Node]) {
        for (index, item) in items.iter().enumerate() {
            let Some(found) = channel_item(item) else { continue };
            let name = found.channel.name();
            let Some(Shape::Map(keys)) = CHANNELS.iter().find(|key| key.name == name).map(|key| key.shape) else {
                continue;
            };
            self.map(keys, found.keys, &format!("channels[{index}].{name}"));
        }
        let kind = self.campaign.brief.content.kind.name().into();
        self.put("operation", kind, Origin::Follows("the channels"));
    }

    fn written(&mut self, path: String, value: Value) {
        let place = self.campaign.places.of_key(&path);
        let origin = place.map_or(Origin::Default, Origin::Written);
        self.put(&path, value, origin);
    }

    /// A value that nobody wrote, if there is one all the same.
    fn unwritten(&mut self, key: &Key, path: String) {
        let Campaign { brief, results, .. } = self.campaign;
        let (value, origin) = match path.as_str() {
            "the file name" => (brief.name.as_str().into(), Origin::Follows("the name of the file")),
            "purpose" => (brief.purpose.name().into(), Origin::Follows("the channels")),
            "language" if brief.region.is_some() => (brief.language().code().into(), Origin::Follows("the region")),
            "language" => (brief.language().code().into(), Origin::Default),
            "results" => (results.display().to_string().into(), Origin::Follows("the campaign's name")),
            _ => match key.default {
                Some(default) => (plain(default), Origin::Default),
                None => return,
            },
        };
        self.put(&path, value, origin);
    }

    /// What the profile adds, and where it is stricter.
    fn of_profile(&mut self, profile: &Profile) {
        let from = || Origin::Profile(profile.name.clone());
        let asked = &self.campaign.delivery;
        let lower_rate = asked.rate.is_none_or(|rate| rate > profile.rate);
        let lower_batch = asked.batch > profile.batch_limit;
        let mut add = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                self.put(key, value, from());
            }
        };
        add("delivery.rate", lower_rate.then(|| rate(profile.rate)));
        add("delivery.batch", lower_batch.then(|| profile.batch_limit.get().into()));
        add("profile.base_url", Some(profile.base_url.to_string().into()));
        add("profile.async_url", profile.async_url.as_ref().map(|url| url.to_string().into()));
        add("profile.account", Some(profile.account.as_str().into()));
        add("profile.rate", Some(rate(profile.rate)));
        add("profile.batch_limit", Some(profile.batch_limit.get().into()));
        add("profile.limits.recipients", profile.recipients_limit.map(Into::into));
        add("profile.policy.cap", profile.cap.map(|cap| cap.to_string().into()));
        add("profile.policy.window", profile.window.as_ref().map(|window| window.to_string().into()));
        add("profile.approval.above", profile.approval.as_ref().map(|rule| rule.above.into()));
        for (channel, price) in &profile.prices {
            add(&format!("profile.prices.{channel}"), Some(price.to_string().into()));
        }
        add("profile.currency", profile.currency.as_deref().map(Into::into));
    }

    /// Takes a value, in the place of another one of that key.
    fn put(&mut self, key: &str, value: Value, origin: Origin) {
        let setting = Setting { key: key.to_owned(), value, origin };
        match self.found.iter_mut().find(|found| found.key == key) {
            Some(found) if matches!((&found.origin, &setting.origin), (Origin::Written(_), Origin::Follows(_))) => {}
            Some(found) => *found = setting,
            None => self.found.push(setting),
        }
    }
}

fn rate(rate: Rate) -> Value {
    rate.to_string().into()
}

/// A default as it would be written.
fn plain(text: &str) -> Value {
    match text.parse::<u64>() {
        Ok(number) => number.into(),
        Err(_) if matches!(text, "true" | "false") => (text == "true").into(),
        Err(_) => text.into(),
    }
}
