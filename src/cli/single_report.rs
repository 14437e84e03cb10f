//! The report of a single operation: a lookup, a code call or a test message.

use serde_json::{Value, json};

use super::answer::format_answer_members;
use super::context::Context;
use super::exit;
use super::states;
use super::text::{StyledLine, StyledText, dim, plain};
use crate::delivery::SingleKind;
use crate::domain::OperationOutcome;
use crate::ledger::{CAPPED, RowState, StateCounts, StopKind};
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
    pub(super) fn for_ended(context: &Context, operation: SingleKind, ended: &'a EndedSingle, again: String) -> Self {
        let mut counts = StateCounts::default();
        counts.add(ended.state, 1);
        let exit = match ended.state {
            // This command sent nothing.
            RowState::Skipped => exit::INVALID,
            _ => exit::code_of_end(ended.stop.as_ref().map(|stop| stop.kind), &counts),
        };
        let answer = match &ended.outcome {
            Some(OperationOutcome::Accepted { answer, .. }) => answer.as_deref(),
            _ => None,
        };
        let (error, next) = (describe_error(operation, ended), next_command(context, ended, exit, again));
        Self { operation, ended, exit, answer, error, next }
    }

    pub(super) fn render_text(&self) -> StyledText {
        let EndedSingle { run, row, state, .. } = self.ended;
        let place = if run.live { run.gateway.as_str() } else { "rehearsal on the built-in sandbox" };
        let mut text = StyledText::new();
        let mut heading = states::run_heading(&format!("{} row {row}", run.name()), [self.operation.name(), place]);
        heading.extend([dim(" · "), states::state_span(*state)]);
        text.add_line(0, heading);
        text.extend(self.answer.map(format_answer_members).unwrap_or_default());
        if let Some((name, id)) = accepted_identifier(self.ended.outcome.as_ref()) {
            text.add_line(2, [dim(format!("{name}: ")), plain(id)]);
        }
        if let Some(line) = &self.error {
            text.push(StyledLine::from_prose(line).with_indent(2));
        }
        let rehearsal = if run.live { "" } else { " (this was a rehearsal: no gateway was contacted)" };
        text.extend(format!("next{rehearsal}: {}", self.next));
        text
    }

    pub(super) fn to_json(&self) -> Value {
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
        if let Some((name, id)) = accepted_identifier(self.ended.outcome.as_ref()) {
            object[name] = id.into();
        }
        if let Some(error) = &self.error {
            object["error"] = error.as_str().into();
        }
        object
    }
}

/// The identifier that the gateway gave to an accepted message.
fn accepted_identifier(outcome: Option<&OperationOutcome>) -> Option<(&'static str, String)> {
    match outcome? {
        OperationOutcome::Accepted { msg_id, answer: None, .. } => Some(("msg_id", msg_id.as_ref()?.to_string())),
        OperationOutcome::Queued { request_id } => Some(("request_id", request_id.to_string())),
        _ => None,
    }
}

/// Why there is no answer; nothing if there is one.
fn describe_error(operation: SingleKind, ended: &EndedSingle) -> Option<String> {
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
        _ if ended.state == RowState::Skipped => {
            Some("nothing was sent: this number opted out of marketing messages".to_owned())
        }
        Some(OperationOutcome::Accepted { .. } | OperationOutcome::Queued { .. }) => stopped,
        Some(OperationOutcome::Rejected { error }) => Some(format!("rejected by the gateway: {error}")),
        Some(OperationOutcome::NotSent { reason }) => {
            Some(format!("nothing was sent: {}", stopped.unwrap_or_else(|| reason.to_string())))
        }
        Some(OperationOutcome::InDoubt { reason }) => Some(doubt(reason)),
        None => match &ended.stop {
            Some(stop) if stop.kind == StopKind::Ledger => Some(doubt(&stop.reason)),
            _ => Some(doubt("interrupted twice before the response arrived")),
        },
    }
}

/// What to do next.
fn next_command(context: &Context, ended: &EndedSingle, exit: u8, again: String) -> String {
    let EndedSingle { run, row, state, .. } = ended;
    let suggest = &context.output;
    match state {
        RowState::Skipped => suggest.command("suppress list"),
        RowState::NotSent if exit == exit::REFUSED_KEY => format!("correct the profile's key, then: {again}"),
        RowState::NotSent if exit == exit::STORAGE => format!("{}, then: {again}", suggest.describe_ledger_repair()),
        RowState::NotSent => again,
        _ => suggest.command(format!("show {} --row {row}", run.name())),
    }
}
