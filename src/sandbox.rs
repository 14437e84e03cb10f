//! `campaign sandbox`: runs the emulated gateway as a server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use secrecy::ExposeSecret as _;
use serde_json::json;

use super::args::SandboxArgs;
use super::context::Context;
use super::exit;
use super::exit::CommandFailure;
use super::text::{StyledLine, StyledText, copyable, dim, plain, strong};
use campaign_core::finding::quote_for_shell;
use campaign_engine::delivery::Interrupt;
use campaign_runs::Error;
use campaign_sandbox::{Assumption, Journal, Sandbox, SandboxSettings, Scenario, WebhookPolicy, load_scenario};

/// The default key, only for a sandbox that no other machine can reach.
const DEFAULT_KEY: &str = "sandbox";

pub(super) async fn run_sandbox(context: &Context, args: SandboxArgs) -> Result<u8, CommandFailure> {
    if args.assumptions {
        print_assumptions(context);
        return Ok(exit::SUCCESS);
    }
    let hooks = if args.any_hook { WebhookPolicy::Anywhere } else { WebhookPolicy::Loopback };
    let mut scenario = load_scenario_file(context, args.scenario.as_deref())?;
    if let Some(address) = args.notify {
        let result = Arc::make_mut(&mut scenario).set_notify_address(address);
        result.map_err(|finding| CommandFailure::invalid(format!("`--notify`: {}", finding.message)))?;
    }
    let mut interrupt = context.watch_signals()?;
    let journal = args.journal.map_or(Journal::Nowhere, Journal::File);
    let key = choose_key(args.listen, args.key)?;
    let settings = SandboxSettings { listen: args.listen, key: key.into(), journal, scenario, hooks, receiver: None };
    let sandbox = Sandbox::start(settings)
        .await
        .map_err(|error| CommandFailure::invalid(format!("cannot start the sandbox on {}: {error}", args.listen)))?;
    let (base_url, async_url, key) =
        (sandbox.base_url(), sandbox.async_url(), sandbox.key().expose_secret().to_owned());
    let address = sandbox.address();
    if context.output.json {
        let listening = json!({ "base_url": base_url, "async_url": async_url, "key": key, "listen": address });
        context.output.print_object(&listening);
    } else {
        context.output.print_result(describe_started_sandbox(address, &base_url, &async_url, &key));
    }
    let interrupted = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None).await.map(|interrupt| *interrupt);
    sandbox.stop().await;
    Ok(match interrupted.ok().and_then(Interrupt::signal) {
        Some(signal) => exit::SIGNAL.saturating_add(signal),
        None => exit::SUCCESS,
    })
}

/// Describes how to use the started sandbox.
fn describe_started_sandbox(address: SocketAddr, base_url: &str, async_url: &str, key: &str) -> StyledText {
    let mut text = StyledText::new();
    let listens =
        [plain("The sandbox is listening on "), strong(describe_address(address)), plain(". It sends no messages.")];
    text.push(StyledLine::success(listens));
    text.add_blank();
    text.add_line(0, [plain("Add this profile to gateways.yaml:")]);
    text.add_blank();
    for line in [
        "rehearsal:".to_owned(),
        format!("  base_url: {base_url}"),
        format!("  async_url: {async_url}"),
        "  api_key: { env: CAMPAIGN_SANDBOX_KEY }".to_owned(),
    ] {
        text.push(StyledLine::new([plain(line)]).unbroken());
    }
    text.add_blank();
    text.add_line(
        0,
        [
            plain("In another terminal, set its key: "),
            copyable(format!("export CAMPAIGN_SANDBOX_KEY={}", quote_for_shell(key))),
        ],
    );
    text.add_line(0, [plain("Then send campaigns with `--gateway rehearsal`. Press Ctrl-C to stop the sandbox.")]);
    text
}

/// Chooses the API key of the sandbox. A sandbox that other machines can reach must be given a key.
fn choose_key(listen: SocketAddr, option: Option<String>) -> Result<String, CommandFailure> {
    match option {
        Some(key) => Ok(key),
        None if listen.ip().to_canonical().is_loopback() => Ok(DEFAULT_KEY.to_owned()),
        None => Err(CommandFailure::invalid(format!(
            "other machines can reach {listen}, so the sandbox needs its own key: add `--key KEY`, or listen on 127.0.0.1"
        ))),
    }
}

/// Describes the address of the sandbox.
fn describe_address(address: SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => {
            format!("{address} (all addresses of this machine; the profile below works only locally)")
        }
        false => address.to_string(),
    }
}

/// Loads the scenario in a file, or the default scenario if no file is given.
pub(super) fn load_scenario_file(context: &Context, file: Option<&Path>) -> Result<Arc<Scenario>, CommandFailure> {
    let Some(file) = file else { return Ok(Arc::default()) };
    let loaded = load_scenario(file);
    let Some(scenario) = loaded.value else { return Err(Error::Findings(loaded.findings).into()) };
    if !context.output.json {
        context.output.print_findings(&loaded.findings);
    }
    Ok(Arc::new(scenario))
}

fn print_assumptions(context: &Context) {
    let rows: Vec<&Assumption> = campaign_sandbox::assumptions().collect();
    if context.output.json {
        return context.output.print_object(&json!({ "assumptions": rows, "exit": exit::SUCCESS }));
    }
    let mut text = StyledText::new();
    for Assumption { what, choice, reason, change, .. } in rows {
        text.add_line(0, [strong(*what)]);
        let details = [("the sandbox", choice), ("because", reason), ("in a scenario", change)];
        for (label, words) in details.into_iter().filter(|(_, words)| !words.is_empty()) {
            text.push(StyledLine::new([dim(format!("{label}: ")), plain(*words)]).with_indent(2));
        }
    }
    context.output.print_result(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_key_is_only_for_loopback() {
        for (listen, is_default) in [
            ("127.0.0.1:8025", true),
            ("127.8.0.1:1", true),
            ("[::1]:0", true),
            ("[::ffff:127.0.0.1]:0", true),
            ("0.0.0.0:8025", false),
            ("[::]:8025", false),
            ("192.168.1.7:8025", false),
        ] {
            let listen = listen.parse().unwrap();
            assert_eq!(choose_key(listen, None).is_ok_and(|key| key == DEFAULT_KEY), is_default, "{listen}");
            assert_eq!(choose_key(listen, Some("own".into())).unwrap(), "own");
        }
    }

    #[test]
    fn wildcard_address_is_explained() {
        assert_eq!(describe_address("127.0.0.1:8025".parse().unwrap()), "127.0.0.1:8025");
        assert!(describe_address("0.0.0.0:8025".parse().unwrap()).starts_with("0.0.0.0:8025 (all addresses"));
    }
}
