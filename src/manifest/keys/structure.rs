//! Whether a file has the form that the tables give it. Finds everything, stops at nothing.

use std::ops::Range;

use super::hint::{belongs_under, hint, meant};
use super::listed_names::listed_names;
use super::texts_by::bare_texts;
use super::{Key, Mark, Shape, campaign::TEXT_FILE, channel_form, find, list_columns, names, protective};
use crate::domain::{Amount, plural};
use crate::finding::{Finding, did_you_mean, list, rules};
use crate::manifest::report::Report;
use crate::manifest::value::{Rate, Seconds, Share, cap};
use crate::manifest::yaml::{Content, Entry, Node, Scalar, core_scalar};

/// Checks the map `node`, called `owner` in findings, against its keys.
pub(crate) fn check(node: &Node, owner: &str, keys: &'static [Key], report: &mut Report) {
    let Some(entries) = node.entries() else {
        let finding = Finding::new(&rules::WRONG_TYPE, format!("{owner} must be a map, but is {}", kind(node)));
        return report.at(&head(node), finding.help(format!("start with `{}: `", names(keys).next().unwrap_or(""))));
    };
    for entry in entries {
        match find(keys, &entry.key) {
            Some(key) => value(key, entry, report),
            None if let Some((name, value)) = stuck(&entry.key, keys) => {
                let finding = Finding::new(&rules::YAML_SYNTAX, format!("missing space after `{name}:`"));
                report.at(&entry.key_span, finding.help(format!("write `{name}: {value}`")));
            }
            None => {
                let finding = Finding::new(&rules::UNKNOWN_KEY, format!("unknown key `{}` in {owner}", entry.key));
                let hint = hint(&entry.key, keys, report.root);
                report.at(&entry.key_span, finding.help(hint));
            }
        }
    }
}

/// A key with its value right behind the colon, which between braces is one word.
fn stuck<'w>(word: &'w str, keys: &'static [Key]) -> Option<(&'static str, &'w str)> {
    let (name, value) = word.split_once(':')?;
    find(keys, name).filter(|_| !value.is_empty()).map(|key| (key.name, value))
}

/// A map as findings call it.
struct Owner<'a> {
    name: &'a str,
    /// Where it is named.
    span: &'a Range<usize>,
}

/// Tells the required keys that a map has not.
fn required(node: &Node, owner: &Owner<'_>, keys: &'static [Key], report: &mut Report) {
    let Some(entries) = node.entries() else { return };
    let is_there = |key: &Key| {
        let slipped = |word: &str| stuck(word, keys).is_some_and(|(name, _)| name == key.name);
        // What was meant by an unknown key is told there, once.
        let meant = |word: &str| {
            find(keys, word).is_none() && (meant(word, keys) == Some(key.name) || belongs_under(word, key))
        };
        entries.iter().any(|entry| entry.key == key.name || slipped(&entry.key) || meant(&entry.key))
    };
    for key in keys.iter().filter(|key| key.mark == Mark::Required && !is_there(key)) {
        let finding = Finding::new(&rules::MISSING_KEY, format!("{} needs `{}`", owner.name, key.name));
        let place = match owner.name.starts_with('`') {
            true => format!(" under {}, two spaces deeper", owner.name),
            false => String::new(),
        };
        report.at(owner.span, finding.help(format!("add a line such as `{}`{place}", key.written())));
    }
    let choices: Vec<&Key> = keys.iter().filter(|key| key.mark == Mark::Choice).collect();
    let mut chosen = choices.iter().filter(|key| is_there(key));
    match (choices.first(), chosen.next(), chosen.next()) {
        (Some(first), None, _) => {
            let finding = Finding::new(&rules::MISSING_KEY, format!("{} needs `{}`", owner.name, first.name));
            let others = list(choices[1..].iter().map(|key| key.name));
            let help = format!("add `{}`, or one of {others}", first.written());
            report.at(owner.span, finding.help(help));
        }
        (_, Some(one), Some(other)) => {
            let place =
                entries.iter().find(|entry| entry.key == other.name).map_or(owner.span, |entry| &entry.key_span);
            let message = format!("{} has both `{}` and `{}`", owner.name, one.name, other.name);
            report.at(place, Finding::new(&rules::ONE_OF_TWO, message).help("keep one of them"));
        }
        _ => {}
    }
}

