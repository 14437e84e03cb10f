//! Delivery and cost on the run page: deliveries and throughput over time, fallbacks between channels, delivery times
//! and cost.

use jiff::Timestamp;
use serde::Serialize;

use super::outcomes::{WAITING_STATES, state_class};
use super::{NumberView, RunPage, format_share};
use crate::web::charts::{
    Bar, Cascade, CascadeStep, LayerInput, StackChart, StackInput, draw_cascade, draw_stack, scale_bars,
};
use crate::web::words::PageWords;
use campaign_core::domain::{Amount, Channel};
use campaign_engine::report::{
    ArrivalKind, ChannelFigure, DeliveryTimes, FallbackChain, FallbackChainFigure, RunCost, RunFigures, Timeline,
    TimelinePoint,
};
use campaign_ledger::{RowState, StateCounts};

/// The delivered messages.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ArrivalsView {
    chart: Option<TimedView>,
    /// The number of deliveries that the chart places at the arrival of their receipts.
    uncertain: Option<String>,
    /// The fallbacks from one channel to the next, for each chain of several channels.
    chains: Vec<ChainView>,
    times: Vec<TimesView>,
}

/// A chart over time with its table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TimedView {
    pub(super) chart: StackChart,
    /// The length of a point, as text.
    pub(super) step: String,
    pub(super) label: String,
    /// The start of each point, and its number in each layer.
    pub(super) rows: Vec<TimedRow>,
}

/// A row of a timeline chart's data table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TimedRow {
    when: String,
    counts: Vec<u64>,
}

#[derive(Clone, Debug, Serialize)]
struct ChainView {
    label: String,
    steps: Vec<Cascade>,
    unknown: u64,
}

#[derive(Clone, Debug, Serialize)]
struct TimesView {
    channel: String,
    /// Sentences about delivered and read messages, and delivery times.
    sentences: Vec<String>,
    bars: Vec<Bar>,
}

/// The name of a channel, or the term for an unknown channel.
fn channel_name(words: &PageWords, channel: Option<Channel>) -> String {
    match channel {
        Some(channel) => words.item_name("channel", channel.name()).unwrap_or_default().to_owned(),
        None => words.say("run.no-channel").to_owned(),
    }
}

/// The CSS class of a channel, as a first choice or as a fallback.
fn channel_class(arrival: ArrivalKind) -> String {
    let channel = arrival.channel.map_or_else(|| "none".to_owned(), |channel| channel.name().replace('/', "-"));
    let fallback = if arrival.first == Some(false) { " fallback" } else { "" };
    format!("c-{channel}{fallback}")
}

impl RunPage<'_> {
    pub(super) fn arrivals_view(&self, words: &PageWords, figures: &RunFigures) -> Option<ArrivalsView> {
        let has_fallback = |chain: &FallbackChain| chain.len() > 1;
        let chains = figures.chains.iter().filter(|(chain, figure)| has_fallback(chain) && figure.count_reached(0) > 0);
        let view = ArrivalsView {
            chart: self.arrivals_chart(words, figures),
            uncertain: describe_nonzero(figures.channels.count_uncertain_times(), |n| {
                words.count("run.arrivals-uncertain", n, &[])
            }),
            chains: chains.map(|(chain, figure)| chain_view(words, chain, figure)).collect(),
            times: times_views(words, figures),
        };
        (view.chart.is_some() || !view.chains.is_empty()).then_some(view)
    }

    fn arrivals_chart(&self, words: &PageWords, figures: &RunFigures) -> Option<TimedView> {
        let has_fallbacks = figures.chains.keys().any(|chain| chain.len() > 1);
        let label = |arrived: ArrivalKind| {
            let channel = channel_name(words, arrived.channel);
            match arrived.first.filter(|_| has_fallbacks) {
                Some(true) => words.say_with("run.first", &[("channel", &channel)]),
                Some(false) => words.say_with("run.fallback", &[("channel", &channel)]),
                None => channel,
            }
        };
        let named = |arrived| (label(arrived), channel_class(arrived));
        let is_fallback = |arrived: ArrivalKind| arrived.first == Some(false);
        self.timed_view(words, &figures.arrivals, named, is_fallback, None, words.say("run.arrivals-chart"))
    }

    /// Builds a stacked chart of counts over time, with a table of the counts. Kinds for which `is_upper` is true are
    /// stacked above all other kinds. Returns `None` if there are no counts.
    pub(super) fn timed_view<K: Ord + Copy>(
        &self,
        words: &PageWords,
        timeline: &Timeline<K>,
        label_and_class: impl Fn(K) -> (String, String),
        is_upper: impl Fn(K) -> bool,
        allowed: Option<u64>,
        label: &str,
    ) -> Option<TimedView> {
        let (from, to) = timeline.bounds()?;
        let mut kinds: Vec<K> = timeline.sum_by_kind().into_iter().map(|(kind, _)| kind).collect();
        kinds.sort_by_key(|kind| is_upper(*kind));
        let layer = |kind: &K| {
            let count = |(place, point): (i64, TimelinePoint<'_, K>)| {
                Some((usize::try_from(place).ok()?, *point.counts.get(kind)?))
            };
            let (label, class) = label_and_class(*kind);
            LayerInput { label, class, counts: timeline.points().filter_map(count).collect() }
        };
        let points = usize::try_from(timeline.count_points()).unwrap_or_default();
        let input = StackInput { from, to, points, kinds: kinds.iter().map(layer).collect(), allowed, zone: self.zone };
        let counts = |point: TimelinePoint<'_, K>| {
            kinds.iter().map(|kind| point.counts.get(kind).copied().unwrap_or(0)).collect()
        };
        Some(TimedView {
            chart: draw_stack(input, |number| words.format_number(number)),
            step: format_step(words, u64::try_from(timeline.point_seconds()).unwrap_or_default()),
            label: label.to_owned(),
            rows: timeline
                .points()
                .map(|(_, point)| TimedRow { when: self.format_time(words, point.from), counts: counts(point) })
                .collect(),
        })
    }

    /// Formats a time for a table.
    fn format_time(&self, words: &PageWords, at: Timestamp) -> String {
        let at = at.to_zoned(self.zone.clone());
        format!("{}, {}", words.format_day(at.date()), at.strftime("%H:%M:%S"))
    }
}

