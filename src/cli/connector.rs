//! `campaign connector`: the gateway as tools for AI assistants.

use std::time::Duration;

use serde_json::json;

use super::args::ConnectorArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::serve::bind;
use crate::connector::{Connector, Friends, router};
use crate::delivery::Interrupt;
use crate::door::{self, Hosts, Limits, reachable};
use crate::runs::KeylessAccount;

/// How long the gateway has for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn connector(context: &Context, args: ConnectorArgs) -> Result<u8, Failure> {
    if args.print_config {
        return print_config(context, &args);
    }
    let mut interrupt = context.interrupt()?;
    let profile = context.profiles().of_question(args.through.gateway.as_deref(), &context.observer)?;
    let adapters = context.adapters(context.ledger().await?)?;
    let account = KeylessAccount::of(&adapters, &profile, PATIENCE).await?;
    let (listener, address) = bind(args.listen, "--listen")?;
    let origins = args.origin.iter().map(|origin| origin.origin().ascii_serialization()).collect();
    let hosts = Hosts::new(address, args.origin.as_ref().and_then(reqwest::Url::host_str));
    let connector = Connector::new(account, adapters, Friends { hosts, origins }, args.require_key, interrupt.clone());
    let url = format!("http://{}", reachable(address));
    if context.output.json {
        context
            .output
            .object(&json!({ "url": url, "send_enabled": false, "listen": address, "pid": std::process::id() }));
    } else {
        context.output.result(&format!(
            "listening on {url}/mcp\n  to the gateway `{}`; each call brings its key as `Authorization: Bearer`\n",
            profile.name
        ));
    }
    // Who waits for a platform that is slow is told; an assistant is patient for less.
    let limits = Limits { silence: None, ..Limits::default() };
    let shutdown = async {
        let _ = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None).await;
    };
    door::serve(listener, router(connector), limits, shutdown).await;
    Ok(exit::FINE)
}

/// Prints what a client's file says of the connector that these arguments would start.
fn print_config(context: &Context, args: &ConnectorArgs) -> Result<u8, Failure> {
    let url = match &args.origin {
        Some(origin) => format!("{}/mcp", origin.origin().ascii_serialization()),
        None if args.listen.port() == 0 => {
            return Err(Failure::wrong("`--listen` has no port yet that a client could be told: name one"));
        }
        None => format!("http://{}/mcp", reachable(args.listen)),
    };
    let file = args.client.file(&url);
    if context.output.json {
        context.output.object(&file);
    } else {
        context.output.result(&format!("{file:#}\n"));
    }
    Ok(exit::FINE)
}
