//! The port of the sandbox: open, shut for a while, or closing in the face of the next.
//!
//! It must not know HTTP.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::Instant;

use crate::door::{BACKLOG, accept_connection, bind_socket, listen};
use crate::sandbox::faults::PortBehaviour;

/// How long to wait before trying to have the port again.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// Longer than anybody waits; in the place of a time that cannot be counted.
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
    /// Nobody listens. The port stays taken, so that it is still there afterwards.
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

    /// Does what the door has to do; connections that were accepted are not its business.
    pub(super) fn apply(&mut self, door: PortBehaviour) {
        match door {
            PortBehaviour::Open => {}
            PortBehaviour::Close => self.closing = true,
            PortBehaviour::Refuse(duration) => self.refuse_connections(duration),
        }
    }

    /// Refuses connections for so long, or for as long as it was told before if that is longer.
    fn refuse_connections(&mut self, duration: Duration) {
        let now = Instant::now();
        let ends = now.checked_add(duration).unwrap_or(now + FOR_EVER);
        if let PortState::Refusing { until, .. } = &mut self.state {
            *until = ends.max(*until);
            return;
        }
        // The listener first: as long as it listens nobody else gets the port, not even this process.
        self.state = PortState::Refusing { held: None, until: ends };
        let taken = bind_socket(self.address);
        if let (PortState::Refusing { held, .. }, Ok(socket)) = (&mut self.state, taken) {
            *held = Some(socket);
        }
    }

    /// The next connection that is let in. Nothing is lost if it is not waited for to the end.
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
        let mut doorway = open_test_port();
        let address = doorway.address();
        doorway.apply(PortBehaviour::Refuse(Duration::from_millis(50)));
        let refused = TcpStream::connect(address).await.expect_err("refused");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let knock = tokio::spawn(async move {
            loop {
                if let Ok(stream) = TcpStream::connect(address).await {
                    return stream.local_addr().expect("ours");
                }
            }
        });
        let (_stream, remote) = doorway.accept().await;
        assert_eq!((remote, doorway.address()), (knock.await.expect("a connection"), address));
    }

    #[tokio::test]
    async fn refusing_port_stays_reserved() {
        let mut doorway = open_test_port();
        doorway.apply(PortBehaviour::Refuse(Duration::from_secs(3_600)));
        let other = TcpSocket::new_v4().expect("a socket").bind(doorway.address()).expect_err("taken");
        assert_eq!(other.kind(), io::ErrorKind::AddrInUse);
    }

    #[tokio::test]
    async fn closing_port_closes_exactly_one_connection() {
        let mut doorway = open_test_port();
        let address = doorway.address();
        doorway.apply(PortBehaviour::Close);
        let knock = tokio::spawn(async move {
            let mut closed = TcpStream::connect(address).await.expect("accepted by the system");
            assert_eq!(closed.read(&mut [0]).await.expect("the end"), 0);
            TcpStream::connect(address).await.expect("a connection").local_addr().expect("ours")
        });
        let (_stream, remote) = doorway.accept().await;
        assert_eq!(remote, knock.await.expect("both"));
    }
}
