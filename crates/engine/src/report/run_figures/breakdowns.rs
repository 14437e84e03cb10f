//! Parts of the figures: reasons, fallback chains, requests, rows in doubt, and timelines. This module does no I/O.
//!
//! Each part is bounded, however many rows a run has.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::report::row_records::RowRecord;
use crate::report::run_view::IN_DOUBT_STATES;
use campaign_core::domain::{Amount, Channel, OperationOutcome, Row, Spending};
use campaign_ledger::{BilledParts, ENDED_EARLY, EnvelopeRecord, RowChange, RowEvents, RowState, StateCounts};

/// The maximum number of different reasons that are counted, which bounds memory use.
const MAX_REASONS: usize = 400;
/// The length to which reasons are cut, in characters.
const MAX_REASON_CHARS: usize = 200;

/// Rows by state and reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonCounts {
    counts: BTreeMap<(RowState, String), u64>,
    /// The number of rows with reasons beyond the maximum.
    others: u64,
}

/// A reason, and its number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasonCount<'r> {
    /// The state of the rows.
    pub state: RowState,
    /// The reason; empty if there is none.
    pub text: &'r str,
    /// The number of rows.
    pub rows: u64,
}

/// Shortens a reason to the length that is counted and shown.
pub(super) fn shorten_reason(text: &str) -> String {
    text.trim().chars().take(MAX_REASON_CHARS).collect()
}

impl ReasonCounts {
    /// Adds rows with a state and a reason.
    pub(super) fn add_rows(&mut self, state: RowState, text: &str, rows: u64) {
        if rows == 0 {
            return;
        }
        let text = shorten_reason(text);
        let is_full = self.counts.len() >= MAX_REASONS;
        match self.counts.get_mut(&(state, text.clone())) {
            Some(count) => *count += rows,
            None if is_full => self.others += rows,
            None => drop(self.counts.insert((state, text), rows)),
        }
    }

    /// The reasons, most frequent first; equally frequent reasons are sorted by state and then alphabetically.
    pub fn most_frequent(&self) -> Vec<ReasonCount<'_>> {
        let counts = self.counts.iter();
        let mut reasons: Vec<ReasonCount<'_>> =
            counts.map(|((state, text), rows)| ReasonCount { state: *state, text, rows: *rows }).collect();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.rows));
        reasons
    }

    /// The number of rows whose reasons are not listed separately.
    pub fn others(&self) -> u64 {
        self.others
    }

    /// The number of all rows that were added, with any reason.
    pub fn count_rows(&self) -> u64 {
        self.others + self.counts.values().sum::<u64>()
    }
}

/// The channels of a message, in the order of the fallback.
pub type FallbackChain = Vec<Channel>;

/// Messages with the same fallback chain, by the position of the channel that was reported last. `None` if no channel
/// was reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FallbackChainFigure {
    /// Messages by the position of their channel in the chain, from 0.
    pub places: BTreeMap<Option<u8>, StateCounts>,
}

impl FallbackChainFigure {
    /// The number of messages with a reported channel that reached a position in the chain or went beyond it.
    pub fn count_reached(&self, place: u8) -> u64 {
        let reached = self.places.iter().filter(|(position, _)| position.is_some_and(|position| position >= place));
        reached.map(|(_, counts)| counts.total()).sum()
    }

    /// The number of messages without a reported channel.
    pub fn count_unknown(&self) -> u64 {
        self.places.get(&None).map_or(0, StateCounts::total)
    }
}

/// The maximum cost of the messages of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCost {
    /// The cost of the messages with known prices.
    pub used: Amount,
    /// The number of further messages, which were sent before the profile had prices.
    pub unpriced: u64,
}

/// The longest recorded answer time, in milliseconds: a day.
const MAX_ANSWER_MS: u64 = 86_400_000;

