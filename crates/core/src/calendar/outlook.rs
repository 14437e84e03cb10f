//! Forecasts of runs: when messages can be sent, given sending windows, the end of the run, the rate and the daily
//! limits.
//!
//! Only this module combines these limits. The caller chooses the start: the current time for a manual run, or an
//! occurrence for a scheduled run.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _, Zoned};
use serde::{Deserialize, Serialize};

use super::{Occurrence, Schedule, Windows};

/// The maximum number of days that a forecast covers. If a run takes longer, its finish is unknown.
const MAX_RUN_DAYS: i64 = 400;
/// The maximum number of occurrences in a forecast.
const MAX_OCCURRENCES: usize = 100;
/// The number of days for which a schedule is forecast. Only the first [`MIN_OCCURRENCES`] can be later.
const LOOKAHEAD_DAYS: i64 = 366;
/// The minimum number of occurrences in a forecast, however far in the future they are.
const MIN_OCCURRENCES: usize = 3;

/// The limits that determine when a run sends its messages.
#[derive(Clone, Debug)]
pub struct RunLimits<'c> {
    /// The messages, grouped by their sending windows.
    pub groups: Vec<MessageGroup>,
    /// The maximum number of messages per second. `None` if there is no limit.
    pub rate: Option<f64>,
    /// The maximum number of messages per day.
    pub per_day: Option<&'c DailyLimits>,
    /// The messages that the edition has sent already, by day.
    pub sent: SentByDay,
    /// The time at which the run ends, even if messages are unsent.
    pub end: Option<RunDeadline>,
}

/// The number of messages that an edition sent on each local day.
pub type SentByDay = BTreeMap<Date, u64>;

/// Messages with the same sending windows.
#[derive(Clone, Debug)]
pub struct MessageGroup {
    /// The windows, all of which must be open to send these messages.
    pub windows: Windows,
    /// The number of messages.
    pub messages: u64,
}

/// The end of a run, as a moment or relative to its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunDeadline {
    /// A fixed moment.
    At(Timestamp),
    /// A time after the start of the run.
    After(Duration),
}

/// The forecast of a run that starts at a given moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// The start of the run.
    pub begins: Timestamp,
    /// The deadline of the run.
    pub ends: Option<Timestamp>,
    /// The time at which a window opens for the first message. `None` if no window opens within a year.
    pub opens: Option<Timestamp>,
    /// The time at which the last message is sent, or the deadline if that comes first. `None` if the run lasts longer
    /// than a year.
    pub finishes: Option<Timestamp>,
    /// The estimated number of messages that are still unsent at the deadline.
    pub unsent: u64,
    /// The number of days on which messages are sent. Without daily limits, the whole run counts as one day.
    pub days: u64,
}

/// An occurrence of a schedule, with its forecast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledRun {
    /// The occurrence.
    pub occurrence: Occurrence,
    /// The forecast of the occurrence.
    pub outlook: OccurrenceOutlook,
}

/// The forecast of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OccurrenceOutlook {
    /// Messages are sent.
    Sends(Outlook),
    /// No message can be sent.
    SendsNothing(Outlook),
    /// The previous run is still being sent, until this moment. `None` if it lasts longer than a year.
    Busy(Option<Timestamp>),
}

impl Outlook {
    /// Whether any message can be sent.
    pub fn can_send(&self) -> bool {
        self.opens.is_some_and(|opens| self.ends.is_none_or(|ends| opens < ends))
    }

    /// The time that the first message waits for a window.
    pub fn first_message_wait(&self) -> Duration {
        let waiting_time = self.opens.map(|opens| opens.duration_since(self.begins));
        waiting_time.and_then(|waiting_time| Duration::try_from(waiting_time).ok()).unwrap_or_default()
    }
}

