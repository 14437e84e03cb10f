//! `campaign schedule add`: activates a campaign's schedule.

use serde_json::json;

use super::words;
use crate::calendar::Occurrence;
use crate::cli::args::ScheduleAddArgs;
use crate::cli::context::Context;
use crate::cli::failure::CommandFailure;
use crate::cli::text::{StyledLine, StyledText, caution, dim, good, strong};
use crate::cli::{consent, exit};
use crate::finding::{Severity, findings_json};
use crate::runs::{Error, ScheduleActivation};

const SAME_MESSAGE_NOTE: &str = "each run sends the same message; to change it each time, use `{{ today }}` in a template, \
                             or in the file name of the list or of a template";

/// The failure of a command that has no option for the gateway.
fn explain_missing_gateway(error: Error) -> CommandFailure {
    match error {
        Error::NoGatewayNamed => CommandFailure::invalid("the campaign names no gateway")
            .with_help("set `gateway: NAME` in the campaign file"),
        error => error.into(),
    }
}

pub(super) async fn activate_schedule(context: &Context, args: &ScheduleAddArgs) -> Result<u8, CommandFailure> {
    let adapters = context.adapters(context.open_ledger().await?)?;
    let arming = ScheduleActivation::review(&adapters, &args.file).await.map_err(explain_missing_gateway)?;
    let (findings, repeats_itself) = (arming.findings.clone(), arming.repeats_itself);
    if !context.output.json {
        context.output.print_findings(&findings);
    }
    let (next, was_armed, to_come) = (arming.next.clone(), arming.was_armed, arming.survey.is_none());
    let list = arming.inputs.campaign.recipients.clone();
    let armed = arming
        .activate(&adapters, consent::consent_for(&context.output, args.yes).as_ref())
        .await
        .map_err(explain_missing_gateway)?;
    if context.output.json {
        let next: Vec<_> = next.iter().map(Occurrence::format_moment).collect();
        let (name, file) = (&armed.name, &armed.file);
        let warnings = findings.iter().filter(|finding| finding.severity == Severity::Warning);
        let mut warnings: Vec<&str> = warnings.map(|finding| finding.message.as_str()).collect();
        warnings.extend(repeats_itself.then_some(SAME_MESSAGE_NOTE));
        let object = json!({
            "name": name, "file": file, "state": "armed", "next": next, "warnings": warnings,
            "findings": findings_json(&findings), "exit": exit::SUCCESS,
        });
        context.output.print_object(&object);
        return Ok(exit::SUCCESS);
    }
    let is_active = if was_armed { " is active again" } else { " is active" };
    let mut text = StyledText::from(StyledLine::new([good("✓ "), strong(armed.name), is_active.into()]));
    for (index, next) in next.iter().enumerate() {
        let label = if index == 0 { "next runs" } else { "" };
        text.add_line(2, [dim(format!("{label:<11}")), words::format_occurrence(next).into()]);
    }
    if to_come {
        text.add_line(2, [dim(format!("{:<11}", "list")), format!("{list}, which does not exist yet").into()]);
    }
    if repeats_itself {
        text.add_line(2, [caution("warning:"), format!(" {SAME_MESSAGE_NOTE}").into()]);
    }
    text.add_line(2, ["The schedule sends while `campaign serve` is running.".into()]);
    text.push(StyledLine::next_step(context.output.command("serve")));
    context.output.print_done(text, exit::SUCCESS);
    Ok(exit::SUCCESS)
}
