//! HTTP around the platform: bytes in, bytes out.
//!
//! It must not know what an operation is; every answer about one comes from the platform.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request as HttpRequest, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::StreamExt;
use jiff::Timestamp;
use secrecy::SecretString;

use super::answer::Answer;
use super::counts::Counts;
use super::envelope::{self, BODY_LIMIT, Keys, Request};
use super::journal::Sink;
use super::platform::{Arrival, Platform};
use super::scenario::Scenario;
use crate::domain::Endpoint;

/// What all connections share.
pub(super) struct Shell {
    keys: Keys,
    /// How long a body may take to arrive.
    body_timeout: Duration,
    /// Together, so that the journal's order is the order of execution.
    core: Mutex<(Platform, Sink)>,
}

/// A body as far as it arrived.
enum Arrived {
    Whole(Vec<u8>),
    TooLarge,
    TooLate,
}

impl Shell {
    /// A platform that opens to `key` and writes to `sink`.
    pub(super) fn new(key: &SecretString, sink: Sink, body_timeout: Duration) -> Self {
        let scenario = Scenario::default();
        Self { keys: Keys::of(&scenario, key), body_timeout, core: Mutex::new((Platform::new(scenario), sink)) }
    }

    /// What was taken and refused so far.
    pub(super) fn counts(&self) -> Counts {
        self.core().0.counts().clone()
    }

    /// The lines of a journal in memory.
    pub(super) fn remembered(&self) -> String {
        self.core().1.remembered()
    }

    /// Executes a request; its journal is written before the answer is known to anybody.
    fn execute(&self, endpoint: Endpoint, remote: SocketAddr, request: Request) -> (StatusCode, Answer) {
        let envelope = envelope::read(request, &self.keys);
        let mut core = self.core();
        let (platform, sink) = &mut *core;
        // The clock is read under the lock, so that times never run backwards in the journal.
        let arrival = Arrival { endpoint, remote, at: Timestamp::now() };
        let answer = sink.lines().and_then(|mut lines| {
            let answer = platform.handle(arrival, envelope, &mut lines).answer;
            sink.write(&lines).then_some(answer)
        });
        // Not the contract's status 200: whether it was executed is unknown, and the client has to see that.
        answer.map_or_else(
            || (StatusCode::INTERNAL_SERVER_ERROR, Answer::refused("The journal of the sandbox cannot be written")),
            |answer| (StatusCode::OK, answer),
        )
    }

    fn core(&self) -> MutexGuard<'_, (Platform, Sink)> {
        // A panic under the lock would be a bug; the counts and the journal are then worth more than their doubt.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    let (status, answer) = shell.execute(endpoint, remote, Request { content_type, body });
    json(status, &answer)
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
    (status, [(CONTENT_TYPE, "application/json")], answer.to_json()).into_response()
}
