//! `campaign gateway trust`: accepts a profile's new host, and at a terminal a weaker `approval`.

use crate::cli::clock::minute;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::question::{Answer, CANCELLED, Question};
use crate::runs::{WeakerRule, host_place, record_rule, weaker_rules};

pub(super) async fn trust(context: &Context, name: &str) -> Result<u8, Failure> {
    let profile = context.profiles().named(name, None, &context.observer)?;
    let host = profile.trusted_hosts();
    let ledger = context.ledger().await?;
    let adapters = context.adapters(ledger.clone())?;
    let changes = weaker_rules(&adapters, &profile).await?;
    if !changes.is_empty() {
        confirm(context, &changes).await?;
    }
    ledger.trust_host(name, &host).await?;
    record_rule(&adapters, &profile).await?;
    if context.output.json {
        context.output.object(&serde_json::json!({ "gateway": name, "host": host, "exit": exit::FINE }));
    } else {
        context.output.done(format!("`{name}` is trusted {}\n", host_place(&host)), exit::FINE);
    }
    Ok(exit::FINE)
}

/// Asks the person at the terminal to accept a weaker `approval`. No option answers this question.
async fn confirm(context: &Context, changes: &[WeakerRule]) -> Result<(), Failure> {
    if !context.output.can_ask() {
        let needs: Vec<String> =
            changes.iter().map(|WeakerRule { account, known, .. }| format!("`{account}` needs {known}")).collect();
        let now = changes.first().map_or("", |change| &change.now);
        return Err(Failure::wrong(format!(
            "the account {}, but the profile now has {now}; nothing was changed",
            needs.join(" and the account ")
        ))
        .with_help("restore `approval`, or accept the change at a terminal"));
    }
    let mut question = Question::new("Accept a weaker approval rule?", Answer::Word("weaken"), "accept");
    for WeakerRule { account, known, by, at, .. } in changes {
        let before = format!("{known} for account `{account}`, recorded by {by} at {}", minute(*at));
        question.add("before", [before.into()]);
    }
    if let Some(WeakerRule { now, .. }) = changes.first() {
        question.add("now", [now.as_str().into()]);
    }
    match question.note("Your name and the time are recorded.").ask(&context.output).await? {
        true => Ok(()),
        false => Err(Failure::wrong(format!("{CANCELLED}Nothing was changed."))),
    }
}
