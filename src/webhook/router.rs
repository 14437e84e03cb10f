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

use super::sender::Proxies;
use super::strangers::Strangers;
use crate::gateway::{HOOK_QUESTION, read_receipts};
use crate::ledger::Reception;
use crate::metrics::{Metrics, ReceiptResult};
use crate::runs::{Collector, Post, Receiver, Refused};

/// The largest body, in bytes.
const LARGEST: usize = 256 * 1024;
/// The longest question of whoever wants to know whether the address leads here, in bytes.
const LONGEST_QUESTION: usize = 64;
/// How long a body may take.
const BODY: Duration = Duration::from_secs(10);

/// Who hears that the gateway told something of messages with these identifiers, which is to be confirmed by asking.
pub type Hints = mpsc::Sender<Vec<u64>>;

struct Door {
    receiver: Arc<Receiver>,
    collector: Collector,
    proxies: Proxies,
    strangers: Strangers,
    metrics: Arc<Metrics>,
    hints: Hints,
}

/// The receipts' door: `/h/` and `/n/`, and nothing else.
pub fn router(
    receiver: Arc<Receiver>,
    collector: Collector,
    proxies: Proxies,
    metrics: Arc<Metrics>,
    hints: Hints,
) -> Router {
    let door = Door { receiver, collector, proxies, strangers: Strangers::default(), metrics, hints };
    Router::new()
        .route("/h/{run}/{id}/{mac}", post(message))
        .route("/n/{mac}", post(notice))
        .fallback(|| async { StatusCode::NOT_FOUND })
        .with_state(Arc::new(door))
}

/// A webhook to the address of a message.
async fn message(
    State(door): State<Arc<Door>>,
    Extension(peer): Extension<SocketAddr>,
    Path((run, id, mac)): Path<(String, String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(id) = door.receiver.signed(Post { run: &run, id: &id, mac: &mac }) else {
        return door.forged(peer, &headers);
    };
    let body = match read(body).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let receipts = match door.receiver.read(&run, id, &body).await {
        Ok(Ok(receipts)) => receipts,
        Ok(Err(refused)) => return door.refused(refused),
        Err(error) => {
            tracing::error!("cannot store a receipt: {error}");
            return door.unkept();
        }
    };
    match door.collector.keep(receipts).await {
        Some(receptions) => {
            for reception in receptions {
                door.metrics.receipt(match reception {
                    Reception::Kept => ReceiptResult::Kept,
                    Reception::Known => ReceiptResult::Repeated,
                });
            }
            (StatusCode::OK, "ok\n").into_response()
        }
        None => door.unkept(),
    }
}

/// A webhook to the account's own address: what it tells is not believed, but asked about.
async fn notice(
    State(door): State<Arc<Door>>,
    Extension(peer): Extension<SocketAddr>,
    Path(mac): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if !door.receiver.signed_notice(&mac) {
        return door.forged(peer, &headers);
    }
    if let Some(question) = headers.get(HOOK_QUESTION) {
        let question = question.to_str().ok().filter(|question| question.len() <= LONGEST_QUESTION);
        let proof = question.and_then(|question| door.receiver.proof(&mac, question));
        return match proof {
            Some(proof) => (StatusCode::OK, proof).into_response(),
            None => StatusCode::BAD_REQUEST.into_response(),
        };
    }
    let body = match read(body).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let Ok(told) = read_receipts(&body) else { return door.refused(Refused::Unreadable) };
    door.metrics.receipt(ReceiptResult::Notice);
    // Where more come than are heeded the others are asked about in their time.
    let _ = door.hints.try_send(told.into_iter().filter_map(|told| told.id.flatten()).collect());
    (StatusCode::OK, "ok\n").into_response()
}

/// The whole body, within its limits.
async fn read(body: Body) -> Result<Vec<u8>, Response> {
    match tokio::time::timeout(BODY, to_bytes(body, LARGEST)).await {
        Ok(Ok(body)) => Ok(body.into()),
        Ok(Err(_)) => Err(StatusCode::PAYLOAD_TOO_LARGE.into_response()),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT.into_response()),
    }
}

impl Door {
    /// Nothing is here for who has no address of ours; who tries many is sent away.
    fn forged(&self, peer: SocketAddr, headers: &HeaderMap) -> Response {
        let heard = self.strangers.charge(self.proxies.sender(peer, headers));
        let (result, status) = match heard {
            true => (ReceiptResult::Forged, StatusCode::NOT_FOUND),
            false => (ReceiptResult::Slowed, StatusCode::TOO_MANY_REQUESTS),
        };
        self.metrics.receipt(result);
        // The body is not read, so the connection cannot be used again.
        (status, [(CONNECTION, HeaderValue::from_static("close"))]).into_response()
    }

    fn refused(&self, refused: Refused) -> Response {
        let (result, status) = match refused {
            Refused::Foreign => (ReceiptResult::Unknown, StatusCode::NOT_FOUND),
            Refused::Unreadable => (ReceiptResult::Unreadable, StatusCode::BAD_REQUEST),
            // To send it again would not help.
            Refused::Contradicting => (ReceiptResult::Contradicting, StatusCode::OK),
        };
        self.metrics.receipt(result);
        status.into_response()
    }

    /// It has to come again.
    fn unkept(&self) -> Response {
        self.metrics.receipt(ReceiptResult::NotKept);
        StatusCode::SERVICE_UNAVAILABLE.into_response()
    }
}
