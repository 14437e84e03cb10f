//! HTTP listeners with connection limits, idle timeouts and graceful shutdown.
//!
//! axum's own server has no limits on request heads, idle time or the number of connections. Here, [`listen`] binds an
//! address, so that a failure is reported early, and [`serve_connections`] serves a router until the shutdown, then
//! finishes open requests. A handler gets the client's address as `Extension<SocketAddr>`. It must itself limit the
//! size of a body and the time to read it, and respond before the idle timeout.
//!
//! Listeners must not inspect requests. A router that needs the host allowlist applies [`Hosts`] itself.

mod hosts;
pub mod http_client;
pub mod metrics;

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep};

pub use hosts::{Hosts, is_loopback_host, is_public};

/// The maximum number of connections that wait to be accepted.
pub const BACKLOG: u32 = 1024;
/// The delay after a temporary failure, usually a lack of file descriptors.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Listens on an address; port 0 picks a free port.
///
/// # Errors
/// If the address does not belong to this machine or is in use.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    bind_socket(address)?.listen(BACKLOG)
}

/// Binds a socket without listening, so that connections are refused.
///
/// # Errors
/// Fails in the same cases as [`listen`].
pub fn bind_socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // On systems other than Unix, this would let other processes take a listener's port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Accepts the next connection and returns it with the remote address. This function is cancel safe.
pub async fn accept_connection(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!("a connection cannot be accepted: {error}");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

/// An address that a client can connect to: the unspecified address becomes loopback.
pub fn connectable_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Limits of the connections of a listener.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// The timeout for the head of a request, and for the next request on a connection.
    pub head_timeout: Duration,
    /// The idle timeout in both directions; `None` if responses can be late on purpose.
    pub idle_timeout: Option<Duration>,
    /// The maximum number of connections; further connections wait in the backlog.
    pub max_connections: usize,
    /// The time in which open requests must finish at shutdown.
    pub shutdown_timeout: Duration,
}

impl Default for ConnectionLimits {
    /// The limits of a public listener.
    fn default() -> Self {
        Self {
            head_timeout: Duration::from_secs(5),
            idle_timeout: Some(Duration::from_secs(15)),
            max_connections: 512,
            shutdown_timeout: Duration::from_secs(5),
        }
    }
}

/// Serves connections until the shutdown, then lets open requests finish.
pub async fn serve_connections(
    listener: TcpListener,
    app: Router,
    limits: ConnectionLimits,
    shutdown: impl Future<Output = ()>,
) {
    let mut connections = Connections::with_limits(limits);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            () = connections.wait_until_one_ends() => {}
            (stream, remote) = accept_connection(&listener), if connections.is_below_limit() => {
                connections.serve_stream(stream, remote, &app);
            }
        }
    }
    // Refuse new connections instead of letting them wait.
    drop(listener);
    connections.close().await;
}

/// The open connections of a listener.
pub struct Connections {
    limits: ConnectionLimits,
    /// Each change closes idle connections, and the others after their response.
    closing: watch::Sender<()>,
    open: JoinSet<()>,
}

impl Connections {
    /// Creates an empty set of connections with these limits.
    pub fn with_limits(limits: ConnectionLimits) -> Self {
        Self { limits, closing: watch::Sender::new(()), open: JoinSet::new() }
    }

    /// Whether another connection is allowed.
    fn is_below_limit(&self) -> bool {
        self.open.len() < self.limits.max_connections
    }

    /// Starts serving the requests of a connection, until the connection ends or a shutdown is requested.
    pub fn serve_stream(&mut self, stream: TcpStream, remote: SocketAddr, app: &Router) {
        let app = app.clone().layer(Extension(remote));
        self.open.spawn(serve_stream_task(stream, app, self.limits, self.closing.subscribe()));
    }

    /// Waits until a connection has ended. If there are no connections, waits forever.
    pub async fn wait_until_one_ends(&mut self) {
        if self.open.join_next().await.is_none() {
            std::future::pending().await
        }
    }

    /// Asks all connections to close after their current response.
    pub fn request_shutdown(&self) {
        self.closing.send_replace(());
    }

    /// Asks all connections to close, waits for open requests up to the time limit, and aborts the remaining
    /// connections.
    pub async fn close(mut self) {
        self.request_shutdown();
        let ended = async { while self.open.join_next().await.is_some() {} };
        // Dropping `open` aborts the rest.
        let _ = tokio::time::timeout(self.limits.shutdown_timeout, ended).await;
    }
}

