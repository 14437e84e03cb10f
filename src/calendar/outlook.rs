//! The outlook of a run: when its messages can leave, by its windows, its end, its rate and `per_day`.
//!
//! Only this module combines them. The caller names the start: the current time for a run by hand, and a date of the schedule
//! for a scheduled run.

use std::time::Duration;

use jiff::{Timestamp, ToSpan as _};

use super::{Capacity, DailyLimits, Occurrence, Schedule, Windows};

/// How many days of a run are calculated at most. The finish of longer runs is unknown.
const MAX_RUN_DAYS: i64 = 400;
/// How many occurrences of a schedule are judged at most.
const MAX_OCCURRENCES: usize = 100;
/// How many days ahead occurrences are judged, beyond the first ones.
const LOOKAHEAD_DAYS: i64 = 366;
/// How many occurrences are judged even if they are further ahead.
const MIN_OCCURRENCES: usize = 3;

/// What limits a run.
#[derive(Clone, Debug)]
pub struct RunLimits<'c> {
    /// The messages, grouped by the windows that hold for them.
    pub groups: Vec<MessageGroup>,
    /// The most messages in a second. `None` without a limit.
    pub rate: Option<f64>,
    /// The most messages on a day.
    pub per_day: Option<&'c DailyLimits>,
    /// When the run ends, even if messages are left.
    pub end: Option<RunDeadline>,
}

/// Messages that the same windows hold for.
#[derive(Clone, Debug)]
pub struct MessageGroup {
    /// The windows.
    pub windows: Windows,
    /// How many messages.
    pub messages: u64,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunDeadline {
    /// At this moment.
    At(Timestamp),
    /// This long after the run began.
    After(Duration),
}

/// The outlook of a run that begins at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// When the run begins.
    pub begins: Timestamp,
    /// When it ends, even if messages are left.
    pub ends: Option<Timestamp>,
    /// When a window opens for the first message. `None` if no window opens within a year.
    pub opens: Option<Timestamp>,
    /// When the last message leaves, or the earlier end of the run. `None` if it lasts longer than a year.
    pub finishes: Option<Timestamp>,
    /// About how many messages do not leave before the end.
    pub unsent: u64,
}

/// A run of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledRun {
    /// The occurrence.
    pub occurrence: Occurrence,
    /// Its outcome.
    pub outlook: OccurrenceOutlook,
}

/// The outcome of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OccurrenceOutlook {
    /// Messages leave.
    Sends(Outlook),
    /// No message can leave.
    SendsNothing(Outlook),
    /// The previous run is still being sent, until this moment. `None` if it lasts longer than a year.
    Busy(Option<Timestamp>),
}

impl Outlook {
    /// Whether a message can leave.
    #[must_use]
    pub fn can_send(&self) -> bool {
        self.opens.is_some_and(|opens| self.ends.is_none_or(|ends| opens < ends))
    }

    /// How long the first message waits for a window.
    #[must_use]
    pub fn first_message_wait(&self) -> Duration {
        let wait = self.opens.map(|opens| opens.duration_since(self.begins));
        wait.and_then(|wait| Duration::try_from(wait).ok()).unwrap_or_default()
    }
}

impl RunLimits<'_> {
    /// The outlook of a run that begins at a moment.
    #[must_use]
    pub fn calculate_outlook(&self, begins: Timestamp) -> Outlook {
        let ends = self.end.map(|end| match end {
            RunDeadline::At(at) => at,
            RunDeadline::After(time) => begins.checked_add(time).unwrap_or(Timestamp::MAX),
        });
        let opens = self.groups.iter().filter_map(|group| group.windows.next_open_from(begins)).min();
        let outlook = Outlook { begins, ends, opens, finishes: ends, unsent: self.count_messages() };
        if !outlook.can_send() {
            return outlook;
        }
        let (unsent, finishes) = self.simulate_sending(begins, ends);
        Outlook { finishes, unsent, ..outlook }
    }

    /// The outcome of the next occurrences of a schedule after a moment: a hundred, or those of a year.
    #[must_use]
    pub fn forecast_schedule(&self, schedule: &Schedule, after: Timestamp) -> Vec<ScheduledRun> {
        let ahead = after.checked_add((LOOKAHEAD_DAYS * 24).hours()).unwrap_or(Timestamp::MAX);
        let near = schedule.occurrences_after(after).take(MAX_OCCURRENCES).enumerate();
        let near = near.take_while(|(index, occurrence)| *index < MIN_OCCURRENCES || occurrence.at < ahead);
        let mut runs = Vec::new();
        let mut sending: Option<Outlook> = None;
        for (_, occurrence) in near {
            let busy = sending.filter(|run| run.finishes.is_none_or(|finishes| finishes > occurrence.at));
            let course = match busy {
                Some(run) => OccurrenceOutlook::Busy(run.finishes),
                None => self.forecast_occurrence(occurrence.at),
            };
            if let OccurrenceOutlook::Sends(outlook) = course {
                sending = Some(outlook);
            }
            // If a window stays closed for a year, it is closed for the occurrences of that year too.
            let stays_closed = matches!(course, OccurrenceOutlook::SendsNothing(Outlook { opens: None, .. }));
            runs.push(ScheduledRun { occurrence, outlook: course });
            if stays_closed {
                break;
            }
        }
        runs
    }

    /// The outcome of an occurrence that begins at a moment, if no other run is being sent.
    #[must_use]
    pub fn forecast_occurrence(&self, begins: Timestamp) -> OccurrenceOutlook {
        let outlook = self.calculate_outlook(begins);
        if outlook.can_send() { OccurrenceOutlook::Sends(outlook) } else { OccurrenceOutlook::SendsNothing(outlook) }
    }

    /// All messages.
    fn count_messages(&self) -> u64 {
        self.groups.iter().map(|group| group.messages).sum()
    }

    /// About how many messages do not leave before the end, and when the run finishes.
    fn simulate_sending(&self, begins: Timestamp, ends: Option<Timestamp>) -> (u64, Option<Timestamp>) {
        let followed = begins.checked_add((MAX_RUN_DAYS * 24).hours()).unwrap_or(Timestamp::MAX);
        let until = ends.map_or(followed, |ends| ends.min(followed));
        let capacity = |windows, messages| {
            Capacity { rate: self.rate, windows, per_day: self.per_day }.simulate_sending(messages, begins, until)
        };
        // Each group has its own windows; all groups share the rate and the limit for a day.
        let always = Windows::default();
        let mut left = capacity(&always, self.count_messages());
        let (mut closed_out, mut last) = (0, left.at);
        for group in self.groups.iter().filter(|group| group.messages > 0) {
            let group = capacity(&group.windows, group.messages);
            (closed_out, last) = (closed_out + group.left, last.max(group.at));
        }
        left.left = left.left.max(closed_out);
        match (left.left, ends) {
            (0, _) => (0, Some(last)),
            (unsent, Some(ends)) if ends <= followed => (unsent, Some(ends)),
            _ => (0, None),
        }
    }
}

#[cfg(test)]
#[path = "outlook_tests.rs"]
mod tests;
