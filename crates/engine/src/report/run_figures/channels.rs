//! Figures of a run by channel: messages by state, read messages and delivery times.
//!
//! Times are kept in a histogram, so that ten million rows need no more memory than ten.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

use crate::report::format::format_duration_limit;
use crate::report::message::{MessageDelivery, TimeCertainty};
use crate::report::row_records::RowRecord;
use crate::report::{counts_json, format_count, format_counts_with_partial, format_thousands};
use campaign_core::domain::Channel;
use campaign_ledger::{RowState, StateCounts};

/// The states of messages that the gateway accepted.
pub const ACCEPTED_STATES: [RowState; 5] =
    [RowState::Queued, RowState::Accepted, RowState::Delivered, RowState::Read, RowState::Failed];

/// The longest recorded delivery time, in milliseconds: about thirteen months.
const MAX_DELIVERY_MS: u64 = 400 * 24 * 3_600_000;

/// The upper bounds of the spans in which messages are counted exactly, in seconds. The last span counts all longer
/// times.
const SPAN_SECONDS: [u64; 13] = [1, 2, 5, 10, 30, 60, 120, 300, 900, 3_600, 10_800, 43_200, 86_400];

/// Accepted messages by channel.
///
/// Each message counts once: for the channel that delivered it first, or else for the channel that was reported last,
/// or else for its only channel. A read message also counts as read for the channel that reported it as read.
#[derive(Clone, Debug, Default)]
pub struct ChannelFigures {
    pub(super) channels: BTreeMap<Channel, ChannelFigure>,
    /// Messages without a reported channel.
    pub(super) unknown_channel: ChannelFigure,
}

/// The messages of one channel.
#[derive(Clone, Debug, Default)]
pub struct ChannelFigure {
    /// The messages of the channel by state. If another channel reported that a message was read, the message counts
    /// here as delivered.
    pub counts: StateCounts,
    /// The number of messages that the channel reported as read, including messages that another channel delivered
    /// first.
    pub read: u64,
    /// The number of its messages that were delivered only in part.
    pub in_part: u64,
    /// The delivery times of its messages.
    pub times: DeliveryTimes,
}

/// Delivery times, accurate to a thousandth of each time.
#[derive(Clone, Debug)]
pub struct DeliveryTimes {
    times: Histogram<u64>,
    /// The number of messages in each span.
    spans: [u64; SPAN_SECONDS.len() + 1],
    /// The number of delivery times that are only upper bounds.
    at_latest: u64,
    /// Delivered messages whose reported time cannot be right.
    uncertain: u64,
}

impl Default for DeliveryTimes {
    fn default() -> Self {
        let times = Histogram::new_with_max(MAX_DELIVERY_MS, 3).expect("valid bounds of a histogram");
        Self { times, spans: [0; SPAN_SECONDS.len() + 1], at_latest: 0, uncertain: 0 }
    }
}

impl DeliveryTimes {
    /// Adds a delivered message.
    fn add_delivery(&mut self, delivery: &MessageDelivery) {
        match delivery.time {
            Some(time) => self.record_time(time),
            None => self.uncertain += 1,
        }
        self.at_latest += u64::from(delivery.certainty == TimeCertainty::AtLatest);
    }

    /// Records the delivery time of a message.
    fn record_time(&mut self, time: Duration) {
        self.times.saturating_record(u64::try_from(time.as_millis()).unwrap_or(MAX_DELIVERY_MS));
        self.spans[SPAN_SECONDS.partition_point(|bound| Duration::from_secs(*bound) < time)] += 1;
    }

    /// The number of messages with a delivery time.
    pub fn count_timed(&self) -> u64 {
        self.times.len()
    }

    /// The number of delivery times that are only upper bounds, because the gateway reported only that the message was
    /// read, or no time.
    pub fn count_upper_bounds(&self) -> u64 {
        self.at_latest
    }

    /// The number of delivered messages without a delivery time, because the reported time cannot be right.
    pub fn count_uncertain(&self) -> u64 {
        self.uncertain
    }

    /// The time within which half of the messages were delivered. `None` if no delivery times are known.
    pub fn median(&self) -> Option<Duration> {
        self.quantile(0.5)
    }

