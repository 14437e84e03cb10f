//! The connections that a door let in: bounding them, ending them.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::listening::accept_connection;
use super::silence::IdleTimeoutStream;

/// How much a door puts up with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    /// How long the head of a request may take, and so also how long a connection waits for the next request.
    pub head: Duration,
    /// How long nothing may move on a connection in either direction; nothing where answers may be late on purpose.
    pub silence: Option<Duration>,
    /// The most connections at once; further ones wait at the door.
    pub connections: usize,
    /// How long the requests under way have when the door is shut.
    pub end: Duration,
}

impl Default for ConnectionLimits {
    /// Those of a door that strangers can reach.
    fn default() -> Self {
        let (head, silence, end) = (Duration::from_secs(5), Duration::from_secs(15), Duration::from_secs(5));
        Self { head, silence: Some(silence), connections: 512, end }
    }
}

/// Serves the connections of a door until the shutdown comes, then lets the requests under way end.
pub(crate) async fn serve_connections(
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
            () = connections.wait_for_one() => {}
            (stream, remote) = accept_connection(&listener), if connections.has_room() => connections.serve_stream(stream, remote, &app),
        }
    }
    // Who comes from now on is refused, and not left waiting.
    drop(listener);
    connections.close().await;
}

/// The connections that a door let in.
pub(crate) struct Connections {
    limits: ConnectionLimits,
    /// Each change of it ends the connections that wait for another request, and the others after their answer.
    leave: watch::Sender<()>,
    open: JoinSet<()>,
}

impl Connections {
    /// None yet.
    pub(crate) fn with_limits(limits: ConnectionLimits) -> Self {
        Self { limits, leave: watch::Sender::new(()), open: JoinSet::new() }
    }

    /// Whether another one may be let in.
    pub(crate) fn has_room(&self) -> bool {
        self.open.len() < self.limits.connections
    }

    /// Serves a connection, request after request, until it or everybody has to leave.
    pub(crate) fn serve_stream(&mut self, stream: TcpStream, remote: SocketAddr, app: &Router) {
        let app = app.clone().layer(Extension(remote));
        self.open.spawn(serve_stream_task(stream, app, self.limits, self.leave.subscribe()));
    }

    /// Waits until one has ended; for ever while there is none.
    pub(crate) async fn wait_for_one(&mut self) {
        if self.open.join_next().await.is_none() {
            std::future::pending().await
        }
    }

    /// Has everybody leave once what is under way is answered.
    pub(crate) fn request_shutdown(&self) {
        self.leave.send_replace(());
    }

    /// Has everybody leave, waits for what is under way as long as it has, and ends what outlasts that.
    pub(crate) async fn close(mut self) {
        self.request_shutdown();
        let ended = async { while self.open.join_next().await.is_some() {} };
        // The rest is aborted with `open`.
        let _ = tokio::time::timeout(self.limits.end, ended).await;
    }
}

