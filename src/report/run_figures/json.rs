//! The figures of a run for programs. Nobody's number is in it.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Arrived, Reasons, RequestFigures, RunFigures, Terms, Timeline, Way, WayFigure};
use crate::domain::Channel;
use crate::report::channel_figures::DeliveryTimes;
use crate::report::counts_json;

impl RunFigures {
    /// The figures for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let terms = self.terms.as_ref();
        json!({
            "counts": counts_json(&self.counts),
            "left_out": reasons(&self.left_out),
            "failures": reasons(&self.failures),
            "ways": self.ways.iter().map(|(way, figure)| of_way(way, figure)).collect::<Vec<_>>(),
            "arrived": { "seconds": self.arrived.seconds(), "points": self.arrivals() },
            "delivery_times": self.channels.iter().map(|(channel, figure)| (name(channel).to_owned(), spans(&figure.times)))
                .collect::<Map<_, _>>(),
            "doubt": {
                "since": self.doubts.since.map(|at| at.to_string()),
                "rows": self.doubts.rows.iter().map(|row| json!({
                    "row": row.row, "state": row.state.name(), "why": row.why, "asked": row.asked,
                    "sent_at": Timestamp::from_second(row.sent_at).ok().map(|at| at.to_string()),
                })).collect::<Vec<_>>(),
            },
            "requests": requests(&self.requests),
            "money": money(&self.requests, terms),
            "rate_allowed": terms.and_then(|terms| terms.rate),
        })
    }

    fn arrivals(&self) -> Vec<Value> {
        let kind = |Arrived { channel, first }: &Arrived, count: &u64| json!({ "channel": name(*channel), "first": first, "messages": count });
        let points = self.arrived.points().map(|(_, point)| {
            let kinds: Vec<Value> = point.counts.iter().map(|(arrived, count)| kind(arrived, count)).collect();
            json!({ "from": point.from.to_string(), "by": kinds })
        });
        points.collect()
    }
}

fn name(channel: Option<Channel>) -> &'static str {
    channel.map_or("unknown", Channel::name)
}

fn reasons(reasons: &Reasons) -> Value {
    let reason =
        |reason: &super::Reason<'_>| json!({ "state": reason.state.name(), "why": reason.words, "rows": reason.rows });
    json!({ "by": reasons.most().iter().map(reason).collect::<Vec<_>>(), "others": reasons.others(), "rows": reasons.rows() })
}

fn of_way(way: &Way, figure: &WayFigure) -> Value {
    let place = |(place, channel): (u8, &Channel)| {
        let ended = figure.places.get(&Some(place)).map(counts_json);
        json!({ "channel": channel.name(), "reached": figure.reached(place), "ended": ended })
    };
    json!({ "channels": (0..).zip(way).map(place).collect::<Vec<_>>(), "untold": figure.untold() })
}

fn spans(times: &DeliveryTimes) -> Value {
    let within = |(longest, messages): (Option<u64>, u64)| json!({ "within_seconds": longest, "messages": messages });
    times.each_span().map(within).collect()
}

fn points(timeline: &Timeline<()>) -> Vec<Value> {
    let points = timeline.points();
    points
        .map(|(_, point)| json!({ "from": point.from.to_string(), "messages": point.counts.values().sum::<u64>() }))
        .collect()
}

fn requests(figures: &RequestFigures) -> Value {
    let seconds = |of_100| figures.answered_within(of_100).map(|time| time.as_secs_f64());
    json!({
        "requests": figures.requests, "unanswered": figures.unanswered, "messages": figures.messages,
        "median_seconds": seconds(50), "p95_seconds": seconds(95),
        "sent": { "seconds": figures.sent.seconds(), "points": points(&figures.sent) },
    })
}

fn money(figures: &RequestFigures, terms: Option<&Terms>) -> Value {
    if !figures.priced || figures.requests == 0 {
        return Value::Null;
    }
    json!({
        "used_at_most": figures.used.cost.shortest(), "given_back": figures.given_back.shortest(),
        "budget": terms.and_then(|terms| terms.budget.cost), "currency": terms.and_then(|terms| terms.currency.as_deref()),
    })
}
