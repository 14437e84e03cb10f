//! The connections of the sandbox: letting them in and ending them, as its door is told.
//!
//! It must not look into a request: an answer that is lost ends its connection by itself, and what the door does is
//! told to it.

use std::time::Duration;

use axum::Router;
use tokio::sync::{mpsc, oneshot};

use super::doorway::SandboxPort;
use crate::door::{ConnectionLimits, Connections};
use crate::sandbox::faults::PortBehaviour;

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
pub(super) struct PortOrder {
    pub door: PortBehaviour,
    /// Told, by being dropped, once it is done.
    pub done: oneshot::Sender<()>,
}

/// What tells the server what to do: orders to the door, and, told or dropped, that it ends.
pub(super) type ServerOrders = (mpsc::UnboundedReceiver<PortOrder>, oneshot::Receiver<()>);

impl From<Timeouts> for ConnectionLimits {
    fn from(timeouts: Timeouts) -> Self {
        // An answer may be late on purpose, and a client may open as many connections as it likes.
        Self { head: timeouts.head, silence: None, connections: usize::MAX, end: timeouts.stop }
    }
}

/// Serves every connection until it is told to stop, then lets the requests under way end.
pub(super) async fn serve_connections(mut doorway: SandboxPort, app: Router, timeouts: Timeouts, orders: ServerOrders) {
    let (mut orders, mut stop) = orders;
    let mut connections = Connections::with_limits(timeouts.into());
    loop {
        tokio::select! {
            // First the orders: what comes to a door that is to be closed finds it closed.
            biased;
            _ = &mut stop => break,
            Some(PortOrder { door, done }) = orders.recv() => {
                if door != PortBehaviour::Open {
                    connections.request_shutdown();
                    doorway.apply(door);
                }
                drop(done);
            }
            () = connections.wait_for_one() => {}
            (stream, remote) = doorway.accept() => connections.serve_stream(stream, remote, &app),
        }
    }
    drop((doorway, orders));
    connections.close().await;
}
