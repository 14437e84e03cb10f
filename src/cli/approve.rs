//! `campaign approve`: somebody's yes to what was planned.

use serde_json::{Value, json};

use super::args::ApproveArgs;
use super::context::Context;
use super::failure::Failure;
use super::{consent, exit, plan};
use crate::connector::look_at;
use crate::ledger::Approval;
use crate::runs::{self, Adapters, Error, Pending, PlanRefusal, approve_pending, find_pending, look_at_plan, short};

pub(super) async fn approve(context: &Context, args: &ApproveArgs) -> Result<u8, Failure> {
    let adapters = context.adapters(context.ledger().await?)?;
    if let Some((digest, pending)) = find_pending(adapters.ledger.as_ref(), &args.digest).await? {
        return single(context, &adapters, &digest, &pending).await;
    }
    let approving = look_at_plan(&adapters, &args.digest).await?;
    let approval = runs::approve(&adapters, &approving, consent::of(&context.output, false).as_ref()).await?;
    if context.output.json {
        context.output.object(&told(&approval));
        return Ok(exit::FINE);
    }
    let (planned, digest) = (&approving.planned, short(&approval.digest));
    let (file, profile) = (&planned.inputs.campaign_file, approving.inputs.destination.profile());
    let run = plan::run(file, Some(&planned.inputs.brief.gateway), planned, profile);
    let next = context.output.command(format!("{run} --plan {digest}"));
    context.output.summary(&format!("{digest} is approved by {} for one run\nnext: {next}\n", approval.by));
    Ok(exit::FINE)
}

/// A yes to a single thing that an assistant wants, which is looked at where it waits.
async fn single(context: &Context, adapters: &Adapters, digest: &str, pending: &Pending) -> Result<u8, Failure> {
    let gone = || Error::Plan(PlanRefusal::Gone { digest: digest.to_owned() });
    let shown = look_at(pending, digest).await.ok_or_else(gone)?;
    let consent = consent::of(&context.output, false);
    let approval = approve_pending(adapters, (digest, pending, &shown), consent.as_ref()).await?;
    if context.output.json {
        context.output.object(&told(&approval));
        return Ok(exit::FINE);
    }
    let (digest, by) = (short(digest), &approval.by);
    context
        .output
        .summary(&format!("{digest} is approved by {by} once: now the assistant may call again, within an hour\n"));
    Ok(exit::FINE)
}

/// What programs are told of an approval.
fn told(Approval { digest, by, up_to, until, .. }: &Approval) -> Value {
    json!({ "digest": digest, "by": by, "up_to": up_to, "until": until.to_string(), "exit": exit::FINE })
}
