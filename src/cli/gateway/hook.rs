//! `campaign gateway hook`: the address for the account's settings at the gateway, and whether it leads here.

use serde_json::json;

use crate::cli::args::HookArgs;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::gateway::{Hook, HookAnswer, ask_hook};
use crate::runs::{has_other_secret, hook_of};

pub(super) async fn hook(context: &Context, args: &HookArgs) -> Result<u8, Failure> {
    let name = &args.name;
    let profile = context.profiles().named(name, None, &context.observer)?;
    let Some(hook) = hook_of(&profile)? else {
        return Err(Failure::wrong(format!(
            "the profile `{name}` has no `hook`; add `hook: {{ public_url: …, secret: {{ env: NAME }} }}` to it"
        )));
    };
    if args.test {
        return test(context, name, &hook).await;
    }
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

/// Asks at the public address who is there.
async fn test(context: &Context, name: &str, hook: &Hook) -> Result<u8, Failure> {
    let answer = ask_hook(hook, &format!("{:032x}", rand::random::<u128>())).await;
    if answer == HookAnswer::Ours {
        let public = hook.public_url();
        if context.output.json {
            let object = json!({ "gateway": name, "public_url": public, "reached": true, "exit": exit::FINE });
            context.output.object(&object);
        } else {
            context.output.result(&format!("{public} leads to `campaign serve`, which knows the secret of `{name}`\n"));
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

/// Who is there, and what to do about it.
fn words(answer: &HookAnswer, other_secret: bool) -> String {
    match answer {
        HookAnswer::Ours => "it leads to `campaign serve`".to_owned(),
        HookAnswer::Somebody(_) if other_secret => {
            "`campaign serve` has another secret than this profile; give both the same, or restart `serve` with the new one"
                .to_owned()
        }
        HookAnswer::Somebody(404) => "the answer is 404: it is another server, or a proxy that does not pass `/n/` and `/h/` on to \
                                      `campaign serve --hooks`, or `serve` has another secret"
            .to_owned(),
        HookAnswer::Somebody(429) => "the answer is 429: too much came from here with other codes; try again in a minute".to_owned(),
        HookAnswer::Somebody(status @ 300..=399) => {
            format!("the answer is {status}, which leads elsewhere, and the gateway need not follow; name in `public_url` where it leads")
        }
        HookAnswer::Somebody(status @ (502..=504)) => format!(
            "the answer is {status}: a proxy is there, and behind it nobody; start `campaign serve`, and have the proxy pass to its `--hooks`"
        ),
        HookAnswer::Somebody(status) => format!(
            "the answer is {status}, and not that of `campaign serve`: another server is there, or something before it answers instead"
        ),
        HookAnswer::NoName(cause) => format!("its name is not known ({cause}); correct `public_url`, or add the name where your domain is kept"),
        HookAnswer::NoConnection(cause) => {
            format!("nobody takes the connection ({cause}); start `campaign serve`, and the proxy before it, and open its port")
        }
        HookAnswer::NoHandshake(cause) => format!(
            "the TLS handshake failed ({cause}); its certificate has to be of this name, not expired, and of an authority that everybody trusts"
        ),
        HookAnswer::Silence => "nobody answers within 10 seconds; a firewall may be in the way".to_owned(),
        HookAnswer::Broken(cause) => format!("the connection broke ({cause}); look at the proxy's log"),
    }
}
