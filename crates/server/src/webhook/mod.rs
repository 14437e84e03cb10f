//! HTTP routes for delivery-receipt webhooks (contract 2.4 and 6): `/h/` for messages and `/n/` for the account.
//!
//! - `senders`: trusted proxies, and the rate limit for forged webhooks;
//! - `polling_rounds`: when the gateway is asked about messages without a final status.
//!
//! The routes decide nothing about messages. `runs` matches a webhook to its message and stores it before the response.
//! The ledger decides how the receipt changes the message.

mod polling_rounds;
mod senders;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Extension, Router};
use tokio::sync::mpsc;

use campaign_gateway::{WEBHOOK_TEST_HEADER, read_receipts};
use campaign_ledger::ReceiptOutcome;
use campaign_net::metrics::{Metrics, ReceiptResult};
use campaign_runs::{ReceiptCollector, WebhookPath, WebhookReceiver, WebhookRefusal};
use senders::ForgeryLimiter;

pub use polling_rounds::poll_statuses_until;
pub use senders::TrustedProxies;

/// The largest body, in bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;
/// The maximum length of the challenge in a check of the webhook address, in bytes.
const MAX_CHALLENGE_BYTES: usize = 64;
/// How long a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Channel for identifiers of messages whose status the gateway sent to the account's address. That status is not
/// trusted, so it must be requested.
pub type Hints = mpsc::Sender<Vec<u64>>;

struct WebhookState {
    receiver: Arc<WebhookReceiver>,
    collector: ReceiptCollector,
    proxies: TrustedProxies,
    forgeries: ForgeryLimiter,
    metrics: Arc<Metrics>,
    hints: Hints,
}

/// The routes `/h/` and `/n/`.
pub fn router(
    receiver: Arc<WebhookReceiver>,
    collector: ReceiptCollector,
    proxies: TrustedProxies,
    metrics: Arc<Metrics>,
    hints: Hints,
) -> Router {
    let state = WebhookState { receiver, collector, proxies, forgeries: ForgeryLimiter::default(), metrics, hints };
    Router::new()
        .route("/h/{run}/{id}/{mac}", post(post_message_receipt))
        .route("/n/{mac}", post(post_account_notice))
        .fallback(|| async { StatusCode::NOT_FOUND })
        .with_state(Arc::new(state))
}

/// Handles a webhook to the address of a message.
async fn post_message_receipt(
    State(state): State<Arc<WebhookState>>,
    Extension(peer): Extension<SocketAddr>,
    Path((run, id, mac)): Path<(String, String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(id) = state.receiver.verify_path(WebhookPath { run: &run, id: &id, mac: &mac }) else {
        return state.reject_forged(peer, &headers);
    };
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let receipts = match state.receiver.parse_receipts(&run, id, &body).await {
        Ok(Ok(receipts)) => receipts,
        Ok(Err(refused)) => return state.reject_receipt(refused),
        Err(error) => {
            tracing::error!("cannot store a receipt: {error}");
            return state.not_stored();
        }
    };
    match state.collector.store_receipts(receipts).await {
        Some(receptions) => {
            for reception in receptions {
                state.metrics.count_receipt(match reception {
                    ReceiptOutcome::Stored => ReceiptResult::Stored,
                    ReceiptOutcome::Known => ReceiptResult::Repeated,
                });
            }
            (StatusCode::OK, "ok\n").into_response()
        }
        None => state.not_stored(),
    }
}

/// Handles a webhook to the account's own address. Its content is not trusted, but verified by a status request.
async fn post_account_notice(
    State(state): State<Arc<WebhookState>>,
    Extension(peer): Extension<SocketAddr>,
    Path(mac): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if !state.receiver.is_account_path(&mac) {
        return state.reject_forged(peer, &headers);
    }
    if let Some(challenge) = headers.get(WEBHOOK_TEST_HEADER) {
        let challenge = challenge.to_str().ok().filter(|challenge| challenge.len() <= MAX_CHALLENGE_BYTES);
        let proof = challenge.and_then(|challenge| state.receiver.prove_path(&mac, challenge));
        return match proof {
            Some(proof) => (StatusCode::OK, proof).into_response(),
            None => StatusCode::BAD_REQUEST.into_response(),
        };
    }
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let Ok(receipts) = read_receipts(&body) else { return state.reject_receipt(WebhookRefusal::Unreadable) };
    state.metrics.count_receipt(ReceiptResult::Notice);
    // Hints beyond the capacity are dropped; those messages are polled later anyway.
    let _ = state.hints.try_send(receipts.into_iter().filter_map(|receipt| receipt.id.flatten()).collect());
    (StatusCode::OK, "ok\n").into_response()
}

/// Reads the whole body, within the limits.
async fn read_body(body: Body) -> Result<Vec<u8>, Response> {
    match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(body)) => Ok(body.into()),
        Ok(Err(_)) => Err(StatusCode::PAYLOAD_TOO_LARGE.into_response()),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT.into_response()),
    }
}

impl WebhookState {
    /// Answers a request with a forged address: 404, or 429 if the sender tries too many.
    fn reject_forged(&self, peer: SocketAddr, headers: &HeaderMap) -> Response {
        let is_within_limit = self.forgeries.charge_sender(self.proxies.sender_of(peer, headers));
        let (result, status) = match is_within_limit {
            true => (ReceiptResult::Forged, StatusCode::NOT_FOUND),
            false => (ReceiptResult::Slowed, StatusCode::TOO_MANY_REQUESTS),
        };
        self.metrics.count_receipt(result);
        // The body was not read, so the connection cannot be reused.
        (status, [(CONNECTION, HeaderValue::from_static("close"))]).into_response()
    }

    fn reject_receipt(&self, refused: WebhookRefusal) -> Response {
        let (result, status) = match refused {
            WebhookRefusal::Foreign => (ReceiptResult::Unknown, StatusCode::NOT_FOUND),
            WebhookRefusal::Unreadable => (ReceiptResult::Unreadable, StatusCode::BAD_REQUEST),
            // A repetition by the gateway would not help.
            WebhookRefusal::Contradicting => (ReceiptResult::Contradicting, StatusCode::OK),
        };
        self.metrics.count_receipt(result);
        status.into_response()
    }

    /// The response if a receipt was not stored, so that the gateway sends it again.
    fn not_stored(&self) -> Response {
        self.metrics.count_receipt(ReceiptResult::NotStored);
        StatusCode::SERVICE_UNAVAILABLE.into_response()
    }
}
