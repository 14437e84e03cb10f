//! Monitoring endpoints: `/healthz` (the process runs), `/readyz` (the ledger can be written) and `/metrics`.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use jiff::Timestamp;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::RunListCache;
use campaign_ledger::{Ledger, LedgerError};
use campaign_net::metrics::{AccountUse, LedgerFigures, MEDIA_TYPE, Metrics};

/// The longest duration of a check; a supervisor asks again.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a result is cached, so that frequent requests do not keep the disk busy.
const CHECK_TTL: Duration = Duration::from_secs(1);

/// Whether the process can do its work.
pub struct Health {
    ledger: Arc<dyn Ledger>,
    /// The time of the last check, and its result.
    last: Mutex<Option<(Instant, bool)>>,
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
        // The sender lives as long as `self`.
        let known = failed.wait_for(Option::is_some).await.ok().and_then(|known| known.clone());
        known.unwrap_or(LedgerError::Closed)
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
                // After a failure the ledger's writer writes nothing further.
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

/// The sources of the metrics.
#[derive(Clone)]
pub struct MetricsSource {
    /// The counters of the process.
    pub metrics: Arc<Metrics>,
    /// The runs.
    pub run_list: Arc<RunListCache>,
    /// The wall clock.
    pub clock: fn() -> Timestamp,
}

/// The route `/metrics`.
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
