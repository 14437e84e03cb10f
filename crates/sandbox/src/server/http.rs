//! HTTP server of the sandbox: listening, connections, and raw requests and responses.
//!
//! A fault can refuse or close connections, and delay, truncate or lose answers. This module must not know what an
//! operation is; every answer about an operation comes from the platform.

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
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::live::LivePlatform;
use crate::faults::{ErrorPage, PortBehaviour, ResponseLoss, ResponsePlan, WireFaults};
use crate::platform::ApiResponse;
use crate::request::{BODY_LIMIT, RawRequest};
use campaign_core::domain::Endpoint;
use campaign_net::{BACKLOG, ConnectionLimits, Connections, accept_connection, bind_socket, listen};

/// The delay before trying to bind the port again.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// A practically infinite duration, used if the requested duration overflows.
const FAR_FUTURE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A port of this machine.
pub(super) struct SandboxPort {
    address: SocketAddr,
    state: PortState,
    /// Whether the next connection is closed at once.
    closes_next: bool,
}

enum PortState {
    Listening(TcpListener),
    /// Connections are refused. The port stays bound, so that no other program takes it.
    Refusing {
        reserved: Option<TcpSocket>,
        until: Instant,
    },
}

impl SandboxPort {
    /// Listens on an address; port 0 picks a free port.
    pub(super) fn open(address: SocketAddr) -> io::Result<Self> {
        let listener = listen(address)?;
        let address = listener.local_addr()?;
        Ok(Self { address, state: PortState::Listening(listener), closes_next: false })
    }

    /// The socket address of the server.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the behaviour of the port. Accepted connections are not affected.
    pub(super) fn apply(&mut self, behaviour: PortBehaviour) {
        match behaviour {
            PortBehaviour::Open => {}
            PortBehaviour::Close => self.closes_next = true,
            PortBehaviour::Refuse(duration) => self.refuse_connections(duration),
        }
    }

    /// Refuses connections for this long, or until an earlier refusal ends if that is later.
    fn refuse_connections(&mut self, duration: Duration) {
        let now = Instant::now();
        let end = now.checked_add(duration).unwrap_or(now + FAR_FUTURE);
        if let PortState::Refusing { until, .. } = &mut self.state {
            *until = end.max(*until);
            return;
        }
        // Replace the listener first: while it listens, no process can bind the port, not even this one.
        self.state = PortState::Refusing { reserved: None, until: end };
        let bound = bind_socket(self.address);
        if let (PortState::Refusing { reserved, .. }, Ok(socket)) = (&mut self.state, bound) {
            *reserved = Some(socket);
        }
    }

    /// Accepts the next connection. This method is cancel safe.
    pub(super) async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            match &mut self.state {
                PortState::Refusing { until, .. } => {
                    tokio::time::sleep_until(*until).await;
                    self.reopen();
                }
                PortState::Listening(listener) => match accept_connection(listener).await {
                    _ if self.closes_next => self.closes_next = false,
                    accepted => return accepted,
                },
            }
        }
    }

    fn reopen(&mut self) {
        let PortState::Refusing { reserved, until } = &mut self.state else { return };
        let socket = reserved.take().map_or_else(|| bind_socket(self.address), Ok);
        match socket.and_then(|socket| socket.listen(BACKLOG)) {
            Ok(listener) => self.state = PortState::Listening(listener),
            Err(error) => {
                tracing::warn!("the sandbox cannot listen on `{}` again yet, but keeps trying: {error}", self.address);
                *until = Instant::now() + RETRY_DELAY;
            }
        }
    }
}

/// Timeouts of the sandbox.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// For the head of a request, and for the next request on an idle connection.
    pub(crate) head: Duration,
    /// For the body of a request.
    pub(crate) body: Duration,
    /// For open requests at shutdown.
    pub(crate) stop: Duration,
    /// For the receivers of webhooks during a drain.
    pub(crate) receivers: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let (client, end) = (Duration::from_secs(30), Duration::from_secs(5));
        Self { head: client, body: client, stop: end, receivers: end }
    }
}

pub(super) struct PortOrder {
    pub(super) behaviour: PortBehaviour,
    /// Dropped when the order is done.
    pub(super) done: oneshot::Sender<()>,
}

/// Orders to the port, and the stop signal (sent or dropped).
pub(super) type ServerOrders = (mpsc::UnboundedReceiver<PortOrder>, oneshot::Receiver<()>);

