//! The facts of a question before messages are sent: recipients, channels, cost, duration, local time and samples.

use std::time::Duration;

use jiff::{Timestamp, Zoned};
use roaring::RoaringBitmap;

use super::sample::sample_lines;
use crate::check::online::Cost;
use crate::check::{RunStart, Survey};
use crate::cli::forecast::describe_unknown_cost;
use crate::cli::question::ConfirmationPrompt;
use crate::cli::run::describe_variants;
use crate::cli::suggested::shell_path;
use crate::cli::text::{Span, SpanMeaning, caution, dim, plain, strong};
use crate::domain::{Stage, choose_plural};
use crate::finding::{Severity, escape_to_one_line, severity_word};
use crate::gateway::Balance;
use crate::ledger::RowState;
use crate::manifest::{Campaign, InDoubtPolicy, Profile, Rate, RecipientSource};
use crate::report::{format_count, format_duration, format_thousands};
use crate::runs::{Inputs, ListSurvey, Sample};

/// The most reasons for skipped recipients that are named.
const MAX_SKIP_REASONS: usize = 5;
/// The most zones whose time is shown.
const MAX_ZONES: usize = 3;
/// The hour from which messages are late, and the hour from which they are not.
const EVENING_HOUR: i8 = 20;
const NIGHT_HOUR: i8 = 22;
const MORNING_HOUR: i8 = 8;

/// What is about to be sent of a list.
pub(super) struct SendingFacts<'q> {
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