fn chain_view(words: &PageWords, chain: &FallbackChain, figure: &FallbackChainFigure) -> ChainView {
    let step = |(place, channel): (u8, &Channel)| {
        let counts = figure.places.get(&Some(place));
        let count =
            |states: &[RowState]| counts.map_or(0, |counts| states.iter().map(|state| counts.get(*state)).sum());
        let delivered = counts.map_or(0, StateCounts::count_delivered);
        let piece = |label: &str, state: RowState, messages: u64| (label.to_owned(), state_class(state), messages);
        CascadeStep {
            label: channel_name(words, Some(*channel)),
            ended: vec![
                piece(words.say("run.delivered"), RowState::Delivered, delivered),
                piece(words.say("run.failed"), RowState::Failed, count(&[RowState::Failed])),
                piece(words.say("run.no-status"), RowState::Accepted, count(&WAITING_STATES)),
            ],
            fell_back: (words.say("run.fell-back").to_owned(), figure.count_reached(place.saturating_add(1))),
        }
    };
    let names: Vec<String> = chain.iter().map(|channel| channel_name(words, Some(*channel))).collect();
    ChainView {
        label: names.join(" → "),
        steps: draw_cascade((0..).zip(chain).map(step).collect()),
        unknown: figure.count_unknown(),
    }
}

fn times_views(words: &PageWords, figures: &RunFigures) -> Vec<TimesView> {
    let figures_with_receipts =
        figures.channels.iter().filter(|(_, figure)| figure.counts.count_delivered() + figure.read > 0);
    figures_with_receipts.map(|(channel, figure)| times_view(words, channel, figure)).collect()
}

fn times_view(words: &PageWords, channel: Option<Channel>, figure: &ChannelFigure) -> TimesView {
    let ChannelFigure { counts, read, in_part, times } = figure;
    let format = |number: u64| words.format_number(number);
    let (delivered, all_read) = (format(counts.count_delivered()), format(*read));
    let mut sentences = vec![words.say_with("run.by-channel", &[("delivered", &delivered), ("read", &all_read)])];
    sentences.extend(describe_nonzero(read.saturating_sub(counts.get(RowState::Read)), |n| {
        words.count("run.read-elsewhere", n, &[])
    }));
    sentences.extend((*in_part > 0).then(|| format!("{}: {}.", words.say("run.in-part"), format(*in_part))));
    if let (Some(half), Some(nearly_all)) = (times.median(), times.p95()) {
        let (half, nearly_all) = (words.format_duration_limit(half), words.format_duration_limit(nearly_all));
        sentences.push(words.say_with("run.times", &[("half", &half), ("most", &nearly_all)]));
    }
    sentences.extend(describe_nonzero(times.count_upper_bounds(), |n| words.count("run.times-at-latest", n, &[])));
    sentences.extend(describe_nonzero(times.count_uncertain(), |n| words.count("run.times-uncertain", n, &[])));
    TimesView { channel: channel_name(words, channel), sentences, bars: scale_bars(time_bars(words, times), None) }
}

