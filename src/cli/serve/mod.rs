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
use crate::cli::failure::CommandFailure;
use crate::cli::schedule::told;
use crate::cli::text::{StyledLine, StyledText, caution, plain, strong};
use crate::delivery::Interrupt;
use crate::door::{self, ConnectionLimits, Hosts, connectable_address};
use crate::ledger::{Ledger, LedgerError};
use crate::metrics::Metrics;
use crate::notify;
use crate::runs::{Adapters, current_person};
use crate::schedule::{Daemon, RunStarter};
use crate::web::{self, Health, MetricsSource, Pages, RunListCache, TokenFile, Visitors};
use crate::webhook;

/// How often the schedules are read again.
const REFRESH_INTERVAL: Duration = Duration::from_secs(15);

/// The most hints of the gateway that wait.
const MAX_HINTS: usize = 1_024;

pub(super) async fn run_serve_command(context: &Context, mut args: ServeArgs) -> Result<u8, CommandFailure> {
    match args.command.take() {
        None => run_server(context, args).await,
        Some(ServeCommand::Link(link)) => visitors::print_link(context, &link),
        Some(ServeCommand::List) => visitors::list_visitors(context),
        Some(ServeCommand::Revoke { name }) => visitors::revoke_access(context, &name),
    }
}

async fn run_server(context: &Context, args: ServeArgs) -> Result<u8, CommandFailure> {
    let interrupt = context.watch_signals()?;
    // A missing file would silently never run.
    if let Some(missing) = args.campaigns.iter().find(|path| !path.exists()) {
        let missing = missing.display();
        return Err(CommandFailure::invalid(format!(
            "`{missing}` does not exist; specify campaign files or folders of campaign files"
        )));
    }
    let metrics = Arc::new(Metrics::default());
    let ledger = context.open_server_ledger(&metrics).await?;
    let (listener, address) = bind_listener(args.listen, "--listen")?;
    let metrics_door = args.metrics.map(|address| bind_listener(address, "--metrics")).transpose()?;
    let hooks = hooks::open_webhook_endpoint(context, &args, &ledger).await?;

    let schedules = build_daemon(context, (Arc::clone(&ledger), Arc::clone(&metrics)), args.campaigns.clone())?;
    let health = Arc::new(Health::new(Arc::clone(&ledger)));
    let views = Arc::new(RunListCache::new(Arc::clone(&ledger)));
    let adapters = context.adapters(Arc::clone(&ledger))?;
    let mut behind = web::health(Arc::clone(&health));
    if let Some(token) = args.token_file.clone() {
        let token = TokenFile::open(token).map_err(|why| CommandFailure::invalid(format!("`--token-file`: {why}")))?;
        behind = behind.merge(web::api(Arc::clone(&views), adapters.clone(), token));
    }
    let pages = build_pages(&args, adapters.clone(), &views);
    behind = behind.merge(web::pages(Arc::clone(&pages)));
    let counted = web::metrics(MetricsSource { metrics: Arc::clone(&metrics), views, clock: Timestamp::now });
    let mut tasks = ServerTasks::default();
    match metrics_door {
        Some((listener, _)) => tasks.spawn(|shutdown| serve_until_shutdown(listener, counted, shutdown)),
        None => behind = behind.merge(counted),
    }
    let hosts = Hosts::new(address, args.pages_url.as_ref().and_then(Url::host_str));
    tasks.spawn(|shutdown| serve_until_shutdown(listener, web::dashboard_router(behind, hosts), shutdown));
    tasks.spawn(|shutdown| async move {
        shutdown.await;
        pages.close().await;
        Ok(())
    });
    tasks.spawn(|shutdown| async move {
        tokio::select! {
            () = shutdown => Ok(()),
            error = health.wait_for_failure() => Err(error),
        }
    });

    tasks.spawn(|shutdown| run_retrying(webhook::update_results_until(adapters.clone(), shutdown)));
    let (hints, hinted) = mpsc::channel(MAX_HINTS);
    tasks.spawn(|shutdown| run_retrying(webhook::poll_statuses_until(adapters, hinted, shutdown)));
    tasks.spawn(|shutdown| schedules.run_until_shutdown(shutdown));
    let hooks_at = hooks.as_ref().map(|door| door.address);
    if let Some(door) = hooks {
        door.add_to(&mut tasks, Arc::clone(&metrics), hints);
    }
    let on_told = Arc::new(move |taken| metrics.count_notification(taken));
    tasks.spawn(|shutdown| notify::notify_until_shutdown(ledger, Timestamp::now, on_told, shutdown));

    report_addresses(context, &create_first_link(context, address, args.pages_url.as_ref())?, address, hooks_at);
    tasks.run_until_interrupt(interrupt).await?;
    Ok(exit::SUCCESS)
}

/// A task whose failures are told and tried again.
async fn run_retrying(task: impl Future<Output = ()>) -> Result<(), LedgerError> {
    task.await;
    Ok(())
}

/// What starts what is armed.
fn build_daemon(
    context: &Context,
    (ledger, metrics): (Arc<dyn Ledger>, Arc<Metrics>),
    within: Vec<PathBuf>,
) -> Result<Daemon, CommandFailure> {
    // Several runs may be sent at once: what became of each is told, and not how it is getting on.
    let adapters = Adapters { observer: Arc::new(|_| {}), ..context.adapters(ledger)? };
    let starter = Arc::new(RunStarter(adapters.clone()));
    let observer = told::schedule_observer(&context.output, metrics);
    Ok(Daemon { adapters, starter, observer, within, refresh: REFRESH_INTERVAL })
}

