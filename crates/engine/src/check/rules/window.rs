//! Rules about sending hours: windows, `until`, fallbacks that come late or while the window is closed, and marketing
//! at night.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use roaring::RoaringBitmap;

use super::schedule::{find_key_place, find_times_place, format_date, format_dates, sending_runs};
use crate::check::timing::TimedCampaign;
use crate::check::{RunStart, Survey, describe_countries, sum_recipients};
use campaign_core::calendar::{DailyLimits, Outlook, ScheduledRun};
use campaign_core::define_rules;
use campaign_core::domain::{
    FieldValue, MessageContent, NamedTemplate, OperationKind, WirePlace, choose_plural, format_count, format_thousands,
};
use campaign_core::finding::{Finding, rules};
use campaign_manifest::{Campaign, Profile, Rate};

define_rules! {
    CAMPAIGN:
    error CLOSED_WINDOW = "closed-window" {
        cause: "The sending windows never overlap. Messages are sent only while both the campaign's window and the \
                profile's `policy.window` are open.",
        example: [
            "timezone: Europe/Kyiv",
            "delivery: { window: 20:00-22:00 }",
            "gateways.yaml: production: { policy: { window: 09:00-18:00 } }",
        ],
        fix: "correct `delivery.window`; if you widen it, messages are also sent during other hours",
    }
    warning FALLBACK_OUTSIDE = "fallback-outside" {
        cause: "A fallback could be sent outside the window. The gateway tries the next channel when `lifetime` ends, \
                regardless of the time of day.",
        example: ["delivery: { window: 09:00-20:00 }", "channels: [{ viber: { lifetime: 1d, … } }, { sms: { … } }]"],
        fix: "set a `lifetime` that ends before the window closes, even for the last recipients of the run",
    }
    note LATE_FALLBACK = "late-fallback" {
        cause: "The next channel might be tried two days later. Two days is the default lifetime of a channel.",
        example: [
            "channels:",
            "  - viber: { signature: OlenaCo, message: Hi }",
            "  - sms: { signature: OlenaCo, message: Hi }",
        ],
        fix: "add a lifetime to the first channel, for example `lifetime: 1h`",
    }
}

define_rules! {
    TIMING:
    warning LATE_START = "late-start" {
        cause: "Scheduled messages wait for the window to open. The run starts while the window is closed, so the \
                messages are sent hours later.",
        example: ["timezone: Europe/Kyiv", "schedule: { every: \"day 06:00\" }", "delivery: { window: 09:00-20:00 }"],
        fix: "schedule the run for a time when the window is open, or change `delivery.window`",
    }
    warning UNTIL_NEAR = "until-near" {
        cause: "Not all messages can be sent before `until`. The remaining messages are skipped.",
        example: ["timezone: Europe/Kyiv", "delivery: { until: 1h, per_day: 1 }"],
        fix: "start earlier, or send to fewer recipients; you can also set a later `until`, or raise `rate` or \
              `per_day`, but messages are then sent later or faster",
    }
    pub warning NIGHT = "night" {
        cause: "Marketing would reach recipients at night. No window is set, so messages would arrive between 21:00 \
                and 8:00 in the recipients' local time.",
        example: ["timezone: Europe/Kyiv", "schedule: { every: \"day 22:00\" }"],
        fix: "set a window in the recipients' local time: `window: { hours: 09:00-20:00, zone: recipient }`",
    }
    note SEVERAL_ZONES = "several-zones" {
        cause: "A number does not indicate a time zone. The campaign's time zone is used instead.",
        example: [
            "timezone: Europe/Kyiv",
            "delivery: { window: { hours: 09:00-20:00, zone: recipient } }",
            "list.csv: phone,first_name",
            "          +34612345678,Ana",
        ],
        fix: "add a column with time zones to the list, and write its name in `zone: COLUMN`",
    }
}

