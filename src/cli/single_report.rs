//! The report of a single operation: a lookup, a code call or a test message.

use serde_json::{Value, json};

use super::answer::members;
use super::context::Context;
use super::exit;
use super::states;
use super::text::{Line, Text, dim, plain};
use crate::delivery::SingleKind;
use crate::domain::Outcome;
use crate::ledger::{CAPPED, State, StateCounts, StopKind};
use crate::runs::EndedSingle;

/// The report of a single operation.
pub(super) struct SingleReport<'a> {
    operation: SingleKind,
    ended: &'a EndedSingle,
    pub(super) exit: u8,
    /// What the gateway answered, as JSON.
    answer: Option<&'a str>,
    /// Why there is no answer, or why the command ended early.
    error: Option<String>,
    next: String,
}

impl<'a> SingleReport<'a> {
    /// `again` is the command that repeats the operation.
    pub(super) fn of(context: &Context, operation: SingleKind, ended: &'a EndedSingle, again: String) -> Self {
        let mut counts = StateCounts::default();
        counts.add(ended.state, 1);
        let exit = match ended.state {
            // This command sent nothing.
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

    pub(super) fn text(&self) -> Text {
        let EndedSingle { run, row, state, .. } = self.ended;
        let place = if run.live { run.gateway.as_str() } else { "rehearsal on the built-in sandbox" };
        let mut text = Text::new();
        let mut heading = states::heading(&format!("{} row {row}", run.name()), [self.operation.name(), place]);
        heading.extend([dim(" · "), states::state(*state)]);
        text.line(0, heading);
        text.extend(self.answer.map(members).unwrap_or_default());
        if let Some((name, id)) = taken(self.ended.outcome.as_ref()) {
            text.line(2, [dim(format!("{name}: ")), plain(id)]);
        }
        if let Some(line) = &self.error {
            text.push(Line::prose(line).indented(2));
        }
        let rehearsal = if run.live { "" } else { " (this was a rehearsal: no gateway was contacted)" };
        text.extend(format!("next{rehearsal}: {}", self.next));
        text
    }

    pub(super) fn object(&self) -> Value {
        let EndedSingle { run, row, id, state, .. } = self.ended;
        // The answer of an accepted operation is always an object.
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

/// The identifier that the gateway gave to an accepted message.
fn taken(outcome: Option<&Outcome>) -> Option<(&'static str, String)> {
    match outcome? {
        Outcome::Accepted { msg_id, answer: None, .. } => Some(("msg_id", msg_id.as_ref()?.to_string())),
        Outcome::Queued { request_id } => Some(("request_id", request_id.to_string())),
        _ => None,
    }
}

/// Why there is no answer; nothing if there is one.
fn error(operation: SingleKind, ended: &EndedSingle) -> Option<String> {
    let stopped = ended.stop.as_ref().map(ToString::to_string);
    let name = operation.name();
    let doubt = |reason: &str| {
        format!(
            "the outcome is unknown ({reason}): the {name} might have been processed and charged. It is not repeated \
             automatically"
        )
    };
    match &ended.outcome {
        _ if ended.skipped == Some(CAPPED) => {
            Some("nothing was sent: this number has reached the message cap (`cap`)".to_owned())
        }
        _ if ended.state == State::Skipped => {
            Some("nothing was sent: this number opted out of marketing messages".to_owned())
        }
        Some(Outcome::Accepted { .. } | Outcome::Queued { .. }) => stopped,
        Some(Outcome::Rejected { error }) => Some(format!("rejected by the gateway: {error}")),
        Some(Outcome::NotSent { reason }) => {
            Some(format!("nothing was sent: {}", stopped.unwrap_or_else(|| reason.to_string())))
        }
        Some(Outcome::InDoubt { reason }) => Some(doubt(reason)),
        None => match &ended.stop {
            Some(stop) if stop.kind == StopKind::Ledger => Some(doubt(&stop.reason)),
            _ => Some(doubt("interrupted twice before the response arrived")),
        },
    }
}

/// What to do next.
fn next(context: &Context, ended: &EndedSingle, exit: u8, again: String) -> String {
    let EndedSingle { run, row, state, .. } = ended;
    let suggest = &context.output;
    match state {
        State::Skipped => suggest.command("suppress list"),
        State::NotSent if exit == exit::KEY => format!("correct the profile's key, then: {again}"),
        State::NotSent if exit == exit::STORAGE => format!("{}, then: {again}", suggest.ledger_repair()),
        State::NotSent => again,
        _ => suggest.command(format!("show {} --row {row}", run.name())),
    }
}
