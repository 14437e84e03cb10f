//! The facts of a question before messages are sent: recipients, channels, cost, duration, local time and samples.

use std::time::Duration;

use jiff::{Timestamp, Zoned};
use roaring::RoaringBitmap;

use super::sample::sample_lines;
use crate::check::online::Cost;
use crate::check::{RunStart, Survey};
use crate::cli::forecast::unknown_cost;
use crate::cli::question::Question;
use crate::cli::run::variants;
use crate::cli::suggested::file;
use crate::cli::text::{Meaning, Span, caution, dim, plain, strong};
use crate::domain::{Stage, one_or};
use crate::finding::{Severity, one_line, severity_word};
use crate::gateway::Balance;
use crate::ledger::State;
use crate::manifest::{Campaign, OnInDoubt, Profile, Rate, Recipients};
use crate::report::{duration, plural, thousands};
use crate::runs::{Inputs, ListSurvey, Sample};

/// The most reasons for skipped recipients that are named.
const REASONS: usize = 5;
/// The most zones whose time is shown.
const ZONES: usize = 3;
/// The hour from which messages are late, and the hour from which they are not.
const EVENING: i8 = 20;
const NIGHT: i8 = 22;
const MORNING: i8 = 8;

/// What is about to be sent of a list.
pub(super) struct Sending<'q> {
    pub(super) inputs: &'q Inputs,
    pub(super) profile: &'q Profile,
    pub(super) survey: &'q ListSurvey,
    /// The rows that this call sends.
    pub(super) rows: &'q RoaringBitmap,
    /// When the run begins. `None` if the findings are shown elsewhere.
    pub(super) start: Option<RunStart>,
    pub(super) balance: Option<&'q Balance>,
    pub(super) samples: &'q [Sample],
}

