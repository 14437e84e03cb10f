//! Rules about sending windows, `until`, and fallbacks that come late or while the window is closed.

use std::time::Duration;

use jiff::Timestamp;

use super::schedule::{find_key_place, find_times_place, format_date, format_dates, sending_runs};
use crate::check::timing::TimedCampaign;
use campaign_core::calendar::{Outlook, ScheduledRun};
use campaign_core::domain::{
    FieldValue, MessageContent, NamedTemplate, OperationKind, WirePlace, choose_plural, format_count,
};
use campaign_core::finding::{Finding, Rule, RuleText, rules};
use campaign_manifest::{Campaign, Profile, Rate};

pub(super) static CLOSED_WINDOW: Rule = Rule::error(
    "closed-window",
    RuleText {
        cause: "The sending windows never overlap. Messages are sent only while both the campaign's \
                window and the profile's `policy.window` are open.",
        example: &[
            "timezone: Europe/Kyiv",
            "delivery: { window: 20:00-22:00 }",
            "gateways.yaml: production: { policy: { window: 09:00-18:00 } }",
        ],
        fix: "correct `delivery.window`; if you widen it, messages are also sent during other hours",
    },
);

/// An error if the windows of a campaign and its profile are never open together, or need unknown time zones.
pub(super) fn check_window(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let (own, policy) = (campaign.window.as_ref(), profile.window.as_ref());
    let at_its_key = |finding: Finding| match campaign.places.locate_key("delivery.window") {
        Some(place) => finding.at(place),
        None => finding,
    };
    if policy.is_some() && campaign.brief.timezone.is_none() {
        let message = format!("`policy.window` in the profile `{}` needs the campaign's `timezone`", profile.name);
        let finding = Finding::new(&CLOSED_WINDOW, message);
        return Some(finding.help("add the campaign's time zone, for example `timezone: Europe/Kyiv`"));
    }
    if own.zip(policy).is_some_and(|(own, policy)| own.zone != policy.zone) {
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
    Some(at_its_key(Finding::new(&CLOSED_WINDOW, message).help(
        "correct the hours, days and dates; if you widen the window, messages are also sent during hours that are \
                 currently excluded",
    )))
}

pub(super) static LATE_START: Rule = Rule::warning(
    "late-start",
    RuleText {
        cause: "Scheduled messages wait for the window to open. The run starts while the window is closed, so the \
                messages are sent hours later.",
        example: &["timezone: Europe/Kyiv", "schedule: { every: \"day 06:00\" }", "delivery: { window: 09:00-20:00 }"],
        fix: "schedule the run for a time when the window is open, or change `delivery.window`",
    },
);

/// How long messages can wait without a warning.
const TOLERATED_WAIT: Duration = Duration::from_secs(3_600);

/// A warning about dates on which messages wait for a long time.
pub(in crate::check) fn check_late_start(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let late: Vec<_> =
        sending_runs(runs).filter(|(_, outlook)| outlook.first_message_wait() > TOLERATED_WAIT).collect();
    let (_, first) = late.first()?;
    let dates: Vec<_> = late.iter().map(|(date, _)| *date).collect();
    let wait = format_hours(first.first_message_wait());
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

/// A time in hours and minutes: `11 h 30 min`.
fn format_hours(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    match (minutes / 60, minutes % 60) {
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

pub(super) static UNTIL_NEAR: Rule = Rule::warning(
    "until-near",
    RuleText {
        cause: "Not all messages can be sent before `until`. The remaining messages are skipped.",
        example: &["timezone: Europe/Kyiv", "delivery: { until: 1h, per_day: 1 }"],
        fix: "start earlier, or send to fewer recipients; you can also set a later `until`, or raise `rate` or `per_day`, but messages are then sent later or faster",
    },
);

/// A warning about a run that begins now and cannot send all of its messages before `until`.
pub(in crate::check) fn check_until_near(timed: &TimedCampaign<'_>, outlook: &Outlook) -> Option<Finding> {
    until_near_finding(timed, "", outlook)
}

/// The warning of [`check_until_near`] for the dates of a schedule.
pub(in crate::check) fn check_until_near_on_dates(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let short: Vec<_> = sending_runs(runs).filter(|(_, outlook)| outlook.unsent > 0).collect();
    let (date, outlook) = short.first()?;
    let finding = until_near_finding(timed, &format!(" scheduled for {}", format_date(date)), outlook)?;
    let more = match short.len() - 1 {
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
    let leaving = messages.saturating_sub(unsent);
    let message = format!(
        "about {leaving} of {}{date} can be sent before {time}; {} skipped",
        format_count(messages, "message"),
        choose_plural(unsent, "the other one is", &format!("the other {unsent} are"))
    );
    Some(Finding::new(&UNTIL_NEAR, message).at(find_key_place(timed, &["delivery.until"])))
}

/// An error that `until` is over before the run starts, so that all recipients would be skipped.
#[must_use]
pub fn check_until_over(campaign: &Campaign, now: Timestamp) -> Option<Finding> {
    let until = campaign.deadline().filter(|until| *until <= now)?;
    let time = until.to_zoned(campaign.home_zone()).strftime("%Y-%m-%d %H:%M").to_string();
    let finding = Finding::new(&rules::UNTIL, format!("`until` has passed: {time}"));
    Some(
        finding
            .help("write a later date, or a duration such as `12h`")
            .at(campaign.places.locate_key("delivery.until")),
    )
}

pub(super) static FALLBACK_OUTSIDE: Rule = Rule::warning(
    "fallback-outside",
    RuleText {
        cause: "A fallback could be sent outside the window. The gateway tries the next channel when `lifetime` ends, \
                regardless of the time of day.",
        example: &["delivery: { window: 09:00-20:00 }", "channels: [{ viber: { lifetime: 1d, … } }, { sms: { … } }]"],
        fix: "set a `lifetime` that ends before the window closes, even for the last recipients of the run",
    },
);

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
    let of_variants = campaign.brief.variants.iter();
    let of_variants =
        of_variants.filter_map(|variant| Some((format!("variants.{}.", variant.name), variant.content.as_ref()?)));
    let all = std::iter::once((String::new(), &campaign.brief.content)).chain(of_variants);
    all.into_iter()
        .find_map(|(path, content)| check_fallback_channels(campaign, profile, messages, due, &path, content))
}

/// Checks the channels below a path of keys.
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
    let open = Duration::try_from(windows.next_closed_from(opens)?.duration_since(opens)).ok()?;
    let (_, before) = content.stages.split_last()?;
    let lifetimes: Vec<(usize, u64)> = before
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
    let sending = Duration::from_secs_f64(per_second.map_or(0.0, |rate| messages as f64 / rate));
    let waits = Duration::from_secs(lifetimes.iter().map(|(_, seconds)| seconds).sum());
    if sending + waits <= open {
        return None;
    }
    let (channel, last) = (content.stages[first].channel(), content.stages.last()?.channel());
    let message = format!(
        "if `{channel}` fails, `{last}` might be sent after the window closes: the window is open for {}{}, but the \
            channels before `{last}` are tried for up to {}",
        format_duration(open),
        if due.is_some() { " from the next scheduled date" } else { "" },
        format_duration(waits)
    );
    let fits = open.saturating_sub(sending).as_secs() / lifetimes.len() as u64;
    let finding = Finding::new(&FALLBACK_OUTSIDE, message)
        .at(campaign.places.locate_key(&format!("{path}channels[{first}].{channel}")));
    Some(match fits {
        0..60 => finding.help(
            "widen the window or send to fewer recipients: sending takes the whole window, so no `lifetime` is short \
             enough",
        ),
        fits => {
            let begins = if due.is_some() { "" } else { "; this is enough if the run starts when the window opens" };
            finding.help(format!("write `lifetime: {}` or less{begins}", format_lifetime(fits)))
        }
    })
}

/// A duration for display: `11 h 30 min`.
fn format_duration(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// The longest lifetime within this many seconds, as a campaign file writes it: `11h`.
fn format_lifetime(seconds: u64) -> String {
    if seconds >= 3_600 { format!("{}h", seconds / 3_600) } else { format!("{}m", seconds / 60) }
}

pub(super) static LATE_FALLBACK: Rule = Rule::note(
    "late-fallback",
    RuleText {
        cause: "The next channel might be tried two days later. Two days is the default lifetime of a channel.",
        example: &[
            "channels:",
            "  - viber: { signature: OlenaCo, message: Hi }",
            "  - sms: { signature: OlenaCo, message: Hi }",
        ],
        fix: "add a lifetime to the first channel, for example `lifetime: 1h`",
    },
);

/// A note about the first channel without a lifetime that has a fallback, in the campaign or a variant.
pub(super) fn check_late_fallback(campaign: &Campaign) -> Option<Finding> {
    let of_variants = campaign.brief.variants.iter();
    let of_variants =
        of_variants.filter_map(|variant| Some((format!("variants.{}.", variant.name), variant.content.as_ref()?)));
    let all = std::iter::once((String::new(), &campaign.brief.content)).chain(of_variants);
    all.into_iter().find_map(|(path, content)| check_channel_lifetimes(campaign, &path, content))
}

/// Checks the channels below a path of keys.
fn check_channel_lifetimes(
    campaign: &Campaign,
    path: &str,
    content: &MessageContent<NamedTemplate>,
) -> Option<Finding> {
    if content.kind == OperationKind::Pipeline {
        return None;
    }
    let (_, before) = content.stages.split_last()?;
    let (index, channel) = before.iter().enumerate().find_map(|(index, stage)| {
        let field = stage.channel().facts().fields.iter().find(|field| field.key == "lifetime")?;
        let possible = !matches!(field.place_in(content.kind), WirePlace::Nowhere(_));
        let is_set = stage.values().any(|(field, _)| field.key == "lifetime");
        (possible && !is_set).then(|| (index, stage.channel()))
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
