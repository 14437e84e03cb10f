//! The webhook endpoint of a server.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::net::TcpListener;

use super::{ServerTasks, bind_listener};
use crate::cli::args::ServeArgs;
use crate::cli::context::Context;
use crate::cli::failure::CommandFailure;
use crate::door::{self, ConnectionLimits};
use crate::gateway::WebhookSecrets;
use crate::ledger::Ledger;
use crate::metrics::Metrics;
use crate::runs::{ProfileHooks, WebhookReceiver, create_collector, load_all_hooks, store_hook_secrets};
use crate::webhook::{self, Hints, TrustedProxies};

/// The default address.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8041);
/// The most connections at once.
const MAX_CONNECTIONS: usize = 2_048;

/// A webhook endpoint that listens.
pub(super) struct WebhookEndpoint {
    pub(super) address: SocketAddr,
    listener: TcpListener,
    receiver: Arc<WebhookReceiver>,
    proxies: TrustedProxies,
}

/// Opens the webhook endpoint. `None` if no profile has `hook`.
pub(super) async fn open_webhook_endpoint(
    context: &Context,
    args: &ServeArgs,
    ledger: &Arc<dyn Ledger>,
) -> Result<Option<WebhookEndpoint>, CommandFailure> {
    let files: Vec<PathBuf> = args.campaigns.iter().map(|path| campaign_path_in(path.clone())).collect();
    let ProfileHooks { hooks, opt_out_words } =
        load_all_hooks(ledger.as_ref(), &context.profiles(), &files, &context.observer).await?;
    if hooks.is_empty() {
        return match args.hooks {
            None => Ok(None),
            Some(_) => Err(CommandFailure::invalid("no profile has a usable `hook`, so receipts cannot be verified")
                .with_help("add `hook: { public_url: …, secret: { env: NAME } }` to the profile, or remove `--hooks`")),
        };
    }
    let (listener, address) = bind_listener(args.hooks.unwrap_or(DEFAULT_ADDRESS), "--hooks")?;
    store_hook_secrets(ledger.as_ref(), &hooks).await?;
    let secrets = WebhookSecrets::merge(hooks.iter().map(|hook| hook.secrets().clone()));
    let receiver =
        Arc::new(WebhookReceiver::new(Arc::clone(ledger), secrets, Timestamp::now).with_opt_out_words(opt_out_words));
    Ok(Some(WebhookEndpoint { address, listener, receiver, proxies: TrustedProxies::new(args.trusted_proxy.clone()) }))
}

/// A file from which profiles are found as for the campaigns in a folder.
fn campaign_path_in(path: PathBuf) -> PathBuf {
    if path.is_dir() { path.join("campaign.yaml") } else { path }
}

impl WebhookEndpoint {
    /// Adds what it does to the tasks of the process.
    pub(super) fn add_to(self, tasks: &mut ServerTasks, metrics: Arc<Metrics>, hints: Hints) {
        let Self { listener, receiver, proxies, .. } = self;
        let (collector, collecting) = create_collector(Arc::clone(&receiver));
        let app = webhook::router(receiver, collector, proxies, metrics, hints);
        // It ends once the door has let go of it, so that whatever was let in is answered.
        tasks.spawn(|_| collecting);
        let limits = ConnectionLimits { connections: MAX_CONNECTIONS, ..ConnectionLimits::default() };
        tasks.spawn(|shutdown| async move {
            door::serve_connections(listener, app, limits, shutdown).await;
            Ok(())
        });
    }
}
