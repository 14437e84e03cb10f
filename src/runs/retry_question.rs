//! The question to the gateway before messages are sent again that failed on one of several channels.

use std::time::Duration;

use tokio::time::Instant;

use super::launch::Session;
use super::poll::TIMEOUT;
use super::{Connection, Error};
use crate::delivery::{Answered, Pending, Polled, Poller};
use crate::domain::{Arrival, ReceiptSource};
use crate::ledger::{Allowance, Run};

/// How long all questions may take.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Rows that a retry does not send, by their reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryLeftOut {
    /// Their messages were delivered after all.
    pub delivered: u64,
    /// The gateway is still trying their channels.
    pub under_way: u64,
    /// The gateway did not confirm that their messages failed.
    pub unconfirmed: u64,
    /// Their recipients opted out, or got a message by another run.
    pub guarded: u64,
}

/// What became of a message that seemed to have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
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
    fn of(message: &Pending, answered: &Answered) -> Self {
        let Answered::Reported(receipt) = answered else { return Fate::Unknown };
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

impl Session {
    /// Asks the gateway about messages of a run, and stores what it reports; what there is no time for stays unknown.
    pub(super) async fn ask_before_retry(&self, run: &Run, messages: &[Pending]) -> Result<Vec<Fate>, Error> {
        let Some(profile) = self.inputs().destination.profile() else { return Ok(vec![Fate::Unknown; messages.len()]) };
        let connection = Connection::Gateway(profile, self.launch.key.clone());
        let gateway = connection.client(self.adapters.connect, run.endpoint, TIMEOUT)?;
        let account = Allowance::new(run.account.as_str(), profile.rate.per_second());
        let (ledger, most, clock) = (self.adapters.ledger.as_ref(), profile.largest_envelope(), self.adapters.clock);
        let poller = Poller { ledger, gateway: gateway.as_ref(), run, account, most, clock };
        let (deadline, mut polled) = (Instant::now() + LONGEST, Polled::default());
        let mut fates = Vec::with_capacity(messages.len());
        for group in messages.chunks(poller.room()) {
            let Some(answers) = poller.ask(group, 1.0, deadline, &mut polled).await? else { break };
            fates.extend(group.iter().zip(&answers).map(|(message, answered)| Fate::of(message, answered)));
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
    use crate::domain::{Chain, MessageId, OperationKind, Receipt, ReportedChannel, Row, Status};

    #[test]
    fn only_a_failure_of_the_whole_message_lets_it_be_sent_again() {
        let chain = Chain::from(OperationKind::ViberSms);
        let named = (Row::FIRST, None, MessageId::new(7).unwrap());
        let message = Pending::new(named, (chain, Timestamp::UNIX_EPOCH), &ChainTimes::default());
        let reported = |source, channel: &str, status| {
            let channel = ReportedChannel::from_word(channel);
            Answered::Reported(Receipt { channel, ..Receipt::new(source, status) })
        };
        let (asked, last) = (ReceiptSource::Asked, ReceiptSource::AskedLast);
        for (answered, fate) in [
            (Answered::Nothing, Fate::Unknown),
            (reported(asked, "sms", Status::Undeliverable), Fate::Failed),
            (reported(asked, "", Status::Expired), Fate::Failed),
            (reported(asked, "viber", Status::Expired), Fate::UnderWay),
            (reported(last, "viber", Status::Expired), Fate::Failed),
            (reported(asked, "MAX", Status::Expired), Fate::UnderWay),
            (reported(asked, "sms", Status::Accepted), Fate::UnderWay),
            (reported(asked, "", Status::Unknown), Fate::UnderWay),
            (reported(asked, "viber", Status::Read), Fate::Delivered),
            (reported(last, "sms", Status::PartiallyDelivered), Fate::Delivered),
        ] {
            assert_eq!(Fate::of(&message, &answered), fate, "{answered:?}");
        }
    }
}
