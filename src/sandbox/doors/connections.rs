//! The connections of the sandbox: accepting them, bounding them, ending them.
//!
//! It must not look into a request: an answer that is lost ends its connection by itself, and what the door does is
//! told to it.

use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::doorway::Doorway;
use crate::sandbox::faults::Door;

/// How long the sandbox waits for others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// For the head of a request, and so also for the next request on an idle connection.
    pub head: Duration,
    /// For the body of a request.
    pub body: Duration,
    /// For the requests under way when it stops.
    pub stop: Duration,
    /// For the receivers of webhooks when everything runs out.
    pub receivers: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let (client, end) = (Duration::from_secs(30), Duration::from_secs(5));
        Self { head: client, body: client, stop: end, receivers: end }
    }
}

/// What the door has to do from now on.
pub(super) struct DoorOrder {
    pub door: Door,
    /// Told, by being dropped, once it is done.
    pub done: oneshot::Sender<()>,
}

/// What tells the server what to do: orders to the door, and, told or dropped, that it ends.
pub(super) type Orders = (mpsc::UnboundedReceiver<DoorOrder>, oneshot::Receiver<()>);

/// Serves every connection until it is told to stop, then lets the requests under way end.
pub(super) async fn serve(mut doorway: Doorway, app: Router, timeouts: Timeouts, orders: Orders) {
    let (mut orders, mut stop) = orders;
    // Each change of it ends the connections that wait for another request, and the others after their answer.
    let leave = watch::Sender::new(());
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // First the orders: what comes to a door that is to be closed finds it closed.
            biased;
            _ = &mut stop => break,
            Some(DoorOrder { door, done }) = orders.recv() => {
                if door != Door::Open {
                    leave.send_replace(());
                    doorway.act(door);
                }
                drop(done);
            }
            Some(_) = connections.join_next() => {}
            (stream, remote) = doorway.accept() => {
                let app = app.clone().layer(Extension(remote));
                connections.spawn(connection(stream, app, timeouts.head, leave.subscribe()));
            }
        }
    }
    drop((doorway, orders));
    leave.send_replace(());
    // What outlasts this is aborted with `connections`.
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(timeouts.stop, ended).await;
}

/// One connection, kept alive for request after request until everybody has to leave.
async fn connection(stream: TcpStream, app: Router, head: Duration, mut leave: watch::Receiver<()>) {
    // Answers are small and wanted at once; a socket that refuses the option only is slower.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
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
