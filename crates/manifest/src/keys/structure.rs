//! Structure check of a file against its table of keys.
//!
//! The check reports every problem instead of stopping at the first.

use std::ops::Range;

use super::advice::{belongs_under, find_meant_key, find_unambiguous_key, suggest_key_fix};
use super::list_checks::{report_bare_texts, report_listed_names};
use super::tables::TEXT_FILE;
use super::{KeyPresence, KeySpec, OTHER_COUNTRIES, ValueShape, advice, find_key, key_names, list_checks};
use crate::document::FindingCollector;
use crate::value::{Percentage, Rate, Seconds, parse_cap};
use crate::yaml::{MapEntry, Node, NodeContent, Scalar, scalar_to_json};
use campaign_core::domain::{Amount, ParseRegionError, Region, format_count};
use campaign_core::finding::{Finding, Fix, did_you_mean, join_alternatives, quote_for_yaml, rules};

/// Checks the map `node`, called `owner` in findings, against its keys.
pub(crate) fn check_map(node: &Node, owner: &str, keys: &'static [KeySpec], report: &mut FindingCollector) {
    let Some(entries) = node.as_entries() else {
        let finding = Finding::new(&rules::WRONG_TYPE, format!("{owner} must be a map, but is {}", node_kind(node)));
        return report
            .add(&head_span(node), finding.help(format!("start with `{}: `", key_names(keys).next().unwrap_or(""))));
    };
    for entry in entries {
        match find_key(keys, &entry.key) {
            Some(key) => check_value(key, entry, report),
            None if let Some((name, value)) = split_stuck_value(&entry.key, keys) => {
                let finding = Finding::new(&rules::YAML_SYNTAX, format!("missing space after `{name}:`"));
                let after_colon = entry.key_span.start + name.len() + 1;
                let fix = Fix::replace("add a space after the colon", after_colon..after_colon, " ");
                let is_unambiguous = is_plain_key(entry, report) && !entries.iter().any(|other| other.key == name);
                let fix = Some(fix).filter(|_| is_unambiguous && !value.starts_with('/'));
                report.add(&entry.key_span, finding.help(format!("write `{name}: {value}`")).fix(fix));
            }
            None => {
                let finding = Finding::new(&rules::UNKNOWN_KEY, format!("unknown key `{}` in {owner}", entry.key));
                let hint = suggest_key_fix(&entry.key, keys, report.root);
                let fix = fix_key_spelling(entry, entries, keys, report);
                report.add(&entry.key_span, finding.help(hint).fix(fix));
            }
        }
    }
}

/// The fix for a misspelt key that can have only one meaning; see [`find_unambiguous_key`]. There is none if the map
/// also contains the correct key or another misspelling of it.
fn fix_key_spelling(
    entry: &MapEntry,
    entries: &[MapEntry],
    keys: &'static [KeySpec],
    report: &FindingCollector,
) -> Option<Fix> {
    let name = find_unambiguous_key(&entry.key, keys, report.root)?;
    let is_new = !entries.iter().any(|other| {
        other.key == name
            || (other.key != entry.key && find_unambiguous_key(&other.key, keys, report.root) == Some(name))
    });
    let fix = Fix::replace(format!("write `{name}`"), entry.key_span.clone(), name);
    Some(fix).filter(|_| is_new && is_plain_key(entry, report))
}

/// Whether a key is written without quotes, escapes or aliases.
fn is_plain_key(entry: &MapEntry, report: &FindingCollector) -> bool {
    report.source_slice(&entry.key_span) == entry.key
}

/// Splits a word between braces, such as `key:value` without a space, into a known key and its value.
fn split_stuck_value<'w>(word: &'w str, keys: &'static [KeySpec]) -> Option<(&'static str, &'w str)> {
    let (name, value) = word.split_once(':')?;
    find_key(keys, name).filter(|_| !value.is_empty()).map(|key| (key.name, value))
}

/// The name and location of a map in findings.
struct MapOwner<'a> {
    name: &'a str,
    /// The location of the map's name.
    span: &'a Range<usize>,
}