/// Serves the requests of a connection until it ends. After a shutdown request, only the current response is finished.
async fn serve_stream_task(stream: TcpStream, app: Router, limits: ConnectionLimits, mut closing: watch::Receiver<()>) {
    // Responses are small and needed immediately. If setting the option fails, the socket is only slower.
    let _ = stream.set_nodelay(true);
    let connection =
        http1::Builder::new().timer(TokioTimer::new()).header_read_timeout(limits.head_timeout).serve_connection(
            TokioIo::new(IdleTimeoutStream::new(stream, limits.idle_timeout)),
            TowerToHyperService::new(app),
        );
    let mut connection = std::pin::pin!(connection);
    // The result is ignored: a connection ends because of its client, a timeout or the shutdown.
    tokio::select! {
        // The shutdown is polled first, so that the last response already announces that the connection will close.
        biased;
        _ = closing.changed() => {}
        _ = connection.as_mut() => return,
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// A connection with an idle timeout.
struct IdleTimeoutStream {
    stream: TcpStream,
    idle: Option<IdleTimer>,
}

/// The idle timeout and its timer.
struct IdleTimer {
    timeout: Duration,
    timer: Pin<Box<Sleep>>,
}

impl IdleTimeoutStream {
    /// A connection with an optional idle timeout.
    fn new(stream: TcpStream, timeout: Option<Duration>) -> Self {
        let idle = timeout.map(|timeout| IdleTimer { timeout, timer: Box::pin(sleep(timeout)) });
        Self { stream, idle }
    }

    /// Handles the result of a read or write: progress resets the timer, and a timeout is an error.
    fn check_idle<T>(&mut self, context: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let Some(idle) = &mut self.idle else { return progress };
        if progress.is_pending() {
            ready!(idle.timer.as_mut().poll(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        idle.timer.as_mut().reset(Instant::now() + idle.timeout);
        progress
    }
}

impl AsyncRead for IdleTimeoutStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.check_idle(cx, read)
    }
}

impl AsyncWrite for IdleTimeoutStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check_idle(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.check_idle(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::body::Body;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::{mpsc, oneshot};
    use tokio::task::JoinHandle;

    use super::*;

    const SHORT: Duration = Duration::from_millis(60);
    const LONG: Duration = Duration::from_secs(60);

    struct TestServer {
        address: SocketAddr,
        shutdown: Option<oneshot::Sender<()>>,
        serving: JoinHandle<()>,
    }

    fn start_server(app: Router, limits: ConnectionLimits) -> TestServer {
        let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (shutdown, stopped) = oneshot::channel();
        let serving = tokio::spawn(serve_connections(listener, app, limits, async move {
            let _ = stopped.await;
        }));
        TestServer { address, shutdown: Some(shutdown), serving }
    }

    /// Sends these bytes and returns the response until the connection is closed.
    async fn send_and_read(address: SocketAddr, sent: &str) -> String {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(sent.as_bytes()).await.expect("sent");
        let mut response = String::new();
        // An aborted connection ends with an error here.
        let _ = tokio::time::timeout(LONG / 3, stream.read_to_string(&mut response)).await.expect("an end");
        response
    }

    fn hello_router() -> Router {
        Router::new().route("/", get(|| async { "hello" }))
    }

    /// A router that answers only after a signal, and reports when a request arrives.
    fn held_router(released: watch::Receiver<()>) -> (Router, mpsc::UnboundedReceiver<()>) {
        let (entered, inside) = mpsc::unbounded_channel();
        let answer = move || {
            let (entered, mut released) = (entered.clone(), released.clone());
            async move {
                let _ = entered.send(());
                let _ = released.changed().await;
                "answered"
            }
        };
        (Router::new().route("/", get(answer)), inside)
    }

    #[tokio::test]
    async fn connection_without_a_complete_request_head_is_closed() {
        let server = start_server(
            hello_router(),
            ConnectionLimits { head_timeout: SHORT, idle_timeout: None, ..ConnectionLimits::default() },
        );
        for sent in ["", "GET / HTTP/1.1\r\nHo"] {
            assert_eq!(send_and_read(server.address, sent).await, "", "{sent}");
        }
        let answer = send_and_read(server.address, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(answer.ends_with("hello"), "{answer}");
    }

    #[tokio::test]
    async fn client_that_does_not_read_its_response_is_disconnected() {
        // More than the buffers on both sides can hold.
        let large = Router::new().route("/", get(|| async { Body::from(vec![b'a'; 64 << 20]) }));
        let limits = ConnectionLimits {
            head_timeout: LONG,
            idle_timeout: Some(SHORT),
            max_connections: 1,
            ..ConnectionLimits::default()
        };
        let server = start_server(large, limits);
        let mut unread = TcpStream::connect(server.address).await.expect("a connection");
        unread.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("sent");
        // Only one connection is allowed, so this response proves that the first one was closed.
        let next = send_and_read(server.address, "GET /no HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        assert!(next.starts_with("HTTP/1.1 404"), "{next}");
    }

    #[tokio::test]
    async fn connection_above_the_limit_waits() {
        let server = start_server(
            hello_router(),
            ConnectionLimits {
                max_connections: 2,
                head_timeout: LONG,
                idle_timeout: None,
                ..ConnectionLimits::default()
            },
        );
        let idle = async || TcpStream::connect(server.address).await.expect("a connection");
        let (first, _second) = (idle().await, idle().await);
        let request =
            tokio::spawn(send_and_read(server.address, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        tokio::time::timeout(SHORT, std::future::pending::<()>()).await.expect_err("time passes");
        assert!(!request.is_finished(), "a third connection is served");
        drop(first);
        assert!(request.await.expect("an answer").ends_with("hello"));
    }

    #[tokio::test]
    async fn shutdown_refuses_new_connections_but_answers_open_requests() {
        let (release, released) = watch::channel(());
        let (slow, mut inside) = held_router(released);
        let mut server = start_server(slow, ConnectionLimits::default());
        let request = tokio::spawn(send_and_read(server.address, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        inside.recv().await.expect("a request arrives");
        drop(server.shutdown.take());
        while TcpStream::connect(server.address).await.is_ok() {}
        release.send_replace(());
        assert!(request.await.expect("an answer").ends_with("answered"));
        server.serving.await.expect("an end");
    }

    #[tokio::test]
    async fn stuck_request_is_aborted_at_shutdown() {
        let (_never, released) = watch::channel(());
        let (stuck, mut inside) = held_router(released);
        let limits = ConnectionLimits { shutdown_timeout: SHORT, ..ConnectionLimits::default() };
        let mut server = start_server(stuck, limits);
        let request = tokio::spawn(send_and_read(server.address, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        inside.recv().await.expect("a request arrives");
        drop(server.shutdown.take());
        server.serving.await.expect("an end");
        assert_eq!(request.await.expect("an end"), "");
    }
}
