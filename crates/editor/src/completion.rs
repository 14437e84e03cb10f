//! Code completion for keys, values, and the names in templates.

use std::ops::Range;

use campaign_content::message::{FILTERS, filter_arguments};
use campaign_manifest::{KeyPlace, KeySpec, PathStep, SANDBOX};

use crate::DocumentKind;
use crate::cursor::{TemplateSlot, YamlCursor, YamlOutline, YamlSlot, find_template_cursor, find_word};
use crate::explanation::{BUILT_IN, KnownNames, column_expression, describe_column, describe_key};

/// The kind of a completion, which editors show as an icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompletionKind {
    Key,
    Value,
    Column,
    Constant,
    Filter,
    Tag,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) label: String,
    pub(crate) kind: CompletionKind,
    /// The explanation, in Markdown.
    pub(crate) doc: String,
    /// The text that replaces [`Completions::word`].
    pub(crate) insert: String,
}

/// The completions at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Completions {
    /// The range of bytes that a completion replaces.
    pub(crate) word: Range<usize>,
    pub(crate) items: Vec<Completion>,
}

/// The tags of templates, each with its explanation.
const TAGS: [(&str, &str); 8] = [
    ("if", "Shows part of the text if a condition is true."),
    ("elif", "Another condition, tested if the previous ones are false."),
    ("else", "The text for all other cases."),
    ("endif", "The end of `if`."),
    ("for", "Repeats part of the text for each item."),
    ("endfor", "The end of `for`."),
    ("set", "Sets a template variable."),
    ("include", "Inserts another template."),
];

/// The keys under `recipients.consent` whose value is a header of the list.
const HEADER_KEYS: [&str; 4] = ["column", "at", "source", "wording"];

impl Completion {
    fn new(label: impl Into<String>, kind: CompletionKind, doc: impl Into<String>) -> Self {
        let label = label.into();
        Self { insert: label.clone(), label, kind, doc: doc.into() }
    }
}

/// The completions at the cursor of a document; `cursor` is a byte offset.
pub(crate) fn complete(kind: DocumentKind, text: &str, cursor: usize, names: &KnownNames) -> Option<Completions> {
    if matches!(kind, DocumentKind::Template | DocumentKind::Campaign)
        && let Some(template_cursor) = find_template_cursor(text, cursor)
    {
        let items = match template_cursor.slot {
            TemplateSlot::Expression => complete_template_names(names),
            TemplateSlot::Filter => complete_filters(),
            TemplateSlot::Tag => TAGS.map(|(tag, doc)| Completion::new(tag, CompletionKind::Tag, doc)).into(),
            TemplateSlot::Include => Vec::new(),
        };
        return Some(Completions { word: template_cursor.word, items });
    }
    let top = kind.top_place()?;
    let outline = YamlOutline::read(text, cursor);
    let yaml_cursor = outline.cursor.as_ref()?;
    if is_condition(&yaml_cursor.path) && yaml_cursor.slot == YamlSlot::Value {
        return Some(Completions { word: find_word(text, cursor), items: complete_template_names(names) });
    }
    let place = top.follow(&yaml_cursor.path);
    let items = match (yaml_cursor.slot, place) {
        (YamlSlot::Key, Some(place)) => {
            let mut items = complete_keys(text, &outline, yaml_cursor, place, names);
            // An indented line can also begin the value of the key above.
            if items.is_empty() || matches!(yaml_cursor.path.last(), Some(PathStep::Item(_))) {
                items.extend(complete_values(yaml_cursor, place, names));
            }
            items
        }
        (YamlSlot::Value, Some(place)) => {
            let mut items = complete_values(yaml_cursor, place, names);
            if text[..cursor.min(text.len())].ends_with(':') {
                items.iter_mut().for_each(|item| item.insert.insert(0, ' '));
            }
            items
        }
        (_, None) => Vec::new(),
    };
    Some(Completions { word: yaml_cursor.word.clone(), items })
}

/// Whether a path leads to the condition `recipients.where`.
fn is_condition(path: &[PathStep]) -> bool {
    matches!(path, [PathStep::Key(recipients), PathStep::Key(key)] if recipients == "recipients" && key == "where")
}

