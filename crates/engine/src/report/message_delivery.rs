//! The delivery of a message: its channel, its time, and the channel that reported it as read. Pure.
//!
//! Times are those of the gateway. A time that is later than the arrival of its own receipt, or earlier than the
//! request, cannot be right. It is reported as uncertain and excluded from delivery times.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use campaign_core::domain::{Channel, DeliveryState, Status};
use campaign_ledger::{Run, StoredReceipt};

/// The tolerated clock skew between the gateway and this machine.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);

/// How far the clock of the built-in sandbox can be ahead: a rehearsal does not wait for its messages.
const REHEARSAL_AHEAD: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The clock of a gateway's reported times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatewayClock {
    /// The real time.
    Real,
    /// The time of the built-in sandbox, which can be ahead of the real time.
    Simulated,
}

/// The certainty of a delivery time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeCertainty {
    /// The gateway reported the time of the delivery.
    Exact,
    /// An upper bound: the gateway reported only the reading, or no time.
    AtLatest,
    /// The reported time cannot be right.
    Uncertain,
}

/// The delivery of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageDelivery {
    /// The channel that delivered it first. `None` if no receipt names a known channel.
    pub channel: Option<Channel>,
    /// The reported time; the arrival of the receipt if it reports none.
    pub at: Timestamp,
    /// The certainty of that time.
    pub certainty: TimeCertainty,
    /// When the receipt with that time arrived.
    pub received: Timestamp,
    /// The time from the request to the delivery. `None` if it is uncertain.
    pub time: Option<Duration>,
    /// The channel that reported its reading, or the channel of the delivery if that receipt names none. `None` if it was not read.
    pub read_by: Option<Channel>,
    /// Whether the gateway reported only some of its parts as delivered.
    pub in_part: bool,
}

impl GatewayClock {
    /// The clock of a run's gateway.
    pub(super) fn for_run(run: &Run) -> Self {
        if run.live { Self::Real } else { Self::Simulated }
    }

    /// Whether a receipt that arrived at `received` can report this time for a message that was first sent at `sent`.
    fn accepts_time(self, reported: Timestamp, sent: Timestamp, received: Timestamp) -> bool {
        let after = |at: Timestamp, time: SignedDuration| at.checked_add(time).unwrap_or(Timestamp::MAX);
        let latest = match self {
            Self::Real => after(received, CLOCK_SKEW),
            Self::Simulated => after(sent, REHEARSAL_AHEAD).max(received),
        };
        let earliest = sent.checked_sub(CLOCK_SKEW).unwrap_or(Timestamp::MIN);
        (earliest..=latest).contains(&reported)
    }
}

/// A receipt that proves a delivery, with the certainty of its time.
struct Evidence<'r> {
    receipt: &'r StoredReceipt,
    arrival: DeliveryState,
    certainty: TimeCertainty,
}

impl<'r> Evidence<'r> {
    fn from_receipt(receipt: &'r StoredReceipt, sent: Timestamp, clock: GatewayClock) -> Option<Self> {
        let arrival = receipt.receipt.status.delivery_state();
        let certainty = match (arrival, receipt.receipt.updated) {
            (DeliveryState::Pending | DeliveryState::Failed, _) => return None,
            (_, Some(reported)) if !clock.accepts_time(reported, sent, receipt.at) => TimeCertainty::Uncertain,
            (DeliveryState::Delivered, Some(_)) => TimeCertainty::Exact,
            (DeliveryState::Delivered | DeliveryState::Read, _) => TimeCertainty::AtLatest,
        };
        Some(Self { receipt, arrival, certainty })
    }

    /// A sort key that puts better evidence first: times that can be right before others, then earlier times.
    fn rank(&self) -> (bool, Timestamp, TimeCertainty) {
        let uncertain = self.certainty == TimeCertainty::Uncertain;
        (uncertain, if uncertain { self.receipt.at } else { self.receipt.reported_at() }, self.certainty)
    }

