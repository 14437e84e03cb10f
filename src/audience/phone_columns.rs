//! The columns that hold a recipient's numbers, and which number of a row is taken.

use super::chunk::Fields;
use super::phones::{Number, parse_number};
use super::problem::PhoneProblem;
use crate::domain::{Phone, Region};

/// The columns that hold a recipient's numbers, the first choice first; never none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhoneColumns {
    first: usize,
    others: Vec<usize>,
}

impl PhoneColumns {
    /// These columns; nothing if there are none.
    pub(super) fn of(columns: &[usize]) -> Option<Self> {
        let (first, others) = columns.split_first()?;
        Some(Self { first: *first, others: others.to_vec() })
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

    /// The number of a row: the first valid one that may be a mobile phone's, else the first valid one.
    ///
    /// # Errors
    ///
    /// What is wrong with the first cell that is not empty.
    pub fn number(&self, fields: Fields<'_>, region: Option<Region>) -> Result<Number, PhoneProblem> {
        let mut chosen = parse_number(fields.get(self.first), region);
        for column in &self.others {
            if matches!(chosen, Ok(Number { landline: false, .. })) {
                break;
            }
            match (parse_number(fields.get(*column), region), chosen) {
                (Ok(number), Err(_)) => chosen = Ok(number),
                (Ok(number), Ok(_)) if !number.landline => chosen = Ok(number),
                (Err(problem), Err(PhoneProblem::Empty)) => chosen = Err(problem),
                _ => {}
            }
        }
        chosen
    }

    /// The same without its kind.
    ///
    /// # Errors
    ///
    /// Those of [`Self::number`].
    pub fn phone(&self, fields: Fields<'_>, region: Option<Region>) -> Result<Phone, PhoneProblem> {
        self.number(fields, region).map(|number| number.phone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audience::Chunk;
    use crate::domain::Row;

    #[test]
    fn first_valid_number_is_taken_and_a_landline_last() {
        let (mobile, other, landline) = ("+380501234567", "+380671234567", "+380441234567");
        let columns = PhoneColumns::of(&[2, 0, 1]).unwrap();
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
        ] {
            let mut chunk = Chunk::new();
            chunk.clear(3);
            chunk.push(Row::new(2), &csv::StringRecord::from(cells.to_vec()));
            let number = columns.phone(chunk.get(0).unwrap().fields, None).map(Phone::get);
            assert_eq!(number, expected, "{cells:?}");
        }
        assert_eq!(PhoneColumns::of(&[]), None);
    }
}