impl RunLimits<'_> {
    /// Calculates the forecast of a run that starts at `begins`.
    pub fn calculate_outlook(&self, begins: Timestamp) -> Outlook {
        let ends = self.end.map(|end| match end {
            RunDeadline::At(at) => at,
            RunDeadline::After(time) => begins.checked_add(time).unwrap_or(Timestamp::MAX),
        });
        let opens = self.groups.iter().filter_map(|group| group.windows.next_open_from(begins)).min();
        let outlook = Outlook { begins, ends, opens, finishes: ends, unsent: self.count_messages(), days: 0 };
        match outlook.can_send() {
            true => self.simulate_sending(outlook),
            false => outlook,
        }
    }

    /// Forecasts up to a hundred occurrences after a moment, all within a year except perhaps the first three.
    pub fn forecast_schedule(&self, schedule: &Schedule, after: Timestamp) -> Vec<ScheduledRun> {
        let lookahead_end = after.checked_add((LOOKAHEAD_DAYS * 24).hours()).unwrap_or(Timestamp::MAX);
        let occurrences = schedule.occurrences_after(after).take(MAX_OCCURRENCES).enumerate();
        let occurrences =
            occurrences.take_while(|(index, occurrence)| *index < MIN_OCCURRENCES || occurrence.at < lookahead_end);
        let mut runs = Vec::new();
        let mut sending: Option<Outlook> = None;
        for (_, occurrence) in occurrences {
            let busy = sending.filter(|run| run.finishes.is_none_or(|finishes| finishes >= occurrence.at));
            let forecast = match busy {
                // The occurrence waits for the deadline of the previous run.
                Some(Outlook { ends: Some(ends), .. }) if self.waits_for_previous_run(schedule, &occurrence, ends) => {
                    self.forecast_occurrence(ends.max(occurrence.at))
                }
                Some(run) => OccurrenceOutlook::Busy(run.finishes),
                None => self.forecast_occurrence(occurrence.at),
            };
            if let OccurrenceOutlook::Sends(outlook) = forecast {
                sending = Some(outlook);
            }
            // If the window stays closed for a year, all further occurrences within that year send nothing either, so
            // the forecast ends here.
            let stays_closed = matches!(forecast, OccurrenceOutlook::SendsNothing(Outlook { opens: None, .. }));
            runs.push(ScheduledRun { occurrence, outlook: forecast });
            if stays_closed {
                break;
            }
        }
        runs
    }

    /// Whether an occurrence waits for the previous run, which lasts until `previous_ends`.
    fn waits_for_previous_run(&self, schedule: &Schedule, occurrence: &Occurrence, previous_ends: Timestamp) -> bool {
        matches!(self.end, Some(RunDeadline::After(_))) && schedule.can_start_after(occurrence, previous_ends)
    }

    /// The forecast of an occurrence, assuming that no other run is being sent.
    fn forecast_occurrence(&self, begins: Timestamp) -> OccurrenceOutlook {
        let outlook = self.calculate_outlook(begins);
        if outlook.can_send() { OccurrenceOutlook::Sends(outlook) } else { OccurrenceOutlook::SendsNothing(outlook) }
    }

    fn count_messages(&self) -> u64 {
        self.groups.iter().map(|group| group.messages).sum()
    }

    /// Simulates sending, and adds the unsent messages, the finishing time and the number of sending days to the
    /// outlook.
    fn simulate_sending(&self, outlook: Outlook) -> Outlook {
        let Outlook { begins, ends, .. } = outlook;
        let horizon = begins.checked_add((MAX_RUN_DAYS * 24).hours()).unwrap_or(Timestamp::MAX);
        let until = ends.map_or(horizon, |ends| ends.min(horizon));
        let simulate = |windows, messages| {
            let capacity = Capacity { rate: self.rate, windows, per_day: self.per_day, sent: &self.sent };
            capacity.simulate_sending(messages, begins, until)
        };
        // All groups share the rate and the daily limit, but each has its own windows. The result is the worse of two
        // bounds: all messages without windows, and each group on its own.
        let always = Windows::default();
        let mut total = simulate(&always, self.count_messages());
        let (mut unsent_in_groups, mut last) = (0, total.at);
        for group in self.groups.iter().filter(|group| group.messages > 0) {
            let progress = simulate(&group.windows, group.messages);
            unsent_in_groups += progress.unsent;
            last = last.max(progress.at);
            total.days = total.days.max(progress.days);
        }
        total.unsent = total.unsent.max(unsent_in_groups);
        let (unsent, finishes) = match (total.unsent, ends) {
            (0, _) => (0, Some(last)),
            (unsent, Some(ends)) if ends <= horizon => (unsent, Some(ends)),
            // Sending takes longer than the simulation covers, so the end is unknown.
            _ => (0, None),
        };
        Outlook { unsent, finishes, days: total.days, ..outlook }
    }
}

