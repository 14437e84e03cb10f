//! What is taken out of the records of a row when its number is forgotten: the number, and what people said.

use roaring::RoaringBitmap;

use crate::domain::{Addressee, ForgottenNumber, Outcome, Phone, Receipt};
use crate::ledger::{Change, SentRow};

/// What stands in a text where the number stood.
const FORGOTTEN: &str = "a forgotten number";

/// A number that is being forgotten, with what stays of it.
#[derive(Clone, Copy)]
pub(in crate::ledger) struct Forgotten {
    pub(in crate::ledger) phone: Phone,
    pub(in crate::ledger) stays: ForgottenNumber,
}

impl Forgotten {
    /// Takes the number out of the rows of an envelope and of what became of them; tells whether it was there.
    pub(in crate::ledger) fn in_envelope(
        self,
        rows: &mut [SentRow],
        outcomes: &mut [Outcome],
        forgotten: &RoaringBitmap,
    ) -> bool {
        let mut any = false;
        for (index, sent) in rows.iter_mut().enumerate().filter(|(_, sent)| forgotten.contains(sent.row.get())) {
            any = true;
            // The hash of a message tells its number to whoever tries all of them.
            (sent.to, sent.digest) = (Addressee::Forgotten(self.stays), [0; 8]);
            if let Some(outcome) = outcomes.get_mut(index) {
                self.in_outcome(outcome);
            }
        }
        any
    }

    fn in_outcome(self, outcome: &mut Outcome) {
        match outcome {
            Outcome::Accepted { answer, .. } => *answer = None,
            Outcome::Rejected { error } => *error = self.in_words(error),
            Outcome::NotSent { reason } | Outcome::InDoubt { reason } => *reason = self.in_words(reason).into(),
            Outcome::Queued { .. } => {}
        }
    }

    /// What stays of the number.
    pub(in crate::ledger) fn who(self) -> Addressee {
        Addressee::Forgotten(self.stays)
    }

    /// A text without the number.
    pub(in crate::ledger) fn in_words(self, text: &str) -> String {
        self.phone.hidden_in(text, FORGOTTEN).into_owned()
    }
}

/// Takes what the recipient said, and what the gateway said of the number, out of a receipt.
pub(in crate::ledger) fn forget_in_receipt(receipt: &mut Receipt) {
    (receipt.error, receipt.digit, receipt.replies) = (None, None, Vec::new());
}

/// Takes what somebody wrote about a person out of a decision.
pub(in crate::ledger) fn forget_in_change(change: &mut Change) {
    match change {
        Change::AssumedSent { why, .. } | Change::NotSent { why, .. } | Change::SendAgain { why, .. } => *why = None,
        Change::Found { .. } | Change::NotFound { .. } | Change::Unresolved { .. } | Change::Retry { .. } => {}
    }
}
