//! Explanations of keys, values, filters and rules, and of the names that a campaign's documents can use, in Markdown.

use std::ops::Range;

use campaign_content::message::{FILTERS, filter_arguments};
use campaign_core::domain::variable::is_variable;
use campaign_core::finding::{Rule, severity_word};
use campaign_engine::check::rules::all_rules;
use campaign_manifest::{KeySpec, PathStep};
use campaign_runs::SampledColumn;

use crate::DocumentKind;
use crate::cursor::{TemplateSlot, YamlOutline, YamlSlot, find_template_cursor, find_word};

/// The names that one document can use.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownNames {
    /// The columns of the list.
    pub(crate) columns: Vec<SampledColumn>,
    /// The constants under `vars`, with their values.
    pub(crate) constants: Vec<(String, String)>,
    /// The lookup tables.
    pub(crate) tables: Vec<String>,
    /// The gateway profiles, each with its address.
    pub(crate) gateways: Vec<(String, String)>,
    /// The sender names in this and neighbouring files.
    pub(crate) senders: Vec<String>,
}

/// The variables of every template, with their meaning.
pub(crate) const BUILT_IN: [(&str, &str); 4] = [
    ("campaign", "The campaign's name."),
    ("today", "The date of the run, such as `2026-12-01`."),
    ("row", "The number of the recipient's row in the list."),
    ("recipient", "All cells in the row, accessed by header: `recipient[\"First name\"]`."),
];

/// An explanation and the range of bytes that it explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Explanation {
    pub(crate) span: Range<usize>,
    pub(crate) text: String,
}

/// Explains the key, value, name or filter at the cursor; `cursor` is a byte offset.
pub(crate) fn explain(kind: DocumentKind, text: &str, cursor: usize, names: &KnownNames) -> Option<Explanation> {
    if matches!(kind, DocumentKind::Template | DocumentKind::Campaign)
        && let Some(template_cursor) = find_template_cursor(text, cursor)
    {
        let word = text.get(template_cursor.word.clone())?;
        let explained = match template_cursor.slot {
            TemplateSlot::Filter => explain_filter(word),
            TemplateSlot::Expression => explain_name(word, names),
            TemplateSlot::Tag | TemplateSlot::Include => None,
        };
        return Some(Explanation { span: template_cursor.word, text: explained? });
    }
    let top = kind.top_place()?;
    let yaml_cursor = YamlOutline::read(text, cursor).cursor?;
    let word = text.get(yaml_cursor.word.clone())?.trim_matches(['"', '\'']);
    if word.is_empty() {
        return None;
    }
    let mut path = yaml_cursor.path.clone();
    if yaml_cursor.slot == YamlSlot::Key {
        path.push(PathStep::Key(word.to_owned()));
    }
    if let [PathStep::Key(recipients), PathStep::Key(key)] = path.as_slice()
        && (recipients.as_str(), key.as_str(), yaml_cursor.slot) == ("recipients", "where", YamlSlot::Value)
    {
        let span = find_word(text, cursor);
        let text = explain_name(text.get(span.clone())?, names)?;
        return Some(Explanation { span, text });
    }
    let explained = match (path.as_slice(), yaml_cursor.slot) {
        ([PathStep::Key(key)], YamlSlot::Value) if key == "gateway" => names
            .gateways
            .iter()
            .find(|(name, _)| name == word)
            .map(|(name, address)| format!("**`{name}`**: the gateway profile for `{address}`.")),
        ([PathStep::Key(recipients), PathStep::Key(columns), PathStep::Key(_)], _)
            if recipients == "recipients" && columns == "columns" =>
        {
            let column = names.columns.iter().find(|column| column.header == word || column.name == word);
            column.map(describe_column)
        }
        _ => None,
    };
    let text = explained.or_else(|| top.follow(&path)?.key().map(describe_key))?;
    Some(Explanation { span: yaml_cursor.word, text })
}

