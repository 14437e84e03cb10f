//! Results of several runs with one row per recipient: the latest decisive one.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use roaring::{RoaringBitmap, RoaringTreemap};
use rustc_hash::FxHashSet;

use super::ResultsError;
use super::listing::Listing;
use crate::check::TextHash;
use crate::domain::{Phone, Row};
use crate::ledger::State;

/// The texts of a list's rows, in their order. `None` if all rows of a number count as one recipient.
pub(super) type RowTexts = Option<Vec<(Row, TextHash)>>;

/// The rows of each listing that stand for a recipient; the oldest run is the first.
///
/// The newest run that sent something to a recipient, or is going to, decides. A run that skipped the recipient counts only if
/// no other run has more. A row without a phone number has no recipient, and appears once, for the newest list.
pub(super) async fn choose(listings: Vec<(Listing<'_>, RowTexts)>) -> Result<Vec<RoaringBitmap>, ResultsError> {
    let mut people = People::default();
    let mut chosen = Vec::with_capacity(listings.len());
    for (listing, texts) in listings.into_iter().rev() {
        let first = chosen.is_empty();
        let mut words = Words::read(listing, texts, &mut people).await?;
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

/// The identity of a recipient.
#[derive(Clone, Copy)]
enum Recipient {
    Number(Phone),
    /// With `duplicates: allow`: a hash of its number, its text, and how many rows before it have the same.
    Row(u64),
}

/// The recipients who have their row.
#[derive(Default)]
struct People {
    numbers: RoaringTreemap,
    rows: FxHashSet<u64>,
}

impl People {
    /// Takes the rows of those who have none yet.
    fn take(&mut self, rows: &mut RoaringBitmap, words: &[(Row, Recipient)]) {
        for (row, recipient) in words {
            let is_new = match recipient {
                Recipient::Number(phone) => self.numbers.insert(phone.get()),
                Recipient::Row(hash) => self.rows.insert(*hash),
            };
            if is_new {
                rows.insert(row.get());
            }
        }
    }
}

/// Identifies the rows of a list by their numbers, or by their numbers and texts.
struct Recipients {
    texts: Option<std::iter::Peekable<std::vec::IntoIter<(Row, TextHash)>>>,
    /// How many rows of the same number and text came before.
    same: HashMap<(Phone, Option<TextHash>), u32>,
}

impl Recipients {
    fn new(texts: RowTexts) -> Self {
        Self { texts: texts.map(|texts| texts.into_iter().peekable()), same: HashMap::new() }
    }

    /// The recipient of a row. Rows are asked for in ascending order.
    fn of(&mut self, row: Row, phone: Phone) -> Recipient {
        let Some(texts) = &mut self.texts else { return Recipient::Number(phone) };
        while texts.next_if(|(before, _)| *before < row).is_some() {}
        let text = texts.next_if(|(of, _)| *of == row).map(|(_, text)| text);
        let count = self.same.entry((phone, text)).or_default();
        let mut hasher = DefaultHasher::new();
        (phone, text, *count).hash(&mut hasher);
        *count += 1;
        Recipient::Row(hasher.finish())
    }
}

/// What a run says of its rows.
#[derive(Default)]
struct Words {
    /// The rows that stand for a recipient: first those with an operation.
    rows: RoaringBitmap,
    /// They have none, and are not left out: planned, rejected, not sent.
    waiting: Vec<(Row, Recipient)>,
    /// They were left out.
    left_out: Vec<(Row, Recipient)>,
    /// What stands there is no number.
    nobody: RoaringBitmap,
}

impl Words {
    async fn read(listing: Listing<'_>, texts: RowTexts, people: &mut People) -> Result<Self, ResultsError> {
        let (region, activity) = (listing.brief.region, listing.activity());
        let reader = listing.reader()?;
        let columns = reader.header().phones().clone();
        let mut rows = listing.rows(reader)?;
        let (mut words, mut recipients) = (Self::default(), Recipients::new(texts));
        while let Some((chunk, facts)) = rows.next().await? {
            for (recipient, facts) in chunk.iter().zip(&facts) {
                let (row, phone) = (recipient.row, facts.phone(recipient.fields, &columns, region));
                let recipient = phone.map(|phone| recipients.of(row, phone));
                words.add((row, recipient), facts.state(activity), people);
            }
        }
        rows.finish().await?;
        Ok(words)
    }

    fn add(&mut self, (row, recipient): (Row, Option<Recipient>), state: State, people: &mut People) {
        let Some(recipient) = recipient else {
            self.nobody.insert(row.get());
            return;
        };
        match state {
            State::Skipped | State::Invalid => self.left_out.push((row, recipient)),
            _ if state.has_operation() => people.take(&mut self.rows, &[(row, recipient)]),
            _ => self.waiting.push((row, recipient)),
        }
    }
}
