//! Structure checks with rules of their own: the list of channels, lists of named items, and texts chosen by a column.

use std::collections::BTreeSet;
use std::ops::Range;

use super::advice::suggest_key_fix;
use super::structure::{check_value, head_span};
use super::tables::{CAMPAIGN, TEXT_FILE};
use super::{CHANNELS, KeySpec, ValueShape, find_key, key_names};
use crate::document::FindingCollector;
use crate::yaml::{MapEntry, Node, NodeContent};
use campaign_core::domain::Channel;
use campaign_core::finding::{Finding, did_you_mean, join_alternatives, join_names, rules};

/// Checks an item of the list of channels.
pub(super) fn check_channel(item: &Node, report: &mut FindingCollector) {
    if let Some(channel_item) = parse_channel_item(item) {
        return check_channel_keys(&channel_item, item, report);
    }
    let finding = match &item.content {
        NodeContent::Scalar(scalar) => unknown_channel_finding(&scalar.text),
        NodeContent::Map(entries) => match entries.as_slice() {
            [entry] => {
                report.add(&entry.key_span, unknown_channel_finding(&entry.key));
                if let Some(meant) = guess_channel_item(item) {
                    check_channel_keys(&meant, item, report);
                }
                return;
            }
            _ => crowded_item_finding(entries),
        },
        NodeContent::List(_) => {
            Finding::new(&rules::WRONG_TYPE, "each item in `channels` must be a channel, not a list")
                .help("write each channel as `- sms: …`")
        }
    };
    report.add(&head_span(item), finding);
}

fn check_channel_keys(channel_item: &ChannelItem<'_>, item: &Node, report: &mut FindingCollector) {
    let empty_map = Node { content: NodeContent::Map(Vec::new()), span: item.span.clone() };
    let key = channel_item.channel.name().to_owned();
    let entry = MapEntry {
        key,
        key_span: channel_item.name_span.clone(),
        value: channel_item.keys.cloned().unwrap_or(empty_map),
    };
    if let Some(key) = find_key(CHANNELS, &entry.key) {
        check_value(key, &entry, report);
    }
}

/// The finding about an item that has several keys, because it contains two channels or the keys of a channel are not
/// indented.
fn crowded_item_finding(entries: &[MapEntry]) -> Finding {
    let channels: Vec<&MapEntry> = entries.iter().filter(|entry| Channel::from_name(&entry.key).is_some()).collect();
    match channels.as_slice() {
        [] => Finding::new(&rules::UNKNOWN_CHANNEL, "this item does not name a channel")
            .help(format!("start the item with a channel: {}", join_alternatives(key_names(CHANNELS)))),
        [channel] if channel.value.is_null() => {
            Finding::new(&rules::YAML_INDENTATION, format!("the keys of `{}` are not indented", channel.key))
                .help(format!("indent the keys two spaces deeper than `{}`", channel.key))
        }
        [channel] => Finding::new(
            &rules::YAML_INDENTATION,
            format!("other keys are at the same level as the channel `{}`", channel.key),
        )
        .help("indent the keys that belong to the channel, and start other channels with `- `"),
        [first, second, ..] => {
            Finding::new(&rules::CROWDED_ITEM, format!("`{}` and `{}` are in the same item", first.key, second.key))
                .help(format!("start each channel with its own dash: `- {}: …`", second.key))
        }
    }
}

fn unknown_channel_finding(name: &str) -> Finding {
    let finding = Finding::new(&rules::UNKNOWN_CHANNEL, format!("`{name}` is not a channel"));
    match did_you_mean(name, key_names(CHANNELS)) {
        Some(meant) => finding.help(format!("did you mean `{meant}`?")),
        None if find_key(CAMPAIGN, name).is_some() => {
            finding.help(format!("move `{name}` to the top level, without a dash or indentation"))
        }
        None => finding.help(format!("use one of the supported channels: {}", join_alternatives(key_names(CHANNELS)))),
    }
}

