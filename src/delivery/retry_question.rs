//! Status check before a retry: asks the gateway whether a failed message with several channels was delivered.

use tokio::time::Instant;

use super::{Pending, Polled, Poller};
use crate::domain::{Arrival, Receipt, ReceiptSource};
use crate::ledger::LedgerError;

/// What became of a message that seemed to have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It failed on all of its channels.
    Failed,
    /// It was delivered.
    Delivered,
    /// A channel of it may still deliver it.
    UnderWay,
    /// The gateway does not say.
    Unknown,
}

impl Fate {
    fn of(message: &Pending, reported: Option<&Receipt>) -> Self {
        let Some(receipt) = reported else { return Fate::Unknown };
        match receipt.status.arrival() {
            Arrival::Delivered | Arrival::Read => Fate::Delivered,
            Arrival::Pending => Fate::UnderWay,
            Arrival::Failed => {
                let is_last = receipt.source == ReceiptSource::AskedLast;
                if is_last || message.chain.ends_with(receipt.channel.as_ref()) { Fate::Failed } else { Fate::UnderWay }
            }
        }
    }
}

impl Poller<'_> {
    /// Asks the gateway about messages before their retry, and stores its answers as receipts. Returns one fate per message, in
    /// order; messages that the deadline leaves unasked are [`Fate::Unknown`].
    ///
    /// # Errors
    /// When the ledger cannot be read or written.
    pub async fn ask_before_retry(&self, messages: &[Pending], deadline: Instant) -> Result<Vec<Fate>, LedgerError> {
        let mut fates = Vec::with_capacity(messages.len());
        for group in messages.chunks(self.room()) {
            let answers = self.ask(group, 1.0, deadline, &mut Polled::default()).await?;
            let Some(answers) = answers else { break };
            fates.extend(group.iter().zip(&answers).map(|(message, reported)| Fate::of(message, reported.as_ref())));
        }
        fates.resize(messages.len(), Fate::Unknown);
        Ok(fates)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::delivery::ChainTimes;
    use crate::domain::{Chain, MessageId, OperationKind, ReportedChannel, Row, Status};

    #[test]
    fn only_a_failure_of_the_whole_message_lets_it_be_sent_again() {
        let chain = Chain::from(OperationKind::ViberSms);
        let named = (Row::FIRST, None, MessageId::new(7).unwrap());
        let message = Pending::new(named, (chain, Timestamp::UNIX_EPOCH), &ChainTimes::default());
        let report = |source, channel: &str, status| {
            let channel = ReportedChannel::from_word(channel);
            Some(Receipt { channel, ..Receipt::new(source, status) })
        };
        let (asked, last) = (ReceiptSource::Asked, ReceiptSource::AskedLast);
        for (reported, fate) in [
            (None, Fate::Unknown),
            (report(asked, "sms", Status::Undeliverable), Fate::Failed),
            (report(asked, "", Status::Expired), Fate::Failed),
            (report(asked, "viber", Status::Expired), Fate::UnderWay),
            (report(last, "viber", Status::Expired), Fate::Failed),
            (report(asked, "MAX", Status::Expired), Fate::UnderWay),
            (report(asked, "sms", Status::Accepted), Fate::UnderWay),
            (report(asked, "", Status::Unknown), Fate::UnderWay),
            (report(asked, "viber", Status::Read), Fate::Delivered),
            (report(last, "sms", Status::PartiallyDelivered), Fate::Delivered),
        ] {
            assert_eq!(Fate::of(&message, reported.as_ref()), fate, "{reported:?}");
        }
    }
}
