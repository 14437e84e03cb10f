//! Confirmation of changes that reach a gateway: by `--yes`, or by a prompt with recipients, cost, duration and
//! samples.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, Zoned};
use roaring::RoaringBitmap;

use super::forecast::describe_unknown_cost;
use super::output::Output;
use super::prompt::{ConfirmationPrompt, ExpectedAnswer};
use super::run::describe_variants;
use super::schedule::format_occurrence;
use super::suggested::shell_path;
use super::text::{Span, SpanMeaning, StyledLine, caution, dim, plain, strong};
use campaign_core::domain::{MessageContent, Stage, choose_plural};
use campaign_core::finding::{Severity, escape_to_one_line, severity_word};
use campaign_engine::check::online::Cost;
use campaign_engine::check::{RunStart, Survey, count_sending_days, describe_abroad};
use campaign_engine::delivery::SingleKind;
use campaign_engine::report::{
    describe_sms_size, format_count, format_counts, format_duration, format_local_minute, format_thousands,
};
use campaign_gateway::{Balance, BoxFuture, CreateTemplate, DeleteTemplate, TemplateChannel};
use campaign_ledger::{COUNTRY, RowState};
use campaign_manifest::{Campaign, InDoubtPolicy, NOTIFY_COMMAND, Profile, RecipientSource, Resource};
use campaign_runs::{
    Consent, ConsentRefusal, Inputs, ListSurvey, PlanOptions, PlanReview, Proposal, Sample, ScheduleActivation,
    StandingApproval, TemplateChange, describe_closed_window,
};

/// Returns the source of the confirmation: `--yes`, or else a prompt at the terminal.
pub(super) fn choose_consent(output: &Output, is_confirmed: bool) -> Arc<dyn Consent> {
    if is_confirmed { Arc::new(OptionConsent) } else { Arc::new(TerminalConsent { output: output.clone() }) }
}

/// A confirmation by `--yes`.
struct OptionConsent;

impl Consent for OptionConsent {
    fn can_confirm(&self) -> bool {
        true
    }

    fn ask<'a>(&'a self, _: Proposal<'a>) -> BoxFuture<'a, Result<(), ConsentRefusal>> {
        Box::pin(async { Ok(()) })
    }
}

/// A confirmation at the terminal, if there is one.
struct TerminalConsent {
    output: Output,
}

/// The warning that `--again` repeats messages.
pub(super) const AGAIN_WARNING: &str = "`--again`: recipients who already got this message will get it again";

impl Consent for TerminalConsent {
    fn can_confirm(&self) -> bool {
        self.output.can_ask()
    }

    fn shows_proposals(&self) -> bool {
        self.output.can_ask()
    }

    fn ask<'a>(&'a self, proposal: Proposal<'a>) -> BoxFuture<'a, Result<(), ConsentRefusal>> {
        let prompt = proposal_prompt(&proposal);
        Box::pin(async move {
            if !self.output.can_ask() {
                return Err(ConsentRefusal::NoTerminal);
            }
            match prompt.ask_operator(&self.output).await {
                Ok(true) => Ok(()),
                Ok(false) | Err(_) => Err(ConsentRefusal::Declined),
            }
        })
    }
}

/// The fact about opt-outs if the campaign is mandatory.
const MANDATORY_FACT: &str = "ignored because of `mandatory: true`";

