//! The figures of a run for programs. Nobody's number is in it.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    ArrivalKind, FallbackChain, FallbackChainFigure, ReasonCounts, RequestFigures, RunFigures, RunTerms, Timeline,
};
use crate::domain::Channel;
use crate::report::channel_figures::DeliveryTimes;
use crate::report::counts_json;

impl RunFigures {
    /// The figures for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let terms = self.terms.as_ref();
        json!({
            "counts": counts_json(&self.counts),
            "left_out": reasons_json(&self.left_out),
            "failures": reasons_json(&self.failures),
            "ways": self.chains.iter().map(|(way, figure)| way_json(way, figure)).collect::<Vec<_>>(),
            "arrived": { "seconds": self.arrivals.point_seconds(), "points": self.arrivals_json() },
            "delivery_times": self.channels.iter().map(|(channel, figure)| (channel_name(channel).to_owned(), spans_json(&figure.times)))
                .collect::<Map<_, _>>(),
            "doubt": {
                "since": self.doubts.since.map(|at| at.to_string()),
                "rows": self.doubts.rows.iter().map(|row| json!({
                    "row": row.row, "state": row.state.name(), "why": row.why, "asked": row.asked,
                    "sent_at": Timestamp::from_second(row.sent_at).ok().map(|at| at.to_string()),
                })).collect::<Vec<_>>(),
            },
            "requests": requests_json(&self.requests),
            "money": money_json(&self.requests, terms),
            "rate_allowed": terms.and_then(|terms| terms.rate),
        })
    }

    fn arrivals_json(&self) -> Vec<Value> {
        let kind = |ArrivalKind { channel, first }: &ArrivalKind, count: &u64| json!({ "channel": channel_name(*channel), "first": first, "messages": count });
        let points = self.arrivals.points().map(|(_, point)| {
            let kinds: Vec<Value> = point.counts.iter().map(|(arrived, count)| kind(arrived, count)).collect();
            json!({ "from": point.from.to_string(), "by": kinds })
        });
        points.collect()
    }
}

fn channel_name(channel: Option<Channel>) -> &'static str {
    channel.map_or("unknown", Channel::name)
}

fn reasons_json(reasons: &ReasonCounts) -> Value {
    let reason = |reason: &super::ReasonCount<'_>| json!({ "state": reason.state.name(), "why": reason.text, "rows": reason.rows });
    json!({ "by": reasons.most_frequent().iter().map(reason).collect::<Vec<_>>(), "others": reasons.others(), "rows": reasons.count_rows() })
}

fn way_json(way: &FallbackChain, figure: &FallbackChainFigure) -> Value {
    let place = |(place, channel): (u8, &Channel)| {
        let ended = figure.places.get(&Some(place)).map(counts_json);
        json!({ "channel": channel.name(), "reached": figure.count_reached(place), "ended": ended })
    };
    json!({ "channels": (0..).zip(way).map(place).collect::<Vec<_>>(), "untold": figure.count_unknown() })
}

fn spans_json(times: &DeliveryTimes) -> Value {
    let within = |(longest, messages): (Option<u64>, u64)| json!({ "within_seconds": longest, "messages": messages });
    times.iter_spans().map(within).collect()
}

fn points_json(timeline: &Timeline<()>) -> Vec<Value> {
    let points = timeline.points();
    points
        .map(|(_, point)| json!({ "from": point.from.to_string(), "messages": point.counts.values().sum::<u64>() }))
        .collect()
}

fn requests_json(figures: &RequestFigures) -> Value {
    let seconds = |of_100| figures.answer_quantile(of_100).map(|time| time.as_secs_f64());
    json!({
        "requests": figures.requests, "unanswered": figures.unanswered, "messages": figures.messages,
        "median_seconds": seconds(50), "p95_seconds": seconds(95),
        "sent": { "seconds": figures.sent.point_seconds(), "points": points_json(&figures.sent) },
    })
}

fn money_json(figures: &RequestFigures, terms: Option<&RunTerms>) -> Value {
    if !figures.priced || figures.requests == 0 {
        return Value::Null;
    }
    json!({
        "used_at_most": figures.used.cost.trim_decimals(), "given_back": figures.given_back.trim_decimals(),
        "budget": terms.and_then(|terms| terms.budget.cost), "currency": terms.and_then(|terms| terms.currency.as_deref()),
    })
}
