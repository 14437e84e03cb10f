//! A list that a campaign is written for: its numbers, and the columns that texts can use.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::DraftError;
use crate::audience::{Chunk, Decoded, ListPlace, Reader, Settings, decode, find_list, parse, suggest};
use crate::domain::{ListForm, Region, Row};
use crate::finding::{Finding, quoted, rules};
use crate::regular_file;

/// Columns by which people are greeted, the best first.
const GREETED_BY: [&str; 7] = ["first_name", "name", "full_name", "client", "customer", "last_name", "company"];

/// A list, understood.
#[derive(Debug)]
pub struct List {
    /// Its path as it was typed.
    pub path: String,
    /// Its sheet and its header row, if specified.
    pub form: ListForm,
    /// The header of the numbers.
    pub phone: String,
    /// The region, if the numbers are national.
    pub region: Option<Region>,
    /// The other columns: the name for texts, and the header.
    pub columns: Vec<(String, String)>,
    /// The headers of other columns that hold numbers too.
    pub other_phones: Vec<String>,
    /// The rows without a valid number, if there are any.
    pub invalid: Option<Invalid>,
}

/// The rows of a list without a valid number.
#[derive(Debug, PartialEq, Eq)]
pub struct Invalid {
    /// How many.
    pub rows: u64,
    /// Of how many rows.
    pub of: u64,
    /// The first of them.
    pub first: Row,
}

impl List {
    /// Reads a list.
    ///
    /// # Errors
    /// When it cannot be read, or no campaign can use it.
    pub fn read(path: &Path, form: &ListForm) -> Result<Self, DraftError> {
        match Self::understood(path, form) {
            // A title above the numbers is read as their header, and the header as a row without a number.
            Ok(list) if list.invalid.is_some() && form.header_row.is_none() => {
                match find_list(|| regular_file::open(path), path, form, None).filter(|place| place.sheet.is_none()) {
                    None => Ok(list),
                    Some(place) => {
                        let mut titled = place.title(&rules::RECIPIENTS_NO_HEADER, Some(&list.phone));
                        advise(&mut titled, &place);
                        Err(DraftError::ListRefused(vec![titled]))
                    }
                }
            }
            Err(DraftError::ListRefused(findings)) => Err(DraftError::ListRefused(with_place(findings, path, form))),
            understood => understood,
        }
    }

    fn understood(path: &Path, form: &ListForm) -> Result<Self, DraftError> {
        let Some(typed) = path.to_str() else { return Err(DraftError::ListName(path.to_owned())) };
        let opened = open(path, form)?;
        let written = Arc::clone(opened.written());
        let suggestion = suggest(opened, path).map_err(|finding| DraftError::ListRefused(vec![*finding]))?;
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
        let settings = Settings { columns: list.renamed(), region: list.region, may_be_empty: false };
        let reader = Reader::open(open(path, form)?, path, &settings).map_err(DraftError::ListRefused)?;
        list.invalid = invalid(reader, list.region);
        Ok(list)
    }

    /// The columns that get a name of their own: the name, and the header.
    #[must_use]
    pub fn renamed(&self) -> Vec<(String, String)> {
        let phone = ("phone".to_owned(), self.phone.clone());
        std::iter::once(phone).chain(self.columns.iter().cloned()).filter(|(name, header)| name != header).collect()
    }

    /// The columns that keep their headers as names.
    #[must_use]
    pub fn kept(&self) -> Vec<&str> {
        self.columns.iter().filter(|(name, header)| name == header).map(|(name, _)| name.as_str()).collect()
    }

    /// The column that a greeting names, if the list has any besides the numbers.
    #[must_use]
    pub fn greeted_by(&self) -> Option<&str> {
        let names = || self.columns.iter().map(|(name, _)| name.as_str());
        GREETED_BY.into_iter().find(|best| names().any(|name| name == *best)).or_else(|| names().next())
    }
}