/// Reports the missing required keys of a map.
fn report_missing_keys(node: &Node, owner: &MapOwner<'_>, keys: &'static [KeySpec], report: &mut FindingCollector) {
    let Some(entries) = node.as_entries() else { return };
    let is_there = |key: &KeySpec| {
        let is_stuck_to_value = |word: &str| split_stuck_value(word, keys).is_some_and(|(name, _)| name == key.name);
        // A mistyped key is reported where it is, so the intended key is not reported as missing too.
        let means_key = |word: &str| {
            find_key(keys, word).is_none() && (find_meant_key(word, keys) == Some(key.name) || belongs_under(word, key))
        };
        entries.iter().any(|entry| entry.key == key.name || is_stuck_to_value(&entry.key) || means_key(&entry.key))
    };
    for key in keys.iter().filter(|key| key.presence == KeyPresence::Required && !is_there(key)) {
        let finding = Finding::new(&rules::MISSING_KEY, format!("{} needs `{}`", owner.name, key.name));
        let place = match owner.name.starts_with('`') {
            true => format!(" under {}, two spaces deeper", owner.name),
            false => String::new(),
        };
        report.add(owner.span, finding.help(format!("add a line such as `{}`{place}", key.format_example())));
    }
    let choices: Vec<&KeySpec> = keys.iter().filter(|key| key.presence == KeyPresence::Choice).collect();
    let mut chosen_keys = choices.iter().filter(|key| is_there(key));
    match (choices.first(), chosen_keys.next(), chosen_keys.next()) {
        (Some(first), None, _) => {
            let finding = Finding::new(&rules::MISSING_KEY, format!("{} needs `{}`", owner.name, first.name));
            let others = join_alternatives(choices[1..].iter().map(|key| key.name));
            let help = format!("add `{}`, or use {others}", first.format_example());
            report.add(owner.span, finding.help(help));
        }
        (_, Some(chosen), Some(other)) => {
            let place =
                entries.iter().find(|entry| entry.key == other.name).map_or(owner.span, |entry| &entry.key_span);
            let message = format!("{} has both `{}` and `{}`", owner.name, chosen.name, other.name);
            report.add(place, Finding::new(&rules::ONE_OF_TWO, message).help("keep one of them"));
        }
        _ => {}
    }
}

/// Checks a map and reports missing required keys.
pub(crate) fn check_complete_map(entry: &MapEntry, keys: &'static [KeySpec], report: &mut FindingCollector) {
    let owner = format!("`{}`", entry.key);
    check_map(&entry.value, &owner, keys, report);
    report_missing_keys(&entry.value, &MapOwner { name: &owner, span: &entry.key_span }, keys, report);
}

/// Checks the map at the top of a file, called `owner` in findings, against the keys of the whole file.
pub(crate) fn check_root(node: &Node, owner: &str, report: &mut FindingCollector) {
    check_map(node, owner, report.root, report);
    report_missing_keys(
        node,
        &MapOwner { name: owner, span: &(node.span.start..node.span.start) },
        report.root,
        report,
    );
}