/// Figures about the requests of a run.
#[derive(Clone, Debug)]
pub struct RequestFigures {
    /// The number of requests.
    pub requests: u64,
    /// The number of requests without a conclusive answer.
    pub unanswered: u64,
    /// The number of messages in these requests, including repeated messages.
    pub messages: u64,
    /// Messages by the time when their requests were recorded.
    pub sent: Timeline<()>,
    /// Billed parts, if the gateway reported them.
    pub parts: BilledParts,
    /// The part of a budget that sent messages use, or might use, at the price of their most expensive channel.
    pub used: Spending,
    /// The prices of messages that were rejected, or that a person marked as not sent. They are returned to the budget.
    /// Attempts that certainly were not sent do not count: each failed connection would increase the amount.
    pub given_back: Amount,
    /// Whether any message has a known price.
    pub(super) has_prices: bool,
    /// The messages in `used` whose price is unknown.
    pub(super) unpriced: u64,
    /// The times from the recorded intent to the answer, in milliseconds.
    pub(super) answers: Histogram<u64>,
}

impl Default for RequestFigures {
    fn default() -> Self {
        Self {
            requests: 0,
            unanswered: 0,
            messages: 0,
            sent: Timeline::default(),
            parts: BilledParts::default(),
            used: Spending::default(),
            given_back: Amount::default(),
            has_prices: false,
            unpriced: 0,
            answers: Histogram::new_with_max(MAX_ANSWER_MS, 3).expect("valid bounds of a histogram"),
        }
    }
}

impl RequestFigures {
    /// Adds a request; `events` are the events of the run's rows.
    pub(in crate::report) fn add_envelope(&mut self, envelope: &EnvelopeRecord, events: &RowEvents) {
        let rows = envelope.rows.len() as u64;
        self.requests += 1;
        self.messages += rows;
        self.sent.add_count(envelope.begun_at, (), rows);
        let outcomes = envelope.settled.as_ref().map_or(&[][..], |(_, outcomes)| outcomes);
        if outcomes.iter().all(|outcome| matches!(outcome, OperationOutcome::InDoubt { .. })) {
            self.unanswered += 1;
        } else if let Some((at, _)) = &envelope.settled {
            self.add_answer(envelope.begun_at, *at);
        }
        for outcome in outcomes {
            if let OperationOutcome::Accepted { parts, .. } = outcome {
                self.parts.add(*parts);
            }
        }
        let used = envelope.spending(events);
        if envelope.costs.len() == envelope.rows.len() {
            self.has_prices = true;
        } else {
            self.unpriced += used.recipients;
        }
        let is_unsent = |at: usize| matches!(outcomes.get(at), Some(OperationOutcome::NotSent { .. }));
        let costs = envelope.costs.iter().enumerate();
        let reached: Amount = costs.filter(|(at, _)| !is_unsent(*at)).map(|(_, cost)| *cost).sum();
        self.used = self.used.add_spending(used);
        self.given_back = self.given_back.saturating_add(reached.saturating_sub(used.cost));
    }

    /// Adds a message that counts only because of receipts; `cost` is its price, if it is known. `was_given_back` says
    /// whether the price was returned to the budget before.
    pub(in crate::report) fn add_proven_message(&mut self, cost: Option<Amount>, was_given_back: bool) {
        self.unpriced += u64::from(cost.is_none());
        let cost = cost.unwrap_or_default();
        self.used = self.used.add_spending(Spending { recipients: 1, cost });
        if was_given_back {
            self.given_back = self.given_back.saturating_sub(cost);
        }
    }

    /// Whether more parts might be billed than the gateway reported, because some messages that were or might have been
    /// sent have no reported parts. A row that was sent several times has several messages.
    pub fn has_unreported_parts(&self) -> bool {
        self.parts.messages < self.used.recipients
    }

    /// The messages in `used` whose price is unknown, because the profile had no prices when they were sent.
    pub fn unpriced(&self) -> u64 {
        self.unpriced
    }

    /// The maximum cost of the messages. `None` if no message has a known price.
    pub fn cost(&self) -> Option<RunCost> {
        let Self { used, unpriced, .. } = *self;
        self.has_prices.then_some(RunCost { used: used.cost, unpriced })
    }

