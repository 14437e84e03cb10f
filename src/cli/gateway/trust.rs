//! `campaign gateway trust`: accepts a profile's new host, and at a terminal a weaker `approval`.

use crate::cli::consent::typed;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::{Failure, at_host};
use crate::runs::{WeakerRule, trust_rule, weaker_rule};

pub(super) async fn trust(context: &Context, name: &str) -> Result<u8, Failure> {
    let profile = context.profiles().named(name, None, &context.observer)?;
    let host = profile.trusted_hosts();
    let ledger = context.ledger().await?;
    let adapters = context.adapters(ledger.clone())?;
    if let Some(change) = weaker_rule(&adapters, &profile).await? {
        confirm(context, &change).await?;
    }
    ledger.trust_host(name, &host).await?;
    trust_rule(&adapters, &profile).await?;
    if context.output.json {
        context.output.object(&serde_json::json!({ "gateway": name, "host": host, "exit": exit::FINE }));
    } else {
        context.output.result(&format!("`{name}` is trusted {}\n", at_host(&host)));
    }
    Ok(exit::FINE)
}

/// Asks the person at the terminal to accept a weaker `approval`. No option answers this question.
async fn confirm(context: &Context, change: &WeakerRule) -> Result<(), Failure> {
    let WeakerRule { account, known, now, by, at, .. } = change;
    if !context.output.can_ask() {
        return Err(Failure::wrong(format!(
            "the account `{account}` needs {known}, and the profile now has {now}; a person has to accept this at a terminal, \
             and nothing changed"
        )));
    }
    let question = format!(
        "The approval of the account `{account}` becomes weaker:\n  before: {known} (recorded by {by} at {at:.0})\n  \
         now:    {now}\nYour name and the time are recorded. Type `weaken` to accept, or press Enter to cancel: "
    );
    match typed(question).await?.trim() {
        "weaken" => Ok(()),
        _ => Err(Failure::wrong("cancelled; nothing changed")),
    }
}
