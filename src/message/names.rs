//! The names that a text may use, and what each of them means.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::table::LookupTable;
use crate::domain::Language;
use crate::domain::variable::{CAMPAIGN_VARIABLES, ROW_VARIABLES, is_reserved, is_variable};
use crate::finding::{did_you_mean, join_alternatives};

/// How many names a help text lists at most.
const MAX_LISTED: usize = 12;

/// What texts may name: the columns of the recipients, the campaign's vars and a few of our own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateNames {
    /// The headers as they stand in the file; the index is the column.
    pub headers: Vec<String>,
    /// The template name of each column; the header itself where none was chosen.
    pub names: Vec<String>,
    /// The campaign's constants.
    pub vars: Vec<(String, String)>,
    /// The tables that texts look something up in, by name.
    pub tables: Vec<(String, Arc<LookupTable>)>,
    /// The campaign's name.
    pub campaign: String,
    /// The day of the run, `YYYY-MM-DD`.
    pub today: String,
    /// The language in which texts write amounts and dates.
    pub language: Language,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameMeaning {
    /// The cell of that column.
    Column(usize),
    /// The constant of that index in [`Names::vars`].
    Var(usize),
    /// The table of that index in [`Names::tables`].
    Table(usize),
    /// `row`, `recipient`, `campaign` or `today`.
    Ours,
}

/// Whose text it is, which decides what it may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameScope {
    /// One recipient's: everything.
    Recipient,
    /// The whole campaign's: only what is the same for everybody.
    Campaign,
}

impl TemplateNames {
    /// Everything that `name` could mean; one meaning is right, several are a clash. A word of the language means no column.
    pub(super) fn find_meanings(&self, name: &str, reach: NameScope) -> Vec<NameMeaning> {
        if is_reserved(name) {
            return Vec::new();
        }
        let columns = self.names.iter().enumerate().filter(|(_, column)| *column == name);
        let columns = columns.map(|(index, _)| NameMeaning::Column(index)).filter(|_| reach == NameScope::Recipient);
        let vars = self.vars.iter().position(|(var, _)| var == name).map(NameMeaning::Var);
        let tables = self.tables.iter().position(|(table, _)| table == name).map(NameMeaning::Table);
        let tables = tables.filter(|_| reach == NameScope::Recipient);
        let ours =
            CAMPAIGN_VARIABLES.contains(&name) || (reach == NameScope::Recipient && ROW_VARIABLES.contains(&name));
        columns.chain(vars).chain(tables).chain(ours.then_some(NameMeaning::Ours)).collect()
    }

    /// The table that `name` means, if it means nothing else.
    pub(super) fn find_table(&self, name: &str, reach: NameScope) -> Option<usize> {
        match self.find_meanings(name, reach).as_slice() {
            [NameMeaning::Table(index)] => Some(*index),
            _ => None,
        }
    }

    /// The columns with that header.
    pub(super) fn find_columns(&self, header: &str) -> Vec<usize> {
        let headers = self.headers.iter().enumerate();
        headers.filter(|(_, candidate)| *candidate == header).map(|(index, _)| index).collect()
    }

    /// What to write instead of a bare name that is not known.
    pub(super) fn help_for_name(&self, typed: &str, reach: NameScope) -> String {
        if reach == NameScope::Campaign {
            return self.help_for_constant(typed);
        }
        let known = self.list_bare_names();
        if let Some(name) = known.iter().find(|name| name.eq_ignore_ascii_case(typed)) {
            return format!("did you mean `{name}`?");
        }
        let header = |header: &&String| !is_variable(header) && simplify_header(header) == simplify_header(typed);
        if let Some(header) = self.headers.iter().find(header) {
            return format!("write `{}`, because this header is not a plain name", index_expression(header));
        }
        match did_you_mean(typed, known.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("use one of these names: {}", shorten_list(&known)),
        }
    }

    fn help_for_constant(&self, typed: &str) -> String {
        if self.names.iter().any(|name| name == typed) || ROW_VARIABLES.contains(&typed) {
            return "use only `vars`, `campaign` and `today`; this value is the same for all recipients".to_owned();
        }
        let known: Vec<&str> = self.vars.iter().map(|(name, _)| name.as_str()).chain(CAMPAIGN_VARIABLES).collect();
        match did_you_mean(typed, known.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("use one of these names: {}", shorten_list(&known)),
        }
    }

    /// What to write instead of `recipient["typed"]`.
    pub(super) fn help_for_header(&self, typed: &str) -> String {
        if let Some(index) = self.names.iter().position(|name| name == typed) {
            let header = self.headers.get(index).map_or(typed, String::as_str);
            return format!("write `{typed}`, or write `{}` to use the header from the file", index_expression(header));
        }
        match did_you_mean(typed, self.headers.iter().map(String::as_str)) {
            Some(header) => format!("did you mean `{}`?", index_expression(header)),
            None => {
                let headers: Vec<&str> = self.headers.iter().map(String::as_str).collect();
                format!("use one of these headers: {}", shorten_list(&headers))
            }
        }
    }

