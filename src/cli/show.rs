//! `campaign show`: the history of one message: attempts, answers, delivery status, decisions.

use roaring::RoaringBitmap;
use serde_json::{Value, json};

use super::answer::members;
use super::args::{SelectionArgs, ShowArgs, phone};
use super::clock;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::receipt;
use super::states;
use super::text::{Line, Meaning, Text, dim, plain, span};
use crate::delivery::{FrozenInputs, SingleKind};
use crate::domain::{Arrival, Outcome, Row, RowSet};
use crate::ledger::{AskedRow, Author, Change, Ledger, Run, State};
use crate::manifest::Brief;
use crate::report::{
    History, HistoryEntry, Incident, RecipientKey, RunResults, RunView, copies_of, is_owned, plural, recipients,
    recipients_of_rows,
};
use crate::runs::{self, Error};

/// How many messages are shown at once, and how many with `--json`.
const MOST_SHOWN: usize = 20;
const MOST_IN_JSON: usize = 1_000;

pub(super) async fn show(context: &Context, args: ShowArgs) -> Result<u8, Failure> {
    if args.selection.is_empty() {
        let help = "add `--rows`, `--to`, `--state`, `--error` or `--channel`";
        return Err(Failure::wrong("no messages are selected").with_help(help));
    }
    let (ledger, run) = context.named_run(&args.run).await?;
    runs::judge_results(ledger.as_ref(), &run, &context.observer).await?;
    let owned = is_owned(ledger.as_ref(), &run).await?;
    let copies = copies_of(ledger.as_ref(), &run).await?;
    let frozen = FrozenInputs::of(&copies)?;
    let last = last_row(ledger.as_ref(), &run).await?;
    if !args.selection.names_one_message() {
        if let Some(row) = args.selection.rows.as_ref().map(RowSet::last).filter(|row| *row > last) {
            return Err(Error::NoSuchRow { row, last }.into());
        }
        let selection = args.selection.selection(frozen.brief.region)?;
        let rows = RunResults::open(ledger.as_ref(), &run, owned).await?.selecting(selection).rows().await?;
        let most = if context.output.json { MOST_IN_JSON } else { MOST_SHOWN };
        let shown: RoaringBitmap = rows.iter().take(most).collect();
        let recipients = recipients_of_rows(&copies, &frozen, &shown)?;
        let histories = History::read_all(ledger.as_ref(), &run, owned, &recipients).await?;
        show_all(context, &run, &histories, rows.len() - shown.len());
        return Ok(exit::FINE);
    }
    let key = key((&run, last), &args.selection, &frozen.brief)?;
    let recipients = recipients(&copies, &frozen, key)?;
    let history = History::read(ledger.as_ref(), &run, owned, &recipients).await?;
    let history = history.ok_or_else(|| no_recipient(&run, key))?;
    if context.output.json {
        context.output.object(&object(&run, &history));
    } else {
        context.output.result(text(context, &run, &history));
    }
    Ok(exit::FINE)
}

/// Shows the histories of selected messages; `more` messages are selected but not shown.
fn show_all(context: &Context, run: &Run, histories: &[History], more: u64) {
    let (output, name) = (&context.output, run.name());
    if output.json {
        let messages: Vec<Value> = histories.iter().map(|history| message_json(run, history)).collect();
        output.object(&json!({ "run": name, "messages": messages, "more": more, "exit": exit::FINE }));
        return;
    }
    let mut text = Text::new();
    for history in histories {
        // The bodies of answers are for the history of one message.
        text.extend(entries(run, history, |incident| !matches!(incident, Incident::Answer { .. })));
        text.blank();
    }
    let shown = histories.len() as u64;
    let count = match shown {
        0 => format!("{name}: no messages match this selection"),
        _ if more > 0 => format!("{name}: {shown} of {}", plural(shown + more, "message")),
        _ => format!("{name}: {}", plural(shown, "message")),
    };
    text.line(0, [count.into()]);
    if histories.is_empty() || more > 0 {
        text.push(Line::next(output.command(format!("results {name} --out -"))));
    }
    output.result(text);
}

/// The last row of a run. A run that is shared by lookups, tests and code calls grows by a row with each.
async fn last_row(ledger: &dyn Ledger, run: &Run) -> Result<Row, Failure> {
    if !run.shared {
        return Ok(run.last_row());
    }
    let asked = RunView::read(ledger, run.clone(), false).await?.run.recipients;
    Ok(Row::new(u32::try_from(asked).unwrap_or(u32::MAX).saturating_add(Row::HEADER.get())))
}

/// The row or the number that is selected.
fn key((run, last): (&Run, Row), selected: &SelectionArgs, brief: &Brief) -> Result<RecipientKey, Failure> {
    match (selected.rows.as_ref().and_then(RowSet::single), &selected.to) {
        (Some(row), _) if row > Row::HEADER && row <= last => Ok(RecipientKey::Row(row)),
        (None, Some(typed)) => phone(typed, brief.region).map(RecipientKey::Number),
        (Some(row), _) if run.shared => {
            let rows = if last > Row::HEADER { format!("; its rows are 2 to {last}") } else { String::new() };
            Err(Failure::wrong(format!("{} has no row {row}{rows}", run.name())))
        }
        _ => Err(Failure::wrong(format!("{} has rows 2 to {last}; row 1 is the header", run.name()))),
    }
}

