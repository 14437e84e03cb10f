//! Keys whose values protect recipients: what to write instead of an unknown value.
//!
//! Advice goes by the meaning of a word first. It never names a value that protects less, whatever the spelling.

use super::KeySpec;
use crate::finding::did_you_mean;

/// The values of a key that protects recipients.
#[derive(Debug)]
struct Protection {
    key: &'static str,
    /// The value to write if in doubt.
    safe: &'static str,
    /// Values that protect less, which no advice names.
    risky: &'static [&'static str],
    /// Words that people write, and the values that they mean.
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

/// Keys that hold messages back or stop a run: without them, more messages leave.
const GUARD_KEYS: [&str; 16] = [
    "above",
    "approval",
    "batch_limit",
    "cap",
    "exclude",
    "fatal_errors",
    "holdout",
    "limits",
    "opt_out_words",
    "per_day",
    "policy",
    "stop_after",
    "suppress",
    "until",
    "where",
    "window",
];

/// Keys that allow more than holds without them. Only a single slip suggests one.
const LOOSENING_KEYS: [&str; 5] = ["edition", "local", "max_invalid", "sender_verified", "trust_status"];

/// Whether no advice may name the key for what was typed: it would protect less than the author probably wanted.
pub(super) fn is_too_risky(key: &str, typed: &str) -> bool {
    LOOSENING_KEYS.contains(&key) && strsim::damerau_levenshtein(key, &typed.to_lowercase()) > 1
}

/// A key as advice shows it elsewhere: a guard keeps the author's value, which may be stricter than any example.
pub(super) fn format_moved_key(key: &KeySpec) -> String {
    if GUARD_KEYS.contains(&key.name) { format!("{}: …", key.name) } else { key.format_example() }
}

/// What to do about a key without a value, which stands in the file as `name`.
pub(super) fn advise_missing_value(key: &KeySpec, name: &str) -> String {
    let written = key.format_example_as(name);
    match GUARD_KEYS.contains(&key.name) {
        true => format!("write a value, for example `{written}`; without `{name}`, the campaign loses this protection"),
        false => format!("write a value, for example `{written}`, or remove the key"),
    }
}

/// What to write instead of an unknown value of a key that protects recipients; `None` for other keys.
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
    use crate::manifest::keys::{CAMPAIGN, ValueShape};

    /// Every key of a campaign that protects recipients, with its words.
    fn is_protective(keys: &'static [KeySpec], found: &mut Vec<(&'static KeySpec, &'static [&'static str])>) {
        for key in keys {
            match key.shape {
                ValueShape::OneOf(words) if PROTECTIONS.iter().any(|protection| protection.key == key.name) => {
                    found.push((key, words));
                }
                ValueShape::Map(keys) | ValueShape::Or { keys, .. } => is_protective(keys, found),
                _ => {}
            }
        }
    }

    fn all_keys() -> Vec<(&'static KeySpec, &'static [&'static str])> {
        let mut found = Vec::new();
        is_protective(CAMPAIGN, &mut found);
        found
    }

    #[test]
    fn protections_contain_only_values_of_their_keys() {
        let keys = all_keys();
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
        for (key, words) in all_keys() {
            let risky = PROTECTIONS.iter().find(|known| known.key == key.name).expect("a protection").risky;
            // Every value with one letter less, more or changed.
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
    fn advice_follows_word_meaning() {
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
            let keys = all_keys();
            let (key, words) = keys.iter().find(|(key, _)| key.name == name).expect("a key");
            assert_eq!(advise_value(key, typed, words).as_deref(), Some(meant), "{name}: {typed}");
        }
    }
}