/// Builds the confirmation prompt for a proposal.
fn proposal_prompt(proposal: &Proposal<'_>) -> ConfirmationPrompt {
    match proposal {
        Proposal::Begin { inputs, profile, survey, rows, samples, balance, again } => {
            let title = format!("Send {} {}?", format_count(rows.len(), "message"), gateway_phrase(profile));
            let mut prompt = ConfirmationPrompt::new(title, ExpectedAnswer::Number(rows.len()), "send");
            let start = Some(RunStart::At(Timestamp::now()));
            let sending =
                SendingFacts { inputs, profile, list_survey: survey, rows, start, balance: *balance, samples };
            sending.add_to(&mut prompt);
            if *again {
                prompt.add_note(AGAIN_WARNING);
            }
            prompt
        }
        Proposal::ActivateSchedule { activation, profile, samples } => activation_prompt(activation, profile, samples),
        Proposal::Approve { approving, profile, standing, samples } => {
            approval_prompt(approving, profile, standing.as_ref(), samples)
        }
        Proposal::Resume { run, snapshot, profile, number, cost, balance, rest, is_retry } => {
            let (name, messages, gateway) = (run.name(), format_count(*number, "message"), gateway_phrase(profile));
            let title = match is_retry {
                true => format!("Retry {messages} from {name} {gateway}?"),
                false => format!("Resume {name}: send {messages} {gateway}?"),
            };
            let mut prompt = ConfirmationPrompt::new(title, ExpectedAnswer::Number(*number), "send");
            prompt.add_fact(
                "run",
                [format!("{}: {}", format_count(run.recipients, "row"), format_counts(&snapshot.counts)).into()],
            );
            let planned = snapshot.counts.get(RowState::Planned);
            let rest_of_planned = match *is_retry || *number >= planned {
                true => String::new(),
                false => format!(" of {} planned; the others will not get a message now", format_thousands(planned)),
            };
            prompt.add_fact("recipients", [strong(format_thousands(*number)), rest_of_planned.into()]);
            if run.suppression.ignores_list() {
                prompt.add_fact("opt-outs", [caution(MANDATORY_FACT)]);
            }
            add_cost(&mut prompt, cost.as_ref(), profile.currency.as_deref(), *balance);
            if let Some(rest) = rest {
                add_recipients_abroad(&mut prompt, &rest.inputs.campaign, profile, &rest.survey.survey, &rest.rows);
                add_local_time(&mut prompt, &rest.inputs, &rest.survey.survey, &rest.rows);
                add_samples(&mut prompt, &rest.samples);
            }
            prompt
        }
        Proposal::Single { operation, phones, profile } => {
            let phones: Vec<String> = phones.iter().map(|phone| format!("+{phone}")).collect();
            let (phones, gateway) = (phones.join(", "), gateway_phrase(profile));
            let (verb, action, effect) = match operation {
                SingleKind::Lookup => ("Look up", "look it up", "The subscriber is not notified."),
                SingleKind::CodeCall => ("Call", "call", "The phone will ring."),
                SingleKind::Message => ("Send a message to", "send", "The recipient will get the message."),
                SingleKind::Test => {
                    ("Send a test message to", "send", "The test does not count as a campaign message.")
                }
            };
            ConfirmationPrompt::new(format!("{verb} {phones} {gateway}?"), ExpectedAnswer::Yes, action)
                .with_note(format!("This costs money. {effect}"))
        }
        Proposal::OutsideWindow { opens } => {
            ConfirmationPrompt::new("Send the test messages outside the sending window?", ExpectedAnswer::Yes, "send")
                .with_fact("window", describe_closed_window(*opens))
        }
        Proposal::Pending { gateway, shown } => {
            let title = format!("An assistant wants to use {gateway}. Approve this request?");
            let mut prompt = ConfirmationPrompt::new(title, ExpectedAnswer::Yes, "approve");
            shown.lines().for_each(|line| prompt.add_note(line));
            prompt.with_note("This allows the assistant to make the request once, within the next hour.")
        }
        Proposal::Template { profile, change } => template_prompt(profile, *change),
    }
}

/// The phrase that names the gateway in a title: `through NAME (HOST)`.
fn gateway_phrase(profile: &Profile) -> String {
    format!("through {} ({})", profile.name, profile.base_url.host_and_port())
}

