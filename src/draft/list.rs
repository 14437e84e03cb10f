//! A list that a campaign is written for: its numbers, and the columns that texts can use.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::DraftError;
use crate::audience::{
    Chunk, DecodedText, ListPlace, ListSettings, RecipientReader, decode, find_list, parse_phone_number,
    suggest_columns,
};
use crate::domain::{ListFormat, Region, Row};
use crate::finding::{Finding, quote_for_shell, rules};
use crate::regular_file;

/// Columns by which people are greeted, the best first.
const GREETING_COLUMNS: [&str; 7] = ["first_name", "name", "full_name", "client", "customer", "last_name", "company"];

/// A list, understood.
#[derive(Debug)]
pub struct DraftList {
    /// Its path as it was typed.
    pub path: String,
    /// Its sheet and its header row, if specified.
    pub form: ListFormat,
    /// The header of the numbers.
    pub phone: String,
    /// The region, if the numbers are national.
    pub region: Option<Region>,
    /// The other columns: the name for texts, and the header.
    pub columns: Vec<(String, String)>,
    /// The headers of other columns that hold numbers too.
    pub other_phones: Vec<String>,
    /// The rows without a valid number, if there are any.
    pub invalid: Option<InvalidRows>,
}

/// The rows of a list without a valid number.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidRows {
    /// How many.
    pub rows: u64,
    /// Of how many rows.
    pub total: u64,
    /// The first of them.
    pub first: Row,
}

impl DraftList {
    /// Reads a list.
    ///
    /// # Errors
    /// When it cannot be read, or no campaign can use it.
    pub fn read(path: &Path, form: &ListFormat) -> Result<Self, DraftError> {
        match Self::interpret_list(path, form) {
            // A title above the numbers is read as their header, and the header as a row without a number.
            Ok(list) if list.invalid.is_some() && form.header_row.is_none() => {
                match find_list(|| regular_file::open(path), path, form, None).filter(|place| place.sheet.is_none()) {
                    None => Ok(list),
                    Some(place) => {
                        let mut titled = place.title_finding(&rules::RECIPIENTS_NO_HEADER, Some(&list.phone));
                        add_advice(&mut titled, &place);
                        Err(DraftError::ListRefused(vec![titled]))
                    }
                }
            }
            Err(DraftError::ListRefused(findings)) => {
                Err(DraftError::ListRefused(add_likely_place(findings, path, form)))
            }
            understood => understood,
        }
    }

    fn interpret_list(path: &Path, form: &ListFormat) -> Result<Self, DraftError> {
        let Some(typed) = path.to_str() else { return Err(DraftError::ListName(path.to_owned())) };
        let opened = decode_list(path, form)?;
        let written = Arc::clone(opened.format());
        let suggestion = suggest_columns(opened, path).map_err(|finding| DraftError::ListRefused(vec![*finding]))?;
        let Some(phone) = suggestion.phone else {
            let sheet = written.sheet_name().map(|sheet| format!("the sheet `{sheet}` of ")).unwrap_or_default();
            let finding =
                Finding::new(&rules::NO_PHONES, format!("no column in {sheet}`{typed}` contains phone numbers"));
            if let Some(wrong) = suggestion.problem {
                return Err(DraftError::ListRefused(vec![finding.help(wrong.to_string())]));
            }
            return Err(DraftError::ListRefused(vec![finding.help(
                "add a header row and a column with numbers such as +380501234567; or run `campaign init NAME` \
                 without `--from` and set `recipients` yourself",
            )]));
        };
        let mut headers = HashSet::from([phone.clone()]);
        let mut columns = suggestion.columns;
        // A header names its first column alone.
        columns.retain(|(_, header)| headers.insert(header.clone()));
        let other_phones = suggestion.other_phones;
        let (path_typed, form_told, region) = (typed.to_owned(), form.clone(), suggestion.region);
        let mut list = Self { path: path_typed, form: form_told, phone, region, columns, other_phones, invalid: None };
        // What a campaign with these columns would be refused for is told now.
        let settings = ListSettings { columns: list.renamed_columns(), region: list.region, may_be_empty: false };
        let reader =
            RecipientReader::open(decode_list(path, form)?, path, &settings).map_err(DraftError::ListRefused)?;
        list.invalid = count_invalid_rows(reader, list.region);
        Ok(list)
    }

    /// The columns that get a name of their own: the name, and the header.
    #[must_use]
    pub fn renamed_columns(&self) -> Vec<(String, String)> {
        let phone = ("phone".to_owned(), self.phone.clone());
        std::iter::once(phone).chain(self.columns.iter().cloned()).filter(|(name, header)| name != header).collect()
    }

    /// The columns that keep their headers as names.
    #[must_use]
    pub fn unchanged_columns(&self) -> Vec<&str> {
        self.columns.iter().filter(|(name, header)| name == header).map(|(name, _)| name.as_str()).collect()
    }

    /// The column that a greeting names, if the list has any besides the numbers.
    #[must_use]
    pub fn greeting_column(&self) -> Option<&str> {
        let names = || self.columns.iter().map(|(name, _)| name.as_str());
        GREETING_COLUMNS.into_iter().find(|best| names().any(|name| name == *best)).or_else(|| names().next())
    }
}

