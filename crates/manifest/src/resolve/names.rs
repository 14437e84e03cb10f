//! Names of the campaign, its columns and constants, and its region.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use super::Resolver;
use crate::document::ConfigSection;
use crate::keys::PHONE_COLUMN;
use crate::yaml::MapEntry;
use campaign_core::domain::variable::{is_built_in, is_reserved, is_variable};
use campaign_core::domain::{ParseRegionError, Region};
use campaign_core::finding::{Finding, rules};

/// Whether a name is 1 to 64 of a-z, 0-9 and `-`.
#[must_use]
pub fn is_slug(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

/// The most similar valid name: 1 to 64 of a-z, 0-9 and `-`.
#[must_use]
pub fn to_slug(name: &str) -> String {
    let mapped: String = name.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let words: Vec<&str> = mapped.split('-').filter(|word| !word.is_empty()).collect();
    let slug: String = words.join("-").chars().take(64).collect();
    if slug.is_empty() { "my-campaign".into() } else { slug }
}

impl Resolver<'_> {
    /// The campaign's name: from its key or the file name.
    pub(super) fn resolve_name(&mut self, root: ConfigSection<'_>, path: &Path) -> Option<String> {
        let Some((name, span)) = root.typed_text("name") else {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            if is_slug(&stem) {
                return Some(stem);
            }
            let message = format!("the file name `{stem}` is not a valid campaign name");
            let help =
                format!("add `name: {}`, or rename the file; a name consists of a-z, 0-9 and `-`", to_slug(&stem));
            self.report.add(&(0..0), Finding::new(&rules::CAMPAIGN_NAME, message).help(help));
            return None;
        };
        if is_slug(name) {
            return Some(name.to_owned());
        }
        let message = format!("`{name}` is not a valid campaign name: use 1 to 64 characters from a-z, 0-9 and `-`");
        self.report
            .add(span, Finding::new(&rules::CAMPAIGN_NAME, message).help(format!("write `name: {}`", to_slug(name))));
        None
    }

    /// The region with this code.
    pub(super) fn resolve_region(&mut self, recipients: ConfigSection<'_>) -> Option<Region> {
        let (code, span) = recipients.typed_text("region")?;
        let refuse = |error: ParseRegionError| {
            let finding = Finding::new(&rules::UNKNOWN_REGION, format!("unknown region `{code}`"));
            self.report.add(span, finding.help(error.suggest_fix()));
        };
        code.parse().map_err(refuse).ok()
    }

    /// Names in templates with the headers of their columns.
    pub(super) fn resolve_columns(&mut self, recipients: ConfigSection<'_>) -> Vec<(String, String)> {
        let entries = recipients.find_value("columns").and_then(|node| node.as_entries()).unwrap_or_default();
        if let Some(columns) = self.swap_columns(entries) {
            return columns;
        }
        let mut columns = Vec::new();
        for entry in entries {
            self.check_variable_name(&entry.key, &entry.key_span);
            let several = entry.value.as_items().filter(|_| entry.key == PHONE_COLUMN);
            for header in several.unwrap_or(std::slice::from_ref(&entry.value)) {
                let Some(header) = header.as_scalar().map(|scalar| scalar.text.trim()) else { continue };
                if header.is_empty() {
                    let finding = Finding::new(&rules::EMPTY_VALUE, format!("`{}` does not name a header", entry.key));
                    self.report.add(&entry.key_span, finding.help("write the column's header exactly as in the list"));
                }
                columns.push((entry.key.clone(), header.to_owned()));
            }
        }
        columns
    }

    /// The columns if headers and names are swapped, which is reported once with the lines to write. `None` if they are
    /// in order.
    fn swap_columns(&mut self, entries: &[MapEntry]) -> Option<Vec<(String, String)>> {
        let is_header =
            |entry: &MapEntry| !is_variable(&entry.key) && !is_built_in(&entry.key) && !is_reserved(&entry.key);
        let names = entries.iter().map(|entry| entry.value.as_scalar().map(|name| name.text.trim()));
        let names: Vec<&str> = names.collect::<Option<_>>()?;
        let has_names =
            names.iter().all(|name| is_variable(name) && name.starts_with(|c: char| c.is_ascii_lowercase()));
        let is_swapped = match names.contains(&PHONE_COLUMN) {
            true => entries.iter().all(|entry| entry.key != PHONE_COLUMN),
            false => entries.len() > 1 && entries.iter().all(is_header),
        };
        let first = entries.iter().find(|entry| is_header(entry)).filter(|_| has_names && is_swapped)?;
        let columns: Vec<(String, String)> =
            names.iter().zip(entries).map(|(name, entry)| ((*name).to_owned(), entry.key.trim().to_owned())).collect();
        let lines: Vec<String> = columns.iter().map(|(name, header)| format!("{name}: {header:?}")).collect();
        let message = "under `columns`, the headers of the list come before the names";
        let help = format!("write the names first: `columns: {{ {} }}`", lines.join(", "));
        self.report.add(&first.key_span, Finding::new(&rules::VARIABLE_NAME, message).help(help));
        Some(columns)
    }

    /// The constants, as they were typed.
    pub(super) fn resolve_vars(
        &mut self,
        root: ConfigSection<'_>,
        columns: &[(String, String)],
    ) -> Vec<(String, String)> {
        let taken: HashMap<&str, &str> =
            columns.iter().map(|(name, header)| (name.as_str(), header.as_str())).collect();
        let entries = root.find_value("vars").and_then(|node| node.as_entries()).unwrap_or_default();
        let mut vars = Vec::new();
        for entry in entries {
            self.check_variable_name(&entry.key, &entry.key_span);
            if let Some(header) = taken.get(entry.key.as_str()) {
                let message = format!("`{}` is the name of a constant and also of the column `{header}`", entry.key);
                let finding = Finding::new(&rules::NAME_CLASH, message).help("rename one of them");
                self.report.add(&entry.key_span, finding);
            }
            let Some(scalar) = entry.value.as_scalar() else {
                vars.push((entry.key.clone(), String::new()));
                self.gaps.any = true;
                continue;
            };
            self.refuse_cut_text("vars", &entry.value);
            if scalar.text.contains("{{") || scalar.text.contains("{%") {
                let finding = Finding::new(
                    &rules::TEMPLATE_IN_CONSTANT,
                    format!("`{}` is a constant, so it cannot contain a placeholder", entry.key),
                );
                self.report.add(
                    &entry.value.span,
                    finding.help("move the placeholder into the templates that use this constant"),
                );
            }
            vars.push((entry.key.clone(), scalar.text.clone()));
        }
        vars
    }

    /// Reports a name that texts cannot use.
    pub(super) fn check_variable_name(&mut self, name: &str, span: &Range<usize>) {
        let finding = if is_variable(name) {
            return;
        } else if is_built_in(name) {
            Finding::new(&rules::NAME_CLASH, format!("`{name}` is a built-in name in templates"))
                .help("choose another name")
        } else if is_reserved(name) {
            Finding::new(&rules::VARIABLE_NAME, format!("`{name}` is a keyword of the template language"))
                .help("choose another name")
        } else {
            Finding::new(&rules::VARIABLE_NAME, format!("`{name}` is not a valid name in templates"))
                .help("use a-z, A-Z, 0-9 and `_`, starting with a letter, as in `first_name`")
        };
        self.report.add(span, finding);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_name_becomes_a_valid_slug() {
        for (stem, name) in [("Autumn Sale", "autumn-sale"), ("привіт", "my-campaign"), ("a__b--c.v2", "a-b-c-v2")]
        {
            assert_eq!(to_slug(stem), name);
            assert!(is_slug(&to_slug(stem)));
        }
        assert!(is_slug(&to_slug(&"x".repeat(100))));
        assert!(!is_slug("") && !is_slug("A") && !is_slug("a_b") && !is_slug(&"x".repeat(65)));
    }
}