/// The limits that apply to all messages of a group.
#[derive(Clone, Copy, Debug)]
struct Capacity<'c> {
    /// The maximum number of messages per second. `None` if there is no limit.
    rate: Option<f64>,
    /// The sending windows.
    windows: &'c Windows,
    /// The maximum number of messages per day.
    per_day: Option<&'c DailyLimits>,
    /// The messages that the edition has sent already, by day.
    sent: &'c SentByDay,
}

/// The result of simulated sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SendProgress {
    /// The number of unsent messages.
    unsent: u64,
    /// The time at which the last message is sent. Meaningless if some are unsent.
    at: Timestamp,
    /// The number of days on which messages were sent.
    days: u64,
}

impl Capacity<'_> {
    /// Simulates sending between two moments.
    fn simulate_sending(&self, messages: u64, from: Timestamp, until: Timestamp) -> SendProgress {
        let (mut at, mut unsent, mut days) = (from, messages, 0);
        let mut used = self.per_day.map(|per_day| per_day.count_usage(self.sent, from)).unwrap_or_default();
        while at < until && unsent > 0 {
            let next = self.per_day.map_or(until, |per_day| per_day.next_day_start(at).timestamp().min(until));
            let today = self.per_day.map_or(unsent, |per_day| per_day.remaining_today(used).min(unsent));
            let day = self.send_within_day(today, at, next);
            let sent = today - day.unsent;
            unsent -= sent;
            days += u64::from(sent > 0);
            used = DailyUsage { days: used.days + usize::from(sent + used.today > 0), today: 0 };
            at = if unsent == 0 { day.at } else { next };
        }
        SendProgress { unsent, at, days }
    }

    /// Simulates sending within one day.
    fn send_within_day(&self, messages: u64, from: Timestamp, until: Timestamp) -> SendProgress {
        let (mut at, mut unsent) = (from, messages);
        while unsent > 0
            && let Some(opens) = self.windows.next_open_from(at).filter(|opens| *opens < until)
        {
            let Some(rate) = self.rate else { return SendProgress { unsent: 0, at: opens, days: 1 } };
            let closes = self.windows.next_closed_from(opens).map_or(until, |closes| closes.min(until));
            // The conversion saturates: a very high rate covers all messages.
            let sendable = (closes.duration_since(opens).as_secs_f64() * rate) as u64;
            if unsent <= sendable {
                let duration = SignedDuration::try_from_secs_f64(unsent as f64 / rate).unwrap_or_default();
                let at = opens.checked_add(duration).map_or(closes, |at| at.min(closes));
                return SendProgress { unsent: 0, at, days: 1 };
            }
            unsent -= sendable;
            at = closes;
        }
        SendProgress { unsent, at, days: u64::from(unsent < messages) }
    }
}

/// Daily message limits in a time zone: one count for each day on which messages are sent. The last count applies to
/// all later days.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DailyLimits {
    counts: Vec<u32>,
    #[serde(with = "jiff::fmt::serde::tz::required")]
    zone: TimeZone,
}

impl DailyLimits {
    /// The daily limits in a time zone. `None` if `counts` is empty.
    pub fn new(counts: Vec<u32>, zone: TimeZone) -> Option<Self> {
        (!counts.is_empty()).then_some(Self { counts, zone })
    }

