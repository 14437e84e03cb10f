//! A list that a campaign is written for: its numbers, and the columns that texts can use.

use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use crate::audience::{Chunk, Reader, Settings, parse, suggest};
use crate::cli::failure::Failure;
use crate::domain::{Region, Row};
use crate::finding::{self, Finding, rules};
use crate::regular;
use crate::report::{plural, thousands};

/// Columns by which people are greeted, the best first.
const GREETED_BY: [&str; 7] = ["first_name", "name", "full_name", "client", "customer", "last_name", "company"];

/// How much of a list is read at once.
const BUFFER: usize = 1 << 16;

/// A list, understood.
#[derive(Debug)]
pub(super) struct List {
    /// Its path as it was typed.
    pub(super) path: String,
    /// The header of the numbers.
    pub(super) phone: String,
    /// The region, if the numbers are national.
    pub(super) region: Option<Region>,
    /// The other columns: the name for texts, and the header.
    pub(super) columns: Vec<(String, String)>,
    /// The headers of other columns that hold numbers too.
    pub(super) other_phones: Vec<String>,
    /// The rows without a valid number, if there are any.
    pub(super) invalid: Option<Invalid>,
}

/// The rows of a list without a valid number.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Invalid {
    rows: u64,
    of: u64,
    first: Row,
}

impl List {
    /// Reads the beginning of a list.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let Some(typed) = path.to_str() else {
            let message = format!("the name of `{}` is not UTF-8; rename the list", path.display());
            return Err(Failure::wrong(message));
        };
        let suggestion = suggest(open(path)?, path).map_err(|finding| refused(vec![*finding]))?;
        let Some(phone) = suggestion.phone else {
            let finding = Finding::new(&rules::NO_PHONES, format!("no column of `{typed}` holds phone numbers"));
            if let Some((header, problem)) = suggestion.problem {
                return Err(refused(vec![finding.help(format!("`{header}`: {problem}"))]));
            }
            return Err(refused(vec![finding.help(
                "the first row names the columns, and one column has numbers such as +380501234567; mend the list, or \
                 say `campaign init NAME` without `--from` and set `recipients` by hand",
            )]));
        };
        let mut headers = HashSet::from([phone.clone()]);
        let mut columns = suggestion.columns;
        // A header names its first column alone.
        columns.retain(|(_, header)| headers.insert(header.clone()));
        let other_phones = suggestion.other_phones;
        let mut list =
            Self { path: typed.to_owned(), phone, region: suggestion.region, columns, other_phones, invalid: None };
        // What a campaign with these columns would be refused for is told now.
        let settings = Settings { columns: list.renamed(), region: list.region };
        let reader = Reader::open(BufReader::with_capacity(BUFFER, open(path)?), path, &settings).map_err(refused)?;
        list.invalid = invalid(reader, list.region);
        Ok(list)
    }

    /// The columns that get a name of their own: the name, and the header.
    pub(super) fn renamed(&self) -> Vec<(String, String)> {
        let phone = ("phone".to_owned(), self.phone.clone());
        std::iter::once(phone).chain(self.columns.iter().cloned()).filter(|(name, header)| name != header).collect()
    }

    /// The columns that keep their headers as names.
    pub(super) fn kept(&self) -> Vec<&str> {
        self.columns.iter().filter(|(name, header)| name == header).map(|(name, _)| name.as_str()).collect()
    }

    /// The column that a greeting names, if the list has any besides the numbers.
    pub(super) fn greeted_by(&self) -> Option<&str> {
        let names = || self.columns.iter().map(|(name, _)| name.as_str());
        GREETED_BY.into_iter().find(|best| names().any(|name| name == *best)).or_else(|| names().next())
    }

    /// What was understood, for a person.
    pub(super) fn summary(&self) -> String {
        let region = self.region.map(|region| format!(", national ones of {region}")).unwrap_or_default();
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let texts = if names.is_empty() { String::new() } else { format!("; texts can use {}", names.join(", ")) };
        let mut summary = format!("{}: the numbers stand in `{}`{region}{texts}\n", self.path, self.phone);
        if let [other, ..] = &self.other_phones[..] {
            let others = finding::list_all(self.other_phones.iter().map(String::as_str));
            summary += &format!(
                "  numbers stand in {others} too; to send there instead, write `phone: {other}` under `columns`\n"
            );
        }
        if let Some(Invalid { rows, of, first }) = &self.invalid {
            let (rows, of) = (thousands(*rows), plural(*of, "row"));
            summary +=
                &format!("  without a valid number: {rows} of {of}, the first is row {first}; the check tells why\n");
        }
        summary
    }
}

/// Counts the rows without a valid number. A row that cannot be read is the check's to tell.
fn invalid(mut reader: Reader<BufReader<File>>, region: Option<Region>) -> Option<Invalid> {
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

fn open(path: &Path) -> Result<File, Failure> {
    regular::open(path)
        .map_err(|error| Failure::wrong(format!("the list `{}` cannot be opened: {error}", path.display())))
}

fn refused(findings: Vec<Finding>) -> Failure {
    Failure::with_findings("no campaign can be written for this list; nothing was written", findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::exit::WRONG;
    use crate::cli::suggested::Options;

    fn read(text: &str) -> Result<List, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.csv");
        std::fs::write(&path, text).unwrap();
        List::read(&path)
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
    fn other_columns_of_numbers_and_rows_without_one_are_told() {
        let list = "Телефон,Телефон 2,name\n+380501234567 +380671234567,+380671234567,Olena\n,+380671234568,Ivan\n\
                    +380501234568,+380671234569,Taras\n+380501234569,,Maria\n";
        let summary = read(list).unwrap().summary();
        assert!(summary.contains("the numbers stand in `Телефон`;"), "{summary}");
        assert!(summary.contains("numbers stand in `Телефон 2` too"), "{summary}");
        assert!(summary.contains("without a valid number: 2 of 4 rows, the first is row 2;"), "{summary}");
        let sound = read("phone,name\n+380501234567,Olena\n").unwrap();
        assert_eq!((sound.summary().lines().count(), sound.invalid), (1, None));
    }

    #[test]
    fn what_a_spreadsheet_did_to_a_list_is_said_for_what_it_is() {
        for (text, said) in [
            ("Телефон;name\n3,80501E+11;Olena\n", "last digits are lost"),
            ("name,Телефон\nOlena,3,80501E+11\n", "last digits are lost"),
            ("Clients of spring;;\nphone;name;city\n+380501234567;Olena;Kyiv\n", "above the row that names"),
            ("Clients of spring\nphone,name\n+380501234567,Olena\n", "above the row that names"),
        ] {
            let refused = read(text).unwrap_err().explain(&Options::default());
            assert!(refused.findings[0].help.as_ref().unwrap().contains(said), "{text}: {:?}", refused.findings);
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
            let failure = read(text).unwrap_err().explain(&Options::default());
            assert_eq!(failure.exit, WRONG, "{text}");
            assert_eq!(failure.findings[0].rule, rule, "{text}");
            assert!(failure.findings[0].help.is_some(), "{text}");
        }
    }
}