impl From<Timeouts> for ConnectionLimits {
    fn from(timeouts: Timeouts) -> Self {
        // An answer might be delayed on purpose, and a client can open any number of connections.
        Self {
            head_timeout: timeouts.head,
            idle_timeout: None,
            max_connections: usize::MAX,
            shutdown_timeout: timeouts.stop,
        }
    }
}

/// Serves connections until the stop signal, then lets open requests finish.
pub(super) async fn serve_connections(mut port: SandboxPort, app: Router, timeouts: Timeouts, orders: ServerOrders) {
    let (mut orders, mut stop) = orders;
    let mut connections = Connections::with_limits(timeouts.into());
    loop {
        tokio::select! {
            // Orders first: a connection to a port that is about to close must find it closed.
            biased;
            _ = &mut stop => break,
            Some(PortOrder { behaviour, done }) = orders.recv() => {
                if behaviour != PortBehaviour::Open {
                    connections.request_shutdown();
                    port.apply(behaviour);
                }
                drop(done);
            }
            () = connections.wait_until_one_ends() => {}
            (stream, remote) = port.accept() => connections.serve_stream(stream, remote, &app),
        }
    }
    drop((port, orders));
    connections.close().await;
}

/// The shared state of all requests.
pub(super) struct HttpState {
    pub(super) live: Arc<LivePlatform>,
    /// The maximum time for a body to arrive.
    pub(super) body_timeout: Duration,
    /// Sends orders to the task that owns the port.
    pub(super) port_orders: mpsc::UnboundedSender<PortOrder>,
}

/// The result of receiving a body.
enum BodyArrival {
    Whole(Vec<u8>),
    TooLarge,
    TooLate,
}

/// An answer with its whole body.
type WholeAnswer = Response<Vec<u8>>;

/// Creates the router that serves both endpoints on one port.
pub(super) fn router(state: Arc<HttpState>) -> Router {
    Router::new().fallback(serve_request).with_state(state)
}

/// The endpoint at a path (contract 4.1 and 4.2). Extra leading slashes are allowed, because a base URL can end with a
/// slash.
fn endpoint_at(path: &str) -> Option<Endpoint> {
    match path.trim_start_matches('/') {
        "api/json.php" => Some(Endpoint::Sync),
        "v1/json" => Some(Endpoint::Async),
        _ => None,
    }
}

async fn serve_request(
    State(state): State<Arc<HttpState>>,
    Extension(remote): Extension<SocketAddr>,
    request: HttpRequest,
) -> Response {
    let Some(endpoint) = endpoint_at(request.uri().path()) else {
        let response = ApiResponse::rejected("No such endpoint; use /api/json.php or /v1/json");
        return json_response(StatusCode::NOT_FOUND, &response).map(Body::from);
    };
    let reject = |error: &'static str| json_response(StatusCode::OK, &ApiResponse::rejected(error)).map(Body::from);
    if request.method() != Method::POST {
        return reject("Send a POST request");
    }
    let (head, body) = request.into_parts();
    let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let arrival = tokio::time::timeout(state.body_timeout, read_body(body)).await.unwrap_or(BodyArrival::TooLate);
    let body = match &arrival {
        BodyArrival::Whole(body) => Some(body.as_slice()),
        BodyArrival::TooLarge => None,
        BodyArrival::TooLate => return reject("The request was not received in time"),
    };
    match state.live.execute_request(endpoint, remote, RawRequest { content_type, body }).await {
        Some(plan) => state.finish_response(plan).await,
        // Not the contract's status 200: the client must see that it is unknown whether the request was executed.
        None => {
            let broken = ApiResponse::rejected("The sandbox cannot write its journal");
            json_response(StatusCode::INTERNAL_SERVER_ERROR, &broken).map(Body::from)
        }
    }
}

impl HttpState {
    /// Builds the response to a request, and applies the transmission faults.
    async fn finish_response(self: Arc<Self>, plan: ResponsePlan) -> Response {
        let ResponsePlan { answer, wire: WireFaults { delay, page, loss, port: behaviour } } = plan;
        let response = page.map_or_else(|| json_response(StatusCode::OK, &answer), |page| html_response(&page));
        if delay.is_some() || behaviour != PortBehaviour::Open {
            // A separate task, so that the port's behaviour changes even if the client hangs up.
            let task = tokio::spawn(async move {
                tokio::time::sleep(delay.unwrap_or_default()).await;
                self.set_port_behaviour(behaviour).await;
            });
            // The task does not panic and ends before the connection does.
            let _ = task.await;
        }
        match loss {
            None => response.map(Body::from),
            Some(ResponseLoss::Truncated) => {
                let half = response.body().len() / 2;
                truncate_response(response, half)
            }
            Some(ResponseLoss::Dropped) => truncate_response(response, 0),
        }
    }

