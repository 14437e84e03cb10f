//! `campaign show`: the history of one message: attempts, answers, questions, decisions.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::listed::{Whom, listed, number};
use crate::cli::args::ShowArgs;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::runs;
use crate::delivery::RunFolder;
use crate::domain::{Outcome, Phone, Row};
use crate::finding::one_line;
use crate::ledger::{Change, EnvelopeRecord, Ledger, Question, RowEvents, Run, State, Walk};
use crate::manifest::Brief;
use crate::report::plural;

/// Something that happened to a message.
struct Happening {
    at: Timestamp,
    text: String,
    /// The same for a program; nothing where a member of its own tells it.
    json: Option<Value>,
}

pub(in crate::cli) async fn show(context: &Context, args: ShowArgs) -> Result<u8, Failure> {
    let ledger = context.existing_ledger().await?;
    let run = runs::find(context, ledger.as_deref(), &args.run).await?;
    let ledger = ledger.ok_or_else(|| Failure::new(exit::BUG, "the run's ledger is gone"))?;
    runs::judge(context, ledger.as_ref(), &run).await?;
    let owned = runs::is_owned(context, &run)?;
    let standing = runs::standing(ledger.as_ref(), &run, owned).await?;
    let folder = RunFolder::of(&context.state()?, &run.name());
    let frozen = runs::frozen(&folder)?;
    let whom = whom(&run, &args, &frozen.brief)?;
    let recipients = listed(&folder, &frozen, whom)?;
    // A number that is there more than once was sent to in one of its rows.
    let sent_to = recipients.iter().find(|one| standing.states.recorded(one.row).is_some());
    let recipient = *sent_to.or(recipients.first()).ok_or_else(|| nobody(&run, whom))?;
    let row = recipient.row;
    let attempts = attempts(ledger.as_ref(), &run, row).await?;
    let question = ledger.questions(run.key).await?.into_iter().find(|question| question.row == row);
    let events = standing.states.events();
    let mut history = Vec::new();
    for envelope in &attempts {
        attempt(ledger.as_ref(), (&run, row), envelope, events, &mut history).await?;
    }
    history.extend(question.as_ref().map(|question| asked(question, attempts.len())));
    history.extend(events.of(row).iter().map(|event| Happening {
        at: event.at,
        text: decision(&event.change),
        json: Some(json!({ "event": "change", "envelope": event.envelope, "change": event.change })),
    }));
    history.sort_by_key(|happening| happening.at);
    let told = Told { run: &run, row, state: standing.state(row), phone: recipient.phone, question: question.as_ref() };
    told.print(context, &history, standing.left_out.of(row).map(|(_, why)| why));
    Ok(exit::FINE)
}

/// Whom the arguments mean.
fn whom(run: &Run, args: &ShowArgs, brief: &Brief) -> Result<Whom, Failure> {
    match (args.row.map(Row::new), &args.to) {
        (Some(row), _) if row > Row::HEADER && row <= run.last_row() => Ok(Whom::Row(row)),
        (None, Some(text)) => number(text, brief).map(Whom::Number),
        _ => {
            let last = run.last_row();
            Err(Failure::wrong(format!("{} has the rows 2 to {last}; the header is row 1", run.name())))
        }
    }
}

fn nobody(run: &Run, whom: Whom) -> Failure {
    Failure::new(
        exit::NOTHING,
        match whom {
            Whom::Row(row) => format!("row {row} of the list of {} is blank", run.name()),
            Whom::Number(_) => format!("the list of {} has nobody with that number", run.name()),
        },
    )
}

/// The envelopes that hold the row.
async fn attempts(ledger: &dyn Ledger, run: &Run, row: Row) -> Result<Vec<EnvelopeRecord>, Failure> {
    let mut found = Vec::new();
    let mut envelopes = Walk::over(ledger, run.key);
    while let Some(envelope) = envelopes.next().await? {
        if envelope.rows.iter().any(|sent| sent.row == row) {
            found.push(envelope);
        }
    }
    Ok(found)
}

/// An attempt and what came of it.
async fn attempt(
    ledger: &dyn Ledger,
    (run, row): (&Run, Row),
    envelope: &EnvelopeRecord,
    events: &RowEvents,
    history: &mut Vec<Happening>,
) -> Result<(), Failure> {
    let Some(index) = envelope.rows.iter().position(|sent| sent.row == row) else { return Ok(()) };
    let id = run.id(row, events.order(row, envelope.envelope)).map_or(0, |id| id.get());
    let (number, with) = (envelope.envelope, plural(envelope.rows.len() as u64 - 1, "other"));
    history.push(Happening {
        at: envelope.begun_at,
        text: format!("sent in envelope {number} as id {id}, with {with}"),
        json: Some(json!({ "event": "attempt", "envelope": number, "id": id })),
    });
    let Some((at, outcomes)) = &envelope.settled else { return Ok(()) };
    if let Some(outcome) = outcomes.get(index) {
        let json = Some(json!({ "event": "outcome", "envelope": number, "outcome": outcome }));
        history.push(Happening { at: *at, text: outcome_text(outcome), json });
    }
    if let Some(evidence) = ledger.evidence(run.key, number).await? {
        let first: String = evidence.chars().take(400).collect();
        let json = Some(json!({ "event": "answer", "envelope": number, "body": evidence }));
        history.push(Happening { at: *at, text: format!("the gateway's answer was: {}", first.escape_debug()), json });
    }
    Ok(())
}

