//! `campaign show`: the history of one message: attempts, answers, questions, decisions.

use serde_json::{Value, json};

use super::answer::members;
use super::args::ShowArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::receipt;
use crate::audience::parse;
use crate::delivery::{FrozenInputs, SingleKind};
use crate::domain::{Outcome, Phone, Row};
use crate::finding::one_line;
use crate::ledger::{AskedRow, Author, Change, Ledger, Run, State};
use crate::manifest::Brief;
use crate::report::{History, HistoryEntry, Incident, RecipientKey, RunView, copies_of, is_owned, plural, recipients};
use crate::runs;

pub(super) async fn show(context: &Context, args: ShowArgs) -> Result<u8, Failure> {
    let (ledger, run) = context.named_run(&args.run).await?;
    runs::judge_results(ledger.as_ref(), &run, &context.observer).await?;
    let owned = is_owned(ledger.as_ref(), &run).await?;
    let copies = copies_of(ledger.as_ref(), &run).await?;
    let frozen = FrozenInputs::of(&copies)?;
    let last = last_row(ledger.as_ref(), &run).await?;
    let key = key((&run, last), &args, &frozen.brief)?;
    let recipients = recipients(&copies, &frozen, key)?;
    let history = History::read(ledger.as_ref(), &run, owned, &recipients).await?;
    let history = history.ok_or_else(|| nobody(&run, key))?;
    if context.output.json {
        context.output.object(&object(&run, &history));
    } else {
        context.output.result(&text(context, &run, &history));
    }
    Ok(exit::FINE)
}

/// The last row that there is: of a run that single questions share, that of the latest.
async fn last_row(ledger: &dyn Ledger, run: &Run) -> Result<Row, Failure> {
    if !run.shared {
        return Ok(run.last_row());
    }
    let asked = RunView::read(ledger, run.clone(), false).await?.run.recipients;
    Ok(Row::new(u32::try_from(asked).unwrap_or(u32::MAX).saturating_add(Row::HEADER.get())))
}

/// Whom the arguments mean.
fn key((run, last): (&Run, Row), args: &ShowArgs, brief: &Brief) -> Result<RecipientKey, Failure> {
    match (args.row.map(Row::new), &args.to) {
        (Some(row), _) if row > Row::HEADER && row <= last => Ok(RecipientKey::Row(row)),
        (None, Some(text)) => number(text, brief).map(RecipientKey::Number),
        (Some(row), _) if run.shared => {
            let rows = if last > Row::HEADER { format!(", which has the rows 2 to {last}") } else { String::new() };
            Err(Failure::wrong(format!("nothing was sent in row {row} of {}{rows}", run.name())))
        }
        _ => Err(Failure::wrong(format!("{} has the rows 2 to {last}; the header is row 1", run.name()))),
    }
}

/// The number that a person names, as the list would understand it.
fn number(text: &str, brief: &Brief) -> Result<Phone, Failure> {
    let international = || parse(&format!("+{}", text.trim_start_matches('+')), None);
    parse(text, brief.region).or_else(|_| international()).map_err(|problem| {
        Failure::wrong(format!("`--to` is not a number that can be used: {problem}; write it with its country's code"))
    })
}

fn nobody(run: &Run, key: RecipientKey) -> Failure {
    Failure::wrong(match key {
        RecipientKey::Row(row) if run.shared => format!("nothing was sent in row {row} of {}", run.name()),
        RecipientKey::Row(row) => format!("row {row} of the list of {} is blank", run.name()),
        RecipientKey::Number(_) if run.shared => format!("nothing of {} went to that number", run.name()),
        RecipientKey::Number(_) => format!("the list of {} has nobody with that number", run.name()),
    })
}

fn object(run: &Run, history: &History) -> Value {
    let entry = |entry: &HistoryEntry| {
        let mut json = match &entry.what {
            Incident::Attempt { envelope, id, .. } => {
                json!({ "event": "attempt", "envelope": envelope, "id": id.map_or(0, |id| id.get()) })
            }
            Incident::Outcome { envelope, outcome } => {
                json!({ "event": "outcome", "envelope": envelope, "outcome": outcome_json(outcome) })
            }
            Incident::Answer { envelope, body } => json!({ "event": "answer", "envelope": envelope, "body": body }),
            Incident::Change { envelope, change } => {
                json!({ "event": "change", "envelope": envelope, "change": change_json(change) })
            }
            Incident::Receipt(told) => receipt::object(told),
            // A member of its own tells them.
            Incident::Questions(_) => return None,
        };
        json["at"] = entry.at.to_string().into();
        Some(json)
    };
    let questions = history.questions().map(|question| {
        json!({
            "envelope": question.envelope, "asked": question.asked, "denials": question.negatives, "first_at": question.first_at.to_string(),
            "last_at": question.last_at.to_string(), "answer": question.answer,
        })
    });
    json!({
        "run": run.name(), "row": history.row.get(), "to": history.phone.map(|phone| phone.to_string()),
        "state": history.state.name(), "reason": history.left_out,
        "history": history.entries.iter().filter_map(entry).collect::<Vec<_>>(), "questions": questions, "exit": exit::FINE,
    })
}

/// What an attempt came to, for a program.
fn outcome_json(outcome: &Outcome) -> Value {
    let mut json = match outcome {
        Outcome::Accepted { msg_id, parts, answer } => json!({
            "msg_id": msg_id.as_ref().map(ToString::to_string), "parts": parts, "answer": answer,
        }),
        Outcome::Queued { request_id } => json!({ "request_id": request_id }),
        Outcome::Rejected { error } => json!({ "error": error }),
        Outcome::NotSent { reason } | Outcome::InDoubt { reason } => json!({ "reason": reason }),
    };
    let state = match outcome {
        Outcome::NotSent { .. } => State::NotSent,
        other => State::of(other),
    };
    json["state"] = state.name().into();
    json
}

