//! `campaign gateway trust`: accepts that a profile's host has changed.

use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;

pub(super) async fn trust(context: &Context, name: &str) -> Result<u8, Failure> {
    let profile = context.profiles().named(name, None, &context.observer)?;
    let host = profile.hosts();
    context.ledger().await?.trust_host(name, &host).await?;
    if context.output.json {
        context.output.object(&serde_json::json!({ "gateway": name, "host": host, "exit": exit::FINE }));
    } else {
        context.output.result(&format!("`{name}` is trusted at {host}\n"));
    }
    Ok(exit::FINE)
}
