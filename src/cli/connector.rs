//! `campaign connector`: the gateway as tools for AI assistants.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tokio::io::{BufReader, stdin, stdout};
use tokio::sync::watch;

use super::args::ConnectorArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::serve::bind;
use crate::connector::{Approvals, Campaigns, Connector, Entry, Friends, Sending, converse, router};
use crate::delivery::Interrupt;
use crate::door::{self, Hosts, Limits, reachable};
use crate::manifest::{KeySource, Profile};
use crate::report::plural;
use crate::runs::{Adapters, INTAKE, KeylessAccount, hook_of, key_of, numbers_in, refuse_other_secret};

/// How long the gateway has for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long calls under way have when the connector is asked to end: longer than the gateway may take for a message.
const AT_THE_END: Duration = INTAKE.saturating_add(PATIENCE);

pub(super) async fn connector(context: &Context, args: ConnectorArgs) -> Result<u8, Failure> {
    if args.print_config {
        return print_config(context, &args);
    }
    let interrupt = context.interrupt()?;
    let profile = profile(context, &args)?;
    let mut adapters = context.adapters(context.ledger().await?)?;
    // Campaigns go through the same profile, whatever file of profiles stands beside them.
    adapters.profiles.explicit = Some(adapters.profiles.place(None));
    let account = KeylessAccount::of(&adapters, &profile, PATIENCE).await?;
    let sending = sending((&profile, &adapters), &args, interrupt.clone()).await?;
    let connector = Connector::new(account, adapters, args.max_lookups_per_hour, sending, interrupt.clone());
    let connector = match &args.campaigns {
        Some(folder) => connector.with_campaigns(campaigns(context, folder, &profile)?),
        None => connector,
    };
    let at_rest = connector.at_rest();
    let exit = match args.stdio {
        true => on_stdio(context, connector, (&profile, &args), interrupt.clone()).await,
        false => listen(context, connector, &profile, &args, interrupt.clone()).await,
    };
    // A message that is on its way is not left alone, though whoever wanted it may have gone.
    tokio::select! {
        () = at_rest => {}
        () = asked_to_end_at_once(interrupt) => {}
    }
    exit
}

/// What may be sent; nothing unless it is switched on.
async fn sending(
    (profile, adapters): (&Profile, &Adapters),
    args: &ConnectorArgs,
    interrupt: watch::Receiver<Interrupt>,
) -> Result<Option<Sending>, Failure> {
    if !args.allow_send {
        return Ok(None);
    }
    if profile.async_url.is_none() {
        let name = &profile.name;
        return Err(Failure::wrong(format!(
            "`--allow-send` needs `async_url` in the profile `{name}`: assistants send through the asynchronous \
             endpoint"
        )));
    }
    if let Some(hook) = hook_of(profile)? {
        refuse_other_secret(adapters.ledger.as_ref(), profile, Some(&hook)).await?;
    }
    let only_to = match &args.only_to {
        Some(file) => Some(numbers_in(file, None).await?),
        None => None,
    };
    let approvals =
        match args.approve {
            true => Some(Approvals::open(asked_to_end(interrupt)).map_err(|error| {
                Failure::new(exit::BUG, format!("cannot open a port for pending approvals: {error}"))
            })?),
            false => None,
        };
    Ok(Some(Sending::new(args.max_sends_per_hour, only_to, approvals)))
}

fn profile(context: &Context, args: &ConnectorArgs) -> Result<Profile, Failure> {
    Ok(context.profiles().of_question(args.through.gateway.as_deref(), &context.observer)?)
}

/// The campaigns of a folder, which are for who has the key of the profile.
fn campaigns(context: &Context, folder: &Path, profile: &Profile) -> Result<Campaigns, Failure> {
    key_of(profile)?;
    let output = context.output.clone();
    Campaigns::of(folder, Box::new(move |arguments| output.command(arguments)))
        .map_err(|error| Failure::wrong(format!("cannot read the campaigns folder `{}`: {error}", folder.display())))
}

