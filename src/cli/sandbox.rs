//! `campaign sandbox`: the emulated gateway as a server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use secrecy::ExposeSecret as _;
use serde_json::json;

use super::args::SandboxArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::table::text_table;
use crate::delivery::Interrupt;
use crate::runs::Error;
use crate::sandbox::{Assumption, Hooks, Journal, Sandbox, Scenario, Settings, load_scenario};

/// The key that it accepts where only this machine can reach it.
const KEY: &str = "sandbox";

pub(super) async fn sandbox(context: &Context, args: SandboxArgs) -> Result<u8, Failure> {
    if args.assumptions {
        assumptions(context);
        return Ok(exit::FINE);
    }
    let hooks = if args.any_hook { Hooks::Anywhere } else { Hooks::Loopback };
    let mut scenario = scenario(context, args.scenario.as_deref())?;
    if let Some(address) = args.notify {
        let told = Arc::make_mut(&mut scenario).notify(address);
        told.map_err(|finding| Failure::wrong(format!("`--notify`: {}", finding.message)))?;
    }
    let mut interrupt = context.interrupt()?;
    let journal = args.journal.map_or(Journal::Nowhere, Journal::File);
    let key = key(args.listen, args.key)?;
    let settings = Settings { listen: args.listen, key: key.into(), journal, scenario, hooks, receiver: None };
    let sandbox = Sandbox::start(settings)
        .await
        .map_err(|error| Failure::wrong(format!("the sandbox cannot start on {}: {error}", args.listen)))?;
    let (base_url, async_url, key) =
        (sandbox.base_url(), sandbox.async_url(), sandbox.key().expose_secret().to_owned());
    let address = sandbox.address();
    if context.output.json {
        let listening = json!({ "base_url": base_url, "async_url": async_url, "key": key, "listen": address });
        context.output.object(&listening);
    } else {
        context.output.result(&format!(
            "the sandbox listens on {}; it sends nothing to anybody\n\
             a profile for gateways.yaml:\n\n\
             rehearsal:\n  base_url: {base_url}\n  async_url: {async_url}\n  api_key: {{ env: CAMPAIGN_SANDBOX_KEY }}\n\n\
             then, in another terminal: export CAMPAIGN_SANDBOX_KEY={}\n\
             and send campaigns with `--gateway rehearsal`; Ctrl-C ends the sandbox\n",
            place(address),
            crate::finding::quoted(&key)
        ));
    }
    let ended = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None).await.map(|ended| *ended);
    sandbox.stop().await;
    Ok(match ended {
        Ok(Interrupt::Gently(signal) | Interrupt::AtOnce(signal)) => exit::SIGNAL.saturating_add(signal),
        _ => exit::FINE,
    })
}

/// The key that opens it; whoever can reach it from the network must not know it beforehand.
fn key(listen: SocketAddr, given: Option<String>) -> Result<String, Failure> {
    match given {
        Some(key) => Ok(key),
        None if listen.ip().to_canonical().is_loopback() => Ok(KEY.to_owned()),
        None => Err(Failure::wrong(format!(
            "others can reach {listen}, so the sandbox needs a key of its own there: add `--key KEY`, or listen on \
             127.0.0.1"
        ))),
    }
}

/// The address that it listens on, in words.
fn place(address: SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => {
            format!("{address}, which is every address of this machine; the profile below is for this machine alone")
        }
        false => address.to_string(),
    }
}

/// The scenario in that file; the usual one where none is named.
pub(super) fn scenario(context: &Context, file: Option<&Path>) -> Result<Arc<Scenario>, Failure> {
    let Some(file) = file else { return Ok(Arc::default()) };
    let loaded = load_scenario(file);
    let Some(scenario) = loaded.value else { return Err(Error::Findings(loaded.findings).into()) };
    if !context.output.json {
        context.output.findings(&loaded.findings);
    }
    Ok(Arc::new(scenario))
}

fn assumptions(context: &Context) {
    let rows: Vec<&Assumption> = crate::sandbox::assumptions().collect();
    if context.output.json {
        return context.output.object(&json!({ "assumptions": rows, "exit": exit::FINE }));
    }
    let header = ["where the contract is silent", "the sandbox", "because", "in a scenario"];
    let rows = rows.iter().map(|row| [row.what, row.choice, row.reason, row.change].map(str::to_owned));
    context.output.result(&text_table(header, rows));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_key_opens_only_what_this_machine_alone_can_reach() {
        for (listen, usual) in [
            ("127.0.0.1:8025", true),
            ("127.8.0.1:1", true),
            ("[::1]:0", true),
            ("[::ffff:127.0.0.1]:0", true),
            ("0.0.0.0:8025", false),
            ("[::]:8025", false),
            ("192.168.1.7:8025", false),
        ] {
            let listen = listen.parse().unwrap();
            assert_eq!(key(listen, None).is_ok_and(|key| key == KEY), usual, "{listen}");
            assert_eq!(key(listen, Some("own".into())).unwrap(), "own");
        }
    }

    #[test]
    fn the_address_is_told_as_it_is() {
        assert_eq!(place("127.0.0.1:8025".parse().unwrap()), "127.0.0.1:8025");
        assert!(place("0.0.0.0:8025".parse().unwrap()).starts_with("0.0.0.0:8025, which is every address"));
    }
}