/// A door that is open until the shutdown.
async fn serve_until_shutdown(listener: TcpListener, router: Router, shutdown: Shutdown) -> Result<(), LedgerError> {
    door::serve_connections(listener, router, ConnectionLimits::default(), shutdown).await;
    Ok(())
}

/// A door that an option named.
pub(in crate::cli) fn bind_listener(
    address: SocketAddr,
    option: &str,
) -> Result<(TcpListener, SocketAddr), CommandFailure> {
    let bound = door::listen(address).and_then(|listener| listener.local_addr().map(|address| (listener, address)));
    bound.map_err(|error| {
        CommandFailure::invalid(format!("cannot listen on {address}: {error}; choose another address with `{option}`"))
    })
}

/// The pages of the dashboard.
fn build_pages(args: &ServeArgs, adapters: Adapters, views: &Arc<RunListCache>) -> Arc<Pages> {
    let published = args.pages_url.as_ref().map(|url| url.origin().ascii_serialization());
    Pages::new(Adapters { observer: Arc::new(|_| {}), ..adapters }, Arc::clone(views), published)
}

/// The address of the pages with a link in it, for the person who starts the server; it lets them look. What is printed at a
/// start is read by others too, so that a name decides only where somebody said so. If nobody can be let in, the server
/// says why
/// and does everything else: receipts must not wait for the pages.
fn create_first_link(
    context: &Context,
    address: SocketAddr,
    pages: Option<&Url>,
) -> Result<DashboardLink, CommandFailure> {
    let at = pages
        .map_or_else(|| format!("http://{}", connectable_address(address)), |url| url.origin().ascii_serialization());
    let (visitors, now) = (Visitors::in_state_folder(&context.create_state_folder()?), Timestamp::now());
    let link = visitors
        .record_address(&at, now)
        .and_then(|()| visitors::create_link(&visitors, &at, (&current_person(), false), now));
    Ok(match link {
        Ok(url) => DashboardLink { url, closed: None },
        Err(error) => {
            let closed = visitors::describe_closed(context, &visitors, &error);
            tracing::error!("the dashboard is closed: {closed}");
            DashboardLink { url: at, closed: Some(closed) }
        }
    })
}

/// The address of the dashboard, and why nobody can sign in, if so.
struct DashboardLink {
    url: String,
    closed: Option<String>,
}

/// Reports where the server listens.
fn report_addresses(
    context: &Context,
    DashboardLink { url, closed }: &DashboardLink,
    address: SocketAddr,
    hooks: Option<SocketAddr>,
) {
    if context.output.json {
        let hooks = hooks.map(|address| format!("http://{}", connectable_address(address)));
        let mut listening = json!({ "url": url, "hooks": hooks, "listen": address, "pid": std::process::id() });
        if let Some(closed) = closed {
            listening["pages_closed"] = closed.as_str().into();
        }
        context.output.print_object(&listening);
    } else {
        let hooks = hooks.map_or_else(
            || "receipts by webhook are off: no profile has `hook`".to_owned(),
            |address| format!("receipts by webhook on http://{}", connectable_address(address)),
        );
        let next = if closed.is_some() { "serve list" } else { "serve link --for NAME --decide" };
        let mut text = StyledText::new();
        text.push(StyledLine::new([plain("listening on "), strong(url.as_str())]).unbroken());
        text.add_line(2, [plain(hooks)]);
        if closed.is_some() {
            text.add_line(2, [caution("the dashboard is closed; see the log")]);
        }
        text.push(StyledLine::next_step(context.output.command(next)));
        context.output.print_result(text);
    }
}

/// What comes when the process has to end.
pub(in crate::cli) type Shutdown = BoxFuture<'static, ()>;

/// What the process does at the same time. A task ends with the shutdown, and before it only because the ledger failed.
pub(super) struct ServerTasks {
    running: JoinSet<Result<(), LedgerError>>,
    shutdown: watch::Sender<bool>,
}

impl Default for ServerTasks {
    fn default() -> Self {
        Self { running: JoinSet::new(), shutdown: watch::Sender::new(false) }
    }
}

impl ServerTasks {
    /// Starts a task.
    pub(super) fn spawn<T>(&mut self, task: impl FnOnce(Shutdown) -> T)
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
    async fn run_until_interrupt(mut self, mut interrupt: watch::Receiver<Interrupt>) -> Result<(), CommandFailure> {
        let told = tokio::select! {
            _ = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => Ok(()),
            failure = wait_for_failure(&mut self.running) => Err(failure),
        };
        self.shutdown.send_replace(true);
        let mut hurried = interrupt.clone();
        tokio::select! {
            _ = hurried.wait_for(|interrupt| matches!(interrupt, Interrupt::Immediate(_))) => told,
            ended = wait_for_all(&mut self.running) => told.and(ended),
        }
    }
}

async fn wait_for_failure(running: &mut JoinSet<Result<(), LedgerError>>) -> CommandFailure {
    match wait_for_all(running).await {
        Err(failure) => failure,
        Ok(()) => std::future::pending().await,
    }
}

/// Waits for the end of every task, or for the first failure.
async fn wait_for_all(running: &mut JoinSet<Result<(), LedgerError>>) -> Result<(), CommandFailure> {
    while let Some(ended) = running.join_next().await {
        ended
            .map_err(|panic| CommandFailure::new(exit::BUG, format!("a server task ended unexpectedly: {panic}")))??;
    }
    Ok(())
}
