//! The gateway's errors of one start, counted by kind, and told without the numbers that they quote.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::domain::{Outcome, Phone};
use crate::gateway::{Envelope, Reply};

/// The most different kinds that are counted.
const MOST_KINDS: usize = 1_000;
/// What stands in the place of a number where errors are compared.
const ANYBODY: &str = "…";

/// How often each kind of error came; errors that differ only by the number of their message are of one kind.
#[derive(Clone, Debug, Default)]
pub struct Errors {
    kinds: BTreeMap<String, Kind>,
}

#[derive(Clone, Debug)]
struct Kind {
    /// The first of them, with most of the number hidden.
    first: String,
    count: u64,
}

impl Errors {
    /// Counts the error of the message to this number.
    pub(super) fn count(&mut self, phone: Phone, error: &str) {
        let kind = phone.hidden_in(error, ANYBODY);
        if let Some(known) = self.kinds.get_mut(kind.as_ref()) {
            known.count += 1;
        } else if self.kinds.len() < MOST_KINDS {
            let first = phone.hidden_in(error, &phone.hinted()).into_owned();
            self.kinds.insert(kind.into_owned(), Kind { first, count: 1 });
        }
    }

    /// Counts those of another start too.
    pub(super) fn add(&mut self, others: Self) {
        for (text, kind) in others.kinds {
            let room = self.kinds.len() < MOST_KINDS;
            match self.kinds.get_mut(&text) {
                Some(known) => known.count += kind.count,
                None if room => drop(self.kinds.insert(text, kind)),
                None => {}
            }
        }
    }

    /// The errors that came most often, each with its count.
    pub fn commonest(&self, most: usize) -> impl Iterator<Item = (&str, u64)> {
        let mut kinds: Vec<&Kind> = self.kinds.values().collect();
        kinds.sort_by_key(|kind| Reverse(kind.count));
        kinds.into_iter().take(most).map(|kind| (kind.first.as_str(), kind.count))
    }
}

/// The reply with errors that can be compared and told: none quotes the number of its own message.
pub(super) fn without_numbers<'r>(envelope: &Envelope, reply: &'r Reply) -> Cow<'r, Reply> {
    let mut told = Cow::Borrowed(reply);
    for (index, operation) in envelope.operations().iter().enumerate() {
        let Some(Outcome::Rejected { error }) = reply.outcomes.get(index) else { continue };
        if let Cow::Owned(error) = operation.phone.hidden_in(error, ANYBODY) {
            told.to_mut().outcomes[index] = Outcome::Rejected { error };
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_differ_by_their_number_alone_are_one() {
        let mut errors = Errors::default();
        for row in 0..3 {
            let phone = Phone::new(380_501_234_567 + row).unwrap();
            errors.count(phone, &format!("please enter a valid number, not {phone}"));
        }
        errors.count(Phone::new(380_501_234_567).unwrap(), "No route");
        let told: Vec<_> = errors.commonest(5).collect();
        assert_eq!(told, [("please enter a valid number, not 3805…67", 3), ("No route", 1)]);
    }
}
