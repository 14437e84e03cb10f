//! HTTP around the platform: bytes in, bytes out, and what happens to them on the wire.
//!
//! It must not know what an operation is; every answer about one comes from the platform.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request as HttpRequest, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use futures_util::{StreamExt, stream};
use tokio::sync::{mpsc, oneshot};

use super::connections::DoorOrder;
use super::live::Live;
use crate::domain::Endpoint;
use crate::sandbox::faults::{Door, Loss, Page, Reaction, Wire};
use crate::sandbox::platform::Answer;
use crate::sandbox::request::{BODY_LIMIT, Request};

/// What all requests share.
pub(super) struct Shell {
    pub live: Arc<Live>,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// To those who hold the door.
    pub doors: mpsc::UnboundedSender<DoorOrder>,
}

/// A body as far as it arrived.
enum Arrival {
    Whole(Vec<u8>),
    TooLarge,
    TooLate,
}

/// An answer whose body is whole yet.
type WholeAnswer = Response<Vec<u8>>;

/// Both endpoints on one port.
pub(super) fn router(shell: Arc<Shell>) -> Router {
    Router::new().fallback(serve).with_state(shell)
}

/// The endpoint at a path (contract 4.1 and 4.2); a base address may end with the slash that the path begins with.
fn endpoint(path: &str) -> Option<Endpoint> {
    match path.trim_start_matches('/') {
        "api/json.php" => Some(Endpoint::Sync),
        "v1/json" => Some(Endpoint::Async),
        _ => None,
    }
}

async fn serve(
    State(shell): State<Arc<Shell>>,
    Extension(remote): Extension<SocketAddr>,
    request: HttpRequest,
) -> Response {
    let Some(endpoint) = endpoint(request.uri().path()) else {
        let told = Answer::refused("No such endpoint; use /api/json.php or /v1/json");
        return json(StatusCode::NOT_FOUND, &told).map(Body::from);
    };
    let refused = |error: &'static str| json(StatusCode::OK, &Answer::refused(error)).map(Body::from);
    if request.method() != Method::POST {
        return refused("Send a POST request");
    }
    let (head, body) = request.into_parts();
    let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let arrived = tokio::time::timeout(shell.body_timeout, read_body(body)).await.unwrap_or(Arrival::TooLate);
    let body = match &arrived {
        Arrival::Whole(body) => Some(body.as_slice()),
        Arrival::TooLarge => None,
        Arrival::TooLate => return refused("The request was not received in time"),
    };
    match shell.live.execute(endpoint, remote, Request { content_type, body }).await {
        Some(reaction) => shell.give(reaction).await,
        // Not the contract's status 200: whether it was executed is unknown, and the client has to see that.
        None => {
            let broken = Answer::refused("The sandbox cannot write its journal");
            json(StatusCode::INTERNAL_SERVER_ERROR, &broken).map(Body::from)
        }
    }
}

impl Shell {
    /// The answer as the wire lets it through.
    async fn give(self: Arc<Self>, reaction: Reaction) -> Response {
        let Reaction { answer, wire: Wire { delay, page, loss, door } } = reaction;
        let told = page.map_or_else(|| json(StatusCode::OK, &answer), |page| html(&page));
        if delay.is_some() || door != Door::Open {
            // On its own: a client that hangs up does not change what happens at the door.
            let passed = tokio::spawn(async move {
                tokio::time::sleep(delay.unwrap_or_default()).await;
                self.hold_door(door).await;
            });
            // It neither panics nor is it ended before the connection is.
            let _ = passed.await;
        }
        match loss {
            None => told.map(Body::from),
            Some(Loss::Truncated) => {
                let half = told.body().len() / 2;
                cut(told, half)
            }
            Some(Loss::Dropped) => cut(told, 0),
        }
    }

    /// Has the door do something, and waits until it is done.
    async fn hold_door(&self, door: Door) {
        if door != Door::Open {
            let (done, told) = oneshot::channel();
            // When nobody holds the door any more, the sandbox is stopping: it is shut anyway.
            let _ = self.doors.send(DoorOrder { door, done });
            let _ = told.await;
        }
    }
}

/// So much of an answer's body behind a head that promises all of it, and the end of the connection; of nothing
/// of the body not even the head leaves.
fn cut(told: WholeAnswer, kept: usize) -> Response {
    let (mut head, mut body) = told.into_parts();
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    body.truncate(kept);
    let broken = async move {
        if kept > 0 {
            // What came before leaves while this is not ready.
            tokio::task::yield_now().await;
        }
        Err(io::Error::from(io::ErrorKind::ConnectionAborted))
    };
    let kept = Some(body).filter(|body| !body.is_empty()).map(Ok);
    Response::from_parts(head, Body::from_stream(stream::iter(kept).chain(stream::once(broken))))
}

fn json(status: StatusCode, answer: &Answer) -> WholeAnswer {
    told(status, "application/json", answer.to_json())
}

fn html(page: &Page) -> WholeAnswer {
    let status = StatusCode::from_u16(page.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let title = format!("{} {}", status.as_u16(), status.canonical_reason().unwrap_or("Error"));
    let body = format!(
        "<!DOCTYPE html>\n<html>\n<head><title>{title}</title></head>\n<body><h1>{title}</h1></body>\n</html>\n"
    );
    let mut told = told(status, "text/html; charset=utf-8", body.into());
    if let Some(wait) = page.retry_after {
        told.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs()));
    }
    told
}

fn told(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> WholeAnswer {
    let mut told = Response::new(body);
    *told.status_mut() = status;
    told.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    told
}

/// Reads a body to its end.
///
/// One that is too large is read on and dropped: a client that is still sending would otherwise see
/// the connection break instead of the answer.
async fn read_body(body: Body) -> Arrival {
    let mut chunks = body.into_data_stream();
    let (mut whole, mut too_large) = (Vec::new(), false);
    while let Some(chunk) = chunks.next().await {
        // The connection is gone, and nobody will read the answer.
        let Ok(chunk) = chunk else { return Arrival::TooLate };
        too_large |= whole.len() + chunk.len() > BODY_LIMIT;
        if too_large {
            whole = Vec::new();
        } else {
            whole.extend_from_slice(&chunk);
        }
    }
    if too_large { Arrival::TooLarge } else { Arrival::Whole(whole) }
}
