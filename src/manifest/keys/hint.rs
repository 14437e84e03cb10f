//! What was probably meant by a key that is not known where it stands.

use super::{CHANNELS, KeyPresence, KeySpec, ValueShape, find_key, key_names, protective};
use crate::finding::{did_you_mean, join_alternatives};

/// Words that people use for the gateway's own.
const SYNONYMS: [(&str, &str); 22] = [
    ("text", "message"),
    ("txt", "message"),
    ("msg", "message"),
    ("sign", "signature"),
    ("sender_name", "signature"),
    ("body", "message"),
    ("content", "message"),
    ("sender", "signature"),
    ("from", "signature"),
    ("alpha_name", "signature"),
    ("alphaname", "signature"),
    ("ttl", "lifetime"),
    ("validity", "lifetime"),
    ("url", "link"),
    ("picture", "image"),
    ("cards", "carousel"),
    ("variables", "vars"),
    ("constants", "vars"),
    ("country", "region"),
    ("tz", "timezone"),
    ("dedupe", "duplicates"),
    ("speed", "rate"),
];

/// The beginning of the path of a channel's key.
const CHANNEL: &str = "channels[…].";

/// What to do about the unknown key `name` among `keys` in a file with the keys `root`.
pub(super) fn suggest_key_fix(name: &str, keys: &'static [KeySpec], root: &'static [KeySpec]) -> String {
    let known = |name: &str| find_key(keys, name).is_some();
    if let Some((channel, rest)) = split_channel_prefix(name).filter(|_| is_campaign(root)) {
        let own = std::ptr::eq(keys, channel_keys(channel));
        return match (own, known(rest)) {
            (true, true) => format!("write `{rest}`; keys do not include the channel's name"),
            _ => format!("write `{rest}` under `{channel}`"),
        };
    }
    if let Some(meant) = find_synonym(name, keys) {
        return format!("did you mean `{meant}`?");
    }
    let elsewhere = find_key_paths(name, root);
    if let [one] = elsewhere.as_slice()
        && let Some((above, _)) = one.split_once('.').filter(|(_, below)| *below == name)
        && let Some(ValueShape::Map(inner)) = find_key(root, above).map(|key| key.shape)
        && let Some(key) = find_key(inner, name)
    {
        return format!("move `{name}` under `{above}`, as in `{above}: {{ {} }}`", protective::format_moved_key(key));
    }
    match elsewhere.as_slice() {
        [] => {}
        [one] if one == name && is_campaign(root) => {
            return format!("move `{name}` to the top level, without indentation");
        }
        [one] if let Some(channel) = channel_in_path(one) => {
            return format!("move `{name}` under a channel, for example `- {channel}: {{ {name}: … }}`");
        }
        _ => {
            let is_top = |place: &&String| *place == name && is_campaign(root);
            let top = if elsewhere.iter().any(|place| is_top(&place)) { "the top level, or to " } else { "" };
            let others = elsewhere.iter().filter(|place| !is_top(place)).map(String::as_str);
            return format!("move `{name}` to {top}{}", join_alternatives(others));
        }
    }
    match find_near_key(name, keys) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("use one of the keys allowed here: {}", join_alternatives(key_names(keys))),
    }
}