/// What was learnt or decided, for a program.
fn change_json(change: &Change) -> Value {
    let decided = |what: &str, by: &Author, why: Option<&String>| {
        let (by, rule) = match by {
            Author::Person(name) => (Some(name), None),
            Author::Policy(rule) => (None, Some(rule)),
        };
        json!({ "what": what, "by": by, "rule": rule, "why": why })
    };
    match change {
        Change::Found { status, msg_id, channel } => {
            let mut json =
                json!({ "what": "found", "status": status, "msg_id": msg_id.as_ref().map(ToString::to_string) });
            if let Some(channel) = channel {
                json["channel"] = channel.word().into();
            }
            json
        }
        Change::NotFound { asked } => json!({ "what": "not_found", "asked": asked }),
        Change::Unresolved { asked } => json!({ "what": "unresolved", "asked": asked }),
        Change::AssumedSent { by, why } => decided("sent", by, why.as_ref()),
        Change::NotSent { by, why } => decided("not_sent", by, why.as_ref()),
        Change::SendAgain { by, why } => decided("send_again", by, why.as_ref()),
        Change::Retry { by, order } => {
            let mut json = decided("retry", by, None);
            json["order"] = (*order).into();
            json
        }
    }
}

fn text(context: &Context, run: &Run, history: &History) -> String {
    let (name, row, state) = (run.name(), history.row, history.state);
    let to = history.phone.map(|phone| format!(" to {phone}")).unwrap_or_default();
    let mut text = format!("{name} · row {row}{to} · {}\n", state.name().replace('_', " "));
    if let Some(reason) = &history.left_out {
        text += &format!("  never sent: {}\n", one_line(reason));
    }
    for entry in &history.entries {
        text += &format!("  {:.3}  {}\n", entry.at, one_line(&words(&entry.what, history.attempts())));
    }
    text += &history.answer().map(members).unwrap_or_default();
    text + &format!("next: {}\n", next(context, run, history))
}

fn words(incident: &Incident, attempts: usize) -> String {
    match incident {
        Incident::Attempt { envelope, id, others } => {
            let id = id.map_or(0, |id| id.get());
            let with = if *others == 0 { "alone".to_owned() } else { format!("with {}", plural(*others, "other")) };
            format!("sent in request {envelope} as id {id}, {with}")
        }
        Incident::Outcome { outcome, .. } => outcome_words(outcome),
        Incident::Answer { body, .. } => {
            let first: String = body.chars().take(400).collect();
            format!("the gateway's answer was: {}", first.escape_debug())
        }
        Incident::Questions(question) => question_words(question, attempts),
        Incident::Receipt(told) => receipt::words(told),
        Incident::Change { change, .. } => change_words(change),
    }
}

fn outcome_words(outcome: &Outcome) -> String {
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

fn change_words(change: &Change) -> String {
    let because = |why: &Option<String>| why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let decided = |by: &Author| if runs::is_known(by) { format!(", decided by {by}") } else { String::new() };
    match change {
        Change::Found { status, msg_id, channel } => {
            let msg_id = msg_id.as_ref().map(|id| format!(" as msg_id {id}")).unwrap_or_default();
            let channel = channel.as_ref().map(|channel| format!(" on {}", channel.word())).unwrap_or_default();
            format!("asked, the gateway knows it{msg_id}: {status}{channel}")
        }
        Change::NotFound { asked } => {
            format!("not found: asked {}, the gateway does not know it", plural((*asked).into(), "time"))
        }
        Change::Unresolved { asked } => {
            format!("unresolved: asked {}, nothing proves what became of it", plural((*asked).into(), "time"))
        }
        Change::AssumedSent { by, why } => format!("counts as sent{}{}", decided(by), because(why)),
        Change::NotSent { by, why } => format!("counts as not sent{}{}", decided(by), because(why)),
        Change::SendAgain { by, why } => format!("to be sent again{}{}", decided(by), because(why)),
        Change::Retry { by, .. } => format!("to be sent again as a new message{}", decided(by)),
    }
}

fn question_words(question: &AskedRow, attempts: usize) -> String {
    let AskedRow { envelope, asked, negatives, answer, .. } = question;
    // Older ledgers do not say which attempt it was.
    let about = match (attempts, envelope) {
        (0 | 1, _) | (_, 0) => String::new(),
        _ => format!(" about the attempt in request {envelope}"),
    };
    let denials = match negatives {
        0 => String::new(),
        1 => ", 1 denial counts".to_owned(),
        several => format!(", {several} denials count"),
    };
    format!("asked {asked} ×{about}{denials}; the last answer: {answer}")
}

fn next(context: &Context, run: &Run, history: &History) -> String {
    let (row, name, output) = (history.row, run.name(), &context.output);
    match history.state {
        State::InDoubt => {
            let reconcile = output.command(format!("reconcile {name}"));
            format!("{reconcile}, or {}", output.command(format!("resolve {name} --rows {row} --as DECISION")))
        }
        State::Unresolved => output.command(format!("resolve {name} --rows {row} --as DECISION")),
        State::Rejected | State::NotSent => match SingleKind::of(run) {
            Some(single) => output.ask_anew(single, run),
            None => output.command(format!("retry {name}")),
        },
        _ => output.command(format!("status {name}")),
    }
}
