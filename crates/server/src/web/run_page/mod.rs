//! The figures and charts of a run, for the report and the dashboard.
//!
//! - `outcomes`: the funnel from the list to read messages, failures, and rows in doubt;
//! - `timelines`: deliveries over time, fallbacks, delivery times, throughput and cost.
//!
//! The dashboard replaces parts that change while a run is sent. All parts come from one `RunReport`, so they always
//! agree. This module neither reads the ledger nor makes decisions.

mod outcomes;
#[cfg(test)]
mod part_tests;
mod timelines;

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::web::charts::{Bar, Length, scale_bars};
use crate::web::html::{TemplateError, render_part};
use crate::web::words::{PageLanguage, PageWords, zone_name};
use campaign_engine::report::{ACCEPTED_STATES, IN_DOUBT_STATES, RunFigures, RunReport, RunStatus};
use campaign_ledger::{RowState, Run, StateCounts};

#[cfg(test)]
pub(in crate::web) use part_tests::sample_with_text;

/// The data of a run's page.
pub struct RunPage<'p> {
    /// The run and its figures.
    pub report: &'p RunReport,
    /// The campaign's name for people, if it has one.
    pub title: Option<&'p str>,
    /// The time at which the run was read.
    pub now: Timestamp,
    /// The time left, if it was measured while sending; otherwise, it is estimated from the throughput.
    pub time_left: Option<Duration>,
    /// The time zone of the campaign.
    pub zone: &'p TimeZone,
    /// Writes a command of this program with the required options, such as `stop sale@3`.
    pub command: &'p dyn Fn(String) -> String,
    /// The URL of the page with the run's rows; `None` in a report.
    pub rows: Option<&'p str>,
}

/// A part of a run's page that can be rendered alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPagePart {
    /// The state of the run, as a sentence.
    Sentence,
    /// The main figures.
    Numbers,
    /// The funnel from rows in the list to messages that were read.
    Funnel,
    /// Deliveries over time, fallbacks and delivery times.
    Arrivals,
    /// Rejected and failed messages.
    Failures,
    /// Rows in doubt.
    Doubt,
    /// The cost.
    Money,
    /// The throughput.
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

    /// The name of the part; the HTML element of the part has the `id` `run-NAME`.
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

/// The view of a run for the templates in `run/`.
#[derive(Clone, Debug, Serialize)]
pub struct RunPageView {
    name: String,
    /// The title of the campaign, or else the name of the run.
    title: String,
    campaign: String,
    destination: String,
    began: String,
    /// The time at which the run was read, with the time zone.
    read: String,
    zone: String,
    /// Whether figures other than the counts exist.
    has_figures: bool,
    purged: Option<String>,
    approved: Vec<String>,
    sentence: SentenceView,
    numbers: Vec<NumberView>,
    funnel: Vec<Bar>,
    arrivals: Option<timelines::ArrivalsView>,
    failures: outcomes::FailuresView,
    doubt: Option<outcomes::DoubtView>,
    money: Option<timelines::MoneyView>,
    pace: Option<timelines::PaceView>,
}

/// A number with its label.
#[derive(Clone, Debug, Serialize)]
struct NumberView {
    label: String,
    value: u64,
    /// The share of a whole, in words.
    share: Option<String>,
    /// The link to the counted rows, on a served page.
    path: Option<String>,
    /// The class in the stylesheet, if the number needs attention.
    class: &'static str,
}

impl NumberView {
    fn new(label: &str, value: u64) -> Self {
        Self { label: label.to_owned(), value, share: None, path: None, class: "" }
    }
}

