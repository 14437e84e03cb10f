//! Stored figures of a run, so that viewing a run of ten million rows reads none of them.
//!
//! Channels are stored by name and amounts as digits. The figures contain no personal data: rows in doubt are listed by
//! row number only, and phone numbers in gateway texts are masked. So figures are kept when recipients are erased.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::breakdowns::Timeline;
use super::channels::{ChannelFigure, ChannelFigures, DeliveryTimes};
use super::{
    ArrivalKind, FallbackChain, FallbackChainFigure, ReasonCounts, RequestFigures, RowInDoubt, RowsInDoubt, RunFigures,
    RunTerms,
};
use campaign_core::domain::{Amount, Channel, Spending};
use campaign_ledger::{BilledParts, REPLACED, RowState, StateCounts};

/// The version of the format. Other versions are not read.
const FORMAT_VERSION: u8 = 5;
/// The version that did not count messages without prices. The figures of a run in which only some messages have prices
/// are calculated again, unless the run was purged.
const VERSION_WITHOUT_UNPRICED: u8 = 4;
/// The earlier versions, which are still read. Version 2 evaluated each channel alone; version 3 did not store read
/// messages by channel, and accepted every reported time. Figures with receipts are calculated again, unless the run
/// was purged.
const EARLIER_VERSIONS: [u8; 2] = [2, 3];

/// Figures, and the state of the run for which they were calculated. They are invalid if the run has changed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct StoredFigures {
    receipts: u64,
    /// `None` if only the terms are stored.
    rows: Option<StoredRows>,
    /// The terms, as JSON.
    terms: Option<String>,
    /// The deliveries by channel, in the order of the channels in `rows`. Versions 2 and 3 do not have it.
    #[serde(skip)]
    deliveries: Vec<StoredDeliveries>,
    /// The messages whose price is unknown. It comes last, and earlier versions do not have it.
    #[serde(skip)]
    unpriced: u64,
}