    /// Changes the behaviour of the port, and waits until the change has taken effect.
    async fn set_port_behaviour(&self, behaviour: PortBehaviour) {
        if behaviour != PortBehaviour::Open {
            let (done, confirmed) = oneshot::channel();
            // If the port's task has ended, the sandbox is stopping, and the port is closed anyway.
            let _ = self.port_orders.send(PortOrder { behaviour, done });
            let _ = confirmed.await;
        }
    }
}

/// Sends `count` bytes of the body with the `Content-Length` of the whole body, then breaks the connection. With 0
/// bytes, not even the head is sent.
fn truncate_response(response: WholeAnswer, count: usize) -> Response {
    let (mut head, mut body) = response.into_parts();
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    body.truncate(count);
    let broken = async move {
        if count > 0 {
            // Gives the previous chunk time to be sent.
            tokio::task::yield_now().await;
        }
        Err(io::Error::from(io::ErrorKind::ConnectionAborted))
    };
    let chunk = Some(body).filter(|body| !body.is_empty()).map(Ok);
    Response::from_parts(head, Body::from_stream(stream::iter(chunk).chain(stream::once(broken))))
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
    let mut response = response_with(status, "text/html; charset=utf-8", body.into());
    if let Some(wait) = page.retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs()));
    }
    response
}

fn response_with(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> WholeAnswer {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Reads a whole body.
///
/// A body that is too large is still read and dropped. Otherwise, a client that is still sending would see a broken
/// connection instead of the answer.
async fn read_body(body: Body) -> BodyArrival {
    let mut chunks = body.into_data_stream();
    let (mut whole, mut is_too_large) = (Vec::new(), false);
    while let Some(chunk) = chunks.next().await {
        // The connection is gone, so the answer will not be read.
        let Ok(chunk) = chunk else { return BodyArrival::TooLate };
        is_too_large |= whole.len() + chunk.len() > BODY_LIMIT;
        if is_too_large {
            whole = Vec::new();
        } else {
            whole.extend_from_slice(&chunk);
        }
    }
    if is_too_large { BodyArrival::TooLarge } else { BodyArrival::Whole(whole) }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::AsyncReadExt;

    use super::*;

    fn open_test_port() -> SandboxPort {
        SandboxPort::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free port")
    }

    #[tokio::test]
    async fn refusing_port_reopens_at_the_same_address() {
        let mut port = open_test_port();
        let address = port.address();
        port.apply(PortBehaviour::Refuse(Duration::from_millis(50)));
        let error = TcpStream::connect(address).await.expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let connecting = tokio::spawn(async move {
            loop {
                if let Ok(stream) = TcpStream::connect(address).await {
                    return stream.local_addr().expect("ours");
                }
            }
        });
        let (_stream, remote) = port.accept().await;
        assert_eq!((remote, port.address()), (connecting.await.expect("a connection"), address));
    }

    #[tokio::test]
    async fn refusing_port_stays_reserved() {
        let mut port = open_test_port();
        port.apply(PortBehaviour::Refuse(Duration::from_secs(3_600)));
        let other = TcpSocket::new_v4().expect("a socket").bind(port.address()).expect_err("taken");
        assert_eq!(other.kind(), io::ErrorKind::AddrInUse);
    }

    #[tokio::test]
    async fn closing_port_closes_exactly_one_connection() {
        let mut port = open_test_port();
        let address = port.address();
        port.apply(PortBehaviour::Close);
        let connecting = tokio::spawn(async move {
            let mut closed = TcpStream::connect(address).await.expect("accepted by the system");
            assert_eq!(closed.read(&mut [0]).await.expect("the end"), 0);
            TcpStream::connect(address).await.expect("a connection").local_addr().expect("ours")
        });
        let (_stream, remote) = port.accept().await;
        assert_eq!(remote, connecting.await.expect("both"));
    }
}