/// Checks the value of a key against the shape of the key.
pub(super) fn check_value(key: &KeySpec, entry: &MapEntry, report: &mut FindingCollector) {
    let node = &entry.value;
    match (key.shape, &node.content) {
        (ValueShape::Map(keys), _) if node.as_entries().is_some() => check_complete_map(entry, keys, report),
        (ValueShape::Message, NodeContent::Map(_)) if report_bare_texts(entry, report) => {}
        (ValueShape::Each(item_spec), NodeContent::List(items))
            if report_listed_names(item_spec, entry, items, report) => {}
        // `{name}` is a text in braces rather than a map: its keys have no values.
        (ValueShape::Message, NodeContent::Map(entries)) if !entries.iter().all(|inner| inner.value.is_null()) => {
            check_complete_map(entry, TEXT_FILE, report)
        }
        (ValueShape::Each(item_spec), _) if node.as_entries().is_some() => {
            node.as_entries().unwrap_or_default().iter().for_each(|entry| check_value(item_spec, entry, report));
        }
        (ValueShape::Or { keys, .. }, NodeContent::Map(_)) => check_complete_map(entry, keys, report),
        (ValueShape::Or { alone, .. }, NodeContent::Scalar(_)) => {
            check_value(&KeySpec { shape: alone.shape, ..*key }, entry, report)
        }
        (ValueShape::Price, NodeContent::Map(entries)) => check_country_prices(key, entry, entries, report),
        (ValueShape::Price, NodeContent::Scalar(_)) => {
            check_value(&KeySpec { shape: ValueShape::Amount, ..*key }, entry, report)
        }
        (ValueShape::Texts, _) if node.as_entries().is_some() => check_texts(node, report),
        (ValueShape::Columns, _) if node.as_entries().is_some() => check_columns(node, report),
        (ValueShape::Headers, _) if node.as_entries().is_some() => check_headers(node, report),
        (ValueShape::Words(words), NodeContent::List(items)) if !items.is_empty() => {
            for item in items {
                let item_key = KeySpec { shape: ValueShape::OneOf(words), ..*key };
                match item.as_scalar() {
                    Some(word) => {
                        check_scalar(&item_key, &MapEntry { value: item.clone(), ..entry.clone() }, word, report)
                    }
                    None => report_wrong_type(&item_key, &MapEntry { value: item.clone(), ..entry.clone() }, report),
                }
            }
        }
        (ValueShape::Counts, NodeContent::List(items)) if !items.is_empty() => {
            for item in items {
                let item_key = KeySpec { shape: COUNT, ..*key };
                match item.as_scalar() {
                    Some(number) => {
                        check_scalar(&item_key, &MapEntry { value: item.clone(), ..entry.clone() }, number, report)
                    }
                    None => report_wrong_type(&item_key, &MapEntry { value: item.clone(), ..entry.clone() }, report),
                }
            }
        }
        (ValueShape::Properties, _) if node.as_entries().is_some() => {}
        (ValueShape::Channels, NodeContent::List(items)) if !items.is_empty() => {
            items.iter().for_each(|item| list_checks::check_channel(item, report));
        }
        (ValueShape::Channels, NodeContent::List(_)) => {
            let finding =
                Finding::new(&rules::EMPTY_VALUE, "`channels` is empty; a campaign needs at least one channel");
            report.add(
                &head_span(node),
                finding.help("add one channel per line, for example `- sms: { signature: …, message: … }`"),
            );
        }
        (ValueShape::Channels, NodeContent::Map(entries)) => list_checks::report_missing_dashes(entry, entries, report),
        (ValueShape::List { item: item_spec, least, most }, NodeContent::List(items)) => {
            if !(least..=most).contains(&items.len()) {
                let items_there = format_count(items.len() as u64, "item");
                let message = format!("`{}` has {items_there}, but must have {least} to {most}", entry.key);
                let help = if items.len() < least { "add items, each starting with a dash" } else { "remove items" };
                report.add(&entry.key_span, Finding::new(&rules::OUT_OF_RANGE, message).help(help));
            }
            for item in items {
                let item = MapEntry { key: key.name.into(), key_span: head_span(item), value: item.clone() };
                check_value(item_spec, &item, report);
            }
        }
        (ValueShape::Secret, _) => check_secret(key, entry, report),
        (ValueShape::Secrets, NodeContent::List(items)) if !items.is_empty() => {
            for item in items {
                check_secret(key, &MapEntry { value: item.clone(), ..entry.clone() }, report);
            }
        }
        (ValueShape::Secrets, _) => check_secret(key, entry, report),
        (_, NodeContent::Scalar(scalar)) if scalar.is_null() => {
            let finding = Finding::new(&rules::EMPTY_VALUE, format!("`{}` has no value", entry.key));
            report.add(&entry.key_span, finding.help(advice::advise_missing_value(key, &entry.key)));
        }
        (shape, NodeContent::Scalar(scalar)) if !is_collection(shape) => check_scalar(key, entry, scalar, report),
        _ => report_wrong_type(key, entry, report),
    }
}

/// An item of `ValueShape::Counts`.
const COUNT: ValueShape = ValueShape::Integer { least: 1, most: u32::MAX };

fn is_collection(shape: ValueShape) -> bool {
    match shape {
        ValueShape::Map(_)
        | ValueShape::Each(_)
        | ValueShape::Or { .. }
        | ValueShape::Texts
        | ValueShape::Columns
        | ValueShape::Headers
        | ValueShape::Properties
        | ValueShape::List { .. }
        | ValueShape::Channels
        | ValueShape::Price
        | ValueShape::Secret
        | ValueShape::Secrets => true,
        ValueShape::Line
        | ValueShape::Template
        | ValueShape::Message
        | ValueShape::Integer { .. }
        | ValueShape::Bool
        | ValueShape::Seconds { .. }
        | ValueShape::Rate
        | ValueShape::Cap
        | ValueShape::Share
        | ValueShape::Amount
        | ValueShape::Words(_)
        | ValueShape::Counts
        | ValueShape::OneOf(_) => false,
    }
}

