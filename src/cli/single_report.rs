//! What is told of a single operation that somebody waited for.

use serde_json::{Value, json};

use super::answer::members;
use super::context::Context;
use super::exit;
use crate::delivery::SingleKind;
use crate::domain::Outcome;
use crate::finding::one_line;
use crate::ledger::{CAPPED, State, StateCounts, StopKind};
use crate::runs::EndedSingle;

/// What is told of a single operation.
pub(super) struct SingleReport<'a> {
    operation: SingleKind,
    ended: &'a EndedSingle,
    pub(super) exit: u8,
    /// What the gateway answered, as JSON.
    answer: Option<&'a str>,
    /// Why there is no answer, or why the call ended early.
    error: Option<String>,
    next: String,
}

impl<'a> SingleReport<'a> {
    /// `again` is the command that asks anew.
    pub(super) fn of(context: &Context, operation: SingleKind, ended: &'a EndedSingle, again: String) -> Self {
        let mut counts = StateCounts::default();
        counts.add(ended.state, 1);
        let exit = match ended.state {
            // Nothing was sent by this call.
            State::Skipped => exit::WRONG,
            _ => exit::code(ended.stop.as_ref().map(|stop| stop.kind), &counts),
        };
        let answer = match &ended.outcome {
            Some(Outcome::Accepted { answer, .. }) => answer.as_deref(),
            _ => None,
        };
        let (error, next) = (error(operation, ended), next(context, ended, exit, again));
        Self { operation, ended, exit, answer, error, next }
    }

    pub(super) fn text(&self) -> String {
        let EndedSingle { run, row, state, .. } = self.ended;
        let place = if run.live { &run.gateway } else { "rehearsal on the built-in sandbox" };
        let state = state.name().replace('_', " ");
        let mut text = format!("{} row {row} · {} · {place} · {state}\n", run.name(), self.operation.name());
        text += &self.answer.map(members).unwrap_or_default();
        text += &taken(self.ended.outcome.as_ref()).map(|(name, id)| format!("  {name}: {id}\n")).unwrap_or_default();
        if let Some(line) = &self.error {
            text += &format!("  {}\n", one_line(line));
        }
        let rehearsal = if run.live { "" } else { " (this was a rehearsal: no gateway was asked)" };
        text + &format!("next{rehearsal}: {}\n", self.next)
    }

    pub(super) fn object(&self) -> Value {
        let EndedSingle { run, row, id, state, .. } = self.ended;
        // What was accepted was read as an object before.
        let answer = self.answer.and_then(|answer| serde_json::from_str::<Value>(answer).ok());
        let mut object = json!({
            "run": run.name(),
            "row": row.get(),
            "gateway": run.gateway,
            "state": state.name(),
            "id": id.get(),
            "answer": answer,
            "exit": self.exit,
            "next": self.next,
        });
        if let Some((name, id)) = taken(self.ended.outcome.as_ref()) {
            object[name] = id.into();
        }
        if let Some(error) = &self.error {
            object["error"] = error.as_str().into();
        }
        object
    }
}

/// What the gateway calls a message that it took.
fn taken(outcome: Option<&Outcome>) -> Option<(&'static str, String)> {
    match outcome? {
        Outcome::Accepted { msg_id, answer: None, .. } => Some(("msg_id", msg_id.as_ref()?.to_string())),
        Outcome::Queued { request_id } => Some(("request_id", request_id.to_string())),
        _ => None,
    }
}

/// Why there is no answer, in words; nothing when there is one and all went well.
fn error(operation: SingleKind, ended: &EndedSingle) -> Option<String> {
    let stopped = ended.stop.as_ref().map(ToString::to_string);
    let name = operation.name();
    let doubt = |reason: &str| {
        format!(
            "nothing proves what became of it ({reason}): the {name} may have been executed and charged. It was not \
             repeated and will not be by itself"
        )
    };
    match &ended.outcome {
        _ if ended.skipped == Some(CAPPED) => {
            Some("nothing was sent: this number got as many messages as `cap` allows".to_owned())
        }
        _ if ended.state == State::Skipped => {
            Some("nothing was sent: this number opted out, and the message is marketing".to_owned())
        }
        Some(Outcome::Accepted { .. } | Outcome::Queued { .. }) => stopped,
        Some(Outcome::Rejected { error }) => Some(format!("the gateway rejected it: {error}")),
        Some(Outcome::NotSent { reason }) => {
            Some(format!("nothing was sent: {}", stopped.unwrap_or_else(|| reason.to_string())))
        }
        Some(Outcome::InDoubt { reason }) => Some(doubt(reason)),
        None => match &ended.stop {
            Some(stop) if stop.kind == StopKind::Ledger => Some(doubt(&stop.reason)),
            _ => Some(doubt("it was interrupted twice before the answer came")),
        },
    }
}

/// What to do next.
fn next(context: &Context, ended: &EndedSingle, exit: u8, again: String) -> String {
    let EndedSingle { run, row, state, .. } = ended;
    let suggest = &context.output;
    match state {
        State::Skipped => suggest.command("suppress list"),
        State::NotSent if exit == exit::KEY => format!("mend the key where the profile has it from, then: {again}"),
        State::NotSent if exit == exit::STORAGE => format!("{}, then: {again}", suggest.ledger_repair()),
        State::NotSent => again,
        _ => suggest.command(format!("show {} --row {row}", run.name())),
    }
}