    fn add_answer(&mut self, begun_at: Timestamp, at: Timestamp) {
        if let Ok(time) = Duration::try_from(begun_at.duration_until(at)) {
            self.answers.saturating_record(u64::try_from(time.as_millis()).unwrap_or(MAX_ANSWER_MS));
        }
    }

    /// The time within which `percent` % of the requests were answered, including the wait for the rate limit. `None`
    /// if there are no answers.
    pub fn answer_quantile(&self, percent: u8) -> Option<Duration> {
        let share = f64::from(percent) / 100.0;
        (!self.answers.is_empty()).then(|| Duration::from_millis(self.answers.value_at_quantile(share)))
    }
}

/// The maximum number of rows that are listed.
const MAX_NAMED_ROWS: usize = 20;

/// The rows that are in doubt or unresolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowsInDoubt {
    /// The time at which the first of these messages was sent.
    pub since: Option<Timestamp>,
    /// The first rows.
    pub rows: Vec<RowInDoubt>,
}

/// A row of which it is unknown whether the gateway has its message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowInDoubt {
    /// The row of the list.
    pub row: u32,
    /// The state of the row: in doubt, or unresolved.
    pub state: RowState,
    /// The time when its message was sent, as Unix time in seconds.
    pub sent_at: i64,
    /// The reason for the doubt.
    pub why: String,
    /// The number of inquiries after which campaign gave up. `None` if the gateway can still be asked.
    pub asked: Option<u32>,
}

impl RowsInDoubt {
    /// Adds a row, if it is in doubt.
    pub(super) fn add_row(&mut self, row: Row, record: &RowRecord) {
        if !IN_DOUBT_STATES.contains(&record.state) {
            return;
        }
        self.since = Some(self.since.map_or(record.begun_at, |since| since.min(record.begun_at)));
        if self.rows.len() < MAX_NAMED_ROWS {
            self.rows.push(RowInDoubt::from_record(row, record));
        }
    }
}

impl RowInDoubt {
    fn from_record(row: Row, record: &RowRecord) -> Self {
        let stored_reason = match &record.settled {
            Some((_, OperationOutcome::InDoubt { reason })) => reason.to_string(),
            Some(_) => String::new(),
            None => ENDED_EARLY.to_owned(),
        };
        let last = record.amendment.as_ref().and_then(|amendment| amendment.last.as_ref());
        let asked = match last {
            Some((_, RowChange::NotFound { asked } | RowChange::Unresolved { asked })) => Some(*asked),
            _ => None,
        };
        Self { row: row.get(), state: record.state, sent_at: record.begun_at.as_second(), why: stored_reason, asked }
    }
}

/// The possible lengths of a point, in seconds: from one second to a hundred years.
const POINT_SECONDS: [i64; 13] =
    [1, 5, 15, 60, 300, 900, 3_600, 10_800, 43_200, 86_400, 604_800, 31_449_600, 3_144_960_000];
/// The maximum number of points.
pub(super) const MAX_POINTS: i64 = 240;

/// Counts by time and kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline<K: Ord> {
    /// The index of the length of a point in [`POINT_SECONDS`].
    length: u8,
    /// Counts by point, numbered from 1970.
    points: BTreeMap<i64, BTreeMap<K, u64>>,
}

/// One point of a timeline.
#[derive(Clone, Copy, Debug)]
pub struct TimelinePoint<'t, K> {
    /// The start of the point.
    pub from: Timestamp,
    /// The counts by kind, without zeros.
    pub counts: &'t BTreeMap<K, u64>,
}