/// An error if the windows of a campaign and its profile are never open together. Also an error if the profile's window
/// needs a time zone that the campaign does not set.
pub(super) fn check_window(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let (campaign_window, policy) = (campaign.window.as_ref(), profile.window.as_ref());
    let at_window_key = |finding: Finding| match campaign.places.locate_key("delivery.window") {
        Some(place) => finding.at(place),
        None => finding,
    };
    if policy.is_some() && campaign.brief.timezone.is_none() {
        let message = format!("`policy.window` in the profile `{}` needs the campaign's `timezone`", profile.name);
        let finding = Finding::new(&CLOSED_WINDOW, message);
        return Some(finding.help("add the campaign's time zone, for example `timezone: Europe/Kyiv`"));
    }
    if campaign_window.zip(policy).is_some_and(|(campaign_window, policy)| campaign_window.zone != policy.zone) {
        // Whether the two windows are ever open together depends on the time zone of each recipient.
        return None;
    }
    let (windows, began) = campaign.home_windows(Some(profile));
    if windows.next_open_from(began).is_some() {
        return None;
    }
    let names: Vec<String> = campaign.effective_windows(Some(profile)).map(|window| format!("`{window}`")).collect();
    let message = match names.as_slice() {
        [one] => format!("no messages can be sent: the window {one} does not open within a year"),
        all => format!(
            "no messages can be sent: the windows {} are never open at the same time in the next year",
            all.join(" and ")
        ),
    };
    Some(at_window_key(Finding::new(&CLOSED_WINDOW, message).help(
        "correct the hours, days and dates; if you widen the window, messages are also sent during hours that are \
                 currently excluded",
    )))
}

/// The maximum time that messages can wait without a warning.
const TOLERATED_WAIT: Duration = Duration::from_secs(3_600);

/// A warning about dates on which messages wait a long time for the window to open.
pub(in crate::check) fn check_late_start(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let late: Vec<_> =
        sending_runs(runs).filter(|(_, outlook)| outlook.first_message_wait() > TOLERATED_WAIT).collect();
    let (_, first) = late.first()?;
    let dates: Vec<_> = late.iter().map(|(date, _)| *date).collect();
    let wait = format_duration(first.first_message_wait());
    let opens = timed.format_date(first.opens?);
    let message = match dates.as_slice() {
        [_] => {
            format!("the messages scheduled for {} wait {wait} until the window opens at {opens}", format_dates(&dates))
        }
        _ => format!(
            "the messages scheduled for {} wait for the window to open; on the first date, they wait {wait} until \
             {opens}",
            format_dates(&dates)
        ),
    };
    let help = "set `schedule` to a time when the window is open";
    Some(Finding::new(&LATE_START, message).help(help).at(find_times_place(timed)))
}

/// A warning about a run that begins now and cannot send all of its messages before `until`.
pub(in crate::check) fn check_until_near(timed: &TimedCampaign<'_>, outlook: &Outlook) -> Option<Finding> {
    until_near_finding(timed, "", outlook)
}

/// Like [`check_until_near`], but for the runs on the dates of a schedule.
pub(in crate::check) fn check_until_near_on_dates(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let short_runs: Vec<_> = sending_runs(runs).filter(|(_, outlook)| outlook.unsent > 0).collect();
    let (date, outlook) = short_runs.first()?;
    let finding = until_near_finding(timed, &format!(" scheduled for {}", format_date(date)), outlook)?;
    let more = match short_runs.len() - 1 {
        0 => String::new(),
        1 => "; one more date is affected".to_owned(),
        more => format!("; {more} more dates are affected"),
    };
    let message = finding.message.clone() + &more;
    Some(Finding { message, ..finding })
}

