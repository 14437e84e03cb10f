//! The names that a campaign's documents can use, for completions and explanations.

use campaign_core::domain::variable::is_variable;
use campaign_manifest::PathStep;
use campaign_runs::SampledColumn;

use crate::yaml_outline::YamlOutline;

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

/// The expression for a column in a template.
pub(crate) fn column_expression(column: &SampledColumn) -> String {
    let SampledColumn { name, header, .. } = column;
    if is_variable(name) {
        return name.clone();
    }
    let quote = if header.contains('"') { '\'' } else { '"' };
    format!("recipient[{quote}{header}{quote}]")
}

/// The header and the sample values of a column, for people.
pub(crate) fn describe_column(column: &SampledColumn) -> String {
    let SampledColumn { header, samples, .. } = column;
    let shown: Vec<String> = samples.iter().map(|sample| format!("`{}`", sample.replace('`', "'"))).collect();
    match shown.as_slice() {
        [] => format!("Column `{header}` in the list."),
        shown => format!("Column `{header}` in the list, for example {}.", shown.join(", ")),
    }
}

/// The names of senders in a campaign file or a scenario.
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
