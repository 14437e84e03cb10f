//! `campaign gateway hook`: the webhook address for the settings of the account, and a test of it.

use serde_json::json;

use crate::cli::args::HookArgs;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::CommandFailure;
use crate::cli::text::{StyledLine, StyledText, copyable, plain, strong};
use crate::gateway::{WebhookTestAnswer, WebhookUrls, test_webhook};
use crate::runs::{has_other_secret, load_hook};

pub(super) async fn show_hook(context: &Context, args: &HookArgs) -> Result<u8, CommandFailure> {
    let name = &args.name;
    let profile = context.profiles().find_profile(name, None, &context.observer)?;
    let Some(hook) = load_hook(&profile)? else {
        return Err(CommandFailure::invalid(format!(
            "the profile `{name}` has no `hook`; add `hook: {{ public_url: …, secret: {{ env: NAME }} }}`"
        )));
    };
    if args.test {
        return test_hook(context, name, &hook).await;
    }
    let address = hook.account_url();
    if context.output.json {
        context.output.print_object(&json!({ "gateway": name, "address": address, "exit": exit::SUCCESS }));
    } else {
        let mut text = StyledText::new();
        text.push(StyledLine::new([strong(address)]).unbroken());
        text.push(StyledLine::from_prose(
            "Enter this as the notification address in the gateway's settings. It contains a secret: do not share it.",
        ));
        context.output.print_result(text);
    }
    Ok(exit::SUCCESS)
}

/// Sends a test request to the public address.
async fn test_hook(context: &Context, name: &str, hook: &WebhookUrls) -> Result<u8, CommandFailure> {
    let answer = test_webhook(hook, &format!("{:032x}", rand::random::<u128>())).await;
    if answer == WebhookTestAnswer::Ours {
        let public = hook.public_url();
        if context.output.json {
            let object = json!({ "gateway": name, "public_url": public, "reached": true, "exit": exit::SUCCESS });
            context.output.print_object(&object);
        } else {
            let reached = format!(" reaches `campaign serve`, and the secret matches the profile `{name}`");
            context.output.print_result(StyledLine::success([copyable(public.to_string()), plain(reached)]));
        }
        return Ok(exit::SUCCESS);
    }
    let code = if matches!(answer, WebhookTestAnswer::Somebody(_)) { exit::INVALID } else { exit::STOPPED };
    let other_secret = match context.open_existing_ledger().await? {
        Some(ledger) => has_other_secret(ledger.as_ref(), hook).await?,
        None => false,
    };
    Err(CommandFailure::new(code, format!("{}: {}", hook.public_url(), describe_hook_answer(&answer, other_secret))))
}

/// What answered at the public address, and what to do about it.
fn describe_hook_answer(answer: &WebhookTestAnswer, other_secret: bool) -> String {
    match answer {
        WebhookTestAnswer::Ours => "it reaches `campaign serve`".to_owned(),
        WebhookTestAnswer::Somebody(_) if other_secret => {
            "`campaign serve` has a different secret than this profile; use the same secret in both, or restart `serve`"
                .to_owned()
        }
        WebhookTestAnswer::Somebody(404) => {
            "the response was 404: another server answered, a proxy does not forward `/n/` and `/h/` to `campaign serve \
             --hooks`, or `serve` uses a different secret"
                .to_owned()
        }
        WebhookTestAnswer::Somebody(429) => {
            "the response was 429: this machine sent too many requests with a wrong secret; try again in a minute"
                .to_owned()
        }
        WebhookTestAnswer::Somebody(status @ 300..=399) => format!(
            "the response was {status}, a redirect that the gateway might not follow; set `public_url` to its target"
        ),
        WebhookTestAnswer::Somebody(status @ (502..=504)) => format!(
            "the response was {status}, from a proxy without a server behind it; start `campaign serve` and forward \
             requests to its `--hooks` address"
        ),
        WebhookTestAnswer::Somebody(status) => format!(
            "the response was {status} and did not come from `campaign serve`; check which server or proxy responds there"
        ),
        WebhookTestAnswer::NoName(cause) => {
            format!("unknown host name ({cause}); correct `public_url` or add the name to your DNS")
        }
        WebhookTestAnswer::NoConnection(cause) => {
            format!(
                "connection refused ({cause}); start `campaign serve` and the proxy in front of it, and open the port"
            )
        }
        WebhookTestAnswer::NoHandshake(cause) => format!(
            "the TLS handshake failed ({cause}); use a valid certificate for this name from a public certificate authority"
        ),
        WebhookTestAnswer::Silence => "no response within 10 seconds; a firewall might be blocking the connection".to_owned(),
        WebhookTestAnswer::Broken(cause) => format!("the connection was lost ({cause}); see the proxy's log"),
    }
}
