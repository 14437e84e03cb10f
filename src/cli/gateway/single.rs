//! `campaign gateway lookup` and `campaign gateway otp`: one paid operation that a person waits for.

use serde_json::{Value, json};

use crate::cli::answer::members;
use crate::cli::args::SingleArgs;
use crate::cli::consent;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::{Explanation, Failure};
use crate::cli::number::number;
use crate::delivery::SingleKind;
use crate::domain::Outcome;
use crate::finding::one_line;
use crate::ledger::{State, StateCounts, StopKind};
use crate::manifest::{Destination, SANDBOX};
use crate::runs::{EndedSingle, Single};

pub(super) async fn single(context: &Context, operation: SingleKind, args: SingleArgs) -> Result<u8, Failure> {
    let phone = number(&args.phone, args.region.as_deref())?;
    let destination = destination(context, args.gateway.as_deref())?;
    let single = Single::of(operation, phone, destination)?;
    let adapters = context.adapters(context.ledger().await?)?;
    let confirmed = single.confirm(adapters, consent::of(&context.output, args.yes).as_ref()).await?;
    let ended = confirmed.send(context.interrupt()?).await?;
    let told = Report::of(context, operation, &ended);
    if context.output.json {
        context.output.object(&told.object());
    } else {
        context.output.result(&told.text());
    }
    Ok(told.exit)
}

/// Where the question goes: through the profile that was named, else the only one there is; or to the built-in sandbox.
fn destination(context: &Context, name: Option<&str>) -> Result<Destination, Failure> {
    let profile = match name {
        Some(SANDBOX) => return Ok(Destination::Rehearsal),
        Some(name) => context.profiles().named(name, None, &context.observer)?,
        None => context.profiles().only().map_err(|error| {
            let explanation = context.output.explain(error);
            let message = format!("{}, or say `--gateway sandbox` to rehearse", explanation.message);
            Failure::Explained(Explanation { message, ..explanation })
        })?,
    };
    Ok(Destination::Live(Box::new(profile)))
}

/// What is told of a single operation.
struct Report<'a> {
    operation: SingleKind,
    ended: &'a EndedSingle,
    exit: u8,
    /// What the gateway answered, as JSON.
    answer: Option<&'a str>,
    /// Why there is no answer, or why the call ended early.
    error: Option<String>,
    next: String,
}

impl<'a> Report<'a> {
    fn of(context: &Context, operation: SingleKind, ended: &'a EndedSingle) -> Self {
        let mut counts = StateCounts::default();
        counts.add(ended.state, 1);
        let exit = exit::code(ended.stop.as_ref().map(|stop| stop.kind), &counts);
        let answer = match &ended.outcome {
            Some(Outcome::Accepted { answer, .. }) => answer.as_deref(),
            _ => None,
        };
        let (error, next) = (error(operation, ended), next(context, operation, ended, exit));
        Self { operation, ended, exit, answer, error, next }
    }

    fn text(&self) -> String {
        let EndedSingle { run, row, state, .. } = self.ended;
        let place = if run.live { &run.gateway } else { "rehearsal on the built-in sandbox" };
        let state = state.name().replace('_', " ");
        let mut text = format!("{} row {row} · {} · {place} · {state}\n", run.name(), self.operation.name());
        text += &self.answer.map(members).unwrap_or_default();
        if let Some(line) = &self.error {
            text += &format!("  {}\n", one_line(line));
        }
        let rehearsal = if run.live { "" } else { " (this was a rehearsal: no gateway was asked)" };
        text + &format!("next{rehearsal}: {}\n", self.next)
    }

    fn object(&self) -> Value {
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
        if let Some(error) = &self.error {
            object["error"] = error.as_str().into();
        }
        object
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
fn next(context: &Context, operation: SingleKind, ended: &EndedSingle, exit: u8) -> String {
    let EndedSingle { run, row, state, .. } = ended;
    let suggest = &context.output;
    let again = suggest.ask_anew(operation, run);
    match state {
        State::NotSent if exit == exit::KEY => format!("mend the key where the profile has it from, then: {again}"),
        State::NotSent if exit == exit::STORAGE => format!("make room or mend the disk, then: {again}"),
        State::NotSent => again,
        _ => suggest.command(format!("show {} --row {row}", run.name())),
    }
}