/// Counts the rows without a valid number. A row that cannot be read is the check's to tell.
fn invalid(mut reader: Reader<impl Read>, region: Option<Region>) -> Option<Invalid> {
    let phone = reader.header().phone();
    let (mut chunk, mut invalid, mut of) = (Chunk::new(), None, 0);
    while reader.read_chunk(&mut chunk).unwrap_or(true) {
        of += chunk.len() as u64;
        for record in chunk.iter().filter(|record| parse(record.fields.get(phone), region).is_err()) {
            invalid.get_or_insert(Invalid { rows: 0, of: 0, first: record.row }).rows += 1;
        }
    }
    invalid.map(|invalid| Invalid { of, ..invalid })
}

/// The findings with the probable place of the list, if it differs.
fn with_place(mut findings: Vec<Finding>, path: &Path, form: &ListForm) -> Vec<Finding> {
    let Some(first) = findings.first_mut() else { return findings };
    let Some(place) = find_list(|| regular_file::open(path), path, form, None) else { return findings };
    advise(first, &place);
    findings
}

/// Adds the options that make the list readable to a finding.
fn advise(finding: &mut Finding, place: &ListPlace) {
    let sheet = place.sheet.as_ref().map(|sheet| format!("--sheet {}", quoted(sheet)));
    let row = (place.sheet.is_none() || place.header_row > 1).then(|| format!("--header-row {}", place.header_row));
    let options: Vec<String> = sheet.into_iter().chain(row).collect();
    place.advise(finding, &format!("add `{}`", options.join(" ")));
}

fn open(path: &Path, form: &ListForm) -> Result<Decoded, DraftError> {
    let file = regular_file::open(path).map_err(|error| DraftError::ListUnreadable { path: path.to_owned(), error })?;
    decode(file, path, form, None).map_err(|finding| DraftError::ListRefused(vec![*finding]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<List, DraftError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.csv");
        std::fs::write(&path, text).unwrap();
        List::read(&path, &ListForm::default())
    }

    fn refused(text: &str) -> Finding {
        match read(text) {
            Err(DraftError::ListRefused(findings)) => findings[0].clone(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_list_in_ukrainian_gets_names_that_texts_can_use() {
        let list = read("Мобільний;Ім'я;plan\n050 000 00 01;Олена;gold\n").unwrap();
        let renamed = [("phone", "Мобільний"), ("first_name", "Ім'я")];
        assert_eq!(list.renamed(), renamed.map(|(name, header)| (name.to_owned(), header.to_owned())));
        assert_eq!(list.kept(), ["plan"]);
        assert_eq!(list.region.unwrap().to_string(), "UA");
        assert_eq!(list.greeted_by(), Some("first_name"));
    }

    #[test]
    fn people_are_greeted_by_their_name_else_by_the_first_column() {
        let table =
            [("city,name,phone\nKyiv,Olena,", Some("name")), ("city,phone\nKyiv,", Some("city")), ("phone\n", None)];
        for (text, column) in table {
            let list = read(&format!("{text}+380500000001\n")).unwrap();
            assert_eq!(list.greeted_by(), column, "{text}");
        }
    }

    #[test]
    fn what_a_spreadsheet_did_to_a_list_is_said_for_what_it_is() {
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
            let refused = refused(text);
            assert!(refused.help.as_ref().unwrap().contains(said), "{text}: {refused:?}");
        }
        for text in ["sep=;\r\nphone;name\r\n+380501234567;Olena\r\n", "phone|name\n+380501234567|Olena\n"] {
            assert_eq!(read(text).unwrap().phone, "phone", "{text}");
        }
    }

    #[test]
    fn a_list_that_no_campaign_can_use_is_refused_with_what_to_do() {
        let table = [
            ("name,city\nOlena,Kyiv\n", "no-phones"),
            ("+380500000001,Olena\n+380500000002,Taras\n", "recipients-no-header"),
            ("phone,name,name\n+380500000001,Olena,Olena\n", "recipients-duplicate-column"),
            ("", "recipients-empty"),
        ];
        for (text, rule) in table {
            let refused = refused(text);
            assert_eq!(refused.rule, rule, "{text}");
            assert!(refused.help.is_some(), "{text}");
        }
    }
}
