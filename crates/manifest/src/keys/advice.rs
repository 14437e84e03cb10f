//! Advice about unknown keys and about unknown values of keys that protect recipients.
//!
//! Advice considers the meaning of a word before its spelling. It never suggests a value that protects less, however
//! similar the spelling.

use super::{CHANNELS, KeyPresence, KeySpec, ValueShape, WINDOW, find_key, key_names};
use campaign_core::finding::{did_you_mean, join_alternatives, only_candidate};

/// Common synonyms of the gateway's terms.
const SYNONYMS: [(&str, &str); 25] = [
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
    ("filter", "where"),
    ("condition", "where"),
    ("only", "where"),
];

/// The prefix of paths of channel keys.
const CHANNEL_PATH_PREFIX: &str = "channels[…].";

/// The remedy for the unknown key `name` among `keys` in a file with the keys `root`.
pub(super) fn suggest_key_fix(name: &str, keys: &'static [KeySpec], root: &'static [KeySpec]) -> String {
    let is_known = |name: &str| find_key(keys, name).is_some();
    if let Some((channel, rest)) = split_channel_prefix(name).filter(|_| is_campaign(root)) {
        let is_in_channel = is_same_map(keys, channel_keys(channel));
        return match (is_in_channel, is_known(rest)) {
            (true, true) => format!("write `{rest}`; keys do not include the channel's name"),
            _ => format!("write `{rest}` under `{channel}`"),
        };
    }
    if let Some(meant) = find_synonym(name, keys) {
        return format!("did you mean `{meant}`?");
    }
    if is_same_map(keys, WINDOW) && ["from", "to", "start", "end"].contains(&name) {
        return "write both times under `hours`, as in `hours: 09:00-20:00`".to_owned();
    }
    if is_campaign(root) && CHANNELS.iter().any(|channel| is_same_map(keys, channel_keys(channel.name))) {
        let next = find_key(CHANNELS, name).map(|channel| channel.name).or((name == "fallback").then_some("sms"));
        if let Some(next) = next {
            return format!("add `- {next}: …` as the next item of `channels`; the channels are tried in order");
        }
    }
    let elsewhere = find_key_paths(name, root);
    if let [path] = elsewhere.as_slice()
        && let Some((parent, _)) = path.split_once('.').filter(|(_, child)| *child == name)
        && let Some(ValueShape::Map(inner)) = find_key(root, parent).map(|key| key.shape)
        && let Some(key) = find_key(inner, name)
    {
        return format!("move `{name}` under `{parent}`, as in `{parent}: {{ {} }}`", format_moved_key(key));
    }
    match elsewhere.as_slice() {
        [] => {}
        [path] if path == name && is_campaign(root) => {
            return format!("move `{name}` to the top level, without indentation");
        }
        [path] if let Some(channel) = channel_in_path(path) => {
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

/// The key among `keys` that the author probably meant by an unknown key.
pub(crate) fn find_meant_key(name: &str, keys: &'static [KeySpec]) -> Option<&'static str> {
    let is_key_of_channel = |(channel, rest): (&str, &str)| {
        let is_own = is_same_map(keys, channel_keys(channel));
        is_own.then(|| find_key(keys, rest).map(|key| key.name)).flatten()
    };
    split_channel_prefix(name)
        .and_then(is_key_of_channel)
        .or_else(|| find_synonym(name, keys))
        .or_else(|| find_near_key(name, keys))
}

/// The only key that the author could have meant by an unknown key, if correcting it cannot loosen a protection of
/// recipients.
///
/// A misspelt key stops every run, so no messages were sent with this form of the file. The value stays as typed.
/// `None` if another key is similar, or if the name is a synonym or a valid key elsewhere. Also `None` if the key can
/// allow more than its default. A person must decide these cases.
pub(super) fn find_unambiguous_key(
    name: &str,
    keys: &'static [KeySpec],
    root: &'static [KeySpec],
) -> Option<&'static str> {
    let channel_key = split_channel_prefix(name).filter(|(channel, _)| is_same_map(keys, channel_keys(channel)));
    let candidate = match channel_key {
        Some((_, rest)) => find_key(keys, rest)?.name,
        None if find_synonym(name, keys).is_some() || is_known_key(name, root) => return None,
        None => only_candidate(name, key_names(keys))?,
    };
    let can_loosen =
        LOOSENING_KEYS.contains(&candidate) || PROTECTIONS.iter().any(|protection| protection.key == candidate);
    (!can_loosen).then_some(candidate)
}

/// Whether the unknown key `name` probably belongs under the missing key `key`.
pub(super) fn belongs_under(name: &str, key: &KeySpec) -> bool {
    let have_required_key =
        |keys: &'static [KeySpec]| find_key(keys, name).is_some_and(|inner| inner.presence != KeyPresence::Optional);
    match key.shape {
        ValueShape::Map(inner) => have_required_key(inner),
        ValueShape::Channels => {
            find_key(CHANNELS, name).is_some()
                || CHANNELS.iter().any(|channel| have_required_key(channel_keys(channel.name)))
        }
        _ => false,
    }
}

/// The key with the most similar spelling. Keys that would protect recipients less are not considered.
fn find_near_key(name: &str, keys: &'static [KeySpec]) -> Option<&'static str> {
    did_you_mean(name, key_names(keys).filter(|key| !is_too_risky(key, name)))
}

fn find_synonym(name: &str, keys: &'static [KeySpec]) -> Option<&'static str> {
    let is_known = |name: &str| find_key(keys, name).is_some();
    SYNONYMS.iter().find(|(word, meant)| word.eq_ignore_ascii_case(name) && is_known(meant)).map(|(_, meant)| *meant)
}

/// Whether a file with the keys `root` has a key with this name anywhere.
pub(crate) fn is_known_key(name: &str, root: &'static [KeySpec]) -> bool {
    !find_key_paths(name, root).is_empty()
}

/// Whether each key of a file with the keys `root` that has this name takes a text.
pub(crate) fn is_text_key(name: &str, root: &'static [KeySpec]) -> bool {
    let mut shapes = Vec::new();
    collect_shapes(name, root, &mut shapes);
    if is_campaign(root) {
        CHANNELS.iter().for_each(|channel| collect_shapes(name, channel_keys(channel.name), &mut shapes));
    }
    let is_text = |shape| matches!(shape, ValueShape::Line | ValueShape::Template | ValueShape::Message);
    !shapes.is_empty() && shapes.into_iter().all(is_text)
}

fn collect_shapes(name: &str, keys: &'static [KeySpec], shapes: &mut Vec<ValueShape>) {
    for key in keys {
        if key.name == name {
            shapes.push(key.shape);
        }
        match key.shape {
            ValueShape::Map(inner) | ValueShape::Or { keys: inner, .. } => collect_shapes(name, inner, shapes),
            _ => {}
        }
    }
}

/// Splits the gateway's spelling of a channel's key, such as `viber_signature`, into the channel and the key.
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

/// Whether these are the keys of the same map. The addresses of the tables say nothing, because the compiler can copy
/// them.
fn is_same_map(keys: &[KeySpec], others: &[KeySpec]) -> bool {
    keys.iter().map(|key| (key.name, key.doc)).eq(others.iter().map(|key| (key.name, key.doc)))
}

/// Whether these are the keys of a campaign file, which lists channels in a special form.
fn is_campaign(root: &'static [KeySpec]) -> bool {
    find_key(root, "channels").is_some()
}

/// The channel in a path from [`find_key_paths`].
fn channel_in_path(path: &str) -> Option<&str> {
    path.strip_prefix(CHANNEL_PATH_PREFIX)?.split_once('.').map(|(channel, _)| channel)
}

/// The paths at which the file can have a key with this name. If several channels of a campaign have the key, only the
/// first is included.
fn find_key_paths(name: &str, root: &'static [KeySpec]) -> Vec<String> {
    let mut paths = Vec::new();
    collect_key_paths(root, "", name, &mut paths);
    let has_key = |channel: &&KeySpec| is_campaign(root) && find_key(channel_keys(channel.name), name).is_some();
    if let Some(channel) = CHANNELS.iter().find(has_key) {
        paths.push(format!("{CHANNEL_PATH_PREFIX}{}.{name}", channel.name));
    }
    paths
}

fn collect_key_paths(keys: &'static [KeySpec], parent: &str, name: &str, paths: &mut Vec<String>) {
    for key in keys {
        let path = if parent.is_empty() { key.name.to_owned() } else { format!("{parent}.{}", key.name) };
        if key.name == name {
            paths.push(path.clone());
        }
        if let ValueShape::Map(inner) = key.shape {
            collect_key_paths(inner, &path, name, paths);
        }
    }
}

/// The values of a key that protects recipients.
#[derive(Debug)]
struct Protection {
    key: &'static str,
    /// The value to use in case of doubt.
    safe: &'static str,
    /// Values that protect less, which advice never suggests.
    risky: &'static [&'static str],
    /// Values, each with the words that people write for it.
    meanings: &'static [(&'static str, &'static [&'static str])],
}

const PROTECTIONS: [Protection; 5] = [
    Protection {
        key: "purpose",
        safe: "marketing",
        risky: &["service"],
        meanings: &[(
            "marketing",
            &[
                "promo",
                "promotion",
                "promotional",
                "newsletter",
                "advertising",
                "advertisement",
                "advert",
                "ads",
                "ad",
                "commercial",
                "sale",
                "sales",
                "offer",
                "bulk",
                "campaign",
                "reklama",
                "реклама",
                "рекламна",
                "рекламная",
                "маркетинг",
                "маркетингова",
                "розсилка",
                "рассылка",
                "промо",
                "акція",
                "акция",
            ],
        )],
    },
    Protection {
        key: "duplicates",
        safe: "skip",
        risky: &["allow"],
        meanings: &[
            ("skip", &["ignore", "drop", "remove", "dedupe", "deduplicate", "unique", "once", "omit", "false", "no"]),
            ("refuse", &["deny", "error", "fail", "forbid", "reject", "stop", "abort"]),
        ],
    },
    Protection {
        key: "on_in_doubt",
        safe: "hold",
        risky: &["assume_sent", "resend_if_not_found"],
        meanings: &[("hold", &["wait", "ask", "keep", "stop", "pause", "manual"])],
    },
    Protection {
        key: "receipts",
        safe: "auto",
        risky: &["off"],
        meanings: &[
            ("auto", &["automatic", "on", "yes", "true"]),
            ("webhook", &["hook", "webhooks", "callback", "push"]),
            ("poll", &["polling", "pull", "status", "ask"]),
        ],
    },
    Protection {
        key: "empty",
        safe: "refuse",
        risky: &["ok"],
        meanings: &[("refuse", &["deny", "error", "fail", "forbid", "reject", "stop", "abort", "false", "no"])],
    },
];

/// Keys that hold back messages or stop a run: without them, more messages are sent.
const GUARD_KEYS: [&str; 18] = [
    "above",
    "approval",
    "batch_limit",
    "cap",
    "consent",
    "exclude",
    "fatal_errors",
    "holdout",
    "limits",
    "opt_out_errors",
    "opt_out_words",
    "per_day",
    "policy",
    "stop_after",
    "suppress",
    "until",
    "where",
    "window",
];

/// Keys that allow more than their default. They are suggested only for a single typing mistake.
const LOOSENING_KEYS: [&str; 7] =
    ["edition", "local", "mandatory", "max_invalid", "opt_in_words", "sender_verified", "trust_status"];

/// Whether advice must not suggest the key for the typed name, because the key would protect less than the author
/// probably intended.
pub(super) fn is_too_risky(key: &str, typed: &str) -> bool {
    LOOSENING_KEYS.contains(&key) && strsim::damerau_levenshtein(key, &typed.to_lowercase()) > 1
}

/// Formats a key for advice to move it. The value of a guard is elided, because the author's value can be stricter than
/// the example.
pub(super) fn format_moved_key(key: &KeySpec) -> String {
    if GUARD_KEYS.contains(&key.name) { format!("{}: …", key.name) } else { key.format_example() }
}

/// The remedy for a key without a value; `name` is the key's name in the file.
pub(super) fn advise_missing_value(key: &KeySpec, name: &str) -> String {
    let written = key.format_example_as(name);
    match GUARD_KEYS.contains(&key.name) {
        true => format!("write a value, for example `{written}`; without `{name}`, the campaign loses this protection"),
        false => format!("write a value, for example `{written}`, or remove the key"),
    }
}

/// Keys whose words say how a request is made or announced, or what a test expects. They do not decide
/// who gets which message.
const HARMLESS_KEYS: [&str; 4] = ["endpoint", "operation", "preset", "skipped"];

/// The only allowed word that the author could have meant by a value. `None` if the key can affect who gets which
/// message.
pub(super) fn find_unambiguous_word(key: &KeySpec, text: &str, words: &[&'static str]) -> Option<&'static str> {
    only_candidate(text.trim(), words.iter().copied()).filter(|_| HARMLESS_KEYS.contains(&key.name))
}

/// Whether a fix must not write a value for the key, because the value might loosen a protection.
pub(super) fn is_loosening(key: &KeySpec) -> bool {
    LOOSENING_KEYS.contains(&key.name)
}

/// The remedy for an unknown value of a key that protects recipients; `None` for other keys.
pub(super) fn advise_value(key: &KeySpec, text: &str, words: &[&'static str]) -> Option<String> {
    let protection = PROTECTIONS.iter().find(|protection| protection.key == key.name)?;
    let typed = text.trim().to_lowercase();
    let meanings = || protection.meanings.iter();
    let by_meaning = meanings().find(|(_, written)| written.contains(&typed.as_str())).map(|(meant, _)| *meant);
    let by_spelling = || did_you_mean(&typed, words.iter().copied()).filter(|meant| !protection.risky.contains(meant));
    Some(match by_meaning.or_else(by_spelling) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("if you are not sure, write `{}`", protection.safe),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::CAMPAIGN;

    fn section_keys(name: &str) -> &'static [KeySpec] {
        match find_key(CAMPAIGN, name).map(|key| key.shape) {
            Some(ValueShape::Map(keys)) => keys,
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn help_for_an_unknown_key_suggests_a_place_or_a_spelling() {
        let cases = [
            ("viber_signature", channel_keys("viber"), "write `signature`; keys do not include the channel's name"),
            ("sms_message", channel_keys("viber"), "write `message` under `sms`"),
            ("message", CAMPAIGN, "move `message` under a channel, for example `- sms: { message: … }`"),
            ("timezone", section_keys("delivery"), "move `timezone` to the top level, without indentation"),
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
        let recipients = suggest_key_fix("max_valid", section_keys("recipients"), CAMPAIGN);
        assert!(recipients.starts_with("use one of the keys allowed here: "), "{recipients}");
        assert!(
            suggest_key_fix("zzz", channel_keys("telegram"), CAMPAIGN).contains("`message`, `lifetime` or `fields`")
        );
    }
}

#[cfg(test)]
mod only_key_tests {
    use super::*;
    use crate::keys::CAMPAIGN;

    #[test]
    fn misspelt_key_with_one_candidate_has_a_fix() {
        for (name, meant) in [("recipents", "recipients"), ("chanels", "channels"), ("Delivery", "delivery")] {
            assert_eq!(find_unambiguous_key(name, CAMPAIGN, CAMPAIGN), Some(meant), "{name}");
        }
        assert_eq!(find_unambiguous_key("viber_signature", channel_keys("viber"), CAMPAIGN), Some("signature"));
    }

    #[test]
    fn misspelt_key_with_two_candidates_has_no_fix() {
        static KEYS: &[KeySpec] = &[
            KeySpec::new("batch", ValueShape::Line, "x"),
            KeySpec::new("match", ValueShape::Line, "x"),
            KeySpec::new("timeout", ValueShape::Line, "x"),
        ];
        assert_eq!(find_unambiguous_key("atch", KEYS, CAMPAIGN), None);
        assert_eq!(find_unambiguous_key("tiemout", KEYS, KEYS), Some("timeout"));
    }

    #[test]
    fn synonyms_and_misplaced_or_protective_keys_have_no_fix() {
        for name in ["purpos", "mandatry", "editon", "receipt", "tz", "batch", "zzz"] {
            assert_eq!(find_unambiguous_key(name, CAMPAIGN, CAMPAIGN), None, "{name}");
        }
    }
}

#[cfg(test)]
mod protective_tests {
    use super::*;
    use crate::keys::{CAMPAIGN, ValueShape};

    /// Collects every key that protects recipients, with the allowed words of the key.
    fn collect_protective_keys(
        keys: &'static [KeySpec],
        collected: &mut Vec<(&'static KeySpec, &'static [&'static str])>,
    ) {
        for key in keys {
            match key.shape {
                ValueShape::OneOf(words) if PROTECTIONS.iter().any(|protection| protection.key == key.name) => {
                    collected.push((key, words));
                }
                ValueShape::Map(keys) | ValueShape::Or { keys, .. } => collect_protective_keys(keys, collected),
                _ => {}
            }
        }
    }

    fn protective_keys() -> Vec<(&'static KeySpec, &'static [&'static str])> {
        let mut collected = Vec::new();
        collect_protective_keys(CAMPAIGN, &mut collected);
        collected
    }

    #[test]
    fn protections_contain_only_values_of_their_keys() {
        let keys = protective_keys();
        for Protection { key, safe, risky, meanings } in &PROTECTIONS {
            let (key, words) = keys.iter().find(|(known, _)| known.name == *key).expect("a key of a campaign");
            let named = meanings.iter().map(|(meant, _)| meant).chain([safe]).chain(*risky);
            named.for_each(|word| assert!(words.contains(word), "{}: {word}", key.name));
            assert!(!risky.contains(&key.example), "`{}` is the example of {}", key.example, key.name);
            assert!(meanings.iter().all(|(meant, _)| !risky.contains(meant)), "{}", key.name);
        }
    }

    #[test]
    fn advice_never_suggests_a_riskier_value() {
        for (key, words) in protective_keys() {
            let risky = PROTECTIONS.iter().find(|known| known.key == key.name).expect("a protection").risky;
            // Every value with one letter removed, added or changed.
            let slips = words.iter().flat_map(|word| {
                (0..word.len()).flat_map(move |at| {
                    let (before, after) = (&word[..at], &word[at + 1..]);
                    [format!("{before}{after}"), format!("{before}x{after}"), format!("{before}x{}", &word[at..])]
                })
            });
            let others = ["", "x", "true", "false", "promo", "servise", "transactional", "perhaps", "ok!", "offf"];
            for typed in slips.chain(others.map(str::to_owned)) {
                let advice = advise_value(key, &typed, words).expect("advice");
                assert!(risky.iter().all(|word| !advice.contains(&format!("`{word}`"))), "{typed}: {advice}");
            }
        }
    }

    #[test]
    fn advice_follows_the_meaning_of_the_word() {
        for (name, typed, meant) in [
            ("purpose", "promo", "did you mean `marketing`?"),
            ("purpose", "Newsletter", "did you mean `marketing`?"),
            ("purpose", "reklama", "did you mean `marketing`?"),
            ("purpose", "marketting", "did you mean `marketing`?"),
            ("purpose", "servise", "if you are not sure, write `marketing`"),
            ("duplicates", "allowed", "if you are not sure, write `skip`"),
            ("duplicates", "deny", "did you mean `refuse`?"),
            ("on_in_doubt", "resend", "if you are not sure, write `hold`"),
            ("receipts", "of", "if you are not sure, write `auto`"),
            ("receipts", "callback", "did you mean `webhook`?"),
            ("empty", "o", "if you are not sure, write `refuse`"),
        ] {
            let keys = protective_keys();
            let (key, words) = keys.iter().find(|(key, _)| key.name == name).expect("a key");
            assert_eq!(advise_value(key, typed, words).as_deref(), Some(meant), "{name}: {typed}");
        }
    }
}