/// Reports channels that were written as a map instead of a list, and checks each of them.
pub(super) fn report_missing_dashes(entry: &MapEntry, channels: &[MapEntry], report: &mut FindingCollector) {
    let first = channels.first().map_or("sms", |channel| channel.key.as_str());
    let finding = Finding::new(&rules::WRONG_TYPE, "`channels` must be a list, but the dashes are missing");
    report.add(&entry.key_span, finding.help(format!("start each channel with a dash: `- {first}: …`")));
    for channel in channels {
        match find_key(CHANNELS, &channel.key) {
            Some(key) => check_value(key, channel, report),
            None => report.add(&channel.key_span, unknown_channel_finding(&channel.key)),
        }
    }
}

/// A channel with its keys.
pub(crate) struct ChannelItem<'n> {
    /// The channel; a guess if the author misspelled its name.
    pub channel: Channel,
    /// The name of the channel in the file.
    pub(crate) name_span: &'n Range<usize>,
    /// The map of its keys; `None` for a bare name.
    pub keys: Option<&'n Node>,
}

/// The channel that the author probably meant by an item with an unknown name.
pub(crate) fn guess_channel_item(item: &Node) -> Option<ChannelItem<'_>> {
    let [MapEntry { key, key_span, value }] = item.as_entries()? else { return None };
    let channel = Channel::from_name(did_you_mean(key, key_names(CHANNELS))?)?;
    Some(ChannelItem { channel, name_span: key_span, keys: Some(value) })
}

/// The channel that an item names: `- hlr`, or a map whose only key is a channel.
pub(crate) fn parse_channel_item(item: &Node) -> Option<ChannelItem<'_>> {
    if let Some(scalar) = item.as_scalar() {
        let channel = Channel::from_name(&scalar.text)?;
        return Some(ChannelItem { channel, name_span: &item.span, keys: None });
    }
    let [MapEntry { key, key_span, value }] = item.as_entries()? else { return None };
    let channel = Channel::from_name(key)?;
    Some(ChannelItem { channel, name_span: key_span, keys: Some(value) })
}

/// The key that names an item in other programs.
const NAME_KEY: &str = "name";

/// Reports a list that must be a map with the items' names as keys, and reports unknown keys of the items. Returns
/// false and reports nothing if the list is empty, an item has no name, or the items are not maps.
pub(super) fn report_listed_names(
    item_spec: &KeySpec,
    entry: &MapEntry,
    items: &[Node],
    report: &mut FindingCollector,
) -> bool {
    let (ValueShape::Map(keys), owner) = (item_spec.shape, &entry.key) else { return false };
    let named: Option<Vec<(&str, Vec<&MapEntry>)>> = items.iter().map(split_named_item).collect();
    let Some(named) = named.filter(|named| !named.is_empty()) else { return false };
    let corrected_items = named.iter().map(|(name, inner)| {
        let known = inner.iter().filter_map(|entry| Some(format_item(find_key(keys, &entry.key)?, entry)));
        format!("{name}: {{ {} }}", known.collect::<Vec<_>>().join(", "))
    });
    let corrected_items: Vec<String> = corrected_items.collect();
    let message = format!("`{owner}` must be a map, but is a list");
    let help = format!(
        "write the name of each {} as a key, without a dash: `{owner}: {{ {} }}`",
        item_spec.name,
        corrected_items.join(", ")
    );
    report.add(&head_span(&entry.value), Finding::new(&rules::WRONG_TYPE, message).help(help));
    let mut reported = BTreeSet::new();
    for (name, inner) in named {
        for entry in inner.into_iter().filter(|entry| find_key(keys, &entry.key).is_none()) {
            if reported.insert(&entry.key) {
                let finding = Finding::new(&rules::UNKNOWN_KEY, format!("unknown key `{}` under `{name}`", entry.key));
                report.add(&entry.key_span, finding.help(suggest_key_fix(&entry.key, keys, report.root)));
            }
        }
    }
    true
}

