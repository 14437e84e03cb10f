//! Sending times of a campaign, given the start of the run and the time zones of recipients, with findings. A time zone
//! comes from a column of the list, or from the country or area code of the number.
//!
//! [`RunLimits`] calculates the outlook of each run. The rules create the findings.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use super::{Survey, rules};
use campaign_core::calendar::{
    InvertedZone, MessageGroup, Occurrence, RunDeadline, RunLimits, Schedule, SentByDay, zone_of_area_code,
    zone_of_country,
};
use campaign_core::domain::{Phone, Region, Row};
use campaign_core::finding::Finding;
use campaign_manifest::{Campaign, Profile, SendingDeadline, SendingWindow};

/// The moment or the schedule at which a run begins, for checks of its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStart {
    /// The run begins at this moment.
    At(Timestamp),
    /// The run begins on the dates of the campaign's schedule after this moment.
    Scheduled(Timestamp),
}

impl RunStart {
    /// The start of a campaign that is checked at `now`: the dates of its schedule or, without a schedule, `now`.
    pub fn for_campaign(campaign: &Campaign, now: Timestamp) -> Self {
        if campaign.schedule.is_some() { Self::Scheduled(now) } else { Self::At(now) }
    }

    /// The time of the check.
    pub fn now(self) -> Timestamp {
        match self {
            Self::At(now) | Self::Scheduled(now) => now,
        }
    }
}

/// A campaign with its profile and the limits of its runs.
pub(super) struct TimedCampaign<'c> {
    pub(super) campaign: &'c Campaign,
    pub(super) limits: RunLimits<'c>,
    /// The windows in words.
    pub(super) windows: Vec<String>,
    /// The number of messages in a run, if its list is known.
    pub(super) messages: Option<u64>,
}

impl<'c> TimedCampaign<'c> {
    /// Combines a campaign with the survey of its list and the number of messages that the run sends. Without a list,
    /// only the windows that apply to every recipient are known.
    pub(super) fn new(campaign: &'c Campaign, profile: Option<&Profile>, list: Option<(&Survey, u64)>) -> Self {
        let end = campaign.until.and_then(|until| match until {
            SendingDeadline::At(_) => campaign.deadline().map(RunDeadline::At),
            SendingDeadline::After(time) => Some(RunDeadline::After(time)),
        });
        let list = list.filter(|(_, messages)| *messages > 0);
        let groups = match list {
            Some((survey, messages)) => group_messages(campaign, profile, &survey.zones, messages),
            None => vec![MessageGroup { windows: campaign.windows_for_all(profile), messages: 1 }],
        };
        let rate = campaign.effective_rate(profile).and_then(|rate| rate.per_second());
        let sent = list.map(|(survey, _)| survey.sent_by_day.clone()).unwrap_or_default();
        let limits = RunLimits { groups, rate, per_day: campaign.per_day.as_ref(), sent, end };
        let windows = campaign.effective_windows(profile).map(SendingWindow::format_short).collect();
        Self { campaign, limits, windows, messages: list.map(|(_, messages)| messages) }
    }

    /// Formats a date and time in the campaign's time zone.
    pub(super) fn format_date(&self, moment: Timestamp) -> String {
        moment.to_zoned(self.campaign.home_zone()).strftime("%a %Y-%m-%d %H:%M").to_string()
    }
}

/// Groups the messages of a run by their sending windows. It is unknown here which of the planned rows a run sends, so
/// rows from the first time zones are assumed.
fn group_messages(
    campaign: &Campaign,
    profile: Option<&Profile>,
    zones: &RecipientZones,
    messages: u64,
) -> Vec<MessageGroup> {
    let mut remaining = messages;
    let zone_groups = zones.clocks.iter().map(|(clocks, rows)| {
        let messages = remaining.min(*rows);
        remaining -= messages;
        let windows = campaign.windows_for_recipient(profile, clocks.phone_zone, clocks.cell_zone.as_deref());
        MessageGroup { windows, messages }
    });
    let groups: Vec<MessageGroup> = zone_groups.filter(|group| group.messages > 0).collect();
    let at_home = || vec![MessageGroup { windows: campaign.windows_for_recipient(profile, None, None), messages }];
    if groups.is_empty() { at_home() } else { groups }
}

