//! The confirmation of a change that reaches a gateway: by `--yes`, or by the operator at the terminal.

mod sample;
mod sending;

use std::sync::Arc;

use jiff::Timestamp;

use super::clock::minute;
use super::output::Output;
use super::question::{ConfirmationPrompt, ExpectedAnswer};
use super::schedule::words::format_occurrence;
use super::text::strong;
use crate::check::RunStart;
use crate::delivery::SingleKind;
use crate::gateway::BoxFuture;
use crate::ledger::RowState;
use crate::manifest::Profile;
use crate::report::{format_count, format_counts, format_thousands};
use crate::runs::{
    Consent, ConsentRefusal, PlanOptions, PlanReview, Proposal, Sample, ScheduleActivation, StandingApproval,
    TemplateChange, describe_closed_window,
};
use sending::{SendingFacts, add_cost, add_local_time, add_samples, add_uses};

/// Who confirms: the operator who passed `--yes`, else the person at the terminal.
pub(super) fn consent_for(output: &Output, agreed: bool) -> Arc<dyn Consent> {
    if agreed { Arc::new(OptionConsent) } else { Arc::new(TerminalConsent { output: output.clone() }) }
}

/// The confirmation that was given with the command.
struct OptionConsent;

impl Consent for OptionConsent {
    fn can_confirm(&self) -> bool {
        true
    }

    fn ask<'a>(&'a self, _: Proposal<'a>) -> BoxFuture<'a, Result<(), ConsentRefusal>> {
        Box::pin(async { Ok(()) })
    }
}

/// The person at the terminal, if there is one.
struct TerminalConsent {
    output: Output,
}

/// The line that says that a new round repeats messages.
pub(super) const AGAIN_WARNING: &str = "`--again`: recipients who already got this message will get it again";

impl Consent for TerminalConsent {
    fn can_confirm(&self) -> bool {
        self.output.can_ask()
    }

    fn shows_proposals(&self) -> bool {
        self.output.can_ask()
    }

    fn ask<'a>(&'a self, proposal: Proposal<'a>) -> BoxFuture<'a, Result<(), ConsentRefusal>> {
        let question = proposal_prompt(&proposal);
        Box::pin(async move {
            if !self.output.can_ask() {
                return Err(ConsentRefusal::NoTerminal);
            }
            match question.ask_operator(&self.output).await {
                Ok(true) => Ok(()),
                Ok(false) | Err(_) => Err(ConsentRefusal::Declined),
            }
        })
    }
}

/// What a person confirms, and how.
fn proposal_prompt(proposal: &Proposal<'_>) -> ConfirmationPrompt {
    match proposal {
        Proposal::Begin { inputs, profile, survey, rows, samples, balance, again } => {
            let title = format!("Send {} {}?", format_count(rows.len(), "message"), gateway_phrase(profile));
            let mut question = ConfirmationPrompt::new(title, ExpectedAnswer::Number(rows.len()), "send");
            let start = Some(RunStart::At(Timestamp::now()));
            let sending = SendingFacts { inputs, profile, survey, rows, start, balance: *balance, samples };
            sending.add_to(&mut question);
            if *again {
                question.add_note(AGAIN_WARNING);
            }
            question
        }
        Proposal::ActivateSchedule { arming, profile, samples } => activation_prompt(arming, profile, samples),
        Proposal::Approve { approving, profile, standing, samples } => {
            approval_prompt(approving, profile, standing.as_ref(), samples)
        }
        Proposal::Resume { run, snapshot, profile, number, cost, balance, rest, is_retry } => {
            let (name, messages, through) = (run.name(), format_count(*number, "message"), gateway_phrase(profile));
            let title = match is_retry {
                true => format!("Retry {messages} from {name} {through}?"),
                false => format!("Resume {name}: send {messages} {through}?"),
            };
            let mut question = ConfirmationPrompt::new(title, ExpectedAnswer::Number(*number), "send");
            question.add_fact(
                "run",
                [format!("{}: {}", format_count(run.recipients, "row"), format_counts(&snapshot.counts)).into()],
            );
            let planned = snapshot.counts.get(RowState::Planned);
            let rest_of_planned = match *is_retry || *number >= planned {
                true => String::new(),
                false => format!(" of {} planned; the others will not get a message now", format_thousands(planned)),
            };
            question.add_fact("recipients", [strong(format_thousands(*number)), rest_of_planned.into()]);
            add_cost(&mut question, cost.as_ref(), profile.currency.as_deref(), *balance);
            if let Some(rest) = rest {
                add_local_time(&mut question, &rest.inputs, &rest.survey.survey, &rest.rows);
                add_samples(&mut question, &rest.samples);
            }
            question
        }
        Proposal::Single { operation, phones, profile } => {
            let phones: Vec<String> = phones.iter().map(|phone| format!("+{phone}")).collect();
            let (phones, through) = (phones.join(", "), gateway_phrase(profile));
            let (what, action, effect) = match operation {
                SingleKind::Lookup => ("Look up", "look it up", "The subscriber does not notice the lookup."),
                SingleKind::CodeCall => ("Call", "call", "The phone will ring."),
                SingleKind::Message => ("Send a message to", "send", "The recipient will get the message."),
                SingleKind::Test => {
                    ("Send a test message to", "send", "The test does not count as a campaign message.")
                }
            };
            ConfirmationPrompt::new(format!("{what} {phones} {through}?"), ExpectedAnswer::Yes, action)
                .with_note(format!("This costs money. {effect}"))
        }
        Proposal::OutsideWindow { opens } => {
            ConfirmationPrompt::new("Send the test messages outside the sending window?", ExpectedAnswer::Yes, "send")
                .with_fact("window", describe_closed_window(*opens))
        }
        Proposal::Pending { gateway, shown } => {
            let title = format!("An assistant wants to use {gateway}. Approve this request?");
            let mut question = ConfirmationPrompt::new(title, ExpectedAnswer::Yes, "approve");
            shown.lines().for_each(|line| question.add_note(line));
            question.with_note("This allows the assistant to do it once, within an hour.")
        }
        Proposal::Template { profile, change } => template_prompt(profile, change),
    }
}

