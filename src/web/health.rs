//! `/healthz`: the process lives. `/readyz`: its ledger can be written, which is proven by writing.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use crate::ledger::{Ledger, LedgerError};

/// How long a proof may take; a supervisor asks again.
const PROOF_TIMEOUT: Duration = Duration::from_secs(2);
/// How long an answer holds, so that whoever asks often does not keep the disk busy.
const PROOF_TTL: Duration = Duration::from_secs(1);

/// Whether the process can do its work.
pub struct Health {
    ledger: Arc<dyn Ledger>,
    /// When it was last looked at, and what was found.
    last: Mutex<Option<(Instant, bool)>>,
    failed: watch::Sender<Option<LedgerError>>,
}

impl Health {
    /// That of a process with this ledger.
    pub fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, last: Mutex::default(), failed: watch::Sender::new(None) }
    }

    /// Why the ledger cannot be written any more, as soon as that is known; until then it waits.
    pub async fn wait_for_failure(&self) -> LedgerError {
        let mut failed = self.failed.subscribe();
        // The sender lives as long as this.
        let known = failed.wait_for(Option::is_some).await.ok().and_then(|known| known.clone());
        known.unwrap_or(LedgerError::Closed)
    }

    async fn check_ready(&self) -> bool {
        let mut last = self.last.lock().await;
        if let Some((at, ready)) = *last
            && at.elapsed() < PROOF_TTL
        {
            return ready;
        }
        let ready = match tokio::time::timeout(PROOF_TIMEOUT, self.ledger.check_writable()).await {
            Ok(Ok(())) => true,
            Ok(Err(LedgerError::Busy { who, .. })) => {
                tracing::warn!("the ledger cannot be written at the moment: {who}");
                false
            }
            Ok(Err(error)) => {
                tracing::error!("the ledger cannot be written: {error}");
                // After a failure its writer writes nothing any more.
                self.failed.send_replace(Some(error));
                false
            }
            Err(_) => {
                tracing::warn!("the ledger could not be written within {} s", PROOF_TIMEOUT.as_secs());
                false
            }
        };
        *last = Some((Instant::now(), ready));
        ready
    }
}

/// Whether the process is well.
pub fn routes(health: Arc<Health>) -> Router {
    Router::new().route("/healthz", get(|| async { "alive\n" })).route("/readyz", get(get_readyz)).with_state(health)
}

async fn get_readyz(State(health): State<Arc<Health>>) -> (StatusCode, &'static str) {
    match health.check_ready().await {
        true => (StatusCode::OK, "ready\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the ledger cannot be written\n"),
    }
}
