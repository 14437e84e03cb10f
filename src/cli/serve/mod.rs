//! `campaign serve`: starts the dashboard, the webhook endpoint and the scheduler.
//!
//! - `hooks`: the webhook endpoint;
//! - `visitors`: sign-in links and sessions.
//!
//! Each task runs until the shutdown or until the ledger fails.

mod hooks;
mod visitors;

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use reqwest::Url;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::cli::args::{ServeArgs, ServeCommand};
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::schedule::told;
use crate::cli::text::{Line, Text, caution, plain, strong};
use crate::delivery::Interrupt;
use crate::door::{self, Hosts, Limits, reachable};
use crate::ledger::{Ledger, LedgerError};
use crate::metrics::Metrics;
use crate::notify;
use crate::runs::{Adapters, person};
use crate::schedule::{Daemon, Runs};
use crate::web::{self, Counted, Health, Pages, TokenFile, Views, Visitors};
use crate::webhook;

/// How often the schedules are read again.
const REFRESH: Duration = Duration::from_secs(15);

/// The most hints of the gateway that wait.
const HINTS: usize = 1_024;

pub(super) async fn command(context: &Context, mut args: ServeArgs) -> Result<u8, Failure> {
    match args.command.take() {
        None => serve(context, args).await,
        Some(ServeCommand::Link(link)) => visitors::link(context, &link),
        Some(ServeCommand::List) => visitors::list(context),
        Some(ServeCommand::Revoke { name }) => visitors::revoke(context, &name),
    }
}

async fn serve(context: &Context, args: ServeArgs) -> Result<u8, Failure> {
    let interrupt = context.interrupt()?;
    // A missing file would silently never run.
    if let Some(missing) = args.campaigns.iter().find(|path| !path.exists()) {
        let missing = missing.display();
        return Err(Failure::wrong(format!(
            "`{missing}` does not exist; specify campaign files or folders of campaign files"
        )));
    }
    let metrics = Arc::new(Metrics::default());
    let ledger = context.server_ledger(&metrics).await?;
    let (listener, address) = bind(args.listen, "--listen")?;
    let metrics_door = args.metrics.map(|address| bind(address, "--metrics")).transpose()?;
    let hooks = hooks::open(context, &args, &ledger).await?;

    let schedules = daemon(context, (Arc::clone(&ledger), Arc::clone(&metrics)), args.campaigns.clone())?;
    let health = Arc::new(Health::new(Arc::clone(&ledger)));
    let views = Arc::new(Views::new(Arc::clone(&ledger)));
    let adapters = context.adapters(Arc::clone(&ledger))?;
    let mut behind = web::health(Arc::clone(&health));
    if let Some(token) = args.token_file.clone() {
        let token = TokenFile::open(token).map_err(|why| Failure::wrong(format!("`--token-file`: {why}")))?;
        behind = behind.merge(web::api(Arc::clone(&views), adapters.clone(), token));
    }
    let pages = pages(&args, adapters.clone(), &views);
    behind = behind.merge(web::pages(Arc::clone(&pages)));
    let counted = web::metrics(Counted { metrics: Arc::clone(&metrics), views, clock: Timestamp::now });
    let mut tasks = Tasks::default();
    match metrics_door {
        Some((listener, _)) => tasks.add(|shutdown| open(listener, counted, shutdown)),
        None => behind = behind.merge(counted),
    }
    let hosts = Hosts::new(address, args.pages_url.as_ref().and_then(Url::host_str));
    tasks.add(|shutdown| open(listener, web::own_door(behind, hosts), shutdown));
    tasks.add(|shutdown| async move {
        shutdown.await;
        pages.close().await;
        Ok(())
    });
    tasks.add(|shutdown| async move {
        tokio::select! {
            () = shutdown => Ok(()),
            error = health.failure() => Err(error),
        }
    });

    tasks.add(|shutdown| after(webhook::keep_fresh(adapters.clone(), shutdown)));
    let (hints, hinted) = mpsc::channel(HINTS);
    tasks.add(|shutdown| after(webhook::keep_asking(adapters, hinted, shutdown)));
    tasks.add(|shutdown| schedules.serve(shutdown));
    let hooks_at = hooks.as_ref().map(|door| door.address);
    if let Some(door) = hooks {
        door.add_to(&mut tasks, Arc::clone(&metrics), hints);
    }
    let on_told = Arc::new(move |taken| metrics.notification(taken));
    tasks.add(|shutdown| notify::keep_telling(ledger, Timestamp::now, on_told, shutdown));

    tell(context, &first_link(context, address, args.pages_url.as_ref())?, address, hooks_at);
    tasks.until(interrupt).await?;
    Ok(exit::FINE)
}

/// A task whose failures are told and tried again.
async fn after(task: impl Future<Output = ()>) -> Result<(), LedgerError> {
    task.await;
    Ok(())
}

/// What starts what is armed.
fn daemon(
    context: &Context,
    (ledger, metrics): (Arc<dyn Ledger>, Arc<Metrics>),
    within: Vec<PathBuf>,
) -> Result<Daemon, Failure> {
    // Several runs may be sent at once: what became of each is told, and not how it is getting on.
    let adapters = Adapters { observer: Arc::new(|_| {}), ..context.adapters(ledger)? };
    let starter = Arc::new(Runs(adapters.clone()));
    let observer = told::observer(&context.output, metrics);
    Ok(Daemon { adapters, starter, observer, within, refresh: REFRESH })
}

