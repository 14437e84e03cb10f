//! How fast a run went against what was allowed, how long answers took, and what it cost at most.

use serde::Serialize;

use super::arrivals::TimedView;
use super::{NumberView, RunPage};
use crate::domain::{Amount, Spending};
use crate::report::RunFigures;
use crate::web::words::PageWords;

/// How fast it went.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PaceView {
    chart: Option<TimedView>,
    /// What was allowed, in words.
    allowed: Option<String>,
    numbers: Vec<NumberView>,
    answers: Option<String>,
}

/// What it cost at most.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MoneyView {
    used: String,
    given_back: String,
    budget: Option<String>,
    /// What all runs of the edition may still use.
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
        let most = rate.map(|rate| (rate * requests.sent.point_seconds() as f64).ceil() as u64);
        let named = |()| (words.say("run.sent").to_owned(), "c-sent".to_owned());
        let number = |label: &str, value| NumberView { label: label.to_owned(), value };
        let time = |of_100| requests.answer_quantile(of_100).map(|time| words.format_duration(time));
        Some(PaceView {
            chart: self.timed_view(words, &requests.sent, (named, |()| false), most, words.say("run.pace-chart")),
            allowed: rate.map(|rate| words.say_with("run.allowed", &[("rate", &words.format_decimal(rate))])),
            numbers: vec![
                number(words.say("run.requests"), requests.requests),
                number(words.say("run.operations"), requests.messages),
                number(words.say("run.unanswered"), requests.unanswered),
            ],
            answers: time(50)
                .zip(time(95))
                .map(|(half, most)| words.say_with("run.answers", &[("half", &half), ("most", &most)])),
        })
    }
}

/// What a run cost at most; nothing where the price of a message is not known.
pub(super) fn money_view(words: &PageWords, figures: &RunFigures, left: Option<Amount>) -> Option<MoneyView> {
    let requests = &figures.requests;
    if !requests.priced || requests.requests == 0 {
        return None;
    }
    let Spending { recipients, cost } = requests.used;
    let terms = figures.terms.as_ref();
    let currency = terms.and_then(|terms| terms.currency.as_deref());
    Some(MoneyView {
        used: words.format_money(cost, currency),
        given_back: words.format_money(requests.given_back, currency),
        budget: terms.and_then(|terms| terms.budget.cost).map(|budget| words.format_money(budget, currency)),
        left: left.map(|left| words.format_money(left, currency)),
        most: terms.and_then(|terms| terms.budget.recipients),
        messages: recipients,
    })
}
