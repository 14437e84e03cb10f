//! What the receipts' door knows and answers.

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

use super::sender::TrustedProxies;
use super::strangers::ForgeryLimiter;
use crate::gateway::{WEBHOOK_TEST_HEADER, read_receipts};
use crate::ledger::ReceiptOutcome;
use crate::metrics::{Metrics, ReceiptResult};
use crate::runs::{ReceiptCollector, WebhookPath, WebhookReceiver, WebhookRefusal};

/// The largest body, in bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;
/// The longest question of whoever wants to know whether the address leads here, in bytes.
const MAX_QUESTION_BYTES: usize = 64;
/// How long a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Who hears that the gateway told something of messages with these identifiers, which is to be confirmed by asking.
pub type Hints = mpsc::Sender<Vec<u64>>;

struct WebhookState {
    receiver: Arc<WebhookReceiver>,
    collector: ReceiptCollector,
    proxies: TrustedProxies,
    strangers: ForgeryLimiter,
    metrics: Arc<Metrics>,
    hints: Hints,
}

/// The receipts' door: `/h/` and `/n/`, and nothing else.
pub fn router(
    receiver: Arc<WebhookReceiver>,
    collector: ReceiptCollector,
    proxies: TrustedProxies,
    metrics: Arc<Metrics>,
    hints: Hints,
) -> Router {
    let door = WebhookState { receiver, collector, proxies, strangers: ForgeryLimiter::default(), metrics, hints };
    Router::new()
        .route("/h/{run}/{id}/{mac}", post(post_message_receipt))
        .route("/n/{mac}", post(post_account_notice))
        .fallback(|| async { StatusCode::NOT_FOUND })
        .with_state(Arc::new(door))
}

/// A webhook to the address of a message.
async fn post_message_receipt(
    State(door): State<Arc<WebhookState>>,
    Extension(peer): Extension<SocketAddr>,
    Path((run, id, mac)): Path<(String, String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(id) = door.receiver.verify_path(WebhookPath { run: &run, id: &id, mac: &mac }) else {
        return door.reject_forged(peer, &headers);
    };
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let receipts = match door.receiver.parse_receipts(&run, id, &body).await {
        Ok(Ok(receipts)) => receipts,
        Ok(Err(refused)) => return door.reject_receipt(refused),
        Err(error) => {
            tracing::error!("cannot store a receipt: {error}");
            return door.not_stored();
        }
    };
    match door.collector.keep_receipts(receipts).await {
        Some(receptions) => {
            for reception in receptions {
                door.metrics.count_receipt(match reception {
                    ReceiptOutcome::Stored => ReceiptResult::Kept,
                    ReceiptOutcome::Known => ReceiptResult::Repeated,
                });
            }
            (StatusCode::OK, "ok\n").into_response()
        }
        None => door.not_stored(),
    }
}

/// A webhook to the account's own address: what it tells is not believed, but asked about.
async fn post_account_notice(
    State(door): State<Arc<WebhookState>>,
    Extension(peer): Extension<SocketAddr>,
    Path(mac): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if !door.receiver.is_account_path(&mac) {
        return door.reject_forged(peer, &headers);
    }
    if let Some(question) = headers.get(WEBHOOK_TEST_HEADER) {
        let question = question.to_str().ok().filter(|question| question.len() <= MAX_QUESTION_BYTES);
        let proof = question.and_then(|question| door.receiver.prove_path(&mac, question));
        return match proof {
            Some(proof) => (StatusCode::OK, proof).into_response(),
            None => StatusCode::BAD_REQUEST.into_response(),
        };
    }
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let Ok(told) = read_receipts(&body) else { return door.reject_receipt(WebhookRefusal::Unreadable) };
    door.metrics.count_receipt(ReceiptResult::Notice);
    // Where more come than are heeded the others are asked about in their time.
    let _ = door.hints.try_send(told.into_iter().filter_map(|told| told.id.flatten()).collect());
    (StatusCode::OK, "ok\n").into_response()
}

/// The whole body, within its limits.
async fn read_body(body: Body) -> Result<Vec<u8>, Response> {
    match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(body)) => Ok(body.into()),
        Ok(Err(_)) => Err(StatusCode::PAYLOAD_TOO_LARGE.into_response()),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT.into_response()),
    }
}

impl WebhookState {
    /// Nothing is here for who has no address of ours; who tries many is sent away.
    fn reject_forged(&self, peer: SocketAddr, headers: &HeaderMap) -> Response {
        let heard = self.strangers.charge_sender(self.proxies.sender_of(peer, headers));
        let (result, status) = match heard {
            true => (ReceiptResult::Forged, StatusCode::NOT_FOUND),
            false => (ReceiptResult::Slowed, StatusCode::TOO_MANY_REQUESTS),
        };
        self.metrics.count_receipt(result);
        // The body is not read, so the connection cannot be used again.
        (status, [(CONNECTION, HeaderValue::from_static("close"))]).into_response()
    }

    fn reject_receipt(&self, refused: WebhookRefusal) -> Response {
        let (result, status) = match refused {
            WebhookRefusal::Foreign => (ReceiptResult::Unknown, StatusCode::NOT_FOUND),
            WebhookRefusal::Unreadable => (ReceiptResult::Unreadable, StatusCode::BAD_REQUEST),
            // To send it again would not help.
            WebhookRefusal::Contradicting => (ReceiptResult::Contradicting, StatusCode::OK),
        };
        self.metrics.count_receipt(result);
        status.into_response()
    }

    /// It has to come again.
    fn not_stored(&self) -> Response {
        self.metrics.count_receipt(ReceiptResult::NotKept);
        StatusCode::SERVICE_UNAVAILABLE.into_response()
    }
}
