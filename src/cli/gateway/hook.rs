//! `campaign gateway hook`: the address for the account's settings at the gateway.

use serde_json::json;

use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::runs::hook_of;

pub(super) async fn hook(context: &Context, name: &str) -> Result<u8, Failure> {
    let profile = context.profiles().named(name, None, &context.observer)?;
    let Some(hook) = hook_of(&profile)? else {
        return Err(Failure::wrong(format!(
            "the profile `{name}` has no `hook`; add `hook: {{ public_url: …, secret: {{ env: NAME }} }}` to it"
        )));
    };
    let address = hook.of_account();
    if context.output.json {
        context.output.object(&json!({ "gateway": name, "address": address, "exit": exit::FINE }));
    } else {
        context.output.result(&format!(
            "{address}\nenter it as the notification address in the gateway's settings, and show it to nobody else\n"
        ));
    }
    Ok(exit::FINE)
}