impl Sending<'_> {
    /// Adds the facts, and the warnings below them.
    pub(super) fn add_to(&self, question: &mut Question) {
        let Self { inputs, profile, survey: surveyed, rows, start, balance, samples } = self;
        let (campaign, survey) = (&inputs.campaign, &surveyed.survey);
        question.add("recipients", self.recipients());
        if let Some(variants) = variants(&campaign.brief, survey, rows) {
            question.add("variants", [variants.into()]);
        }
        question.add("channels", [channels(campaign).into()]);
        if let Some(senders) = senders(campaign) {
            question.add("sender", [senders.into()]);
        }
        let parts = survey.parts_of(rows);
        if parts > rows.len() {
            question.add("length", [plural(parts, "part").into()]);
        }
        add_cost(question, surveyed.cost(inputs, rows).as_ref(), profile.currency.as_deref(), *balance);
        if let Some(duration) = self.duration() {
            question.add("duration", [duration.into()]);
        }
        // A schedule sends at its own time.
        if matches!(start, Some(RunStart::At(_))) {
            add_local_time(question, inputs, survey, rows);
        }
        add_samples(question, samples);
        for finding in start.map(|start| surveyed.warnings_of(inputs, rows, start)).unwrap_or_default() {
            let meaning = if finding.severity == Severity::Note { Meaning::Dim } else { Meaning::Caution };
            question.add_labelled(severity_word(finding.severity), meaning, &finding.message);
        }
    }

    /// How many of the list get a message, and why others do not.
    fn recipients(&self) -> Vec<Span> {
        let (survey, number) = (&self.survey.survey, self.rows.len());
        let mut text =
            format!(" of {} in {}", thousands(survey.recipients), list_name(&self.inputs.campaign.recipients));
        // `check` has the reasons of invalid rows.
        let skipped = survey.left_out.sets().filter(|(state, _, rows)| *state == State::Skipped && !rows.is_empty());
        let mut reasons: Vec<(u64, &str)> = skipped.map(|(_, reason, rows)| (rows.len(), reason)).collect();
        reasons.sort_by_key(|(rows, _)| std::cmp::Reverse(*rows));
        let (named, others) = reasons.split_at(reasons.len().min(REASONS));
        let mut named: Vec<String> =
            named.iter().map(|(rows, reason)| format!("{} {reason}", thousands(*rows))).collect();
        if !others.is_empty() {
            named.push(format!("{} for other reasons", thousands(others.iter().map(|(rows, _)| rows).sum())));
        }
        let invalid = survey.left_out.count(State::Invalid);
        if invalid > 0 {
            named.push(format!("{} invalid", thousands(invalid)));
        }
        if !named.is_empty() {
            text += &format!("; {}", named.join(" · "));
        }
        let rest = survey.planned().saturating_sub(number);
        if rest > 0 {
            text += &format!("; {} more {} planned", thousands(rest), one_or(rest, "remains", "remain"));
        }
        vec![strong(thousands(number)), plain(text)]
    }

    /// How long it takes at least.
    fn duration(&self) -> Option<String> {
        let (campaign, number) = (&self.inputs.campaign, self.rows.len());
        let rate = campaign.delivery.within(self.profile).rate;
        let timed = rate.and_then(|rate| Some((rate, Rate::per_second(rate)?))).map(|(rate, per_second)| {
            let time = Duration::from_secs_f64(number as f64 / per_second);
            let openings = campaign.openings(Some(self.profile), time, None);
            let openings = openings.map(|openings| format!(", over {openings} sending windows"));
            let least = match time.as_secs() {
                0 => "less than 1 s".to_owned(),
                _ => format!("at least {}", duration(time)),
            };
            format!("{least} at {rate}{}", openings.unwrap_or_default())
        });
        let days = campaign.per_day.as_ref().map(|per_day| per_day.days(number)).filter(|days| *days > 1);
        let days = days.map(|days| format!("over {days} days"));
        let all: Vec<String> = timed.into_iter().chain(days).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// A list as a person knows it: a file from the current folder on.
fn list_name(recipients: &Recipients) -> String {
    match recipients {
        Recipients::File(path) => file(path.path()),
        other => other.to_string(),
    }
}

/// The channels in the order in which they are tried; of variants each order once.
fn channels(campaign: &Campaign) -> String {
    let mut orders: Vec<String> = Vec::new();
    for arm in campaign.brief.arms() {
        let channels: Vec<&str> = arm.content.stages.iter().map(|stage| Stage::channel(stage).name()).collect();
        let order = channels.join(", then ");
        if !orders.contains(&order) {
            orders.push(order);
        }
    }
    orders.join("; or ")
}

/// The sender names, each with its channels if there are several. `None` if no channel has one.
fn senders(campaign: &Campaign) -> Option<String> {
    let mut senders: Vec<(&str, Vec<&str>)> = Vec::new();
    for stage in campaign.brief.contents().flat_map(|content| &content.stages) {
        let Some((_, text)) = stage.texts().find(|(field, _)| field.key == "signature") else { continue };
        let (name, channel) = (text.source.as_str(), stage.channel().name());
        let place = senders.iter().position(|(known, _)| *known == name);
        let channels = match place {
            Some(place) => &mut senders[place].1,
            None => {
                senders.push((name, Vec::new()));
                &mut senders.last_mut()?.1
            }
        };
        if !channels.contains(&channel) {
            channels.push(channel);
        }
    }
    match senders.as_slice() {
        [] => None,
        [(name, _)] => Some(one_line(name)),
        several => {
            let named = several.iter().map(|(name, channels)| format!("{} ({})", one_line(name), channels.join(", ")));
            Some(named.collect::<Vec<_>>().join(" · "))
        }
    }
}

/// Adds the most that the messages cost, and the balance that pays for them.
pub(super) fn add_cost(
    question: &mut Question,
    cost: Option<&Cost>,
    currency: Option<&str>,
    balance: Option<&Balance>,
) {
    let money = balance.map(|balance| format!("{} {}", balance.amount, balance.currency).trim_end().to_owned());
    match (cost, money) {
        (Some(Cost::AtMost(cost)), money) => {
            let cost = format!("{cost} {}", currency.unwrap_or_default());
            let of = money.map(|money| format!(" of {money}")).unwrap_or_default();
            question.add("cost", [plain("at most "), strong(cost.trim_end()), plain(of)]);
        }
        (unknown, money) => {
            question.add(
                "cost",
                [match unknown {
                    Some(Cost::Unknown(channels)) => caution(unknown_cost(channels)),
                    _ => caution("unknown: the profile has no `prices`"),
                }],
            );
            if let Some(money) = money {
                question.add("balance", [money.into()]);
            }
        }
    }
}

/// Adds the time on the recipients' clocks; evening and night stand out.
pub(super) fn add_local_time(question: &mut Question, inputs: &Inputs, survey: &Survey, rows: &RoaringBitmap) {
    let mut zones: Vec<(&str, u64)> = survey.local_zones.of(rows);
    if zones.is_empty() {
        zones.extend(inputs.campaign.brief.timezone.as_deref().map(|zone| (zone, rows.len())));
    }
    // Numbers of countries with several zones tell no local time.
    let unknown = rows.len().saturating_sub(zones.iter().map(|(_, recipients)| recipients).sum());
    let now = Timestamp::now();
    let (shown, others) = zones.split_at(zones.len().min(ZONES));
    let mut spans = Vec::new();
    for (zone, recipients) in shown {
        let Ok(local) = now.in_tz(zone) else { continue };
        if !spans.is_empty() {
            spans.push(plain(", "));
        }
        let of = if zones.len() > 1 || unknown > 0 { format!(" ({})", thousands(*recipients)) } else { String::new() };
        let time = format!("{} in {}", local.strftime("%H:%M"), city(zone));
        match part_of_day(&local) {
            Some(part) => spans.push(caution(format!("{time}, {part}{of}"))),
            None => spans.push(plain(format!("{time}{of}"))),
        }
    }
    if !others.is_empty() {
        spans.push(plain(format!(" and {}", plural(others.len() as u64, "other time zone"))));
    }
    if unknown > 0 && !spans.is_empty() {
        spans.push(caution(format!(", unknown for {}", plural(unknown, "recipient"))));
    }
    if !spans.is_empty() {
        question.add("local time", spans);
    }
}

/// The place of a zone: `New York` of `America/New_York`.
fn city(zone: &str) -> String {
    zone.rsplit('/').next().unwrap_or(zone).replace('_', " ")
}

/// Evening or night. `None` during the day.
fn part_of_day(local: &Zoned) -> Option<&'static str> {
    match local.hour() {
        NIGHT.. | ..MORNING => Some("night"),
        EVENING..NIGHT => Some("evening"),
        _ => None,
    }
}