fn outcome_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Accepted { msg_id, parts, .. } => {
            let msg_id = msg_id.as_ref().map(|id| format!(" as msg_id {id}")).unwrap_or_default();
            let parts = parts.map(|parts| format!(", {}", plural(parts.into(), "part"))).unwrap_or_default();
            format!("the gateway took it{msg_id}{parts}")
        }
        Outcome::Queued { request_id } => format!("the gateway queued it as request_id {request_id}"),
        Outcome::Rejected { error } => format!("the gateway refused it: {error}"),
        Outcome::NotSent { reason } => format!("not sent: {reason}"),
        Outcome::InDoubt { reason } => format!("in doubt: {reason}"),
    }
}

fn decision(change: &Change) -> String {
    let because = |why: &Option<String>| why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    match change {
        Change::Found { status, msg_id } => {
            let msg_id = msg_id.as_ref().map(|id| format!(" as msg_id {id}")).unwrap_or_default();
            format!("asked, the gateway knows it{msg_id}: {status}")
        }
        Change::NotFound { asked } => format!("not found: asked {asked} times, the gateway does not know it"),
        Change::Unresolved { asked } => format!("unresolved: asked {asked} times, nothing proves what became of it"),
        Change::AssumedSent { by, why } => format!("counts as sent, decided by {by}{}", because(why)),
        Change::NotSent { by, why } => format!("counts as not sent, decided by {by}{}", because(why)),
        Change::SendAgain { by, why } => format!("to be sent again, decided by {by}{}", because(why)),
        Change::Retry { by, order } => format!("to be sent as a new message (order {order}), decided by {by}"),
    }
}

/// The questions, at the time of the last one.
fn asked(question: &Question, attempts: usize) -> Happening {
    let Question { envelope, asked, negatives, last_at, answer, .. } = question;
    // Older ledgers do not say which attempt it was.
    let about = match (attempts, envelope) {
        (0 | 1, _) | (_, 0) => String::new(),
        _ => format!(" about the attempt in envelope {envelope}"),
    };
    let denials = match negatives {
        0 => String::new(),
        1 => ", 1 denial counts".to_owned(),
        several => format!(", {several} denials count"),
    };
    Happening { at: *last_at, text: format!("asked {asked} ×{about}{denials}; the last answer: {answer}"), json: None }
}

/// What is known of a message besides its history.
struct Told<'a> {
    run: &'a Run,
    row: Row,
    state: State,
    phone: Option<Phone>,
    question: Option<&'a Question>,
}

impl Told<'_> {
    fn print(&self, context: &Context, history: &[Happening], left_out: Option<&str>) {
        let (name, row, state) = (self.run.name(), self.row, self.state);
        let phone = self.phone.map(|phone| phone.to_string());
        if context.output.json {
            let happened = |happening: &Happening| {
                let mut json = happening.json.clone()?;
                json["at"] = happening.at.to_string().into();
                Some(json)
            };
            let asked = self.question.map(|question| {
                json!({
                    "envelope": question.envelope, "asked": question.asked, "denials": question.negatives, "first_at": question.first_at.to_string(),
                    "last_at": question.last_at.to_string(), "answer": question.answer,
                })
            });
            return context.output.object(&json!({
                "run": name, "row": row.get(), "to": phone, "state": state.name(), "reason": left_out,
                "history": history.iter().filter_map(happened).collect::<Vec<_>>(), "questions": asked, "exit": exit::FINE,
            }));
        }
        let to = phone.map(|phone| format!(" to {phone}")).unwrap_or_default();
        let mut text = format!("{name} · row {row}{to} · {}\n", state.name().replace('_', " "));
        if let Some(reason) = left_out {
            text += &format!("  never sent: {}\n", one_line(reason));
        }
        for happening in history {
            text += &format!("  {:.3}  {}\n", happening.at, one_line(&happening.text));
        }
        text += &format!("next: {}\n", self.next(context));
        context.output.result(&text);
    }

    fn next(&self, context: &Context) -> String {
        let (name, row, output) = (self.run.name(), self.row, &context.output);
        match self.state {
            State::InDoubt => {
                let reconcile = output.command(format!("reconcile {name}"));
                format!("{reconcile}, or {}", output.command(format!("resolve {name} --rows {row} --as DECISION")))
            }
            State::Unresolved => output.command(format!("resolve {name} --rows {row} --as DECISION")),
            State::Rejected | State::NotSent => output.command(format!("retry {name}")),
            _ => output.command(format!("status {name}")),
        }
    }
}