/// Checks a map and that it has what it needs.
pub(crate) fn check_whole(entry: &Entry, keys: &'static [Key], report: &mut Report) {
    let owner = format!("`{}`", entry.key);
    check(&entry.value, &owner, keys, report);
    required(&entry.value, &Owner { name: &owner, span: &entry.key_span }, keys, report);
}

/// Checks the map at the top of a file, called `owner` in findings, against the keys of the whole file.
pub(crate) fn check_root(node: &Node, owner: &str, report: &mut Report) {
    check(node, owner, report.root, report);
    required(node, &Owner { name: owner, span: &(node.span.start..node.span.start) }, report.root, report);
}

pub(super) fn value(key: &Key, entry: &Entry, report: &mut Report) {
    let node = &entry.value;
    match (key.shape, &node.content) {
        (Shape::Map(keys), _) if node.entries().is_some() => check_whole(entry, keys, report),
        (Shape::Message, Content::Map(_)) if bare_texts(entry, report) => {}
        (Shape::Each(of), Content::List(items)) if listed_names(of, entry, items, report) => {}
        // `{name}` is a text in braces rather than a map: nothing stands behind its keys.
        (Shape::Message, Content::Map(entries)) if !entries.iter().all(|inner| inner.value.is_null()) => {
            check_whole(entry, TEXT_FILE, report)
        }
        (Shape::Each(of), _) if node.entries().is_some() => {
            node.entries().unwrap_or_default().iter().for_each(|entry| value(of, entry, report));
        }
        (Shape::Or { keys, .. }, Content::Map(_)) => check_whole(entry, keys, report),
        (Shape::Or { alone, .. }, Content::Scalar(_)) => value(&Key { shape: alone.shape, ..*key }, entry, report),
        (Shape::Texts, _) if node.entries().is_some() => texts(node, report),
        (Shape::Columns, _) if node.entries().is_some() => list_columns::columns(node, report),
        (Shape::Headers, _) if node.entries().is_some() => headers(node, report),
        (Shape::Words(words), Content::List(items)) if !items.is_empty() => {
            for item in items {
                let one = Key { shape: Shape::OneOf(words), ..*key };
                match item.scalar() {
                    Some(word) => scalar(&one, &Entry { value: item.clone(), ..entry.clone() }, word, report),
                    None => wrong_type(&one, &Entry { value: item.clone(), ..entry.clone() }, report),
                }
            }
        }
        (Shape::Counts, Content::List(items)) if !items.is_empty() => {
            for item in items {
                let one = Key { shape: COUNT, ..*key };
                match item.scalar() {
                    Some(number) => scalar(&one, &Entry { value: item.clone(), ..entry.clone() }, number, report),
                    None => wrong_type(&one, &Entry { value: item.clone(), ..entry.clone() }, report),
                }
            }
        }
        (Shape::Properties, _) if node.entries().is_some() => {}
        (Shape::Channels, Content::List(items)) if !items.is_empty() => {
            items.iter().for_each(|item| channel_form::channel(item, report));
        }
        (Shape::Channels, Content::List(_)) => {
            let finding =
                Finding::new(&rules::EMPTY_VALUE, "`channels` is empty; a campaign needs at least one channel");
            report.at(
                &head(node),
                finding.help("add one channel per line, for example `- sms: { signature: …, message: … }`"),
            );
        }
        (Shape::Channels, Content::Map(entries)) => channel_form::without_dashes(entry, entries, report),
        (Shape::List { of, least, most }, Content::List(items)) => {
            if !(least..=most).contains(&items.len()) {
                let items_there = plural(items.len() as u64, "item");
                let message = format!("`{}` has {items_there}, but must have {least} to {most}", entry.key);
                let help = if items.len() < least { "add items, each with its own dash" } else { "remove items" };
                report.at(&entry.key_span, Finding::new(&rules::OUT_OF_RANGE, message).help(help));
            }
            for item in items {
                let item = Entry { key: key.name.into(), key_span: head(item), value: item.clone() };
                value(of, &item, report);
            }
        }
        (Shape::Secret, _) => secret(key, entry, report),
        (Shape::Secrets, Content::List(items)) if !items.is_empty() => {
            for item in items {
                secret(key, &Entry { value: item.clone(), ..entry.clone() }, report);
            }
        }
        (Shape::Secrets, _) => secret(key, entry, report),
        (_, Content::Scalar(scalar)) if scalar.is_null() => {
            let finding = Finding::new(&rules::EMPTY_VALUE, format!("`{}` has no value", entry.key));
            report.at(&entry.key_span, finding.help(protective::advice_for_nothing(key, &entry.key)));
        }
        (shape, Content::Scalar(scalar)) if !is_collection(shape) => self::scalar(key, entry, scalar, report),
        _ => wrong_type(key, entry, report),
    }
}

