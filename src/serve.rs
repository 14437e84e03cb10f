//! `campaign serve`: starts the dashboard, the webhook endpoint and the scheduler. `serve link`, `serve list` and
//! `serve revoke` manage sign-in links and sessions.
//!
//! Each task of the server runs until the shutdown or until the ledger fails.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
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

use super::args::{LinkArgs, ServeArgs, ServeCommand};
use super::context::Context;
use super::exit::CommandFailure;
use super::text::{StyledLine, StyledText, TableCell, TerminalTable, caution, dim, plain, strong};
use super::{exit, schedule};
use campaign_engine::delivery::Interrupt;
use campaign_engine::report::{format_count, format_local_minute};
use campaign_gateway::WebhookSecrets;
use campaign_ledger::{Ledger, LedgerError};
use campaign_net::metrics::Metrics;
use campaign_net::{ConnectionLimits, connectable_address};
use campaign_runs::notify;
use campaign_runs::{
    Adapters, ProfileHooks, WebhookReceiver, current_person, load_all_hooks, read_numbers, store_secret_check_values,
    update_results_until_shutdown,
};
use campaign_server::scheduler::{Daemon, RunStarter};
use campaign_server::web;
use campaign_server::web::{
    Health, LINK_LIFETIME, MetricsSource, Pages, RunListCache, SignInEntry, TestNumbers, TokenFile, Visitors,
};
use campaign_server::webhook;
use campaign_server::webhook::{Hints, TrustedProxies};

/// The interval between two reads of the schedules.
const REFRESH_INTERVAL: Duration = Duration::from_secs(15);

/// The maximum number of webhook hints in the queue.
const MAX_HINTS: usize = 1_024;

pub(super) async fn run_serve_command(context: &Context, mut args: ServeArgs) -> Result<u8, CommandFailure> {
    match args.command.take() {
        None => run_server(context, args).await,
        Some(ServeCommand::Link(link)) => print_link(context, &link),
        Some(ServeCommand::List) => list_visitors(context),
        Some(ServeCommand::Revoke { name }) => revoke_access(context, &name),
    }
}

async fn run_server(context: &Context, args: ServeArgs) -> Result<u8, CommandFailure> {
    let interrupt = context.watch_signals()?;
    // Without this check, a missing campaign file would be ignored without an error.
    if let Some(missing) = args.campaigns.iter().find(|path| !path.exists()) {
        let missing = missing.display();
        return Err(CommandFailure::invalid(format!(
            "`{missing}` does not exist; specify campaign files or folders of campaign files"
        )));
    }
    let metrics = Arc::new(Metrics::default());
    let ledger = context.open_server_ledger(&metrics).await?;
    let (listener, address) = bind_listener(args.listen, "--listen")?;
    let metrics_endpoint = args.metrics.map(|address| bind_listener(address, "--metrics")).transpose()?;
    let webhook_endpoint = open_webhook_endpoint(context, &args, &ledger).await?;

    let schedules = build_daemon(context, Arc::clone(&ledger), Arc::clone(&metrics), args.campaigns.clone())?;
    let health = Arc::new(Health::new(Arc::clone(&ledger)));
    let views = Arc::new(RunListCache::new(Arc::clone(&ledger)));
    let adapters = context.adapters(Arc::clone(&ledger))?;
    let pages = build_pages(&args, adapters.clone(), &views).await?;
    let mut app = web::pages(Arc::clone(&pages));
    if let Some(token) = args.token_file.clone() {
        let token =
            TokenFile::open(token).map_err(|problem| CommandFailure::invalid(format!("`--token-file`: {problem}")))?;
        app = app.merge(web::api(Arc::clone(&views), adapters.clone(), token));
    }
    let mut monitoring = web::health(Arc::clone(&health));
    let metrics_router =
        web::metrics(MetricsSource { metrics: Arc::clone(&metrics), run_list: views, clock: Timestamp::now });
    let (mut tasks, limits) = (ServerTasks::default(), ConnectionLimits::default());
    match metrics_endpoint {
        Some((listener, _)) => tasks.spawn(|shutdown| serve_until_shutdown(listener, metrics_router, limits, shutdown)),
        None => monitoring = monitoring.merge(metrics_router),
    }
    let public_host = args.pages_url.as_ref().and_then(Url::host_str);
    let dashboard = web::build_dashboard_router(app, monitoring, address, public_host);
    tasks.spawn(|shutdown| serve_until_shutdown(listener, dashboard, limits, shutdown));
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

    tasks.spawn(|shutdown| run_infallible(update_results_until_shutdown(adapters.clone(), shutdown)));
    let (hints, received_hints) = mpsc::channel(MAX_HINTS);
    tasks.spawn(|shutdown| run_infallible(webhook::poll_statuses_until(adapters, received_hints, shutdown)));
    tasks.spawn(|shutdown| schedules.run_until_shutdown(shutdown));
    let webhook_address = webhook_endpoint.as_ref().map(|endpoint| endpoint.address);
    if let Some(endpoint) = webhook_endpoint {
        endpoint.add_to(&mut tasks, Arc::clone(&metrics), hints);
    }
    let on_notification = Arc::new(move |delivered| metrics.count_notification(delivered));
    tasks.spawn(|shutdown| notify::notify_until_shutdown(ledger, Timestamp::now, on_notification, shutdown));

    let link = create_first_link(context, address, args.pages_url.as_ref())?;
    report_addresses(context, &link, address, webhook_address);
    tasks.run_until_interrupt(interrupt).await?;
    Ok(exit::SUCCESS)
}

