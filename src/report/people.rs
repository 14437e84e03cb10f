//! One row per person of several runs: the one that has the last word on them.

use roaring::{RoaringBitmap, RoaringTreemap};

use super::ResultsError;
use super::listing::Listing;
use crate::domain::{Phone, Row};
use crate::ledger::State;

/// The rows of each listing that stand for a person; the oldest run is the first.
///
/// The newest run that sent something to a number, or is going to, has the last word; a run that left it out only where no
/// other says more. What is no number is nobody, and stands once, in the newest list.
pub(super) async fn choose(listings: Vec<Listing<'_>>) -> Result<Vec<RoaringBitmap>, ResultsError> {
    let mut people = People::default();
    let mut chosen = Vec::with_capacity(listings.len());
    for listing in listings.into_iter().rev() {
        let first = chosen.is_empty();
        let mut words = Words::read(listing, &mut people).await?;
        let waiting = std::mem::take(&mut words.waiting);
        people.take(&mut words.rows, &waiting);
        if first {
            words.rows |= std::mem::take(&mut words.nobody);
        }
        chosen.push(words);
    }
    let rows = chosen.into_iter().map(|mut words| {
        people.take(&mut words.rows, &words.left_out);
        words.rows
    });
    let mut rows: Vec<RoaringBitmap> = rows.collect();
    rows.reverse();
    Ok(rows)
}

/// The people who have their row.
#[derive(Default)]
struct People(RoaringTreemap);

impl People {
    /// Takes the rows of those who have none yet.
    fn take(&mut self, rows: &mut RoaringBitmap, words: &[(Row, Phone)]) {
        for (row, phone) in words {
            if self.0.insert(phone.get()) {
                rows.insert(row.get());
            }
        }
    }
}

/// What a run says of its rows.
#[derive(Default)]
struct Words {
    /// The rows that stand for a person: first those with an operation.
    rows: RoaringBitmap,
    /// They have none, and are not left out: planned, rejected, not sent.
    waiting: Vec<(Row, Phone)>,
    /// They were left out.
    left_out: Vec<(Row, Phone)>,
    /// What stands there is no number.
    nobody: RoaringBitmap,
}

impl Words {
    async fn read(listing: Listing<'_>, people: &mut People) -> Result<Self, ResultsError> {
        let (region, activity) = (listing.brief.region, listing.activity());
        let reader = listing.reader()?;
        let columns = reader.header().phones().clone();
        let mut rows = listing.rows(reader);
        let mut words = Self::default();
        while let Some((chunk, facts)) = rows.next().await? {
            for (recipient, facts) in chunk.iter().zip(&facts) {
                let phone = facts.phone(recipient.fields, &columns, region);
                words.add((recipient.row, phone), facts.state(activity), people);
            }
        }
        rows.finish().await?;
        Ok(words)
    }

    fn add(&mut self, (row, phone): (Row, Option<Phone>), state: State, people: &mut People) {
        let Some(phone) = phone else {
            self.nobody.insert(row.get());
            return;
        };
        match state {
            State::Skipped | State::Invalid => self.left_out.push((row, phone)),
            _ if state.has_operation() => people.take(&mut self.rows, &[(row, phone)]),
            _ => self.waiting.push((row, phone)),
        }
    }
}