    /// The header that stands between braces as if it were a name, and how to write it.
    pub(super) fn help_for_inner(&self, inner: &str) -> Option<String> {
        let header = self.headers.iter().find(|header| *header == inner)?;
        Some(format!("write `{{{{ {} }}}}`, because this header is not a plain name", index_expression(header)))
    }

    fn list_bare_names(&self) -> Vec<&str> {
        let columns = self.names.iter().map(String::as_str).filter(|name| is_variable(name));
        let tables = self.tables.iter().map(|(name, _)| name.as_str());
        columns
            .chain(self.vars.iter().map(|(name, _)| name.as_str()))
            .chain(tables)
            .chain(ROW_VARIABLES)
            .chain(CAMPAIGN_VARIABLES)
            .collect()
    }
}

/// `recipient["header"]`, with the quotes that the header leaves free.
fn index_expression(header: &str) -> String {
    let quote = if header.contains('"') { '\'' } else { '"' };
    format!("recipient[{quote}{header}{quote}]")
}

/// A header as people turn it into a name: lower case, everything else an underscore.
fn simplify_header(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).flat_map(char::to_lowercase).collect()
}

fn shorten_list(names: &[&str]) -> String {
    match names.len().checked_sub(MAX_LISTED) {
        None | Some(0) => join_alternatives(names.iter().copied()),
        Some(more) => {
            let first: Vec<String> = names[..MAX_LISTED].iter().map(|name| format!("`{name}`")).collect();
            format!("{} and {more} more", first.join(", "))
        }
    }
}

/// The name for as long as the program runs: the context takes it anew with every row, and a copy of it would cost more
/// than the cell. What stays are the distinct names that texts use, which are few.
pub(super) fn intern_name(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = name.to_owned().leak();
    names.insert(name);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> TemplateNames {
        TemplateNames {
            headers: ["phone", "First name", "Ім'я", "code"].map(String::from).to_vec(),
            names: ["phone", "First name", "first", "code"].map(String::from).to_vec(),
            vars: vec![("shop".into(), "Olena".into()), ("code".into(), "x".into())],
            campaign: "autumn".into(),
            today: "2026-11-21".into(),
            ..TemplateNames::default()
        }
    }

    #[test]
    fn name_has_one_meaning_or_a_clash() {
        let all = |name| names().find_meanings(name, NameScope::Recipient);
        assert_eq!(all("first"), [NameMeaning::Column(2)]);
        assert_eq!(all("shop"), [NameMeaning::Var(0)]);
        assert_eq!(all("row"), [NameMeaning::Ours]);
        assert_eq!(all("code"), [NameMeaning::Column(3), NameMeaning::Var(1)]);
        assert_eq!(all("nothing"), []);
        assert_eq!(names().find_meanings("first", NameScope::Campaign), []);
        assert_eq!(names().find_meanings("row", NameScope::Campaign), []);
        assert_eq!(names().find_meanings("today", NameScope::Campaign), [NameMeaning::Ours]);
    }

    #[test]
    fn help_suggests_the_probable_name() {
        let names = names();
        let table = [
            (names.help_for_name("frist", NameScope::Recipient), "did you mean `first`?"),
            (names.help_for_name("first_name", NameScope::Recipient), "write `recipient[\"First name\"]`"),
            (names.help_for_name("zzzzz", NameScope::Recipient), "use one of these names: `phone`, `first`,"),
            (names.help_for_name("first", NameScope::Campaign), "the same for all recipients"),
            (names.help_for_name("shpo", NameScope::Campaign), "did you mean `shop`?"),
            (names.help_for_header("Frist name"), "did you mean `recipient[\"First name\"]`?"),
            (names.help_for_header("first"), "write `first`, or write `recipient[\"Ім'я\"]`"),
            (names.help_for_header("zzzzz"), "use one of these headers: `phone`, `First name`"),
        ];
        for (help, expected) in table {
            assert!(help.contains(expected), "`{help}` does not say `{expected}`");
        }
        assert!(names.help_for_inner("Ім'я").is_some_and(|help| help.contains("{{ recipient[\"Ім'я\"] }}")));
    }

    #[test]
    fn long_list_is_shortened() {
        let many: Vec<String> = (0..20).map(|n| format!("c{n}")).collect();
        let names = TemplateNames { headers: many.clone(), names: many, ..TemplateNames::default() };
        assert!(names.help_for_header("zzzzz").ends_with("`c11` and 8 more"));
    }
}
