//! `campaign schedule add`: activates a campaign's schedule.

use serde_json::json;

use super::words;
use crate::calendar::Occurrence;
use crate::cli::args::ArmArgs;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::text::{Line, Text, caution, dim, good, strong};
use crate::cli::{consent, exit};
use crate::finding::{Severity, findings_json};
use crate::runs::{Arming, Error};

const SAYS_THE_SAME: &str = "each run sends the same message; to change it each time, use `{{ today }}` in a template, \
                             or in the file name of the list or of a template";

/// The failure of a command that has no option for the gateway.
fn explain_missing_gateway(error: Error) -> Failure {
    match error {
        Error::NoGatewayNamed => {
            Failure::wrong("the campaign names no gateway").with_help("set `gateway: NAME` in the campaign file")
        }
        error => error.into(),
    }
}

pub(super) async fn add(context: &Context, args: &ArmArgs) -> Result<u8, Failure> {
    let adapters = context.adapters(context.ledger().await?)?;
    let arming = Arming::look(&adapters, &args.file).await.map_err(explain_missing_gateway)?;
    let (findings, repeats_itself) = (arming.findings.clone(), arming.repeats_itself);
    if !context.output.json {
        context.output.findings(&findings);
    }
    let (next, was_armed, to_come) = (arming.next.clone(), arming.was_armed, arming.survey.is_none());
    let list = arming.inputs.campaign.recipients.clone();
    let armed = arming
        .arm(&adapters, consent::of(&context.output, args.yes).as_ref())
        .await
        .map_err(explain_missing_gateway)?;
    if context.output.json {
        let next: Vec<_> = next.iter().map(Occurrence::moment).collect();
        let (name, file) = (&armed.name, &armed.file);
        let warnings = findings.iter().filter(|finding| finding.severity == Severity::Warning);
        let mut warnings: Vec<&str> = warnings.map(|finding| finding.message.as_str()).collect();
        warnings.extend(repeats_itself.then_some(SAYS_THE_SAME));
        let object = json!({
            "name": name, "file": file, "state": "armed", "next": next, "warnings": warnings,
            "findings": findings_json(&findings), "exit": exit::FINE,
        });
        context.output.object(&object);
        return Ok(exit::FINE);
    }
    let is_active = if was_armed { " is active again" } else { " is active" };
    let mut text = Text::from(Line::new([good("✓ "), strong(armed.name), is_active.into()]));
    for (index, next) in next.iter().enumerate() {
        let label = if index == 0 { "next runs" } else { "" };
        text.line(2, [dim(format!("{label:<11}")), words::date(next).into()]);
    }
    if to_come {
        text.line(2, [dim(format!("{:<11}", "list")), format!("{list}, which does not exist yet").into()]);
    }
    if repeats_itself {
        text.line(2, [caution("warning:"), format!(" {SAYS_THE_SAME}").into()]);
    }
    text.line(2, ["The schedule sends while `campaign serve` is running.".into()]);
    text.push(Line::next(context.output.command("serve")));
    context.output.done(text, exit::FINE);
    Ok(exit::FINE)
}
