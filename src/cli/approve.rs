//! `campaign approve`: approves a plan, and creates the keys for signed approvals.

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::args::ApproveArgs;
use super::clock::minute;
use super::context::Context;
use super::failure::CommandFailure;
use super::text::{StyledLine, StyledText, copyable, plain};
use super::{consent, exit, plan};
use crate::connector::view_pending_call;
use crate::draft::KeyFile;
use crate::finding::quote_for_shell;
use crate::ledger::Approval;
use crate::report::format_count;
use crate::runs::{
    self, Adapters, Error, PendingRequest, PlanRefusal, PlanReview, PrivateKey, StandingApproval, approve_pending,
    find_pending, review_plan, short_digest,
};

pub(super) async fn approve_plan(context: &Context, args: &ApproveArgs) -> Result<u8, CommandFailure> {
    if let Some(name) = &args.new_key {
        return create_key_pair(context, name);
    }
    let digest = args.digest.as_deref().unwrap_or_default();
    let adapters = context.adapters(context.open_ledger().await?)?;
    if let Some((digest, pending)) = find_pending(adapters.ledger.as_ref(), digest).await? {
        return approve_single_request(context, &adapters, &digest, &pending).await;
    }
    let key = args.key.as_deref().map(PrivateKey::read).transpose()?;
    let approving = review_plan(&adapters, digest).await?;
    let until = |time| Timestamp::now().checked_add(time).map_err(|error| CommandFailure::invalid(error.to_string()));
    let standing = match args.standing.zip(args.up_to) {
        Some((time, up_to)) => Some(StandingApproval { until: until(time)?, up_to }),
        None => None,
    };
    // The key approves without a terminal. At a terminal its owner sees the plan, and confirms.
    let agreed = key.is_some() && !context.output.can_ask();
    let consent = consent::consent_for(&context.output, agreed);
    let approval = runs::approve_plan(&adapters, &approving, (key.as_ref(), standing), consent.as_ref()).await?;
    report_approval(context, &approving, &approval, key.is_some());
    Ok(exit::SUCCESS)
}

fn report_approval(context: &Context, approving: &PlanReview, approval: &Approval, is_signed: bool) {
    if context.output.json {
        context.output.print_object(&approval_json((&approving.digest, approval), is_signed));
        return;
    }
    let Approval { digest, by, until, token, standing, .. } = approval;
    if *standing {
        let name = &approving.inputs.campaign.brief.name;
        let what = format!("{by} approved all scheduled runs of {name} until {}", minute(*until));
        context.output.print_done(StyledLine::success([plain(what)]), exit::SUCCESS);
        return;
    }
    let (planned, digest) = (&approving.planned, short_digest(digest));
    if planned.options.tests_to.is_some() {
        let messages = format_count(planned.messages, "test message");
        let what = format!("{by} approved {digest} for {messages}, to be sent once");
        let mut text = StyledText::from(StyledLine::success([plain(what)]));
        text.add_line(0, [plain("Repeat the `campaign test` command to send them.")]);
        context.output.print_done(text, exit::SUCCESS);
        return;
    }
    let (file, profile) = (&planned.inputs.campaign_file, approving.inputs.destination.profile());
    let run = plan::run_command_line(file, Some(&planned.inputs.brief.gateway), planned, profile);
    let mut text = StyledText::from(StyledLine::success([plain(format!("{by} approved {digest} for one run"))]));
    if is_signed {
        let elsewhere = context.output.command(format!("{run} --approval {token}"));
        text.add_line(0, [plain("To send it from another machine: "), copyable(elsewhere)]);
    }
    match planned.options.occurrence {
        Some(_) => text.add_line(0, [plain("`campaign serve` sends it now.")]),
        None => text.push(StyledLine::next_step(context.output.command(format!("{run} --plan {digest}")))),
    }
    context.output.print_done(text, exit::SUCCESS);
}

/// Makes a pair of keys: the private half in a new file, the public half for the profile.
fn create_key_pair(context: &Context, name: &str) -> Result<u8, CommandFailure> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.starts_with('-') || !name.chars().all(fits) {
        return Err(CommandFailure::invalid(format!(
            "{} is not a valid key name: use letters, digits, `-` and `_`",
            quote_for_shell(name)
        )));
    }
    let path = PathBuf::from(format!("{name}.key"));
    let (line, public) = PrivateKey::generate_pair()?;
    let file = KeyFile::write(&path, &line).map_err(|error| CommandFailure::invalid(error.to_string()))?;
    file.keep();
    if context.output.json {
        context.output.print_object(&json!({ "file": path, "public": public.to_string(), "exit": exit::SUCCESS }));
        return Ok(exit::SUCCESS);
    }
    let mut text = StyledText::new();
    text.push(StyledLine::success([plain("private key: "), copyable(path.display().to_string())]));
    text.add_line(
        0,
        [plain(
            "Store it where the person who sends the campaign cannot read it. Add the public key to the profile in \
             gateways.yaml:",
        )],
    );
    text.push(
        StyledLine::new([plain(format!("approval: {{ above: 1000, by: {{ {name}: {public} }} }}"))])
            .with_indent(2)
            .unbroken(),
    );
    context.output.print_result(text);
    Ok(exit::SUCCESS)
}

/// Approves a single request of an assistant, as the process that waits for it describes it.
async fn approve_single_request(
    context: &Context,
    adapters: &Adapters,
    digest: &str,
    pending: &PendingRequest,
) -> Result<u8, CommandFailure> {
    let gone = || Error::Plan(PlanRefusal::Gone { digest: digest.to_owned() });
    let shown = view_pending_call(pending, digest).await.ok_or_else(gone)?;
    let consent = consent::consent_for(&context.output, false);
    let approval = approve_pending(adapters, (digest, pending, &shown), consent.as_ref()).await?;
    if context.output.json {
        context.output.print_object(&approval_json((&approval.digest, &approval), false));
        return Ok(exit::SUCCESS);
    }
    let (digest, by) = (short_digest(digest), &approval.by);
    context.output.print_summary(format!(
        "{by} approved request {digest}; the assistant can now repeat it once, within an hour\n"
    ));
    Ok(exit::SUCCESS)
}

/// An approval for programs. The token of one that was typed proves nothing, so it is left out.
fn approval_json((digest, approval): (&str, &Approval), is_signed: bool) -> Value {
    let Approval { by, up_to, until, token, standing, .. } = approval;
    let token = is_signed.then_some(token);
    json!({
        "digest": digest, "by": by, "up_to": up_to, "until": until.to_string(), "standing": standing, "token": token,
        "exit": exit::SUCCESS,
    })
}