/// Counts the rows without a valid number. A row that cannot be read is the check's to tell.
fn count_invalid_rows(mut reader: RecipientReader<impl Read>, region: Option<Region>) -> Option<InvalidRows> {
    let phone = reader.header().phone();
    let (mut chunk, mut invalid, mut of) = (Chunk::new(), None, 0);
    while reader.read_chunk(&mut chunk).unwrap_or(true) {
        of += chunk.len() as u64;
        for record in chunk.iter().filter(|record| parse_phone_number(record.fields.get(phone), region).is_err()) {
            invalid.get_or_insert(InvalidRows { rows: 0, total: 0, first: record.row }).rows += 1;
        }
    }
    invalid.map(|invalid| InvalidRows { total: of, ..invalid })
}

/// The findings with the probable place of the list, if it differs.
fn add_likely_place(mut findings: Vec<Finding>, path: &Path, form: &ListFormat) -> Vec<Finding> {
    let Some(first) = findings.first_mut() else { return findings };
    let Some(place) = find_list(|| regular_file::open(path), path, form, None) else { return findings };
    add_advice(first, &place);
    findings
}

/// Adds the options that make the list readable to a finding.
fn add_advice(finding: &mut Finding, place: &ListPlace) {
    let sheet = place.sheet.as_ref().map(|sheet| format!("--sheet {}", quote_for_shell(sheet)));
    let row = (place.sheet.is_none() || place.header_row > 1).then(|| format!("--header-row {}", place.header_row));
    let options: Vec<String> = sheet.into_iter().chain(row).collect();
    place.add_advice(finding, &format!("add `{}`", options.join(" ")));
}

fn decode_list(path: &Path, form: &ListFormat) -> Result<DecodedText, DraftError> {
    let file = regular_file::open(path).map_err(|error| DraftError::ListUnreadable { path: path.to_owned(), error })?;
    decode(file, path, form, None).map_err(|finding| DraftError::ListRefused(vec![*finding]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<DraftList, DraftError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.csv");
        std::fs::write(&path, text).unwrap();
        DraftList::read(&path, &ListFormat::default())
    }

    fn expect_refused(text: &str) -> Finding {
        match read(text) {
            Err(DraftError::ListRefused(findings)) => findings[0].clone(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn ukrainian_headers_get_names_for_templates() {
        let list = read("Мобільний;Ім'я;plan\n050 000 00 01;Олена;gold\n").unwrap();
        let renamed = [("phone", "Мобільний"), ("first_name", "Ім'я")];
        assert_eq!(list.renamed_columns(), renamed.map(|(name, header)| (name.to_owned(), header.to_owned())));
        assert_eq!(list.unchanged_columns(), ["plan"]);
        assert_eq!(list.region.unwrap().to_string(), "UA");
        assert_eq!(list.greeting_column(), Some("first_name"));
    }

    #[test]
    fn greeting_uses_the_name_column_else_the_first_column() {
        let table =
            [("city,name,phone\nKyiv,Olena,", Some("name")), ("city,phone\nKyiv,", Some("city")), ("phone\n", None)];
        for (text, column) in table {
            let list = read(&format!("{text}+380500000001\n")).unwrap();
            assert_eq!(list.greeting_column(), column, "{text}");
        }
    }

    #[test]
    fn spreadsheet_damage_is_reported_as_such() {
        for (text, said) in [
            ("Телефон;name\n3,80501E+11;Olena\n", "last digits are lost"),
            ("name,Телефон\nOlena,3,80501E+11\n", "last digits are lost"),
            (
                "phone;name\n3,80501E+11;A\n+380931000003;B\n3,80671E+11;C\n",
                "2 of 3 numbers, for example to `3,80501E+11`",
            ),
            ("contact\nOlena Koval <+380501000001>\nTaras <+380671000002>\n", "put the number in its own column"),
            ("contact\n\"Koval, Maria\" <+380931000003>\n", "split the column `contact` into two columns"),
            ("Clients of spring;;\nphone;name;city\n+380501234567;Olena;Kyiv\n", "delete the rows above the header"),
            ("Clients of spring\nphone,name\n+380501234567,Olena\n", "delete the rows above the header"),
            ("Spring,\n,all\nphone,name\n+380501234567,A\n+380501234568,B\n", "add `--header-row 3`"),
        ] {
            let refused = expect_refused(text);
            assert!(refused.help.as_ref().unwrap().contains(said), "{text}: {refused:?}");
        }
        for text in ["sep=;\r\nphone;name\r\n+380501234567;Olena\r\n", "phone|name\n+380501234567|Olena\n"] {
            assert_eq!(read(text).unwrap().phone, "phone", "{text}");
        }
    }

    #[test]
    fn unusable_list_is_refused_with_advice() {
        let table = [
            ("name,city\nOlena,Kyiv\n", "no-phones"),
            ("+380500000001,Olena\n+380500000002,Taras\n", "recipients-no-header"),
            ("phone,name,name\n+380500000001,Olena,Olena\n", "recipients-duplicate-column"),
            ("", "recipients-empty"),
        ];
        for (text, rule) in table {
            let refused = expect_refused(text);
            assert_eq!(refused.rule, rule, "{text}");
            assert!(refused.help.is_some(), "{text}");
        }
    }
}