/// Runs a task that handles its own failures. Never fails, but returns a result like the other tasks.
async fn run_infallible(task: impl Future<Output = ()>) -> Result<(), LedgerError> {
    task.await;
    Ok(())
}

/// Builds the scheduler, which starts the runs of active schedules.
fn build_daemon(
    context: &Context,
    ledger: Arc<dyn Ledger>,
    metrics: Arc<Metrics>,
    served_paths: Vec<PathBuf>,
) -> Result<Daemon, CommandFailure> {
    // Several runs might be sent at the same time, so only their results are logged.
    let adapters = Adapters { observer: Arc::new(|_| {}), ..context.adapters(ledger)? };
    let starter = Arc::new(RunStarter(adapters.clone()));
    let observer = schedule::schedule_observer(&context.output, metrics);
    Ok(Daemon { adapters, starter, observer, served_paths, refresh: REFRESH_INTERVAL })
}

/// Serves a router until the shutdown. Never fails, but returns a result like the other tasks.
async fn serve_until_shutdown(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    shutdown: Shutdown,
) -> Result<(), LedgerError> {
    campaign_net::serve_connections(listener, router, limits, shutdown).await;
    Ok(())
}

/// Binds a listener to an address; the failure suggests choosing another address with `option`.
pub(super) fn bind_listener(address: SocketAddr, option: &str) -> Result<(TcpListener, SocketAddr), CommandFailure> {
    let bound =
        campaign_net::listen(address).and_then(|listener| listener.local_addr().map(|address| (listener, address)));
    bound.map_err(|error| {
        CommandFailure::invalid(format!("cannot listen on {address}: {error}; choose another address with `{option}`"))
    })
}

/// Builds the pages of the dashboard.
async fn build_pages(
    args: &ServeArgs,
    adapters: Adapters,
    views: &Arc<RunListCache>,
) -> Result<Arc<Pages>, CommandFailure> {
    let public_origin = args.pages_url.as_ref().map(|url| url.origin().ascii_serialization());
    let test_numbers = match &args.test_to {
        Some(file) => read_test_numbers(file).await?,
        None => TestNumbers::default(),
    };
    let adapters = Adapters { observer: Arc::new(|_| {}), ..adapters };
    Ok(Pages::new(adapters, Arc::clone(views), public_origin, test_numbers))
}

/// Reads the phone numbers in the file of `--test-to`.
async fn read_test_numbers(file: &Path) -> Result<TestNumbers, CommandFailure> {
    let numbers = read_numbers(file).await?;
    if numbers.is_empty() {
        return Err(CommandFailure::invalid(format!("`--test-to`: `{}` contains no phone numbers", file.display())));
    }
    Ok(TestNumbers::new(numbers))
}