/// Adds samples of the messages, each with its row.
pub(super) fn add_samples(question: &mut Question, samples: &[Sample]) {
    for (index, sample) in samples.iter().enumerate() {
        let label = match (index, samples.len()) {
            (0, 1) => "sample",
            (0, _) => "samples",
            _ => "",
        };
        let variant = sample.variant.as_ref().map(|variant| format!(" · variant {}", one_line(variant)));
        question.add(label, [dim(format!("row {} · +{}{}", sample.row, sample.phone, variant.unwrap_or_default()))]);
        sample_lines(&sample.content).into_iter().for_each(|line| question.push(line));
    }
}

/// Adds the programs, addresses and sources that a campaign uses, and its policy for rows in doubt unless they stay in doubt.
pub(super) fn add_uses(question: &mut Question, inputs: &Inputs, profile: &Profile) {
    let resources = inputs.campaign.resources(Some(profile));
    for (index, resource) in resources.iter().enumerate() {
        question.add(if index == 0 { "uses" } else { "" }, [crate::cli::resources::line(resource).into()]);
    }
    let on_in_doubt = inputs.campaign.delivery.on_in_doubt;
    if on_in_doubt != OnInDoubt::Hold {
        question.add("", [format!("rows in doubt: {}", on_in_doubt.name()).into()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evening_and_night_are_told_from_the_day() {
        let at = |time: &str| part_of_day(&format!("2026-11-26T{time}[Europe/Kyiv]").parse().unwrap());
        for (time, part) in [
            ("07:59", Some("night")),
            ("08:00", None),
            ("19:59", None),
            ("20:00", Some("evening")),
            ("21:59", Some("evening")),
            ("22:00", Some("night")),
            ("00:00", Some("night")),
        ] {
            assert_eq!(at(time), part, "{time}");
        }
        assert_eq!(city("America/Argentina/Buenos_Aires"), "Buenos Aires");
    }
}
