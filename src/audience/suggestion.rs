//! What a campaign file should say about a list that nobody described yet.

use std::io::Read;
use std::path::Path;

use super::PhoneProblem;
use super::chunk::Chunk;
use super::columns;
use super::evidence::{self, PhoneTally};
use super::naming::{TakenNames, suggest_name};
use super::phones::{parse_phone_number, resembles_number};
use super::quoted_lines::find_quoted_lines;
use super::records::RecordReader;
use super::trouble;
use crate::domain::{Phone, Region};
use crate::finding::Finding;

/// A list's columns as a campaign file would describe them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSuggestion {
    /// The header of the column that holds the numbers, if one does.
    pub phone: Option<String>,
    /// How many of the first rows have a number in it.
    pub numbers: usize,
    /// The region to set, if the numbers are national.
    pub region: Option<Region>,
    /// The headers of other columns that hold numbers too.
    pub other_phones: Vec<String>,
    /// If no column holds numbers: the column that should, and its problem.
    pub problem: Option<WrongColumn>,
    /// The other columns that have a header: a name that templates can use, and the header.
    pub columns: Vec<(String, String)>,
}

/// A column that should hold numbers, and the problem with its cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongColumn {
    /// Its header.
    pub header: String,
    /// The problem with the first wrong cell.
    pub problem: PhoneProblem,
    /// How many of the first cells have this problem.
    pub cells: usize,
    /// How many of the first cells are filled.
    pub of: usize,
    /// The first wrong cell, if a spreadsheet shortened it: it then identifies nobody.
    pub example: Option<String>,
}

impl std::fmt::Display for WrongColumn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { header, problem, cells, of, example } = self;
        match example {
            Some(example) => write!(
                f,
                "`{header}`: a spreadsheet has shortened {cells} of {of} numbers, for example to `{example}`, so \
                 the last digits are lost; format the column as text in the spreadsheet, and export the list \
                 again"
            ),
            None => write!(f, "`{header}`: {problem}"),
        }
    }
}

/// Looks at the header and the first records of a list.
///
/// # Errors
///
/// The file is no CSV in UTF-8 or has no header, or one of its first rows is broken.
pub fn suggest_columns<R: Read>(input: R, file: &Path) -> Result<ColumnSuggestion, Box<Finding>> {
    suggest_from_sample(input, file, false)
}

/// Looks at a file of numbers, which may have no header: then its first number stands in place of the header.
///
/// # Errors
///
/// Those of [`suggest`], but a single number without a header is no error.
pub fn suggest_for_number_file<R: Read>(input: R, file: &Path) -> Result<ColumnSuggestion, Box<Finding>> {
    suggest_from_sample(input, file, true)
}

fn suggest_from_sample<R: Read>(
    input: R,
    file: &Path,
    may_lack_header: bool,
) -> Result<ColumnSuggestion, Box<Finding>> {
    let mut records = RecordReader::open(input, file)?;
    let mut sample = Chunk::new();
    records.fill_chunk(&mut sample)?;
    if let Some(title) = columns::find_title(records.header(), &sample) {
        return Err(title.into());
    }
    let headers = &records.header().headers;
    let found = evidence::find_phone_column(&sample, headers, None);
    if sample.is_empty() {
        let number = headers.iter().find(|header| may_lack_header && parse_header_number(header, None).is_some());
        let number = number.ok_or_else(|| trouble::no_recipients(records.header().spot()))?;
        let (phone, columns) = (Some(number.clone()), Vec::new());
        return Ok(ColumnSuggestion {
            phone,
            numbers: 0,
            region: None,
            other_phones: Vec::new(),
            problem: None,
            columns,
        });
    }
    if let Some(quoted) = find_quoted_lines(records.header(), &sample).filter(|_| found.is_none()) {
        return Err(quoted.into());
    }
    if let Some(title) = columns::find_title_without_phones(records.header(), &sample).filter(|_| found.is_none()) {
        return Err(title.into());
    }
    let mut names = TakenNames::default();
    names.take_free_name("phone".to_owned());
    let mut named = Vec::new();
    for (column, header) in headers.iter().enumerate() {
        if header.is_empty() || found.is_some_and(|found| found.column == column) {
            continue;
        }
        named.push((suggest_name(header, column, &mut names), header.clone()));
    }
    let phone = found.map(|found| headers[found.column].clone());
    let others =
        found.map(|found| evidence::find_other_phone_columns(&sample, headers.len(), found)).unwrap_or_default();
    let other_phones = others.into_iter().map(|column| headers[column].clone()).collect();
    let problem = match found {
        Some(_) => None,
        None => evidence::find_wrong_column(&sample, headers),
    };
    let region = found.and_then(|found| found.region);
    let numbers = found.map_or(0, |found| PhoneTally::for_column(&sample, found.column, found.region).valid);
    Ok(ColumnSuggestion { phone, numbers, region, other_phones, problem, columns: named })
}

/// The number that stands in place of a header, or what is wrong with it; nothing if the header is none.
#[must_use]
pub fn parse_header_number(header: &str, region: Option<Region>) -> Option<Result<Phone, PhoneProblem>> {
    match parse_phone_number(header, region) {
        Ok(phone) => Some(Ok(phone)),
        Err(problem) => resembles_number(header).then_some(Err(problem)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggest_text(text: &str) -> ColumnSuggestion {
        suggest_columns(text.as_bytes(), Path::new("list.csv")).unwrap()
    }

    #[test]
    fn ukrainian_headers_are_understood() {
        let suggestion =
            suggest_text("№;Ім'я;Мобільний;Місто\n1;Олена;050 123 45 67;Київ\n2;Іван;067 123 45 67;Львів\n");
        assert_eq!(suggestion.phone.as_deref(), Some("Мобільний"));
        assert_eq!(suggestion.region.unwrap().to_string(), "UA");
        let columns = [("column_1", "№"), ("first_name", "Ім'я"), ("city", "Місто")];
        assert_eq!(suggestion.columns, columns.map(|(name, header)| (name.to_owned(), header.to_owned())));
    }

    #[test]
    fn english_headers_keep_their_names() {
        let suggestion = suggest_text("phone,first_name\n+380501234567,Olena\n");
        assert_eq!(suggestion.phone.as_deref(), Some("phone"));
        assert_eq!(suggestion.region, None);
        assert_eq!(suggestion.columns, [("first_name".to_owned(), "first_name".to_owned())]);
    }

    #[test]
    fn list_without_numbers_has_no_phone_column() {
        let suggestion = suggest_text("phone,name\n,Olena\n");
        assert_eq!(suggestion.phone, None);
        assert_eq!(suggestion.columns[0], ("phone_2".to_owned(), "phone".to_owned()));
    }
}
