//! Phone columns of a list, and the choice of a number in each row.

use super::chunk::RecordFields;
use super::phones::{ValidNumber, parse_number};
use super::problem::PhoneProblem;
use crate::domain::{Phone, Region};

/// The phone columns, the first choice first; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhoneColumns {
    first: usize,
    others: Vec<usize>,
    /// The header of the first choice.
    header: String,
}

impl PhoneColumns {
    /// The phone columns of a list with these headers. `None` if there are none.
    pub(super) fn from_columns(columns: &[usize], headers: &[String]) -> Option<Self> {
        let (first, others) = columns.split_first()?;
        let header = headers.get(*first).cloned().unwrap_or_default();
        Some(Self { first: *first, others: others.to_vec(), header })
    }

    /// The first choice, from 0.
    #[must_use]
    pub fn first(&self) -> usize {
        self.first
    }

    /// Whether a column is one of them.
    #[must_use]
    pub fn contains(&self, column: usize) -> bool {
        self.first == column || self.others.contains(&column)
    }

    /// The number of a row: the first valid number that can be mobile, or else the first valid one.
    ///
    /// # Errors
    ///
    /// The problem with the first cell that is not empty.
    pub fn choose_number(&self, fields: RecordFields<'_>, region: Option<Region>) -> Result<ValidNumber, PhoneProblem> {
        let mut chosen = parse_number(fields.get(self.first), region);
        for column in &self.others {
            if matches!(chosen, Ok(ValidNumber { landline: false, .. })) {
                break;
            }
            match (parse_number(fields.get(*column), region), chosen) {
                (Ok(number), Err(_)) => chosen = Ok(number),
                (Ok(number), Ok(_)) if !number.landline => chosen = Ok(number),
                (Err(problem), Err(PhoneProblem::Empty)) => chosen = Err(problem),
                _ => {}
            }
        }
        chosen.map_err(|problem| if self.is_header(fields) { PhoneProblem::Header } else { problem })
    }

    /// Whether a row repeats the header instead of a number.
    fn is_header(&self, fields: RecordFields<'_>) -> bool {
        let (cell, header) = (fields.get(self.first).trim(), self.header.as_str());
        !cell.is_empty() && (cell == header || cell.len() < 100 && cell.to_lowercase() == header.to_lowercase())
    }

    /// The same without its kind.
    ///
    /// # Errors
    ///
    /// Those of [`Self::number`].
    pub fn choose_phone(&self, fields: RecordFields<'_>, region: Option<Region>) -> Result<Phone, PhoneProblem> {
        self.choose_number(fields, region).map(|number| number.phone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audience::Chunk;
    use crate::domain::Row;

    #[test]
    fn first_valid_number_is_chosen_landline_last() {
        let (mobile, other, landline) = ("+380501234567", "+380671234567", "+380441234567");
        let headers = ["home", "work", "Mobile"].map(str::to_owned);
        let columns = PhoneColumns::from_columns(&[2, 0, 1], &headers).unwrap();
        for (cells, expected) in [
            ([other, "", mobile], Ok(380_501_234_567)),
            ([other, "", ""], Ok(380_671_234_567)),
            ([other, "", "none"], Ok(380_671_234_567)),
            ([landline, other, landline], Ok(380_671_234_567)),
            (["12", landline, ""], Ok(380_441_234_567)),
            ([landline, "", "+380442345678"], Ok(380_442_345_678)),
            (["12", "none", ""], Err(PhoneProblem::TooShort)),
            (["", "none", ""], Err(PhoneProblem::Letters)),
            (["", "", ""], Err(PhoneProblem::Empty)),
            (["home", "work", " mobile "], Err(PhoneProblem::Header)),
            (["Olena", "", "Mobile phone"], Err(PhoneProblem::Letters)),
            ([other, "", "Mobile"], Ok(380_671_234_567)),
        ] {
            let mut chunk = Chunk::new();
            chunk.reset(3);
            chunk.push(Row::new(2), &csv::StringRecord::from(cells.to_vec()));
            let number = columns.choose_phone(chunk.get(0).unwrap().fields, None).map(Phone::to_u64);
            assert_eq!(number, expected, "{cells:?}");
        }
        assert_eq!(PhoneColumns::from_columns(&[], &headers), None);
    }
}
