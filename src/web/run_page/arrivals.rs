//! Deliveries over time, fallbacks between channels, and readings and delivery times for each channel.

use jiff::Timestamp;
use serde::Serialize;

use super::funnel::{NO_WORD, class};
use super::{RunPage, share};
use crate::domain::Channel;
use crate::ledger::{State, StateCounts};
use crate::report::{Arrived, ChannelFigure, DeliveryTimes, Point, RunFigures, Timeline, Way, WayFigure};
use crate::web::charts::{Bar, Cascade, Kind, Stack, StackInput, Step, bars, cascade, stack};
use crate::web::words::Words;

/// What arrived.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ArrivalsView {
    chart: Option<TimedView>,
    /// How many deliveries the chart has at the arrival of their receipts.
    uncertain: Option<String>,
    /// Of each way that has several channels, how messages fell from one to the next.
    ways: Vec<WayView>,
    times: Vec<TimesView>,
}

/// A chart over time with its table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TimedView {
    pub(super) chart: Stack,
    /// How long a point is, in words.
    pub(super) step: String,
    pub(super) label: String,
    /// The points into which something fell: when each begins, and how much of each layer it has.
    pub(super) rows: Vec<RowView>,
}

/// A row of the table of a chart over time.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RowView {
    when: String,
    counts: Vec<u64>,
}

#[derive(Clone, Debug, Serialize)]
struct WayView {
    label: String,
    steps: Vec<Cascade>,
    untold: u64,
}

#[derive(Clone, Debug, Serialize)]
struct TimesView {
    channel: String,
    /// How many messages were delivered and read, and how long delivery took.
    said: Vec<String>,
    bars: Vec<Bar>,
}

/// A channel in words, or that nobody told it.
fn channel_word(words: &Words, channel: Option<Channel>) -> String {
    match channel {
        Some(channel) => words.kind("channel", channel.name()).unwrap_or_default().to_owned(),
        None => words.say("run.no-channel").to_owned(),
    }
}

/// The class of a channel, as a first choice or after another one.
fn channel_class(arrived: Arrived) -> String {
    let channel = arrived.channel.map_or_else(|| "none".to_owned(), |channel| channel.name().replace('/', "-"));
    let fallback = if arrived.first == Some(false) { " fallback" } else { "" };
    format!("c-{channel}{fallback}")
}

impl RunPage<'_> {
    pub(super) fn arrivals(&self, words: &Words, figures: &RunFigures) -> Option<ArrivalsView> {
        let several = |way: &Way| way.len() > 1;
        let ways = figures.ways.iter().filter(|(way, figure)| several(way) && figure.reached(0) > 0);
        let view = ArrivalsView {
            chart: self.arrived(words, figures),
            uncertain: if_any(figures.channels.uncertain_times(), |n| words.count("run.arrived-uncertain", n, &[])),
            ways: ways.map(|(way, figure)| way_view(words, way, figure)).collect(),
            times: times(words, figures),
        };
        (view.chart.is_some() || !view.ways.is_empty()).then_some(view)
    }

    fn arrived(&self, words: &Words, figures: &RunFigures) -> Option<TimedView> {
        let several = figures.ways.keys().any(|way| way.len() > 1);
        let label = |arrived: Arrived| {
            let channel = channel_word(words, arrived.channel);
            match arrived.first.filter(|_| several) {
                Some(true) => words.say_with("run.first", &[("channel", &channel)]),
                Some(false) => words.say_with("run.fallback", &[("channel", &channel)]),
                None => channel,
            }
        };
        let named = |arrived| (label(arrived), channel_class(arrived));
        let is_fallback = |arrived: Arrived| arrived.first == Some(false);
        self.timed(words, &figures.arrived, (named, is_fallback), None, words.say("run.arrived-chart"))
    }

    /// A chart of what fell into which time, with its table; some kinds lie above all others.
    pub(super) fn timed<K: Ord + Copy>(
        &self,
        words: &Words,
        timeline: &Timeline<K>,
        (named, is_upper): (impl Fn(K) -> (String, String), impl Fn(K) -> bool),
        allowed: Option<u64>,
        label: &str,
    ) -> Option<TimedView> {
        let (from, to) = timeline.bounds()?;
        let mut kinds: Vec<K> = timeline.kinds().into_iter().map(|(kind, _)| kind).collect();
        kinds.sort_by_key(|kind| is_upper(*kind));
        let of = |kind: &K| {
            let count =
                |(place, point): (i64, Point<'_, K>)| Some((usize::try_from(place).ok()?, *point.counts.get(kind)?));
            let (label, class) = named(*kind);
            Kind { label, class, counts: timeline.points().filter_map(count).collect() }
        };
        let points = usize::try_from(timeline.span()).unwrap_or_default();
        let input = StackInput { from, to, points, kinds: kinds.iter().map(of).collect(), allowed, zone: self.zone };
        let counts =
            |point: Point<'_, K>| kinds.iter().map(|kind| point.counts.get(kind).copied().unwrap_or(0)).collect();
        Some(TimedView {
            chart: stack(input, |number| words.number(number)),
            step: words.span(u64::try_from(timeline.seconds()).unwrap_or_default()),
            label: label.to_owned(),
            rows: timeline
                .points()
                .map(|(_, point)| RowView { when: self.when(words, point.from), counts: counts(point) })
                .collect(),
        })
    }

    /// A moment as a table of many says it.
    fn when(&self, words: &Words, at: Timestamp) -> String {
        let at = at.to_zoned(self.zone.clone());
        format!("{}, {}", words.day(at.date()), at.strftime("%H:%M:%S"))
    }
}