/// Completions for the keys of the map at the cursor, except keys that the map already has.
fn complete_keys(
    text: &str,
    outline: &YamlOutline,
    cursor: &YamlCursor,
    place: KeyPlace,
    names: &KnownNames,
) -> Vec<Completion> {
    let used: Vec<&str> = outline.sibling_key_names(cursor).collect();
    let has_colon = text[cursor.word.end..].trim_start_matches(' ').starts_with(':');
    let keys = place.keys().iter().filter(|key| !used.contains(&key.name));
    let mut items: Vec<Completion> = keys.map(|key| complete_key(key, cursor.is_flow, has_colon)).collect();
    if matches!(cursor.path.last(), Some(PathStep::Key(key)) if key == "given") {
        let columns = names.columns.iter().filter(|column| !used.contains(&column.name.as_str()));
        items.extend(columns.map(|column| Completion {
            insert: if has_colon { column.name.clone() } else { format!("{}: ", column.name) },
            ..Completion::new(&column.name, CompletionKind::Column, describe_column(column))
        }));
    }
    items
}

fn complete_key(key: &'static KeySpec, is_flow: bool, has_colon: bool) -> Completion {
    let insert = match has_colon {
        true => key.name.to_owned(),
        false if key.place().is_nested() && !is_flow => format!("{}:", key.name),
        false => format!("{}: ", key.name),
    };
    Completion { insert, ..Completion::new(key.name, CompletionKind::Key, describe_key(key)) }
}

/// Completions for the value at the cursor.
fn complete_values(cursor: &YamlCursor, place: KeyPlace, names: &KnownNames) -> Vec<Completion> {
    let build_value = |word: &str, doc: &str| Completion::new(word, CompletionKind::Value, doc);
    let doc = place.key().map(describe_key).unwrap_or_default();
    let mut items: Vec<Completion> = place.words().into_iter().map(|word| build_value(word, &doc)).collect();
    let path: Vec<&str> = cursor.path.iter().filter_map(key_name).collect();
    let is_item = matches!(cursor.path.last(), Some(PathStep::Item(_)));
    match path.as_slice() {
        ["gateway"] => {
            items.push(build_value(SANDBOX, "The built-in gateway for rehearsals."));
            items.extend(
                names.gateways.iter().map(|(name, address)| build_value(name, &format!("Profile for `{address}`."))),
            );
        }
        ["channels"] | ["variants", _, "channels"] if is_item && cursor.slot == YamlSlot::Value => {
            items.extend(place.keys().iter().map(|key| build_value(key.name, &describe_key(key))));
        }
        [.., "signature"] => {
            let sender_doc = "A sender name from this file or a neighbouring one.";
            items.extend(names.senders.iter().map(|name| build_value(name, sender_doc)));
        }
        ["recipients", "columns", _] => items.extend(complete_headers(names)),
        ["recipients", "consent", key] if HEADER_KEYS.contains(key) => items.extend(complete_headers(names)),
        [.., "by"] | ["delivery", "window", "zone"] => {
            let columns = names.columns.iter();
            items.extend(
                columns.map(|column| Completion::new(&column.name, CompletionKind::Column, describe_column(column))),
            );
        }
        _ => {}
    }
    items
}

fn key_name(step: &PathStep) -> Option<&str> {
    match step {
        PathStep::Key(name) => Some(name),
        PathStep::Item(_) => None,
    }
}

/// Completions for the headers of the list, in quotes.
fn complete_headers(names: &KnownNames) -> Vec<Completion> {
    let with_header = names.columns.iter().filter(|column| !column.header.is_empty());
    let items = with_header.map(|column| Completion {
        insert: format!("\"{}\"", column.header.replace('\\', "\\\\").replace('"', "\\\"")),
        ..Completion::new(&column.header, CompletionKind::Column, describe_column(column))
    });
    items.collect()
}

/// Completions for the names that a template can use.
fn complete_template_names(names: &KnownNames) -> Vec<Completion> {
    let columns = names.columns.iter().map(|column| Completion {
        insert: column_expression(column),
        ..Completion::new(&column.name, CompletionKind::Column, describe_column(column))
    });
    let constants = names.constants.iter();
    let constants = constants.map(|(name, value)| {
        Completion::new(name, CompletionKind::Constant, format!("Constant: `{}`", value.replace('`', "'")))
    });
    let tables = names.tables.iter();
    let tables = tables.map(|name| Completion::new(name, CompletionKind::Constant, "A table of the campaign."));
    let built_in = BUILT_IN.map(|(name, doc)| Completion::new(name, CompletionKind::Constant, doc));
    columns.chain(constants).chain(tables).chain(built_in).collect()
}