    fn channel(&self) -> Option<Channel> {
        self.receipt.receipt.known_channel()
    }
}

impl MessageDelivery {
    /// The delivery that these receipts of one message prove, if any. `sent` are the times at which the
    /// message was sent, the earliest first: it was repeated if an earlier request had no answer.
    pub(super) fn from_receipts<'r>(
        receipts: impl Iterator<Item = &'r StoredReceipt>,
        sent: &[Timestamp],
        clock: GatewayClock,
    ) -> Option<Self> {
        let first_sent = *sent.first()?;
        let mut evidence: Vec<Evidence<'r>> =
            receipts.filter_map(|receipt| Evidence::from_receipt(receipt, first_sent, clock)).collect();
        evidence.sort_by_key(Evidence::rank);
        let best = evidence.first()?;
        let read = evidence.iter().find(|evidence| evidence.arrival == DeliveryState::Read);
        let read_by = read.and_then(Evidence::channel);
        let channel = best.channel().or(read_by).or_else(|| evidence.iter().find_map(Evidence::channel));
        let is_part = |evidence: &Evidence<'_>| evidence.receipt.receipt.status == Status::PartiallyDelivered;
        let at = best.receipt.reported_at();
        Some(Self {
            channel,
            at,
            certainty: best.certainty,
            received: best.receipt.at,
            time: (best.certainty != TimeCertainty::Uncertain).then(|| time_since(sent, at)),
            read_by: read_by.or(channel).filter(|_| read.is_some()),
            in_part: evidence.iter().all(is_part),
        })
    }

    /// The delivery's time in charts: the reported time, or if that is uncertain, the arrival of the receipt.
    pub(super) fn chart_time(&self) -> Timestamp {
        if self.certainty == TimeCertainty::Uncertain { self.received } else { self.at }
    }
}

impl TimeCertainty {
    /// The certainty's name in the results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AtLatest => "at_latest",
            Self::Uncertain => "uncertain",
        }
    }
}

