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

use super::connections::PortOrder;
use super::live::LivePlatform;
use crate::domain::Endpoint;
use crate::sandbox::faults::{ErrorPage, PortBehaviour, ResponseLoss, ResponsePlan, WireFaults};
use crate::sandbox::platform::ApiResponse;
use crate::sandbox::request::{BODY_LIMIT, RawRequest};

/// What all requests share.
pub(super) struct HttpState {
    pub live: Arc<LivePlatform>,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// To those who hold the door.
    pub port_orders: mpsc::UnboundedSender<PortOrder>,
}

/// A body as far as it arrived.
enum BodyArrival {
    Whole(Vec<u8>),
    TooLarge,
    TooLate,
}

/// An answer whose body is whole yet.
type WholeAnswer = Response<Vec<u8>>;

/// Both endpoints on one port.
pub(super) fn router(shell: Arc<HttpState>) -> Router {
    Router::new().fallback(serve_request).with_state(shell)
}

/// The endpoint at a path (contract 4.1 and 4.2); a base address may end with the slash that the path begins with.
fn endpoint_at(path: &str) -> Option<Endpoint> {
    match path.trim_start_matches('/') {
        "api/json.php" => Some(Endpoint::Sync),
        "v1/json" => Some(Endpoint::Async),
        _ => None,
    }
}

async fn serve_request(
    State(shell): State<Arc<HttpState>>,
    Extension(remote): Extension<SocketAddr>,
    request: HttpRequest,
) -> Response {
    let Some(endpoint) = endpoint_at(request.uri().path()) else {
        let told = ApiResponse::rejected("No such endpoint; use /api/json.php or /v1/json");
        return json_response(StatusCode::NOT_FOUND, &told).map(Body::from);
    };
    let refused = |error: &'static str| json_response(StatusCode::OK, &ApiResponse::rejected(error)).map(Body::from);
    if request.method() != Method::POST {
        return refused("Send a POST request");
    }
    let (head, body) = request.into_parts();
    let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let arrived = tokio::time::timeout(shell.body_timeout, read_body(body)).await.unwrap_or(BodyArrival::TooLate);
    let body = match &arrived {
        BodyArrival::Whole(body) => Some(body.as_slice()),
        BodyArrival::TooLarge => None,
        BodyArrival::TooLate => return refused("The request was not received in time"),
    };
    match shell.live.execute_request(endpoint, remote, RawRequest { content_type, body }).await {
        Some(reaction) => shell.finish_response(reaction).await,
        // Not the contract's status 200: whether it was executed is unknown, and the client has to see that.
        None => {
            let broken = ApiResponse::rejected("The sandbox cannot write its journal");
            json_response(StatusCode::INTERNAL_SERVER_ERROR, &broken).map(Body::from)
        }
    }
}

impl HttpState {
    /// The answer as the wire lets it through.
    async fn finish_response(self: Arc<Self>, reaction: ResponsePlan) -> Response {
        let ResponsePlan { answer, wire: WireFaults { delay, page, loss, port: door } } = reaction;
        let told = page.map_or_else(|| json_response(StatusCode::OK, &answer), |page| html_response(&page));
        if delay.is_some() || door != PortBehaviour::Open {
            // On its own: a client that hangs up does not change what happens at the door.
            let passed = tokio::spawn(async move {
                tokio::time::sleep(delay.unwrap_or_default()).await;
                self.order_port(door).await;
            });
            // It neither panics nor is it ended before the connection is.
            let _ = passed.await;
        }
        match loss {
            None => told.map(Body::from),
            Some(ResponseLoss::Truncated) => {
                let half = told.body().len() / 2;
                truncate_response(told, half)
            }
            Some(ResponseLoss::Dropped) => truncate_response(told, 0),
        }
    }

    /// Has the door do something, and waits until it is done.
    async fn order_port(&self, door: PortBehaviour) {
        if door != PortBehaviour::Open {
            let (done, told) = oneshot::channel();
            // When nobody holds the door any more, the sandbox is stopping: it is shut anyway.
            let _ = self.port_orders.send(PortOrder { door, done });
            let _ = told.await;
        }
    }
}

/// So much of an answer's body behind a head that promises all of it, and the end of the connection; of nothing
/// of the body not even the head leaves.
fn truncate_response(told: WholeAnswer, kept: usize) -> Response {
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

fn json_response(status: StatusCode, answer: &ApiResponse) -> WholeAnswer {
    response_with(status, "application/json", answer.to_json())
}

fn html_response(page: &ErrorPage) -> WholeAnswer {
    let status = StatusCode::from_u16(page.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let title = format!("{} {}", status.as_u16(), status.canonical_reason().unwrap_or("Error"));
    let body = format!(
        "<!DOCTYPE html>\n<html>\n<head><title>{title}</title></head>\n<body><h1>{title}</h1></body>\n</html>\n"
    );
    let mut told = response_with(status, "text/html; charset=utf-8", body.into());
    if let Some(wait) = page.retry_after {
        told.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs()));
    }
    told
}

fn response_with(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> WholeAnswer {
    let mut told = Response::new(body);
    *told.status_mut() = status;
    told.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    told
}

/// Reads a body to its end.
///
/// One that is too large is read on and dropped: a client that is still sending would otherwise see
/// the connection break instead of the answer.
async fn read_body(body: Body) -> BodyArrival {
    let mut chunks = body.into_data_stream();
    let (mut whole, mut too_large) = (Vec::new(), false);
    while let Some(chunk) = chunks.next().await {
        // The connection is gone, and nobody will read the answer.
        let Ok(chunk) = chunk else { return BodyArrival::TooLate };
        too_large |= whole.len() + chunk.len() > BODY_LIMIT;
        if too_large {
            whole = Vec::new();
        } else {
            whole.extend_from_slice(&chunk);
        }
    }
    if too_large { BodyArrival::TooLarge } else { BodyArrival::Whole(whole) }
}
