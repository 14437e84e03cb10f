//! Outcomes and envelopes for the tests of the engine's pure parts.

use std::ops::Range;
use std::sync::Arc;

use campaign_core::domain::{MessageId, OperationKind, OperationOutcome, Phone, Row};
use campaign_gateway::{EncodedOperation, Envelope};

/// One of the five outcomes.
pub(super) fn outcome(kind: usize) -> OperationOutcome {
    let reason = || Arc::from("?");
    match kind {
        0 => OperationOutcome::Accepted { msg_id: None, parts: None, answer: None },
        1 => OperationOutcome::Queued { request_id: reason() },
        2 => OperationOutcome::Rejected { error: "No route".into() },
        3 => OperationOutcome::NotSent { reason: reason() },
        _ => OperationOutcome::InDoubt { reason: reason() },
    }
}

/// An envelope of these rows, counted from the first.
pub(super) fn envelope(rows: Range<u32>) -> Envelope {
    let operation = |n: u32| {
        let (row, id) = (Row::new(n + 2), MessageId::new(u64::from(n)).unwrap());
        let phone = Phone::new(380_501_234_567 + u64::from(n)).unwrap();
        EncodedOperation {
            row,
            id,
            phone,
            kind: OperationKind::Sms,
            chain: OperationKind::Sms.into(),
            digest: [0; 8],
            json: Vec::new(),
            cost: None,
            leave_before: None,
            repeats: false,
        }
    };
    Envelope::new(rows.map(operation).collect()).unwrap()
}