impl RunPage<'_> {
    /// Builds the view of the run in this language.
    pub fn to_view(&self, language: PageLanguage) -> RunPageView {
        let (words, run) = (PageWords::in_language(language), self.run());
        let figures = self.report.figures.as_ref();
        RunPageView {
            name: run.name(),
            title: self.title.map_or_else(|| run.name(), str::to_owned),
            campaign: run.campaign.clone(),
            destination: self.describe_destination(words),
            began: self.format_moment(words, run.began_at),
            read: words.format_moment_in_zone(&self.now.to_zoned(self.zone.clone())),
            zone: zone_name(self.zone).to_owned(),
            has_figures: figures.is_some(),
            purged: run.purged_at.map(|at| self.format_moment(words, at)),
            approved: self.describe_approvals(words),
            sentence: self.sentence_view(words),
            numbers: self.build_number_views(words),
            funnel: self.funnel_bars(words),
            arrivals: figures.and_then(|figures| self.arrivals_view(words, figures)),
            failures: self.failures_view(words),
            doubt: self.doubt_view(words),
            money: figures.and_then(|figures| timelines::money_view(words, figures, self.report.budget_left)),
            pace: figures.and_then(|figures| self.pace_view(words, figures)),
        }
    }

    fn run(&self) -> &Run {
        &self.report.view.run
    }

    fn counts(&self) -> &StateCounts {
        &self.report.view.counts
    }

    fn figures(&self) -> Option<&RunFigures> {
        self.report.figures.as_ref()
    }

    fn sum_states(&self, states: &[RowState]) -> u64 {
        states.iter().map(|state| self.counts().get(*state)).sum()
    }

    fn describe_destination(&self, words: &PageWords) -> String {
        let run = self.run();
        match run.live {
            true => words.say_with("run.gateway", &[("gateway", &run.gateway)]),
            false => words.say("destination.rehearsal").to_owned(),
        }
    }

    fn describe_approvals(&self, words: &PageWords) -> Vec<String> {
        let approved = self.report.approvals.iter().map(|approval| {
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

    fn build_number_views(&self, words: &PageWords) -> Vec<NumberView> {
        let accepted = self.sum_states(&ACCEPTED_STATES);
        let (failed, doubt) =
            (self.sum_states(&[RowState::Failed, RowState::Rejected]), self.sum_states(&IN_DOUBT_STATES));
        let answered = accepted + self.counts().get(RowState::Rejected);
        let number = NumberView::new;
        let link_to_rows = |number: NumberView, state: RowState, total: u64| NumberView {
            share: format_share(words, number.value, total),
            path: self.rows.filter(|_| number.value > 0).map(|rows| format!("{rows}?state={}", state.name())),
            ..number
        };
        let mut numbers = vec![
            number(words.say("run.kpi-sent"), accepted),
            link_to_rows(
                number(words.say("run.delivered"), self.counts().count_delivered()),
                RowState::Delivered,
                accepted,
            ),
            link_to_rows(number(words.say("run.read"), self.counts().get(RowState::Read)), RowState::Read, accepted),
            NumberView {
                share: format_share(words, failed, answered),
                class: if failed > 0 { "figure-bad" } else { "" },
                ..number(words.say("run.failed"), failed)
            },
        ];
        let doubtful = NumberView { class: "figure-warn", ..number(words.say("run.in-doubt"), doubt) };
        let others = [
            number(words.say("run.in-part"), self.report.count_partial()),
            number(words.say("run.no-status"), self.sum_states(&outcomes::WAITING_STATES)),
        ];
        numbers.extend(Some(doubtful).filter(|number| number.value > 0));
        numbers.extend(self.report.opted_out.map(|opted_out| NumberView {
            share: format_share(words, opted_out, answered),
            ..number(words.say("run.opted-out"), opted_out)
        }));
        numbers.extend(others.into_iter().filter(|number| number.value > 0));
        numbers.push(number(words.say("figure.rows"), self.run().recipients));
        let is_minimum = self.report.has_unreported_parts();
        let parts = if is_minimum { words.say("run.parts-at-least") } else { words.say("run.parts") };
        // Some channels have no parts.
        numbers.extend(Some(number(parts, self.report.view.parts)).filter(|number| number.value > 0));
        numbers
    }
}

/// Renders a part of a run's page; the HTML begins with the element whose `id` is `run-NAME`.
///
/// # Errors
/// If the template cannot be filled, which is a bug.
pub fn render_run_part(language: PageLanguage, view: &RunPageView, part: RunPagePart) -> Result<String, TemplateError> {
    #[derive(Serialize)]
    struct PartView<'v> {
        run: &'v RunPageView,
        part: &'static str,
    }
    render_part(language, "run/part.html", &PartView { run: view, part: part.name() })
}

/// Formats a share as a percentage with one decimal place, such as `96.4%`. `0%` and `100%` appear only for exact
/// shares. `None` if `total` is zero.
pub(in crate::web) fn format_share(words: &PageWords, part: u64, total: u64) -> Option<String> {
    if total == 0 {
        return None;
    }
    let tenths = (u128::from(part) * 1_000 + u128::from(total) / 2) / u128::from(total);
    let tenths = if part < total { tenths.min(999) } else { tenths };
    let (point, sign) = if words.language() == PageLanguage::Ukrainian { (',', "\u{a0}%") } else { ('.', "%") };
    Some(match (tenths / 10, tenths % 10) {
        (0, 0) if part > 0 => format!("<0{point}1{sign}"),
        (percent, 0) => format!("{percent}{sign}"),
        (percent, tenth) => format!("{percent}{point}{tenth}{sign}"),
    })
}

/// The number of latest points from which the throughput of a run is estimated.
const LATEST_POINTS: usize = 10;
/// The remaining time from which the finish time is shown instead of a duration.
const FINISH_TIME_THRESHOLD: Duration = Duration::from_secs(600);

/// The state of a run.
#[derive(Clone, Debug, Serialize)]
struct SentenceView {
    /// The name of the state, in the class of the element.
    state: &'static str,
    /// The state in words.
    status: String,
    progress: String,
    /// The bar of the processed messages, while the run is being sent.
    bar: Option<ProgressBar>,
    /// The reason the run stopped, in English.
    why: Option<String>,
    /// The number of rows in doubt.
    doubt: Option<String>,
}

impl RunPage<'_> {
    fn sentence_view(&self, words: &PageWords) -> SentenceView {
        let status = &self.report.view.status;
        let doubt = self.sum_states(&IN_DOUBT_STATES);
        SentenceView {
            state: status.as_str(),
            status: words.item_name("status", status.as_str()).unwrap_or_default().to_owned(),
            progress: self.describe_progress(words),
            bar: self.progress_bar(words),
            why: status.reason().map(str::to_owned),
            doubt: (doubt > 0).then(|| words.count("run.doubt", doubt, &[])),
        }
    }

    /// Counts the planned messages and the processed messages.
    fn count_planned_and_processed(&self) -> (u64, u64) {
        let waiting = self.sum_states(&[RowState::Planned, RowState::Sending]);
        let planned = self.run().recipients.saturating_sub(self.sum_states(&[RowState::Skipped, RowState::Invalid]));
        (planned, planned.saturating_sub(waiting))
    }

    fn progress_bar(&self, words: &PageWords) -> Option<ProgressBar> {
        if self.report.view.status != RunStatus::Sending {
            return None;
        }
        let (planned, processed) = self.count_planned_and_processed();
        let bar = scale_bars(vec![Bar::new("", processed, "whole")], Some(planned)).pop()?;
        let rate = self.figures().filter(|_| !self.is_waiting()).and_then(latest_rate);
        Some(ProgressBar {
            length: bar.length,
            percent: format_share(words, processed, planned)?,
            rate: rate.map(|rate| words.say_with("run.rate", &[("rate", &words.format_decimal(rate))])),
        })
    }

    /// Whether the run has not sent messages for a while, for example because its window is closed. The last rate then
    /// says nothing about its end.
    fn is_waiting(&self) -> bool {
        self.figures().is_some_and(|figures| figures.requests.sent.is_stale(LATEST_POINTS, self.now))
    }

    /// Describes the progress of the run, and the remaining time or the estimated end.
    pub fn describe_progress(&self, words: &PageWords) -> String {
        let (planned, processed) = self.count_planned_and_processed();
        let waiting = planned.saturating_sub(processed);
        let processed = words.format_number(processed);
        let progress = words.count("run.processed", planned, &[("processed", &processed)]);
        if self.report.view.status != RunStatus::Sending {
            return progress;
        }
        let estimate = || self.time_left.or_else(|| estimate_time_left(self.figures()?, waiting));
        match (!self.is_waiting()).then(estimate).flatten() {
            Some(left) if left < FINISH_TIME_THRESHOLD => {
                let left = words.format_duration(round_duration(left));
                words.say_with("run.time-left", &[("progress", &progress), ("time", &left)])
            }
            Some(left) => {
                let at = self.now.checked_add(left).unwrap_or(Timestamp::MAX);
                words.say_with("run.finish-time", &[("progress", &progress), ("at", &self.format_moment(words, at))])
            }
            None => progress,
        }
    }
}