    /// The time within which 95 % of the messages were delivered. `None` if no delivery times are known.
    pub fn p95(&self) -> Option<Duration> {
        self.quantile(0.95)
    }

    /// Pairs of a delivery time in milliseconds, accurate to a thousandth, and the number of messages with this time.
    pub(super) fn time_counts(&self) -> Vec<(u64, u64)> {
        self.times.iter_recorded().map(|time| (time.value_iterated_to(), time.count_at_value())).collect()
    }

    /// The number of messages in each time span, shortest span first.
    pub(super) fn span_counts(&self) -> &[u64] {
        &self.spans
    }

    /// The time spans, shortest first, each with the upper bound in seconds and the number of messages. The last span
    /// has no upper bound.
    pub fn iter_spans(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        SPAN_SECONDS.into_iter().map(Some).chain([None]).zip(self.spans)
    }

    /// Restores delivery times from stored pairs and span counts.
    pub(super) fn from_counts(pairs: &[(u64, u64)], spans: &[u64]) -> Self {
        let mut times = Self::default();
        pairs.iter().for_each(|(time, messages)| times.times.saturating_record_n(*time, *messages));
        times.spans.iter_mut().zip(spans).for_each(|(span, messages)| *span = *messages);
        times
    }

    /// Sets the number of delivery times that are upper bounds, and the number of messages with an uncertain time.
    pub(super) fn with_certainty(self, at_latest: u64, uncertain: u64) -> Self {
        Self { at_latest, uncertain, ..self }
    }

    /// The time within which `share` of the messages were delivered. `None` if no delivery times are known.
    fn quantile(&self, share: f64) -> Option<Duration> {
        (self.count_timed() > 0).then(|| Duration::from_millis(self.times.value_at_quantile(share)))
    }
}

impl ChannelFigures {
    /// Counts the record of a row, if the gateway accepted the message.
    pub(super) fn add_record(&mut self, record: &RowRecord) {
        if !ACCEPTED_STATES.contains(&record.state) {
            return;
        }
        let (channel, reading_channel) = (record.channel(), record.reading_channel());
        let is_read = record.state == RowState::Read;
        let figure = self.channel_mut(channel);
        figure.counts.add(if is_read && reading_channel != channel { RowState::Delivered } else { record.state }, 1);
        if let Some(delivery) = record.delivery() {
            figure.in_part += u64::from(delivery.in_part);
            figure.times.add_delivery(delivery);
        }
        if is_read {
            self.channel_mut(reading_channel).read += 1;
        }
    }

    /// The figures of a channel, or of the messages without a reported channel.
    fn channel_mut(&mut self, channel: Option<Channel>) -> &mut ChannelFigure {
        match channel {
            Some(channel) => self.channels.entry(channel).or_default(),
            None => &mut self.unknown_channel,
        }
    }

    /// The number of messages that were delivered only in part.
    pub fn count_partial(&self) -> u64 {
        self.iter().map(|(_, figure)| figure.in_part).sum()
    }

    /// The number of delivered messages without a delivery time, because the reported time cannot be right.
    pub fn count_uncertain_times(&self) -> u64 {
        self.iter().map(|(_, figure)| figure.times.uncertain).sum()
    }

    /// Returns each channel with its figures. Messages without a reported channel come last, under `None`.
    pub fn iter(&self) -> impl Iterator<Item = (Option<Channel>, &ChannelFigure)> {
        let known = self.channels.iter().map(|(channel, figure)| (Some(*channel), figure));
        known.chain([(None, &self.unknown_channel)]).filter(|(_, figure)| figure.counts.total() + figure.read > 0)
    }

    /// The figures as JSON, by channel name; `unknown` for messages without a reported channel.
    pub fn to_json(&self) -> Value {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let figure = |ChannelFigure { counts, read, in_part, times }: &ChannelFigure| {
            json!({
                "counts": counts_json(counts),
                "read": read,
                "in_part": in_part,
                "delivery": (times.count_timed() > 0).then(|| json!({
                    "messages": times.count_timed(),
                    "at_latest": times.at_latest,
                    "median_seconds": seconds(times.median()),
                    "p95_seconds": seconds(times.p95()),
                })),
                "uncertain_times": times.uncertain,
            })
        };
        let name = |channel: Option<Channel>| channel.map_or("unknown", Channel::name).to_owned();
        let figures = self.iter().map(|(channel, channel_figure)| (name(channel), figure(channel_figure)));
        figures.collect::<Map<_, _>>().into()
    }

