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
use super::exit::CommandFailure;
use super::hint::error_hint;
use super::serve::bind_listener;
use super::state_folder::LedgerPurpose;
use campaign_engine::delivery::Interrupt;
use campaign_engine::report::format_count;
use campaign_manifest::{Profile, SecretSource};
use campaign_net::{ConnectionLimits, Hosts, connectable_address};
use campaign_runs::{
    Adapters, INTAKE_TIMEOUT, KeylessAccount, load_hook, read_api_key, read_numbers, refuse_other_secret,
};
use campaign_server::connector::{
    Approvals, Campaigns, ClientEntry, Connector, ConnectorAccess, EntrySecret, OperatorAdvice, SendPolicy, router,
    serve_stdio,
};

/// The timeout of a request to the gateway.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The grace period for calls in flight at shutdown: longer than the gateway can take to accept a message.
const SHUTDOWN_TIMEOUT: Duration = INTAKE_TIMEOUT.saturating_add(ANSWER_TIMEOUT);

pub(super) async fn run_connector(context: &Context, args: ConnectorArgs) -> Result<u8, CommandFailure> {
    if args.print_config {
        return print_config(context, &args);
    }
    let interrupt = context.watch_signals()?;
    let profile = load_profile(context, &args)?;
    let purpose = if args.allow_send { LedgerPurpose::Sending } else { LedgerPurpose::SharedRecords };
    let mut adapters = context.adapters(context.open_ledger(purpose).await?)?;
    // Campaigns use the same profile, even if their folder has another gateways.yaml.
    adapters.profiles.explicit = Some(adapters.profiles.new_profile_path(None));
    let account = KeylessAccount::open(&adapters, &profile, ANSWER_TIMEOUT).await?;
    let sending = build_send_policy(&profile, &adapters, &args, interrupt.clone()).await?;
    let connector = Connector::new(account, adapters, args.max_lookups_per_hour, sending, interrupt.clone());
    let connector = match &args.campaigns {
        Some(folder) => connector.with_campaigns(load_folder_campaigns(context, folder, &profile)?),
        None => connector,
    };
    let idle = connector.wait_until_idle();
    let exit = match args.stdio {
        true => run_over_stdio(context, connector, &profile, &args, interrupt.clone()).await,
        false => serve_http(context, connector, &profile, &args, interrupt.clone()).await,
    };
    // Wait for messages in flight, even if the client has disconnected.
    tokio::select! {
        () = idle => {}
        () = wait_for_second_interrupt(interrupt) => {}
    }
    exit
}

/// Builds the policy under which assistants can send messages. Returns `None` without `--allow-send`.
async fn build_send_policy(
    profile: &Profile,
    adapters: &Adapters,
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
        Some(file) => Some(read_numbers(file).await?),
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
    Ok(context.profiles().find_for_inquiry(args.gateway_option.gateway.as_deref(), &context.observer)?)
}

/// Loads the campaigns of a folder. The API key of the profile must be readable, because campaigns need it.
fn load_folder_campaigns(context: &Context, folder: &Path, profile: &Profile) -> Result<Campaigns, CommandFailure> {
    read_api_key(profile)?;
    let (output, options) = (context.output.clone(), context.output.options.clone());
    let advice = OperatorAdvice {
        command: Box::new(move |arguments| output.command(arguments)),
        remedy: Box::new(move |error| error_hint(error, &options)),
    };
    Campaigns::open(folder, advice).map_err(|error| {
        CommandFailure::invalid(format!("cannot read the campaigns folder `{}`: {error}", folder.display()))
    })
}

/// Serves clients over HTTP. Each client authenticates with the API key.
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
    let access = ConnectorAccess { hosts, origins, require_key: args.require_key };
    let url = format!("http://{}", connectable_address(address));
    if context.output.json {
        context.output.print_object(
            &json!({ "url": url, "send_enabled": args.allow_send, "listen": address, "pid": std::process::id() }),
        );
    } else {
        context.output.print_result(format!(
            "listening on {url}/mcp\n  gateway `{}`; clients send the API key as `Authorization: Bearer`\n  {}\n",
            profile.name,
            describe_permissions(args)
        ));
    }
    // Slow requests get progress messages, so idle connections need no timeout.
    let limits =
        ConnectionLimits { idle_timeout: None, shutdown_timeout: SHUTDOWN_TIMEOUT, ..ConnectionLimits::default() };
    campaign_net::serve_connections(listener, router(connector, access), limits, wait_for_interrupt(interrupt)).await;
    Ok(exit::SUCCESS)
}