/// The text between typographic quotes, if it begins and ends with them.
pub(crate) fn strip_typographic_quotes(text: &str) -> Option<&str> {
    text.strip_prefix(TYPOGRAPHIC_QUOTES)?
        .strip_suffix(TYPOGRAPHIC_QUOTES)
        .filter(|inner| !inner.contains(TYPOGRAPHIC_QUOTES))
}

/// Quotes that text processors and phones substitute for keyboard quotes.
const TYPOGRAPHIC_QUOTES: [char; 7] =
    ['\u{201c}', '\u{201d}', '\u{201e}', '\u{201f}', '\u{2018}', '\u{2019}', '\u{201a}'];

fn check_scalar(key: &KeySpec, entry: &MapEntry, scalar: &Scalar, report: &mut FindingCollector) {
    let text = scalar.text.as_str();
    if let Some(inner) = strip_typographic_quotes(text).filter(|_| scalar.is_plain()) {
        let message = format!(
            "the curly quotes become part of the value of `{}`, because YAML does not treat them as quotes",
            entry.key
        );
        let finding = Finding::new(&rules::TYPOGRAPHIC_QUOTES, message);
        report.add(
            &entry.value.span,
            finding
                .help(format!("write `\"{inner}\"`; a text editor has replaced the straight quotes"))
                .fix(strip_quotes(key, entry, scalar, inner, report)),
        );
    }
    let check_range =
        |number: u32, min, max| if (min..=max).contains(&number) { None } else { Some(&rules::OUT_OF_RANGE) };
    let shape = if matches!(key.shape, ValueShape::Counts) { COUNT } else { key.shape };
    let problem = match shape {
        ValueShape::Line if text.trim().is_empty() => Some(&rules::EMPTY_VALUE),
        ValueShape::Line if text.trim_end().contains('\n') => Some(&rules::WRONG_TYPE),
        ValueShape::Integer { least: min, most: max } => parse_integer(scalar)
            .map_or(Some(&rules::WRONG_TYPE), |number| {
                number.map_or(Some(&rules::OUT_OF_RANGE), |number| check_range(number, min, max))
            }),
        ValueShape::Bool => (!scalar_to_json(scalar).is_boolean()).then_some(&rules::WRONG_TYPE),
        ValueShape::Seconds { least: min, most: max } => {
            text.parse().map_or(Some(&rules::WRONG_TYPE), |Seconds(number)| check_range(number, min, max))
        }
        ValueShape::Rate => text.parse::<Rate>().err().map(|_| &rules::WRONG_TYPE),
        ValueShape::Cap => parse_cap(text).err().map(|_| &rules::WRONG_TYPE),
        ValueShape::Share => text.parse::<Percentage>().err().map(|_| &rules::WRONG_TYPE),
        ValueShape::Amount => text
            .parse::<Amount>()
            .map_or(Some(&rules::WRONG_TYPE), |price| price.is_negative().then_some(&rules::OUT_OF_RANGE)),
        ValueShape::OneOf(words) | ValueShape::Words(words) if words.contains(&text) => None,
        ValueShape::OneOf(_) | ValueShape::Words(_) => Some(&rules::UNKNOWN_VALUE),
        _ => None,
    };
    if let Some(rule) = problem {
        let is_quoted = matches!(key.shape, ValueShape::Bool) && matches!(text, "true" | "false");
        let text = if is_quoted { format!("the text `\"{text}\"` in quotes") } else { format!("`{text}`") };
        let message = format!("`{}` is {text}, but must be {}", entry.key, describe_shape(key.shape));
        let fix = fix_value(key, entry, scalar, report);
        report.add(&entry.value.span, Finding::new(rule, message).help(suggest_value(key, scalar)).fix(fix));
    }
}

