//! Suggestions for an unknown list: phone column, region, column names, and the location of the list within the file.

use std::collections::{HashMap, HashSet};
use std::io;
use std::io::{Cursor, Read, Seek};
use std::ops::RangeInclusive;
use std::path::Path;

use super::decoding::{DecodedText, EncodingHints, RowBlanker, decode, delimiter_line};
use super::phone_columns::{PhoneColumn, PhoneTally, is_phone_header};
use super::phones::{parse_phone_number, resembles_number};
use super::reader::Chunk;
use super::records::{RecordReader, find_quoted_lines};
use super::{PhoneProblem, columns, list_findings, phone_columns};
use campaign_core::domain::transliteration::{is_apostrophe, remove_diacritics, transliterate};
use campaign_core::domain::variable::is_variable;
use campaign_core::domain::{ListFormat, Phone, Region};
use campaign_core::finding::{Finding, Rule, rules};

/// The columns of a list, as a campaign file would describe them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSuggestion {
    /// The header of the phone column, if there is one.
    pub phone: Option<String>,
    /// The number of sampled rows with a phone number in that column.
    pub numbers: usize,
    /// The region to set, if the numbers are national.
    pub region: Option<Region>,
    /// The other likely regions in which as many numbers are valid. If there are any, `region` is only a guess.
    pub other_regions: Vec<Region>,
    /// The headers of other phone columns.
    pub other_phones: Vec<String>,
    /// If no column has phone numbers: the column that should be one, and its problem.
    pub problem: Option<WrongColumn>,
    /// The other columns with headers: the name in templates, and the header.
    pub columns: Vec<(String, String)>,
}

/// A column that should contain phone numbers, and the problem with its cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongColumn {
    /// The header of the column.
    pub header: String,
    /// The problem with the first wrong cell.
    pub problem: PhoneProblem,
    /// The number of sampled cells with this problem.
    pub cells: usize,
    /// The number of sampled cells that are not empty.
    pub filled: usize,
    /// The first wrong cell, if a spreadsheet shortened its number. A shortened number does not identify anyone.
    pub example: Option<String>,
}

impl std::fmt::Display for WrongColumn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { header, problem, cells, filled, example } = self;
        match example {
            Some(example) => write!(
                f,
                "`{header}`: a spreadsheet has shortened {cells} of {filled} numbers, for example to `{example}`, so \
                 the last digits are lost; format the column as text in the spreadsheet, and export the list \
                 again"
            ),
            None => write!(f, "`{header}`: {problem}"),
        }
    }
}

/// Suggests columns from the header and the first records of a list.
///
/// # Errors
///
/// The file is not CSV in UTF-8, has no header or no recipients, has a title above its header, or one of its first rows
/// is broken.
pub fn suggest_columns<R: Read>(input: R, file: &Path) -> Result<ColumnSuggestion, Box<Finding>> {
    let ListSample { records, sample, phone_column } = ListSample::open(input, file, false)?;
    let headers = &records.header().headers;
    let mut names = TakenNames::default();
    names.take_free_name("phone".to_owned());
    let mut named = Vec::new();
    for (column, header) in headers.iter().enumerate() {
        if header.is_empty() || phone_column.is_some_and(|found| found.column == column) {
            continue;
        }
        named.push((suggest_name(header, column, &mut names), header.clone()));
    }
    let phone = phone_column.map(|found| headers[found.column].clone());
    let others = phone_column
        .map(|found| phone_columns::find_other_phone_columns(&sample, headers.len(), found))
        .unwrap_or_default();
    let other_phones = others.into_iter().map(|column| headers[column].clone()).collect();
    let problem = match phone_column {
        Some(_) => None,
        None => phone_columns::find_wrong_column(&sample, headers),
    };
    let region = phone_column.and_then(|found| found.region);
    let other_regions = phone_column
        .and_then(|found| Some(phone_columns::find_other_regions(&sample, headers, found.column, found.region?)))
        .unwrap_or_default();
    let numbers = phone_column.map_or(0, |found| PhoneTally::for_column(&sample, found.column, found.region).valid);
    Ok(ColumnSuggestion { phone, numbers, region, other_regions, other_phones, problem, columns: named })
}

