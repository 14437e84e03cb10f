//! `/metrics`: what the process counted, and how things stand in the ledger.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use jiff::Timestamp;

use super::RunListCache;
use crate::ledger::LedgerError;
use crate::metrics::{AccountUse, LedgerFigures, MEDIA_TYPE, Metrics};

/// What is told of.
#[derive(Clone)]
pub struct MetricsSource {
    /// What the process counted.
    pub metrics: Arc<Metrics>,
    /// The runs.
    pub views: Arc<RunListCache>,
    /// The wall clock.
    pub clock: fn() -> Timestamp,
}

/// The door that shows metrics and nothing else.
pub fn routes(counted: MetricsSource) -> Router {
    Router::new().route("/metrics", get(get_metrics)).with_state(counted)
}

async fn get_metrics(State(counted): State<MetricsSource>) -> Response {
    let text = match read_ledger_figures(&counted).await {
        Ok(Some(standing)) => counted.metrics.encode_text(&standing).ok(),
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

async fn read_ledger_figures(counted: &MetricsSource) -> Result<Option<LedgerFigures>, LedgerError> {
    let Some(runs) = counted.views.read_latest().await? else { return Ok(None) };
    let mut standing = LedgerFigures::default();
    for view in runs.views.iter().filter(|view| view.run.live) {
        *standing.runs.entry(view.status.as_str()).or_default() += 1;
        for (state, count) in view.counts.iter() {
            *standing.messages.entry((view.run.gateway.clone(), state.name())).or_default() += count;
        }
    }
    let now = (counted.clock)().as_microsecond();
    let paces = counted.views.ledger().list_rate_limits().await?;
    standing.accounts = paces
        .into_iter()
        .filter_map(|(account, pace)| {
            let taken = u64::try_from(pace.taken).unwrap_or(0);
            pace.allowed_rate(now).map(|allowed| AccountUse { account, taken, allowed })
        })
        .collect();
    Ok(Some(standing))
}