/// The bar of a run that is being sent.
#[derive(Clone, Debug, Serialize)]
struct ProgressBar {
    /// The processed share.
    length: Length,
    percent: String,
    /// The latest throughput, in words.
    rate: Option<String>,
}

/// Returns the recent throughput in messages per second, rounded to one decimal place. Returns `None` if no messages
/// were sent recently.
fn latest_rate(figures: &RunFigures) -> Option<f64> {
    let latest = figures.requests.sent.latest_counts(LATEST_POINTS);
    let seconds = figures.requests.sent.point_seconds() as f64 * latest.len() as f64;
    let sent = latest.iter().sum::<u64>();
    (sent > 0 && seconds > 0.0).then(|| (sent as f64 / seconds * 10.0).round() / 10.0)
}

/// Estimates the time that the waiting rows take at the latest throughput. Returns `None` if no messages were sent
/// recently or no rows are waiting.
fn estimate_time_left(figures: &RunFigures, waiting: u64) -> Option<Duration> {
    let latest = figures.requests.sent.latest_counts(LATEST_POINTS);
    let (sent, points) = (latest.iter().sum::<u64>(), u64::try_from(latest.len()).ok()?);
    if sent == 0 || waiting == 0 {
        return None;
    }
    let period = points.checked_mul(u64::try_from(figures.requests.sent.point_seconds()).ok()?)?;
    let seconds = u128::from(waiting) * u128::from(period) / u128::from(sent);
    Some(Duration::from_secs(u64::try_from(seconds).ok()?))
}

