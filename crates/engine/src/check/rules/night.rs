//! Rules about the local time of recipients: marketing at night, and windows that use the campaign's time zone instead
//! of the recipient's.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use roaring::RoaringBitmap;

use crate::check::{RunStart, Survey, describe_countries, sum_recipients};
use campaign_core::domain::{format_count, format_thousands};
use campaign_core::finding::{Finding, Rule, RuleText};
use campaign_manifest::{Campaign, Profile};

/// The rule about marketing at night.
pub static NIGHT: Rule = Rule::warning(
    "night",
    RuleText {
        cause: "Marketing would reach recipients at night. No window is set, so messages would arrive \
                between 21:00 and 8:00 in the recipients' local time.",
        example: &["timezone: Europe/Kyiv", "schedule: { every: \"day 22:00\" }"],
        fix: "set a window in the recipients' local time: `window: { hours: 09:00-20:00, zone: recipient }`",
    },
);

/// The local hours at which the night begins and ends.
const NIGHT_BEGINS: i8 = 21;
const NIGHT_ENDS: i8 = 8;
/// How many dates of a schedule are examined.
const MAX_DATES: usize = 60;
/// How many time zones a finding names.
const MAX_NAMED: usize = 3;
/// The interval between two moments at which the local time is examined, and how many there are at most.
const INTERVAL: Duration = Duration::from_secs(15 * 60);
const MAX_MOMENTS: u32 = 7 * 24 * 4;

/// The recipients of a run in a time zone.
struct ZoneRecipients {
    zone: TimeZone,
    name: String,
    recipients: u64,
}

/// Recipients in a time zone whose message comes at night.
#[derive(Debug, PartialEq)]
struct NightRecipients {
    /// The zone's name.
    name: String,
    /// The number of recipients, which is an estimate if only a part of the run is at night.
    recipients: u64,
    /// The first local time at night.
    from: Time,
}

/// A finding about marketing that would reach people at night although no window is set. It is a note for campaigns
/// that are only checked and have no schedule.
#[must_use]
pub fn check_night(
    campaign: &Campaign,
    profile: Option<&Profile>,
    survey: &Survey,
    rows: &RoaringBitmap,
    start: RunStart,
) -> Option<Finding> {
    let has_window = campaign.effective_windows(profile).next().is_some();
    if !campaign.brief.purpose.is_marketing() || has_window || rows.is_empty() {
        return None;
    }
    let profile = profile?;
    let per_second = campaign.effective_rate(Some(profile)).and_then(|rate| rate.per_second());
    let lasts = per_second.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(rows.len() as f64 / rate));
    let zones = group_by_zone(campaign, survey, rows);
    let (night, when, more) = match (start, &campaign.schedule) {
        (RunStart::Scheduled(now), Some(schedule)) => {
            let dates = schedule.occurrences_after(now).take(MAX_DATES);
            let mut nights = dates.map(|date| (find_night_recipients(&zones, date.at, lasts), date.at));
            let (night, at) = nights.find(|(night, _)| !night.is_empty())?;
            let others = nights.filter(|(night, _)| !night.is_empty()).count();
            let at = at.to_zoned(campaign.home_zone()).strftime("%a %Y-%m-%d %H:%M").to_string();
            let more = match others {
                0 => String::new(),
                1 => "; one more date is affected".to_owned(),
                others => format!("; {others} more dates are affected"),
            };
            (night, format!("the messages scheduled for {at}"), more)
        }
        // A gateway on this machine has no real recipients.
        (RunStart::At(_) | RunStart::Scheduled(_), _) if profile.is_loopback() => return None,
        (RunStart::At(now) | RunStart::Scheduled(now), _) => {
            (find_night_recipients(&zones, now, lasts), "messages sent now".to_owned(), String::new())
        }
    };
    let number = Some(night.iter().map(|zone| zone.recipients).sum()).filter(|number| *number > 0)?;
    let about = if lasts > INTERVAL { "about " } else { "" };
    let message = format!(
        "{when} would reach {about}{} between 21:00 and 8:00 in their local time: {}{more}",
        format_count(number, "recipient"),
        describe_night(&night)
    );
    let help = "set `delivery.window`, for example `window: { hours: 09:00-20:00, zone: recipient }`; messages then \
                wait until it opens";
    Some(Finding::new(&NIGHT, message).help(help).at(campaign.places.locate_key("schedule")))
}

/// The recipients by time zone. Those whose number does not show it have the campaign's time zone, if it has one.
fn group_by_zone(campaign: &Campaign, survey: &Survey, rows: &RoaringBitmap) -> Vec<ZoneRecipients> {
    let mut named = survey.local_zones.count_by_zone(rows);
    let unknown = rows.len().saturating_sub(named.iter().map(|(_, recipients)| recipients).sum());
    let home = campaign.brief.timezone.as_deref().filter(|_| unknown > 0);
    let mut zones: Vec<ZoneRecipients> = Vec::new();
    for (name, recipients) in named.drain(..) {
        let Ok(zone) = TimeZone::get(name) else { continue };
        zones.push(ZoneRecipients { zone, name: name.to_owned(), recipients });
    }
    if let Some(home) = home {
        match zones.iter_mut().find(|zone| zone.name == home) {
            Some(zone) => zone.recipients += unknown,
            None => {
                let zone = campaign.home_zone();
                zones.push(ZoneRecipients { zone, name: home.to_owned(), recipients: unknown });
            }
        }
    }
    zones
}