/// Draws a bar for each range of delivery times, including empty ranges between ranges with messages. The label of a
/// bar names the range; only the messages within this range are counted.
fn time_bars(words: &PageWords, times: &DeliveryTimes) -> Vec<Bar> {
    // Each range has its longest time in seconds, if it is limited, and its number of messages.
    let ranges: Vec<(Option<u64>, u64)> = times.iter_spans().collect();
    let has_messages = |(_, messages): &(Option<u64>, u64)| *messages > 0;
    let (first, last) = (ranges.iter().position(has_messages), ranges.iter().rposition(has_messages));
    let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
    let shortest = |index: usize| index.checked_sub(1).and_then(|previous| ranges[previous].0);
    let bar = |index: usize| {
        let (longest, messages) = ranges[index];
        let label = match (shortest(index), longest) {
            (None, Some(to)) => words.say_with("run.up-to", &[("time", &words.format_span(to))]),
            (Some(from), Some(to)) => {
                words.say_with("run.between", &[("from", &words.format_span(from)), ("to", &words.format_span(to))])
            }
            (from, None) => words.say_with("run.longer", &[("time", &words.format_span(from.unwrap_or_default()))]),
        };
        Bar::new(label, messages, "good").with_note(format_share(words, messages, times.count_timed()))
    };
    (first..=last).map(bar).collect()
}

/// Describes the number of messages, or returns `None` if the count is 0.
fn describe_nonzero(messages: u64, in_words: impl FnOnce(u64) -> String) -> Option<String> {
    (messages > 0).then(|| in_words(messages))
}

/// The throughput.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PaceView {
    chart: Option<TimedView>,
    /// The allowed rate, as text.
    allowed: Option<String>,
    numbers: Vec<NumberView>,
    answers: Option<String>,
}

/// The cost.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MoneyView {
    used: String,
    /// A note about further messages whose price is unknown.
    unpriced: Option<String>,
    given_back: String,
    budget: Option<String>,
    /// The budget that remains for all runs of the edition.
    left: Option<String>,
    most: Option<u64>,
    messages: u64,
}

impl RunPage<'_> {
    pub(super) fn pace_view(&self, words: &PageWords, figures: &RunFigures) -> Option<PaceView> {
        let requests = &figures.requests;
        if requests.requests == 0 {
            return None;
        }
        let rate = figures.terms.as_ref().and_then(|terms| terms.rate);
        let allowed_count = rate.map(|rate| (rate * requests.sent.point_seconds() as f64).ceil() as u64);
        let named = |()| (words.say("run.sent").to_owned(), "c-sent".to_owned());
        let time = |percentile| requests.answer_quantile(percentile).map(|time| words.format_duration_limit(time));
        Some(PaceView {
            chart: self.timed_view(
                words,
                &requests.sent,
                named,
                |()| false,
                allowed_count,
                words.say("run.pace-chart"),
            ),
            allowed: rate.map(|rate| words.say_with("run.allowed", &[("rate", &words.format_decimal(rate))])),
            numbers: vec![
                NumberView::new(words.say("run.requests"), requests.requests),
                NumberView::new(words.say("run.operations"), requests.messages),
                NumberView::new(words.say("run.unanswered"), requests.unanswered),
            ],
            answers: time(50)
                .zip(time(95))
                .map(|(half, nearly_all)| words.say_with("run.answers", &[("half", &half), ("most", &nearly_all)])),
        })
    }
}

/// Builds the view of a run's cost and budget, or returns `None` if prices are unknown.
pub(super) fn money_view(words: &PageWords, figures: &RunFigures, left: Option<Amount>) -> Option<MoneyView> {
    let requests = &figures.requests;
    let RunCost { used, unpriced } = requests.cost()?;
    let terms = figures.terms.as_ref();
    let currency = terms.and_then(|terms| terms.currency.as_deref());
    Some(MoneyView {
        used: words.format_money(used, currency),
        unpriced: words.format_unpriced(unpriced),
        given_back: words.format_money(requests.given_back, currency),
        budget: terms.and_then(|terms| terms.budget.cost).map(|budget| words.format_money(budget, currency)),
        left: left.map(|left| words.format_money(left, currency)),
        most: terms.and_then(|terms| terms.budget.recipients),
        messages: requests.used.recipients - unpriced,
    })
}

/// Formats the time that a point of a chart covers, as text that follows "messages per".
fn format_step(words: &PageWords, seconds: u64) -> String {
    match seconds {
        1 => words.say("unit.second").to_owned(),
        60 => words.say("unit.minute").to_owned(),
        3_600 => words.say("unit.hour").to_owned(),
        86_400 => words.say("unit.day").to_owned(),
        _ => words.format_span(seconds),
    }
}