/// The purpose of a key with its example, default and values.
pub(crate) fn describe_key(key: &'static KeySpec) -> String {
    let mut text = format!("**`{}`**: {}", key.name, key.doc);
    let words = key.place().words();
    if !words.is_empty() {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        text += &format!("\n\nValues: {}", words.join(", "));
    }
    if let Some(default) = key.default {
        text += &format!("\n\nDefault: `{default}`");
    }
    text + &format!("\n\nExample: `{}: {}`", key.name, key.example)
}

fn explain_name(word: &str, names: &KnownNames) -> Option<String> {
    if let Some(column) = names.columns.iter().find(|column| column.name == word) {
        return Some(describe_column(column));
    }
    if let Some((name, value)) = names.constants.iter().find(|(name, _)| name == word) {
        return Some(format!("Constant `{name}`: `{}`", value.replace('`', "'")));
    }
    if names.tables.iter().any(|table| table == word) {
        return Some(format!("Table `{word}`, defined under `data` in the campaign."));
    }
    BUILT_IN.iter().find(|(name, _)| *name == word).map(|(name, doc)| format!("**`{name}`**: {doc}"))
}

fn explain_filter(word: &str) -> Option<String> {
    FILTERS.contains(&word).then(|| {
        let (required, optional) = filter_arguments(word);
        let list = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        match (required, optional) {
            ([], []) => format!("Filter `{word}`, without arguments."),
            (required, []) => format!("Filter `{word}`. Arguments: {}.", list(required)),
            ([], optional) => format!("Filter `{word}`. Optional arguments: {}.", list(optional)),
            (required, optional) => {
                format!("Filter `{word}`. Arguments: {}. Optional arguments: {}.", list(required), list(optional))
            }
        }
    })
}

/// The rule with this id.
pub(crate) fn find_rule(id: &str) -> Option<&'static Rule> {
    all_rules().find(|rule| rule.id == id)
}

/// The cause, the remedy and an example of a rule.
pub(crate) fn explain_rule(rule: &Rule) -> String {
    let example = rule.text.example.join("\n");
    let (id, severity, cause, fix) = (rule.id, severity_word(rule.severity), rule.text.cause, rule.text.fix);
    format!("**`{id}`** · {severity}\n\n{cause}\n\nFix: {fix}\n\nExample:\n```yaml\n{example}\n```")
}

/// The expression with which a template refers to a column.
pub(crate) fn column_expression(column: &SampledColumn) -> String {
    let SampledColumn { name, header, .. } = column;
    if is_variable(name) {
        return name.clone();
    }
    let quote = if header.contains('"') { '\'' } else { '"' };
    format!("recipient[{quote}{header}{quote}]")
}

/// The header and the sample values of a column, in Markdown.
pub(crate) fn describe_column(column: &SampledColumn) -> String {
    let SampledColumn { header, samples, .. } = column;
    let quoted_samples: Vec<String> = samples.iter().map(|sample| format!("`{}`", sample.replace('`', "'"))).collect();
    match quoted_samples.as_slice() {
        [] => format!("Column `{header}` in the list."),
        quoted_samples => format!("Column `{header}` in the list, for example {}.", quoted_samples.join(", ")),
    }
}

