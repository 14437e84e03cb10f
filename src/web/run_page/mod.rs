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
pub(in crate::web) use samples::sample_with_text;

use crate::ledger::{RowState, Run, StateCounts};
use crate::report::{RunFigures, RunReport};
use crate::web::charts::Bar;
use crate::web::html::{TemplateError, render_part};
use crate::web::words::{PageLanguage, PageWords, zone_name};

/// What a run's page is made of.
pub struct RunPage<'p> {
    /// The run and its figures.
    pub standing: &'p RunReport,
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
pub enum RunPagePart {
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

impl RunPagePart {
    /// Every part, in the order of the page.
    pub const ALL: [RunPagePart; 8] = [
        RunPagePart::Sentence,
        RunPagePart::Numbers,
        RunPagePart::Funnel,
        RunPagePart::Arrivals,
        RunPagePart::Failures,
        RunPagePart::Doubt,
        RunPagePart::Money,
        RunPagePart::Pace,
    ];

    /// Its name: the `id` of its element is `run-NAME`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RunPagePart::Sentence => "sentence",
            RunPagePart::Numbers => "numbers",
            RunPagePart::Funnel => "funnel",
            RunPagePart::Arrivals => "arrivals",
            RunPagePart::Failures => "failures",
            RunPagePart::Doubt => "doubt",
            RunPagePart::Money => "money",
            RunPagePart::Pace => "pace",
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
    pub fn to_view(&self, language: PageLanguage) -> RunPageView {
        let (words, run) = (PageWords::in_language(language), self.run());
        let figures = self.standing.figures.as_ref();
        RunPageView {
            name: run.name(),
            campaign: run.campaign.clone(),
            way: self.describe_destination(words),
            began: self.format_moment(words, run.began_at),
            read: words.format_moment_in_zone(&self.now.to_zoned(self.zone.clone())),
            zone: zone_name(self.zone).to_owned(),
            whole: figures.is_some(),
            purged: run.purged_at.map(|at| self.format_moment(words, at)),
            approved: self.describe_approvals(words),
            sentence: self.sentence_view(words),
            numbers: self.number_views(words),
            funnel: self.funnel_bars(words),
            arrivals: figures.and_then(|figures| self.arrivals_view(words, figures)),
            failures: self.failures_view(words),
            doubt: self.doubt_view(words),
            money: figures.and_then(|figures| pace::money_view(words, figures, self.standing.budget_left)),
            pace: figures.and_then(|figures| self.pace_view(words, figures)),
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

    fn sum_states(&self, states: &[RowState]) -> u64 {
        states.iter().map(|state| self.counts().get(*state)).sum()
    }

    fn describe_destination(&self, words: &PageWords) -> String {
        let run = self.run();
        match run.live {
            true => words.say_with("run.way", &[("gateway", &run.gateway)]),
            false => words.say("way.rehearsal").to_owned(),
        }
    }

    fn describe_approvals(&self, words: &PageWords) -> Vec<String> {
        let approved = self.standing.approvals.iter().map(|approval| {
            words.say_with("run.approved", &[("by", &approval.by), ("at", &self.format_moment(words, approval.at))])
        });
        approved.collect()
    }

    fn format_moment(&self, words: &PageWords, at: Timestamp) -> String {
        words.format_moment(&at.to_zoned(self.zone.clone()))
    }

    fn format_command(&self, arguments: String) -> String {
        (self.command)(arguments)
    }

    fn number_views(&self, words: &PageWords) -> Vec<NumberView> {
        let number = |label: &str, value| NumberView { label: label.to_owned(), value };
        let mut numbers = vec![
            number(words.say("figure.rows"), self.run().recipients),
            number(words.say("run.taken"), self.sum_states(&funnel::ACCEPTED_STATES)),
            number(words.say("run.delivered"), self.counts().count_delivered()),
            number(words.say("run.read"), self.counts().get(RowState::Read)),
            number(words.say("run.failed"), self.sum_states(&[RowState::Failed, RowState::Rejected])),
        ];
        let others = [
            number(words.say("run.in-part"), self.standing.count_partial()),
            number(words.say("run.waiting"), self.sum_states(&funnel::WAITING_STATES)),
            number(words.say("run.in-doubt"), self.sum_states(&crate::report::IN_DOUBT_STATES)),
        ];
        numbers.extend(others.into_iter().filter(|number| number.value > 0));
        let least = self.standing.has_unreported_parts();
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
pub fn render_run_part(language: PageLanguage, view: &RunPageView, part: RunPagePart) -> Result<String, TemplateError> {
    #[derive(Serialize)]
    struct One<'v> {
        run: &'v RunPageView,
        part: &'static str,
    }
    render_part(language, "run/part.html", &One { run: view, part: part.name() })
}

/// A share in words, to the nearest tenth but all or nothing only where it is: `96.4 %`.
fn format_share(words: &PageWords, part: u64, whole: u64) -> Option<String> {
    if whole == 0 {
        return None;
    }
    let tenths = (u128::from(part) * 1_000 + u128::from(whole) / 2) / u128::from(whole);
    let tenths = if part < whole { tenths.min(999) } else { tenths };
    let point = if words.language() == PageLanguage::Ukrainian { ',' } else { '.' };
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
    fn share_is_all_or_nothing_only_if_exact() {
        let english = PageWords::in_language(PageLanguage::English);
        let table = [
            (0, 7, "0\u{a0}%"),
            (7, 7, "100\u{a0}%"),
            (999_999, 1_000_000, "99.9\u{a0}%"),
            (160, 161, "99.4\u{a0}%"),
            (1, 2_001, "<0.1\u{a0}%"),
            (1, 1_000_000, "<0.1\u{a0}%"),
        ];
        for (part, whole, told) in table {
            assert_eq!(format_share(english, part, whole).as_deref(), Some(told));
        }
        assert_eq!(format_share(PageWords::in_language(PageLanguage::Ukrainian), 1, 8).as_deref(), Some("12,5\u{a0}%"));
        assert_eq!(format_share(english, 0, 0), None);
    }
}
