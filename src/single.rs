//! Single operations: `campaign test`, `gateway lookup` and `gateway otp`, with their report.

use serde_json::{Value, json};

use super::args::{SingleArgs, TestArgs};
use super::context::Context;
use super::exit::{CommandFailure, Explanation, more_severe_code};
use super::numbers::{parse_campaign_number, parse_number};
use super::state_folder::LedgerPurpose;
use super::suggested::{shell_path, with_gateway};
use super::text::{StyledLine, StyledText, dim, plain};
use super::{consent, exit, status};
use campaign_core::domain::{OperationOutcome, Phone};
use campaign_core::finding::escape_to_one_line;
use campaign_engine::delivery::SingleKind;
use campaign_engine::report::{RowPreview, parse_answer_members, preview_json, render_message_preview};
use campaign_ledger::{CAPPED, RowState, StateCounts, StopKind};
use campaign_manifest::{Destination, SANDBOX};
use campaign_runs::{EndedOperation, SingleOperation, TestOrder, TestRow, load_test_message};

pub(super) async fn send_test(context: &Context, args: TestArgs) -> Result<u8, CommandFailure> {
    let inputs = context.load_campaign(&args.file, args.gateway.as_deref())?;
    let region = inputs.campaign.brief.region;
    let mut phones: Vec<Phone> = Vec::new();
    for typed in &args.to {
        let phone = parse_campaign_number(typed, region)?;
        if !phones.contains(&phone) {
            phones.push(phone);
        }
    }
    let Some(&first) = phones.first() else {
        return Err(CommandFailure::invalid("no recipient was given").with_help("add `--to PHONE`"));
    };
    let existing_ledger = context.open_existing_ledger().await?;
    let inputs = context.fetch_list(inputs, args.list.fetch, existing_ledger.as_deref()).await?;
    let row = args.row.map_or(TestRow::FirstToSend, TestRow::Number);
    let message = load_test_message(&inputs, row, existing_ledger.as_deref(), &context.observer).await?;
    let (output, name) = (&context.output, &inputs.campaign.brief.name);
    if !output.json {
        output.print_result(format!(
            "test of {name}, row {} · {}",
            message.row,
            render_message_preview(first, &message.content)
        ));
    }
    let purpose = LedgerPurpose::from_destination(&inputs.destination);
    let adapters = context.adapters(context.open_ledger(purpose).await?)?;
    let order = TestOrder { inputs: &inputs, message: &message, phones: &phones };
    let (consent, outside_consent) =
        (consent::choose_consent(output, args.yes), consent::choose_consent(output, args.outside_window));
    // `admitted` is kept until all tests are sent, because other processes count the tests towards their limits.
    let mut admitted = order.admit_all(adapters, consent.as_ref(), outside_consent.as_ref()).await?;
    let confirmed = std::mem::take(&mut admitted.tests);
    let (mut code, mut tests, mut is_stopped) = (exit::SUCCESS, Vec::new(), false);
    for (phone, single) in phones.iter().zip(confirmed) {
        if is_stopped {
            tests.push(
                json!({ "to": phone.to_string(), "state": "not_sent", "error": "the previous test was stopped" }),
            );
            continue;
        }
        let ended = single.send(context.watch_signals()?).await?;
        let test = format!("test {} --to PHONE --row {}", shell_path(&args.file), message.row);
        let test = if args.list.fetch { test + " --fetch" } else { test };
        let repeat = output.command(with_gateway(test, args.gateway.as_deref()));
        let report = SingleReport::for_ended_operation(context, SingleKind::Test, &ended, repeat);
        (code, is_stopped) = (more_severe_code(code, report.exit), ended.stop.is_some());
        if output.json {
            let mut object = report.to_json();
            object["to"] = phone.to_string().into();
            tests.push(object);
        } else {
            output.print_result(report.render_text());
        }
    }
    if output.json {
        let preview = preview_json(message.row, RowPreview::Message { phone: first, content: message.content });
        output.print_object(&json!({
            "campaign": name,
            "row": message.row.get(),
            "operation": preview.get("operation").cloned().unwrap_or(Value::Null),
            "tests": tests,
            "exit": code,
        }));
    } else if is_stopped && phones.len() > 1 {
        output.print_note("the remaining numbers got no message");
    }
    Ok(code)
}

pub(crate) async fn run_single_operation(
    context: &Context,
    operation: SingleKind,
    args: SingleArgs,
) -> Result<u8, CommandFailure> {
    let phone = parse_number(&args.phone, args.region.as_deref())?;
    let destination = choose_destination(context, args.gateway.as_deref())?;
    let purpose = LedgerPurpose::from_destination(&destination);
    let single = SingleOperation::with_profile_key(operation, phone, destination)?;
    let adapters = context.adapters(context.open_ledger(purpose).await?)?;
    let confirmed = single.confirm(adapters, consent::choose_consent(&context.output, args.yes).as_ref()).await?;
    let spinner = context.output.show_spinner("Asking the gateway…");
    let ended = confirmed.send(context.watch_signals()?).await?;
    drop(spinner);
    let repeat = context.output.repeat_command(operation, &ended.run);
    let report = SingleReport::for_ended_operation(context, operation, &ended, repeat);
    if context.output.json {
        context.output.print_object(&report.to_json());
    } else {
        context.output.print_result(report.render_text());
    }
    Ok(report.exit)
}

