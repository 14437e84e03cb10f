//! What arrived when and by what, how messages fell from channel to channel, and how long they took.

use jiff::Timestamp;
use serde::Serialize;

use super::funnel::{NO_WORD, class};
use super::{RunPage, share};
use crate::domain::Channel;
use crate::ledger::State;
use crate::report::{Arrived, DeliveryTimes, Point, RunFigures, Timeline, Way, WayFigure};
use crate::web::charts::{Bar, Cascade, Kind, Stack, StackInput, Step, bars, cascade, stack};
use crate::web::words::Words;

/// What arrived.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ArrivalsView {
    chart: Option<TimedView>,
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
    said: String,
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
        let piece = |word: &str, state: State, states: &[State]| (word.to_owned(), class(state), count(states));
        Step {
            label: channel_word(words, Some(*channel)),
            ended: vec![
                piece(words.say("run.delivered"), State::Delivered, &[State::Delivered, State::Read]),
                piece(words.say("run.failed"), State::Failed, &[State::Failed]),
                piece(words.say("run.waiting"), State::Accepted, &NO_WORD),
            ],
            fell: (words.say("run.fell").to_owned(), figure.reached(place.saturating_add(1))),
        }
    };
    let names: Vec<String> = way.iter().map(|channel| channel_word(words, Some(*channel))).collect();
    WayView { label: names.join(" → "), steps: cascade((0..).zip(way).map(step).collect()), untold: figure.untold() }
}

fn times(words: &Words, figures: &RunFigures) -> Vec<TimesView> {
    let told = figures.channels.iter().filter(|(_, figure)| figure.times.messages() > 0);
    told.map(|(channel, figure)| times_view(words, channel, &figure.times)).collect()
}

fn times_view(words: &Words, channel: Option<Channel>, times: &DeliveryTimes) -> TimesView {
    let all: Vec<(Option<u64>, u64)> = times.each_span().collect();
    let any = |(_, messages): &(Option<u64>, u64)| *messages > 0;
    let (first, last) = (all.iter().position(any).unwrap_or_default(), all.iter().rposition(any).unwrap_or_default());
    let (mut before, mut drawn) = (None, Vec::new());
    for (longest, messages) in all.into_iter().take(last + 1).skip(first) {
        let label = match (longest, before) {
            (Some(longest), _) => words.say_with("run.within", &[("time", &words.span(longest))]),
            (None, before) => words.say_with("run.longer", &[("time", &words.span(before.unwrap_or_default()))]),
        };
        before = longest;
        drawn.push(Bar::new(label, messages, "good").noted(share(words, messages, times.messages())));
    }
    let time = |time: Option<std::time::Duration>| time.map(|time| words.duration(time)).unwrap_or_default();
    let said = words.say_with("run.times", &[("half", &time(times.median())), ("most", &time(times.p95()))]);
    TimesView { channel: channel_word(words, channel), said, bars: bars(drawn, None) }
}
