//! Events and receipts in the form that the version before can read, for tables which it still shares. Pure.
//!
//! The version before takes any failure for the failure of the whole message. So a failure that names a channel in a way that it
//! cannot read becomes UNKNOWN, which is never final.

use super::{NewReceipt, NewRowEvent, RowChange};
use crate::domain::{ReceiptSource, ReportedChannel, Status};

/// Rewrites an event: the version before knows no channel in it.
pub(super) fn rewrite_event(event: &mut NewRowEvent) {
    if let RowChange::Found { status, channel, .. } = &mut event.change
        && channel.take().is_some()
        && Status::from_name(status).is_failure()
    {
        Status::Unknown.name().clone_into(status);
    }
}

/// Rewrites a receipt: the version before knows neither other words for channels nor last questions.
pub(super) fn rewrite_receipt(new: &mut NewReceipt) {
    let receipt = &mut new.receipt;
    if receipt.source == ReceiptSource::AskedLast {
        receipt.source = ReceiptSource::Asked;
    }
    if matches!(receipt.channel, Some(ReportedChannel::Other(_))) {
        receipt.channel = None;
        if receipt.status.is_failure() {
            receipt.status = Status::Unknown;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Receipt, Row};
    use crate::ledger::RunId;

    fn found(status: &str, channel: &str) -> NewRowEvent {
        let (status, channel) = (status.to_owned(), ReportedChannel::parse(channel));
        NewRowEvent { row: Row::FIRST, envelope: 1, change: RowChange::Found { status, msg_id: None, channel } }
    }

    #[test]
    fn event_for_the_version_before_makes_no_failure_final() {
        for (status, channel, expected) in
            [("EXPIRED", "viber", "UNKNOWN"), ("EXPIRED", "", "EXPIRED"), ("DELIVERED", "viber", "DELIVERED")]
        {
            let mut event = found(status, channel);
            rewrite_event(&mut event);
            assert_eq!(event, found(expected, ""), "{status} {channel}");
        }
    }

    #[test]
    fn receipt_for_the_version_before_makes_no_failure_final() {
        for (channel, status, expected) in [
            ("MAX", Status::Expired, (None, Status::Unknown)),
            ("MAX", Status::Read, (None, Status::Read)),
            ("viber", Status::Expired, (ReportedChannel::parse("viber"), Status::Expired)),
        ] {
            let channel = ReportedChannel::parse(channel);
            let receipt = Receipt { channel, ..Receipt::new(ReceiptSource::AskedLast, status) };
            let mut new = NewReceipt { run: RunId(1), row: Row::FIRST, order: None, receipt, opt_out: None };
            rewrite_receipt(&mut new);
            assert_eq!((new.receipt.channel, new.receipt.status), expected);
            assert_eq!(new.receipt.source, ReceiptSource::Asked);
        }
    }
}
