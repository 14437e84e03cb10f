//! What to do if something is not sent as planned, or not approved. Pure.

use crate::cli::suggested::{Options, file, through};
use crate::runs::{PlanRefusal, short};

/// What to do, if there is something.
pub(super) fn hint(refusal: &PlanRefusal, options: &Options) -> Option<String> {
    let plan = |campaign| options.command(format!("plan {}", file(campaign)));
    let approve = |digest: &str| options.command(format!("approve {digest} --key FILE"));
    Some(match refusal {
        PlanRefusal::Unknown { .. } => format!("make a plan: `{}`", options.command("plan FILE")),
        PlanRefusal::OtherVersion { .. } => format!("plan the campaign again: `{}`", options.command("plan FILE")),
        PlanRefusal::Changed { file, what, .. } if what.is_empty() => {
            format!("see what it would send now: `{}`", plan(file))
        }
        PlanRefusal::Changed { file, .. } => format!("undo the changes, or plan it again: `{}`", plan(file)),
        PlanRefusal::More { file, .. } => format!("to send to all of them, plan it again: `{}`", plan(file)),
        PlanRefusal::NobodyLeft { file: campaign, .. } => {
            format!("finish it without the plan: `{}`", options.command(format!("run {}", file(campaign))))
        }
        PlanRefusal::Used { digest } => {
            format!("to approve one more run: `{}`", options.command(format!("approve {}", short(digest))))
        }
        // The plan has the options of the command that was refused.
        PlanRefusal::Unapproved { digest: Some(digest), .. } => {
            let digest = short(digest);
            format!("run `{}`, then repeat this command with `--plan {digest}`", approve(digest))
        }
        PlanRefusal::Unapproved { digest: None, file: campaign, gateway, .. } => {
            let through = |command: &str| through(format!("{command} {}", file(campaign)), Some(gateway));
            let plan = options.command(through("plan"));
            let run = options.command(format!("{} --plan DIGEST", through("run")));
            format!("run `{plan}`, then `{}`, then `{run}`", approve("DIGEST"))
        }
        PlanRefusal::NeedsKey { digest, .. } => format!("sign it: `{}`", approve(short(digest))),
        PlanRefusal::NobodyCanSign => "approve it at a terminal, without a key".to_owned(),
        PlanRefusal::NoSchedule { .. } => format!(
            "`--standing` approves an active schedule; activate it with `{}`",
            options.command("schedule add FILE")
        ),
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