/// Creates a view-only sign-in link for the operator who starts the server.
///
/// Other people can read the startup output, so this link does not allow decisions. If sign-in is impossible, the
/// server logs the reason and starts everything else, because receipts must not wait for the dashboard.
fn create_first_link(
    context: &Context,
    address: SocketAddr,
    pages: Option<&Url>,
) -> Result<DashboardLink, CommandFailure> {
    let origin = pages
        .map_or_else(|| format!("http://{}", connectable_address(address)), |url| url.origin().ascii_serialization());
    let (visitors, now) = (Visitors::in_state_folder(&context.create_state_folder()?), Timestamp::now());
    let link = visitors
        .record_address(&origin, now)
        .and_then(|()| create_link(&visitors, &origin, &current_person(), false, now));
    Ok(match link {
        Ok(url) => DashboardLink { url, closed: None },
        Err(error) => {
            let closed = describe_sign_in_failure(context, &visitors, &error);
            tracing::error!("the dashboard is unavailable: {closed}");
            DashboardLink { url: origin, closed: Some(closed) }
        }
    })
}

/// The address of the dashboard, and the reason if sign-in is impossible.
struct DashboardLink {
    url: String,
    closed: Option<String>,
}

/// Reports the addresses of the server.
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
            || "webhook receipts are off: no profile has `hook`".to_owned(),
            |address| format!("listening for receipt webhooks on http://{}", connectable_address(address)),
        );
        let next = if closed.is_some() { "serve list" } else { "serve link --for NAME --decide" };
        let mut text = StyledText::new();
        text.push(StyledLine::new([plain("listening on "), strong(url.as_str())]).unbroken());
        text.add_line(2, [plain(hooks)]);
        if closed.is_some() {
            text.add_line(2, [caution("the dashboard is unavailable; see the log")]);
        }
        text.push(StyledLine::next_step(context.output.command(next)));
        context.output.print_result(text);
    }
}

/// A future that completes at the shutdown.
pub(super) type Shutdown = BoxFuture<'static, ()>;

/// The concurrent tasks of a server. A task ends at the shutdown, or earlier only if the ledger fails.
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
    /// Spawns a task and passes it a future that completes at the shutdown.
    pub(super) fn spawn<T>(&mut self, task: impl FnOnce(Shutdown) -> T)
    where
        T: Future<Output = Result<(), LedgerError>> + Send + 'static,
    {
        let mut shutdown = self.shutdown.subscribe();
        self.running.spawn(task(Box::pin(async move {
            // A dropped sender also means shutdown.
            let _ = shutdown.wait_for(|is_shutdown| *is_shutdown).await;
        })));
    }

    /// Waits for a signal or the first failure, then starts the shutdown and waits for all tasks to end. A second
    /// signal ends the wait at once.
    async fn run_until_interrupt(mut self, mut interrupt: watch::Receiver<Interrupt>) -> Result<(), CommandFailure> {
        let result = tokio::select! {
            _ = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => Ok(()),
            failure = wait_for_failure(&mut self.running) => Err(failure),
        };
        self.shutdown.send_replace(true);
        tokio::select! {
            _ = interrupt.wait_for(|interrupt| matches!(interrupt, Interrupt::Immediate(_))) => result,
            shutdown_result = wait_for_all(&mut self.running) => result.and(shutdown_result),
        }
    }
}

/// Waits for the first failure. Waits forever if all tasks end without a failure.
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

/// The default address of the webhook endpoint.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8041);
/// The maximum number of simultaneous connections to the webhook endpoint.
const MAX_CONNECTIONS: usize = 2_048;

/// A listening webhook endpoint.
struct WebhookEndpoint {
    address: SocketAddr,
    listener: TcpListener,
    receiver: Arc<WebhookReceiver>,
    /// Delivers the reason why receipts cannot be stored. The channel closes when the receiver is dropped.
    failures: mpsc::Receiver<LedgerError>,
    proxies: TrustedProxies,
}

