//! What is taken out of the records of a row when its number is forgotten: the number, and what people said.

use roaring::RoaringBitmap;

use crate::domain::{Addressee, ForgottenNumber, OperationOutcome, Phone, Receipt};
use crate::ledger::{RowChange, SentRow};

/// What stands in a text where the number stood.
const FORGOTTEN: &str = "a forgotten number";

/// A number that is being forgotten, with what stays of it.
#[derive(Clone, Copy)]
pub(in crate::ledger) struct NumberErasure {
    pub(in crate::ledger) phone: Phone,
    pub(in crate::ledger) stays: ForgottenNumber,
}

impl NumberErasure {
    /// Takes the number out of the rows of an envelope and of what became of them; tells whether it was there.
    pub(in crate::ledger) fn erase_from_envelope(
        self,
        rows: &mut [SentRow],
        outcomes: &mut [OperationOutcome],
        forgotten: &RoaringBitmap,
    ) -> bool {
        let mut any = false;
        for (index, sent) in rows.iter_mut().enumerate().filter(|(_, sent)| forgotten.contains(sent.row.get())) {
            any = true;
            // The hash of a message tells its number to whoever tries all of them.
            (sent.to, sent.digest) = (Addressee::Forgotten(self.stays), [0; 8]);
            if let Some(outcome) = outcomes.get_mut(index) {
                self.erase_from_outcome(outcome);
            }
        }
        any
    }

    fn erase_from_outcome(self, outcome: &mut OperationOutcome) {
        match outcome {
            OperationOutcome::Accepted { answer, .. } => *answer = None,
            OperationOutcome::Rejected { error } => *error = self.erase_from_text(error),
            OperationOutcome::NotSent { reason } | OperationOutcome::InDoubt { reason } => {
                *reason = self.erase_from_text(reason).into()
            }
            OperationOutcome::Queued { .. } => {}
        }
    }

    /// What stays of the number.
    pub(in crate::ledger) fn addressee(self) -> Addressee {
        Addressee::Forgotten(self.stays)
    }

    /// A text without the number.
    pub(in crate::ledger) fn erase_from_text(self, text: &str) -> String {
        self.phone.hide_in_text(text, FORGOTTEN).into_owned()
    }
}

/// Takes what the recipient said, and what the gateway said of the number, out of a receipt.
pub(in crate::ledger) fn forget_in_receipt(receipt: &mut Receipt) {
    (receipt.error, receipt.digit, receipt.replies) = (None, None, Vec::new());
}

/// Takes what somebody wrote about a person out of a decision.
pub(in crate::ledger) fn forget_in_change(change: &mut RowChange) {
    match change {
        RowChange::AssumedSent { why, .. } | RowChange::NotSent { why, .. } | RowChange::SendAgain { why, .. } => {
            *why = None
        }
        RowChange::Found { .. }
        | RowChange::NotFound { .. }
        | RowChange::Unresolved { .. }
        | RowChange::Retry { .. } => {}
    }
}