impl<K: Ord> Default for Timeline<K> {
    fn default() -> Self {
        Self { length: 0, points: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Timeline<K> {
    /// Adds a count for a kind at a moment.
    pub(super) fn add_count(&mut self, at: Timestamp, kind: K, count: u64) {
        let point = at.as_second().div_euclid(self.point_seconds());
        *self.points.entry(point).or_default().entry(kind).or_default() += count;
        while self.count_points() > MAX_POINTS && usize::from(self.length) + 1 < POINT_SECONDS.len() {
            self.merge_points();
        }
    }

    /// The period that a point covers, in seconds.
    pub fn point_seconds(&self) -> i64 {
        POINT_SECONDS.get(usize::from(self.length)).copied().unwrap_or(POINT_SECONDS[POINT_SECONDS.len() - 1])
    }

    /// The number of points from the first to the last, including empty points.
    pub fn count_points(&self) -> i64 {
        let (first, last) = (self.points.keys().next(), self.points.keys().next_back());
        first.zip(last).map_or(0, |(first, last)| last - first + 1)
    }

    fn merge_points(&mut self) {
        let old_seconds = self.point_seconds();
        self.length += 1;
        let factor = self.point_seconds() / old_seconds;
        let mut points: BTreeMap<i64, BTreeMap<K, u64>> = BTreeMap::new();
        for (point, counts) in std::mem::take(&mut self.points) {
            let merged = points.entry(point.div_euclid(factor)).or_default();
            counts.into_iter().for_each(|(kind, count)| *merged.entry(kind).or_default() += count);
        }
        self.points = points;
    }

    /// The points that are not empty, oldest first, each with its position from 0.
    pub fn points(&self) -> impl Iterator<Item = (i64, TimelinePoint<'_, K>)> {
        let first = self.points.keys().next().copied().unwrap_or_default();
        self.points
            .iter()
            .map(move |(number, counts)| (number - first, TimelinePoint { from: self.point_start(*number), counts }))
    }

    /// The start of the first point and the end of the last. `None` if the timeline is empty.
    pub fn bounds(&self) -> Option<(Timestamp, Timestamp)> {
        let (first, last) = (self.points.keys().next()?, self.points.keys().next_back()?);
        Some((self.point_start(*first), self.point_start(last + 1)))
    }

    fn point_start(&self, point: i64) -> Timestamp {
        let limit = if point < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Timestamp::from_second(point.saturating_mul(self.point_seconds())).unwrap_or(limit)
    }

    /// Converts the kinds of the timeline with `convert`. Kinds for which `convert` returns `None` are dropped.
    pub(super) fn map_kinds<L: Ord>(&self, convert: impl Fn(&K) -> Option<L>) -> Timeline<L> {
        let convert_counts = |counts: &BTreeMap<K, u64>| {
            counts.iter().filter_map(|(kind, count)| Some((convert(kind)?, *count))).collect::<BTreeMap<L, u64>>()
        };
        Timeline {
            length: self.length,
            points: self.points.iter().map(|(at, kinds)| (*at, convert_counts(kinds))).collect(),
        }
    }

    /// The total of each kind that occurs.
    pub fn sum_by_kind(&self) -> Vec<(K, u64)> {
        let mut kinds: BTreeMap<&K, u64> = BTreeMap::new();
        for counts in self.points.values() {
            counts.iter().for_each(|(kind, count)| *kinds.entry(kind).or_default() += count);
        }
        kinds.into_iter().map(|(kind, count)| (kind.clone(), count)).collect()
    }

    /// Whether the last point is older than the last `points` points before `now`.
    pub fn is_stale(&self, points: usize, now: Timestamp) -> bool {
        let current = now.as_second().div_euclid(self.point_seconds());
        let points = i64::try_from(points).unwrap_or(MAX_POINTS);
        self.points.keys().next_back().is_some_and(|last| current - last >= points)
    }

    /// The total of all kinds in each of the last `points` points, oldest first.
    pub fn latest_counts(&self, points: usize) -> Vec<u64> {
        let Some(last) = self.points.keys().next_back().copied() else { return Vec::new() };
        let point_count = i64::try_from(points).unwrap_or(MAX_POINTS).min(self.count_points());
        let sum = |point| self.points.get(&point).map_or(0, |counts: &BTreeMap<K, u64>| counts.values().sum());
        (last + 1 - point_count..=last).map(sum).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use campaign_ledger::RowState;

    proptest! {
        #[test]
        fn row_counts_add_up_for_any_set_of_reasons(counts in proptest::collection::vec((".{0,300}", 0..9_u64), 0..40)) {
            let mut reasons = ReasonCounts::default();
            counts.iter().for_each(|(text, rows)| reasons.add_rows(RowState::Failed, text, *rows));
            prop_assert_eq!(reasons.count_rows(), counts.iter().map(|(_, rows)| rows).sum::<u64>());
            prop_assert!(reasons.most_frequent().windows(2).all(|pair| pair[0].rows >= pair[1].rows));
        }
    }

    #[test]
    fn reasons_beyond_the_limit_count_as_others() {
        let mut reasons = ReasonCounts::default();
        (0..10_000).for_each(|number| reasons.add_rows(RowState::Rejected, &format!("no {number}"), 1));
        assert_eq!(
            (reasons.most_frequent().len(), reasons.others(), reasons.count_rows()),
            (MAX_REASONS, 10_000 - MAX_REASONS as u64, 10_000)
        );
        reasons.add_rows(RowState::Rejected, "no 7", 5);
        assert_eq!(reasons.most_frequent()[0], ReasonCount { state: RowState::Rejected, text: "no 7", rows: 6 });
    }

    proptest! {
        #[test]
        fn messages_that_reached_a_channel_ended_there_or_fell_back(
            counts in proptest::collection::vec((proptest::option::of(0..4_u8), 0..900_u64), 0..12),
        ) {
            let mut figure = FallbackChainFigure::default();
            for (place, rows) in &counts {
                figure.places.entry(*place).or_default().add(RowState::Delivered, *rows);
            }
            for place in 0..4 {
                let ended = figure.places.get(&Some(place)).map_or(0, StateCounts::total);
                prop_assert_eq!(figure.count_reached(place), ended + figure.count_reached(place + 1));
            }
            prop_assert_eq!(figure.count_reached(0) + figure.count_unknown(), counts.iter().map(|(_, rows)| rows).sum::<u64>());
        }
    }

    fn sample_timeline(events: &[(i64, bool, u64)]) -> Timeline<bool> {
        let mut timeline = Timeline::default();
        for (second, kind, count) in events {
            timeline.add_count(Timestamp::from_second(*second).unwrap(), *kind, *count);
        }
        timeline
    }

    fn arbitrary_events() -> impl Strategy<Value = Vec<(i64, bool, u64)>> {
        let second = prop_oneof![
            0..300_i64,
            1_700_000_000..1_700_400_000_i64,
            Timestamp::MIN.as_second()..Timestamp::MAX.as_second()
        ];
        proptest::collection::vec((second, any::<bool>(), 0..1_000_u64), 1..60)
    }

    proptest! {
        #[test]
        fn events_fall_into_a_bounded_number_of_points(events in arbitrary_events()) {
            let timeline = sample_timeline(&events);
            prop_assert!((1..=MAX_POINTS).contains(&timeline.count_points()), "{}", timeline.count_points());
            let sum: u64 = timeline.points().flat_map(|(_, point)| point.counts.values()).sum();
            prop_assert_eq!(sum, events.iter().map(|(_, _, count)| count).sum::<u64>());
            let (first, last) = timeline.bounds().expect("there are points");
            for (second, ..) in &events {
                let at = Timestamp::from_second(*second).unwrap();
                prop_assert!(first <= at && (at < last || last == Timestamp::MAX));
            }
            let all = timeline.latest_counts(usize::try_from(MAX_POINTS).unwrap());
            prop_assert_eq!(all.into_iter().sum::<u64>(), sum);
        }

        #[test]
        fn timeline_does_not_depend_on_the_order_of_events(events in arbitrary_events(), chance in any::<u64>()) {
            let mut other = events.clone();
            let middle = usize::try_from(chance % other.len() as u64).unwrap();
            other.rotate_left(middle);
            other.reverse();
            prop_assert_eq!(sample_timeline(&events), sample_timeline(&other));
        }
    }

    #[test]
    fn each_point_interval_divides_the_next() {
        assert!(POINT_SECONDS.windows(2).all(|pair| pair[1] > pair[0] && pair[1] % pair[0] == 0));
    }
}