fn activation_prompt(activation: &ScheduleActivation, profile: &Profile, samples: &[Sample]) -> ConfirmationPrompt {
    let (inputs, gateway) = (&activation.inputs, gateway_phrase(profile));
    let name = &inputs.campaign.brief.name;
    let mut prompt = match &activation.survey {
        Some(survey) => {
            let rows = survey.survey.planned_rows();
            let title = format!("Activate {name}: {} per run {gateway}?", format_count(rows.len(), "message"));
            let mut prompt = ConfirmationPrompt::new(title, ExpectedAnswer::Yes, "activate");
            // `schedule add` shows the findings above the prompt.
            let sending =
                SendingFacts { inputs, profile, list_survey: survey, rows: &rows, start: None, balance: None, samples };
            sending.add_to(&mut prompt);
            prompt
        }
        None => ConfirmationPrompt::new(format!("Activate {name} {gateway}?"), ExpectedAnswer::Yes, "activate")
            .with_fact("list", format!("{}, which does not exist yet", inputs.campaign.recipients)),
    };
    add_resources(&mut prompt, inputs, profile);
    for (index, next) in activation.next.iter().enumerate() {
        prompt.add_fact(if index == 0 { "next runs" } else { "" }, [format_occurrence(next).into()]);
    }
    prompt.with_note("Messages are sent on these dates without further confirmation.")
}

fn approval_prompt(
    review: &PlanReview,
    profile: &Profile,
    standing: Option<&StandingApproval>,
    samples: &[Sample],
) -> ConfirmationPrompt {
    let PlanReview { inputs, planned, survey, rows, .. } = review;
    let (name, gateway, now) = (&inputs.campaign.brief.name, gateway_phrase(profile), Timestamp::now());
    let recipients = format_count(planned.messages, "recipient");
    let (title, scope) = match (&planned.options, standing) {
        (PlanOptions { rows: Some(row), tests_to: Some(to), .. }, _) => (
            format!("Approve test messages for {name} {gateway}?"),
            format!("row {row} to {recipients}, once: {}", to.masked.join(", ")),
        ),
        (_, None) => {
            (format!("Approve one run of {name} {gateway}?"), format!("one run of this plan, to at most {recipients}"))
        }
        (_, Some(standing)) => (
            format!("Approve the schedule of {name} {gateway}?"),
            format!(
                "every run until {}, each to at most {} from that day's list",
                format_local_minute(standing.until),
                format_count(standing.up_to, "recipient")
            ),
        ),
    };
    let mut prompt = ConfirmationPrompt::new(title, ExpectedAnswer::Yes, "approve");
    prompt.add_fact("approval", [scope.into()]);
    let start = if standing.is_some() { RunStart::for_campaign(&inputs.campaign, now) } else { RunStart::At(now) };
    let sending =
        SendingFacts { inputs, profile, list_survey: survey, rows, start: Some(start), balance: None, samples };
    sending.add_to(&mut prompt);
    add_resources(&mut prompt, inputs, profile);
    if planned.options.again {
        prompt.add_note(AGAIN_WARNING);
    }
    prompt
}

fn template_prompt(profile: &Profile, change: TemplateChange<'_>) -> ConfirmationPrompt {
    let (verb, channel) = (change.verb(), change.channel());
    let (action, facts) = match change {
        TemplateChange::Create(CreateTemplate { label, text, .. }) => {
            let name = match channel {
                TemplateChannel::Sms => "name",
                TemplateChannel::Viber => "sender",
            };
            ("Create", [(name, Some(label.clone())), ("text", Some(text.clone()))])
        }
        TemplateChange::Delete(DeleteTemplate { id, text, .. }) => {
            ("Delete", [("id", Some(id.to_string())), ("text", text.clone())])
        }
    };
    let title = format!("{action} this {channel} template {}?", gateway_phrase(profile));
    let prompt = ConfirmationPrompt::new(title, ExpectedAnswer::Word(verb), format!("{verb} it"));
    let known = facts.into_iter().filter_map(|(name, value)| Some((name, value?)));
    known.fold(prompt, |prompt, (name, value)| prompt.with_fact(name, value))
}

/// The maximum number of reasons for skipped recipients that a prompt lists.
const MAX_SKIP_REASONS: usize = 5;
/// The maximum number of time zones that a prompt lists.
const MAX_ZONES: usize = 3;
/// The hours at which evening, night and day begin.
const EVENING_HOUR: i8 = 20;
const NIGHT_HOUR: i8 = 21;
const MORNING_HOUR: i8 = 8;

