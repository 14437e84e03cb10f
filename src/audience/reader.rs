//! A list of recipients, read once from its first row to its last.

use std::fmt;
use std::io::Read;
use std::path::Path;

use super::chunk::Chunk;
use super::columns::{self, ListHeader, ListSettings, NamedColumns};
use super::records::RecordReader;
use super::trouble;
use crate::domain::Row;
use crate::finding::{Finding, rules};

/// The reason why a list is refused, and the names of its columns.
#[derive(Clone, Debug)]
pub struct RejectedList {
    /// What is wrong with it.
    pub findings: Vec<Finding>,
    /// Its columns, including those that only the campaign names. `None` if they have no names.
    pub columns: Option<NamedColumns>,
}

/// Reads a list of recipients in chunks.
pub struct RecipientReader<R> {
    records: RecordReader<R>,
    header: ListHeader,
    /// The records by which the columns were judged, until they are handed out.
    ahead: Option<(Chunk, Result<(), Box<Finding>>)>,
}

impl<R: Read> RecipientReader<R> {
    /// Reads the header and judges the columns by the first records.
    ///
    /// Takes no more of `input` than it needs for that; at the end of the list all of it was
    /// read. `file` is the name by which findings call it.
    ///
    /// # Errors
    ///
    /// The file is no CSV in UTF-8, has no header or no recipients, or its columns do not fit
    /// the settings.
    pub fn open(input: R, file: &Path, settings: &ListSettings) -> Result<Self, Vec<Finding>> {
        Self::open_with_columns(input, file, settings).map_err(|refused| refused.findings)
    }

    /// Like [`Reader::open`], but the error of a refused list has the names of its columns, if it has any.
    ///
    /// # Errors
    ///
    /// As those of [`Reader::open`].
    pub fn open_with_columns(input: R, file: &Path, settings: &ListSettings) -> Result<Self, RejectedList> {
        let unnamed = |finding: Box<Finding>| RejectedList { findings: vec![*finding], columns: None };
        let mut records = RecordReader::open(input, file).map_err(unnamed)?;
        let names = columns::name_columns(records.header(), settings);
        let named = names.clone();
        if let Some(phone) = names.phone() {
            records.set_phone_column(phone);
        }
        let mut ahead = Chunk::new();
        let filled = records.fill_chunk(&mut ahead);
        match columns::resolve_columns(names, records.header(), &ahead, settings.region) {
            Ok(_) if ahead.is_empty() && filled.is_ok() && !settings.may_be_empty => {
                let findings = vec![trouble::no_recipients(records.header().spot())];
                Err(RejectedList { findings, columns: Some(named.into_columns(records.header(), settings)) })
            }
            Ok(header) => Ok(Self { records, header, ahead: Some((ahead, filled)) }),
            Err(mut findings) => {
                // If the first row names no columns, they are unknown.
                let has_header = !findings.iter().any(|finding| *finding.rule == rules::RECIPIENTS_NO_HEADER);
                let columns = has_header.then(|| named.into_columns(records.header(), settings));
                findings.extend(filled.err().map(|finding| *finding));
                Err(RejectedList { findings, columns })
            }
        }
    }

    /// The columns.
    pub fn header(&self) -> &ListHeader {
        &self.header
    }

    /// What stands between two cells.
    pub fn delimiter(&self) -> u8 {
        self.records.header().delimiter.to_byte()
    }

    /// The last row met, blank ones included; at the end the file's last row.
    pub fn last_row(&self) -> Row {
        self.records.last_row()
    }

    /// The input, of which all was read that was handed out.
    pub fn into_input(self) -> R {
        self.records.into_input()
    }

    /// Replaces what the chunk holds by the next records; false at the end of the list.
    ///
    /// # Errors
    ///
    /// A row is not as it should be, which ends the list; the chunk then holds the records before it. Rows that do not fit the
    /// header are told together, at the end of the list.
    pub fn read_chunk(&mut self, chunk: &mut Chunk) -> Result<bool, Box<Finding>> {
        match self.ahead.take() {
            Some((mut first, filled)) => {
                std::mem::swap(chunk, &mut first);
                filled?;
            }
            None => self.records.fill_chunk(chunk)?,
        }
        Ok(!chunk.is_empty())
    }
}

