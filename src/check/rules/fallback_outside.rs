//! A fallback that follows when the window is closed.

use std::time::Duration;

use jiff::Timestamp;

use crate::domain::{FieldValue, MessageContent, NamedTemplate, OperationKind, WirePlace};
use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::{Campaign, Profile, Rate};

pub(super) static RULE: Rule = Rule::warning(
    "fallback-outside",
    RuleText {
        cause: "A fallback could be sent outside the window. The gateway tries the next channel when `lifetime` ends, \
                whatever the time of day.",
        example: &["delivery: { window: 09:00-20:00 }", "channels: [{ viber: { lifetime: 1d, … } }, { sms: { … } }]"],
        fix: "set a `lifetime` that ends before the window closes, even for the last recipients of the run",
    },
);

/// How long a channel is tried without a lifetime, in seconds.
const DEFAULT_LIFETIME_SECONDS: u64 = 2 * 86_400;

/// Whether the last channel, of the campaign or a variant, may follow when the window that the messages leave in is closed.
pub(super) fn check_fallback_window(
    (campaign, profile): (&Campaign, Option<&Profile>),
    messages: u64,
    due: Option<Timestamp>,
) -> Option<Finding> {
    campaign.effective_windows(profile).next()?;
    let of_variants = campaign.brief.variants.iter();
    let of_variants =
        of_variants.filter_map(|variant| Some((format!("variants.{}.", variant.name), variant.content.as_ref()?)));
    let all = std::iter::once((String::new(), &campaign.brief.content)).chain(of_variants);
    all.into_iter().find_map(|(path, content)| check_channels((campaign, profile), (messages, due), (&path, content)))
}

/// The same of the channels that stand under a path of keys.
fn check_channels(
    (campaign, profile): (&Campaign, Option<&Profile>),
    (messages, due): (u64, Option<Timestamp>),
    (path, content): (&str, &MessageContent<NamedTemplate>),
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
            let said = stage.values().find_map(|(field, value)| match value {
                FieldValue::Number(seconds) if field.key == "lifetime" => Some(u64::from(seconds)),
                _ => None,
            });
            Some((index, said.unwrap_or(DEFAULT_LIFETIME_SECONDS)))
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
    let finding =
        Finding::new(&RULE, message).at(campaign.places.locate_key(&format!("{path}channels[{first}].{channel}")));
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

/// A time as it is read: `11 h 30 min`.
fn format_duration(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// The longest lifetime within so many seconds as it is written: `11h`.
fn format_lifetime(seconds: u64) -> String {
    if seconds >= 3_600 { format!("{}h", seconds / 3_600) } else { format!("{}m", seconds / 60) }
}
