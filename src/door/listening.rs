//! Listening on an address, and taking the connections that come to it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// How many connections may wait to be accepted.
pub(crate) const BACKLOG: u32 = 1024;
/// How long to wait after something failed that may be better soon: for want of file descriptors as a rule.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Listens on an address; port 0 picks a free one.
///
/// # Errors
/// When the address is not of this machine, or somebody else has it.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    bind_socket(address)?.listen(BACKLOG)
}

/// A socket that has the address and does not listen: connections to it are refused.
///
/// # Errors
/// As for [`listen`].
pub(crate) fn bind_socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Elsewhere than on Unix it would let others take the port from a listener.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// The next connection, and who it is from. Nothing is lost if it is not waited for to the end.
pub(crate) async fn accept_connection(listener: &TcpListener) -> (TcpStream, SocketAddr) {
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

/// An address that a client can connect to: one that listens everywhere is found on loopback.
pub(crate) fn connectable_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