/// The first records of a list, and their phone column.
pub(super) struct ListSample<R> {
    pub(super) records: RecordReader<R>,
    pub(super) sample: Chunk,
    pub(super) phone_column: Option<PhoneColumn>,
}

impl<R: Read> ListSample<R> {
    /// Reads the header and the first records of a list. With `may_lack_header`, a number in place of the header is
    /// accepted, and then there might be no records.
    ///
    /// # Errors
    ///
    /// The errors of [`suggest_columns`].
    pub(super) fn open(input: R, file: &Path, may_lack_header: bool) -> Result<Self, Box<Finding>> {
        let mut records = RecordReader::open(input, file)?;
        let mut sample = Chunk::new();
        records.fill_chunk(&mut sample)?;
        let line = records.header();
        if let Some(title) = columns::find_title(line, &sample) {
            return Err(title.into());
        }
        let has_number = || line.headers.iter().any(|header| parse_header_number(header, None).is_some());
        if sample.is_empty() && !(may_lack_header && has_number()) {
            return Err(list_findings::no_recipients(line.header_excerpt()).into());
        }
        let phone_column = phone_columns::find_phone_column(&sample, &line.headers, None);
        let misread =
            || find_quoted_lines(line, &sample).or_else(|| columns::find_title_without_phone_column(line, &sample));
        match phone_column.is_none().then(misread).flatten() {
            Some(finding) => Err(finding.into()),
            None => Ok(Self { records, sample, phone_column }),
        }
    }
}

/// The phone number in place of a header, or the problem with that number. `None` if the header does not look like a
/// number.
pub(super) fn parse_header_number(header: &str, region: Option<Region>) -> Option<Result<Phone, PhoneProblem>> {
    match parse_phone_number(header, region) {
        Ok(phone) => Some(Ok(phone)),
        Err(problem) => resembles_number(header).then_some(Err(problem)),
    }
}

/// Common headers in several languages, and their names in templates.
const KNOWN_HEADERS: [(&str, &[&str]); 17] = [
    (
        "first_name",
        &[
            "ім'я",
            "імʼя",
            "ім’я",
            "имя",
            "first name",
            "firstname",
            "given name",
            "imię",
            "imie",
            "vorname",
            "prénom",
            "prenom",
            "prenume",
        ],
    ),
    ("last_name", &["прізвище", "фамилия", "last name", "lastname", "surname", "family name", "nazwisko", "nachname"]),
    ("middle_name", &["по батькові", "отчество", "middle name", "patronymic"]),
    ("full_name", &["піб", "фио", "п.і.б.", "ф.и.о.", "full name"]),
    ("city", &["місто", "город", "miasto", "stadt", "ville", "oraș", "oras"]),
    ("address", &["адреса", "адрес"]),
    ("birthday", &["день народження", "дата народження", "день рождения", "дата рождения", "date of birth"]),
    ("date", &["дата"]),
    ("amount", &["сума", "сумма", "amount", "kwota", "betrag", "montant", "suma"]),
    ("debt", &["борг", "долг"]),
    ("discount", &["знижка", "скидка"]),
    ("code", &["код", "промокод", "промо-код", "promo code", "promocode"]),
    ("order", &["замовлення", "номер замовлення", "заказ", "номер заказа", "order number"]),
    ("company", &["компанія", "компания", "организация", "організація"]),
    ("email", &["пошта", "почта", "e-mail", "ел. пошта", "эл. почта", "електронна пошта", "электронная почта"]),
    ("language", &["мова", "язык"]),
    ("note", &["примітка", "примечание", "коментар", "комментарий"]),
];