/// A door that is open until the shutdown.
async fn open(listener: TcpListener, router: Router, shutdown: Shutdown) -> Result<(), LedgerError> {
    door::serve(listener, router, Limits::default(), shutdown).await;
    Ok(())
}

/// A door that an option named.
pub(in crate::cli) fn bind(address: SocketAddr, option: &str) -> Result<(TcpListener, SocketAddr), Failure> {
    let bound = door::listen(address).and_then(|listener| listener.local_addr().map(|address| (listener, address)));
    bound.map_err(|error| {
        Failure::wrong(format!("cannot listen on {address}: {error}; choose another address with `{option}`"))
    })
}

/// The pages of the dashboard.
fn pages(args: &ServeArgs, adapters: Adapters, views: &Arc<Views>) -> Arc<Pages> {
    let published = args.pages_url.as_ref().map(|url| url.origin().ascii_serialization());
    Pages::new(Adapters { observer: Arc::new(|_| {}), ..adapters }, Arc::clone(views), published)
}

/// The address of the pages with a link in it, for the person who starts the server; it lets them look. What is printed at a
/// start is read by others too, so that a name decides only where somebody said so. If nobody can be let in, the server
/// says why
/// and does everything else: receipts must not wait for the pages.
fn first_link(context: &Context, address: SocketAddr, pages: Option<&Url>) -> Result<FirstLink, Failure> {
    let at = pages.map_or_else(|| format!("http://{}", reachable(address)), |url| url.origin().ascii_serialization());
    let (visitors, now) = (Visitors::of(&context.new_state()?), Timestamp::now());
    let link = visitors.listen_at(&at, now).and_then(|()| visitors::link_at(&visitors, &at, (&person(), false), now));
    Ok(match link {
        Ok(url) => FirstLink { url, closed: None },
        Err(error) => {
            let closed = visitors::closed(context, &visitors, &error);
            tracing::error!("the dashboard is closed: {closed}");
            FirstLink { url: at, closed: Some(closed) }
        }
    })
}

/// The address of the dashboard, and why nobody can sign in, if so.
struct FirstLink {
    url: String,
    closed: Option<String>,
}

/// Reports where the server listens.
fn tell(context: &Context, FirstLink { url, closed }: &FirstLink, address: SocketAddr, hooks: Option<SocketAddr>) {
    if context.output.json {
        let hooks = hooks.map(|address| format!("http://{}", reachable(address)));
        let mut listening = json!({ "url": url, "hooks": hooks, "listen": address, "pid": std::process::id() });
        if let Some(closed) = closed {
            listening["pages_closed"] = closed.as_str().into();
        }
        context.output.object(&listening);
    } else {
        let hooks = hooks.map_or_else(
            || "receipts by webhook are off: no profile has `hook`".to_owned(),
            |address| format!("receipts by webhook on http://{}", reachable(address)),
        );
        let next = if closed.is_some() { "serve list" } else { "serve link --for NAME --decide" };
        let mut text = Text::new();
        text.push(Line::new([plain("listening on "), strong(url.as_str())]).whole());
        text.line(2, [plain(hooks)]);
        if closed.is_some() {
            text.line(2, [caution("the dashboard is closed; see the log")]);
        }
        text.push(Line::next(context.output.command(next)));
        context.output.result(text);
    }
}

/// What comes when the process has to end.
pub(in crate::cli) type Shutdown = BoxFuture<'static, ()>;

/// What the process does at the same time. A task ends with the shutdown, and before it only because the ledger failed.
pub(super) struct Tasks {
    running: JoinSet<Result<(), LedgerError>>,
    shutdown: watch::Sender<bool>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self { running: JoinSet::new(), shutdown: watch::Sender::new(false) }
    }
}

impl Tasks {
    /// Starts a task.
    pub(super) fn add<T>(&mut self, task: impl FnOnce(Shutdown) -> T)
    where
        T: Future<Output = Result<(), LedgerError>> + Send + 'static,
    {
        let mut shutdown = self.shutdown.subscribe();
        self.running.spawn(task(Box::pin(async move {
            // A sender that is gone is an end too.
            let _ = shutdown.wait_for(|over| *over).await;
        })));
    }

    /// Waits for a signal or the first failure, then for the end of all tasks; a second signal waits for nothing.
    async fn until(mut self, mut interrupt: watch::Receiver<Interrupt>) -> Result<(), Failure> {
        let told = tokio::select! {
            _ = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => Ok(()),
            failure = first_failure(&mut self.running) => Err(failure),
        };
        self.shutdown.send_replace(true);
        let mut hurried = interrupt.clone();
        tokio::select! {
            _ = hurried.wait_for(|interrupt| matches!(interrupt, Interrupt::AtOnce(_))) => told,
            ended = all_ended(&mut self.running) => told.and(ended),
        }
    }
}

async fn first_failure(running: &mut JoinSet<Result<(), LedgerError>>) -> Failure {
    match all_ended(running).await {
        Err(failure) => failure,
        Ok(()) => std::future::pending().await,
    }
}

/// Waits for the end of every task, or for the first failure.
async fn all_ended(running: &mut JoinSet<Result<(), LedgerError>>) -> Result<(), Failure> {
    while let Some(ended) = running.join_next().await {
        ended.map_err(|panic| Failure::new(exit::BUG, format!("a server task ended unexpectedly: {panic}")))??;
    }
    Ok(())
}
