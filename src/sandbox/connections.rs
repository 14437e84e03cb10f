//! The connections of the sandbox: accepting them, bounding them, ending them.

use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// How long the sandbox waits for others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// For the head of a request, and so also for the next request on an idle connection.
    pub head: Duration,
    /// For the body of a request.
    pub body: Duration,
    /// For the requests under way when it stops.
    pub stop: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { head: Duration::from_secs(30), body: Duration::from_secs(30), stop: Duration::from_secs(5) }
    }
}

/// How long to wait after a connection could not be accepted, which is for want of file descriptors as a rule.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Serves every connection until `stop` is told or dropped, then lets the requests under way end.
pub(super) async fn serve(listener: TcpListener, app: Router, timeouts: Timeouts, mut stop: oneshot::Receiver<()>) {
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, remote)) => {
                    let app = app.clone().layer(Extension(remote));
                    connections.spawn(graceful.watch(connection(stream, app, timeouts.head)));
                }
                Err(error) => {
                    tracing::warn!("the sandbox cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = &mut stop => break,
        }
    }
    drop(listener);
    // What outlasts this is aborted with `connections`.
    let _ = tokio::time::timeout(timeouts.stop, graceful.shutdown()).await;
}

/// One connection, kept alive for request after request.
fn connection(
    stream: TcpStream,
    app: Router,
    head: Duration,
) -> http1::Connection<TokioIo<TcpStream>, TowerToHyperService<Router>> {
    // Answers are small and wanted at once; a socket that refuses the option only is slower.
    let _ = stream.set_nodelay(true);
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app))
}