async fn serve_stream_task(stream: TcpStream, app: Router, limits: ConnectionLimits, mut leave: watch::Receiver<()>) {
    // Answers are small and wanted at once; a socket that refuses the option only is slower.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .serve_connection(TokioIo::new(IdleTimeoutStream::new(stream, limits.silence)), TowerToHyperService::new(app));
    let mut connection = std::pin::pin!(connection);
    // How a connection ends is the client's affair, or was ordered.
    tokio::select! {
        // An answer that is about to be given must already say that it is the last.
        biased;
        _ = leave.changed() => {}
        _ = connection.as_mut() => return,
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
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
    use crate::door::listen;

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
        let (shutdown, told) = oneshot::channel();
        let serving = tokio::spawn(serve_connections(listener, app, limits, async move {
            let _ = told.await;
        }));
        TestServer { address, shutdown: Some(shutdown), serving }
    }

    /// What comes back for these bytes until the connection is closed.
    async fn send_and_read(address: SocketAddr, sent: &str) -> String {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(sent.as_bytes()).await.expect("sent");
        let mut heard = String::new();
        // A connection that is aborted ends with an error here.
        let _ = tokio::time::timeout(LONG / 3, stream.read_to_string(&mut heard)).await.expect("an end");
        heard
    }

    fn hello_router() -> Router {
        Router::new().route("/", get(|| async { "hello" }))
    }

    /// What answers once the sender of this says so, and tells when it is asked.
    fn held_router(gone: watch::Receiver<()>) -> (Router, mpsc::UnboundedReceiver<()>) {
        let (entered, inside) = mpsc::unbounded_channel();
        let answer = move || {
            let (entered, mut gone) = (entered.clone(), gone.clone());
            async move {
                let _ = entered.send(());
                let _ = gone.changed().await;
                "answered"
            }
        };
        (Router::new().route("/", get(answer)), inside)
    }

    #[tokio::test]
    async fn unfinished_head_and_idle_connection_are_closed() {
        let door = start_server(
            hello_router(),
            ConnectionLimits { head: SHORT, silence: None, ..ConnectionLimits::default() },
        );
        for sent in ["", "GET / HTTP/1.1\r\nHo"] {
            assert_eq!(send_and_read(door.address, sent).await, "", "{sent}");
        }
        let answered = send_and_read(door.address, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(answered.ends_with("hello"), "{answered}");
    }

    #[tokio::test]
    async fn unread_response_holds_no_connection() {
        // More than the buffers of both sides hold.
        let large = Router::new().route("/", get(|| async { Body::from(vec![b'a'; 64 << 20]) }));
        let limits =
            ConnectionLimits { head: LONG, silence: Some(SHORT), connections: 1, ..ConnectionLimits::default() };
        let door = start_server(large, limits);
        let mut deaf = TcpStream::connect(door.address).await.expect("a connection");
        deaf.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("sent");
        // There is room for one alone, so this one is answered only because that one was closed.
        let next = send_and_read(door.address, "GET /no HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        assert!(next.starts_with("HTTP/1.1 404"), "{next}");
    }

    #[tokio::test]
    async fn connection_above_the_limit_waits() {
        let door = start_server(
            hello_router(),
            ConnectionLimits { connections: 2, head: LONG, silence: None, ..ConnectionLimits::default() },
        );
        let idle = async || TcpStream::connect(door.address).await.expect("a connection");
        let (first, _second) = (idle().await, idle().await);
        let asked = tokio::spawn(send_and_read(door.address, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        tokio::time::timeout(SHORT, std::future::pending::<()>()).await.expect_err("time passes");
        assert!(!asked.is_finished(), "a third is served");
        drop(first);
        assert!(asked.await.expect("an answer").ends_with("hello"));
    }

    #[tokio::test]
    async fn shutdown_refuses_new_and_answers_open_requests() {
        let (go, gone) = watch::channel(());
        let (slow, mut inside) = held_router(gone);
        let mut door = start_server(slow, ConnectionLimits::default());
        let asked = tokio::spawn(send_and_read(door.address, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        inside.recv().await.expect("it is asked");
        drop(door.shutdown.take());
        while TcpStream::connect(door.address).await.is_ok() {}
        go.send_replace(());
        assert!(asked.await.expect("an answer").ends_with("answered"));
        door.serving.await.expect("an end");
    }

    #[tokio::test]
    async fn stuck_request_is_ended_at_shutdown() {
        let (_never, gone) = watch::channel(());
        let (stuck, mut inside) = held_router(gone);
        let mut door = start_server(stuck, ConnectionLimits { end: SHORT, ..ConnectionLimits::default() });
        let asked = tokio::spawn(send_and_read(door.address, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        inside.recv().await.expect("it is asked");
        drop(door.shutdown.take());
        door.serving.await.expect("an end");
        assert_eq!(asked.await.expect("an end"), "");
    }
}
