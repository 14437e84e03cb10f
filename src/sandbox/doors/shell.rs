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
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::{StreamExt, stream};
use tokio::sync::{mpsc, oneshot};

use super::connections::{DoorOrder, NeverGiven};
use super::live::Live;
use crate::domain::Endpoint;
use crate::sandbox::faults::wire::{Door, Loss, Page, Reaction, Wire};
use crate::sandbox::platform::answer::Answer;
use crate::sandbox::request::envelope::{BODY_LIMIT, Request};

/// What all requests share.
pub(super) struct Shell {
    pub live: Arc<Live>,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// To those who hold the door.
    pub doors: mpsc::UnboundedSender<DoorOrder>,
}

/// A body as far as it arrived.
enum Arrived {
    Whole(Vec<u8>),
    TooLarge,
    TooLate,
}

/// Both endpoints on one port (contract 4.1 and 4.2).
pub(super) fn router(shell: Arc<Shell>) -> Router {
    Router::new()
        .route("/api/json.php", any(|state, remote, request| answer(Endpoint::Sync, state, remote, request)))
        .route("/v1/json", any(|state, remote, request| answer(Endpoint::Async, state, remote, request)))
        .fallback(no_endpoint)
        .with_state(shell)
}

async fn answer(
    endpoint: Endpoint,
    State(shell): State<Arc<Shell>>,
    Extension(remote): Extension<SocketAddr>,
    request: HttpRequest,
) -> Response {
    if request.method() != Method::POST {
        return json(StatusCode::OK, &Answer::refused("Send a POST request"));
    }
    let (head, body) = request.into_parts();
    let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let arrived = tokio::time::timeout(shell.body_timeout, read_body(body)).await.unwrap_or(Arrived::TooLate);
    let body = match &arrived {
        Arrived::Whole(body) => Some(body.as_slice()),
        Arrived::TooLarge => None,
        Arrived::TooLate => return json(StatusCode::OK, &Answer::refused("The request did not arrive in time")),
    };
    match shell.live.execute(endpoint, remote, Request { content_type, body }).await {
        Some(reaction) => shell.give(reaction).await,
        // Not the contract's status 200: whether it was executed is unknown, and the client has to see that.
        None => {
            let broken = Answer::refused("The journal of the sandbox cannot be written");
            json(StatusCode::INTERNAL_SERVER_ERROR, &broken)
        }
    }
}

impl Shell {
    /// The answer as the wire lets it through.
    async fn give(self: Arc<Self>, reaction: Reaction) -> Response {
        let Reaction { answer, wire } = reaction;
        if wire == Wire::default() {
            return json(StatusCode::OK, &answer);
        }
        let loss = wire.loss;
        let whole = wire.page.as_ref().map_or_else(|| Told::answer(&answer), Told::page);
        // On its own: a client that hangs up does not change what happens at the door.
        let passed = tokio::spawn(async move {
            tokio::time::sleep(wire.delay).await;
            self.hold_door(wire.door).await;
        });
        // It neither panics nor is it ended before the connection is.
        let _ = passed.await;
        match loss {
            None => whole.whole(),
            Some(Loss::Truncated) => whole.half(),
            Some(Loss::Dropped) => (Extension(NeverGiven), StatusCode::OK).into_response(),
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

/// An answer in bytes.
struct Told {
    status: StatusCode,
    content_type: &'static str,
    retry_after: Option<Duration>,
    body: Vec<u8>,
}

impl Told {
    fn answer(answer: &Answer) -> Self {
        Self { status: StatusCode::OK, content_type: "application/json", retry_after: None, body: answer.to_json() }
    }

    fn page(page: &Page) -> Self {
        let status = StatusCode::from_u16(page.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let title = format!("{} {}", status.as_u16(), status.canonical_reason().unwrap_or("Error"));
        let body = format!(
            "<!DOCTYPE html>\n<html>\n<head><title>{title}</title></head>\n<body><h1>{title}</h1></body>\n</html>\n"
        );
        Self { status, content_type: "text/html; charset=utf-8", retry_after: page.retry_after, body: body.into() }
    }

    fn whole(self) -> Response {
        let mut response = (self.status, [(CONTENT_TYPE, self.content_type)], self.body).into_response();
        if let Some(wait) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs()));
        }
        response
    }

    /// All of its head, half of its body, and the end of the connection.
    fn half(mut self) -> Response {
        let length = self.body.len();
        self.body.truncate(length / 2);
        let half = std::mem::take(&mut self.body);
        let mut response = self.whole();
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        let broken = async {
            // What came before leaves while this is not ready.
            tokio::task::yield_now().await;
            Err(io::Error::from(io::ErrorKind::ConnectionAborted))
        };
        *response.body_mut() = Body::from_stream(stream::iter([Ok(half)]).chain(stream::once(broken)));
        response
    }
}

async fn no_endpoint() -> Response {
    json(StatusCode::NOT_FOUND, &Answer::refused("No such endpoint; there are /api/json.php and /v1/json"))
}

/// Reads a body to its end.
///
/// One that is too large is read on and dropped: a client that is still sending would otherwise see
/// the connection break instead of the answer.
async fn read_body(body: Body) -> Arrived {
    let mut chunks = body.into_data_stream();
    let (mut whole, mut too_large) = (Vec::new(), false);
    while let Some(chunk) = chunks.next().await {
        // The connection is gone, and nobody will read the answer.
        let Ok(chunk) = chunk else { return Arrived::TooLate };
        too_large |= whole.len() + chunk.len() > BODY_LIMIT;
        if too_large {
            whole = Vec::new();
        } else {
            whole.extend_from_slice(&chunk);
        }
    }
    if too_large { Arrived::TooLarge } else { Arrived::Whole(whole) }
}

fn json(status: StatusCode, answer: &Answer) -> Response {
    Told { status, ..Told::answer(answer) }.whole()
}
