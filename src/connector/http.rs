//! The connector's door: `POST /mcp` and `GET /health` (contract 4.4).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use axum::{Extension, Router};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::answer::handle_request;
use super::rpc::{RpcHeaders, RpcMessage, RpcReply, read_message};
use super::{Connector, MAX_CALLS, MAX_MESSAGE_BYTES};
use crate::door::Hosts;

/// How long a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Who is answered: by the names of the door, and the origins of pages.
pub struct ConnectorAccess {
    /// The names that the door has.
    pub hosts: Hosts,
    /// Origins of pages besides those of this machine.
    pub origins: Vec<String>,
    /// Whether a call without a key is refused by HTTP, which has clients ask their users to log in.
    pub require_key: bool,
}

/// What a request meets.
struct ConnectorState {
    connector: Connector,
    friends: ConnectorAccess,
    places: Semaphore,
}

/// The door of a connector that answers these friends.
pub fn router(connector: Connector, friends: ConnectorAccess) -> Router {
    let door = Arc::new(ConnectorState { connector, friends, places: Semaphore::new(MAX_CALLS) });
    Router::new()
        // The address of the door alone will do too: some clients take it as it is told.
        .route("/", any(post_mcp))
        .route("/mcp", any(post_mcp))
        .route("/health", get(get_health))
        .fallback(|| async { error_response(StatusCode::NOT_FOUND, "not found") })
        .layer(middleware::from_fn_with_state(Arc::clone(&door), check_host_and_origin))
        .with_state(door)
}

/// Answers who comes by a name of this door, and no page of a stranger.
async fn check_host_and_origin(State(door): State<Arc<ConnectorState>>, request: Request, next: Next) -> Response {
    let mut answer = match door.friends.is_allowed(request.headers()) {
        true => next.run(request).await,
        false => error_response(StatusCode::FORBIDDEN, "this host or origin is not allowed"),
    };
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

impl ConnectorAccess {
    /// Whether a request with these headers is answered: it names this machine, and no page of another one sent it.
    fn is_allowed(&self, headers: &HeaderMap) -> bool {
        self.hosts.allows(headers) && headers.get_all(ORIGIN).iter().all(|origin| self.is_own_origin(origin))
    }

    /// Whether an origin is a page of this machine, or one that the operator named.
    fn is_own_origin(&self, origin: &HeaderValue) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        let host = origin.split_once("://").and_then(|(_, host)| host.parse::<Authority>().ok());
        let is_here = |host: Authority| self.hosts.is_own(host.as_str()) && !self.hosts.is_published(host.as_str());
        self.origins.iter().any(|named| named == origin) || host.is_some_and(is_here)
    }
}

async fn get_health(State(door): State<Arc<ConnectorState>>) -> Response {
    let domain = door.connector.account.host();
    json_response(
        StatusCode::OK,
        &json!({ "ok": true, "domain": domain, "send_enabled": door.connector.sending.is_some() }),
    )
}

async fn post_mcp(
    State(door): State<Arc<ConnectorState>>,
    Extension(peer): Extension<SocketAddr>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST {
        let refused = error_response(StatusCode::METHOD_NOT_ALLOWED, "only POST is allowed");
        return ([(ALLOW, HeaderValue::from_static("POST"))], refused).into_response();
    }
    if let Err(wait) = door.connector.limits.charge_address(peer.ip()) {
        let seconds = HeaderValue::from(wait.as_secs() + 1);
        return ([(RETRY_AFTER, seconds)], error_response(StatusCode::TOO_MANY_REQUESTS, "too many calls"))
            .into_response();
    }
    let headers = &parts.headers;
    if !is_json(headers) {
        return error_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json");
    }
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let head = RpcHeaders { version: text("mcp-protocol-version"), method: text("mcp-method"), name: text("mcp-name") };
    let request = match read_message(Some(head), &body) {
        Ok(RpcMessage::Request(request)) => request,
        Ok(RpcMessage::NoReply) => return StatusCode::ACCEPTED.into_response(),
        Err(reply) => return reply_response(&reply),
    };
    let key = bearer_key(headers);
    if key.is_none() && door.friends.require_key && request.method == "tools/call" {
        let refused = error_response(StatusCode::UNAUTHORIZED, "Access denied");
        let how = HeaderValue::from_static("Bearer realm=\"campaign\"");
        return ([(WWW_AUTHENTICATE, how)], refused).into_response();
    }
    let Ok(_place) = door.places.try_acquire() else {
        let busy = error_response(StatusCode::SERVICE_UNAVAILABLE, "too many calls at once");
        return ([(RETRY_AFTER, HeaderValue::from_static("1"))], busy).into_response();
    };
    reply_response(&handle_request(&door.connector, key, request).await)
}

/// Whether a body is said to be JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let named = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    named
        .and_then(|named| named.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// The key of a call (contract 5.3).
fn bearer_key(headers: &HeaderMap) -> Option<SecretString> {
    let (scheme, key) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let key = key.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !key.is_empty()).then(|| key.to_owned().into())
}

async fn read_body(body: Body) -> Result<Vec<u8>, Response> {
    match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_MESSAGE_BYTES)).await {
        Ok(Ok(body)) => Ok(body.into()),
        Ok(Err(_)) => Err(error_response(StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than 256 KiB")),
        Err(_) => Err(error_response(StatusCode::REQUEST_TIMEOUT, "the body took longer than 10 s")),
    }
}

fn reply_response(reply: &RpcReply) -> Response {
    json_response(StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &reply.body)
}

/// A refusal of the door itself.
fn error_response(status: StatusCode, why: &str) -> Response {
    json_response(status, &json!({ "error": why }))
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    let kind: (HeaderName, HeaderValue) = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (status, [kind], body.to_string()).into_response()
}