/// The facts about the messages that will be sent.
struct SendingFacts<'q> {
    inputs: &'q Inputs,
    profile: &'q Profile,
    list_survey: &'q ListSurvey,
    /// The rows that this run sends.
    rows: &'q RoaringBitmap,
    /// The time at which the run begins. `None` if the findings are shown elsewhere.
    start: Option<RunStart>,
    balance: Option<&'q Balance>,
    samples: &'q [Sample],
}

impl SendingFacts<'_> {
    /// Adds the facts about a run to a prompt, followed by warnings.
    fn add_to(&self, prompt: &mut ConfirmationPrompt) {
        let Self { inputs, profile, list_survey, rows, start, balance, samples } = self;
        let (campaign, survey) = (&inputs.campaign, &list_survey.survey);
        prompt.add_fact("recipients", self.recipient_spans());
        if let Some(variants) = describe_variants(&campaign.brief, survey, rows) {
            prompt.add_fact("variants", [variants.into()]);
        }
        prompt.add_fact("channels", [channel_orders(campaign).into()]);
        if let Some(senders) = sender_names(campaign) {
            prompt.add_fact("sender", [senders.into()]);
        }
        if campaign.brief.mandatory {
            prompt.add_fact("opt-outs", [caution(MANDATORY_FACT)]);
        }
        add_recipients_abroad(prompt, campaign, profile, survey, rows);
        let parts = survey.count_parts(rows);
        if parts > rows.len() {
            prompt.add_fact("length", [format_count(parts, "part").into()]);
        }
        add_cost(prompt, list_survey.compute_cost(inputs, rows).as_ref(), profile.currency.as_deref(), *balance);
        if let Some(duration) = self.describe_minimum_duration() {
            prompt.add_fact("duration", [duration.into()]);
        }
        // A schedule sends at its own time, so the current local time of recipients is not shown.
        if matches!(start, Some(RunStart::At(_))) {
            add_local_time(prompt, inputs, survey, rows);
        }
        add_samples(prompt, samples);
        for finding in start.map(|start| list_survey.warnings_for_rows(inputs, rows, start)).unwrap_or_default() {
            let meaning = if finding.severity == Severity::Note { SpanMeaning::Dim } else { SpanMeaning::Caution };
            prompt.add_labelled(severity_word(finding.severity), meaning, &finding.message);
        }
    }

    /// Formats the number of recipients who get a message, and the reasons why the others are skipped.
    fn recipient_spans(&self) -> Vec<Span> {
        let (survey, messages) = (&self.list_survey.survey, self.rows.len());
        let mut text =
            format!(" of {} in {}", format_thousands(survey.recipients), list_name(&self.inputs.campaign.recipients));
        // `check` reports why rows are invalid, so only the reasons for skipped rows are listed.
        let skipped = survey.left_out.sets().filter(|(state, _, rows)| *state == RowState::Skipped && !rows.is_empty());
        let mut reasons: Vec<(u64, &str)> = skipped.map(|(_, reason, rows)| (rows.len(), reason)).collect();
        reasons.sort_by_key(|(rows, _)| std::cmp::Reverse(*rows));
        let describe = |reason| if reason == COUNTRY { "in other countries" } else { reason };
        let (main, others) = reasons.split_at(reasons.len().min(MAX_SKIP_REASONS));
        let mut listed: Vec<String> =
            main.iter().map(|(rows, reason)| format!("{} {}", format_thousands(*rows), describe(reason))).collect();
        if !others.is_empty() {
            listed.push(format!("{} for other reasons", format_thousands(others.iter().map(|(rows, _)| rows).sum())));
        }
        let invalid = survey.left_out.count_rows(RowState::Invalid);
        if invalid > 0 {
            listed.push(format!("{} invalid", format_thousands(invalid)));
        }
        if !listed.is_empty() {
            text += &format!("; {}", listed.join(" · "));
        }
        let rest = survey.count_planned().saturating_sub(messages);
        if rest > 0 {
            text += &format!("; {} more {} planned", format_thousands(rest), choose_plural(rest, "remains", "remain"));
        }
        vec![strong(format_thousands(messages)), plain(text)]
    }

    /// Estimates the minimum time that sending takes. Returns `None` if no rate applies and one day is enough.
    fn describe_minimum_duration(&self) -> Option<String> {
        let (campaign, number) = (&self.inputs.campaign, self.rows.len());
        let rate = campaign.delivery.with_profile_limits(self.profile).rate;
        let time_estimate = rate.and_then(|rate| {
            let time = Duration::from_secs_f64(number as f64 / rate.per_second()?);
            let openings = campaign.count_openings(Some(self.profile), time, None);
            let openings = openings.map(|openings| format!(", over {openings} sending windows"));
            let minimum = match time.as_secs() {
                0 => "less than 1 s".to_owned(),
                _ => format!("at least {}", format_duration(time)),
            };
            Some(format!("{minimum} at {rate}{}", openings.unwrap_or_default()))
        });
        let Survey { zones, sent_by_day, .. } = &self.list_survey.survey;
        let days = count_sending_days(campaign, Some(self.profile), zones, sent_by_day, number, None);
        let days = days.map(|days| format!("over {days} days"));
        let estimates: Vec<String> = time_estimate.into_iter().chain(days).collect();
        (!estimates.is_empty()).then(|| estimates.join(", "))
    }
}