/// Counts the days on which a run that starts at `begins` sends `messages` messages, given the daily limit and the
/// windows. `None` if there is no daily limit, or if it allows all messages on one day. If `begins` is `None`, days are
/// counted from the beginning of the campaign's day. If `zones` is empty, all recipients are assumed to be in the
/// campaign's time zone.
pub fn count_sending_days(
    campaign: &Campaign,
    profile: Option<&Profile>,
    zones: &RecipientZones,
    sent: &SentByDay,
    messages: u64,
    begins: Option<Timestamp>,
) -> Option<u64> {
    let per_day = campaign.per_day.as_ref()?;
    let (_, day_start) = campaign.home_windows(profile);
    let begins = begins.unwrap_or(day_start);
    let min_days = per_day.count_days(messages, per_day.count_usage(sent, begins));
    if min_days <= 1 {
        return None;
    }
    let groups = group_messages(campaign, profile, zones, messages);
    let limits =
        RunLimits { groups, sent: sent.clone(), end: None, ..TimedCampaign::new(campaign, profile, None).limits };
    Some(limits.calculate_outlook(begins).days.max(min_days))
}

/// Findings about messages that a run with this start cannot send in time. An error means that the run can never send,
/// a warning that messages are skipped or wait for hours. `list` contains the survey and the number of messages that
/// the run sends.
pub fn check_timing(
    campaign: &Campaign,
    profile: Option<&Profile>,
    list: Option<(&Survey, u64)>,
    start: RunStart,
) -> Vec<Finding> {
    let timed = TimedCampaign::new(campaign, profile, list);
    match (start, &campaign.schedule) {
        (RunStart::Scheduled(now), Some(schedule)) => check_schedule(&timed, schedule, now),
        (RunStart::At(now) | RunStart::Scheduled(now), _) => check_run(&timed, now),
    }
}

/// The error for a run that, if it began now, could not send any message in time. `list` is as in [`check_timing`].
pub fn check_immediate_run(
    campaign: &Campaign,
    profile: Option<&Profile>,
    list: Option<(&Survey, u64)>,
    now: Timestamp,
) -> Option<Finding> {
    let timed = TimedCampaign::new(campaign, profile, list);
    rules::check_until_passed(campaign, now)
        .or_else(|| rules::check_immediate_run(&timed, &timed.limits.calculate_outlook(now)))
}

fn check_run(timed: &TimedCampaign<'_>, now: Timestamp) -> Vec<Finding> {
    if let Some(finding) = rules::check_until_passed(timed.campaign, now) {
        return vec![finding];
    }
    let outlook = timed.limits.calculate_outlook(now);
    let never = rules::check_run(timed, &outlook);
    let near = || rules::check_until_near(timed, &outlook);
    never.or_else(near).into_iter().collect()
}

fn check_schedule(timed: &TimedCampaign<'_>, schedule: &Schedule, now: Timestamp) -> Vec<Finding> {
    let runs = timed.limits.forecast_schedule(schedule, now);
    if runs.is_empty() {
        let past = schedule.timing.single_time().and_then(|time| Occurrence::at_local_time(time, &schedule.zone));
        let never = past.and_then(|past| rules::check_past_run(timed, &past));
        return never.into_iter().chain([rules::schedule_over_finding(timed)]).collect();
    }
    if let Some(never) = rules::check_schedule(timed, &runs) {
        return vec![never];
    }
    let mut findings = rules::check_skipped_occurrences(timed, schedule, now, &runs);
    findings.extend(rules::check_late_start(timed, &runs));
    findings.extend(rules::check_late_list(timed, schedule, &runs));
    findings.extend(rules::check_until_near_on_dates(timed, &runs));
    findings
}

/// The time zone of a phone number: the country's only time zone, or the time zone of the area code after +1. `None` if
/// the number does not indicate a time zone.
pub fn zone_of_number(phone: Phone, country: Option<Region>) -> Option<&'static str> {
    zone_of_country(&country?.to_string()).or_else(|| zone_of_area_code(area_code(phone)?))
}

/// The area code of a number that begins with +1.
fn area_code(phone: Phone) -> Option<u16> {
    // After +1, the number has ten digits, and the first three of them are the area code.
    let digits = phone.to_u64();
    (digits / 10_000_000_000 == 1).then_some((digits / 10_000_000 % 1_000) as u16)
}

/// The planned rows by the time zone that their number indicates.
#[derive(Clone, Debug, Default)]
pub struct LocalZones {
    rows: BTreeMap<&'static str, RoaringBitmap>,
    /// The zones of countries and area codes that were looked up.
    cache: FxHashMap<(Option<Region>, Option<u16>), Option<&'static str>>,
}