    /// The limit for a day after `days_before` days on which messages were sent.
    pub fn limit(&self, days_before: usize) -> u64 {
        let count = self.counts.get(days_before).or(self.counts.last());
        count.copied().unwrap_or_default().into()
    }

    /// The local date of a moment.
    pub fn local_date(&self, moment: Timestamp) -> Date {
        moment.to_zoned(self.zone.clone()).date()
    }

    /// The start of the next local day. In some zones and years, a day does not start at midnight.
    pub fn next_day_start(&self, moment: Timestamp) -> Zoned {
        let next = self.local_date(moment).tomorrow().and_then(|day| day.to_zoned(self.zone.clone()));
        next.unwrap_or_else(|_| Timestamp::MAX.to_zoned(self.zone.clone()))
    }

    /// The part of the limits that an edition has used at this moment.
    pub fn count_usage(&self, sent: &SentByDay, moment: Timestamp) -> DailyUsage {
        let today = self.local_date(moment);
        let days = sent.range(..today).filter(|(_, messages)| **messages > 0).count();
        DailyUsage { days, today: sent.get(&today).copied().unwrap_or_default() }
    }

    /// The number of messages that can still be sent today.
    pub fn remaining_today(&self, used: DailyUsage) -> u64 {
        self.limit(used.days).saturating_sub(used.today)
    }

    /// The minimum number of days on which `messages` further messages are sent.
    pub fn count_days(&self, messages: u64, used: DailyUsage) -> u64 {
        let today = if used.today > 0 { self.remaining_today(used).min(messages) } else { 0 };
        let (mut remaining, mut days) = (messages - today, u64::from(today > 0));
        let before = used.days + usize::from(used.today > 0);
        for count in self.counts.iter().skip(before) {
            if remaining == 0 {
                return days;
            }
            remaining = remaining.saturating_sub(u64::from(*count));
            days += 1;
        }
        days + remaining.div_ceil(self.limit(usize::MAX).max(1))
    }

    /// The name of the zone in the IANA database.
    pub fn zone_name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }
}