/// Opens the webhook endpoint. `None` if no profile has `hook`.
async fn open_webhook_endpoint(
    context: &Context,
    args: &ServeArgs,
    ledger: &Arc<dyn Ledger>,
) -> Result<Option<WebhookEndpoint>, CommandFailure> {
    let files: Vec<PathBuf> = args.campaigns.iter().map(|path| profile_search_path(path.clone())).collect();
    let ProfileHooks { hooks, opt_out_words, opt_out_errors } =
        load_all_hooks(ledger.as_ref(), &context.profiles(), &files, &context.observer).await?;
    if hooks.is_empty() {
        return match args.hooks {
            None => Ok(None),
            Some(_) => Err(CommandFailure::invalid("no profile has a usable `hook`, so receipts cannot be verified")
                .with_help("add `hook: { public_url: …, secret: { env: NAME } }` to the profile, or remove `--hooks`")),
        };
    }
    let (listener, address) = bind_listener(args.hooks.unwrap_or(DEFAULT_ADDRESS), "--hooks")?;
    store_secret_check_values(ledger.as_ref(), &hooks).await?;
    let secrets = WebhookSecrets::merge(hooks.iter().map(|hook| hook.secrets().clone()));
    let (sender, failures) = mpsc::channel(1);
    let receiver = WebhookReceiver::new(Arc::clone(ledger), secrets, Timestamp::now, sender);
    let receiver = Arc::new(receiver.with_opt_out_words(opt_out_words).with_opt_out_errors(opt_out_errors));
    let proxies = TrustedProxies::new(args.trusted_proxy.clone());
    Ok(Some(WebhookEndpoint { address, listener, receiver, failures, proxies }))
}

/// The file in whose folder the search for profiles starts. For a folder of campaigns, this is a file in the folder,
/// which does not have to exist.
fn profile_search_path(path: PathBuf) -> PathBuf {
    if path.is_dir() { path.join("campaign.yaml") } else { path }
}

impl WebhookEndpoint {
    /// Adds the endpoint to the tasks of the server.
    fn add_to(self, tasks: &mut ServerTasks, metrics: Arc<Metrics>, hints: Hints) {
        let Self { listener, receiver, mut failures, proxies, .. } = self;
        let app = webhook::router(receiver, proxies, metrics, hints);
        tasks.spawn(|_| async move { failures.recv().await.map_or(Ok(()), Err) });
        let limits = ConnectionLimits { max_connections: MAX_CONNECTIONS, ..ConnectionLimits::default() };
        tasks.spawn(|shutdown| serve_until_shutdown(listener, app, limits, shutdown));
    }
}

/// The timeout of the connection that checks whether a server is running.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Creates and prints a sign-in link to the server that was started last.
fn print_link(context: &Context, args: &LinkArgs) -> Result<u8, CommandFailure> {
    let (visitors, now) = (Visitors::in_state_folder(&context.state_folder()?), Timestamp::now());
    let last_address = visitors.read_address().map_err(|error| sign_in_file_failure(context, &visitors, &error))?;
    let Some(address) = last_address else {
        let serve = context.output.command("serve");
        return Err(CommandFailure::invalid("no server has used this state folder yet")
            .with_help(format!("start a server: `{serve}`")));
    };
    let link = create_link(&visitors, &address, &args.name, args.decide, now);
    let url = link.map_err(|error| sign_in_file_failure(context, &visitors, &error))?;
    if fails_to_connect(&address) {
        context.output.print_note(&format!(
            "no server is listening on {address} at the moment; the link works while the server is running"
        ));
    }
    if context.output.json {
        context
            .output
            .print_object(&json!({ "url": url, "for": args.name, "decides": args.decide, "exit": exit::SUCCESS }));
    } else {
        let permission = if args.decide { "can view and decide" } else { "can only view" };
        let mut text = StyledText::new();
        text.push(StyledLine::new([strong(url)]).unbroken());
        let (name, hours) = (&args.name, LINK_LIFETIME.as_hours());
        text.add_line(2, [plain(format!("{name} {permission}. The link works once and expires in {hours} hours."))]);
        context.output.print_result(text);
    }
    Ok(exit::SUCCESS)
}