impl SendingFacts<'_> {
    /// Adds the facts, and the warnings below them.
    pub(super) fn add_to(&self, question: &mut ConfirmationPrompt) {
        let Self { inputs, profile, survey: surveyed, rows, start, balance, samples } = self;
        let (campaign, survey) = (&inputs.campaign, &surveyed.survey);
        question.add_fact("recipients", self.recipient_spans());
        if let Some(variants) = describe_variants(&campaign.brief, survey, rows) {
            question.add_fact("variants", [variants.into()]);
        }
        question.add_fact("channels", [channel_orders(campaign).into()]);
        if let Some(senders) = sender_names(campaign) {
            question.add_fact("sender", [senders.into()]);
        }
        let parts = survey.count_parts(rows);
        if parts > rows.len() {
            question.add_fact("length", [format_count(parts, "part").into()]);
        }
        add_cost(question, surveyed.compute_cost(inputs, rows).as_ref(), profile.currency.as_deref(), *balance);
        if let Some(duration) = self.estimate_duration() {
            question.add_fact("duration", [duration.into()]);
        }
        // A schedule sends at its own time.
        if matches!(start, Some(RunStart::At(_))) {
            add_local_time(question, inputs, survey, rows);
        }
        add_samples(question, samples);
        for finding in start.map(|start| surveyed.warnings_for_rows(inputs, rows, start)).unwrap_or_default() {
            let meaning = if finding.severity == Severity::Note { SpanMeaning::Dim } else { SpanMeaning::Caution };
            question.add_labelled(severity_word(finding.severity), meaning, &finding.message);
        }
    }

    /// How many of the list get a message, and why others do not.
    fn recipient_spans(&self) -> Vec<Span> {
        let (survey, number) = (&self.survey.survey, self.rows.len());
        let mut text =
            format!(" of {} in {}", format_thousands(survey.recipients), list_name(&self.inputs.campaign.recipients));
        // `check` has the reasons of invalid rows.
        let skipped = survey.left_out.sets().filter(|(state, _, rows)| *state == RowState::Skipped && !rows.is_empty());
        let mut reasons: Vec<(u64, &str)> = skipped.map(|(_, reason, rows)| (rows.len(), reason)).collect();
        reasons.sort_by_key(|(rows, _)| std::cmp::Reverse(*rows));
        let (named, others) = reasons.split_at(reasons.len().min(MAX_SKIP_REASONS));
        let mut named: Vec<String> =
            named.iter().map(|(rows, reason)| format!("{} {reason}", format_thousands(*rows))).collect();
        if !others.is_empty() {
            named.push(format!("{} for other reasons", format_thousands(others.iter().map(|(rows, _)| rows).sum())));
        }
        let invalid = survey.left_out.count_rows(RowState::Invalid);
        if invalid > 0 {
            named.push(format!("{} invalid", format_thousands(invalid)));
        }
        if !named.is_empty() {
            text += &format!("; {}", named.join(" · "));
        }
        let rest = survey.count_planned().saturating_sub(number);
        if rest > 0 {
            text += &format!("; {} more {} planned", format_thousands(rest), choose_plural(rest, "remains", "remain"));
        }
        vec![strong(format_thousands(number)), plain(text)]
    }

    /// How long it takes at least.
    fn estimate_duration(&self) -> Option<String> {
        let (campaign, number) = (&self.inputs.campaign, self.rows.len());
        let rate = campaign.delivery.limited_by_profile(self.profile).rate;
        let timed = rate.and_then(|rate| Some((rate, Rate::per_second(rate)?))).map(|(rate, per_second)| {
            let time = Duration::from_secs_f64(number as f64 / per_second);
            let openings = campaign.count_openings(Some(self.profile), time, None);
            let openings = openings.map(|openings| format!(", over {openings} sending windows"));
            let least = match time.as_secs() {
                0 => "less than 1 s".to_owned(),
                _ => format!("at least {}", format_duration(time)),
            };
            format!("{least} at {rate}{}", openings.unwrap_or_default())
        });
        let days = campaign.per_day.as_ref().map(|per_day| per_day.count_days(number)).filter(|days| *days > 1);
        let days = days.map(|days| format!("over {days} days"));
        let all: Vec<String> = timed.into_iter().chain(days).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// A list as a person knows it: a file from the current folder on.
fn list_name(recipients: &RecipientSource) -> String {
    match recipients {
        RecipientSource::File(path) => shell_path(path.path()),
        other => other.to_string(),
    }
}

/// The channels in the order in which they are tried; of variants each order once.
fn channel_orders(campaign: &Campaign) -> String {
    let mut orders: Vec<String> = Vec::new();
    for arm in campaign.brief.list_arms() {
        let channels: Vec<&str> = arm.content.stages.iter().map(|stage| Stage::channel(stage).name()).collect();
        let order = channels.join(", then ");
        if !orders.contains(&order) {
            orders.push(order);
        }
    }
    orders.join("; or ")
}

/// The sender names, each with its channels if there are several. `None` if no channel has one.
fn sender_names(campaign: &Campaign) -> Option<String> {
    let mut senders: Vec<(&str, Vec<&str>)> = Vec::new();
    for stage in campaign.brief.all_contents().flat_map(|content| &content.stages) {
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
        [(name, _)] => Some(escape_to_one_line(name)),
        several => {
            let named = several
                .iter()
                .map(|(name, channels)| format!("{} ({})", escape_to_one_line(name), channels.join(", ")));
            Some(named.collect::<Vec<_>>().join(" · "))
        }
    }
}

/// Adds the most that the messages cost, and the balance that pays for them.
pub(super) fn add_cost(
    question: &mut ConfirmationPrompt,
    cost: Option<&Cost>,
    currency: Option<&str>,
    balance: Option<&Balance>,
) {
    let money = balance.map(|balance| format!("{} {}", balance.amount, balance.currency).trim_end().to_owned());
    match (cost, money) {
        (Some(Cost::AtMost(cost)), money) => {
            let cost = format!("{cost} {}", currency.unwrap_or_default());
            let of = money.map(|money| format!(" of {money}")).unwrap_or_default();
            question.add_fact("cost", [plain("at most "), strong(cost.trim_end()), plain(of)]);
        }
        (unknown, money) => {
            question.add_fact(
                "cost",
                [match unknown {
                    Some(Cost::Unknown(channels)) => caution(describe_unknown_cost(channels)),
                    _ => caution("unknown: the profile has no `prices`"),
                }],
            );
            if let Some(money) = money {
                question.add_fact("balance", [money.into()]);
            }
        }
    }
}

/// Adds the time on the recipients' clocks; evening and night stand out.
pub(super) fn add_local_time(
    question: &mut ConfirmationPrompt,
    inputs: &Inputs,
    survey: &Survey,
    rows: &RoaringBitmap,
) {
    let mut zones: Vec<(&str, u64)> = survey.local_zones.count_by_zone(rows);
    if zones.is_empty() {
        zones.extend(inputs.campaign.brief.timezone.as_deref().map(|zone| (zone, rows.len())));
    }
    // Numbers of countries with several zones tell no local time.
    let unknown = rows.len().saturating_sub(zones.iter().map(|(_, recipients)| recipients).sum());
    let now = Timestamp::now();
    let (shown, others) = zones.split_at(zones.len().min(MAX_ZONES));
    let mut spans = Vec::new();
    for (zone, recipients) in shown {
        let Ok(local) = now.in_tz(zone) else { continue };
        if !spans.is_empty() {
            spans.push(plain(", "));
        }
        let of = if zones.len() > 1 || unknown > 0 {
            format!(" ({})", format_thousands(*recipients))
        } else {
            String::new()
        };
        let time = format!("{} in {}", local.strftime("%H:%M"), zone_city(zone));
        match part_of_day(&local) {
            Some(part) => spans.push(caution(format!("{time}, {part}{of}"))),
            None => spans.push(plain(format!("{time}{of}"))),
        }
    }
    if !others.is_empty() {
        spans.push(plain(format!(" and {}", format_count(others.len() as u64, "other time zone"))));
    }
    if unknown > 0 && !spans.is_empty() {
        spans.push(caution(format!(", unknown for {}", format_count(unknown, "recipient"))));
    }
    if !spans.is_empty() {
        question.add_fact("local time", spans);
    }
}

/// The place of a zone: `New York` of `America/New_York`.
fn zone_city(zone: &str) -> String {
    zone.rsplit('/').next().unwrap_or(zone).replace('_', " ")
}

/// Evening or night. `None` during the day.
fn part_of_day(local: &Zoned) -> Option<&'static str> {
    match local.hour() {
        NIGHT_HOUR.. | ..MORNING_HOUR => Some("night"),
        EVENING_HOUR..NIGHT_HOUR => Some("evening"),
        _ => None,
    }
}