/// The time from the last request before a delivery; zero if the gateway's clock is behind.
fn time_since(sent: &[Timestamp], delivered: Timestamp) -> Duration {
    let latest = delivered.checked_add(CLOCK_SKEW).unwrap_or(Timestamp::MAX);
    let request = sent.iter().rfind(|sent| **sent <= latest).or(sent.first());
    request.and_then(|sent| Duration::try_from(delivered.duration_since(*sent)).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::TimeCertainty::{AtLatest, Exact, Uncertain};
    use super::*;
    use campaign_core::domain::{Receipt, ReceiptSource, ReportedChannel};

    const SENT: i64 = 1_000_000;
    const DAY: i64 = 86_400;

    /// A receipt of a channel: its status, the seconds from the request to the reported time, and to its arrival.
    fn receipt(channel: &str, status: Status, reported: Option<i64>, arrived: i64) -> StoredReceipt {
        let at = |second: i64| Timestamp::from_second(SENT + second).unwrap();
        let receipt = Receipt {
            updated: reported.map(at),
            channel: ReportedChannel::parse(channel),
            ..Receipt::new(ReceiptSource::Webhook, status)
        };
        StoredReceipt { order: None, at: at(arrived), receipt }
    }

    fn delivery(receipts: &[StoredReceipt], clock: GatewayClock) -> MessageDelivery {
        let sent = [Timestamp::from_second(SENT).unwrap()];
        MessageDelivery::from_receipts(receipts.iter(), &sent, clock).expect("a delivery")
    }

    #[test]
    fn receipts_determine_the_certainty_of_the_delivery_time() {
        use Status::{Delivered, Read, Undeliverable};
        let table: &[(&[StoredReceipt], TimeCertainty, Option<u64>)] = &[
            (&[receipt("sms", Delivered, Some(30), 31)], Exact, Some(30)),
            (&[receipt("sms", Read, Some(900), 901), receipt("sms", Delivered, Some(30), 902)], Exact, Some(30)),
            (&[receipt("viber", Read, Some(900), 901)], AtLatest, Some(900)),
            (&[receipt("sms", Delivered, None, 45)], AtLatest, Some(45)),
            (&[receipt("sms", Delivered, Some(365 * DAY), 31)], Uncertain, None),
            (&[receipt("sms", Delivered, Some(3_600), 31)], Uncertain, None),
            (&[receipt("sms", Delivered, Some(-3_600), 31)], Uncertain, None),
            (&[receipt("sms", Delivered, Some(60), 31)], Exact, Some(60)),
            (&[receipt("sms", Delivered, Some(-60), 31)], Exact, Some(0)),
            (&[receipt("sms", Delivered, Some(-DAY), 31), receipt("sms", Read, Some(90), 91)], AtLatest, Some(90)),
            (&[receipt("viber", Undeliverable, Some(5), 6), receipt("sms", Delivered, Some(8), 9)], Exact, Some(8)),
        ];
        for (receipts, certainty, seconds) in table {
            let delivery = delivery(receipts, GatewayClock::Real);
            let time = delivery.time.map(|time| time.as_secs());
            assert_eq!((delivery.certainty, time), (*certainty, *seconds), "{receipts:?}");
        }
    }

    #[test]
    fn rehearsal_accepts_times_in_the_near_future() {
        let ahead =
            |days: i64| delivery(&[receipt("sms", Status::Delivered, Some(days * DAY), 1)], GatewayClock::Simulated);
        assert_eq!((ahead(2).certainty, ahead(365).certainty), (Exact, Uncertain));
    }

    #[test]
    fn read_receipt_counts_for_the_channel_that_reported_it() {
        use Status::{Delivered, Read};
        let (sms, viber) = (Some(Channel::Sms), Some(Channel::Viber));
        let table: &[(&[StoredReceipt], Option<Channel>, Option<Channel>)] = &[
            (&[receipt("sms", Delivered, Some(8), 9), receipt("viber", Read, Some(99), 99)], sms, viber),
            (&[receipt("viber", Read, Some(99), 99), receipt("sms", Delivered, Some(8), 100)], sms, viber),
            (&[receipt("sms", Delivered, Some(8), 9), receipt("", Read, Some(99), 99)], sms, sms),
            (&[receipt("", Delivered, Some(8), 9), receipt("viber", Read, Some(99), 99)], viber, viber),
            (&[receipt("", Delivered, Some(8), 9), receipt("", Read, Some(99), 99)], None, None),
        ];
        for (receipts, delivered_by, read_by) in table {
            let delivery = delivery(receipts, GatewayClock::Real);
            assert_eq!((delivery.channel, delivery.read_by), (*delivered_by, *read_by));
        }
    }

    #[test]
    fn message_is_delivered_in_part_until_more_is_reported() {
        use Status::{Delivered, PartiallyDelivered, Read};
        let partial = || receipt("sms", PartiallyDelivered, Some(5), 6);
        let in_part = |receipts: &[StoredReceipt]| delivery(receipts, GatewayClock::Real).in_part;
        assert!(in_part(&[partial()]));
        assert!(!in_part(&[partial(), receipt("sms", Delivered, Some(9), 9)]));
        assert!(!in_part(&[receipt("viber", Read, Some(9), 9), partial()]));
    }

    #[test]
    fn delivery_time_starts_at_the_last_request_before_delivery() {
        let sent = [0, 7_200].map(|second| Timestamp::from_second(SENT + second).unwrap());
        for (reported, seconds) in [(40, 40), (7_230, 30)] {
            let receipts = [receipt("sms", Status::Delivered, Some(reported), 7_300)];
            let delivery =
                MessageDelivery::from_receipts(receipts.iter(), &sent, GatewayClock::Real).expect("a delivery");
            assert_eq!(delivery.time.map(|time| time.as_secs()), Some(seconds));
        }
    }
}