/// One of `Shape::Counts`.
const COUNT: Shape = Shape::Integer { least: 1, most: u32::MAX };

fn is_collection(shape: Shape) -> bool {
    match shape {
        Shape::Map(_)
        | Shape::Each(_)
        | Shape::Or { .. }
        | Shape::Texts
        | Shape::Columns
        | Shape::Headers
        | Shape::Properties
        | Shape::List { .. }
        | Shape::Channels
        | Shape::Secret
        | Shape::Secrets => true,
        Shape::Line
        | Shape::Template
        | Shape::Message
        | Shape::Integer { .. }
        | Shape::Bool
        | Shape::Seconds { .. }
        | Shape::Rate
        | Shape::Cap
        | Shape::Share
        | Shape::Amount
        | Shape::Words(_)
        | Shape::Counts
        | Shape::OneOf(_) => false,
    }
}

/// What stands between the quotes of typesetting, if a text begins and ends with some.
pub(crate) fn in_typographic_quotes(text: &str) -> Option<&str> {
    text.strip_prefix(TYPOGRAPHIC_QUOTES)?
        .strip_suffix(TYPOGRAPHIC_QUOTES)
        .filter(|inner| !inner.contains(TYPOGRAPHIC_QUOTES))
}

/// Quotes that text processors and phones make of those of the keyboard.
const TYPOGRAPHIC_QUOTES: [char; 7] =
    ['\u{201c}', '\u{201d}', '\u{201e}', '\u{201f}', '\u{2018}', '\u{2019}', '\u{201a}'];

fn scalar(key: &Key, entry: &Entry, scalar: &Scalar, report: &mut Report) {
    let text = scalar.text.as_str();
    if let Some(inner) = in_typographic_quotes(text).filter(|_| scalar.is_plain()) {
        let message = format!(
            "the curly quotes become part of the value of `{}`, because YAML does not treat them as quotes",
            entry.key
        );
        let finding = Finding::new(&rules::TYPOGRAPHIC_QUOTES, message);
        report.at(
            &entry.value.span,
            finding.help(format!("write `\"{inner}\"`; a text editor has replaced the straight quotes")),
        );
    }
    let within =
        |number: u32, least, most| if (least..=most).contains(&number) { None } else { Some(&rules::OUT_OF_RANGE) };
    let shape = if matches!(key.shape, Shape::Counts) { COUNT } else { key.shape };
    let problem = match shape {
        Shape::Line if text.trim().is_empty() => Some(&rules::EMPTY_VALUE),
        Shape::Line if text.trim_end().contains('\n') => Some(&rules::WRONG_TYPE),
        Shape::Integer { least, most } => integer(scalar).map_or(Some(&rules::WRONG_TYPE), |number| {
            number.map_or(Some(&rules::OUT_OF_RANGE), |number| within(number, least, most))
        }),
        Shape::Bool => (!core_scalar(scalar).is_boolean()).then_some(&rules::WRONG_TYPE),
        Shape::Seconds { least, most } => {
            text.parse().map_or(Some(&rules::WRONG_TYPE), |Seconds(number)| within(number, least, most))
        }
        Shape::Rate => text.parse::<Rate>().err().map(|_| &rules::WRONG_TYPE),
        Shape::Cap => cap(text).err().map(|_| &rules::WRONG_TYPE),
        Shape::Share => text.parse::<Share>().err().map(|_| &rules::WRONG_TYPE),
        Shape::Amount => text
            .parse::<Amount>()
            .map_or(Some(&rules::WRONG_TYPE), |price| price.is_negative().then_some(&rules::OUT_OF_RANGE)),
        Shape::OneOf(words) | Shape::Words(words) if words.contains(&text) => None,
        Shape::OneOf(_) | Shape::Words(_) => Some(&rules::UNKNOWN_VALUE),
        _ => None,
    };
    if let Some(rule) = problem {
        let message = format!("`{}` is `{text}`, but must be {}", entry.key, expected(key.shape));
        report.at(&entry.value.span, Finding::new(rule, message).help(advice(key, scalar)));
    }
}

