//! Read-only HTTP endpoints for programs: the JSON API, health checks and metrics.
//!
//! - `/api/runs`, `/api/runs/NAME` and `/api/schedules`: runs and schedules as JSON, for clients with the token;
//! - `/healthz` (the process runs), `/readyz` (the ledger can be written) and `/metrics`: monitoring.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::RunListCache;
use campaign_engine::report::{JSON_VERSION, RunList, damaged_runs_json, load_run_json, run_entry_json};
use campaign_ledger::{Ledger, LedgerError};
use campaign_manifest::SecretSource;
use campaign_net::metrics::{AccountUse, LedgerFigures, MEDIA_TYPE, Metrics};
use campaign_runs::{Adapters, ScheduleView, load_schedule_views};

/// The minimum length of a token, in bytes.
const MIN_TOKEN_LENGTH: usize = 16;

/// The file with the token, which is read again for every request.
#[derive(Clone, Debug)]
pub struct TokenFile(SecretSource);

impl TokenFile {
    /// Opens a token file, after checking that it contains a valid token.
    ///
    /// # Errors
    /// If the file cannot be read, is readable by other users, or contains no valid token. The message never contains
    /// any part of the token.
    pub fn open(path: PathBuf) -> Result<Self, String> {
        let file = Self(SecretSource::File(path));
        file.read_token().map(|_| file)
    }

    fn read_token(&self) -> Result<SecretString, String> {
        let token = self.0.read_secret("the token", &|_| None)?;
        match token.expose_secret().len() {
            MIN_TOKEN_LENGTH.. => Ok(token),
            _ => Err(format!(
                "the token in {} is shorter than {MIN_TOKEN_LENGTH} characters; create a longer one",
                self.0
            )),
        }
    }

    /// Whether a header contains the current token.
    fn matches(&self, header: Option<&HeaderValue>) -> bool {
        let header = header.and_then(|value| value.to_str().ok()?.split_once(' '));
        let Some((_, presented)) = header.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) else {
            return false;
        };
        match self.read_token() {
            Ok(token) => token.expose_secret().as_bytes().ct_eq(presented.trim().as_bytes()).into(),
            Err(error) => {
                tracing::warn!("access to /api is denied: {error}");
                false
            }
        }
    }
}

/// The API's routes, for clients with the token.
pub fn api_routes(run_list: Arc<RunListCache>, adapters: Adapters, token: TokenFile) -> Router {
    let schedules = Router::new().route("/api/schedules", get(list_schedules)).with_state(adapters);
    Router::new()
        .route("/api/runs", get(list_runs))
        .route("/api/runs/{name}", get(get_run))
        .with_state(run_list)
        .merge(schedules)
        .route_layer(middleware::from_fn_with_state(Arc::new(token), require_token))
}

