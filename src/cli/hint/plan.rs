//! What to do if something is not sent as planned, or not approved. Pure.

use crate::cli::suggested::{RepeatedOptions, shell_path, with_gateway};
use crate::runs::{PlanRefusal, short_digest};

/// What to do, if there is something.
pub(super) fn plan_hint(refusal: &PlanRefusal, options: &RepeatedOptions) -> Option<String> {
    let of_campaign = |command: &str, campaign, gateway: &str| {
        options.command(with_gateway(format!("{command} {}", shell_path(campaign)), Some(gateway)))
    };
    let approve = |digest: &str| options.command(format!("approve {digest} --key FILE"));
    Some(match refusal {
        PlanRefusal::Unknown { .. } => format!("create a plan: `{}`", options.command("plan FILE")),
        PlanRefusal::OtherVersion { .. } => format!("plan the campaign again: `{}`", options.command("plan FILE")),
        PlanRefusal::Changed { file, gateway, what, .. } if what.is_empty() => {
            format!("see what the campaign would send now: `{}`", of_campaign("plan", file, gateway))
        }
        PlanRefusal::Changed { file, gateway, .. } => {
            format!("undo the changes, or plan the campaign again: `{}`", of_campaign("plan", file, gateway))
        }
        PlanRefusal::More { file, gateway, .. } => {
            format!("to send to all of them, plan the campaign again: `{}`", of_campaign("plan", file, gateway))
        }
        PlanRefusal::NobodyLeft { file, gateway, .. } => {
            format!("finish the run without the plan: `{}`", of_campaign("run", file, gateway))
        }
        PlanRefusal::Used { digest } => {
            format!("to approve one more run: `{}`", options.command(format!("approve {}", short_digest(digest))))
        }
        // The plan has the options of the command that was refused.
        PlanRefusal::Unapproved { digest: Some(digest), .. } => {
            let digest = short_digest(digest);
            format!("run `{}`, then repeat this command with `--plan {digest}`", approve(digest))
        }
        PlanRefusal::Unapproved { digest: None, file: campaign, gateway, .. } => {
            let plan = of_campaign("plan", campaign, gateway);
            let run = with_gateway(format!("run {}", shell_path(campaign)), Some(gateway));
            let run = options.command(format!("{run} --plan DIGEST"));
            format!("run `{plan}`, then `{}`, then `{run}`", approve("DIGEST"))
        }
        PlanRefusal::NeedsKey { digest, .. } => format!("sign the approval: `{}`", approve(short_digest(digest))),
        PlanRefusal::NobodyCanSign => "approve the plan at a terminal, without a key".to_owned(),
        PlanRefusal::NoSchedule { .. } => {
            format!("activate the schedule first: `{}`", options.command("schedule add FILE"))
        }
        PlanRefusal::Ambiguous { .. }
        | PlanRefusal::Approved { .. }
        | PlanRefusal::NoCampaign { .. }
        | PlanRefusal::Gone { .. }
        | PlanRefusal::UnknownKey { .. }
        | PlanRefusal::NotProven
        | PlanRefusal::OtherPlan { .. }
        | PlanRefusal::Rehearsal => return None,
    })
}