fn way_view(words: &Words, way: &Way, figure: &WayFigure) -> WayView {
    let step = |(place, channel): (u8, &Channel)| {
        let counts = figure.places.get(&Some(place));
        let count = |states: &[State]| counts.map_or(0, |counts| states.iter().map(|state| counts.get(*state)).sum());
        let delivered = counts.map_or(0, StateCounts::delivered);
        let piece = |word: &str, state: State, messages: u64| (word.to_owned(), class(state), messages);
        Step {
            label: channel_word(words, Some(*channel)),
            ended: vec![
                piece(words.say("run.delivered"), State::Delivered, delivered),
                piece(words.say("run.failed"), State::Failed, count(&[State::Failed])),
                piece(words.say("run.waiting"), State::Accepted, count(&NO_WORD)),
            ],
            fell: (words.say("run.fell").to_owned(), figure.reached(place.saturating_add(1))),
        }
    };
    let names: Vec<String> = way.iter().map(|channel| channel_word(words, Some(*channel))).collect();
    WayView { label: names.join(" → "), steps: cascade((0..).zip(way).map(step).collect()), untold: figure.untold() }
}

fn times(words: &Words, figures: &RunFigures) -> Vec<TimesView> {
    let told = figures.channels.iter().filter(|(_, figure)| figure.counts.delivered() + figure.read > 0);
    told.map(|(channel, figure)| times_view(words, channel, figure)).collect()
}

fn times_view(words: &Words, channel: Option<Channel>, figure: &ChannelFigure) -> TimesView {
    let ChannelFigure { counts, read, in_part, times } = figure;
    let number = |number: u64| words.number(number);
    let (delivered, all_read) = (number(counts.delivered()), number(*read));
    let mut said = vec![words.say_with("run.by-channel", &[("delivered", &delivered), ("read", &all_read)])];
    said.extend(if_any(read.saturating_sub(counts.get(State::Read)), |n| words.count("run.read-elsewhere", n, &[])));
    said.extend((*in_part > 0).then(|| format!("{}: {}.", words.say("run.in-part"), number(*in_part))));
    if let (Some(half), Some(most)) = (times.median(), times.p95()) {
        let (half, most) = (words.duration(half), words.duration(most));
        said.push(words.say_with("run.times", &[("half", &half), ("most", &most)]));
    }
    said.extend(if_any(times.at_latest(), |n| words.count("run.times-at-latest", n, &[])));
    said.extend(if_any(times.uncertain(), |n| words.count("run.times-uncertain", n, &[])));
    TimesView { channel: channel_word(words, channel), said, bars: bars(spans(words, times), None) }
}

/// A bar for each range of delivery times, including empty ranges between others. Each bar counts only the messages of its own
/// range, which is its label.
fn spans(words: &Words, times: &DeliveryTimes) -> Vec<Bar> {
    let all: Vec<(Option<u64>, u64)> = times.each_span().collect();
    let any = |(_, messages): &(Option<u64>, u64)| *messages > 0;
    let (Some(first), Some(last)) = (all.iter().position(any), all.iter().rposition(any)) else { return Vec::new() };
    let shortest = |place: usize| place.checked_sub(1).and_then(|before| all[before].0);
    let bar = |place: usize| {
        let (longest, messages) = all[place];
        let label = match (shortest(place), longest) {
            (None, Some(to)) => words.say_with("run.up-to", &[("time", &words.span(to))]),
            (Some(from), Some(to)) => {
                words.say_with("run.between", &[("from", &words.span(from)), ("to", &words.span(to))])
            }
            (from, None) => words.say_with("run.longer", &[("time", &words.span(from.unwrap_or_default()))]),
        };
        Bar::new(label, messages, "good").noted(share(words, messages, times.messages()))
    };
    (first..=last).map(bar).collect()
}

/// A number of messages in words; empty for 0.
fn if_any(messages: u64, in_words: impl FnOnce(u64) -> String) -> Option<String> {
    (messages > 0).then(|| in_words(messages))
}
