//! Results of several runs with one row per recipient: the latest decisive one.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use roaring::{RoaringBitmap, RoaringTreemap};
use rustc_hash::FxHashSet;

use super::ResultsError;
use super::listing::Listing;
use crate::check::TextHash;
use crate::domain::{Phone, Row};
use crate::ledger::RowState;

/// The texts of a list's rows, in their order. `None` if all rows of a number count as one recipient.
pub(super) type RowTextHashes = Option<Vec<(Row, TextHash)>>;

/// The rows of each listing that stand for a recipient; the oldest run is the first.
///
/// The newest run that sent something to a recipient, or is going to, decides. A run that skipped the recipient counts only if
/// no other run has more. A row without a phone number has no recipient, and appears once, for the newest list.
pub(super) async fn choose_rows(
    listings: Vec<(Listing<'_>, RowTextHashes)>,
) -> Result<Vec<RoaringBitmap>, ResultsError> {
    let mut people = ListedRecipients::default();
    let mut chosen = Vec::with_capacity(listings.len());
    for (listing, texts) in listings.into_iter().rev() {
        let first = chosen.is_empty();
        let mut words = RowCandidates::read_listing(listing, texts, &mut people).await?;
        let waiting = std::mem::take(&mut words.waiting);
        people.take_rows(&mut words.rows, &waiting);
        if first {
            words.rows |= std::mem::take(&mut words.without_number);
        }
        chosen.push(words);
    }
    let rows = chosen.into_iter().map(|mut words| {
        people.take_rows(&mut words.rows, &words.left_out);
        words.rows
    });
    let mut rows: Vec<RoaringBitmap> = rows.collect();
    rows.reverse();
    Ok(rows)
}

/// The identity of a recipient.
#[derive(Clone, Copy)]
enum RecipientIdentity {
    Number(Phone),
    /// With `duplicates: allow`: a hash of its number, its text, and how many rows before it have the same.
    Row(u64),
}

/// The recipients who have their row.
#[derive(Default)]
struct ListedRecipients {
    numbers: RoaringTreemap,
    rows: FxHashSet<u64>,
}

impl ListedRecipients {
    /// Takes the rows of those who have none yet.
    fn take_rows(&mut self, rows: &mut RoaringBitmap, words: &[(Row, RecipientIdentity)]) {
        for (row, recipient) in words {
            let is_new = match recipient {
                RecipientIdentity::Number(phone) => self.numbers.insert(phone.to_u64()),
                RecipientIdentity::Row(hash) => self.rows.insert(*hash),
            };
            if is_new {
                rows.insert(row.get());
            }
        }
    }
}

/// Identifies the rows of a list by their numbers, or by their numbers and texts.
struct RowIdentifier {
    texts: Option<std::iter::Peekable<std::vec::IntoIter<(Row, TextHash)>>>,
    /// How many rows of the same number and text came before.
    same: HashMap<(Phone, Option<TextHash>), u32>,
}

impl RowIdentifier {
    fn new(texts: RowTextHashes) -> Self {
        Self { texts: texts.map(|texts| texts.into_iter().peekable()), same: HashMap::new() }
    }

    /// The recipient of a row. Rows are asked for in ascending order.
    fn identify(&mut self, row: Row, phone: Phone) -> RecipientIdentity {
        let Some(texts) = &mut self.texts else { return RecipientIdentity::Number(phone) };
        while texts.next_if(|(before, _)| *before < row).is_some() {}
        let text = texts.next_if(|(of, _)| *of == row).map(|(_, text)| text);
        let count = self.same.entry((phone, text)).or_default();
        let mut hasher = DefaultHasher::new();
        (phone, text, *count).hash(&mut hasher);
        *count += 1;
        RecipientIdentity::Row(hasher.finish())
    }
}

/// What a run says of its rows.
#[derive(Default)]
struct RowCandidates {
    /// The rows that stand for a recipient: first those with an operation.
    rows: RoaringBitmap,
    /// They have none, and are not left out: planned, rejected, not sent.
    waiting: Vec<(Row, RecipientIdentity)>,
    /// They were left out.
    left_out: Vec<(Row, RecipientIdentity)>,
    /// What stands there is no number.
    without_number: RoaringBitmap,
}

impl RowCandidates {
    async fn read_listing(
        listing: Listing<'_>,
        texts: RowTextHashes,
        people: &mut ListedRecipients,
    ) -> Result<Self, ResultsError> {
        let (region, activity) = (listing.brief.region, listing.activity());
        let reader = listing.open_reader()?;
        let columns = reader.header().phones().clone();
        let mut rows = listing.into_rows(reader)?;
        let (mut words, mut recipients) = (Self::default(), RowIdentifier::new(texts));
        while let Some((chunk, facts)) = rows.next_chunk().await? {
            for (recipient, facts) in chunk.iter().zip(&facts) {
                let (row, phone) = (recipient.row, facts.phone(recipient.fields, &columns, region));
                let recipient = phone.map(|phone| recipients.identify(row, phone));
                words.add_row((row, recipient), facts.state(activity), people);
            }
        }
        rows.finish().await?;
        Ok(words)
    }

    fn add_row(
        &mut self,
        (row, recipient): (Row, Option<RecipientIdentity>),
        state: RowState,
        people: &mut ListedRecipients,
    ) {
        let Some(recipient) = recipient else {
            self.without_number.insert(row.get());
            return;
        };
        match state {
            RowState::Skipped | RowState::Invalid => self.left_out.push((row, recipient)),
            _ if state.is_guarded() => people.take_rows(&mut self.rows, &[(row, recipient)]),
            _ => self.waiting.push((row, recipient)),
        }
    }
}
