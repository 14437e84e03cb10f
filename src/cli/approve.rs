//! `campaign approve`: approves a plan, and creates the keys for signed approvals.

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::args::ApproveArgs;
use super::clock::minute;
use super::context::Context;
use super::failure::Failure;
use super::text::{Line, Text, copied, plain};
use super::{consent, exit, plan};
use crate::connector::look_at;
use crate::draft::KeyFile;
use crate::finding::quoted;
use crate::ledger::Approval;
use crate::report::plural;
use crate::runs::{
    self, Adapters, Approving, Error, Pending, PlanRefusal, PrivateKey, Standing, approve_pending, find_pending,
    look_at_plan, short,
};

pub(super) async fn approve(context: &Context, args: &ApproveArgs) -> Result<u8, Failure> {
    if let Some(name) = &args.new_key {
        return new_key(context, name);
    }
    let digest = args.digest.as_deref().unwrap_or_default();
    let adapters = context.adapters(context.ledger().await?)?;
    if let Some((digest, pending)) = find_pending(adapters.ledger.as_ref(), digest).await? {
        return single(context, &adapters, &digest, &pending).await;
    }
    let key = args.key.as_deref().map(PrivateKey::read).transpose()?;
    let approving = look_at_plan(&adapters, digest).await?;
    let until = |time| Timestamp::now().checked_add(time).map_err(|error| Failure::wrong(error.to_string()));
    let standing = match args.standing.zip(args.up_to) {
        Some((time, up_to)) => Some(Standing { until: until(time)?, up_to }),
        None => None,
    };
    // The key approves without a terminal. At a terminal its owner sees the plan, and confirms.
    let agreed = key.is_some() && !context.output.can_ask();
    let consent = consent::of(&context.output, agreed);
    let approval = runs::approve(&adapters, &approving, (key.as_ref(), standing), consent.as_ref()).await?;
    tell(context, &approving, &approval, key.is_some());
    Ok(exit::FINE)
}

fn tell(context: &Context, approving: &Approving, approval: &Approval, is_signed: bool) {
    if context.output.json {
        context.output.object(&told((&approving.digest, approval), is_signed));
        return;
    }
    let Approval { digest, by, until, token, standing, .. } = approval;
    if *standing {
        let name = &approving.inputs.campaign.brief.name;
        let what = format!("{by} approved all scheduled runs of {name} until {}", minute(*until));
        context.output.done(Line::success([plain(what)]), exit::FINE);
        return;
    }
    let (planned, digest) = (&approving.planned, short(digest));
    if planned.options.tests_to.is_some() {
        let messages = plural(planned.messages, "test message");
        let what = format!("{by} approved {digest} for {messages}, to be sent once");
        let mut text = Text::from(Line::success([plain(what)]));
        text.line(0, [plain("Repeat the `campaign test` command to send them.")]);
        context.output.done(text, exit::FINE);
        return;
    }
    let (file, profile) = (&planned.inputs.campaign_file, approving.inputs.destination.profile());
    let run = plan::run(file, Some(&planned.inputs.brief.gateway), planned, profile);
    let mut text = Text::from(Line::success([plain(format!("{by} approved {digest} for one run"))]));
    if is_signed {
        let elsewhere = context.output.command(format!("{run} --approval {token}"));
        text.line(0, [plain("To send it from another machine: "), copied(elsewhere)]);
    }
    match planned.options.occurrence {
        Some(_) => text.line(0, [plain("`campaign serve` sends it now.")]),
        None => text.push(Line::next(context.output.command(format!("{run} --plan {digest}")))),
    }
    context.output.done(text, exit::FINE);
}

/// Makes a pair of keys: the private half in a new file, the public half for the profile.
fn new_key(context: &Context, name: &str) -> Result<u8, Failure> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.starts_with('-') || !name.chars().all(fits) {
        return Err(Failure::wrong(format!(
            "{} is not a valid key name: use letters, digits, `-` and `_`",
            quoted(name)
        )));
    }
    let path = PathBuf::from(format!("{name}.key"));
    let (line, public) = PrivateKey::pair()?;
    let file = KeyFile::write(&path, &line).map_err(|error| Failure::wrong(error.to_string()))?;
    file.keep();
    if context.output.json {
        context.output.object(&json!({ "file": path, "public": public.to_string(), "exit": exit::FINE }));
        return Ok(exit::FINE);
    }
    let mut text = Text::new();
    text.push(Line::success([plain("private key: "), copied(path.display().to_string())]));
    text.line(
        0,
        [plain(
            "Store it where the person who sends the campaign cannot read it. Add the public key to the profile in \
             gateways.yaml:",
        )],
    );
    text.push(
        Line::new([plain(format!("approval: {{ above: 1000, by: {{ {name}: {public} }} }}"))]).indented(2).whole(),
    );
    context.output.result(text);
    Ok(exit::FINE)
}

/// Approves a single request of an assistant, as the process that waits for it describes it.
async fn single(context: &Context, adapters: &Adapters, digest: &str, pending: &Pending) -> Result<u8, Failure> {
    let gone = || Error::Plan(PlanRefusal::Gone { digest: digest.to_owned() });
    let shown = look_at(pending, digest).await.ok_or_else(gone)?;
    let consent = consent::of(&context.output, false);
    let approval = approve_pending(adapters, (digest, pending, &shown), consent.as_ref()).await?;
    if context.output.json {
        context.output.object(&told((&approval.digest, &approval), false));
        return Ok(exit::FINE);
    }
    let (digest, by) = (short(digest), &approval.by);
    context
        .output
        .summary(format!("{by} approved request {digest}; the assistant can now repeat it once, within an hour\n"));
    Ok(exit::FINE)
}

/// An approval for programs. The token of one that was typed proves nothing, so it is left out.
fn told((digest, approval): (&str, &Approval), is_signed: bool) -> Value {
    let Approval { by, up_to, until, token, standing, .. } = approval;
    let token = is_signed.then_some(token);
    json!({
        "digest": digest, "by": by, "up_to": up_to, "until": until.to_string(), "standing": standing, "token": token,
        "exit": exit::FINE,
    })
}