/// The part of its daily limits that an edition has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DailyUsage {
    /// The number of earlier days on which messages were sent.
    pub days: usize,
    /// The number of messages that were sent today.
    pub today: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::{DailyHours, Days, Timing, Window};

    const HOUR: Duration = Duration::from_secs(3_600);

    fn kyiv() -> TimeZone {
        TimeZone::get("Europe/Kyiv").unwrap()
    }

    fn window(hours: &str, days: &str) -> Windows {
        let days = if days.is_empty() { Days::ALL } else { Days::parse(days).unwrap() };
        Windows::new(vec![(Window { hours: DailyHours::parse(hours).unwrap(), days, except: [].into() }, kyiv())])
    }

    fn limits(windows: Windows, end: Option<RunDeadline>) -> RunLimits<'static> {
        RunLimits {
            groups: vec![MessageGroup { windows, messages: 100 }],
            rate: Some(1.0),
            per_day: None,
            sent: SentByDay::new(),
            end,
        }
    }

    fn schedule(timing: Timing) -> Schedule {
        Schedule { timing, zone: kyiv(), ends: None, grace: HOUR, wait_for_file: None }
    }

    /// A local time in Kyiv.
    fn kyiv_at(text: &str) -> Timestamp {
        text.parse::<jiff::civil::DateTime>().unwrap().to_zoned(kyiv()).unwrap().timestamp()
    }

    /// The forecasts of the next occurrences: `s` for sends, `n` for sends no messages, `b` for busy.
    fn format_forecasts(limits: &RunLimits<'_>, schedule: &Schedule, after: &str) -> String {
        let letter = |run: &ScheduledRun| match run.outlook {
            OccurrenceOutlook::Sends(_) => 's',
            OccurrenceOutlook::SendsNothing(_) => 'n',
            OccurrenceOutlook::Busy(_) => 'b',
        };
        limits.forecast_schedule(schedule, kyiv_at(after)).iter().take(14).map(letter).collect()
    }

    #[test]
    fn run_waits_until_its_window_opens() {
        let office = limits(window("09:00-20:00", ""), None);
        let at_night = office.calculate_outlook(kyiv_at("2026-12-01T21:00"));
        assert_eq!((at_night.opens, at_night.first_message_wait()), (Some(kyiv_at("2026-12-02T09:00")), 12 * HOUR));
        assert_eq!(office.calculate_outlook(kyiv_at("2026-12-01T10:00")).first_message_wait(), Duration::ZERO);
        // 100 messages take 100 seconds.
        assert_eq!(at_night.finishes, Some(kyiv_at("2026-12-02T09:01:40")));
    }

    #[test]
    fn run_sends_no_messages_if_no_window_opens_before_its_end() {
        let until = |text| Some(RunDeadline::At(kyiv_at(text)));
        for (hours, days, end, begins, sends) in [
            ("00:00-24:00", "", until("2026-11-30T20:00"), "2026-12-01T10:00", false),
            ("00:00-24:00", "", until("2026-12-01T10:00"), "2026-12-01T10:00", false),
            ("00:00-24:00", "", until("2026-12-01T10:01"), "2026-12-01T10:00", true),
            ("12:00-20:00", "", until("2026-12-01T11:00"), "2026-12-01T10:00", false),
            ("12:00-20:00", "", until("2026-12-01T12:00"), "2026-12-01T10:00", false),
            ("12:00-20:00", "", until("2026-12-01T12:01"), "2026-12-01T10:00", true),
            // 2026-12-06 is a Sunday.
            ("09:00-20:00", "mon-fri", Some(RunDeadline::After(12 * HOUR)), "2026-12-06T10:00", false),
            ("09:00-20:00", "mon-fri", Some(RunDeadline::After(24 * HOUR)), "2026-12-06T10:00", true),
            ("09:00-20:00", "mon-fri", None, "2026-12-06T10:00", true),
        ] {
            let outlook = limits(window(hours, days), end).calculate_outlook(kyiv_at(begins));
            assert_eq!(outlook.can_send(), sends, "{hours} {days} {end:?} {begins}");
            assert!(sends || outlook.unsent == 100, "{outlook:?}");
        }
    }

    #[test]
    fn unsent_messages_depend_on_rate_daily_limit_and_deadline() {
        let end = |seconds| Some(RunDeadline::After(Duration::from_secs(seconds)));
        let begins = kyiv_at("2026-12-01T10:00");
        for (seconds, unsent) in [(30, 70), (99, 1), (100, 0), (86_400, 0)] {
            let outlook = limits(Windows::default(), end(seconds)).calculate_outlook(begins);
            assert_eq!(outlook.unsent, unsent, "{seconds}");
        }
        let per_day = DailyLimits::new(vec![20], kyiv()).unwrap();
        let slow = RunLimits { per_day: Some(&per_day), ..limits(Windows::default(), end(3 * 86_400)) };
        // The run ends at 10:00 on the fourth day, so it has four days of twenty messages.
        assert_eq!(slow.calculate_outlook(begins).unsent, 20);
        let endless = RunLimits { per_day: Some(&per_day), ..limits(Windows::default(), None) };
        assert_eq!(endless.calculate_outlook(begins).finishes, Some(kyiv_at("2026-12-05T00:00:20")));
    }

    #[test]
    fn groups_share_the_rate_and_keep_their_own_windows() {
        let zoned = |zone: &str, messages| {
            let hours = DailyHours::parse("09:00-20:00").unwrap();
            let window = Window { hours, days: Days::ALL, except: [].into() };
            MessageGroup { windows: Windows::new(vec![(window, TimeZone::get(zone).unwrap())]), messages }
        };
        let groups = vec![zoned("Europe/Kyiv", 60), zoned("America/New_York", 40)];
        let run = |end| RunLimits { groups: groups.clone(), ..limits(Windows::default(), end) };
        let begins = kyiv_at("2026-12-01T10:00");
        // In New York it is 3:00; the window there opens at 16:00 Kyiv time.
        let short = run(Some(RunDeadline::After(2 * HOUR))).calculate_outlook(begins);
        assert_eq!((short.opens, short.unsent, short.can_send()), (Some(begins), 40, true));
        let long = run(Some(RunDeadline::After(9 * HOUR))).calculate_outlook(begins);
        assert_eq!((long.unsent, long.finishes), (0, Some(kyiv_at("2026-12-01T16:00:40"))));
        // The groups share the rate, so 100 messages take 100 seconds.
        let shared = run(Some(RunDeadline::After(Duration::from_secs(70)))).calculate_outlook(begins);
        assert_eq!(shared.unsent, 40);
    }

    #[test]
    fn occurrence_forecasts_do_not_depend_on_the_current_time() {
        let daily = schedule(Timing::parse_every("day 10:00").unwrap());
        let mut office = limits(window("09:00-20:00", "mon-fri"), Some(RunDeadline::After(12 * HOUR)));
        for after in ["2026-12-01T02:00", "2026-12-01T09:59"] {
            assert_eq!(format_forecasts(&office, &daily, after), "ssssnnsssssnns", "{after}");
        }
        // Without a deadline, Saturday's run waits until Monday 9:00 and finishes before Monday's occurrence.
        office.end = None;
        assert_eq!(format_forecasts(&office, &daily, "2026-12-01T02:00"), "sssssbssssssbs");
        let sundays = schedule(Timing::parse_every("sun 10:00").unwrap());
        office.end = Some(RunDeadline::After(12 * HOUR));
        assert_eq!(format_forecasts(&office, &sundays, "2026-12-01T02:00"), "nnnnnnnnnnnnnn");
        office.end = Some(RunDeadline::At(kyiv_at("2026-12-03T20:00")));
        assert_eq!(format_forecasts(&office, &daily, "2026-12-01T02:00"), "sssnnnnnnnnnnn");
    }

    #[test]
    fn occurrence_is_busy_while_the_previous_run_is_sending() {
        let per_day = DailyLimits::new(vec![25], kyiv()).unwrap();
        let slow = RunLimits { per_day: Some(&per_day), ..limits(Windows::default(), None) };
        let daily = schedule(Timing::parse_every("day 10:00").unwrap());
        // 100 messages take four days, and the last ones are sent shortly after midnight on the fourth.
        assert_eq!(format_forecasts(&slow, &daily, "2026-12-01T02:00"), "sbbsbbsbbsbbsb");
        let hourly = schedule(Timing::parse_cron("0 * * * *").unwrap());
        let at_night = limits(window("09:00-12:00", ""), None);
        assert_eq!(format_forecasts(&at_night, &hourly, "2026-12-01T09:30"), "sssbbbbbbbbbbb");
    }

    #[test]
    fn occurrence_waits_if_the_previous_run_ends_within_grace() {
        let per_day = DailyLimits::new(vec![25], kyiv()).unwrap();
        let daily = schedule(Timing::parse_every("day 10:00").unwrap());
        let no_grace = Schedule { grace: Duration::ZERO, ..daily.clone() };
        // 100 messages take four days, so each run lasts until its deadline.
        for (hours, schedule, forecasts) in
            [(24, &daily, "ssssssssssssss"), (24, &no_grace, "sbsbsbsbsbsbsb"), (26, &daily, "sbsbsbsbsbsbsb")]
        {
            let end = Some(RunDeadline::After(hours * HOUR));
            let slow = RunLimits { per_day: Some(&per_day), ..limits(Windows::default(), end) };
            assert_eq!(format_forecasts(&slow, schedule, "2026-12-01T02:00"), forecasts, "{hours}");
        }
        let end = Some(RunDeadline::After(24 * HOUR + HOUR / 2));
        let slow = RunLimits { per_day: Some(&per_day), ..limits(Windows::default(), end) };
        let runs = slow.forecast_schedule(&daily, kyiv_at("2026-12-01T02:00"));
        let OccurrenceOutlook::Sends(second) = runs[1].outlook else { panic!("{runs:?}") };
        assert_eq!(second.begins, kyiv_at("2026-12-02T10:30"));
    }

    #[test]
    fn window_in_a_skipped_hour_opens_when_clocks_change() {
        // In Kyiv the clocks go from 3:00 to 4:00 on 2027-03-28, and from 4:00 to 3:00 on 2026-10-25.
        let night = limits(window("03:15-03:45", ""), Some(RunDeadline::After(HOUR)));
        let nightly = schedule(Timing::parse_every("day 3:00").unwrap());
        assert_eq!(format_forecasts(&night, &nightly, "2027-03-26T12:00")[..3], *"sns");
        assert_eq!(format_forecasts(&night, &nightly, "2026-10-23T12:00")[..3], *"sss");
    }

    #[test]
    fn forecast_ends_if_the_window_never_opens() {
        let except = (0..800).map(|day| jiff::civil::date(2026, 1, 1) + day.days()).collect();
        let closed = Window { hours: DailyHours::parse("09:00-20:00").unwrap(), days: Days::ALL, except };
        let never = limits(Windows::new(vec![(closed, kyiv())]), None);
        assert_eq!(
            format_forecasts(&never, &schedule(Timing::parse_every("day 10:00").unwrap()), "2026-02-01T00:00"),
            "n"
        );
    }
}