/// The fix for a misspelt value of a key that takes a number or a word.
///
/// The fix keeps the author's value. It removes quotes, or replaces a YAML 1.1 spelling with `true` or `false`. It
/// replaces a misspelt word if only one allowed word is similar and the key does not affect who gets which message.
fn fix_value(key: &KeySpec, entry: &MapEntry, scalar: &Scalar, report: &FindingCollector) -> Option<Fix> {
    let (span, text) = (&entry.value.span, scalar.text.as_str());
    let written = report.source_slice(span);
    let is_number = matches!(key.shape, ValueShape::Integer { .. } | ValueShape::Counts) && is_digits(text);
    let is_flag = matches!(key.shape, ValueShape::Bool) && matches!(text, "true" | "false");
    if is_number || is_flag {
        let is_quoted = [format!("\"{text}\""), format!("'{text}'")].contains(&written.to_owned());
        let quotes = [(span.start..span.start + 1, String::new()), (span.end - 1..span.end, String::new())];
        return is_quoted.then(|| Fix::new("remove the quotes", quotes));
    }
    let word = match key.shape {
        ValueShape::Bool if advice::is_loosening(key) => None,
        ValueShape::Bool => match text.to_ascii_lowercase().as_str() {
            "yes" | "on" => Some("true"),
            "no" | "off" => Some("false"),
            _ => None,
        },
        ValueShape::OneOf(words) | ValueShape::Words(words) => advice::find_unambiguous_word(key, text, words),
        _ => None,
    };
    let word = word.filter(|_| scalar.is_plain() && written == text)?;
    Some(Fix::replace(format!("write `{word}`"), span.clone(), word))
}

/// The fix that removes typographic quotes around a number or a word. The quotes cannot be part of such a value, but in
/// a text, they might be intended.
fn strip_quotes(
    key: &KeySpec,
    entry: &MapEntry,
    scalar: &Scalar,
    inner: &str,
    report: &FindingCollector,
) -> Option<Fix> {
    let is_word = match key.shape {
        ValueShape::OneOf(words) | ValueShape::Words(words) => words.contains(&inner),
        ValueShape::Integer { .. } | ValueShape::Counts => is_digits(inner),
        ValueShape::Bool => matches!(inner, "true" | "false"),
        ValueShape::Seconds { .. } => inner.parse::<Seconds>().is_ok(),
        ValueShape::Rate => inner.parse::<Rate>().is_ok(),
        ValueShape::Share => inner.parse::<Percentage>().is_ok(),
        ValueShape::Amount => inner.parse::<Amount>().is_ok(),
        _ => false,
    };
    let (span, text) = (&entry.value.span, &scalar.text);
    let start = span.start + text.len() - text.trim_start_matches(TYPOGRAPHIC_QUOTES).len();
    let is_as_typed = report.source_slice(span) == text;
    let quotes = [(span.start..start, String::new()), (start + inner.len()..span.end, String::new())];
    (is_word && is_as_typed).then(|| Fix::new("remove the curly quotes", quotes))
}

