//! `campaign gateway trust`: accepts a profile's new host, and at a terminal a weaker `approval`.

use crate::cli::consent::typed;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::{Failure, at_host};
use crate::runs::{WeakerRule, record_rule, weaker_rules};

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
        context.output.result(&format!("`{name}` is trusted {}\n", at_host(&host)));
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
            "the account {}, and the profile now has {now}; nothing changed",
            needs.join(", the account ")
        ))
        .with_help("restore `approval`, or accept the change at a terminal"));
    }
    let mut question = "The approval becomes weaker:\n".to_owned();
    for WeakerRule { account, known, by, at, .. } in changes {
        question += &format!("  before: {known}, for the account `{account}`, recorded by {by} at {at:.0}\n");
    }
    if let Some(WeakerRule { now, .. }) = changes.first() {
        question += &format!("  now:    {now}\n");
    }
    question += "Your name and the time are recorded. Type `weaken` to accept, or press Enter to cancel: ";
    match typed(question).await?.trim() {
        "weaken" => Ok(()),
        _ => Err(Failure::wrong("cancelled; nothing changed")),
    }
}