/// Rounds a duration up to a multiple of 1 s, 5 s or 1 min, depending on its length.
fn round_duration(duration: Duration) -> Duration {
    let step = match duration.as_secs() {
        0..20 => 1,
        20..120 => 5,
        _ => 60,
    };
    Duration::from_secs(duration.as_secs().max(1).next_multiple_of(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_channel_has_a_colour_in_the_stylesheet() {
        for channel in campaign_core::domain::Channel::ALL {
            let class = format!(".c-{}", channel.name().replace('/', "-"));
            let is_selector = |after: &str| after.starts_with([' ', ',']);
            assert!(crate::web::html::STYLE.split(&class).skip(1).any(is_selector), "{class}");
        }
    }

    #[test]
    fn share_is_shown_as_0_or_100_percent_only_if_exact() {
        let english = PageWords::in_language(PageLanguage::English);
        let table = [
            (0, 7, "0%"),
            (7, 7, "100%"),
            (999_999, 1_000_000, "99.9%"),
            (160, 161, "99.4%"),
            (1, 2_001, "<0.1%"),
            (1, 1_000_000, "<0.1%"),
        ];
        for (part, total, text) in table {
            assert_eq!(format_share(english, part, total).as_deref(), Some(text));
        }
        assert_eq!(format_share(PageWords::in_language(PageLanguage::Ukrainian), 1, 8).as_deref(), Some("12,5\u{a0}%"));
        assert_eq!(format_share(english, 0, 0), None);
    }
}
