//! `campaign gateway hook`: the webhook address for the settings of the account, and a test of it.

use serde_json::json;

use crate::cli::args::HookArgs;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::text::{Line, Text, copied, plain, strong};
use crate::gateway::{Hook, HookAnswer, ask_hook};
use crate::runs::{has_other_secret, hook_of};

pub(super) async fn hook(context: &Context, args: &HookArgs) -> Result<u8, Failure> {
    let name = &args.name;
    let profile = context.profiles().named(name, None, &context.observer)?;
    let Some(hook) = hook_of(&profile)? else {
        return Err(Failure::wrong(format!(
            "the profile `{name}` has no `hook`; add `hook: {{ public_url: …, secret: {{ env: NAME }} }}`"
        )));
    };
    if args.test {
        return test(context, name, &hook).await;
    }
    let address = hook.of_account();
    if context.output.json {
        context.output.object(&json!({ "gateway": name, "address": address, "exit": exit::FINE }));
    } else {
        let mut text = Text::new();
        text.push(Line::new([strong(address)]).whole());
        text.push(Line::prose(
            "Enter this as the notification address in the gateway's settings. It contains a secret: do not share it.",
        ));
        context.output.result(text);
    }
    Ok(exit::FINE)
}

/// Sends a test request to the public address.
async fn test(context: &Context, name: &str, hook: &Hook) -> Result<u8, Failure> {
    let answer = ask_hook(hook, &format!("{:032x}", rand::random::<u128>())).await;
    if answer == HookAnswer::Ours {
        let public = hook.public_url();
        if context.output.json {
            let object = json!({ "gateway": name, "public_url": public, "reached": true, "exit": exit::FINE });
            context.output.object(&object);
        } else {
            let reached = format!(" reaches `campaign serve`, and the secret matches the profile `{name}`");
            context.output.result(Line::success([copied(public.to_string()), plain(reached)]));
        }
        return Ok(exit::FINE);
    }
    let code = if matches!(answer, HookAnswer::Somebody(_)) { exit::WRONG } else { exit::STOPPED };
    let other_secret = match context.existing_ledger().await? {
        Some(ledger) => has_other_secret(ledger.as_ref(), hook).await?,
        None => false,
    };
    Err(Failure::new(code, format!("{}: {}", hook.public_url(), words(&answer, other_secret))))
}

/// What answered at the public address, and what to do about it.
fn words(answer: &HookAnswer, other_secret: bool) -> String {
    match answer {
        HookAnswer::Ours => "it reaches `campaign serve`".to_owned(),
        HookAnswer::Somebody(_) if other_secret => {
            "`campaign serve` has a different secret than this profile; use the same secret in both, or restart `serve`"
                .to_owned()
        }
        HookAnswer::Somebody(404) => {
            "the response was 404: another server answered, a proxy does not forward `/n/` and `/h/` to `campaign serve \
             --hooks`, or `serve` uses a different secret"
                .to_owned()
        }
        HookAnswer::Somebody(429) => {
            "the response was 429: this machine sent too many requests with a wrong secret; try again in a minute"
                .to_owned()
        }
        HookAnswer::Somebody(status @ 300..=399) => format!(
            "the response was {status}, a redirect that the gateway might not follow; set `public_url` to its target"
        ),
        HookAnswer::Somebody(status @ (502..=504)) => format!(
            "the response was {status}, from a proxy without a server behind it; start `campaign serve` and forward \
             requests to its `--hooks` address"
        ),
        HookAnswer::Somebody(status) => format!(
            "the response was {status} and did not come from `campaign serve`; check which server or proxy responds there"
        ),
        HookAnswer::NoName(cause) => {
            format!("unknown host name ({cause}); correct `public_url` or add the name to your DNS")
        }
        HookAnswer::NoConnection(cause) => {
            format!(
                "connection refused ({cause}); start `campaign serve` and the proxy in front of it, and open the port"
            )
        }
        HookAnswer::NoHandshake(cause) => format!(
            "the TLS handshake failed ({cause}); use a valid certificate for this name from a public certificate authority"
        ),
        HookAnswer::Silence => "no response within 10 seconds; a firewall might be blocking the connection".to_owned(),
        HookAnswer::Broken(cause) => format!("the connection was lost ({cause}); see the proxy's log"),
    }
}
