//! The webhook endpoint of a server.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::net::TcpListener;

use super::{Tasks, bind};
use crate::cli::args::ServeArgs;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::door::{self, Limits};
use crate::gateway::HookSecrets;
use crate::ledger::Ledger;
use crate::metrics::Metrics;
use crate::runs::{FoundHooks, Receiver, all_hooks, collector, keep_secrets};
use crate::webhook::{self, Hints, Proxies};

/// The default address.
const DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8041);
/// The most connections at once.
const CONNECTIONS: usize = 2_048;

/// A webhook endpoint that listens.
pub(super) struct ReceiptsDoor {
    pub(super) address: SocketAddr,
    listener: TcpListener,
    receiver: Arc<Receiver>,
    proxies: Proxies,
}

/// Opens the webhook endpoint. `None` if no profile has `hook`.
pub(super) async fn open(
    context: &Context,
    args: &ServeArgs,
    ledger: &Arc<dyn Ledger>,
) -> Result<Option<ReceiptsDoor>, Failure> {
    let files: Vec<PathBuf> = args.campaigns.iter().map(|path| inside(path.clone())).collect();
    let FoundHooks { hooks, opt_out_words } =
        all_hooks(ledger.as_ref(), &context.profiles(), &files, &context.observer).await?;
    if hooks.is_empty() {
        return match args.hooks {
            None => Ok(None),
            Some(_) => Err(Failure::wrong("no profile has a usable `hook`, so receipts cannot be verified")
                .with_help("add `hook: { public_url: …, secret: { env: NAME } }` to the profile, or remove `--hooks`")),
        };
    }
    let (listener, address) = bind(args.hooks.unwrap_or(DEFAULT), "--hooks")?;
    keep_secrets(ledger.as_ref(), &hooks).await?;
    let secrets = HookSecrets::all(hooks.iter().map(|hook| hook.secrets().clone()));
    let receiver = Arc::new(Receiver::new(Arc::clone(ledger), secrets, Timestamp::now).with_words(opt_out_words));
    Ok(Some(ReceiptsDoor { address, listener, receiver, proxies: Proxies::new(args.trusted_proxy.clone()) }))
}

/// A file from which profiles are found as for the campaigns in a folder.
fn inside(path: PathBuf) -> PathBuf {
    if path.is_dir() { path.join("campaign.yaml") } else { path }
}

impl ReceiptsDoor {
    /// Adds what it does to the tasks of the process.
    pub(super) fn add_to(self, tasks: &mut Tasks, metrics: Arc<Metrics>, hints: Hints) {
        let Self { listener, receiver, proxies, .. } = self;
        let (collector, collecting) = collector(Arc::clone(&receiver));
        let app = webhook::router(receiver, collector, proxies, metrics, hints);
        // It ends once the door has let go of it, so that whatever was let in is answered.
        tasks.add(|_| collecting);
        let limits = Limits { connections: CONNECTIONS, ..Limits::default() };
        tasks.add(|shutdown| async move {
            door::serve(listener, app, limits, shutdown).await;
            Ok(())
        });
    }
}
