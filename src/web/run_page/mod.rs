//! A run as pages show it: numbers in words, charts as places, in the order in which a person asks.
//!
//! - `sentence`: where it stands;
//! - `funnel`: from the list to who read it, and every row has its place;
//! - `arrivals`: what arrived when and by what, how messages fell from channel to channel, how long they took;
//! - `failures`, `doubt`: what did not arrive, and what nobody knows;
//! - `pace`: how fast it went, and what it cost at most.
//!
//! The same parts stand in the report, which is a file, and on the page of a run that is being sent, which replaces them as they
//! change. All of them are made of one `RunStanding`, so no two can disagree. Nothing here reads the ledger or decides anything.

mod arrivals;
mod doubt;
mod failures;
mod funnel;
mod pace;
#[cfg(test)]
mod samples;
mod sentence;

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

#[cfg(test)]
pub(in crate::web) use samples::told;

use crate::ledger::{Run, State, StateCounts};
use crate::report::{RunFigures, RunStanding};
use crate::web::charts::Bar;
use crate::web::html::{TemplateError, render_part};
use crate::web::words::{Language, Words, zone_name};

/// What a run's page is made of.
pub struct RunPage<'p> {
    /// The run and its figures.
    pub standing: &'p RunStanding,
    /// When it was read.
    pub now: Timestamp,
    /// How long the rest takes, for who has watched it; else it is judged by the points of its pace.
    pub left: Option<Duration>,
    /// On whose clock times are told: the campaign's.
    pub zone: &'p TimeZone,
    /// Writes a command of this program with the options that it needs, such as `stop sale@3`.
    pub command: &'p dyn Fn(String) -> String,
    /// The address of the page with its rows; nothing where no server shows them.
    pub rows: Option<&'p str>,
}

/// A part of a run's page, by which it can be made anew alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Where it stands, in a sentence.
    Sentence,
    /// Its numbers.
    Numbers,
    /// From the list to who read it.
    Funnel,
    /// What arrived when, by what, and how long it took.
    Arrivals,
    /// What was refused or did not arrive.
    Failures,
    /// What nobody knows.
    Doubt,
    /// What it cost.
    Money,
    /// How fast it went.
    Pace,
}

impl Part {
    /// Every part, in the order of the page.
    pub const ALL: [Part; 8] = [
        Part::Sentence,
        Part::Numbers,
        Part::Funnel,
        Part::Arrivals,
        Part::Failures,
        Part::Doubt,
        Part::Money,
        Part::Pace,
    ];

    /// Its name: the `id` of its element is `run-NAME`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Sentence => "sentence",
            Part::Numbers => "numbers",
            Part::Funnel => "funnel",
            Part::Arrivals => "arrivals",
            Part::Failures => "failures",
            Part::Doubt => "doubt",
            Part::Money => "money",
            Part::Pace => "pace",
        }
    }
}

/// A run as the templates below `run/` show it.
#[derive(Clone, Debug, Serialize)]
pub struct RunPageView {
    name: String,
    campaign: String,
    way: String,
    began: String,
    /// When it was read, and on whose clock.
    read: String,
    zone: String,
    /// Whether more than its counts is known.
    whole: bool,
    purged: Option<String>,
    approved: Vec<String>,
    sentence: sentence::SentenceView,
    numbers: Vec<NumberView>,
    funnel: Vec<Bar>,
    arrivals: Option<arrivals::ArrivalsView>,
    failures: failures::FailuresView,
    doubt: Option<doubt::DoubtView>,
    money: Option<pace::MoneyView>,
    pace: Option<pace::PaceView>,
}

/// A number with its name.
#[derive(Clone, Debug, Serialize)]
struct NumberView {
    label: String,
    value: u64,
}