/// The value as a non-negative integer; `Some(None)` if it is larger than any key allows. `None` for any other value.
fn parse_integer(scalar: &Scalar) -> Option<Option<u32>> {
    if scalar.is_plain() && is_digits(&scalar.text) {
        return Some(scalar.text.parse().ok());
    }
    scalar_to_json(scalar).as_u64().map(|number| number.try_into().ok())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn suggest_value(key: &KeySpec, scalar: &Scalar) -> String {
    let text = scalar.text.as_str();
    match key.shape {
        ValueShape::OneOf(words) | ValueShape::Words(words) => {
            advice::advise_value(key, text, words).unwrap_or_else(|| match did_you_mean(text, words.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("write, for example, `{}`", key.format_example()),
            })
        }
        ValueShape::Integer { .. } if is_digits(text) && !scalar.is_plain() => {
            "remove the quotes around the number".into()
        }
        ValueShape::Integer { least, most } if least == most => {
            format!("write `{}: {least}`, or use the version of campaign that this file was written for", key.name)
        }
        ValueShape::Share if is_digits(text) => format!("write `{text}%`"),
        ValueShape::Rate if is_digits(text) => format!("write `{text}/s` or `{text}/min`"),
        ValueShape::Seconds { most, .. } if most != u32::MAX => {
            let (written, most) = (key.format_example(), Seconds(most));
            format!("write, for example, `{written}` (at most `{most}`); `m` means minutes, `h` hours and `d` days")
        }
        _ => format!("write, for example, `{}`", key.format_example()),
    }
}

fn describe_shape(shape: ValueShape) -> String {
    match shape {
        ValueShape::Line => "one line of text".into(),
        ValueShape::Template => "text".into(),
        ValueShape::Message => "a text value or `{ file: NAME }`".into(),
        ValueShape::Integer { least, most: u32::MAX } => format!("a whole number, {least} or more"),
        ValueShape::Integer { least, most } if least == most => least.to_string(),
        ValueShape::Integer { least, most } => format!("a whole number from {least} to {most}"),
        ValueShape::Counts => "a positive whole number, or a list of positive whole numbers".into(),
        ValueShape::Bool => "`true` or `false`".into(),
        ValueShape::Seconds { least, most: u32::MAX } => format!("a duration of at least {}", Seconds(least)),
        ValueShape::Seconds { least, most } => format!("a duration from {} to {}", Seconds(least), Seconds(most)),
        ValueShape::Rate => "a rate such as `10/s` or `600/min`".into(),
        ValueShape::Cap => "a number of messages per period of at most 400 days, such as `2/7d`".into(),
        ValueShape::Share => "a percentage from `0%` to `100%`".into(),
        ValueShape::Amount => "an amount of money such as `0.80`".into(),
        ValueShape::Price => "an amount of money such as `0.80`, or a map from countries to amounts".into(),
        ValueShape::OneOf(words) | ValueShape::Words(words) => join_alternatives(words.iter().copied()),
        ValueShape::Map(_) | ValueShape::Properties => "a map".into(),
        ValueShape::Texts | ValueShape::Columns | ValueShape::Headers => "a map from names to text values".into(),
        ValueShape::Each(item_spec) => format!("a map of names, each with {}", describe_shape(item_spec.shape)),
        ValueShape::Or { alone, .. } => format!("{}, or a map", describe_shape(alone.shape)),
        ValueShape::List { .. } => "a list".into(),
        ValueShape::Channels => "a list of channels".into(),
        ValueShape::Secret | ValueShape::Secrets => "a reference such as `{ env: NAME }`".into(),
    }
}

/// Checks prices by country, which must include a price for all other countries.
fn check_country_prices(key: &KeySpec, entry: &MapEntry, prices: &[MapEntry], report: &mut FindingCollector) {
    for price in prices {
        if price.key != OTHER_COUNTRIES
            && let Err(error) = price.key.parse::<Region>()
        {
            report.add(&price.key_span, unknown_country_finding(&price.key, &error));
        }
        check_value(&KeySpec { shape: ValueShape::Amount, ..*key }, price, report);
    }
    if !prices.iter().any(|price| price.key == OTHER_COUNTRIES) {
        let message = format!("`{}` needs `{OTHER_COUNTRIES}`, the price for all other countries", entry.key);
        let help = format!("add it, for example `{}: {{ UA: 0.80, {OTHER_COUNTRIES}: 4.00 }}`", entry.key);
        report.add(&entry.key_span, Finding::new(&rules::MISSING_KEY, message).help(help));
    }
}

/// An error about a text that is not the code of a country.
pub(crate) fn unknown_country_finding(typed: &str, error: &ParseRegionError) -> Finding {
    Finding::new(&rules::UNKNOWN_REGION, format!("unknown country `{}`", typed.trim())).help(error.suggest_fix())
}

fn report_wrong_type(key: &KeySpec, entry: &MapEntry, report: &mut FindingCollector) {
    let node = &entry.value;
    let (message, help) = match (key.shape, &node.content) {
        (ValueShape::Template | ValueShape::Message, NodeContent::Map(_))
            if report.source_slice(&node.span).starts_with('{') =>
        {
            (
                format!("the value of `{}` starts with a brace, so YAML reads it as a map, not as text", entry.key),
                format!(
                    "put the whole value in quotes: `{}: \"{}\"`",
                    entry.key,
                    report.source_slice(&node.span).replace('"', "'")
                ),
            )
        }
        (ValueShape::Map(keys), NodeContent::Scalar(scalar)) => {
            let needed = keys
                .iter()
                .find(|key| matches!(key.presence, KeyPresence::Required | KeyPresence::Choice))
                .map_or("", |key| key.name);
            let text = quote_for_yaml(&scalar.text);
            let help = if key.name == "consent" && scalar.text.trim() == "required" {
                "move `consent: required` to the top level; here, write where consents are recorded, as in `consent: { \
                 column: Consent }`"
                    .to_owned()
            } else if needed == "signature" && find_key(keys, "message").is_some() {
                format!("write `{}: {{ signature: …, message: {text} }}`, with your sender name", entry.key)
            } else if needed.is_empty() {
                format!("write, for example, `{}`", key.format_example_as(&entry.key))
            } else {
                format!("write `{}: {{ {needed}: {} }}`", entry.key, scalar.text)
            };
            (format!("`{}` must be a map, but is a single value", entry.key), help)
        }
        _ => (
            format!("`{}` must be {}, but is {}", entry.key, describe_shape(key.shape), node_kind(node)),
            format!("write, for example, `{}`", key.format_example_as(&entry.key)),
        ),
    };
    report.add(&head_span(node), Finding::new(&rules::WRONG_TYPE, message).help(help));
}

/// Checks where a secret is stored. Findings never repeat the written text, which might be the secret.
fn check_secret(key: &KeySpec, entry: &MapEntry, report: &mut FindingCollector) {
    let is_reference =
        |inner: &MapEntry| matches!(inner.key.as_str(), "env" | "file") && inner.value.as_scalar().is_some();
    let is_valid = entry
        .value
        .as_entries()
        .is_some_and(|entries| matches!(entries, [one] if is_reference(one) && !one.value.is_null()));
    if !is_valid {
        let message = format!("`{}` must say where to find the secret, not contain it", key.name);
        let help = format!("write `{0}: {{ env: NAME }}` or `{0}: {{ file: PATH }}`", key.name);
        report.add(&entry.key_span, Finding::new(&rules::SECRET, message).help(help));
    }
}

/// Checks HTTP headers. Each value is a text or a reference to a secret that is stored elsewhere.
fn check_headers(node: &Node, report: &mut FindingCollector) {
    for entry in node.as_entries().unwrap_or_default() {
        match &entry.value.content {
            NodeContent::Map(_) => {
                check_secret(&KeySpec::new("headers", ValueShape::Secret, "{ env: NAME }"), entry, report)
            }
            NodeContent::Scalar(scalar) if !scalar.is_null() => {}
            _ => {
                let finding = Finding::new(&rules::WRONG_TYPE, format!("`{}` must be a single text value", entry.key));
                report.add(&entry.key_span, finding.help("write the value, or `{ env: NAME }` for a secret"));
            }
        }
    }
}

fn check_texts(node: &Node, report: &mut FindingCollector) {
    node.as_entries().unwrap_or_default().iter().for_each(|entry| check_text(entry, report));
}

pub(super) fn check_text(entry: &MapEntry, report: &mut FindingCollector) {
    let (problem, help) = match &entry.value.content {
        NodeContent::Scalar(scalar) if !scalar.is_null() => return,
        NodeContent::Scalar(_) => ("has no value", "write `\"\"` for an empty value"),
        NodeContent::List(_) | NodeContent::Map(_) => ("must be a single text value", "put the value in quotes"),
    };
    report.add(&entry.key_span, Finding::new(&rules::WRONG_TYPE, format!("`{}` {problem}", entry.key)).help(help));
}

/// The kind of a node, in words.
fn node_kind(node: &Node) -> &'static str {
    match &node.content {
        NodeContent::Scalar(scalar) if scalar.is_null() => "empty",
        NodeContent::Scalar(_) => "a single value",
        NodeContent::List(_) => "a list",
        NodeContent::Map(_) => "a map",
    }
}

