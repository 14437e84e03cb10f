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
use super::failure::CommandFailure;
use super::serve::bind_listener;
use crate::connector::{
    Approvals, Campaigns, ClientEntry, Connector, ConnectorAccess, SendPolicy, router, serve_stdio,
};
use crate::delivery::Interrupt;
use crate::door::{self, ConnectionLimits, Hosts, connectable_address};
use crate::manifest::{Profile, SecretSource};
use crate::report::format_count;
use crate::runs::{
    Adapters, INTAKE_TIMEOUT, KeylessAccount, load_hook, read_api_key, read_numbers, refuse_other_secret,
};

/// How long the gateway has for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long calls under way have when the connector is asked to end: longer than the gateway may take for a message.
const SHUTDOWN_TIMEOUT: Duration = INTAKE_TIMEOUT.saturating_add(ANSWER_TIMEOUT);

pub(super) async fn run_connector(context: &Context, args: ConnectorArgs) -> Result<u8, CommandFailure> {
    if args.print_config {
        return print_config(context, &args);
    }
    let interrupt = context.watch_signals()?;
    let profile = load_profile(context, &args)?;
    let mut adapters = context.adapters(context.open_ledger().await?)?;
    // Campaigns go through the same profile, whatever file of profiles stands beside them.
    adapters.profiles.explicit = Some(adapters.profiles.new_profile_path(None));
    let account = KeylessAccount::open(&adapters, &profile, ANSWER_TIMEOUT).await?;
    let sending = sending_permission((&profile, &adapters), &args, interrupt.clone()).await?;
    let connector = Connector::new(account, adapters, args.max_lookups_per_hour, sending, interrupt.clone());
    let connector = match &args.campaigns {
        Some(folder) => connector.with_campaigns(folder_campaigns(context, folder, &profile)?),
        None => connector,
    };
    let at_rest = connector.wait_until_idle();
    let exit = match args.stdio {
        true => run_over_stdio(context, connector, (&profile, &args), interrupt.clone()).await,
        false => serve_http(context, connector, &profile, &args, interrupt.clone()).await,
    };
    // A message that is on its way is not left alone, though whoever wanted it may have gone.
    tokio::select! {
        () = at_rest => {}
        () = wait_for_second_interrupt(interrupt) => {}
    }
    exit
}

/// What may be sent; nothing unless it is switched on.
async fn sending_permission(
    (profile, adapters): (&Profile, &Adapters),
    args: &ConnectorArgs,
    interrupt: watch::Receiver<Interrupt>,
) -> Result<Option<SendPolicy>, CommandFailure> {
    if !args.allow_send {
        return Ok(None);
    }
    if profile.async_url.is_none() {
        let name = &profile.name;
        return Err(CommandFailure::invalid(format!(
            "`--allow-send` needs `async_url` in the profile `{name}`: assistants send through the asynchronous \
             endpoint"
        )));
    }
    if let Some(hook) = load_hook(profile)? {
        refuse_other_secret(adapters.ledger.as_ref(), profile, Some(&hook)).await?;
    }
    let only_to = match &args.only_to {
        Some(file) => Some(read_numbers(file, None).await?),
        None => None,
    };
    let approvals = match args.approve {
        true => Some(Approvals::start(wait_for_interrupt(interrupt)).map_err(|error| {
            CommandFailure::new(exit::BUG, format!("cannot open a port for pending approvals: {error}"))
        })?),
        false => None,
    };
    Ok(Some(SendPolicy::new(args.max_sends_per_hour, only_to, approvals)))
}

fn load_profile(context: &Context, args: &ConnectorArgs) -> Result<Profile, CommandFailure> {
    Ok(context.profiles().find_for_query(args.through.gateway.as_deref(), &context.observer)?)
}

/// The campaigns of a folder, which are for who has the key of the profile.
fn folder_campaigns(context: &Context, folder: &Path, profile: &Profile) -> Result<Campaigns, CommandFailure> {
    read_api_key(profile)?;
    let output = context.output.clone();
    Campaigns::from_folder(folder, Box::new(move |arguments| output.command(arguments))).map_err(|error| {
        CommandFailure::invalid(format!("cannot read the campaigns folder `{}`: {error}", folder.display()))
    })
}