impl RunPage<'_> {
    /// The run in a language.
    #[must_use]
    pub fn view(&self, language: Language) -> RunPageView {
        let (words, run) = (Words::of(language), self.run());
        let figures = self.standing.figures.as_ref();
        RunPageView {
            name: run.name(),
            campaign: run.campaign.clone(),
            way: self.way(words),
            began: self.moment(words, run.began_at),
            read: words.moment_in_zone(&self.now.to_zoned(self.zone.clone())),
            zone: zone_name(self.zone).to_owned(),
            whole: figures.is_some(),
            purged: run.purged_at.map(|at| self.moment(words, at)),
            approved: self.approved(words),
            sentence: self.sentence(words),
            numbers: self.numbers(words),
            funnel: self.funnel(words),
            arrivals: figures.and_then(|figures| self.arrivals(words, figures)),
            failures: self.failures(words),
            doubt: self.doubt(words),
            money: figures.and_then(|figures| pace::money(words, figures, self.standing.budget_left)),
            pace: figures.and_then(|figures| self.pace(words, figures)),
        }
    }

    fn run(&self) -> &Run {
        &self.standing.view.run
    }

    fn counts(&self) -> &StateCounts {
        &self.standing.view.counts
    }

    fn figures(&self) -> Option<&RunFigures> {
        self.standing.figures.as_ref()
    }

    fn sum(&self, states: &[State]) -> u64 {
        states.iter().map(|state| self.counts().get(*state)).sum()
    }

    fn way(&self, words: &Words) -> String {
        let run = self.run();
        match run.live {
            true => words.say_with("run.way", &[("gateway", &run.gateway)]),
            false => words.say("way.rehearsal").to_owned(),
        }
    }

    fn approved(&self, words: &Words) -> Vec<String> {
        let approved = self.standing.approvals.iter().map(|approval| {
            words.say_with("run.approved", &[("by", &approval.by), ("at", &self.moment(words, approval.at))])
        });
        approved.collect()
    }

    fn moment(&self, words: &Words, at: Timestamp) -> String {
        words.moment(&at.to_zoned(self.zone.clone()))
    }

    fn command(&self, arguments: String) -> String {
        (self.command)(arguments)
    }

    fn numbers(&self, words: &Words) -> Vec<NumberView> {
        let number = |label: &str, value| NumberView { label: label.to_owned(), value };
        let mut numbers = vec![
            number(words.say("figure.rows"), self.run().recipients),
            number(words.say("run.taken"), self.sum(&funnel::TAKEN)),
            number(words.say("run.delivered"), self.counts().delivered()),
            number(words.say("run.read"), self.counts().get(State::Read)),
            number(words.say("run.failed"), self.sum(&[State::Failed, State::Rejected])),
        ];
        let others = [
            number(words.say("run.in-part"), self.standing.in_part()),
            number(words.say("run.waiting"), self.sum(&funnel::NO_WORD)),
            number(words.say("run.in-doubt"), self.sum(&crate::report::DOUBTFUL)),
        ];
        numbers.extend(others.into_iter().filter(|number| number.value > 0));
        let least = self.standing.parts_at_least();
        let parts = if least { words.say("run.parts-at-least") } else { words.say("run.parts") };
        // Some channels have none.
        numbers.extend(Some(number(parts, self.standing.view.parts)).filter(|number| number.value > 0));
        numbers
    }
}

/// Makes a part of a run's page anew; it begins with the element whose `id` is `run-NAME`.
///
/// # Errors
/// When the template cannot be filled, which is a bug.
pub fn part(language: Language, view: &RunPageView, part: Part) -> Result<String, TemplateError> {
    #[derive(Serialize)]
    struct One<'v> {
        run: &'v RunPageView,
        part: &'static str,
    }
    render_part(language, "run/part.html", &One { run: view, part: part.name() })
}

/// A share in words, to the nearest tenth but all or nothing only where it is: `96.4 %`.
fn share(words: &Words, part: u64, whole: u64) -> Option<String> {
    if whole == 0 {
        return None;
    }
    let tenths = (u128::from(part) * 1_000 + u128::from(whole) / 2) / u128::from(whole);
    let tenths = if part < whole { tenths.min(999) } else { tenths };
    let point = if words.language() == Language::Ukrainian { ',' } else { '.' };
    Some(match (tenths / 10, tenths % 10) {
        (0, 0) if part > 0 => format!("<0{point}1\u{a0}%"),
        (percent, 0) => format!("{percent}\u{a0}%"),
        (percent, tenth) => format!("{percent}{point}{tenth}\u{a0}%"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_all_or_nothing_only_where_it_is() {
        let english = Words::of(Language::English);
        let table = [
            (0, 7, "0\u{a0}%"),
            (7, 7, "100\u{a0}%"),
            (999_999, 1_000_000, "99.9\u{a0}%"),
            (160, 161, "99.4\u{a0}%"),
            (1, 2_001, "<0.1\u{a0}%"),
            (1, 1_000_000, "<0.1\u{a0}%"),
        ];
        for (part, whole, told) in table {
            assert_eq!(share(english, part, whole).as_deref(), Some(told));
        }
        assert_eq!(share(Words::of(Language::Ukrainian), 1, 8).as_deref(), Some("12,5\u{a0}%"));
        assert_eq!(share(english, 0, 0), None);
    }
}