/// Creates a sign-in link to the dashboard at an address.
fn create_link(visitors: &Visitors, address: &str, name: &str, can_decide: bool, now: Timestamp) -> io::Result<String> {
    Ok(format!("{address}/enter/{}", visitors.create_link(name, can_decide, now)?))
}

/// Lists the people who can sign in.
fn list_visitors(context: &Context) -> Result<u8, CommandFailure> {
    let visitors = Visitors::in_state_folder(&context.state_folder()?);
    let entries =
        visitors.list_visitors(Timestamp::now()).map_err(|error| sign_in_file_failure(context, &visitors, &error))?;
    if context.output.json {
        let objects: Vec<_> = entries.iter().map(visitor_json).collect();
        context.output.print_object(&objects);
        return Ok(exit::SUCCESS);
    }
    let next = context.output.command("serve link --for NAME");
    let mut text = StyledText::new();
    match entries.is_empty() {
        true => text.add_line(0, [plain("no one can sign in to the dashboard")]),
        false => text.extend(TerminalTable::new(
            ["name", "access", "links", "sessions", "until"],
            entries.iter().map(visitor_row),
        )),
    }
    text.push(StyledLine::next_step(next));
    context.output.print_result(text);
    Ok(exit::SUCCESS)
}

fn visitor_json(SignInEntry { name, decides, links, sessions, until }: &SignInEntry) -> serde_json::Value {
    json!({ "name": name, "decides": decides, "links": links, "sessions": sessions, "until": until.to_string() })
}

fn visitor_row(SignInEntry { name, decides, links, sessions, until }: &SignInEntry) -> [TableCell; 5] {
    let access = if *decides { "view and decide" } else { "view" };
    let (links, sessions) = (links.to_string(), sessions.to_string());
    [
        strong(name.as_str()).into(),
        access.into(),
        links.into(),
        sessions.into(),
        dim(format_local_minute(*until)).into(),
    ]
}

/// Revokes the links and sessions of a person.
fn revoke_access(context: &Context, name: &str) -> Result<u8, CommandFailure> {
    let visitors = Visitors::in_state_folder(&context.state_folder()?);
    let revoked = visitors.revoke_visitor(name, Timestamp::now());
    let revoked = revoked.map_err(|error| sign_in_file_failure(context, &visitors, &error))?;
    if context.output.json {
        context.output.print_object(&json!({ "name": name, "revoked": revoked, "exit": exit::SUCCESS }));
    } else if revoked == 0 {
        context.output.print_done(format!("{name} had no links or sessions; nothing changed\n"), exit::SUCCESS);
    } else {
        let ended = format_count(revoked as u64, "link or session").replace("link or sessions", "links and sessions");
        let line = StyledLine::success([plain("revoked "), strong(ended), plain(format!(" of {name}"))]);
        context.output.print_done(line, exit::SUCCESS);
    }
    Ok(exit::SUCCESS)
}

/// Whether a connection to an address fails. Returns `false` if the address cannot be resolved.
fn fails_to_connect(address: &str) -> bool {
    let resolved = Url::parse(address).ok().and_then(|url| url.socket_addrs(|| None).ok());
    let Some(addresses) = resolved else { return false };
    !addresses.iter().any(|address| TcpStream::connect_timeout(address, CONNECT_TIMEOUT).is_ok())
}

fn sign_in_file_failure(context: &Context, visitors: &Visitors, error: &io::Error) -> CommandFailure {
    CommandFailure::storage_failure(describe_sign_in_failure(context, visitors, error))
}

/// Describes why sign-in is impossible, and the remedy.
fn describe_sign_in_failure(context: &Context, visitors: &Visitors, error: &io::Error) -> String {
    let (file, link) = (visitors.file().display(), context.output.command("serve link --for NAME"));
    let remedy = match error.kind() {
        io::ErrorKind::InvalidData => {
            format!("delete the file, which signs everyone out, and create new sign-in links with `{link}`")
        }
        _ => {
            "check that the file and its folder are readable and writable, then start `campaign serve` again".to_owned()
        }
    };
    format!("cannot read or write the dashboard's sign-in file `{file}`: {error}; {remedy}")
}