/// The name of a list. A file is shown relative to the current folder.
fn list_name(recipients: &RecipientSource) -> String {
    match recipients {
        RecipientSource::File(path) => shell_path(path.path()),
        other => other.to_string(),
    }
}

/// Lists the channels of a campaign in the order in which they are tried. Variants with the same order of channels
/// share an entry.
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

/// Lists the sender names; if there are several, each name is followed by the channels that use it. Returns `None` if
/// no channel has a sender name.
fn sender_names(campaign: &Campaign) -> Option<String> {
    let mut senders: Vec<(&str, Vec<&str>)> = Vec::new();
    for stage in campaign.brief.all_contents().flat_map(|content| &content.stages) {
        let Some((_, text)) = stage.texts().find(|(field, _)| field.key == "signature") else { continue };
        let (name, channel) = (text.source.as_str(), stage.channel().name());
        let index = senders.iter().position(|(sender, _)| *sender == name);
        let channels = match index {
            Some(index) => &mut senders[index].1,
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
            let senders = several
                .iter()
                .map(|(name, channels)| format!("{} ({})", escape_to_one_line(name), channels.join(", ")));
            Some(senders.collect::<Vec<_>>().join(" · "))
        }
    }
}

/// Adds the maximum cost of the messages, and the balance.
fn add_cost(prompt: &mut ConfirmationPrompt, cost: Option<&Cost>, currency: Option<&str>, balance: Option<&Balance>) {
    let money = balance.map(ToString::to_string);
    match (cost, money) {
        (Some(Cost::AtMost(cost)), money) => {
            let cost = format!("{cost} {}", currency.unwrap_or_default());
            let balance_suffix = money.map(|money| format!(" of {money}")).unwrap_or_default();
            prompt.add_fact("cost", [plain("at most "), strong(cost.trim_end()), plain(balance_suffix)]);
        }
        (unknown, money) => {
            prompt.add_fact(
                "cost",
                [match unknown {
                    Some(Cost::Unknown(channels)) => caution(describe_unknown_cost(channels)),
                    _ => caution("unknown: the profile has no `prices`"),
                }],
            );
            if let Some(money) = money {
                prompt.add_fact("balance", [money.into()]);
            }
        }
    }
}