/// Describes what an assistant may do, and what requires an approval.
fn describe_permissions(args: &ConnectorArgs) -> String {
    let lookups = format_count(args.max_lookups_per_hour.get().into(), "number");
    if !args.allow_send {
        return format!("sending is disabled (enable it with --allow-send); lookups are limited to {lookups} an hour");
    }
    let only_to = args.only_to.as_ref().map(|file| format!(", only to the numbers in {}", file.display()));
    let consent = if args.approve { "you approve it with `campaign approve`" } else { "the assistant confirms it" };
    let (max_sends, only_to) = (args.max_sends_per_hour, only_to.unwrap_or_default());
    format!(
        "sends each message after {consent}, at most {max_sends} an hour{only_to}; looks up at most {lookups} an hour"
    )
}

/// Serves the program that started this process. Standard output carries protocol messages only.
async fn run_over_stdio(
    context: &Context,
    connector: Connector,
    profile: &Profile,
    args: &ConnectorArgs,
    interrupt: watch::Receiver<Interrupt>,
) -> Result<u8, CommandFailure> {
    let key = read_api_key(profile)?;
    let (name, permissions) = (&profile.name, describe_permissions(args));
    context.output.print_note(&format!(
        "serving on standard input and output; calls go through the gateway `{name}` with the key in its profile; \
         {permissions}"
    ));
    let shutdown = wait_for_interrupt(interrupt.clone());
    let ended = tokio::select! {
        ended = serve_stdio(connector, key, BufReader::new(stdin()), stdout(), shutdown) => ended,
        // A client that no longer reads would block the shutdown.
        () = wait_for_second_interrupt(interrupt) => Ok(()),
    };
    match ended {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CommandFailure::storage_failure(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(exit::SUCCESS),
    }
}

/// Waits until the first signal asks the process to stop.
async fn wait_for_interrupt(mut interrupt: watch::Receiver<Interrupt>) {
    let _ = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None).await;
}

/// Waits until a second signal asks the process to stop at once.
async fn wait_for_second_interrupt(mut interrupt: watch::Receiver<Interrupt>) {
    if interrupt.wait_for(|interrupt| matches!(interrupt, Interrupt::Immediate(_))).await.is_err() {
        // The signal channel is closed, so no signal can arrive.
        std::future::pending::<()>().await;
    }
}

/// Prints the configuration of a client that starts this connector, or that connects to it over HTTP.
fn print_config(context: &Context, args: &ConnectorArgs) -> Result<u8, CommandFailure> {
    let entry = match &args.origin {
        _ if args.stdio => build_client_entry(context, args)?,
        Some(origin) => ClientEntry::Http(format!("{}/mcp", origin.origin().ascii_serialization())),
        None if args.listen.port() == 0 => {
            return Err(CommandFailure::invalid("clients need a fixed port; set one with `--listen`"));
        }
        None => ClientEntry::Http(format!("http://{}/mcp", connectable_address(args.listen))),
    };
    let file = args.client.config_file(entry);
    if context.output.json {
        context.output.print_foreign_json(&file);
    } else {
        context.output.print_unwrapped(&format!("{file:#}\n"));
    }
    Ok(exit::SUCCESS)
}

/// Builds the entry that starts the connector. The entry names the gateways file, because the client runs in another
/// folder.
fn build_client_entry(context: &Context, args: &ConnectorArgs) -> Result<ClientEntry, CommandFailure> {
    let profile = load_profile(context, args)?;
    let program = std::env::current_exe().map_err(|error| CommandFailure::new(exit::BUG, error.to_string()))?;
    let variable = |source| match source {
        SecretSource::Env(name) => Some(name),
        SecretSource::File(_) => None,
    };
    let key = variable(profile.api_key).map(EntrySecret::api_key);
    // Messages and campaigns need the webhook secrets; lookups and other inquiries do not.
    let hook = profile.hook.filter(|_| args.allow_send || args.campaigns.is_some());
    let hook_secrets = hook.into_iter().flat_map(|hook| hook.secrets).filter_map(variable).enumerate();
    let hook_secrets = hook_secrets.map(|(index, variable)| EntrySecret::hook(variable, index));
    Ok(ClientEntry::Stdio {
        command: program.to_string_lossy().into_owned(),
        arguments: args.start_arguments(&context.global, context.profiles().new_profile_path(None)),
        secrets: key.into_iter().chain(hook_secrets).collect(),
    })
}
