//! `campaign schedule add`: arms a campaign, which then runs by itself.

use serde_json::json;

use super::words;
use crate::calendar::Occurrence;
use crate::cli::args::ArmArgs;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{consent, exit};
use crate::finding::{Severity, findings_json};
use crate::runs::Arming;

const SAYS_THE_SAME: &str = "each time it says what it said the time before; `{{ today }}` in the name of the list or of a \
                             text, or in a text, makes it another message";

pub(super) async fn add(context: &Context, args: &ArmArgs) -> Result<u8, Failure> {
    let adapters = context.adapters(context.ledger().await?)?;
    let arming = Arming::look(&adapters, &args.file).await?;
    let (findings, repeats_itself) = (arming.findings.clone(), arming.repeats_itself);
    if !context.output.json {
        context.output.findings(&findings);
    }
    let (next, was_armed, to_come) = (arming.next.clone(), arming.was_armed, arming.survey.is_none());
    let list = arming.inputs.campaign.recipients.clone();
    let armed = arming.arm(&adapters, consent::of(&context.output, args.yes).as_ref()).await?;
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
    let anew = if was_armed { "armed anew" } else { "armed" };
    let dates: Vec<String> = next.iter().map(|next: &Occurrence| words::date(next)).collect();
    let mut text = format!("{} is {anew}\n  it runs {}\n", armed.name, dates.join("\n          "));
    if to_come {
        text += &format!("  its list is to come: {}\n", list);
    }
    if repeats_itself {
        text += &format!("  warning: {SAYS_THE_SAME}\n");
    }
    let serve = context.output.command("serve");
    context.output.summary(&format!("{text}next (it fires while this runs): {serve}\n"));
    Ok(exit::FINE)
}