/// The stored data about a channel's deliveries other than counts and times.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredDeliveries {
    read: u64,
    in_part: u64,
    at_latest: u64,
    uncertain: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredRows {
    counts: StateCounts,
    left_out: ReasonCounts,
    /// The figures by channel name; `None` for messages without a reported channel.
    channels: Vec<(Option<String>, StoredChannel)>,
    chains: Vec<(Vec<String>, FallbackChainFigure)>,
    arrived: Timeline<(Option<String>, Option<bool>)>,
    failures: ReasonCounts,
    /// The Unix time in seconds since which messages are in doubt, and the first rows in doubt.
    doubts: (Option<i64>, Vec<RowInDoubt>),
    requests: StoredRequests,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredChannel {
    counts: StateCounts,
    /// Pairs of a time in milliseconds, accurate to a thousandth, and its number of messages.
    times: Vec<(u64, u64)>,
    /// The number of messages in each span.
    spans: Vec<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredRequests {
    requests: u64,
    unanswered: u64,
    messages: u64,
    sent: Timeline<()>,
    /// The billed parts, and the number of messages with billed parts.
    parts: (u64, u64),
    /// The recipients and the cost that count for the budget.
    used: (u64, String),
    given_back: String,
    /// Whether any message has a known price; in earlier versions, whether all messages had one.
    has_prices: bool,
    /// Pairs of a time in milliseconds, accurate to a thousandth, and its number of requests.
    answers: Vec<(u64, u64)>,
}

impl StoredFigures {
    pub(super) fn from_figures(figures: &RunFigures, receipts: u64) -> Self {
        let deliveries = figures.channels.iter().map(|(_, figure)| StoredDeliveries::from_figure(figure)).collect();
        let (rows, unpriced) = (Some(StoredRows::from_figures(figures)), figures.requests.unpriced);
        Self { receipts, rows, deliveries, unpriced, terms: None }.with_optional_terms(figures.terms.as_ref())
    }

    /// Sets the terms that are stored with the figures.
    pub(super) fn with_terms(self, terms: RunTerms) -> Self {
        self.with_optional_terms(Some(&terms))
    }

    fn with_optional_terms(self, terms: Option<&RunTerms>) -> Self {
        Self { terms: terms.and_then(|terms| serde_json::to_string(terms).ok()), ..self }
    }

    /// Whether the figures were calculated when the run had these counts and `receipts` receipts.
    pub(super) fn is_current(&self, counts: &StateCounts, receipts: u64) -> bool {
        self.receipts == receipts && self.rows.as_ref().is_some_and(|rows| rows.counts == *counts)
    }

    /// Counts unsent rows as skipped, because another run has replaced this run.
    pub(super) fn mark_replaced(mut self) -> Self {
        if let Some(rows) = &mut self.rows {
            let unsent = rows.counts.skip_planned();
            rows.left_out.add_rows(RowState::Skipped, REPLACED, unsent);
        }
        self
    }

    /// The stored terms of the run. `None` if no terms are stored, or if the stored terms cannot be parsed.
    pub(super) fn parse_terms(&self) -> Option<RunTerms> {
        serde_json::from_str(self.terms.as_ref()?).ok()
    }

    /// Restores the figures of the run. `None` if only the terms are stored, or if the stored figures contain unknown
    /// values.
    pub(super) fn into_figures(self) -> Option<RunFigures> {
        let terms = self.parse_terms();
        let mut figures = RunFigures { terms, ..self.rows?.into_figures(self.deliveries)? };
        figures.requests.unpriced = self.unpriced;
        Some(figures)
    }

    pub(super) fn decode(stored: &[u8]) -> Option<Self> {
        let (version, rest) = stored.split_first()?;
        let (stored, rest) = postcard::take_from_bytes::<Self>(rest).ok()?;
        if *version == FORMAT_VERSION {
            let (deliveries, unpriced) = postcard::from_bytes(rest).ok()?;
            return Some(Self { deliveries, unpriced, ..stored });
        }
        // Earlier versions did not state a cost if any price was unknown.
        let count_unpriced = |rows: &StoredRows| if rows.requests.has_prices { 0 } else { rows.requests.used.0 };
        let unpriced = stored.rows.as_ref().map_or(0, count_unpriced);
        match *version {
            VERSION_WITHOUT_UNPRICED => Some(Self { deliveries: postcard::from_bytes(rest).ok()?, unpriced, ..stored }),
            version if EARLIER_VERSIONS.contains(&version) => Some(Self { unpriced, ..stored }),
            _ => None,
        }
    }

    /// Decodes the figures of a run whose records are available. Figures that an earlier version calculated by other
    /// rules are dropped, so that they are calculated again.
    pub(super) fn decode_current(stored: &[u8]) -> Option<Self> {
        let version = *stored.first()?;
        let stored = Self::decode(stored)?;
        let is_current = |rows: &StoredRows| {
            let are_receipts_valid = !EARLIER_VERSIONS.contains(&version) || stored.receipts == 0;
            let requests = &rows.requests;
            let is_cost_valid = version == FORMAT_VERSION || requests.has_prices || requests.has_zero_cost();
            are_receipts_valid && is_cost_valid
        };
        Some(Self { rows: stored.rows.filter(is_current), ..stored })
    }

    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let written = postcard::to_extend(self, vec![FORMAT_VERSION]).ok()?;
        postcard::to_extend(&(&self.deliveries, self.unpriced), written).ok()
    }
}

impl StoredDeliveries {
    fn from_figure(figure: &ChannelFigure) -> Self {
        let ChannelFigure { read, in_part, times, .. } = figure;
        Self {
            read: *read,
            in_part: *in_part,
            at_latest: times.count_upper_bounds(),
            uncertain: times.count_uncertain(),
        }
    }

    /// The deliveries as an earlier version stored them: a read message counted for the channel that delivered it.
    fn from_counts(counts: &StateCounts) -> Self {
        Self { read: counts.get(RowState::Read), ..Self::default() }
    }
}

impl StoredRows {
    fn from_figures(figures: &RunFigures) -> Self {
        let name = |channel: Option<Channel>| channel.map(|channel| channel.name().to_owned());
        let stored_channel = |figure: &ChannelFigure| StoredChannel {
            counts: figure.counts.clone(),
            times: figure.times.time_counts(),
            spans: figure.times.span_counts().to_vec(),
        };
        let channels = figures.channels.iter().map(|(channel, figure)| (name(channel), stored_channel(figure)));
        let names = |chain: &FallbackChain| chain.iter().map(|channel| channel.name().to_owned()).collect();
        let RowsInDoubt { since, rows } = figures.doubts.clone();
        Self {
            counts: figures.counts.clone(),
            left_out: figures.left_out.clone(),
            channels: channels.collect(),
            chains: figures.chains.iter().map(|(chain, figure)| (names(chain), figure.clone())).collect(),
            arrived: figures.arrivals.map_kinds(|ArrivalKind { channel, first }| Some((name(*channel), *first))),
            failures: figures.failures.clone(),
            doubts: (since.map(Timestamp::as_second), rows),
            requests: StoredRequests::from_figures(&figures.requests),
        }
    }

    fn into_figures(self, deliveries: Vec<StoredDeliveries>) -> Option<RunFigures> {
        let (mut channels, mut deliveries) = (ChannelFigures::default(), deliveries.into_iter());
        for (name, StoredChannel { counts, times, spans }) in self.channels {
            let StoredDeliveries { read, in_part, at_latest, uncertain } =
                deliveries.next().unwrap_or_else(|| StoredDeliveries::from_counts(&counts));
            let times = DeliveryTimes::from_counts(&times, &spans).with_certainty(at_latest, uncertain);
            let figure = ChannelFigure { counts, read, in_part, times };
            match name.as_deref().map(Channel::from_name) {
                Some(channel) => drop(channels.channels.insert(channel?, figure)),
                None => channels.unknown_channel = figure,
            }
        }
        let parse_chain =
            |names: Vec<String>| names.iter().map(|name| Channel::from_name(name)).collect::<Option<FallbackChain>>();
        let chains = self.chains.into_iter().map(|(names, figure)| Some((parse_chain(names)?, figure)));
        let parse_arrival = |(name, first): &(Option<String>, Option<bool>)| {
            let channel = name.as_deref().map(Channel::from_name);
            Some(ArrivalKind { channel: if name.is_some() { Some(channel??) } else { None }, first: *first })
        };
        let (since, rows) = self.doubts;
        Some(RunFigures {
            counts: self.counts,
            left_out: self.left_out,
            channels,
            chains: chains.collect::<Option<BTreeMap<_, _>>>()?,
            arrivals: self.arrived.map_kinds(parse_arrival),
            failures: self.failures,
            doubts: RowsInDoubt { since: since.and_then(|second| Timestamp::from_second(second).ok()), rows },
            requests: self.requests.into_figures()?,
            terms: None,
        })
    }
}

impl StoredRequests {
    fn from_figures(figures: &RequestFigures) -> Self {
        let RequestFigures {
            requests,
            unanswered,
            messages,
            sent,
            parts,
            used,
            given_back,
            has_prices,
            answers,
            unpriced: _,
        } = figures.clone();
        Self {
            requests,
            unanswered,
            messages,
            sent,
            parts: (parts.billed, parts.messages),
            used: (used.recipients, used.cost.to_json_digits()),
            given_back: given_back.to_json_digits(),
            has_prices,
            answers: answers.iter_recorded().map(|time| (time.value_iterated_to(), time.count_at_value())).collect(),
        }
    }

    /// Whether the recorded cost is zero.
    fn has_zero_cost(&self) -> bool {
        self.used.1.parse() == Ok(Amount::default())
    }

    fn into_figures(self) -> Option<RequestFigures> {
        let amount = |digits: &str| digits.parse::<Amount>().ok();
        let mut figures = RequestFigures {
            requests: self.requests,
            unanswered: self.unanswered,
            messages: self.messages,
            sent: self.sent,
            parts: BilledParts { billed: self.parts.0, messages: self.parts.1 },
            used: Spending { recipients: self.used.0, cost: amount(&self.used.1)? },
            given_back: amount(&self.given_back)?,
            has_prices: self.has_prices && self.requests > 0,
            ..RequestFigures::default()
        };
        let answers: &mut Histogram<u64> = &mut figures.answers;
        self.answers.iter().for_each(|(time, requests)| answers.saturating_record_n(*time, *requests));
        Some(figures)
    }
}
