//! The port of the sandbox: listening, refusing or closing connections when a fault says so, and serving the others.
//!
//! It must not inspect requests.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::faults::PortBehaviour;
use campaign_net::{BACKLOG, ConnectionLimits, Connections, accept_connection, bind_socket, listen};

/// How long to wait before trying to bind the port again.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// A practically infinite time, in place of one that overflows.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A port of this machine.
pub(super) struct SandboxPort {
    address: SocketAddr,
    state: PortState,
    /// Whether the next connection is closed at once.
    closing: bool,
}

enum PortState {
    Listening(TcpListener),
    /// Connections are refused. The port stays bound, so that no other program takes it.
    Refusing {
        held: Option<TcpSocket>,
        until: Instant,
    },
}

impl SandboxPort {
    /// Listens on an address; port 0 picks a free one.
    pub(super) fn open(address: SocketAddr) -> io::Result<Self> {
        let listener = listen(address)?;
        let address = listener.local_addr()?;
        Ok(Self { address, state: PortState::Listening(listener), closing: false })
    }

    /// The address with its port.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Applies an order to the port. Accepted connections are not affected.
    pub(super) fn apply(&mut self, behaviour: PortBehaviour) {
        match behaviour {
            PortBehaviour::Open => {}
            PortBehaviour::Close => self.closing = true,
            PortBehaviour::Refuse(duration) => self.refuse_connections(duration),
        }
    }

    /// Refuses connections for this long, or for as long as before if that is longer.
    fn refuse_connections(&mut self, duration: Duration) {
        let now = Instant::now();
        let ends = now.checked_add(duration).unwrap_or(now + FOR_EVER);
        if let PortState::Refusing { until, .. } = &mut self.state {
            *until = ends.max(*until);
            return;
        }
        // Replace the listener first: while it listens, no process can bind the port, not even this one.
        self.state = PortState::Refusing { held: None, until: ends };
        let taken = bind_socket(self.address);
        if let (PortState::Refusing { held, .. }, Ok(socket)) = (&mut self.state, taken) {
            *held = Some(socket);
        }
    }

    /// The next accepted connection. Cancel safe.
    pub(super) async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            match &mut self.state {
                PortState::Refusing { until, .. } => {
                    tokio::time::sleep_until(*until).await;
                    self.reopen();
                }
                PortState::Listening(listener) => match accept_connection(listener).await {
                    _ if self.closing => self.closing = false,
                    accepted => return accepted,
                },
            }
        }
    }

    fn reopen(&mut self) {
        let PortState::Refusing { held, until } = &mut self.state else { return };
        let socket = held.take().map_or_else(|| bind_socket(self.address), Ok);
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

/// An order to the port.
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
        Self { head: timeouts.head, silence: None, connections: usize::MAX, end: timeouts.stop }
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
            () = connections.wait_for_one() => {}
            (stream, remote) = port.accept() => connections.serve_stream(stream, remote, &app),
        }
    }
    drop((port, orders));
    connections.close().await;
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
        let refused = TcpStream::connect(address).await.expect_err("refused");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
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