fn until_near_finding(timed: &TimedCampaign<'_>, date: &str, outlook: &Outlook) -> Option<Finding> {
    let messages = timed.messages?;
    let (unsent, ends) = (outlook.unsent, outlook.ends.filter(|_| outlook.unsent > 0)?);
    let time = ends.to_zoned(timed.campaign.home_zone()).strftime("%Y-%m-%d %H:%M");
    let sendable = messages.saturating_sub(unsent);
    let all = format_count(messages, "message");
    let message = match sendable {
        0 => format!("none of the {all}{date} can be sent before {time}; all are skipped"),
        sendable => format!(
            "about {} of {all}{date} can be sent before {time}; {} skipped",
            format_thousands(sendable),
            choose_plural(unsent, "the other one is", &format!("the other {} are", format_thousands(unsent)))
        ),
    };
    Some(Finding::new(&UNTIL_NEAR, message).at(find_key_place(timed, &["delivery.until"])))
}

/// An error if `until` has already passed, because the run would skip all recipients.
pub fn check_until_passed(campaign: &Campaign, now: Timestamp) -> Option<Finding> {
    let until = campaign.deadline().filter(|until| *until <= now)?;
    let time = until.to_zoned(campaign.home_zone()).strftime("%Y-%m-%d %H:%M").to_string();
    let finding = Finding::new(&rules::UNTIL, format!("`until` has passed: {time}"));
    Some(finding.help("write a later date or a longer duration").at(campaign.places.locate_key("delivery.until")))
}

/// The lifetime of a channel without `lifetime`, in seconds.
const DEFAULT_LIFETIME_SECONDS: u64 = 2 * 86_400;

/// A warning if the last channel of the campaign or a variant might be tried while the window is closed.
pub(super) fn check_fallback_window(
    campaign: &Campaign,
    profile: Option<&Profile>,
    messages: u64,
    due: Option<Timestamp>,
) -> Option<Finding> {
    campaign.effective_windows(profile).next()?;
    let variant_contents = campaign.brief.variants.iter();
    let variant_contents =
        variant_contents.filter_map(|variant| Some((format!("variants.{}.", variant.name), variant.content.as_ref()?)));
    let all = std::iter::once((String::new(), &campaign.brief.content)).chain(variant_contents);
    all.into_iter()
        .find_map(|(path, content)| check_fallback_channels(campaign, profile, messages, due, &path, content))
}

/// A warning if the channels below the key prefix `path` have lifetimes so long that the last channel might be tried
/// while the window is closed.
fn check_fallback_channels(
    campaign: &Campaign,
    profile: Option<&Profile>,
    messages: u64,
    due: Option<Timestamp>,
    path: &str,
    content: &MessageContent<NamedTemplate>,
) -> Option<Finding> {
    if content.kind == OperationKind::Pipeline {
        return None;
    }
    let (windows, began) = campaign.home_windows(profile);
    let opens = windows.next_open_from(due.unwrap_or(began))?;
    let open_time = Duration::try_from(windows.next_closed_from(opens)?.duration_since(opens)).ok()?;
    let (_, earlier_stages) = content.stages.split_last()?;
    let lifetimes: Vec<(usize, u64)> = earlier_stages
        .iter()
        .enumerate()
        .filter_map(|(index, stage)| {
            let field = stage.channel().facts().fields.iter().find(|field| field.key == "lifetime")?;
            if matches!(field.place_in(content.kind), WirePlace::Nowhere(_)) {
                return None;
            }
            let lifetime = stage.values().find_map(|(field, value)| match value {
                FieldValue::Number(seconds) if field.key == "lifetime" => Some(u64::from(seconds)),
                _ => None,
            });
            Some((index, lifetime.unwrap_or(DEFAULT_LIFETIME_SECONDS)))
        })
        .collect();
    let (first, _) = *lifetimes.first()?;
    let per_second = campaign.delivery.rate.or(profile.map(|profile| profile.rate)).and_then(Rate::per_second);
    let sending_time = Duration::from_secs_f64(per_second.map_or(0.0, |rate| messages as f64 / rate));
    let total_lifetime = Duration::from_secs(lifetimes.iter().map(|(_, seconds)| seconds).sum());
    if sending_time + total_lifetime <= open_time {
        return None;
    }
    let (channel, last) = (content.stages[first].channel(), content.stages.last()?.channel());
    let message = format!(
        "if `{channel}` fails, `{last}` might be sent after the window closes: the window is open for {}{}, but the \
            channels before `{last}` are tried for up to {}",
        format_duration(open_time),
        if due.is_some() { " from the next scheduled date" } else { "" },
        format_duration(total_lifetime)
    );
    let max_lifetime = open_time.saturating_sub(sending_time).as_secs() / lifetimes.len() as u64;
    let finding = Finding::new(&FALLBACK_OUTSIDE, message)
        .at(campaign.places.locate_key(&format!("{path}channels[{first}].{channel}")));
    Some(match max_lifetime {
        0..60 => finding.help(
            "widen the window or send to fewer recipients: sending takes the whole window, so no `lifetime` is short \
             enough",
        ),
        max_lifetime => {
            let begins = if due.is_some() { "" } else { "; this is enough if the run starts when the window opens" };
            finding.help(format!("write `lifetime: {}` or less{begins}", format_lifetime(max_lifetime)))
        }
    })
}