fn complete_filters() -> Vec<Completion> {
    let with_doc = FILTERS.into_iter().map(|filter| {
        let (required, optional) = filter_arguments(filter);
        let arguments = required.iter().map(|name| (*name).to_owned());
        let arguments: Vec<String> = arguments.chain(optional.iter().map(|name| format!("[{name}]"))).collect();
        let doc = match arguments.as_slice() {
            [] => "A filter without arguments.".to_owned(),
            arguments => format!("Arguments: `{}`. Those in brackets are optional.", arguments.join(", ")),
        };
        Completion::new(filter, CompletionKind::Filter, doc)
    });
    with_doc.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_runs::SampledColumn;

    fn names() -> KnownNames {
        let column = |name: &str, header: &str| SampledColumn {
            name: name.to_owned(),
            header: header.to_owned(),
            samples: vec!["gold".to_owned()],
        };
        KnownNames {
            columns: vec![column("plan", "plan"), column("First name", "First name")],
            constants: vec![("shop".to_owned(), "Olena & Co".to_owned())],
            tables: vec!["stores".to_owned()],
            gateways: vec![("production".to_owned(), "https://gateway.example".to_owned())],
            senders: vec!["OlenaCo".to_owned()],
        }
    }

    /// The labels and the inserted texts at `¦`.
    fn find(kind: DocumentKind, marked: &str) -> Vec<(String, String)> {
        let cursor = marked.find('¦').unwrap();
        let completions = complete(kind, &marked.replace('¦', ""), cursor, &names());
        completions
            .into_iter()
            .flat_map(|completions| completions.items)
            .map(|item| (item.label, item.insert))
            .collect()
    }

    #[test]
    fn completions_match_the_cursor_position() {
        use DocumentKind::{Campaign, Gateways, Scenario, Template};
        for (kind, marked, label, insert) in [
            (Campaign, "¦", "recipients", "recipients:"),
            (Campaign, "na¦", "name", "name: "),
            (Campaign, "na¦me: x", "name", "name"),
            (Campaign, "recipients: { ¦ }", "file", "file: "),
            (Campaign, "recipients:\n  ¦", "columns", "columns:"),
            (Campaign, "purpose: ¦", "service", "service"),
            (Campaign, "purpose:¦", "service", " service"),
            (Campaign, "mandatory: ¦", "true", "true"),
            (Campaign, "channels:\n  - ¦", "sms", "sms:"),
            (Campaign, "channels: [¦]", "sms", "sms"),
            (Campaign, "channels:\n  - sms:\n      ¦", "signature", "signature: "),
            (Campaign, "channels:\n  - sms: { signature: ¦", "OlenaCo", "OlenaCo"),
            (Campaign, "channels:\n  - sms: { message: \"Hi {{ ¦\" }", "plan", "plan"),
            (Campaign, "channels:\n  - sms: { message: \"Hi {{ ¦\" }", "First name", "recipient[\"First name\"]"),
            (Campaign, "channels:\n  - sms: { message: \"Hi {{ plan | ¦\" }", "upper", "upper"),
            (Campaign, "recipients:\n  where: pl¦", "plan", "plan"),
            (Campaign, "recipients:\n  where: plan == \"gold\" and sh¦", "shop", "shop"),
            (Campaign, "recipients:\n  columns: { first: ¦ }", "First name", "\"First name\""),
            (Campaign, "gateway: ¦", "production", "production"),
            (Campaign, "gateway: ¦", "sandbox", "sandbox"),
            (Campaign, "tests:\n  - name: x\n    given: { ¦ }", "plan", "plan: "),
            (Campaign, "tests:\n  - expect: { channels: [¦] }", "viber", "viber"),
            (Template, "{% ¦", "include", "include"),
            (Template, "{{ sh¦ }}", "shop", "shop"),
            (Template, "{% if ¦ %}", "today", "today"),
            (Gateways, "main:\n  ¦", "base_url", "base_url: "),
            (Gateways, "main:\n  api_key: { ¦ }", "env", "env: "),
            (Scenario, "se¦", "seed", "seed: "),
        ] {
            let found = find(kind, marked);
            assert!(found.contains(&(label.to_owned(), insert.to_owned())), "{marked}: {label} {insert}: {found:?}");
        }
    }

    #[test]
    fn used_keys_and_unrelated_positions_get_no_completions() {
        use DocumentKind::{Campaign, Other, Template};
        for (kind, marked, label) in [
            (Campaign, "name: x\n¦", "name"),
            (Campaign, "recipients:\n  file: a.csv\n  ¦", "file"),
            (Campaign, "recipients:\n  ¦\n  file: a.csv", "file"),
            (Campaign, "# ¦", "name"),
            (Campaign, "name: ¦", "sandbox"),
            (Template, "Hello ¦", "plan"),
            (Other, "¦", "name"),
        ] {
            let found = find(kind, marked);
            assert!(!found.iter().any(|(known, _)| known == label), "{marked}: {found:?}");
        }
    }
}
