//! The confirmation of a change that reaches a gateway: by `--yes`, or by the operator at the terminal.

mod sample;
mod sending;

use std::sync::Arc;

use jiff::Timestamp;

use super::clock::minute;
use super::output::Output;
use super::question::{Answer, Question};
use super::schedule::words::date;
use super::text::strong;
use crate::check::RunStart;
use crate::delivery::SingleKind;
use crate::gateway::BoxFuture;
use crate::ledger::State;
use crate::manifest::Profile;
use crate::report::{counts_line, plural, thousands};
use crate::runs::{
    Approving, Arming, Consent, PlanOptions, Proposal, Refusal, Sample, Standing, TemplateChange,
    describe_closed_window,
};
use sending::{Sending, add_cost, add_local_time, add_samples, add_uses};

/// Who confirms: the operator who passed `--yes`, else the person at the terminal.
pub(super) fn of(output: &Output, agreed: bool) -> Arc<dyn Consent> {
    if agreed { Arc::new(GivenYes) } else { Arc::new(Person { output: output.clone() }) }
}

/// The confirmation that was given with the command.
struct GivenYes;

impl Consent for GivenYes {
    fn can_come(&self) -> bool {
        true
    }

    fn ask<'a>(&'a self, _: Proposal<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async { Ok(()) })
    }
}

/// The person at the terminal, if there is one.
struct Person {
    output: Output,
}

/// The line that says that a new round repeats messages.
pub(super) const AGAIN: &str = "`--again`: recipients who already got this message will get it again";

impl Consent for Person {
    fn can_come(&self) -> bool {
        self.output.can_ask()
    }

    fn shows_proposals(&self) -> bool {
        self.output.can_ask()
    }

    fn ask<'a>(&'a self, proposal: Proposal<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        let question = question(&proposal);
        Box::pin(async move {
            if !self.output.can_ask() {
                return Err(Refusal::NobodyToAsk);
            }
            match question.ask(&self.output).await {
                Ok(true) => Ok(()),
                Ok(false) | Err(_) => Err(Refusal::No),
            }
        })
    }
}

/// What a person confirms, and how.
fn question(proposal: &Proposal<'_>) -> Question {
    match proposal {
        Proposal::Begin { inputs, profile, survey, rows, samples, balance, again } => {
            let title = format!("Send {} {}?", plural(rows.len(), "message"), through(profile));
            let mut question = Question::new(title, Answer::Number(rows.len()), "send");
            let start = Some(RunStart::At(Timestamp::now()));
            let sending = Sending { inputs, profile, survey, rows, start, balance: *balance, samples };
            sending.add_to(&mut question);
            if *again {
                question.add_note(AGAIN);
            }
            question
        }
        Proposal::Arm { arming, profile, samples } => activation(arming, profile, samples),
        Proposal::Approve { approving, profile, standing, samples } => {
            approval(approving, profile, standing.as_ref(), samples)
        }
        Proposal::GoOn { run, snapshot, profile, number, cost, balance, rest, is_retry } => {
            let (name, messages, through) = (run.name(), plural(*number, "message"), through(profile));
            let title = match is_retry {
                true => format!("Retry {messages} from {name} {through}?"),
                false => format!("Resume {name}: send {messages} {through}?"),
            };
            let mut question = Question::new(title, Answer::Number(*number), "send");
            question
                .add("run", [format!("{}: {}", plural(run.recipients, "row"), counts_line(&snapshot.counts)).into()]);
            let planned = snapshot.counts.get(State::Planned);
            let rest_of_planned = match *is_retry || *number >= planned {
                true => String::new(),
                false => format!(" of {} planned; the others will not get a message now", thousands(planned)),
            };
            question.add("recipients", [strong(thousands(*number)), rest_of_planned.into()]);
            add_cost(&mut question, cost.as_ref(), profile.currency.as_deref(), *balance);
            if let Some(rest) = rest {
                add_local_time(&mut question, &rest.inputs, &rest.survey.survey, &rest.rows);
                add_samples(&mut question, &rest.samples);
            }
            question
        }
        Proposal::Single { operation, phones, profile } => {
            let phones: Vec<String> = phones.iter().map(|phone| format!("+{phone}")).collect();
            let (phones, through) = (phones.join(", "), through(profile));
            let (what, action, effect) = match operation {
                SingleKind::Lookup => ("Look up", "look it up", "The subscriber does not notice the lookup."),
                SingleKind::CodeCall => ("Call", "call", "The phone will ring."),
                SingleKind::Message => ("Send a message to", "send", "The recipient will get the message."),
                SingleKind::Test => {
                    ("Send a test message to", "send", "The test does not count as a campaign message.")
                }
            };
            Question::new(format!("{what} {phones} {through}?"), Answer::Yes, action)
                .note(format!("This costs money. {effect}"))
        }
        Proposal::OutsideWindow { opens } => {
            Question::new("Send the test messages outside the sending window?", Answer::Yes, "send")
                .fact("window", describe_closed_window(*opens))
        }
        Proposal::Pending { gateway, shown } => {
            let title = format!("An assistant wants to use {gateway}. Approve this request?");
            let mut question = Question::new(title, Answer::Yes, "approve");
            shown.lines().for_each(|line| question.add_note(line));
            question.note("This allows the assistant to do it once, within an hour.")
        }
        Proposal::Template { profile, change } => template(profile, change),
    }
}