impl LocalZones {
    /// Adds a row to the time zone that its phone number indicates. Returns this time zone.
    pub(super) fn add_row(&mut self, row: Row, phone: Phone, country: Option<Region>) -> Option<&'static str> {
        let cached = self.cache.entry((country, area_code(phone)));
        let zone = *cached.or_insert_with(|| zone_of_number(phone, country));
        if let Some(zone) = zone {
            self.rows.entry(zone).or_default().insert(row.get());
        }
        zone
    }

    /// All rows whose phone number indicates a time zone.
    pub fn rows_with_zone(&self) -> RoaringBitmap {
        self.rows.values().fold(RoaringBitmap::new(), |all, rows| all | rows)
    }

    /// The number of `rows` in each time zone, highest count first.
    pub fn count_by_zone(&self, rows: &RoaringBitmap) -> Vec<(&'static str, u64)> {
        let mut zones: Vec<_> =
            self.rows.iter().map(|(zone, zone_rows)| (*zone, zone_rows.intersection_len(rows))).collect();
        zones.retain(|(_, rows)| *rows > 0);
        zones.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
        zones
    }
}

/// The maximum number of example cells that are kept.
const MAX_EXAMPLES: usize = 3;

/// The time zones of recipients: rows by zone, and rows with suspicious zones.
#[derive(Clone, Debug, Default)]
pub struct RecipientZones {
    /// The number of planned rows by time zone. Empty if all of them use the campaign's time zone.
    pub clocks: BTreeMap<RowClocks, u64>,
    /// The rows without a valid zone.
    pub unknown: RoaringBitmap,
    /// Examples of cells without a valid zone.
    pub examples: BTreeSet<String>,
    /// The rows of each zone whose name has an inverted sign, such as `Etc/GMT-2` for UTC+2.
    pub inverted: BTreeMap<InvertedZone, RoaringBitmap>,
    /// The valid zones, by cell.
    valid_zones: BTreeMap<String, KnownZone>,
}

/// The time zones of a row that a window depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowClocks {
    /// The zone that its number indicates, if any.
    pub phone_zone: Option<&'static str>,
    /// The database name of the zone in its cell. `None` without a valid zone.
    pub cell_zone: Option<String>,
}

/// The zone in a cell.
#[derive(Clone, Debug)]
struct KnownZone {
    /// The name in the database.
    name: String,
    /// The zone that is meant, if the sign in its name is inverted.
    inverted: Option<InvertedZone>,
}

impl RecipientZones {
    /// Counts a row under its two time zones: that of its phone number, and that in its cell.
    pub(super) fn count_row(&mut self, phone_zone: Option<&'static str>, cell: Option<&str>) {
        let cell_zone = cell.and_then(|cell| self.valid_zones.get(cell)).map(|zone| zone.name.clone());
        *self.clocks.entry(RowClocks { phone_zone, cell_zone }).or_default() += 1;
    }

    /// Records a row's cell, and whether its time zone is unknown or inverted.
    pub(super) fn add_cell(&mut self, row: Row, cell: &str) {
        if !self.valid_zones.contains_key(cell) {
            let Ok(zone) = TimeZone::get(cell) else {
                self.unknown.insert(row.get());
                if self.examples.len() < MAX_EXAMPLES {
                    self.examples.insert(cell.to_owned());
                }
                return;
            };
            let name = zone.iana_name().unwrap_or(cell).to_owned();
            self.valid_zones.insert(cell.to_owned(), KnownZone { name, inverted: InvertedZone::from_name(cell) });
        }
        if let Some(KnownZone { inverted: Some(zone), .. }) = self.valid_zones.get(cell) {
            self.inverted.entry(zone.clone()).or_default().insert(row.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_core::domain::find_country;

    #[test]
    fn zones_come_from_the_country_or_area_code_of_each_number() {
        let mut zones = LocalZones::default();
        let numbers =
            [380_501_234_567, 48_501_234_567, 380_671_234_567, 12_025_550_123, 34_612_345_678, 18_765_550_123];
        for (row, number) in (2..).zip(numbers) {
            let phone = Phone::new(number).unwrap();
            zones.add_row(Row::new(row), phone, find_country(phone));
        }
        let count = |rows: std::ops::Range<u32>| zones.count_by_zone(&rows.collect());
        let (kyiv, jamaica) = (("Europe/Kyiv", 2), ("America/Jamaica", 1));
        let warsaw = ("Europe/Warsaw", 1);
        assert_eq!(count(2..9), [kyiv, jamaica, ("America/New_York", 1), warsaw], "Spain has several zones");
        assert_eq!(count(3..4), [warsaw]);
        assert_eq!(zones.rows_with_zone(), [2, 3, 4, 5, 7].into_iter().collect());
    }
}