#[cfg(test)]
mod capacity_tests {
    use std::time::Duration;

    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use crate::calendar::outlook::*;
    use crate::calendar::{DailyHours, Days, Window};

    fn windows(hours: &[&str]) -> Windows {
        let window = |hours: &&str| Window {
            hours: DailyHours::parse(hours).unwrap(),
            days: Days::ALL,
            except: Default::default(),
        };
        Windows::new(hours.iter().map(|hours| (window(hours), TimeZone::UTC)).collect())
    }

    fn at(text: &str) -> Timestamp {
        format!("2026-11-{text}:00Z").parse().unwrap()
    }

    /// The number of `messages` that can be sent between two moments, if none were sent before.
    fn count_sendable(capacity: Capacity<'_>, messages: u64, from: Timestamp, until: Timestamp) -> u64 {
        messages - capacity.simulate_sending(messages, from, until).unsent
    }

    #[test]
    fn sendable_messages_depend_on_rate_window_and_daily_limit() {
        let (always, office) = (windows(&[]), windows(&["09:00-17:00"]));
        let per_day = DailyLimits::new(vec![100, 300], TimeZone::UTC);
        for (rate, windows, days, from, until, expected) in [
            (Some(1.0), &always, None, "23T10:00", "23T10:01", 60),
            (Some(1.0), &always, None, "23T10:00", "23T10:00", 0),
            (Some(1.0), &always, None, "23T10:00", "23T09:00", 0),
            (None, &always, None, "23T10:00", "23T10:01", 100_000),
            (Some(0.5), &office, None, "23T08:00", "23T10:00", 1_800),
            (Some(1.0), &office, None, "23T16:00", "25T09:01", 3_600 + 8 * 3_600 + 60),
            (Some(1.0), &office, None, "23T17:00", "24T09:00", 0),
            (None, &office, None, "23T17:00", "24T09:00", 0),
            (None, &always, per_day.as_ref(), "23T10:00", "23T12:00", 100),
            (None, &always, per_day.as_ref(), "23T10:00", "25T00:01", 700),
            (Some(1.0), &office, per_day.as_ref(), "23T17:00", "24T09:01", 60),
            (Some(1.0), &office, per_day.as_ref(), "23T16:00", "24T10:00", 400),
        ] {
            let capacity = Capacity { rate, windows, per_day: days, sent: &SentByDay::new() };
            let sendable = count_sendable(capacity, 100_000, at(from), at(until));
            assert_eq!(sendable, expected, "{rate:?} {from} {until}");
        }
    }