/// Adds samples of the messages, each with its row.
pub(super) fn add_samples(question: &mut ConfirmationPrompt, samples: &[Sample]) {
    for (index, sample) in samples.iter().enumerate() {
        let label = match (index, samples.len()) {
            (0, 1) => "sample",
            (0, _) => "samples",
            _ => "",
        };
        let variant = sample.variant.as_ref().map(|variant| format!(" · variant {}", escape_to_one_line(variant)));
        question
            .add_fact(label, [dim(format!("row {} · +{}{}", sample.row, sample.phone, variant.unwrap_or_default()))]);
        sample_lines(&sample.content).into_iter().for_each(|line| question.push_line(line));
    }
}

/// Adds the programs, addresses and sources that a campaign uses, and its policy for rows in doubt unless they stay in doubt.
pub(super) fn add_uses(question: &mut ConfirmationPrompt, inputs: &Inputs, profile: &Profile) {
    let resources = inputs.campaign.list_resources(Some(profile));
    for (index, resource) in resources.iter().enumerate() {
        question.add_fact(
            if index == 0 { "uses" } else { "" },
            [crate::cli::resources::describe_resource(resource).into()],
        );
    }
    let on_in_doubt = inputs.campaign.delivery.on_in_doubt;
    if on_in_doubt != InDoubtPolicy::Hold {
        question.add_fact("", [format!("rows in doubt: {}", on_in_doubt.name()).into()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_day_detects_evening_and_night() {
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
        assert_eq!(zone_city("America/Argentina/Buenos_Aires"), "Buenos Aires");
    }
}