/// Splits an item into its name and its other keys. The name is the value of `name`, or the only key of the item if its
/// value is a map.
fn split_named_item(item: &Node) -> Option<(&str, Vec<&MapEntry>)> {
    let entries = item.as_entries()?;
    match (item.find_entry(NAME_KEY), entries) {
        (Some(name), _) => {
            Some((name.value.as_scalar()?.text.trim(), entries.iter().filter(|entry| entry.key != NAME_KEY).collect()))
        }
        (None, [one]) => Some((&one.key, one.value.as_entries().filter(|_| !one.value.is_null())?.iter().collect())),
        (None, _) => None,
    }
}

/// The correct form of an item's key.
fn format_item(key: &KeySpec, entry: &MapEntry) -> String {
    match (key.shape, entry.value.as_scalar().map(|value| value.text.trim())) {
        (ValueShape::Share, Some(share)) if share.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{}: {share}%", key.name)
        }
        (_, Some(value)) if !value.contains('\n') => format!("{}: {value}", key.name),
        _ => format!("{}: …", key.name),
    }
}

/// Reports a map that contains texts, for example for several languages, directly instead of under `texts`. The same
/// finding reports a missing `by`. Returns false if the map contains no such texts.
pub(super) fn report_bare_texts(entry: &MapEntry, report: &mut FindingCollector) -> bool {
    let Some(texts) = find_bare_texts(&entry.value) else { return false };
    let (owner, by) = (&entry.key, find_column(&entry.value));
    let texts: Vec<&str> = texts.iter().map(|text| text.key.as_str()).collect();
    let form = texts.iter().map(|name| format!("{name}: …")).collect::<Vec<_>>().join(", ");
    let (message, help) = match by {
        Some(column) => (
            format!("in `{owner}`, {} must be nested under `texts`", join_names(texts.iter().copied())),
            format!("write `{owner}: {{ by: {column}, texts: {{ {form} }} }}`"),
        ),
        None => (
            format!("`{owner}` has {}, but no `by` to select one of them", join_names(texts.iter().copied())),
            format!(
                "write `{owner}: {{ by: language, texts: {{ {form} }} }}`, with the name of your column instead of \
                 `language`"
            ),
        ),
    };
    report.add(&head_span(&entry.value), Finding::new(&rules::MISSING_KEY, message).help(help));
    true
}

/// Whether a map contains texts directly instead of under `texts`.
pub(crate) fn has_bare_texts(node: &Node) -> bool {
    find_bare_texts(node).is_some()
}

/// The texts that a map contains directly. `None` if there are none, if a value is not a text, or if a key is or might
/// be meant as a regular key.
fn find_bare_texts(node: &Node) -> Option<Vec<&MapEntry>> {
    let entries = node.as_entries()?;
    let is_selector = |entry: &&MapEntry| matches!(entry.key.as_str(), "by" | "else");
    let texts: Vec<&MapEntry> = entries.iter().filter(|entry| !is_selector(entry)).collect();
    let is_text = |node: &Node| match node.as_entries().filter(|_| !node.is_null()) {
        Some(keys) => matches!(keys, [one] if one.key == "file"),
        None => node.as_scalar().is_some_and(|text| !text.is_null()),
    };
    let is_author_defined = |entry: &&MapEntry| {
        find_key(TEXT_FILE, &entry.key).is_none()
            && did_you_mean(&entry.key, key_names(TEXT_FILE).filter(|name| name.len() > 2)).is_none()
    };
    (!texts.is_empty() && texts.iter().all(|entry| is_author_defined(entry) && is_text(&entry.value))).then_some(texts)
}

/// The column named by `by` in the map.
fn find_column(node: &Node) -> Option<&str> {
    let column = node.find_entry("by")?.value.as_scalar()?.text.trim();
    (!column.is_empty()).then_some(column)
}
