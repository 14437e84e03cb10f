//! Row numbers as a spreadsheet shows them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A row of the recipients as a spreadsheet numbers it: the header is row 1, blank lines count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Row(u32);

impl Row {
    /// The header's row.
    pub const HEADER: Row = Row(1);
    /// The row below it, the first that a recipient can have.
    pub const FIRST: Row = Row(2);

    /// The row of that number.
    #[must_use]
    pub fn new(number: u32) -> Self {
        Self(number)
    }

    /// The row's number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Rows chosen on the command line, such as `2-51,60`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSet(Vec<(u32, u32)>);

/// Why a choice of rows cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseRowsError {
    /// A part is neither a number nor a range.
    #[error("`{0}` is not a row or a range of rows; write, for example, `2-51,60`")]
    NotARange(String),
    /// The header was asked for.
    #[error("row 1 is the header; the first recipient is in row 2")]
    Header,
    /// A range ends before it begins.
    #[error("`{0}` ends before it starts")]
    Backwards(String),
}

impl RowSet {
    /// Whether `row` was chosen.
    #[must_use]
    pub fn contains(&self, row: Row) -> bool {
        self.0.iter().any(|&(first, last)| (first..=last).contains(&row.get()))
    }

    /// The row, if one row alone was chosen.
    #[must_use]
    pub fn single_row(&self) -> Option<Row> {
        match self.0[..] {
            [(first, last)] if first == last => Some(Row(first)),
            _ => None,
        }
    }

    /// The last row chosen.
    #[must_use]
    pub fn last_row(&self) -> Row {
        Row(self.0.iter().map(|&(_, last)| last).max().unwrap_or(0))
    }
}

impl FromIterator<u32> for RowSet {
    /// The rows of these numbers, which come in ascending order.
    fn from_iter<I: IntoIterator<Item = u32>>(rows: I) -> Self {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for row in rows {
            match ranges.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(row) => *last = row,
                _ => ranges.push((row, row)),
            }
        }
        Self(ranges)
    }
}

impl From<Row> for RowSet {
    fn from(row: Row) -> Self {
        Self(vec![(row.get(), row.get())])
    }
}

impl std::fmt::Display for RowSet {
    /// Writes it as it is chosen: `2-51,60`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (first, last)) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl std::str::FromStr for RowSet {
    type Err = ParseRowsError;

    fn from_str(text: &str) -> Result<Self, ParseRowsError> {
        let mut ranges = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number =
                |digits: &str| digits.trim().parse::<u32>().map_err(|_| ParseRowsError::NotARange(part.to_owned()));
            let (first, last) = (number(first)?, number(last)?);
            if first <= 1 {
                return Err(ParseRowsError::Header);
            }
            if last < first {
                return Err(ParseRowsError::Backwards(part.to_owned()));
            }
            ranges.push((first, last));
        }
        Ok(Self(ranges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_set_accepts_numbers_and_ranges() {
        let rows: RowSet = "2-4, 60".parse().unwrap();
        let chosen: Vec<u32> = (1..100).filter(|&n| rows.contains(Row::new(n))).collect();
        assert_eq!(chosen, [2, 3, 4, 60]);
        assert_eq!(rows.to_string(), "2-4,60");
    }

    #[test]
    fn row_set_joins_neighbours() {
        let rows: RowSet = [2, 3, 4, 9, 11, 12].into_iter().collect();
        assert_eq!(rows.to_string(), "2-4,9,11-12");
        assert_eq!(rows.single_row(), None);
        assert_eq!("7".parse::<RowSet>().unwrap().single_row(), Some(Row::new(7)));
    }

    #[test]
    fn row_set_rejects_header_and_nonsense() {
        assert_eq!("1".parse::<RowSet>(), Err(ParseRowsError::Header));
        assert_eq!("1-5".parse::<RowSet>(), Err(ParseRowsError::Header));
        assert_eq!("5-2".parse::<RowSet>(), Err(ParseRowsError::Backwards("5-2".into())));
        assert_eq!("2,x".parse::<RowSet>(), Err(ParseRowsError::NotARange("x".into())));
        assert_eq!("".parse::<RowSet>(), Err(ParseRowsError::NotARange(String::new())));
    }
}