/// Names that are already taken.
#[derive(Debug, Default)]
pub(super) struct TakenNames {
    names: HashSet<String>,
    /// The last number that was appended to a name.
    numbers: HashMap<String, u32>,
    /// The number of tried names with numbers.
    #[cfg(test)]
    tried: usize,
}

impl TakenNames {
    /// Reserves the name. If the name is taken, appends the first number that makes the name unique.
    pub(super) fn take_free_name(&mut self, name: String) -> String {
        if self.names.insert(name.clone()) {
            return name;
        }
        let last = self.numbers.entry(name.clone()).or_insert(1);
        loop {
            *last += 1;
            #[cfg(test)]
            {
                self.tried += 1;
            }
            let numbered = format!("{name}_{last}");
            if self.names.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

/// Suggests an unused name for a column: a well-known name such as `first_name`, or else the header in Latin letters.
pub(super) fn suggest_name(header: &str, column: usize, names: &mut TakenNames) -> String {
    let lower = header.trim().to_lowercase();
    let known = KNOWN_HEADERS.iter().find(|(_, words)| words.contains(&lower.as_str()));
    let name = match known {
        Some(&(name, _)) => name.to_owned(),
        None if is_variable(header) && header.contains(char::is_alphanumeric) => header.to_owned(),
        None => to_latin_name(&lower),
    };
    let name = if is_variable(&name) { name } else { format!("column_{}", column + 1) };
    names.take_free_name(name)
}

/// Converts lower-case text to Latin letters and digits, with words joined by `_`.
fn to_latin_name(lower: &str) -> String {
    let mut name = String::new();
    for character in remove_diacritics(&transliterate(lower)).chars() {
        match character {
            letter if letter.is_ascii_alphanumeric() => name.push(letter),
            apostrophe if is_apostrophe(apostrophe) => {}
            _ if name.is_empty() || name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    name.truncate(name.trim_end_matches('_').len());
    name
}

/// The maximum number of sheets to search after the first.
const MAX_SHEETS: usize = 20;
/// The last row to search for headers.
pub const LAST_HEADER_ROW: u32 = 30;
/// The number of bytes to search in each sheet.
const SAMPLE: u64 = 1 << 18;
/// A column with this many numbers is a phone column under any header.
const MIN_NUMBERS: usize = 2;

/// The probable location of a list in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPlace {
    /// The sheet, if it differs from the one that was read.
    pub sheet: Option<String>,
    /// The sheet that was read instead.
    pub(crate) read_sheet: Option<String>,
    /// The row of its headers, from 1.
    pub header_row: u32,
    /// The header of its phone column.
    pub phone: String,
}

/// Searches the first rows of a file for a list, then the other sheets of a workbook unless `format` names a sheet.
/// `open` opens the file from its beginning each time.
///
/// `None` if no list is found, or if the list is already read from the most likely location.
pub fn find_list<S: Read + Seek + Send + 'static>(
    open: impl Fn() -> io::Result<S>,
    file: &Path,
    format: &ListFormat,
    hints: impl Into<EncodingHints>,
) -> Option<ListPlace> {
    let hints = hints.into();
    let decode_sheet = |sheet: Option<String>| {
        let plain = ListFormat { sheet, header_row: None, delimiter: None, ..format.clone() };
        decode(open().ok()?, file, &plain, hints).ok()
    };
    let first = decode_sheet(format.sheet.clone())?;
    let others = if format.sheet.is_none() { first.format().other_sheets().to_vec() } else { Vec::new() };
    let read_sheet = first.format().sheet_name().map(str::to_owned);
    if let Some((phone, rows)) = find_header_rows(first, file, format) {
        let is_known = rows.contains(&format.header_row.unwrap_or(1));
        return (!is_known).then_some(ListPlace { sheet: None, read_sheet: None, header_row: *rows.end(), phone });
    }
    others.into_iter().take(MAX_SHEETS).find_map(|name| {
        let (phone, rows) = find_header_rows(decode_sheet(Some(name.clone()))?, file, format)?;
        Some(ListPlace { sheet: Some(name), read_sheet: read_sheet.clone(), header_row: *rows.end(), phone })
    })
}

/// Finds the likely header rows. Returns the phone column's header and the range of rows.
///
/// The headers are in the first row with a phone header above numbers, or else in the row above the first number. The
/// range also covers the blank rows above the headers.
fn find_header_rows(text: DecodedText, file: &Path, format: &ListFormat) -> Option<(String, RangeInclusive<u32>)> {
    let mut sample = Vec::new();
    text.take(SAMPLE).read_to_end(&mut sample).ok()?;
    if sample.len() as u64 == SAMPLE {
        // The last row can be incomplete.
        sample.truncate(sample.iter().rposition(|byte| *byte == b'\n')? + 1);
    }
    let mut likely: Option<(String, RangeInclusive<u32>)> = None;
    for row in 1..=LAST_HEADER_ROW {
        let rest = RowBlanker::new(Cursor::new(sample.as_slice()), row, file);
        let declared = Cursor::new(format.delimiter.map(delimiter_line).unwrap_or_default());
        let Ok(ColumnSuggestion { phone: Some(header), numbers, .. }) = suggest_columns(declared.chain(rest), file)
        else {
            continue;
        };
        if parse_header_number(&header, None).is_some() {
            break;
        }
        likely = match &likely {
            // The header is still the same, so the rows just above it are blank.
            Some((known, rows)) if *known == header => Some((header, *rows.start()..=row)),
            Some((known, _)) if is_phone_header(known) => break,
            _ if is_phone_header(&header) || !header.is_empty() && numbers >= MIN_NUMBERS => Some((header, row..=row)),
            _ => likely,
        };
    }
    likely
}

impl ListPlace {
    /// Whether the header of the list's phone column suggests phone numbers.
    pub fn has_phone_header(&self) -> bool {
        is_phone_header(&self.phone)
    }

    /// A finding that the row used as the header looks like a title; `title` is the cell of that row above the phone
    /// numbers, if known.
    pub fn title_finding(&self, rule: &'static Rule, title: Option<&str>) -> Finding {
        let title = title.map_or_else(|| "the first row".to_owned(), |title| format!("`{title}`"));
        let message = format!(
            "{title} looks like a title; the phone numbers are under the header `{}` in row {}",
            self.phone, self.header_row
        );
        Finding::new(rule, message)
    }

    /// Adds the probable location of the list and the remedy to a finding about columns.
    pub fn add_advice(&self, finding: &mut Finding, remedy: &str) {
        let otherwise = self.read_sheet.as_ref().map(|read| format!("; otherwise, the sheet `{read}` is used"));
        let advice = format!("{}: {remedy}{}", self.describe(), otherwise.unwrap_or_default());
        // Advice about title rows still applies, so it is kept.
        finding.help = Some(match finding.help.take() {
            Some(help) if self.sheet.is_none() && finding.rule == &rules::RECIPIENTS_NO_HEADER => {
                format!("{advice}; or {help}")
            }
            Some(help) if self.sheet.is_none() && finding.rule == &rules::RECIPIENTS_RAGGED_ROW => {
                format!("{advice}; {help}")
            }
            _ if self.sheet.is_none()
                && [&rules::RECIPIENTS_NO_HEADER, &rules::RECIPIENTS_TITLE].contains(&finding.rule) =>
            {
                format!("{advice}, or delete the rows above the header")
            }
            _ => advice,
        });
    }

    fn describe(&self) -> String {
        match (&self.sheet, self.header_row) {
            (None, row) => format!("row {row} looks like the list header"),
            (Some(sheet), 1) => format!("the sheet `{sheet}` seems to contain the list"),
            (Some(sheet), row) => {
                format!("the sheet `{sheet}` seems to contain the list, with its header in row {row}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggest_text(text: &str) -> ColumnSuggestion {
        suggest_columns(text.as_bytes(), Path::new("list.csv")).unwrap()
    }

    #[test]
    fn ukrainian_headers_are_recognized() {
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

#[cfg(test)]
mod naming_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn header_in_any_language_gets_a_latin_name() {
        for (header, name) in [
            ("Ім'я", "first_name"),
            ("Имя", "first_name"),
            ("First name", "first_name"),
            ("Imię", "first_name"),
            ("Prenume", "first_name"),
            ("Oraș", "city_2"),
            ("Użytkownik", "uzytkownik"),
            ("Straße", "strasse"),
            ("plan", "plan"),
            ("Бонусна картка №", "bonusna_kartka"),
            ("Loyalty points (2026)", "loyalty_points_2026"),
            ("2026", "column_3"),
            ("顧客", "column_3"),
            ("row", "column_3"),
            ("if", "column_3"),
            ("__id", "id"),
            ("_", "column_3"),
            ("city", "city_2"),
        ] {
            let mut names = TakenNames::default();
            names.take_free_name("city".to_owned());
            assert_eq!(suggest_name(header, 2, &mut names), name, "{header:?}");
        }
    }

    #[test]
    fn duplicate_headers_are_numbered_in_linear_time() {
        let mut names = TakenNames::default();
        let last = (0..4_000).map(|_| names.take_free_name("x_y".to_owned())).last();
        assert_eq!((last, names.tried), (Some("x_y_4000".to_owned()), 3_999));
    }

    proptest! {
        #[test]
        fn suggested_name_is_valid_and_unique(header: String, taken in prop::collection::vec("[a-c]", 0..4)) {
            let mut names = TakenNames::default();
            let mut taken: Vec<String> = taken.into_iter().map(|name| names.take_free_name(name)).collect();
            for _ in 0..3 {
                let name = suggest_name(&header, 0, &mut names);
                prop_assert!(is_variable(&name), "{}", name);
                prop_assert!(!taken.contains(&name));
                taken.push(name);
            }
        }
    }
}

#[cfg(test)]
mod list_place_tests {
    use super::*;

    fn find_header_row(text: &'static str, format: &ListFormat) -> Option<u32> {
        let place = find_list(|| Ok(Cursor::new(text.as_bytes())), Path::new("list.csv"), format, None)?;
        assert_eq!(place.sheet, None);
        Some(place.header_row)
    }

    #[test]
    fn headers_below_titles_are_found() {
        for (text, row) in [
            ("Clients of spring\n\nphone,name\n+380501234567,Ann\n", Some(3)),
            ("Report,,\nMade by,Olena,2026\nТелефон,name,city\n0501234567,Ann,Kyiv\n0671234567,Bo,Lviv\n", Some(3)),
            ("Report,,\nMade by,Olena,2026\nnumber one,name,city\n0501234567,Ann,Kyiv\n0671234567,Bo,Lviv\n", Some(3)),
            ("phone,name\n+380501234567,Ann\n", None),
            ("\n\nphone,name\n+380501234567,Ann\n", None),
            ("Report\nManager,Olena\nPhone,+380501234567\n", None),
            ("Report\n", None),
            ("", None),
        ] {
            assert_eq!(find_header_row(text, &ListFormat::default()), row, "{text:?}");
        }
    }

    #[test]
    fn header_row_is_found_despite_a_wrong_configured_row() {
        let text = "Clients\nphone^name\n+380501234567^Ann, Bo\n";
        let delimiter = campaign_core::domain::Delimiter::new(b'^');
        assert_eq!(
            find_header_row(text, &ListFormat { header_row: Some(3), delimiter, ..ListFormat::default() }),
            Some(2)
        );
        assert_eq!(
            find_header_row(text, &ListFormat { header_row: Some(2), delimiter, ..ListFormat::default() }),
            None
        );
    }
}
