//! `campaign sandbox`: the emulated gateway as a server.

use std::path::Path;
use std::sync::Arc;

use comfy_table::{ContentArrangement, Table, presets};
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::args::SandboxArgs;
use super::context::Context;
use super::exit::{self, Failure};
use super::signals;
use crate::delivery::Interrupt;
use crate::sandbox::{Assumption, Hooks, Journal, Sandbox, Scenario, Settings, load_scenario};

/// The columns of a table that goes to no terminal.
const PIPED: u16 = 120;

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
    let mut interrupt = signals::listen().map_err(|error| Failure::new(exit::BUG, error.to_string()))?;
    let journal = args.journal.map_or(Journal::Nowhere, Journal::File);
    let settings = Settings { listen: args.listen, key: args.key.clone().into(), journal, scenario, hooks };
    let sandbox = Sandbox::start(settings)
        .await
        .map_err(|error| Failure::wrong(format!("the sandbox cannot start on {}: {error}", args.listen)))?;
    let (base_url, async_url, key) =
        (sandbox.base_url(), sandbox.async_url(), sandbox.key().expose_secret().to_owned());
    if context.output.json {
        context.output.object(&json!({ "base_url": base_url, "async_url": async_url, "key": key }));
    } else {
        context.output.result(&format!(
            "the sandbox listens; it sends nothing to anybody\n\
             a profile for gateways.yaml:\n\n\
             rehearsal:\n  base_url: {base_url}\n  async_url: {async_url}\n  api_key: {{ env: CAMPAIGN_SANDBOX_KEY }}\n\n\
             then, in another terminal: export CAMPAIGN_SANDBOX_KEY={}\n\
             and send campaigns with `--gateway rehearsal`; Ctrl-C ends the sandbox\n",
            super::suggested::quoted(&key)
        ));
    }
    let ended = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None).await.map(|ended| *ended);
    sandbox.stop().await;
    Ok(match ended {
        Ok(Interrupt::Gently(signal) | Interrupt::AtOnce(signal)) => exit::SIGNAL.saturating_add(signal),
        _ => exit::FINE,
    })
}

/// The scenario in that file; the usual one where none is named.
pub(super) fn scenario(context: &Context, file: Option<&Path>) -> Result<Arc<Scenario>, Failure> {
    let Some(file) = file else { return Ok(Arc::default()) };
    let loaded = load_scenario(file);
    let Some(scenario) = loaded.value else { return Err(Failure::findings(loaded.findings)) };
    if !context.output.json {
        context.output.findings(&loaded.findings);
    }
    Ok(Arc::new(scenario))
}

fn assumptions(context: &Context) {
    if context.output.json {
        let rows: Vec<_> = crate::sandbox::assumptions()
            .map(|row| {
                let Assumption { id, what, choice, reason, change } = row;
                json!({ "id": id, "what": what, "choice": choice, "reason": reason, "scenario": change })
            })
            .collect();
        return context.output.object(&json!({ "assumptions": rows, "exit": exit::FINE }));
    }
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic).set_header([
        "where the contract is silent",
        "the sandbox",
        "because",
        "in a scenario",
    ]);
    if table.width().is_none() {
        table.set_width(PIPED);
    }
    for row in crate::sandbox::assumptions() {
        table.add_row([row.what, row.choice, row.reason, row.change]);
    }
    context.output.result(&format!("{table}\n"));
}
