//! The gateway's errors of one start, counted by kind, and told without the numbers that they quote.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::domain::{OperationOutcome, Phone};
use crate::gateway::{Envelope, GatewayReply};

/// The most different kinds that are counted.
const MAX_KINDS: usize = 1_000;
/// What stands in the place of a number where errors are compared.
const HIDDEN_NUMBER: &str = "…";

/// How often each kind of error came; errors that differ only by the number of their message are of one kind.
#[derive(Clone, Debug, Default)]
pub struct ErrorCounts {
    kinds: BTreeMap<String, ErrorGroup>,
}

#[derive(Clone, Debug)]
struct ErrorGroup {
    /// The first of them, with most of the number hidden.
    first: String,
    count: u64,
}

impl ErrorCounts {
    /// Counts the error of the message to this number.
    pub(super) fn count_error(&mut self, phone: Phone, error: &str) {
        let kind = phone.hide_in_text(error, HIDDEN_NUMBER);
        if let Some(known) = self.kinds.get_mut(kind.as_ref()) {
            known.count += 1;
        } else if self.kinds.len() < MAX_KINDS {
            let first = phone.hide_in_text(error, &phone.format_hint()).into_owned();
            self.kinds.insert(kind.into_owned(), ErrorGroup { first, count: 1 });
        }
    }

    /// Counts those of another start too.
    pub(super) fn merge(&mut self, others: Self) {
        for (text, kind) in others.kinds {
            let room = self.kinds.len() < MAX_KINDS;
            match self.kinds.get_mut(&text) {
                Some(known) => known.count += kind.count,
                None if room => drop(self.kinds.insert(text, kind)),
                None => {}
            }
        }
    }

    /// The errors that came most often, each with its count.
    pub fn most_frequent(&self, most: usize) -> impl Iterator<Item = (&str, u64)> {
        let mut kinds: Vec<&ErrorGroup> = self.kinds.values().collect();
        kinds.sort_by_key(|kind| Reverse(kind.count));
        kinds.into_iter().take(most).map(|kind| (kind.first.as_str(), kind.count))
    }
}

/// The reply with errors that can be compared and told: none quotes the number of its own message.
pub(super) fn hide_numbers<'r>(envelope: &Envelope, reply: &'r GatewayReply) -> Cow<'r, GatewayReply> {
    let mut told = Cow::Borrowed(reply);
    for (index, operation) in envelope.operations().iter().enumerate() {
        let Some(OperationOutcome::Rejected { error }) = reply.outcomes.get(index) else { continue };
        if let Cow::Owned(error) = operation.phone.hide_in_text(error, HIDDEN_NUMBER) {
            told.to_mut().outcomes[index] = OperationOutcome::Rejected { error };
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_differ_only_by_number_are_one_kind() {
        let mut errors = ErrorCounts::default();
        for row in 0..3 {
            let phone = Phone::new(380_501_234_567 + row).unwrap();
            errors.count_error(phone, &format!("please enter a valid number, not {phone}"));
        }
        errors.count_error(Phone::new(380_501_234_567).unwrap(), "No route");
        let told: Vec<_> = errors.most_frequent(5).collect();
        assert_eq!(told, [("please enter a valid number, not 3805…67", 3), ("No route", 1)]);
    }
}