    proptest! {
        #[test]
        fn sendable_messages_count_only_open_window_time(hours in 0_u32..23, open in 1_u32..20, minutes in 1_i64..5_000) {
            let hours = format!("{:02}:00-{:02}:00", hours, (hours + open) % 24);
            let windows = windows(&[&hours]);
            let (from, until) = (at("23T00:00"), at("23T00:00") + Duration::from_secs(60 * minutes.unsigned_abs()));
            let open = (0..minutes).filter(|minute| windows.are_open(from + Duration::from_secs(60 * minute.unsigned_abs())));
            let capacity = Capacity { rate: Some(1.0), windows: &windows, per_day: None, sent: &SentByDay::new() };
            prop_assert_eq!(count_sendable(capacity, 1_000_000, from, until), 60 * open.count() as u64);
        }
    }
}

#[cfg(test)]
mod daily_limit_tests {
    use crate::calendar::outlook::*;

    fn per_day(counts: &[u32], zone: &str) -> DailyLimits {
        DailyLimits::new(counts.to_vec(), TimeZone::get(zone).unwrap()).unwrap()
    }

    #[test]
    fn daily_limit_grows_and_then_keeps_its_last_value() {
        let growing = per_day(&[1_000, 3_000, 5_000], "Europe/Kyiv");
        assert_eq!([0, 1, 2, 3, 99].map(|days| growing.limit(days)), [1_000, 3_000, 5_000, 5_000, 5_000]);
        assert_eq!(
            [0, 1, 1_000, 1_001, 9_000, 9_001, 19_000]
                .map(|messages| growing.count_days(messages, DailyUsage::default())),
            [0, 1, 1, 2, 3, 4, 5]
        );
        assert_eq!(DailyLimits::new(Vec::new(), TimeZone::UTC), None);
    }