/// The location that findings show for a node: the first key of a map, the first item of a list, or the whole scalar.
pub(super) fn head_span(node: &Node) -> Range<usize> {
    match &node.content {
        NodeContent::Scalar(_) => node.span.clone(),
        NodeContent::List(items) => items.first().map_or_else(|| node.span.clone(), head_span),
        NodeContent::Map(entries) => entries.first().map_or_else(|| node.span.clone(), |entry| entry.key_span.clone()),
    }
}

/// The name of the phone column under `columns`.
pub(crate) const PHONE_COLUMN: &str = "phone";
/// The maximum number of phone columns in a list.
pub(crate) const MAX_PHONE_COLUMNS: usize = 10;

pub(super) fn check_columns(node: &Node, report: &mut FindingCollector) {
    for entry in node.as_entries().unwrap_or_default() {
        let Some(headers) = entry.value.as_items().filter(|_| entry.key == PHONE_COLUMN) else {
            check_text(entry, report);
            continue;
        };
        let is_text = |item: &Node| item.as_scalar().is_some_and(|scalar| !scalar.is_null());
        if !(1..=MAX_PHONE_COLUMNS).contains(&headers.len()) || !headers.iter().all(is_text) {
            let message = format!("`{PHONE_COLUMN}` must be one header, or a list of 1 to {MAX_PHONE_COLUMNS} headers");
            let finding = Finding::new(&rules::WRONG_TYPE, message);
            report.add(
                &entry.key_span,
                finding.help("list the headers with the preferred one first: `phone: [Mobile, Home]`"),
            );
        }
    }
}