/// Answers whoever comes, who brings the key.
async fn serve_http(
    context: &Context,
    connector: Connector,
    profile: &Profile,
    args: &ConnectorArgs,
    interrupt: watch::Receiver<Interrupt>,
) -> Result<u8, CommandFailure> {
    let (listener, address) = bind_listener(args.listen, "--listen")?;
    let origins = args.origin.iter().map(|origin| origin.origin().ascii_serialization()).collect();
    let hosts = Hosts::new(address, args.origin.as_ref().and_then(reqwest::Url::host_str));
    let friends = ConnectorAccess { hosts, origins, require_key: args.require_key };
    let url = format!("http://{}", connectable_address(address));
    if context.output.json {
        context.output.print_object(
            &json!({ "url": url, "send_enabled": args.allow_send, "listen": address, "pid": std::process::id() }),
        );
    } else {
        context.output.print_result(format!(
            "listening on {url}/mcp\n  gateway `{}`; clients send the API key as `Authorization: Bearer`\n  {}\n",
            profile.name,
            describe_locks(args)
        ));
    }
    // Who waits for a platform that is slow is told; an assistant is patient for less.
    let limits = ConnectionLimits { silence: None, end: SHUTDOWN_TIMEOUT, ..ConnectionLimits::default() };
    door::serve_connections(listener, router(connector, friends), limits, wait_for_interrupt(interrupt)).await;
    Ok(exit::SUCCESS)
}

/// What stands between an assistant and a message, in words.
fn describe_locks(args: &ConnectorArgs) -> String {
    let lookups = format_count(args.max_lookups_per_hour.get().into(), "number");
    if !args.allow_send {
        return format!("sending is disabled (enable it with --allow-send); at most {lookups} number lookups an hour");
    }
    let only_to = args.only_to.as_ref().map(|file| format!(", only to the numbers in {}", file.display()));
    let yes = if args.approve { "you approve it with `campaign approve`" } else { "the assistant confirms it" };
    let (most, only_to) = (args.max_sends_per_hour, only_to.unwrap_or_default());
    format!("sends each message after {yes}, at most {most} an hour{only_to}; at most {lookups} number lookups an hour")
}

/// Answers the program that started this one; what it reads is answers alone.
async fn run_over_stdio(
    context: &Context,
    connector: Connector,
    (profile, args): (&Profile, &ConnectorArgs),
    interrupt: watch::Receiver<Interrupt>,
) -> Result<u8, CommandFailure> {
    let key = read_api_key(profile)?;
    let (name, locks) = (&profile.name, describe_locks(args));
    context.output.print_note(&format!(
        "serving on standard input and output; calls go through gateway `{name}` with the key in its profile; {locks}"
    ));
    let shutdown = wait_for_interrupt(interrupt.clone());
    let ended = tokio::select! {
        ended = serve_stdio(connector, key, (BufReader::new(stdin()), stdout()), shutdown) => ended,
        // A client that reads nothing any more would be waited for.
        () = wait_for_second_interrupt(interrupt) => Ok(()),
    };
    match ended {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CommandFailure::storage_failure(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(exit::SUCCESS),
    }
}

/// What comes when the process is asked to end.
async fn wait_for_interrupt(mut interrupt: watch::Receiver<Interrupt>) {
    let _ = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None).await;
}

/// What comes when the process is asked to end without waiting for anything.
async fn wait_for_second_interrupt(mut interrupt: watch::Receiver<Interrupt>) {
    if interrupt.wait_for(|interrupt| matches!(interrupt, Interrupt::Immediate(_))).await.is_err() {
        // Nobody can ask any more.
        std::future::pending::<()>().await;
    }
}

/// Prints what a client's file says of the connector that these arguments would start.
fn print_config(context: &Context, args: &ConnectorArgs) -> Result<u8, CommandFailure> {
    let entry = match &args.origin {
        _ if args.stdio => client_entry(context, args)?,
        Some(origin) => ClientEntry::Http(format!("{}/mcp", origin.origin().ascii_serialization())),
        None if args.listen.port() == 0 => {
            return Err(CommandFailure::invalid("clients need a fixed port; set one with `--listen`"));
        }
        None => ClientEntry::Http(format!("http://{}/mcp", connectable_address(args.listen))),
    };
    let file = args.client.config_file(&entry);
    if context.output.json {
        context.output.print_object(&file);
    } else {
        context.output.print_unwrapped(&format!("{file:#}\n"));
    }
    Ok(exit::SUCCESS)
}

/// How a client starts the connector: with the profile that is found from here, wherever the client is.
fn client_entry(context: &Context, args: &ConnectorArgs) -> Result<ClientEntry, CommandFailure> {
    let profile = load_profile(context, args)?;
    let program = std::env::current_exe().map_err(|error| CommandFailure::new(exit::BUG, error.to_string()))?;
    let variable = match profile.api_key {
        SecretSource::Env(name) => Some(name),
        SecretSource::File(_) => None,
    };
    Ok(ClientEntry::Stdio {
        command: program.to_string_lossy().into_owned(),
        arguments: args.start_arguments(&context.global, context.profiles().new_profile_path(None)),
        variable,
    })
}