/// Adds the number of recipients outside the home countries of the profile, unless the campaign limits the countries.
fn add_recipients_abroad(
    prompt: &mut ConfirmationPrompt,
    campaign: &Campaign,
    profile: &Profile,
    survey: &Survey,
    rows: &RoaringBitmap,
) {
    let Some(home) = campaign.brief.effective_home(Some(profile)) else { return };
    if let Some(abroad) = describe_abroad(&survey.countries.count_abroad(home, rows), home) {
        prompt.add_fact("abroad", [caution(abroad)]);
    }
}

/// Adds the recipients' local time. Evening and night are highlighted.
fn add_local_time(prompt: &mut ConfirmationPrompt, inputs: &Inputs, survey: &Survey, rows: &RoaringBitmap) {
    let mut zones: Vec<(&str, u64)> = survey.local_zones.count_by_zone(rows);
    if zones.is_empty() {
        zones.extend(inputs.campaign.brief.timezone.as_deref().map(|zone| (zone, rows.len())));
    }
    // The local time of numbers in countries with several zones is unknown.
    let unknown = rows.len().saturating_sub(zones.iter().map(|(_, recipients)| recipients).sum());
    let now = Timestamp::now();
    let (listed, others) = zones.split_at(zones.len().min(MAX_ZONES));
    let mut spans = Vec::new();
    for (zone, recipients) in listed {
        let Ok(local) = now.in_tz(zone) else { continue };
        if !spans.is_empty() {
            spans.push(plain(", "));
        }
        let count = if zones.len() > 1 || unknown > 0 {
            format!(" ({})", format_thousands(*recipients))
        } else {
            String::new()
        };
        let time = format!("{} in {}", local.strftime("%H:%M"), format_zone_city(zone));
        match part_of_day(&local) {
            Some(part) => spans.push(caution(format!("{time}, {part}{count}"))),
            None => spans.push(plain(format!("{time}{count}"))),
        }
    }
    if !others.is_empty() {
        spans.push(plain(format!(" and {}", format_count(others.len() as u64, "other time zone"))));
    }
    if unknown > 0 && !spans.is_empty() {
        spans.push(caution(format!(", unknown for {}", format_count(unknown, "recipient"))));
    }
    if !spans.is_empty() {
        prompt.add_fact("local time", spans);
    }
}

/// The city of a time zone: `New York` for `America/New_York`.
fn format_zone_city(zone: &str) -> String {
    zone.rsplit('/').next().unwrap_or(zone).replace('_', " ")
}

/// The word for the evening or the night. `None` during the day.
fn part_of_day(local: &Zoned) -> Option<&'static str> {
    match local.hour() {
        NIGHT_HOUR.. | ..MORNING_HOUR => Some("night"),
        EVENING_HOUR..NIGHT_HOUR => Some("evening"),
        _ => None,
    }
}

/// Adds samples of the messages, each with its row.
fn add_samples(prompt: &mut ConfirmationPrompt, samples: &[Sample]) {
    for (index, sample) in samples.iter().enumerate() {
        let label = match (index, samples.len()) {
            (0, 1) => "sample",
            (0, _) => "samples",
            _ => "",
        };
        let variant = sample.variant.as_ref().map(|variant| format!(" · variant {}", escape_to_one_line(variant)));
        prompt.add_fact(label, [dim(format!("row {} · +{}{}", sample.row, sample.phone, variant.unwrap_or_default()))]);
        sample_lines(&sample.content).into_iter().for_each(|line| prompt.push_line(line));
    }
}

/// Adds the programs, addresses and sources that a campaign uses, and the policy for rows in doubt if it is not `hold`.
fn add_resources(prompt: &mut ConfirmationPrompt, inputs: &Inputs, profile: &Profile) {
    let resources = inputs.campaign.list_resources(Some(profile));
    for (index, resource) in resources.iter().enumerate() {
        prompt.add_fact(if index == 0 { "uses" } else { "" }, [describe_resource(resource).into()]);
    }
    let on_in_doubt = inputs.campaign.delivery.on_in_doubt;
    if on_in_doubt != InDoubtPolicy::Hold {
        prompt.add_fact("", [format!("rows in doubt: {}", on_in_doubt.name()).into()]);
    }
}

