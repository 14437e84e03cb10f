//! `campaign gateway trust`: accepts a profile's new host, and at a terminal a weaker `approval`.

use crate::cli::clock::minute;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::CommandFailure;
use crate::cli::question::{CANCELLED, ConfirmationPrompt, ExpectedAnswer};
use crate::runs::{WeakerRule, describe_host, find_weaker_rules, record_rule};

pub(super) async fn trust_host(context: &Context, name: &str) -> Result<u8, CommandFailure> {
    let profile = context.profiles().find_profile(name, None, &context.observer)?;
    let host = profile.trusted_hosts();
    let ledger = context.open_ledger().await?;
    let adapters = context.adapters(ledger.clone())?;
    let changes = find_weaker_rules(&adapters, &profile).await?;
    if !changes.is_empty() {
        confirm_weaker_approval(context, &changes).await?;
    }
    ledger.trust_host(name, &host).await?;
    record_rule(&adapters, &profile).await?;
    if context.output.json {
        context.output.print_object(&serde_json::json!({ "gateway": name, "host": host, "exit": exit::SUCCESS }));
    } else {
        context.output.print_done(format!("`{name}` is trusted {}\n", describe_host(&host)), exit::SUCCESS);
    }
    Ok(exit::SUCCESS)
}

/// Asks the person at the terminal to accept a weaker `approval`. No option answers this question.
async fn confirm_weaker_approval(context: &Context, changes: &[WeakerRule]) -> Result<(), CommandFailure> {
    if !context.output.can_ask() {
        let needs: Vec<String> =
            changes.iter().map(|WeakerRule { account, known, .. }| format!("`{account}` needs {known}")).collect();
        let now = changes.first().map_or("", |change| &change.now);
        return Err(CommandFailure::invalid(format!(
            "the account {}, but the profile now has {now}; nothing was changed",
            needs.join(" and the account ")
        ))
        .with_help("restore `approval`, or accept the change at a terminal"));
    }
    let mut question =
        ConfirmationPrompt::new("Accept a weaker approval rule?", ExpectedAnswer::Word("weaken"), "accept");
    for WeakerRule { account, known, by, at, .. } in changes {
        let before = format!("{known} for account `{account}`, recorded by {by} at {}", minute(*at));
        question.add_fact("before", [before.into()]);
    }
    if let Some(WeakerRule { now, .. }) = changes.first() {
        question.add_fact("now", [now.as_str().into()]);
    }
    match question.with_note("Your name and the time are recorded.").ask_operator(&context.output).await? {
        true => Ok(()),
        false => Err(CommandFailure::invalid(format!("{CANCELLED}Nothing was changed."))),
    }
}