    #[test]
    fn messages_already_sent_count_towards_the_limits() {
        let growing = per_day(&[10, 30, 50], "UTC");
        let now: Timestamp = "2026-11-24T12:00:00Z".parse().unwrap();
        let day = |day: i8| jiff::civil::date(2026, 11, day);
        let always = Windows::default();
        for (sent, messages, days) in [
            (SentByDay::new(), 100, 4),
            ([(day(24), 10)].into(), 100, 3),
            ([(day(24), 4)].into(), 100, 4),
            ([(day(22), 10), (day(23), 0), (day(24), 12)].into(), 18, 1),
            ([(day(22), 10), (day(23), 30), (day(24), 50)].into(), 100, 2),
        ] {
            let used = growing.count_usage(&sent, now);
            assert_eq!(growing.count_days(messages, used), days, "{sent:?}");
            let capacity = Capacity { rate: None, windows: &always, per_day: Some(&growing), sent: &sent };
            let until = "2027-11-24T12:00:00Z".parse().unwrap();
            assert_eq!(capacity.simulate_sending(messages, now, until).days, days, "{sent:?}");
        }
    }

    #[test]
    fn day_boundaries_follow_the_time_zone() {
        for (zone, moment, day, next) in [
            ("Europe/Kyiv", "2026-11-23T21:59:59Z", "2026-11-23", "2026-11-23T22:00:00Z"),
            ("Europe/Kyiv", "2026-11-23T22:00:00Z", "2026-11-24", "2026-11-24T22:00:00Z"),
            ("UTC", "2026-11-23T22:00:00Z", "2026-11-23", "2026-11-24T00:00:00Z"),
            // A day of 25 hours, and a day that starts at one o'clock.
            ("Europe/Kyiv", "2026-10-25T00:00:00Z", "2026-10-25", "2026-10-25T22:00:00Z"),
            ("America/Asuncion", "2023-09-30T12:00:00Z", "2023-09-30", "2023-10-01T04:00:00Z"),
        ] {
            let (days, moment): (_, Timestamp) = (per_day(&[1], zone), moment.parse().unwrap());
            assert_eq!(
                (
                    days.local_date(moment).to_string().as_str(),
                    days.next_day_start(moment).timestamp().to_string().as_str()
                ),
                (day, next),
                "{zone}"
            );
        }
    }
}
