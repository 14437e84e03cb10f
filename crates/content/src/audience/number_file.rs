//! Files of phone numbers, such as opt-outs and consents. Every column of phone numbers is read, because a recipient
//! can have several numbers.

use std::io::Read;
use std::path::Path;

use super::columns::{HeaderIndex, HeaderMatch};
use super::phone_columns::{is_phone_header, resembles_phone_column};
use super::phones::resembles_number;
use super::reader::{Chunk, RecordFields, clean_cell};
use super::records::RecordReader;
use super::suggestion::{ListSample, parse_header_number};
use super::{PhoneProblem, parse_phone_number};
use campaign_core::domain::{Phone, Region, Row};
use campaign_core::finding::Finding;

/// The header that identifies the phone column if the cells do not.
const DEFAULT_HEADER: &str = "phone";

/// The phone columns of a file of phone numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberColumns {
    /// The phone columns, the preferred column first.
    columns: Vec<NumberColumn>,
    /// All headers of the file.
    headers: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NumberColumn {
    /// The index of the column, from 0.
    index: usize,
    evidence: PhoneEvidence,
}

/// The reason why a column can contain phone numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PhoneEvidence {
    /// The column is the preferred phone column.
    Preferred,
    /// Most of the column's first cells resemble phone numbers.
    Cells,
    /// Only the column's header announces phone numbers.
    Header,
    /// The column's first cells are empty, so later cells can contain phone numbers.
    Blank,
}

impl PhoneEvidence {
    /// The phone number in a cell, or the problem with it. `None` if the cell is empty or is allowed to contain
    /// something else.
    fn read_cell(self, cell: &str, region: Option<Region>) -> Option<Result<Phone, PhoneProblem>> {
        let number = parse_phone_number(cell, region);
        let counts = match (self, &number) {
            (_, Err(PhoneProblem::Empty)) => false,
            (Self::Preferred, _) | (Self::Cells, Ok(_)) => true,
            (Self::Cells, Err(_)) => cell.contains(char::is_numeric),
            (Self::Header | Self::Blank, Ok(_)) => resembles_number(cell),
            (Self::Header, Err(PhoneProblem::National | PhoneProblem::Ambiguous)) => resembles_number(cell),
            (Self::Header, Err(problem)) => {
                matches!(problem, PhoneProblem::Several | PhoneProblem::Rounded | PhoneProblem::Words)
            }
            (Self::Blank, Err(_)) => false,
        };
        counts.then_some(number)
    }
}

impl NumberColumns {
    /// Finds the columns of phone numbers in a file that might not have a header. `None` if there are none.
    /// `is_non_phone` returns whether a header belongs to a column with other content.
    ///
    /// # Errors
    ///
    /// The file is not CSV in UTF-8, is empty, has a title above its header, or one of its first rows is broken.
    pub fn detect<R: Read>(
        input: R,
        file: &Path,
        region: Option<Region>,
        is_non_phone: impl Fn(&str) -> bool,
    ) -> Result<Option<Self>, Box<Finding>> {
        let ListSample { records, sample, phone_column } = ListSample::open(input, file, true)?;
        let headers = records.header().headers.clone();
        let find_number_header = || headers.iter().position(|header| parse_header_number(header, None).is_some());
        let first = match phone_column {
            Some(found) => Some(found.column),
            None if sample.is_empty() => find_number_header(),
            // The only column is the phone column, even if few of its cells are numbers.
            None if headers.len() == 1 && find_number_header().is_some() => Some(0),
            None => find_columns(&headers, DEFAULT_HEADER).first().copied(),
        };
        let Some(first) = first else { return Ok(None) };
        let find_evidence = |column: usize, header: &str| {
            let is_blank = || sample.iter().all(|record| record.fields.get(column).trim().is_empty());
            if is_non_phone(header) {
                None
            } else if resembles_phone_column(&sample, column, region) {
                Some(PhoneEvidence::Cells)
            } else if is_phone_header(header) || parse_header_number(header, region).is_some() {
                Some(PhoneEvidence::Header)
            } else {
                is_blank().then_some(PhoneEvidence::Blank)
            }
        };
        let others = headers.iter().enumerate().filter(|(index, _)| *index != first).filter_map(|(index, header)| {
            let evidence = find_evidence(index, header)?;
            Some(NumberColumn { index, evidence })
        });
        let first = NumberColumn { index: first, evidence: PhoneEvidence::Preferred };
        let columns = [first].into_iter().chain(others).collect();
        Ok(Some(Self { columns, headers }))
    }

