//! `campaign approve`: somebody's yes to what was planned.

use serde_json::json;

use super::args::ApproveArgs;
use super::context::Context;
use super::failure::Failure;
use super::{consent, exit, plan};
use crate::runs::{self, look_at_plan, short};

pub(super) async fn approve(context: &Context, args: &ApproveArgs) -> Result<u8, Failure> {
    let adapters = context.adapters(context.ledger().await?)?;
    let approving = look_at_plan(&adapters, &args.digest).await?;
    let approval = runs::approve(&adapters, &approving, consent::of(&context.output, false).as_ref()).await?;
    if context.output.json {
        let (digest, by, up_to) = (&approval.digest, &approval.by, approval.up_to);
        let until = approval.until.to_string();
        context.output.object(&json!({
            "digest": digest, "by": by, "up_to": up_to, "until": until, "exit": exit::FINE,
        }));
        return Ok(exit::FINE);
    }
    let (planned, digest) = (&approving.planned, short(&approval.digest));
    let (file, profile) = (&planned.inputs.campaign_file, approving.inputs.destination.profile());
    let run = plan::run(file, Some(&planned.inputs.brief.gateway), planned, profile);
    let next = context.output.command(format!("{run} --plan {digest}"));
    context.output.summary(&format!("{digest} is approved by {} for one run\nnext: {next}\n", approval.by));
    Ok(exit::FINE)
}