/// The way of messages in a title.
fn gateway_phrase(profile: &Profile) -> String {
    format!("through {} ({})", profile.name, profile.base_url.host_and_port())
}

fn activation_prompt(arming: &ScheduleActivation, profile: &Profile, samples: &[Sample]) -> ConfirmationPrompt {
    let (inputs, through) = (&arming.inputs, gateway_phrase(profile));
    let name = &inputs.campaign.brief.name;
    let mut question = match &arming.survey {
        Some(survey) => {
            let rows = survey.survey.planned_rows();
            let title = format!("Activate {name}: {} per run {through}?", format_count(rows.len(), "message"));
            let mut question = ConfirmationPrompt::new(title, ExpectedAnswer::Yes, "activate");
            // `schedule add` shows the findings above the question.
            let sending = SendingFacts { inputs, profile, survey, rows: &rows, start: None, balance: None, samples };
            sending.add_to(&mut question);
            question
        }
        None => ConfirmationPrompt::new(format!("Activate {name} {through}?"), ExpectedAnswer::Yes, "activate")
            .with_fact("list", format!("{}, which does not exist yet", inputs.campaign.recipients)),
    };
    add_uses(&mut question, inputs, profile);
    for (index, next) in arming.next.iter().enumerate() {
        question.add_fact(if index == 0 { "next runs" } else { "" }, [format_occurrence(next).into()]);
    }
    question.with_note("The schedule sends on these dates without asking again.")
}

fn approval_prompt(
    approving: &PlanReview,
    profile: &Profile,
    standing: Option<&StandingApproval>,
    samples: &[Sample],
) -> ConfirmationPrompt {
    let PlanReview { inputs, planned, survey, rows, .. } = approving;
    let (name, through, now) = (&inputs.campaign.brief.name, gateway_phrase(profile), Timestamp::now());
    let recipients = format_count(planned.messages, "recipient");
    let (title, scope) = match (&planned.options, standing) {
        (PlanOptions { rows: Some(row), tests_to: Some(to), .. }, _) => (
            format!("Approve test messages for {name} {through}?"),
            format!("row {row} to {recipients}, once: {}", to.masked.join(", ")),
        ),
        (_, None) => {
            (format!("Approve one run of {name} {through}?"), format!("one run of this plan, to at most {recipients}"))
        }
        (_, Some(standing)) => (
            format!("Approve the schedule of {name} {through}?"),
            format!(
                "every run until {}, each to at most {} from that day's list",
                minute(standing.until),
                format_count(standing.up_to, "recipient")
            ),
        ),
    };
    let mut question = ConfirmationPrompt::new(title, ExpectedAnswer::Yes, "approve");
    question.add_fact("approval", [scope.into()]);
    let start = if standing.is_some() { RunStart::for_campaign(&inputs.campaign, now) } else { RunStart::At(now) };
    let sending = SendingFacts { inputs, profile, survey, rows, start: Some(start), balance: None, samples };
    sending.add_to(&mut question);
    add_uses(&mut question, inputs, profile);
    if planned.options.again {
        question.add_note(AGAIN_WARNING);
    }
    question
}

fn template_prompt(profile: &Profile, change: &TemplateChange) -> ConfirmationPrompt {
    let (channel, facts) = match change {
        TemplateChange::CreateSms(template) => {
            ("SMS", vec![("name", template.name.clone()), ("text", template.text.clone())])
        }
        TemplateChange::DeleteSms(template) => ("SMS", vec![("id", template.id.to_string())]),
        TemplateChange::CreateViber(template) => {
            ("Viber", vec![("sender", template.signature.clone()), ("text", template.text.clone())])
        }
        TemplateChange::DeleteViber(template) => {
            ("Viber", vec![("id", template.id.to_string()), ("text", template.text.clone())])
        }
    };
    let (verb, title) = match change.verb() {
        "delete" => ("delete", format!("Delete this {channel} template {}?", gateway_phrase(profile))),
        verb => (verb, format!("Create this {channel} template {}?", gateway_phrase(profile))),
    };
    let question = ConfirmationPrompt::new(title, ExpectedAnswer::Word(verb), format!("{verb} it"));
    facts.into_iter().fold(question, |question, (label, value)| question.with_fact(label, value))
}