    /// The figures as text, one line per channel.
    pub fn format_lines(&self) -> Vec<String> {
        let format_line = |(channel, figure): (Option<Channel>, &ChannelFigure)| {
            let ChannelFigure { counts, read, in_part, times } = figure;
            let mut parts = Vec::new();
            if counts.total() > 0 {
                parts.push(format_counts_with_partial(counts, *in_part));
            }
            let delivered_elsewhere = read.saturating_sub(counts.get(RowState::Read));
            if delivered_elsewhere > 0 {
                parts.push(format!(
                    "{} read after being delivered on another channel",
                    format_thousands(delivered_elsewhere)
                ));
            }
            if let (Some(median), Some(p95)) = (times.median(), times.p95()) {
                let (median, p95) = (format_duration_limit(median), format_duration_limit(p95));
                let mut times_text = format!("half delivered within {median}, 95% within {p95}");
                if times.at_latest > 0 {
                    // Writing into a string cannot fail.
                    let _ = write!(times_text, " (an upper bound for {})", format_count(times.at_latest, "message"));
                }
                parts.push(times_text);
            }
            if times.uncertain > 0 {
                parts.push(format!("{} with an uncertain delivery time", format_thousands(times.uncertain)));
            }
            format!("{}: {}", channel.map_or("channel not reported", Channel::name), parts.join(" · "))
        };
        self.iter().map(format_line).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The time within which this percentage of the messages arrived, calculated from all times.
    fn exact_quantile(times: &mut [u64], percent: usize) -> u64 {
        times.sort_unstable();
        times[(times.len() * percent).div_ceil(100).max(1) - 1]
    }

    proptest! {
        #[test]
        fn quantiles_are_accurate_to_within_a_thousandth(
            mut times in proptest::collection::vec(prop_oneof![0..2_000_u64, 0..MAX_DELIVERY_MS], 1..300),
        ) {
            let mut counted = DeliveryTimes::default();
            times.iter().for_each(|time| counted.record_time(Duration::from_millis(*time)));
            prop_assert_eq!(counted.count_timed(), times.len() as u64);
            let restored = DeliveryTimes::from_counts(&counted.time_counts(), counted.span_counts());
            prop_assert_eq!(restored.span_counts(), counted.span_counts());
            for (bound, within) in counted.iter_spans().scan(0, |sum, (bound, messages)| {
                *sum += messages;
                Some((bound.map_or(u64::MAX, |seconds| seconds * 1_000), *sum))
            }) {
                prop_assert_eq!(within, times.iter().filter(|time| **time <= bound).count() as u64);
            }
            let summary = |times: &DeliveryTimes| (times.count_timed(), times.median(), times.p95());
            prop_assert_eq!(summary(&restored), summary(&counted));
            for (percent, counted) in [(50, counted.median()), (95, counted.p95())] {
                let exact = exact_quantile(&mut times, percent);
                let counted = counted.expect("there are times").as_millis() as u64;
                prop_assert!((exact..=exact + exact / 1_000).contains(&counted), "{percent}: {counted} and exactly \
                    {exact}");
            }
        }
    }

    #[test]
    fn delivery_times_of_a_channel_are_rounded_up() {
        let mut figures = ChannelFigures::default();
        let sms = figures.channel_mut(Some(Channel::Sms));
        sms.counts.add(RowState::Delivered, 6);
        for time in [10_990, 10_990, 10_990, 10_990, 59_950, 59_950] {
            sms.times.record_time(Duration::from_millis(time));
        }
        assert_eq!(figures.format_lines(), ["sms: 6 delivered · half delivered within 11 s, 95% within 1 min 0 s"]);
    }

    #[test]
    fn median_is_absent_without_messages_and_long_times_are_capped() {
        let mut times = DeliveryTimes::default();
        assert_eq!((times.median(), times.p95()), (None, None));
        times.record_time(Duration::MAX);
        assert!(times.median().is_some_and(|time| time.as_millis() >= u128::from(MAX_DELIVERY_MS)));
    }
}