    /// Finds all columns with this header. `None` if there are none.
    ///
    /// # Errors
    ///
    /// The file is not CSV in UTF-8, or has no header.
    pub fn with_header<R: Read>(input: R, file: &Path, header: &str) -> Result<Option<Self>, Box<Finding>> {
        let records = RecordReader::open(input, file)?;
        let headers = records.header().headers.clone();
        let columns = find_columns(&headers, header).into_iter().enumerate().map(|(order, index)| {
            let evidence = if order == 0 { PhoneEvidence::Preferred } else { PhoneEvidence::Cells };
            NumberColumn { index, evidence }
        });
        let columns: Vec<NumberColumn> = columns.collect();
        Ok((!columns.is_empty()).then_some(Self { columns, headers }))
    }

    /// Keeps only the preferred column.
    #[must_use]
    pub fn into_preferred_column(mut self) -> Self {
        self.columns.truncate(1);
        self
    }

    /// The headers of all columns except the preferred phone column.
    pub fn other_headers(&self) -> impl Iterator<Item = &str> + Clone {
        let preferred = self.columns[0].index;
        self.headers.iter().enumerate().filter(move |(index, _)| *index != preferred).map(|(_, header)| header.as_str())
    }

    /// Whether the file has a column with this header.
    pub fn has_column(&self, header: &str) -> bool {
        !find_columns(&self.headers, header).is_empty()
    }

    /// Passes the phone numbers of a file, and problems with them, to `visit`, together with the cells under `others`.
    /// A row without numbers is passed once, with [`PhoneProblem::Empty`]. Cells are cleaned by [`clean_cell`], and the
    /// cells of a missing column are empty. Columns under `others` are not searched for numbers. Returns the labels of
    /// the columns that contain phone numbers.
    ///
    /// In a file that contains only numbers, the header line is passed too.
    ///
    /// # Errors
    ///
    /// The file is not UTF-8 text, has no header, or has a broken row.
    pub fn read_numbers<R: Read, const N: usize>(
        &self,
        input: R,
        file: &Path,
        region: Option<Region>,
        others: [Option<&str>; N],
        mut visit: impl FnMut(Row, Result<Phone, PhoneProblem>, [&str; N]),
    ) -> Result<Vec<String>, Box<Finding>> {
        let mut records = RecordReader::open(input, file)?;
        let others = others.map(|header| find_columns(&records.header().headers, header?).first().copied());
        let is_other = |column: &NumberColumn| others.contains(&Some(column.index));
        let columns = self.columns.iter().enumerate().filter(|(order, column)| *order == 0 || !is_other(column));
        let columns: Vec<&NumberColumn> = columns.map(|(_, column)| column).collect();
        let mut has_numbers = vec![false; columns.len()];
        for (column, has_numbers) in columns.iter().zip(&mut has_numbers) {
            if let Some(number) = parse_header_number(&self.headers[column.index], region) {
                *has_numbers |= number.is_ok();
                visit(Row::HEADER, number, [""; N]);
            }
        }
        let mut chunk = Chunk::new();
        loop {
            records.fill_chunk(&mut chunk)?;
            if chunk.is_empty() {
                let with_numbers = columns.iter().zip(&has_numbers).filter(|(_, has_numbers)| **has_numbers);
                return Ok(with_numbers.map(|(column, _)| self.label_column(column.index, region)).collect());
            }
            for record in chunk.iter() {
                let cell = |column| clean_cell(RecordFields::get(&record.fields, column));
                let cells = others.map(|column| column.map_or("", cell));
                let mut was_visited = false;
                for (column, has_numbers) in columns.iter().zip(&mut has_numbers) {
                    if let Some(number) = column.evidence.read_cell(cell(column.index), region) {
                        was_visited = true;
                        *has_numbers |= number.is_ok();
                        visit(record.row, number, cells);
                    }
                }
                if !was_visited {
                    visit(record.row, Err(PhoneProblem::Empty), cells);
                }
            }
        }
    }

    /// The header of a column, or its position if there is no header.
    fn label_column(&self, index: usize, region: Option<Region>) -> String {
        let header = &self.headers[index];
        match header.is_empty() || parse_header_number(header, region).is_some() {
            true => format!("column {}", index + 1),
            false => header.clone(),
        }
    }
}