/// The key that was probably meant by an unknown one beside it.
pub(crate) fn find_meant_key(name: &str, keys: &'static [KeySpec]) -> Option<&'static str> {
    let own = |(channel, rest): (&str, &str)| {
        let is_own = std::ptr::eq(keys, channel_keys(channel));
        is_own.then(|| find_key(keys, rest).map(|key| key.name)).flatten()
    };
    split_channel_prefix(name).and_then(own).or_else(|| find_synonym(name, keys)).or_else(|| find_near_key(name, keys))
}

/// Whether an unknown key belongs under `key`, which is missing there.
pub(super) fn belongs_under(name: &str, key: &KeySpec) -> bool {
    let needs =
        |keys: &'static [KeySpec]| find_key(keys, name).is_some_and(|key| key.presence != KeyPresence::Optional);
    match key.shape {
        ValueShape::Map(inner) => needs(inner),
        ValueShape::Channels => {
            find_key(CHANNELS, name).is_some() || CHANNELS.iter().any(|channel| needs(channel_keys(channel.name)))
        }
        _ => false,
    }
}

/// The key with nearly that spelling, unless it would protect less.
fn find_near_key(name: &str, keys: &'static [KeySpec]) -> Option<&'static str> {
    did_you_mean(name, key_names(keys).filter(|key| !protective::is_too_risky(key, name)))
}

fn find_synonym(name: &str, keys: &'static [KeySpec]) -> Option<&'static str> {
    let known = |name: &str| find_key(keys, name).is_some();
    SYNONYMS.iter().find(|(word, meant)| word.eq_ignore_ascii_case(name) && known(meant)).map(|(_, meant)| *meant)
}

/// Whether a file with the keys `root` has a key of that name anywhere.
pub(crate) fn is_known(name: &str, root: &'static [KeySpec]) -> bool {
    !find_key_paths(name, root).is_empty()
}

/// The key of a channel in the gateway's spelling, such as `viber_signature`.
fn split_channel_prefix(name: &str) -> Option<(&'static str, &str)> {
    CHANNELS.iter().find_map(|channel| {
        let rest = name.strip_prefix(channel.name)?.strip_prefix('_')?;
        find_key(channel_keys(channel.name), rest).map(|_| (channel.name, rest))
    })
}

fn channel_keys(channel: &str) -> &'static [KeySpec] {
    match find_key(CHANNELS, channel).map(|key| key.shape) {
        Some(ValueShape::Map(keys)) => keys,
        _ => &[],
    }
}

/// Whether these are the keys of a campaign, whose channels stand in a list of their own form.
fn is_campaign(root: &'static [KeySpec]) -> bool {
    find_key(root, "channels").is_some()
}

/// The channel of a path of [`places`].
fn channel_in_path(path: &str) -> Option<&str> {
    path.strip_prefix(CHANNEL)?.split_once('.').map(|(channel, _)| channel)
}

/// Where the file may have a key of that name, as paths; only the first of a campaign's channels that share it.
fn find_key_paths(name: &str, root: &'static [KeySpec]) -> Vec<String> {
    let mut found = Vec::new();
    walk_keys(root, "", name, &mut found);
    let own = |channel: &&KeySpec| is_campaign(root) && find_key(channel_keys(channel.name), name).is_some();
    if let Some(channel) = CHANNELS.iter().find(own) {
        found.push(format!("{CHANNEL}{}.{name}", channel.name));
    }
    found
}

fn walk_keys(keys: &'static [KeySpec], above: &str, name: &str, found: &mut Vec<String>) {
    for key in keys {
        let path = if above.is_empty() { key.name.to_owned() } else { format!("{above}.{}", key.name) };
        if key.name == name {
            found.push(path.clone());
        }
        if let ValueShape::Map(inner) = key.shape {
            walk_keys(inner, &path, name, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CAMPAIGN;
    use super::*;

    fn suggest(name: &str) -> &'static [KeySpec] {
        match find_key(CAMPAIGN, name).map(|key| key.shape) {
            Some(ValueShape::Map(keys)) => keys,
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn unknown_key_suggests_its_place_and_spelling() {
        let cases = [
            ("viber_signature", channel_keys("viber"), "write `signature`; keys do not include the channel's name"),
            ("sms_message", channel_keys("viber"), "write `message` under `sms`"),
            ("message", CAMPAIGN, "move `message` under a channel, for example `- sms: { message: … }`"),
            ("timezone", suggest("delivery"), "move `timezone` to the top level, without indentation"),
            ("batch", CAMPAIGN, "move `batch` under `delivery`, as in `delivery: { batch: 50 }`"),
            ("sender", channel_keys("sms"), "did you mean `signature`?"),
            ("signatur", channel_keys("sms"), "did you mean `signature`?"),
            ("chanels", CAMPAIGN, "did you mean `channels`?"),
            ("editon", CAMPAIGN, "did you mean `edition`?"),
            ("cap", CAMPAIGN, "move `cap` under `delivery`, as in `delivery: { cap: … }`"),
            ("suppress", CAMPAIGN, "move `suppress` under `recipients`, as in `recipients: { suppress: … }`"),
        ];
        for (name, keys, help) in cases {
            assert_eq!(suggest_key_fix(name, keys, CAMPAIGN), help);
        }
        let recipients = suggest_key_fix("max_valid", suggest("recipients"), CAMPAIGN);
        assert!(recipients.starts_with("use one of the keys allowed here: "), "{recipients}");
        assert!(
            suggest_key_fix("zzz", channel_keys("telegram"), CAMPAIGN).contains("`message`, `lifetime` or `fields`")
        );
    }
}
