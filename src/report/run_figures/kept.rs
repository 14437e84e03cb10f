//! The figures of a run as the ledger keeps them, so that who looks at ten million rows waits for none of them.
//!
//! Channels are kept by their names and amounts by their digits. Of a row in doubt there is its number in the list and nothing of
//! its recipient, and what a gateway said of a row has its number masked: what is kept is of nobody, and stays when people go.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::timeline::Timeline;
use super::{Arrived, DoubtfulRow, Doubts, Reasons, RequestFigures, RunFigures, Terms, Way, WayFigure};
use crate::domain::{Amount, Channel, Spending};
use crate::ledger::{Parts, REPLACED, State, StateCounts};
use crate::report::channel_figures::{ChannelFigure, ChannelFigures, DeliveryTimes};

/// The form of what follows; another one is read by nobody who knows this one.
const FORM: u8 = 4;
/// The earlier versions, which are still read: 2 judged each channel alone, 3 kept no readings by channel and accepted every
/// reported time. Figures with receipts are calculated again, unless the run was purged.
const EARLIER_FORMS: [u8; 2] = [2, 3];

/// Figures, and what the run was when they were made: where it is not that any more, they are nothing.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct KeptFigures {
    receipts: u64,
    /// Nothing while only the terms are kept.
    rows: Option<KeptRows>,
    /// As JSON.
    terms: Option<String>,
    /// By channel, in the order of the channels in `rows`. It comes last, and earlier versions do not have it.
    #[serde(skip)]
    deliveries: Vec<KeptDeliveries>,
}

