//! The end of a single operation: the run marked, the answer told.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Asking;
use super::answer::lines;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::delivery::{OneOff, SingleEnding};
use crate::domain::{MessageId, Outcome};
use crate::finding::one_line;
use crate::ledger::{Activity, Owner, Progress, Run, RunEnd, State, StateCounts, StopKind};

/// What is told of a single operation.
struct Told<'a> {
    run: &'a Run,
    id: MessageId,
    state: State,
    exit: u8,
    /// What the gateway answered, as JSON.
    answer: Option<&'a str>,
    /// Why there is no answer, or why the call ended early.
    error: Option<String>,
    next: String,
}

impl Asking<'_> {
    /// Marks the run and tells what came of it.
    pub(super) async fn end(
        &self,
        run: &Run,
        owner: Owner,
        id: MessageId,
        single: SingleEnding,
    ) -> Result<u8, Failure> {
        let kind = single.stopped.as_ref().map(|stop| stop.kind);
        // Whatever came of it, nothing goes on with it.
        let state = Activity::Over.once(single.outcome.as_ref());
        let mut counts = StateCounts::default();
        counts.add(state, 1);
        let exit = exit::code(kind, &counts);
        // Left at a second signal, the intent shows as doubt from the next look on; another owner ends its own run.
        if single.outcome.is_some() && kind != Some(StopKind::NotOwner) {
            let reason = single.stopped.as_ref().map(ToString::to_string);
            let end = RunEnd {
                lag: None,
                // Nothing goes on with it: whoever wants it again asks again.
                progress: Progress::Finished,
                stop: kind,
                stopped: reason.filter(|_| state == State::NotSent),
                counts,
                parts: 0,
                results: None,
                at: Timestamp::now(),
            };
            self.ledger.end(run.key, owner, end).await?;
        }
        let told = Told {
            run,
            id,
            state,
            exit,
            answer: match &single.outcome {
                Some(Outcome::Accepted { answer, .. }) => answer.as_deref(),
                _ => None,
            },
            error: self.error(&single),
            next: self.next(run, exit, state),
        };
        self.tell(&told);
        Ok(exit)
    }

    /// Why there is no answer, in words; nothing when there is one and all went well.
    fn error(&self, single: &SingleEnding) -> Option<String> {
        let stopped = single.stopped.as_ref().map(ToString::to_string);
        let name = self.one_off.name();
        let doubt = |reason: &str| {
            format!(
                "nothing proves what became of it ({reason}): the {name} may have been executed and charged. It was not \
                 repeated and will not be by itself"
            )
        };
        match &single.outcome {
            Some(Outcome::Accepted { .. } | Outcome::Queued { .. }) => stopped,
            Some(Outcome::Rejected { error }) => Some(format!("the gateway rejected it: {error}")),
            Some(Outcome::NotSent { reason }) => {
                Some(format!("nothing was sent: {}", stopped.unwrap_or_else(|| reason.to_string())))
            }
            Some(Outcome::InDoubt { reason }) => Some(doubt(reason)),
            None => Some(doubt("it was interrupted twice before the answer came")),
        }
    }

    /// What to do next; the number stays out of it, since what is shown may be kept.
    fn next(&self, run: &Run, exit: u8, state: State) -> String {
        let command = match self.one_off {
            OneOff::Lookup => "lookup",
            OneOff::CodeCall => "otp",
        };
        let suggest = &self.context.output;
        let again = suggest.command(format!("gateway {command} PHONE --gateway {}", run.gateway));
        match state {
            State::NotSent if exit == exit::KEY => format!("mend the key in gateways.yaml, then: {again}"),
            State::NotSent => again,
            _ => suggest.command(format!("results {}", run.name())),
        }
    }

    fn tell(&self, told: &Told<'_>) {
        let output = &self.context.output;
        if output.json { output.object(&object(told)) } else { output.result(&self.text(told)) }
    }

    fn text(&self, told: &Told<'_>) -> String {
        let Told { run, state, answer, error, next, .. } = told;
        let rehearsal = !self.destination.is_live();
        let place = if rehearsal { "rehearsal on the built-in sandbox" } else { &run.gateway };
        let state = state.name().replace('_', " ");
        let mut text = format!("{} · {} · {place} · {state}\n", run.name(), self.one_off.name());
        for line in answer.map(lines).unwrap_or_default() {
            text += &format!("  {line}\n");
        }
        if let Some(line) = error {
            text += &format!("  {}\n", one_line(line));
        }
        let rehearsal = if rehearsal { " (this was a rehearsal: no gateway was asked)" } else { "" };
        text + &format!("next{rehearsal}: {next}\n")
    }
}

fn object(told: &Told<'_>) -> Value {
    let Told { run, id, state, exit, answer, error, next } = told;
    // What was accepted was read as an object before.
    let answer = answer.and_then(|answer| serde_json::from_str::<Value>(answer).ok());
    let mut object = json!({
        "run": run.name(),
        "gateway": run.gateway,
        "state": state.name(),
        "id": id.get(),
        "answer": answer,
        "exit": exit,
        "next": next,
    });
    if let Some(error) = error {
        object["error"] = error.as_str().into();
    }
    object
}