fn no_recipient(run: &Run, key: RecipientKey) -> Failure {
    Failure::wrong(match key {
        RecipientKey::Row(row) if run.shared => format!("{} has no row {row}", run.name()),
        RecipientKey::Row(row) => format!("row {row} in the list for {} is blank", run.name()),
        RecipientKey::Number(_) if run.shared => format!("{} has no message to that number", run.name()),
        RecipientKey::Number(_) => format!("that number is not in the list of {}", run.name()),
    })
}

fn object(run: &Run, history: &History) -> Value {
    let mut object = message_json(run, history);
    object["exit"] = exit::FINE.into();
    object
}

fn message_json(run: &Run, history: &History) -> Value {
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
            // They have their own member.
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
        "history": history.entries.iter().filter_map(entry).collect::<Vec<_>>(), "questions": questions,
    })
}

/// The outcome of an attempt, for a program.
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

/// A change of a message, for a program.
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

/// The history of a message with the gateway's answer and what to do next.
fn text(context: &Context, run: &Run, history: &History) -> Text {
    let mut text = entries(run, history, |_| true);
    text.extend(history.answer().map(members).unwrap_or_default());
    text.push(Line::next(next(context, run, history)));
    text
}

/// The history of a message, as far as its incidents are shown.
fn entries(run: &Run, history: &History, is_shown: impl Fn(&Incident) -> bool) -> Text {
    let (name, row) = (run.name(), format!("row {}", history.row));
    let to = history.phone.map(|phone| format!(" to +{phone}")).unwrap_or_default();
    let mut heading = states::heading(&name, [(row + &to).as_str()]);
    heading.extend([dim(" · "), states::state(history.state)]);
    let mut text = Text::new();
    text.line(0, heading);
    if let Some(reason) = &history.left_out {
        text.line(2, [plain(format!("never sent: {reason}"))]);
    }
    for HistoryEntry { at, what } in history.entries.iter().filter(|entry| is_shown(&entry.what)) {
        let time = clock::second(*at);
        let hang = time.len() + 2;
        let words = span(meaning(what), words(what, history.attempts()));
        text.push(Line::new([dim(time), plain("  "), words]).indented(2).hanging(hang));
    }
    text
}

/// What an incident means for the message.
fn meaning(incident: &Incident) -> Meaning {
    match incident {
        Incident::Outcome { outcome, .. } => match outcome {
            Outcome::NotSent { .. } => Meaning::Bad,
            other => states::meaning(State::of(other)),
        },
        Incident::Receipt(receipt) => match receipt.status.arrival() {
            Arrival::Delivered | Arrival::Read => Meaning::Good,
            Arrival::Failed => Meaning::Bad,
            Arrival::Pending => Meaning::Plain,
        },
        Incident::Change { change: Change::NotFound { .. } | Change::Unresolved { .. }, .. } => Meaning::Caution,
        _ => Meaning::Plain,
    }
}

fn words(incident: &Incident, attempts: usize) -> String {
    match incident {
        Incident::Attempt { envelope, id, others } => {
            let id = id.map_or(0, |id| id.get());
            let with =
                if *others == 0 { String::new() } else { format!(", with {}", plural(*others, "other message")) };
            format!("sent in request {envelope} as id {id}{with}")
        }
        Incident::Outcome { outcome, .. } => outcome_words(outcome),
        Incident::Answer { body, .. } => {
            let first: String = body.chars().take(400).collect();
            format!("gateway response: {}", first.escape_debug())
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
            format!("accepted by the gateway{msg_id}{parts}")
        }
        Outcome::Queued { request_id } => format!("queued by the gateway as request_id {request_id}"),
        Outcome::Rejected { error } => format!("rejected by the gateway: {error}"),
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
            format!("reconciled: the gateway knows the message{msg_id}: {status}{channel}")
        }
        Change::NotFound { asked } => {
            format!(
                "not found: the gateway was asked {} and does not know the message",
                plural((*asked).into(), "time")
            )
        }
        Change::Unresolved { asked } => {
            format!(
                "unresolved: the gateway was asked {} and gave no conclusive response",
                plural((*asked).into(), "time")
            )
        }
        Change::AssumedSent { by, why } => format!("marked as sent{}{}", decided(by), because(why)),
        Change::NotSent { by, why } => format!("marked as not sent{}{}", decided(by), because(why)),
        Change::SendAgain { by, why } => format!("will be sent again{}{}", decided(by), because(why)),
        Change::Retry { by, .. } => format!("will be retried as a new message{}", decided(by)),
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
        1 => ", 1 conclusive denial".to_owned(),
        several => format!(", {several} conclusive denials"),
    };
    format!("asked the gateway {}{about}{denials}; last response: {answer}", plural((*asked).into(), "time"))
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