/// The recipients whose messages would arrive at night if a run begins at `began` and sends evenly for `lasts`.
fn find_night_recipients(zones: &[ZoneRecipients], began: Timestamp, lasts: Duration) -> Vec<NightRecipients> {
    let moments = (lasts.as_secs().div_ceil(INTERVAL.as_secs()) as u32).clamp(1, MAX_MOMENTS);
    let step = lasts / moments;
    let mut night = Vec::new();
    for ZoneRecipients { zone, name, recipients } in zones {
        let local = |moment: u32| began.checked_add(step * moment).ok().map(|at| zone.to_datetime(at).time());
        let times: Vec<Time> = (0..moments).filter_map(local).filter(|time| is_night(*time)).collect();
        let Some(from) = times.first() else { continue };
        let share = recipients * times.len() as u64 / u64::from(moments);
        night.push(NightRecipients { name: name.clone(), recipients: share.max(1), from: *from });
    }
    night.sort_by_key(|zone| std::cmp::Reverse(zone.recipients));
    night
}

fn is_night(time: Time) -> bool {
    time.hour() >= NIGHT_BEGINS || time.hour() < NIGHT_ENDS
}

/// Describes the time zones: `1 000 in Europe/Kyiv at 22:30`.
fn describe_night(night: &[NightRecipients]) -> String {
    let (named, others) = night.split_at(night.len().min(MAX_NAMED));
    let describe = |zone: &NightRecipients| {
        format!("{} in {} at {}", format_thousands(zone.recipients), zone.name, zone.from.strftime("%H:%M"))
    };
    let mut parts: Vec<String> = named.iter().map(describe).collect();
    if !others.is_empty() {
        let recipients = others.iter().map(|zone| zone.recipients).sum();
        parts.push(format!("{} in other time zones", format_thousands(recipients)));
    }
    parts.join(", ")
}

pub(super) static SEVERAL_ZONES: Rule = Rule::note(
    "several-zones",
    RuleText {
        cause: "A number does not indicate a time zone. The campaign's time zone is used instead.",
        example: &[
            "timezone: Europe/Kyiv",
            "delivery: { window: { hours: 09:00-20:00, zone: recipient } }",
            "list.csv: phone,first_name",
            "          +34612345678,Ana",
        ],
        fix: "add a column with time zones to the list, and write its name in `zone: COLUMN`",
    },
);

/// A note about recipients whose number does not show a time zone, so that their window follows the campaign's clock.
#[must_use]
pub fn check_several_zones(
    campaign: &Campaign,
    profile: Option<&Profile>,
    survey: &Survey,
    rows: &RoaringBitmap,
) -> Option<Finding> {
    if !campaign.uses_recipient_zones(profile) {
        return None;
    }
    let counts = survey.countries.count_rows(&(rows - survey.local_zones.rows_with_zone()), |_| true);
    let number = Some(sum_recipients(&counts)).filter(|number| *number > 0)?;
    let clock = campaign.brief.timezone.as_deref().map_or_else(String::new, |zone| format!(" ({zone})"));
    let message = format!(
        "the window uses the campaign's time zone{clock} for {} whose number does not indicate a time zone: {}",
        format_count(number, "recipient"),
        describe_countries(&counts)
    );
    let help = "to use the recipients' local time, add a column with time zones to the list and write `zone: COLUMN`";
    let place = campaign.places.locate_key("delivery.window.zone");
    Some(Finding::new(&SEVERAL_ZONES, message).help(help).at(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str, recipients: u64) -> ZoneRecipients {
        ZoneRecipients { zone: TimeZone::get(name).unwrap(), name: name.to_owned(), recipients }
    }

    #[test]
    fn night_sending_is_checked_in_each_zone_for_the_whole_run() {
        let zones = [zone("Europe/Kyiv", 1_000), zone("Europe/London", 200)];
        let text = |began: &str, hours: u64| {
            describe_night(&find_night_recipients(&zones, began.parse().unwrap(), Duration::from_hours(hours)))
        };
        assert_eq!(text("2026-11-26T12:00:00Z", 0), "");
        assert_eq!(text("2026-11-26T18:59:00Z", 0), "", "20:59 in Kyiv");
        assert_eq!(text("2026-11-26T19:00:00Z", 0), "1 000 in Europe/Kyiv at 21:00");
        assert_eq!(text("2026-11-26T22:30:00Z", 0), "1 000 in Europe/Kyiv at 00:30, 200 in Europe/London at 22:30");
        assert_eq!(text("2026-11-26T06:00:00Z", 0), "200 in Europe/London at 06:00", "8:00 in Kyiv");
        assert_eq!(text("2026-11-26T17:00:00Z", 4), "500 in Europe/Kyiv at 21:00", "the second half of the run");
    }
}