/// The whole number that a value is, if it is one from 0 on; `Some(None)` if it is a larger one than any key takes.
fn integer(scalar: &Scalar) -> Option<Option<u32>> {
    if scalar.is_plain() && digits(&scalar.text) {
        return Some(scalar.text.parse().ok());
    }
    core_scalar(scalar).as_u64().map(|number| number.try_into().ok())
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn advice(key: &Key, scalar: &Scalar) -> String {
    let text = scalar.text.as_str();
    match key.shape {
        Shape::OneOf(words) | Shape::Words(words) => {
            protective::advice(key, text, words).unwrap_or_else(|| match did_you_mean(text, words.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("write, for example, `{}`", key.written()),
            })
        }
        Shape::Integer { .. } if digits(text) && !scalar.is_plain() => "remove the quotes around the number".into(),
        Shape::Share if digits(text) => format!("write `{text}%`"),
        Shape::Rate if digits(text) => format!("write `{text}/s` or `{text}/min`"),
        Shape::Seconds { most, .. } if most != u32::MAX => {
            let (written, most) = (key.written(), Seconds(most));
            format!("write, for example, `{written}`, at most `{most}`; `m` means minutes, `h` hours and `d` days")
        }
        _ => format!("write, for example, `{}`", key.written()),
    }
}

fn expected(shape: Shape) -> String {
    match shape {
        Shape::Line => "one line of text".into(),
        Shape::Template => "text".into(),
        Shape::Message => "a text value or `{ file: NAME }`".into(),
        Shape::Integer { least, most: u32::MAX } => format!("a whole number, {least} or more"),
        Shape::Integer { least, most } => format!("a whole number from {least} to {most}"),
        Shape::Counts => "a whole number of 1 or more, or a list of such numbers".into(),
        Shape::Bool => "`true` or `false`".into(),
        Shape::Seconds { least, most: u32::MAX } => format!("a duration of at least {}", Seconds(least)),
        Shape::Seconds { least, most } => format!("a duration from {} to {}", Seconds(least), Seconds(most)),
        Shape::Rate => "a rate such as `10/s` or `600/min`".into(),
        Shape::Cap => "a number of messages per period of at most 400 days, such as `2/7d`".into(),
        Shape::Share => "a percentage from `0%` to `100%`".into(),
        Shape::Amount => "an amount of money such as `0.80`".into(),
        Shape::OneOf(words) | Shape::Words(words) => list(words.iter().copied()),
        Shape::Map(_) | Shape::Properties => "a map".into(),
        Shape::Texts | Shape::Columns | Shape::Headers => "a map of names and text values".into(),
        Shape::Each(of) => format!("a map of names, each with {}", expected(of.shape)),
        Shape::Or { alone, .. } => format!("{}, or a map", expected(alone.shape)),
        Shape::List { .. } => "a list".into(),
        Shape::Channels => "a list of channels".into(),
        Shape::Secret | Shape::Secrets => "a reference such as `{ env: NAME }`".into(),
    }
}

fn wrong_type(key: &Key, entry: &Entry, report: &mut Report) {
    let node = &entry.value;
    let (message, help) = match (key.shape, &node.content) {
        (Shape::Template | Shape::Message, Content::Map(_)) if report.slice(&node.span).starts_with('{') => (
            format!("the value of `{}` starts with a brace, so YAML reads it as a map, not as text", entry.key),
            format!(
                "put the whole value in quotes: `{}: \"{}\"`",
                entry.key,
                report.slice(&node.span).replace('"', "'")
            ),
        ),
        (Shape::Map(keys), Content::Scalar(scalar)) => {
            let needed =
                keys.iter().find(|key| matches!(key.mark, Mark::Required | Mark::Choice)).map_or("", |key| key.name);
            let help = format!("write `{}: {{ {needed}: {} }}`", entry.key, scalar.text);
            let help =
                if needed.is_empty() { format!("write, for example, `{}`", key.written_as(&entry.key)) } else { help };
            (format!("`{}` must be a map, but is a single value", entry.key), help)
        }
        _ => (
            format!("`{}` must be {}, but is {}", entry.key, expected(key.shape), kind(node)),
            format!("write, for example, `{}`", key.written_as(&entry.key)),
        ),
    };
    report.at(&head(node), Finding::new(&rules::WRONG_TYPE, message).help(help));
}

/// Where a secret is kept. No finding repeats what was written: it may be the secret.
fn secret(key: &Key, entry: &Entry, report: &mut Report) {
    let known = |inner: &Entry| matches!(inner.key.as_str(), "env" | "file") && inner.value.scalar().is_some();
    let fine =
        entry.value.entries().is_some_and(|entries| matches!(entries, [one] if known(one) && !one.value.is_null()));
    if !fine {
        let message = format!("`{}` must say where to find the secret, not contain it", key.name);
        let help = format!("write `{0}: {{ env: NAME }}` or `{0}: {{ file: PATH }}`", key.name);
        report.at(&entry.key_span, Finding::new(&rules::SECRET, message).help(help));
    }
}

/// Texts by names, some of which are secrets and stand elsewhere.
fn headers(node: &Node, report: &mut Report) {
    for entry in node.entries().unwrap_or_default() {
        match &entry.value.content {
            Content::Map(_) => secret(&Key::new("headers", Shape::Secret, "{ env: NAME }"), entry, report),
            Content::Scalar(scalar) if !scalar.is_null() => {}
            _ => {
                let finding = Finding::new(&rules::WRONG_TYPE, format!("`{}` must be one text value", entry.key));
                report.at(&entry.key_span, finding.help("write the value, or `{ env: NAME }` for a secret"));
            }
        }
    }
}

fn texts(node: &Node, report: &mut Report) {
    node.entries().unwrap_or_default().iter().for_each(|entry| self::text(entry, report));
}

pub(super) fn text(entry: &Entry, report: &mut Report) {
    let (problem, help) = match &entry.value.content {
        Content::Scalar(scalar) if !scalar.is_null() => return,
        Content::Scalar(_) => ("has no value", "write `\"\"` for an empty value"),
        Content::List(_) | Content::Map(_) => ("must be one text value", "put the value in quotes"),
    };
    report.at(&entry.key_span, Finding::new(&rules::WRONG_TYPE, format!("`{}` {problem}", entry.key)).help(help));
}

/// What a node is, in words.
fn kind(node: &Node) -> &'static str {
    match &node.content {
        Content::Scalar(scalar) if scalar.is_null() => "empty",
        Content::Scalar(_) => "a single value",
        Content::List(_) => "a list",
        Content::Map(_) => "a map",
    }
}

/// The place of a node that is shown: its first key, item or character rather than all its lines.
pub(super) fn head(node: &Node) -> Range<usize> {
    match &node.content {
        Content::Scalar(_) => node.span.clone(),
        Content::List(items) => items.first().map_or_else(|| node.span.clone(), head),
        Content::Map(entries) => entries.first().map_or_else(|| node.span.clone(), |entry| entry.key_span.clone()),
    }
}