/// Shows the columns alone: cells are personal.
impl<R> fmt::Debug for RecipientReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("header", &self.header).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_text<'a>(
        text: &'a str,
        columns: &[(&str, &str)],
        region: &str,
    ) -> Result<RecipientReader<&'a [u8]>, Vec<Finding>> {
        let columns = columns.iter().map(|&(name, header)| (name.to_owned(), header.to_owned())).collect();
        let settings = ListSettings { columns, region: region.parse().ok(), may_be_empty: false };
        RecipientReader::open(text.as_bytes(), Path::new("list.csv"), &settings)
    }

    fn open_findings(text: &str, columns: &[(&str, &str)], region: &str) -> Vec<Finding> {
        open_text(text, columns, region).err().unwrap()
    }

    #[test]
    fn columns_have_the_names_from_the_campaign() {
        let text = "\u{feff}Мобільний;Ім'я; city ;First name;\n+380501234567;Олена;Київ;Olena;x\n";
        let reader = open_text(text, &[("phone", "Мобільний"), ("first_name", "Ім'я")], "").unwrap();
        let header = reader.header();
        assert_eq!(header.headers(), ["Мобільний", "Ім'я", "city", "First name", ""]);
        assert_eq!(header.names(), ["phone", "first_name", "city", "First name", "column_5"]);
        assert_eq!(header.phone(), 0);
    }

    #[test]
    fn column_findings_say_what_to_write() {
        let list = "Мобільний,name\n+380501234567,Olena\n";
        let national = "phone,name\n0501234567,Olena\n0671234567,Ivan\n";
        let swapped = "phone,mobile\n12,+380501234567\n13,+380671234567\n";
        for (text, columns, rule, advice) in [
            (list, &[][..], "recipients-phone-column", "`columns: { phone: \"Мобільний\" }`"),
            ("tel,name\n0501234567,O\n", &[], "recipients-phone-column", "`region: UA`"),
            ("a,b\n1,2\n", &[], "recipients-phone-column", "`columns: { phone: \"…\" }`"),
            (list, &[("phone", "Мобилний")], "recipients-unknown-column", "did you mean `Мобільний`?"),
            (list, &[("phone", "x")], "recipients-unknown-column", "`Мобільний` and `name`"),
            (list, &[("phone", "A")], "recipients-unknown-column", "the column's header, `phone: \"Мобільний\"`"),
            (list, &[("phone", "C")], "recipients-unknown-column", "`Мобільний` and `name`"),
            (swapped, &[("mobile", "Tel")], "recipients-unknown-column", "write `Tel: \"mobile\"` in the campaign"),
            (national, &[], "recipients-phone-column", "`region: UA`"),
            (swapped, &[], "recipients-phone-column", "`columns: { phone: \"mobile\" }`"),
            ("phone,a,a\n1,2,3\n", &[], "recipients-duplicate-column", "rename one of the two columns"),
            (swapped, &[("phone", "mobile")], "recipients-duplicate-column", "`columns: { other_phone: \"phone\" }`"),
            (
                list,
                &[("phone", "Мобільний"), ("to", "Мобільний")],
                "recipients-duplicate-column",
                "keep one of the names",
            ),
            ("+380501234567,Olena\n+380671234567,Ivan\n", &[], "recipients-no-header", "`phone,first_name`"),
            ("phone,name\n", &[], "recipients-empty", "add a row"),
            ("phone,name\n\n,\n", &[], "recipients-empty", "add a row"),
        ] {
            let findings = open_findings(text, columns, "");
            let help = findings[0].help.clone().unwrap();
            assert_eq!(findings[0].rule, rule, "{text:?}");
            assert!(help.contains(advice), "{text:?}: {help}");
            assert_eq!(findings[0].place.as_ref().unwrap().line_number(), 1, "{text:?}");
        }
    }

    #[test]
    fn column_finding_points_to_its_header() {
        for (text, columns, line, shown) in [
            ("\nname,\"Мобільний\"\nO,+380501234567\n", &[][..], 2, "\"Мобільний\""),
            ("phone,a,a\n1,2,3\n", &[], 1, "a"),
            ("phone,name\n+380501234567,O\n", &[("x", "y")], 1, "phone,name"),
            ("\n\nphone,name\n", &[], 3, "phone,name"),
        ] {
            let place = open_findings(text, columns, "").remove(0).place.unwrap();
            assert_eq!((place.line_number(), &place.source.text()[place.span.clone()]), (line, shown), "{text:?}");
        }
    }

    #[test]
    fn all_column_findings_are_reported_at_once() {
        let findings = open_findings("phone,name,name\n1,2\n", &[("code", "promo")], "");
        let rules: Vec<&str> = findings.iter().map(|finding| finding.rule.id).collect();
        assert_eq!(rules, ["recipients-unknown-column", "recipients-duplicate-column", "recipients-ragged-row"]);
    }

    #[test]
    fn few_wrong_numbers_do_not_reject_the_list() {
        for text in ["phone\n+380501234567\nx\n", "phone,n\nx,1\n", "phone,n\n,1\n"] {
            assert!(open_text(text, &[], "").is_ok(), "{text:?}");
        }
    }

    #[test]
    fn list_can_have_as_many_columns_as_a_spreadsheet() {
        let columns = |number: usize| {
            let header: String = (1..number).map(|column| format!(",column {column}")).collect();
            format!("phone{header}\n+380501234567{}\n", ",".repeat(number - 1))
        };
        assert_eq!(open_text(&columns(16_384), &[], "").unwrap().header().names().len(), 16_384);
        let finding = open_findings(&columns(16_385), &[], "").remove(0);
        assert_eq!(finding.rule.id, "recipients-too-many-columns");
        assert!(finding.message.contains("16385 columns"), "{}", finding.message);
        let same = format!("phone{}\n+380501234567{}\n", ",a".repeat(99), ",".repeat(99));
        let findings = open_findings(&same, &[], "");
        assert_eq!(findings.len(), 20);
        assert!(findings[19].message.ends_with("; 78 more columns have the same name as an earlier column"));
    }

    #[test]
    fn column_checks_take_linear_time() {
        let time = |number: usize| {
            let header: String =
                (1..number).map(|column| format!(",a column with a rather long name {column}")).collect();
            let text = format!("phone{header}\n+380501234567{}\n", ",".repeat(number - 1));
            let once = || {
                let start = std::time::Instant::now();
                assert!(open_text(&text, &[], "").is_ok());
                crate::audience::suggest_columns(text.as_bytes(), Path::new("list.csv")).unwrap();
                start.elapsed()
            };
            (0..5).map(|_| once()).min().unwrap()
        };
        let (few, many) = (time(4_000), time(16_000));
        assert!(many < few * 10, "{few:?}, and {many:?} with four times the columns");
    }

    #[test]
    fn every_record_is_returned_once_in_order() {
        let mut text = "phone,n\n".to_owned();
        for number in 0..2000 {
            text += &format!("+380501234567,{number}\n{}", if number % 7 == 0 { "\n" } else { "" });
        }
        let mut reader = open_text(&text, &[], "").unwrap();
        let (mut chunk, mut numbers, mut rows) = (Chunk::new(), Vec::new(), Vec::new());
        while reader.read_chunk(&mut chunk).unwrap() {
            assert!(chunk.len() <= Chunk::CAPACITY);
            numbers.extend(chunk.iter().map(|record| record.fields.get(1).parse::<usize>().unwrap()));
            rows.extend(chunk.iter().map(|record| record.row));
        }
        assert_eq!(numbers, (0..2000).collect::<Vec<_>>());
        assert!(rows.is_sorted());
        let blank = 2000_usize.div_ceil(7);
        assert_eq!(reader.last_row().get() as usize, 1 + numbers.len() + blank);
        assert!(!reader.read_chunk(&mut chunk).unwrap());
    }

    #[test]
    fn early_broken_record_follows_readable_records() {
        let mut reader = open_text("phone,n\n+380501234567,1\n+380501234567\n+380501234567,3\n", &[], "").unwrap();
        let mut chunk = Chunk::new();
        assert_eq!(reader.read_chunk(&mut chunk).unwrap_err().rule, "recipients-ragged-row");
        assert_eq!(chunk.len(), 2);
        assert!(!reader.read_chunk(&mut chunk).unwrap());
    }

    #[test]
    fn phone_column_is_found_in_any_case() {
        assert_eq!(open_text("Name,PHONE \nOlena,+380501234567\n", &[], "").unwrap().header().phone(), 1);
        let findings = open_findings("Phone,PHONE\n+380501234567,+380501234567\n", &[], "");
        assert_eq!(findings[0].rule, "recipients-phone-column");
    }
}
