//! Status check before a retry: asks the gateway whether a failed message with several channels was delivered.

use tokio::time::Instant;

use super::{PendingMessage, PollCounts, StatusPoller};
use crate::domain::{DeliveryState, Receipt, ReceiptSource};
use crate::ledger::LedgerError;

/// What became of a message that seemed to have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfirmedFate {
    /// It failed on all of its channels.
    Failed,
    /// It was delivered.
    Delivered,
    /// A channel of it may still deliver it.
    InProgress,
    /// The gateway does not say.
    Unknown,
}

impl ConfirmedFate {
    fn from_receipt(message: &PendingMessage, reported: Option<&Receipt>) -> Self {
        let Some(receipt) = reported else { return ConfirmedFate::Unknown };
        match receipt.status.delivery_state() {
            DeliveryState::Delivered | DeliveryState::Read => ConfirmedFate::Delivered,
            DeliveryState::Pending => ConfirmedFate::InProgress,
            DeliveryState::Failed => {
                let is_last = receipt.source == ReceiptSource::AskedLast;
                if is_last || message.chain.ends_with(receipt.channel.as_ref()) {
                    ConfirmedFate::Failed
                } else {
                    ConfirmedFate::InProgress
                }
            }
        }
    }
}

impl StatusPoller<'_> {
    /// Asks the gateway about messages before their retry, and stores its answers as receipts. Returns one fate per message, in
    /// order; messages that the deadline leaves unasked are [`Fate::Unknown`].
    ///
    /// # Errors
    /// When the ledger cannot be read or written.
    pub async fn ask_before_retry(
        &self,
        messages: &[PendingMessage],
        deadline: Instant,
    ) -> Result<Vec<ConfirmedFate>, LedgerError> {
        let mut fates = Vec::with_capacity(messages.len());
        for group in messages.chunks(self.group_size()) {
            let answers = self.ask_group(group, 1.0, deadline, &mut PollCounts::default()).await?;
            let Some(answers) = answers else { break };
            fates.extend(
                group
                    .iter()
                    .zip(&answers)
                    .map(|(message, reported)| ConfirmedFate::from_receipt(message, reported.as_ref())),
            );
        }
        fates.resize(messages.len(), ConfirmedFate::Unknown);
        Ok(fates)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::delivery::ChainLifetimes;
    use crate::domain::{Chain, MessageId, OperationKind, ReportedChannel, Row, Status};

    #[test]
    fn only_failure_of_the_whole_message_allows_a_retry() {
        let chain = Chain::from(OperationKind::ViberSms);
        let named = (Row::FIRST, None, MessageId::new(7).unwrap());
        let message = PendingMessage::new(named, (chain, Timestamp::UNIX_EPOCH), &ChainLifetimes::default());
        let report = |source, channel: &str, status| {
            let channel = ReportedChannel::parse(channel);
            Some(Receipt { channel, ..Receipt::new(source, status) })
        };
        let (asked, last) = (ReceiptSource::Asked, ReceiptSource::AskedLast);
        for (reported, fate) in [
            (None, ConfirmedFate::Unknown),
            (report(asked, "sms", Status::Undeliverable), ConfirmedFate::Failed),
            (report(asked, "", Status::Expired), ConfirmedFate::Failed),
            (report(asked, "viber", Status::Expired), ConfirmedFate::InProgress),
            (report(last, "viber", Status::Expired), ConfirmedFate::Failed),
            (report(asked, "MAX", Status::Expired), ConfirmedFate::InProgress),
            (report(asked, "sms", Status::Accepted), ConfirmedFate::InProgress),
            (report(asked, "", Status::Unknown), ConfirmedFate::InProgress),
            (report(asked, "viber", Status::Read), ConfirmedFate::Delivered),
            (report(last, "sms", Status::PartiallyDelivered), ConfirmedFate::Delivered),
        ] {
            assert_eq!(ConfirmedFate::from_receipt(&message, reported.as_ref()), fate, "{reported:?}");
        }
    }
}