/// Formats a duration in hours and minutes: `11 h 30 min`.
fn format_duration(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// Formats the longest lifetime of at most `seconds`, in whole hours or minutes, as written in a campaign file: `11h`.
fn format_lifetime(seconds: u64) -> String {
    if seconds >= 3_600 { format!("{}h", seconds / 3_600) } else { format!("{}m", seconds / 60) }
}

/// A note about the first channel without a lifetime that has a fallback, in the campaign or a variant.
pub(super) fn check_late_fallback(campaign: &Campaign) -> Option<Finding> {
    let variant_contents = campaign.brief.variants.iter();
    let variant_contents =
        variant_contents.filter_map(|variant| Some((format!("variants.{}.", variant.name), variant.content.as_ref()?)));
    let all = std::iter::once((String::new(), &campaign.brief.content)).chain(variant_contents);
    all.into_iter().find_map(|(path, content)| check_channel_lifetimes(campaign, &path, content))
}

/// A note about the first channel below the key prefix `path` that has a fallback, but no lifetime.
fn check_channel_lifetimes(
    campaign: &Campaign,
    path: &str,
    content: &MessageContent<NamedTemplate>,
) -> Option<Finding> {
    if content.kind == OperationKind::Pipeline {
        return None;
    }
    let (_, earlier_stages) = content.stages.split_last()?;
    let (index, channel) = earlier_stages.iter().enumerate().find_map(|(index, stage)| {
        let field = stage.channel().facts().fields.iter().find(|field| field.key == "lifetime")?;
        let is_supported = !matches!(field.place_in(content.kind), WirePlace::Nowhere(_));
        let is_set = stage.values().any(|(field, _)| field.key == "lifetime");
        (is_supported && !is_set).then(|| (index, stage.channel()))
    })?;
    let next = content.stages.get(index + 1)?.channel();
    let message = format!("`{channel}` has no `lifetime`, so {next} might be tried up to two days later");
    let place = campaign.places.locate_key(&format!("{path}channels[{index}].{channel}"));
    Some(
        Finding::new(&LATE_FALLBACK, message)
            .help(format!("add a lifetime to `{channel}`, for example `lifetime: 1h`"))
            .at(place),
    )
}

/// The local hour at which the night begins.
const NIGHT_BEGINS: i8 = 21;
/// The local hour at which the night ends.
const NIGHT_ENDS: i8 = 8;
/// The maximum number of dates of a schedule that are examined.
const MAX_DATES: usize = 60;
/// The maximum number of time zones that a finding names.
const MAX_NAMED: usize = 3;
/// The interval between the moments at which the local time is examined.
const INTERVAL: Duration = Duration::from_secs(15 * 60);
/// The maximum number of moments at which the local time is examined: those of a week.
const MAX_MOMENTS: u32 = 7 * 24 * 4;

/// The recipients of a run in a time zone.
struct ZoneRecipients {
    zone: TimeZone,
    name: String,
    recipients: u64,
}

/// Recipients in a time zone whose message would arrive at night.
#[derive(Debug, PartialEq)]
struct NightRecipients {
    /// The zone's name.
    name: String,
    /// The number of recipients, which is an estimate if only a part of the run is at night.
    recipients: u64,
    /// The first local time at night.
    from: Time,
}

/// A finding about marketing messages that would reach recipients at night because no window is set. The caller turns
/// the finding into a note if a campaign without a schedule is only checked.
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
    let duration = per_second.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(rows.len() as f64 / rate));
    let zones = group_by_zone(campaign, survey, rows);
    // The messages of later days are sent from midnight on.
    let is_split = |begins: Timestamp| {
        let remaining_today =
            |per_day: &DailyLimits| per_day.remaining_today(per_day.count_usage(&survey.sent_by_day, begins));
        campaign.per_day.as_ref().is_some_and(|per_day| rows.len() > remaining_today(per_day))
    };
    let find_night = |begins: Timestamp| {
        let night = find_night_recipients(&zones, begins, duration);
        let midnight = begins.to_zoned(campaign.home_zone()).tomorrow().and_then(|day| day.start_of_day());
        match midnight.ok().filter(|_| is_split(begins) && night.is_empty()) {
            Some(midnight) => find_night_recipients(&zones, midnight.timestamp(), Duration::ZERO),
            None => night,
        }
    };
    let (night, when, more) = match (start, &campaign.schedule) {
        (RunStart::Scheduled(now), Some(schedule)) => {
            let dates = schedule.occurrences_after(now).take(MAX_DATES);
            let mut nights = dates.map(|date| (find_night(date.at), date.at));
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
        // A gateway on this machine sends nothing to real recipients.
        (RunStart::At(_) | RunStart::Scheduled(_), _) if profile.is_loopback() => return None,
        (RunStart::At(now) | RunStart::Scheduled(now), _) => {
            let when = if is_split(now) { "the messages of a run that begins now" } else { "messages sent now" };
            (find_night(now), when.to_owned(), String::new())
        }
    };
    let number = Some(night.iter().map(|zone| zone.recipients).sum()).filter(|number| *number > 0)?;
    let about = if duration > INTERVAL { "about " } else { "" };
    let message = format!(
        "{when} would reach {about}{} between 21:00 and 8:00 in their local time: {}{more}",
        format_count(number, "recipient"),
        describe_night(&night)
    );
    let help = "set `delivery.window`, for example `window: { hours: 09:00-20:00, zone: recipient }`; messages then \
                wait until it opens";
    Some(Finding::new(&NIGHT, message).help(help).at(campaign.places.locate_key("schedule")))
}

