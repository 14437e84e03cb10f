//! Lookup tables of a campaign, as in `{{ stores[city].address }}`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tera::value::Key;
use tera::{Map, Value};

use super::TextProblem;
use campaign_core::domain::{compose_accents, list_other_spellings};
use campaign_core::finding::rules;

/// Rows by the values of a key column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookupTable {
    /// The headers.
    pub columns: Vec<String>,
    /// The rows by key. Each row has one cell per column.
    pub rows: BTreeMap<String, Vec<String>>,
}

impl LookupTable {
    /// The name of a table among the stored texts of a campaign. Text files cannot have such a name.
    pub fn source_name(name: &str) -> String {
        format!("data:{name}")
    }

    /// Whether a stored text of a campaign with this name is a table.
    pub fn is_source_name(name: &str) -> bool {
        name.starts_with("data:")
    }

    /// Whether the table has a row with this key.
    pub(super) fn has_row(&self, key: &str) -> bool {
        self.rows.contains_key(key) || self.rows.contains_key(&*compose_accents(key))
    }

    /// The table as stored text.
    pub fn to_source(&self) -> String {
        // A map of strings can always be serialized.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The table from its stored text. `None` if the text is not a table.
    pub(crate) fn from_source(source: &str) -> Option<Self> {
        serde_json::from_str(source).ok()
    }

    /// Whether the table has a column with this header.
    pub(super) fn has_column(&self, header: &str) -> bool {
        let is_same = |known: &String| known == header || list_other_spellings(known).any(|other| other == header);
        self.columns.iter().any(is_same)
    }

    /// The table as a value for templates. Rows and columns can be selected with composed or separate accents.
    pub(super) fn to_value(&self) -> Value {
        let columns: Vec<(Key<'static>, usize)> = list_key_spellings(self.columns.iter().zip(0..)).collect();
        let row = |cells: &Vec<String>| {
            let cells = columns
                .iter()
                .filter_map(|(key, column)| Some((key.clone(), Value::normal_string(cells.get(*column)?))));
            Value::from(cells.collect::<Map>())
        };
        Value::from(list_key_spellings(self.rows.iter()).map(|(key, cells)| (key, row(cells))).collect::<Map>())
    }
}

/// Lists the keys in all spellings of their accents. A key's own spelling comes after the other spellings, so that it
/// takes precedence over them.
pub(super) fn list_key_spellings<'n, T: Copy>(
    entries: impl Iterator<Item = (&'n String, T)> + Clone,
) -> impl Iterator<Item = (Key<'static>, T)> {
    let others = entries.clone().flat_map(|(name, value)| list_other_spellings(name).map(move |other| (other, value)));
    others.chain(entries.map(|(name, value)| (name.clone(), value))).map(|(name, value)| (name.into(), value))
}

/// The tables with these names, from the stored texts of a campaign.
///
/// # Errors
/// A problem for each table that is missing or invalid.
pub fn load_tables(
    names: &[String],
    load: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Vec<(String, Arc<LookupTable>)>, Vec<TextProblem>> {
    let table = |name: &String| {
        let table = load(&LookupTable::source_name(name)).and_then(|source| {
            LookupTable::from_source(&source).ok_or_else(|| "the table saved with the run is not valid".to_owned())
        });
        let problem = |reason| {
            let message = format!("cannot use the table `{name}`: {reason}");
            TextProblem::new(&format!("data.{name}"), "", 0..0, &rules::DATA_FILE, message)
        };
        table.map(|table| (name.clone(), Arc::new(table))).map_err(problem)
    };
    let (mut tables, mut problems) = (Vec::new(), Vec::new());
    for table in names.iter().map(table) {
        match table {
            Ok(table) => tables.push(table),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(tables) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{TemplateNames, compile_messages, tests};
    use campaign_core::domain::Row;

    fn names() -> TemplateNames {
        let row = |city: &str, address: &str| (city.to_owned(), vec![city.to_owned(), address.to_owned()]);
        let rows =
            BTreeMap::from([row("Kyiv", "Khreshchatyk 1"), row("Lviv", "Rynok 2"), row("Orl\u{e9}ans", "Rue 3")]);
        let table = LookupTable { columns: vec!["city".into(), "address".into()], rows };
        TemplateNames { tables: vec![("stores".into(), Arc::new(table))], ..tests::names() }
    }

    fn render_message(message: &str, code: &str) -> Result<String, String> {
        render_with(&names(), message, code)
    }

    fn render_with(names: &TemplateNames, message: &str, code: &str) -> Result<String, String> {
        let mut load = |_: &str| Err(String::new());
        let messages = match compile_messages(&tests::sms_content("Olena", message), names, &mut load) {
            Ok(messages) => messages,
            Err(problems) => {
                let describe = |problem: &TextProblem| {
                    format!("{}; {}", problem.message, problem.help.as_deref().unwrap_or_default())
                };
                return Err(problems.iter().map(describe).collect());
            }
        };
        let mut renderer = messages.renderer();
        let message = renderer.render(Row::new(2), |column| if column == 2 { code } else { "" });
        let message = message.map_err(|invalid| invalid.to_string())?;
        Ok(message.billed_text().unwrap_or_default().to_owned())
    }

    #[test]
    fn cell_selects_a_row_of_a_table() {
        for (message, expected) in [
            ("{{ stores[code].address }}", "Khreshchatyk 1"),
            ("{{ stores[code]['address'] }}", "Khreshchatyk 1"),
            ("{{ stores['Lviv'].address }}", "Rynok 2"),
            ("{{ stores[code | trim].address | upper }}", "KHRESHCHATYK 1"),
            ("{% set store = stores[code] | default(value='') %}{% if store %}x{% endif %}", "x"),
            ("{% if stores[code] is defined %}{{ stores[code].city }}{% endif %}", "Kyiv"),
            ("{{ stores['Odesa']?.address | default(value='none') }}", "none"),
            ("{{ stores['Orl\u{e9}ans'].address }}", "Rue 3"),
            ("{{ stores['Orle\u{301}ans'].address }}", "Rue 3"),
        ] {
            assert_eq!(render_message(message, "Kyiv").as_deref(), Ok(expected), "{message}");
        }
        let error = render_message("{{ stores[code].address }}", "Odesa").unwrap_err();
        assert!(error.starts_with("`stores[code]` has no value because the table has no row for this key"), "{error}");
        assert!(!error.contains("Odesa"), "{error}");
    }

    #[test]
    fn table_column_matches_composed_and_decomposed_accents() {
        for (header, other) in [("R\u{e9}gion", "Re\u{301}gion"), ("Re\u{301}gion", "R\u{e9}gion")] {
            let rows = BTreeMap::from([("Lviv".to_owned(), vec!["Lviv".to_owned(), "west".to_owned()])]);
            let table = Arc::new(LookupTable { columns: vec!["city".to_owned(), header.to_owned()], rows });
            let names = TemplateNames { tables: vec![("stores".into(), table)], ..tests::names() };
            for column in [header, other] {
                let message = format!("{{{{ stores['Lviv']['{column}'] }}}}");
                assert_eq!(render_with(&names, &message, "").as_deref(), Ok("west"), "{message}");
            }
        }
    }

    #[test]
    fn invalid_table_reference_is_reported_before_sending() {
        for (message, expected) in [
            ("{{ stores }}", "`stores` is a whole table, so the message would show every row"),
            ("{{ stores | length }}", "`stores` is a "),
            ("{{ stores.Kyiv.address }}", "`stores` is a "),
            ("{% for s in stores %}x{% endfor %}", "`stores` is a "),
            ("{{ stores[code] }}", "`stores[…]` is a whole row of the table; write `stores[COLUMN].address`"),
            ("{{ stores[code].adress }}", "no column `adress`; did you mean `address`?"),
            ("{{ stores[code]['phone'] }}", "no column `phone`; use one of the table's columns: `city` and `address`"),
            (
                "{{ stores['Kyjiv'].address }}",
                "the table `stores` has no row with the key `Kyjiv`; did you mean `Kyiv`?",
            ),
            ("{{ store[code].address }}", "unknown variable `store`; did you mean `stores`?"),
            ("{{ stores[cod].address }}", "unknown variable `cod`"),
        ] {
            let error = render_message(message, "Kyiv").unwrap_err();
            assert!(error.contains(expected), "{message}: {error}");
        }
    }

    #[test]
    fn table_round_trips_as_text() {
        let rows = BTreeMap::from([("Kyiv".to_owned(), vec!["Kyiv".to_owned(), "\"1\", \\ Khreshchatyk".to_owned()])]);
        let table = LookupTable { columns: vec!["city".into(), "address".into()], rows };
        assert_eq!(LookupTable::from_source(&table.to_source()), Some(table));
        assert_eq!(LookupTable::from_source("Hello"), None);
    }
}