/// The way of messages in a title.
fn through(profile: &Profile) -> String {
    format!("through {} ({})", profile.name, profile.base_url.host())
}

fn activation(arming: &Arming, profile: &Profile, samples: &[Sample]) -> Question {
    let (inputs, through) = (&arming.inputs, through(profile));
    let name = &inputs.campaign.brief.name;
    let mut question = match &arming.survey {
        Some(survey) => {
            let rows = survey.survey.planned_rows();
            let title = format!("Activate {name}: {} per run {through}?", plural(rows.len(), "message"));
            let mut question = Question::new(title, Answer::Yes, "activate");
            // `schedule add` shows the findings above the question.
            let sending = Sending { inputs, profile, survey, rows: &rows, start: None, balance: None, samples };
            sending.add_to(&mut question);
            question
        }
        None => Question::new(format!("Activate {name} {through}?"), Answer::Yes, "activate")
            .fact("list", format!("{}, which does not exist yet", inputs.campaign.recipients)),
    };
    add_uses(&mut question, inputs, profile);
    for (index, next) in arming.next.iter().enumerate() {
        question.add(if index == 0 { "next runs" } else { "" }, [date(next).into()]);
    }
    question.note("The schedule sends on these dates without asking again.")
}

fn approval(approving: &Approving, profile: &Profile, standing: Option<&Standing>, samples: &[Sample]) -> Question {
    let Approving { inputs, planned, survey, rows, .. } = approving;
    let (name, through, now) = (&inputs.campaign.brief.name, through(profile), Timestamp::now());
    let recipients = plural(planned.messages, "recipient");
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
                plural(standing.up_to, "recipient")
            ),
        ),
    };
    let mut question = Question::new(title, Answer::Yes, "approve");
    question.add("approval", [scope.into()]);
    let start = if standing.is_some() { RunStart::of(&inputs.campaign, now) } else { RunStart::At(now) };
    let sending = Sending { inputs, profile, survey, rows, start: Some(start), balance: None, samples };
    sending.add_to(&mut question);
    add_uses(&mut question, inputs, profile);
    if planned.options.again {
        question.add_note(AGAIN);
    }
    question
}

fn template(profile: &Profile, change: &TemplateChange) -> Question {
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
        "delete" => ("delete", format!("Delete this {channel} template {}?", through(profile))),
        verb => (verb, format!("Create this {channel} template {}?", through(profile))),
    };
    let question = Question::new(title, Answer::Word(verb), format!("{verb} it"));
    facts.into_iter().fold(question, |question, (label, value)| question.fact(label, value))
}