/// The kept data about a channel's deliveries besides its counts and times.
#[derive(Debug, Default, Serialize, Deserialize)]
struct KeptDeliveries {
    read: u64,
    in_part: u64,
    at_latest: u64,
    uncertain: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptRows {
    counts: StateCounts,
    left_out: Reasons,
    /// By the names of channels; without a name the messages of which nobody told the channel.
    channels: Vec<(Option<String>, KeptChannel)>,
    ways: Vec<(Vec<String>, WayFigure)>,
    arrived: Timeline<(Option<String>, Option<bool>)>,
    failures: Reasons,
    doubts: (Option<i64>, Vec<DoubtfulRow>),
    requests: KeptRequests,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptChannel {
    counts: StateCounts,
    /// How many messages took which time, in milliseconds, to a thousandth.
    times: Vec<(u64, u64)>,
    /// How many messages took a time of each span.
    spans: Vec<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptRequests {
    requests: u64,
    unanswered: u64,
    messages: u64,
    sent: Timeline<()>,
    /// Billed, and of how many messages.
    parts: (u64, u64),
    used: (u64, String),
    given_back: String,
    priced: bool,
    /// How many requests took which time, in milliseconds, to a thousandth.
    answers: Vec<(u64, u64)>,
}

impl KeptFigures {
    pub(super) fn of(figures: &RunFigures, receipts: u64) -> Self {
        let deliveries = figures.channels.iter().map(|(_, figure)| KeptDeliveries::of(figure)).collect();
        Self { receipts, rows: Some(KeptRows::of(figures)), deliveries, ..Self::default() }.with(figures.terms.as_ref())
    }

    /// The same on these terms.
    pub(super) fn on(self, terms: Terms) -> Self {
        self.with(Some(&terms))
    }

    fn with(self, terms: Option<&Terms>) -> Self {
        Self { terms: terms.and_then(|terms| serde_json::to_string(terms).ok()), ..self }
    }

    /// Whether they were made when a run had these counts and so many receipts.
    pub(super) fn is_of(&self, counts: &StateCounts, receipts: u64) -> bool {
        self.receipts == receipts && self.rows.as_ref().is_some_and(|rows| rows.counts == *counts)
    }

    /// The same for a run that another run has replaced: its unsent rows are skipped.
    pub(super) fn replaced(mut self) -> Self {
        if let Some(rows) = &mut self.rows {
            let unsent = rows.counts.skip_planned();
            rows.left_out.add(State::Skipped, REPLACED, unsent);
        }
        self
    }

    /// On what terms the run was sent last.
    pub(super) fn terms(&self) -> Option<Terms> {
        serde_json::from_str(self.terms.as_ref()?).ok()
    }

    /// The figures; nothing where only the terms were kept, or something is in them that is not known here.
    pub(super) fn figures(self) -> Option<RunFigures> {
        let terms = self.terms();
        Some(RunFigures { terms, ..self.rows?.figures(self.deliveries)? })
    }

    pub(super) fn read(kept: &[u8]) -> Option<Self> {
        let (form, rest) = kept.split_first()?;
        let (kept, rest) = postcard::take_from_bytes::<Self>(rest).ok()?;
        match *form {
            FORM => Some(Self { deliveries: postcard::from_bytes(rest).ok()?, ..kept }),
            form if EARLIER_FORMS.contains(&form) => Some(kept),
            _ => None,
        }
    }

    /// The same for a run whose rows can be looked at: what another rule made of receipts is made again.
    pub(super) fn read_current(kept: &[u8]) -> Option<Self> {
        let is_earlier = kept.first().is_some_and(|form| EARLIER_FORMS.contains(form));
        let kept = Self::read(kept)?;
        Some(Self { rows: kept.rows.filter(|_| !is_earlier || kept.receipts == 0), ..kept })
    }

    pub(super) fn written(&self) -> Option<Vec<u8>> {
        let written = postcard::to_extend(self, vec![FORM]).ok()?;
        postcard::to_extend(&self.deliveries, written).ok()
    }
}

impl KeptDeliveries {
    fn of(figure: &ChannelFigure) -> Self {
        let ChannelFigure { read, in_part, times, .. } = figure;
        Self { read: *read, in_part: *in_part, at_latest: times.at_latest(), uncertain: times.uncertain() }
    }

    /// The readings of an earlier version: each counted for the channel of its message.
    fn of_counts(counts: &StateCounts) -> Self {
        Self { read: counts.get(State::Read), ..Self::default() }
    }
}

impl KeptRows {
    fn of(figures: &RunFigures) -> Self {
        let name = |channel: Option<Channel>| channel.map(|channel| channel.name().to_owned());
        let kept = |figure: &ChannelFigure| KeptChannel {
            counts: figure.counts.clone(),
            times: figure.times.pairs(),
            spans: figure.times.spans().to_vec(),
        };
        let names = |way: &Way| way.iter().map(|channel| channel.name().to_owned()).collect();
        let Doubts { since, rows } = figures.doubts.clone();
        Self {
            counts: figures.counts.clone(),
            left_out: figures.left_out.clone(),
            channels: figures.channels.iter().map(|(channel, of)| (name(channel), kept(of))).collect(),
            ways: figures.ways.iter().map(|(way, figure)| (names(way), figure.clone())).collect(),
            arrived: figures.arrived.renamed(|Arrived { channel, first }| Some((name(*channel), *first))),
            failures: figures.failures.clone(),
            doubts: (since.map(Timestamp::as_second), rows),
            requests: KeptRequests::of(&figures.requests),
        }
    }

    fn figures(self, deliveries: Vec<KeptDeliveries>) -> Option<RunFigures> {
        let (mut channels, mut deliveries) = (ChannelFigures::default(), deliveries.into_iter());
        for (name, KeptChannel { counts, times, spans }) in self.channels {
            let KeptDeliveries { read, in_part, at_latest, uncertain } =
                deliveries.next().unwrap_or_else(|| KeptDeliveries::of_counts(&counts));
            let times = DeliveryTimes::from_pairs(&times, &spans).with_certainty(at_latest, uncertain);
            let figure = ChannelFigure { counts, read, in_part, times };
            match name.as_deref().map(Channel::from_name) {
                Some(channel) => drop(channels.channels.insert(channel?, figure)),
                None => channels.untold = figure,
            }
        }
        let way = |names: Vec<String>| names.iter().map(|name| Channel::from_name(name)).collect::<Option<Way>>();
        let ways = self.ways.into_iter().map(|(names, figure)| Some((way(names)?, figure)));
        let arrived = |(name, first): &(Option<String>, Option<bool>)| {
            let channel = name.as_deref().map(Channel::from_name);
            Some(Arrived { channel: if name.is_some() { Some(channel??) } else { None }, first: *first })
        };
        let (since, rows) = self.doubts;
        Some(RunFigures {
            counts: self.counts,
            left_out: self.left_out,
            channels,
            ways: ways.collect::<Option<BTreeMap<_, _>>>()?,
            arrived: self.arrived.renamed(arrived),
            failures: self.failures,
            doubts: Doubts { since: since.and_then(|second| Timestamp::from_second(second).ok()), rows },
            requests: self.requests.figures()?,
            terms: None,
        })
    }
}

impl KeptRequests {
    fn of(figures: &RequestFigures) -> Self {
        let RequestFigures { requests, unanswered, messages, sent, parts, used, given_back, priced, answers } =
            figures.clone();
        Self {
            requests,
            unanswered,
            messages,
            sent,
            parts: (parts.billed, parts.messages),
            used: (used.recipients, used.cost.digits()),
            given_back: given_back.digits(),
            priced,
            answers: answers.iter_recorded().map(|time| (time.value_iterated_to(), time.count_at_value())).collect(),
        }
    }

    fn figures(self) -> Option<RequestFigures> {
        let amount = |digits: &str| digits.parse::<Amount>().ok();
        let mut figures = RequestFigures {
            requests: self.requests,
            unanswered: self.unanswered,
            messages: self.messages,
            sent: self.sent,
            parts: Parts { billed: self.parts.0, messages: self.parts.1 },
            used: Spending { recipients: self.used.0, cost: amount(&self.used.1)? },
            given_back: amount(&self.given_back)?,
            priced: self.priced,
            ..RequestFigures::default()
        };
        let answers: &mut Histogram<u64> = &mut figures.answers;
        self.answers.iter().for_each(|(time, requests)| answers.saturating_record_n(*time, *requests));
        Some(figures)
    }
}