/// The sender names in a campaign file or a scenario.
pub(crate) fn find_senders(text: &str) -> Vec<String> {
    let outline = YamlOutline::read(text, usize::MAX);
    let is_senders = |path: &[PathStep]| matches!(path.last(), Some(PathStep::Key(key)) if key == "senders");
    let mut senders = Vec::new();
    for key in &outline.keys {
        let value = text.get(key.value.clone()).unwrap_or_default().trim();
        let name = match key.name.as_str() {
            "signature" => value.trim_matches(['"', '\'']),
            name if is_senders(&key.parent) => name,
            _ => continue,
        };
        let is_plain = !name.is_empty() && !name.contains("{{") && !name.starts_with(['{', '[', '|', '>']);
        if is_plain && !senders.iter().any(|known| known == name) {
            senders.push(name.to_owned());
        }
    }
    senders
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The explanation at `¦`.
    fn find(kind: DocumentKind, marked: &str) -> Option<String> {
        let plan = SampledColumn { name: "plan".into(), header: "Plan".into(), samples: vec!["gold".into()] };
        let names = KnownNames {
            columns: vec![plan],
            constants: vec![("shop".into(), "Olena & Co".into())],
            gateways: vec![("production".into(), "https://gateway.example".into())],
            ..KnownNames::default()
        };
        let cursor = marked.find('¦').unwrap();
        explain(kind, &marked.replace('¦', ""), cursor, &names).map(|explained| explained.text)
    }

    #[test]
    fn explanation_is_about_the_word_at_the_cursor() {
        use DocumentKind::{Campaign, Gateways, Template};
        for (kind, marked, words) in [
            (Campaign, "na¦me: x", "The campaign's name"),
            (Campaign, "purpose: serv¦ice", "Values: `marketing`, `service`"),
            (Campaign, "recipients: { reg¦ion: UA }", "ISO 3166"),
            (Campaign, "channels:\n  - sms: { sig¦nature: X }", "**`signature`**"),
            (Campaign, "channels:\n  - s¦ms: { signature: X }", "**`sms`**"),
            (Campaign, "gateway: prod¦uction", "`https://gateway.example`"),
            (Campaign, "recipients: { columns: { plan: Pl¦an } }", "for example `gold`"),
            (Campaign, "recipients:\n  where: pl¦an == \"gold\"", "for example `gold`"),
            (Campaign, "vars: { a: \"{{ pl¦an }}\" }", "Column `Plan`"),
            (Template, "Hi {{ sh¦op }}", "`Olena & Co`"),
            (Template, "Hi {{ plan | trun¦cate(length=3) }}", "Arguments: `length`. Optional arguments: `end`"),
            (Template, "Hi {{ to¦day }}", "The date of the run"),
            (Gateways, "main:\n  ra¦te: 10/s", "rate limit"),
            (Gateways, "ma¦in:\n  rate: 10/s", "gateway profile"),
        ] {
            let found = find(kind, marked).unwrap_or_default();
            assert!(found.contains(words), "{marked}: {found}");
        }
        for (kind, marked) in [
            (Campaign, "¦"),
            (Campaign, "# na¦me"),
            (Campaign, "unknown¦: x"),
            (Template, "pl¦an"),
            (Template, "{{ other¦ }}"),
            (DocumentKind::Other, "na¦me: x"),
        ] {
            assert_eq!(find(kind, marked), None, "{marked}");
        }
    }

    #[test]
    fn every_rule_is_explained_by_its_id() {
        for rule in all_rules() {
            let text = explain_rule(find_rule(rule.id).expect("a rule"));
            assert!(text.contains(rule.text.fix) && text.contains(rule.id), "{text}");
        }
        assert!(find_rule("no-such-rule").is_none());
    }

    #[test]
    fn senders_are_found_in_campaigns_and_scenarios() {
        let campaign = "channels:\n  - sms: { signature: \"Olena & Co\", message: x }\n  - viber:\n      signature: Shop\n  \
            - rcs: { signature: \"{{ shop }}\" }\n";
        assert_eq!(find_senders(campaign), ["Olena & Co", "Shop"]);
        assert_eq!(find_senders("accounts:\n  - senders: { Shop: Checked, Other: New }\n"), ["Shop", "Other"]);
    }

    #[test]
    fn header_that_is_not_an_identifier_uses_index_syntax() {
        let column = |name: &str, header: &str| SampledColumn {
            name: name.to_owned(),
            header: header.to_owned(),
            samples: vec!["a".into(), "b`c".into()],
        };
        assert_eq!(column_expression(&column("plan", "Plan")), "plan");
        assert_eq!(column_expression(&column("First name", "First name")), "recipient[\"First name\"]");
        assert_eq!(column_expression(&column("a\"b", "a\"b")), "recipient['a\"b']");
        let described = describe_column(&column("plan", "Plan"));
        assert_eq!(described, "Column `Plan` in the list, for example `a`, `b'c`.");
    }
}
