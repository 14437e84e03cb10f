//! What a run is reported from: the copies that it froze, or for a shared run, which has no list, what its envelopes tell.

use std::collections::BTreeMap;
use std::io::Sink;

use jiff::tz::TimeZone;

use crate::check::Tee;
use crate::delivery::{FrozenInputs, SingleKind};
use crate::domain::{Addressee, FORGOTTEN, Row};
use crate::ledger::{Copies, EnvelopeReader, Ledger, LedgerError, Run};

/// The copies of a run; of a shared run a list of whom it has sent to, each at its row.
///
/// # Errors
/// When the ledger cannot be read, or has no copies of it.
pub async fn load_copies(ledger: &dyn Ledger, run: &Run) -> Result<Copies, LedgerError> {
    let Some(kind) = SingleKind::from_run(run).filter(|_| run.shared) else { return ledger.load_copies(run).await };
    let list = build_list(&load_addressees(ledger, run).await?);
    let unreadable = |error: String| LedgerError::Unreadable(error);
    let sha256 = Tee::new(list.as_slice(), None::<Sink>).finish().map_err(|error| unreadable(error.to_string()))?;
    let began = run.began_at.to_zoned(TimeZone::system()).date().to_string();
    let place = format!("the ledger's records of {}", run.name());
    let frozen = kind.frozen_inputs(&run.gateway, began, sha256).to_bytes();
    Ok(Copies::in_memory(place, frozen.map_err(|error| unreadable(error.to_string()))?, list))
}

/// The clock that a run's times are told by: its campaign's, or this machine's where it names none or is gone.
pub async fn load_display_zone(ledger: &dyn Ledger, run: &Run) -> TimeZone {
    load_campaign_zone(ledger, run).await.unwrap_or_else(TimeZone::system)
}

/// The zone of a run's campaign. `None` for a shared run, and if its copies cannot be read.
pub async fn load_campaign_zone(ledger: &dyn Ledger, run: &Run) -> Option<TimeZone> {
    let frozen = if run.shared { None } else { FrozenInputs::load_for_run(ledger, run).await.ok() };
    frozen.map(|frozen| frozen.brief.home_zone())
}

/// Whom a run sent to.
async fn load_addressees(ledger: &dyn Ledger, run: &Run) -> Result<BTreeMap<Row, Addressee>, LedgerError> {
    let mut numbers = BTreeMap::new();
    let mut envelopes = EnvelopeReader::new(ledger, run.key);
    while let Some(envelope) = envelopes.next_envelope().await? {
        numbers.extend(envelope.rows.iter().map(|sent| (sent.row, sent.to)));
    }
    Ok(numbers)
}

/// A list with each number at its row; the rows between are blank.
fn build_list(numbers: &BTreeMap<Row, Addressee>) -> Vec<u8> {
    let mut list = b"phone\n".to_vec();
    let mut row = Row::FIRST.get();
    for (at, number) in numbers {
        let blank = at.get().saturating_sub(row) as usize;
        list.extend(std::iter::repeat_n(b'\n', blank));
        let number = number.phone().map_or_else(|| FORGOTTEN.to_owned(), |number| number.to_string());
        list.extend(format!("{number}\n").into_bytes());
        row = at.get() + 1;
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Phone;

    #[test]
    fn numbers_keep_their_rows() {
        let number = |last: u64| Addressee::from(Phone::new(380_501_234_560 + last).unwrap());
        let numbers = [(2, 1), (3, 2), (6, 3)].map(|(row, last)| (Row::new(row), number(last)));
        let list = String::from_utf8(build_list(&numbers.into())).unwrap();
        let lines: Vec<&str> = list.lines().collect();
        assert_eq!(lines, ["phone", "380501234561", "380501234562", "", "", "380501234563"]);
        assert_eq!(super::build_list(&BTreeMap::new()), b"phone\n");
    }
}