async fn require_token(State(token): State<Arc<TokenFile>>, request: Request, next: Next) -> Response {
    if token.matches(request.headers().get(AUTHORIZATION)) {
        return next.run(request).await;
    }
    let mut response = json_response(StatusCode::UNAUTHORIZED, json!({ "error": "the token is missing or wrong" }));
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

async fn list_runs(State(run_list): State<Arc<RunListCache>>) -> Response {
    match read_runs(&run_list).await {
        Ok(list) => {
            let runs: Vec<Value> = list.views.iter().map(run_entry_json).collect();
            let mut object = json!({ "runs": runs });
            if !list.damaged.is_empty() {
                object["damaged"] = damaged_runs_json(&list.damaged);
            }
            json_response(StatusCode::OK, object)
        }
        Err(response) => response,
    }
}

async fn get_run(State(run_list): State<Arc<RunListCache>>, Path(name): Path<String>) -> Response {
    let list = match read_runs(&run_list).await {
        Ok(list) => list,
        Err(response) => return response,
    };
    let views = &list.views;
    if let Some(damaged) = list.damaged.iter().find(|damaged| damaged.name == name) {
        let problem = format!("the run cannot be read: {}", damaged.error.describe_damage());
        return json_response(StatusCode::SERVICE_UNAVAILABLE, json!({ "error": problem }));
    }
    // A campaign name refers to its latest live run or, without one, its latest rehearsal. `views` begins with the
    // latest run.
    let campaign_views = || views.iter().filter(|view| view.run.campaign == name);
    let latest = || campaign_views().find(|view| view.run.live).or_else(|| campaign_views().next());
    match views.iter().find(|view| view.run.name() == name).or_else(latest) {
        Some(view) => match load_run_json(run_list.ledger(), view).await {
            Ok(object) => json_response(StatusCode::OK, object),
            Err(error) => ledger_unreadable_response(&error),
        },
        None => json_response(StatusCode::NOT_FOUND, json!({ "error": "the run does not exist" })),
    }
}

async fn list_schedules(State(adapters): State<Adapters>) -> Response {
    match load_schedule_views(&adapters).await {
        Ok(views) => {
            let schedules: Vec<Value> = views.iter().map(ScheduleView::to_json).collect();
            json_response(StatusCode::OK, json!({ "schedules": schedules }))
        }
        Err(error) => {
            tracing::warn!("the active schedules cannot be read for /api: {error}");
            json_response(StatusCode::SERVICE_UNAVAILABLE, json!({ "error": "the active schedules cannot be read" }))
        }
    }
}

async fn read_runs(run_list: &RunListCache) -> Result<Arc<RunList>, Response> {
    let problem = match run_list.read_latest().await {
        Ok(Some(runs)) => return Ok(runs),
        Ok(None) => "the runs are being read; try again in a moment",
        Err(error) => return Err(ledger_unreadable_response(&error)),
    };
    Err(json_response(StatusCode::SERVICE_UNAVAILABLE, json!({ "error": problem })))
}

fn ledger_unreadable_response(error: &LedgerError) -> Response {
    tracing::warn!("the ledger cannot be read for /api: {error}");
    json_response(StatusCode::SERVICE_UNAVAILABLE, json!({ "error": "the ledger cannot be read" }))
}

/// Builds a JSON response and adds the version of the JSON format to its body.
fn json_response(status: StatusCode, mut body: Value) -> Response {
    body["version"] = JSON_VERSION.into();
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// The timeout of a check; a supervisor checks again later.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// The time for which a result is cached, so that frequent requests do not keep the disk busy.
const CHECK_TTL: Duration = Duration::from_secs(1);

/// The readiness of the process: whether it can write the ledger.
pub struct Health {
    ledger: Arc<dyn Ledger>,
    /// The time of the last check, and its result.
    last: Mutex<Option<(Instant, bool)>>,
    /// The error after which the ledger cannot be written, if there was such an error.
    failed: watch::Sender<Option<LedgerError>>,
}

impl Health {
    /// Creates the health state of a process with this ledger.
    pub fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, last: Mutex::default(), failed: watch::Sender::new(None) }
    }

    /// Waits until the ledger is known to be unwritable, and returns the reason.
    pub async fn wait_for_failure(&self) -> LedgerError {
        let mut failed = self.failed.subscribe();
        // The sender is a field of `self`, so the wait cannot fail.
        let error = failed.wait_for(Option::is_some).await.ok().and_then(|error| error.clone());
        error.unwrap_or(LedgerError::Closed)
    }

    async fn check_ready(&self) -> bool {
        let mut last = self.last.lock().await;
        if let Some((at, ready)) = *last
            && at.elapsed() < CHECK_TTL
        {
            return ready;
        }
        let ready = match tokio::time::timeout(CHECK_TIMEOUT, self.ledger.check_writable()).await {
            Ok(Ok(())) => true,
            Ok(Err(LedgerError::Busy { who, .. })) => {
                tracing::warn!("the ledger cannot be written at the moment: {who}");
                false
            }
            Ok(Err(error)) => {
                tracing::error!("the ledger cannot be written: {error}");
                // After such a failure, the ledger's writer does not write again.
                self.failed.send_replace(Some(error));
                false
            }
            Err(_) => {
                tracing::warn!("the ledger could not be written within {} s", CHECK_TIMEOUT.as_secs());
                false
            }
        };
        *last = Some((Instant::now(), ready));
        ready
    }
}

/// The routes `/healthz` and `/readyz`.
pub fn health_routes(health: Arc<Health>) -> Router {
    Router::new().route("/healthz", get(|| async { "alive\n" })).route("/readyz", get(get_readyz)).with_state(health)
}

async fn get_readyz(State(health): State<Arc<Health>>) -> (StatusCode, &'static str) {
    match health.check_ready().await {
        true => (StatusCode::OK, "ready\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the ledger cannot be written\n"),
    }
}

/// The data for `/metrics`: the counters of the process, and figures from the ledger.
#[derive(Clone)]
pub struct MetricsSource {
    /// The counters of the process.
    pub metrics: Arc<Metrics>,
    /// The cached runs, and the ledger from which rate limits are read.
    pub run_list: Arc<RunListCache>,
    /// The wall clock.
    pub clock: fn() -> Timestamp,
}

/// The route `/metrics`, which answers 503 while the figures of the ledger are unavailable.
pub fn metrics_routes(source: MetricsSource) -> Router {
    Router::new().route("/metrics", get(get_metrics)).with_state(source)
}

async fn get_metrics(State(source): State<MetricsSource>) -> Response {
    let text = match read_ledger_figures(&source).await {
        Ok(Some(figures)) => source.metrics.encode_text(&figures).ok(),
        Ok(None) => None,
        Err(error) => {
            tracing::warn!("the ledger cannot be read for /metrics: {error}");
            None
        }
    };
    match text {
        Some(text) => ([(CONTENT_TYPE, MEDIA_TYPE)], text).into_response(),
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

async fn read_ledger_figures(source: &MetricsSource) -> Result<Option<LedgerFigures>, LedgerError> {
    let Some(runs) = source.run_list.read_latest().await? else { return Ok(None) };
    let mut figures = LedgerFigures::default();
    for view in runs.views.iter().filter(|view| view.run.live) {
        *figures.runs.entry(view.status.as_str()).or_default() += 1;
        for (state, count) in view.counts.iter() {
            *figures.messages.entry((view.run.gateway.clone(), state.name())).or_default() += count;
        }
    }
    let now = (source.clock)().as_microsecond();
    let rate_limits = source.run_list.ledger().list_rate_limits().await?;
    figures.accounts = rate_limits
        .into_iter()
        .filter_map(|(account, limit)| {
            let taken = u64::try_from(limit.taken).unwrap_or(0);
            limit.allowed_rate(now).map(|allowed| AccountUse { account, taken, allowed })
        })
        .collect();
    Ok(Some(figures))
}