/// Groups the recipients by time zone. Recipients whose number does not indicate a time zone are counted in the
/// campaign's time zone, if it is set.
fn group_by_zone(campaign: &Campaign, survey: &Survey, rows: &RoaringBitmap) -> Vec<ZoneRecipients> {
    let by_zone = survey.local_zones.count_by_zone(rows);
    let unknown = rows.len().saturating_sub(by_zone.iter().map(|(_, recipients)| recipients).sum());
    let home = campaign.brief.timezone.as_deref().filter(|_| unknown > 0);
    let mut zones: Vec<ZoneRecipients> = Vec::new();
    for (name, recipients) in by_zone {
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

/// The recipients whose messages would arrive at night if a run begins at `began` and sends evenly for `duration`.
fn find_night_recipients(zones: &[ZoneRecipients], began: Timestamp, duration: Duration) -> Vec<NightRecipients> {
    let moments = (duration.as_secs().div_ceil(INTERVAL.as_secs()) as u32).clamp(1, MAX_MOMENTS);
    let step = duration / moments;
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

/// Describes the number of recipients in each time zone who would get messages at night: `1 000 in Europe/Kyiv at
/// 22:30`.
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

/// A note that the window uses the campaign's time zone for recipients whose number does not indicate a time zone.
pub fn check_campaign_zone_fallback(
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
