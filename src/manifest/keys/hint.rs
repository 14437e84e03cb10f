//! What was probably meant by a key that is not known where it stands.

use super::{CHANNELS, Key, Mark, Shape, find, names, protective};
use crate::finding::{did_you_mean, list};

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
pub(super) fn hint(name: &str, keys: &'static [Key], root: &'static [Key]) -> String {
    let known = |name: &str| find(keys, name).is_some();
    if let Some((channel, rest)) = prefixed(name).filter(|_| is_campaign(root)) {
        let own = std::ptr::eq(keys, keys_of(channel));
        return match (own, known(rest)) {
            (true, true) => format!("write `{rest}`; keys do not include the channel's name"),
            _ => format!("write `{rest}` under `{channel}`"),
        };
    }
    if let Some(meant) = synonym(name, keys) {
        return format!("did you mean `{meant}`?");
    }
    let elsewhere = places(name, root);
    if let [one] = elsewhere.as_slice()
        && let Some((above, _)) = one.split_once('.').filter(|(_, below)| *below == name)
        && let Some(Shape::Map(inner)) = find(root, above).map(|key| key.shape)
        && let Some(key) = find(inner, name)
    {
        return format!("move `{name}` under `{above}`, as in `{above}: {{ {} }}`", protective::moved(key));
    }
    match elsewhere.as_slice() {
        [] => {}
        [one] if one == name && is_campaign(root) => {
            return format!("move `{name}` to the top level, without indentation");
        }
        [one] if let Some(channel) = channel_of(one) => {
            return format!("move `{name}` under a channel, for example `- {channel}: {{ {name}: … }}`");
        }
        _ => {
            let is_top = |place: &&String| *place == name && is_campaign(root);
            let top = if elsewhere.iter().any(|place| is_top(&place)) { "the top level, or to " } else { "" };
            let others = elsewhere.iter().filter(|place| !is_top(place)).map(String::as_str);
            return format!("move `{name}` to {top}{}", list(others));
        }
    }
    match near(name, keys) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("use one of the keys allowed here: {}", list(names(keys))),
    }
}

/// The key that was probably meant by an unknown one beside it.
pub(crate) fn meant(name: &str, keys: &'static [Key]) -> Option<&'static str> {
    let own = |(channel, rest): (&str, &str)| {
        let is_own = std::ptr::eq(keys, keys_of(channel));
        is_own.then(|| find(keys, rest).map(|key| key.name)).flatten()
    };
    prefixed(name).and_then(own).or_else(|| synonym(name, keys)).or_else(|| near(name, keys))
}

/// Whether an unknown key belongs under `key`, which is missing there.
pub(super) fn belongs_under(name: &str, key: &Key) -> bool {
    let needs = |keys: &'static [Key]| find(keys, name).is_some_and(|key| key.mark != Mark::Optional);
    match key.shape {
        Shape::Map(inner) => needs(inner),
        Shape::Channels => {
            find(CHANNELS, name).is_some() || CHANNELS.iter().any(|channel| needs(keys_of(channel.name)))
        }
        _ => false,
    }
}

/// The key with nearly that spelling, unless it would protect less.
fn near(name: &str, keys: &'static [Key]) -> Option<&'static str> {
    did_you_mean(name, names(keys).filter(|key| !protective::is_too_risky(key, name)))
}

fn synonym(name: &str, keys: &'static [Key]) -> Option<&'static str> {
    let known = |name: &str| find(keys, name).is_some();
    SYNONYMS.iter().find(|(word, meant)| word.eq_ignore_ascii_case(name) && known(meant)).map(|(_, meant)| *meant)
}

/// Whether a file with the keys `root` has a key of that name anywhere.
pub(crate) fn is_known(name: &str, root: &'static [Key]) -> bool {
    !places(name, root).is_empty()
}

/// The key of a channel in the gateway's spelling, such as `viber_signature`.
fn prefixed(name: &str) -> Option<(&'static str, &str)> {
    CHANNELS.iter().find_map(|channel| {
        let rest = name.strip_prefix(channel.name)?.strip_prefix('_')?;
        find(keys_of(channel.name), rest).map(|_| (channel.name, rest))
    })
}

fn keys_of(channel: &str) -> &'static [Key] {
    match find(CHANNELS, channel).map(|key| key.shape) {
        Some(Shape::Map(keys)) => keys,
        _ => &[],
    }
}

/// Whether these are the keys of a campaign, whose channels stand in a list of their own form.
fn is_campaign(root: &'static [Key]) -> bool {
    find(root, "channels").is_some()
}

/// The channel of a path of [`places`].
fn channel_of(path: &str) -> Option<&str> {
    path.strip_prefix(CHANNEL)?.split_once('.').map(|(channel, _)| channel)
}

/// Where the file may have a key of that name, as paths; only the first of a campaign's channels that share it.
fn places(name: &str, root: &'static [Key]) -> Vec<String> {
    let mut found = Vec::new();
    walk(root, "", name, &mut found);
    let own = |channel: &&Key| is_campaign(root) && find(keys_of(channel.name), name).is_some();
    if let Some(channel) = CHANNELS.iter().find(own) {
        found.push(format!("{CHANNEL}{}.{name}", channel.name));
    }
    found
}

fn walk(keys: &'static [Key], above: &str, name: &str, found: &mut Vec<String>) {
    for key in keys {
        let path = if above.is_empty() { key.name.to_owned() } else { format!("{above}.{}", key.name) };
        if key.name == name {
            found.push(path.clone());
        }
        if let Shape::Map(inner) = key.shape {
            walk(inner, &path, name, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CAMPAIGN;
    use super::*;

    fn inner(name: &str) -> &'static [Key] {
        match find(CAMPAIGN, name).map(|key| key.shape) {
            Some(Shape::Map(keys)) => keys,
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn a_key_in_the_wrong_place_or_spelling_is_told_where_it_belongs() {
        let cases = [
            ("viber_signature", keys_of("viber"), "write `signature`; keys do not include the channel's name"),
            ("sms_message", keys_of("viber"), "write `message` under `sms`"),
            ("message", CAMPAIGN, "move `message` under a channel, for example `- sms: { message: … }`"),
            ("timezone", inner("delivery"), "move `timezone` to the top level, without indentation"),
            ("batch", CAMPAIGN, "move `batch` under `delivery`, as in `delivery: { batch: 50 }`"),
            ("sender", keys_of("sms"), "did you mean `signature`?"),
            ("signatur", keys_of("sms"), "did you mean `signature`?"),
            ("chanels", CAMPAIGN, "did you mean `channels`?"),
            ("editon", CAMPAIGN, "did you mean `edition`?"),
            ("cap", CAMPAIGN, "move `cap` under `delivery`, as in `delivery: { cap: … }`"),
            ("suppress", CAMPAIGN, "move `suppress` under `recipients`, as in `recipients: { suppress: … }`"),
        ];
        for (name, keys, help) in cases {
            assert_eq!(hint(name, keys, CAMPAIGN), help);
        }
        let recipients = hint("max_valid", inner("recipients"), CAMPAIGN);
        assert!(recipients.starts_with("use one of the keys allowed here: "), "{recipients}");
        assert!(hint("zzz", keys_of("telegram"), CAMPAIGN).contains("`message`, `lifetime` or `fields`"));
    }
}