/// The maximum number of lines of a message text that a sample shows.
const MAX_TEXT_LINES: usize = 12;

/// Formats a message, channel by channel, without an indent.
fn sample_lines(content: &MessageContent<Cow<'_, str>>) -> Vec<StyledLine> {
    let names = content.stages.iter().map(|stage| stage.channel().name().len());
    let width = names.max().unwrap_or_default();
    let mut lines = Vec::new();
    for stage in &content.stages {
        let mut name = stage.channel().name();
        let mut add = |spans: Vec<_>| {
            let bar = dim(format!("{name:<width$} │ "));
            lines.push(StyledLine::new([bar].into_iter().chain(spans)).with_hang(width + 3));
            name = "";
        };
        for (field, text) in stage.texts() {
            match field.key {
                "signature" => {}
                "message" => {
                    let text_lines: Vec<&str> = text.split('\n').collect();
                    text_lines.iter().take(MAX_TEXT_LINES).for_each(|line| add(vec![plain(*line)]));
                    if text_lines.len() > MAX_TEXT_LINES {
                        add(vec![dim(format!(
                            "… {} more",
                            format_count((text_lines.len() - MAX_TEXT_LINES) as u64, "line")
                        ))]);
                    }
                }
                key => add(vec![dim(format!("{key} ")), plain(text.to_string())]),
            }
        }
        if let Some(text) = stage.billed_text() {
            add(vec![dim(describe_sms_size(text))]);
        }
    }
    lines
}

/// Describes each resource of a campaign, and the policy for rows in doubt if it is not `hold`.
pub(super) fn describe_resources(resources: &[Resource], on_in_doubt: InDoubtPolicy) -> String {
    let lines = resources.iter().map(|resource| format!("    {}\n", describe_resource(resource)));
    let mut text = format!("  uses:\n{}", lines.collect::<String>());
    if on_in_doubt != InDoubtPolicy::Hold {
        text += &format!("  rows in doubt: {}\n", on_in_doubt.name());
    }
    text
}

/// Describes a resource with its kind and its key.
pub(super) fn describe_resource(resource: &Resource) -> String {
    let Resource { key, shown, .. } = resource;
    let note = if key == NOTIFY_COMMAND { " (not started if an assistant runs the campaign)" } else { "" };
    format!("{} `{key}`: {shown}{note}", resource.resource_kind().kind_name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::StyledText;
    use campaign_core::domain::{ExtraProperties, OperationKind, Sms, Stage};

    #[test]
    fn part_of_day_detects_evening_and_night() {
        let part_at = |time: &str| part_of_day(&format!("2026-11-26T{time}[Europe/Kyiv]").parse().unwrap());
        for (time, part) in [
            ("07:59", Some("night")),
            ("08:00", None),
            ("19:59", None),
            ("20:00", Some("evening")),
            ("20:59", Some("evening")),
            ("21:00", Some("night")),
            ("00:00", Some("night")),
        ] {
            assert_eq!(part_at(time), part, "{time}");
        }
    }

    #[test]
    fn city_is_the_last_part_of_a_time_zone_name() {
        assert_eq!(format_zone_city("America/Argentina/Buenos_Aires"), "Buenos Aires");
    }

    #[test]
    fn sample_shows_the_channel_and_escapes_control_characters() {
        let message: Cow<'_, str> = "Hello\nBye\u{1b}[2J".into();
        let sms = Sms {
            signature: "Shop".into(),
            message,
            lifetime: None,
            short_link: None,
            unsubscribe_link: None,
            max_parts: 1,
            plain: None,
            fields: ExtraProperties::new(),
        };
        let content = MessageContent { kind: OperationKind::Sms, stages: vec![Stage::Sms(sms)] };
        let mut text = StyledText::new();
        sample_lines(&content).into_iter().for_each(|line| text.push(line));
        assert_eq!(
            text.render(None, false),
            "sms │ Hello\n    │ Bye\\u{1b}[2J\n    │ 1 part: 13 of 70 characters (Unicode)\n"
        );
    }
}