/// Chooses the profile called `name`, the built-in sandbox if `name` is `sandbox`, or the only profile if no name is
/// given.
fn choose_destination(context: &Context, name: Option<&str>) -> Result<Destination, CommandFailure> {
    let profile = match name {
        Some(SANDBOX) => return Ok(Destination::Rehearsal),
        Some(name) => context.profiles().find_profile(name, None, &context.observer)?,
        None => context.profiles().find_only().map_err(|error| {
            let explanation = context.output.explain_error(&error);
            let help = explanation.help.map(|help| format!("{help}, or rehearse with `--gateway sandbox`"));
            CommandFailure::Explained(Explanation { help, ..explanation })
        })?,
    };
    Ok(Destination::Live(Box::new(profile)))
}

/// The report of a single operation.
pub(super) struct SingleReport<'a> {
    operation: SingleKind,
    ended: &'a EndedOperation,
    pub(super) exit: u8,
    /// The gateway's answer as JSON.
    answer: Option<&'a str>,
    /// The reason an answer is missing, or the command ended early.
    error: Option<String>,
    next: String,
}

impl<'a> SingleReport<'a> {
    /// Builds the report about an ended operation. `repeat` is the command that repeats the operation.
    fn for_ended_operation(
        context: &Context,
        operation: SingleKind,
        ended: &'a EndedOperation,
        repeat: String,
    ) -> Self {
        let mut counts = StateCounts::default();
        counts.add(ended.state, 1);
        let exit = match ended.state {
            // This command sent nothing.
            RowState::Skipped => exit::INVALID,
            _ => exit::exit_code_of_end(ended.stop.as_ref().map(|stop| stop.kind), &counts),
        };
        let answer = match &ended.outcome {
            Some(OperationOutcome::Accepted { answer, .. }) => answer.as_deref(),
            _ => None,
        };
        let (error, next) = (describe_error(operation, ended), next_command(context, ended, exit, repeat));
        Self { operation, ended, exit, answer, error, next }
    }

    pub(super) fn render_text(&self) -> StyledText {
        let EndedOperation { run, row, state, .. } = self.ended;
        let destination = if run.live { run.gateway.as_str() } else { "rehearsal in the built-in sandbox" };
        let mut text = StyledText::new();
        let mut heading =
            status::run_heading(&format!("{} row {row}", run.name()), [self.operation.name(), destination]);
        heading.extend([dim(" · "), status::state_span(*state)]);
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
        let EndedOperation { run, row, id, state, .. } = self.ended;
        // The answer to an accepted operation is always an object.
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

/// Returns the JSON key and the value of the gateway's identifier for an accepted or queued message.
fn accepted_identifier(outcome: Option<&OperationOutcome>) -> Option<(&'static str, String)> {
    match outcome? {
        OperationOutcome::Accepted { msg_id, answer: None, .. } => Some(("msg_id", msg_id.as_ref()?.to_string())),
        OperationOutcome::Queued { request_id } => Some(("request_id", request_id.to_string())),
        _ => None,
    }
}

/// Describes why the operation did not succeed, or why it was stopped. Returns `None` if it succeeded.
fn describe_error(operation: SingleKind, ended: &EndedOperation) -> Option<String> {
    let stop_reason = ended.stop.as_ref().map(ToString::to_string);
    let name = operation.name();
    let describe_doubt = |reason: &str| {
        format!(
            "the outcome is unknown ({reason}): the {name} might have been processed and charged. It will not be \
             repeated automatically"
        )
    };
    match &ended.outcome {
        _ if ended.skipped == Some(CAPPED) => {
            Some("nothing was sent: this number has reached the message cap (`cap`)".to_owned())
        }
        _ if ended.state == RowState::Skipped => {
            Some("nothing was sent: this number opted out of marketing messages".to_owned())
        }
        Some(OperationOutcome::Accepted { .. } | OperationOutcome::Queued { .. }) => stop_reason,
        Some(OperationOutcome::Rejected { error }) => Some(format!("rejected by the gateway: {error}")),
        Some(OperationOutcome::NotSent { reason }) => {
            Some(format!("nothing was sent: {}", stop_reason.unwrap_or_else(|| reason.to_string())))
        }
        Some(OperationOutcome::InDoubt { reason }) => Some(describe_doubt(reason)),
        None => match &ended.stop {
            Some(stop) if stop.kind == StopKind::Ledger => Some(describe_doubt(&stop.reason)),
            _ => Some(describe_doubt("interrupted twice before the response arrived")),
        },
    }
}

/// Suggests the next command.
fn next_command(context: &Context, ended: &EndedOperation, exit: u8, repeat: String) -> String {
    let EndedOperation { run, row, state, .. } = ended;
    let output = &context.output;
    match state {
        RowState::Skipped => output.command("suppress list"),
        RowState::NotSent if exit == exit::REFUSED_KEY => format!("correct the profile's key, then: {repeat}"),
        RowState::NotSent if exit == exit::STORAGE => format!("{}, then: {repeat}", output.describe_ledger_repair()),
        RowState::NotSent => repeat,
        _ => output.command(format!("show {} --row {row}", run.name())),
    }
}

/// Formats the members of an answer, one on each line.
pub(super) fn format_answer_members(answer: &str) -> String {
    let members = parse_answer_members(answer);
    let width = members.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line = |(name, value)| format!("  {}\n", escape_to_one_line(&format!("{name:width$}  {value}")));
    members.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_members_are_aligned_without_control_characters() {
        assert_eq!(format_answer_members(r#"{"price":0.50,"code":"0042"}"#), "  code   0042\n  price  0.50\n");
        let hostile = format_answer_members(r#"{"code":"\u001b[2J","\u0007":1}"#);
        assert_eq!(hostile.find(|c: char| c.is_control() && c != '\n'), None);
    }
}