/// Answers whoever comes, who brings the key.
async fn listen(
    context: &Context,
    connector: Connector,
    profile: &Profile,
    args: &ConnectorArgs,
    interrupt: watch::Receiver<Interrupt>,
) -> Result<u8, Failure> {
    let (listener, address) = bind(args.listen, "--listen")?;
    let origins = args.origin.iter().map(|origin| origin.origin().ascii_serialization()).collect();
    let hosts = Hosts::new(address, args.origin.as_ref().and_then(reqwest::Url::host_str));
    let friends = Friends { hosts, origins, require_key: args.require_key };
    let url = format!("http://{}", reachable(address));
    if context.output.json {
        context.output.object(
            &json!({ "url": url, "send_enabled": args.allow_send, "listen": address, "pid": std::process::id() }),
        );
    } else {
        context.output.result(format!(
            "listening on {url}/mcp\n  gateway `{}`; clients send the API key as `Authorization: Bearer`\n  {}\n",
            profile.name,
            locks(args)
        ));
    }
    // Who waits for a platform that is slow is told; an assistant is patient for less.
    let limits = Limits { silence: None, end: AT_THE_END, ..Limits::default() };
    door::serve(listener, router(connector, friends), limits, asked_to_end(interrupt)).await;
    Ok(exit::FINE)
}

/// What stands between an assistant and a message, in words.
fn locks(args: &ConnectorArgs) -> String {
    let lookups = plural(args.max_lookups_per_hour.get().into(), "number");
    if !args.allow_send {
        return format!("sending is disabled (enable it with --allow-send); at most {lookups} number lookups an hour");
    }
    let only_to = args.only_to.as_ref().map(|file| format!(", only to the numbers in {}", file.display()));
    let yes = if args.approve { "you approve it with `campaign approve`" } else { "the assistant confirms it" };
    let (most, only_to) = (args.max_sends_per_hour, only_to.unwrap_or_default());
    format!("sends each message after {yes}, at most {most} an hour{only_to}; at most {lookups} number lookups an hour")
}

/// Answers the program that started this one; what it reads is answers alone.
async fn on_stdio(
    context: &Context,
    connector: Connector,
    (profile, args): (&Profile, &ConnectorArgs),
    interrupt: watch::Receiver<Interrupt>,
) -> Result<u8, Failure> {
    let key = key_of(profile)?;
    let (name, locks) = (&profile.name, locks(args));
    context.output.note(&format!(
        "serving on standard input and output; calls go through gateway `{name}` with the key in its profile; {locks}"
    ));
    let shutdown = asked_to_end(interrupt.clone());
    let ended = tokio::select! {
        ended = converse(connector, key, (BufReader::new(stdin()), stdout()), shutdown) => ended,
        // A client that reads nothing any more would be waited for.
        () = asked_to_end_at_once(interrupt) => Ok(()),
    };
    match ended {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::storage(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(exit::FINE),
    }
}

/// What comes when the process is asked to end.
async fn asked_to_end(mut interrupt: watch::Receiver<Interrupt>) {
    let _ = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None).await;
}

/// What comes when the process is asked to end without waiting for anything.
async fn asked_to_end_at_once(mut interrupt: watch::Receiver<Interrupt>) {
    if interrupt.wait_for(|interrupt| matches!(interrupt, Interrupt::AtOnce(_))).await.is_err() {
        // Nobody can ask any more.
        std::future::pending::<()>().await;
    }
}

/// Prints what a client's file says of the connector that these arguments would start.
fn print_config(context: &Context, args: &ConnectorArgs) -> Result<u8, Failure> {
    let entry = match &args.origin {
        _ if args.stdio => entry_to_start(context, args)?,
        Some(origin) => Entry::Http(format!("{}/mcp", origin.origin().ascii_serialization())),
        None if args.listen.port() == 0 => {
            return Err(Failure::wrong("clients need a fixed port; set one with `--listen`"));
        }
        None => Entry::Http(format!("http://{}/mcp", reachable(args.listen))),
    };
    let file = args.client.file(&entry);
    if context.output.json {
        context.output.object(&file);
    } else {
        context.output.unwrapped(&format!("{file:#}\n"));
    }
    Ok(exit::FINE)
}

/// How a client starts the connector: with the profile that is found from here, wherever the client is.
fn entry_to_start(context: &Context, args: &ConnectorArgs) -> Result<Entry, Failure> {
    let profile = profile(context, args)?;
    let program = std::env::current_exe().map_err(|error| Failure::new(exit::BUG, error.to_string()))?;
    let variable = match profile.api_key {
        KeySource::Env(name) => Some(name),
        KeySource::File(_) => None,
    };
    Ok(Entry::Stdio {
        command: program.to_string_lossy().into_owned(),
        arguments: args.to_start(&context.global, context.profiles().place(None)),
        variable,
    })
}