/// The columns with exactly this header, or else the columns that match after normalization.
fn find_columns(headers: &[String], header: &str) -> Vec<usize> {
    let exact: Vec<usize> = (0..headers.len()).filter(|column| headers[*column] == header.trim()).collect();
    match HeaderIndex::new(headers).find(header) {
        HeaderMatch::Column(column) if exact.is_empty() => vec![column],
        HeaderMatch::Several(columns) => columns,
        _ => exact,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last digit of each phone number, or `None` for each problem, with its row; and the columns with numbers.
    fn read_text(text: &str, region: &str) -> (Vec<(u32, Option<u64>)>, Vec<String>) {
        let (file, region) = (Path::new("stop.csv"), region.parse().ok());
        let columns = NumberColumns::detect(text.as_bytes(), file, region, |header| header == "date").unwrap().unwrap();
        let mut numbers = Vec::new();
        let found = columns.read_numbers(text.as_bytes(), file, region, [], |row, number, []| {
            numbers.push((row.get(), number.ok().map(|phone| phone.to_u64() % 10)));
        });
        (numbers, found.unwrap())
    }

    #[test]
    fn numbers_are_read_from_every_phone_column() {
        for (text, region) in [
            ("phone,phone_2\n+380501234561,+380501234562\n", ""),
            ("phone,mobile\n+380501234561,+380501234562\n", ""),
            ("phone,x\n+380501234561,380501234562\n", ""),
            ("phone,phone\n+380501234561,+380501234562\n", ""),
            ("phone,x\n+380501234561,0501234562\n", "UA"),
            ("phone,\n+380501234561,+380501234562\n", ""),
            ("телефон;Телефон 2\n0501234561;050 123 45 62\n", "UA"),
        ] {
            let (numbers, columns) = read_text(text, region);
            let mut numbers: Vec<_> = numbers.into_iter().map(|(_, number)| number).collect();
            numbers.sort_unstable();
            assert_eq!((numbers.as_slice(), columns.len()), (&[Some(1), Some(2)][..], 2), "{text:?}");
        }
        let numbers = "+380501234561,+380501234562\n+380501234563,+380501234564\n";
        let expected = [(1, Some(1)), (1, Some(2)), (2, Some(3)), (2, Some(4))];
        assert_eq!(read_text(numbers, ""), (expected.to_vec(), vec!["column 1".to_owned(), "column 2".to_owned()]));
    }

    #[test]
    fn number_in_a_mostly_blank_column_is_read() {
        let rows = "+380501234561,\n".repeat(2_000);
        for header in ["phone_2", "x"] {
            let (numbers, columns) = read_text(&format!("phone,{header}\n{rows},+380501234562\n"), "");
            assert_eq!((numbers.last(), columns.len()), (Some(&(2_002, Some(2))), 2), "{header}");
        }
    }

    #[test]
    fn single_column_without_a_header_is_read_despite_other_cells() {
        assert_eq!(read_text("+380501234561\nnope\nnone\n", "").0, [(1, Some(1)), (2, None), (3, None)]);
    }

    #[test]
    fn invalid_number_in_another_phone_column_is_reported() {
        for second in ["0501234562", "3.80501E+11", "+380501234562, +380501234563", "Olha +380501234562"] {
            let text = format!("phone,phone_2\n+380501234561,\"{second}\"\n");
            assert_eq!(read_text(&text, "").0, [(2, Some(1)), (2, None)], "{second}");
        }
        // Without a region, national numbers are recognized under any header.
        assert_eq!(read_text("phone,x\n+380501234561,0501234562\n", "").0, [(2, Some(1)), (2, None)]);
        assert_eq!(read_text("phone,phone_2\n,\n+380501234561,\n", "").0, [(3, Some(1))]);
        assert_eq!(read_text("phone,phone_2,x\n,,x\n+380501234561,,x\n", "").0, [(2, None), (3, Some(1))]);
    }

    #[test]
    fn column_that_is_read_as_text_is_not_a_phone_column() {
        let (text, file) = ("phone,from\n+380501234561,+380501234562\n", Path::new("consents.csv"));
        let columns = NumberColumns::detect(text.as_bytes(), file, None, |_| false).unwrap().unwrap();
        assert!(columns.has_column("FROM") && !columns.has_column("date"));
        let mut cells = Vec::new();
        let read = |_, _, [from, date]: [&str; 2]| cells.push((from.to_owned(), date.to_owned()));
        let found = columns.read_numbers(text.as_bytes(), file, None, [Some("from"), None], read).unwrap();
        assert_eq!((found, cells), (vec!["phone".to_owned()], vec![("+380501234562".to_owned(), String::new())]));
    }

    #[test]
    fn non_phone_columns_are_not_read() {
        for (header, cell) in [
            ("name", "Olha"),
            ("id", "1000000001"),
            ("Номер замовлення", "1000000001"),
            ("Контактна особа", "Olha"),
            ("phone verified", "yes"),
            ("cancelled", "2026-11-01"),
            ("note", "no +380501234562"),
            ("date", "+380501234562"),
        ] {
            let text = format!("phone,{header}\n+380501234561,{cell}\n");
            assert_eq!(read_text(&text, "").0, [(2, Some(1))], "{header}");
        }
    }
}
