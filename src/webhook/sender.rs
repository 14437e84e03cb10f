//! Who a request is from: the address of its connection, or the one that a trusted proxy speaks for.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

/// The proxies whose word about a sender is believed.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Those of these networks.
    #[must_use]
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// Who sent a request that came over a connection of `peer`.
    ///
    /// Each proxy writes whom it speaks for behind what it was told, so the last address that is no proxy of ours counts:
    /// what stands before it anybody may have written.
    pub(super) fn sender_of(&self, peer: SocketAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.ip().to_canonical();
        if !self.is_trusted(peer) {
            return peer;
        }
        let told: Vec<&str> = headers
            .get_all("x-forwarded-for")
            .into_iter()
            .flat_map(|value| value.to_str().unwrap_or("").split(','))
            .map(str::trim)
            .collect();
        let mut sender = peer;
        for hop in told.into_iter().rev() {
            let Some(address) = parse_address(hop) else { break };
            sender = address;
            if !self.is_trusted(address) {
                break;
            }
        }
        sender
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// An address with or without a port.
fn parse_address(hop: &str) -> Option<IpAddr> {
    let with_port = hop.parse::<SocketAddr>().ok().map(|address| address.ip());
    let bare = hop.trim_start_matches('[').trim_end_matches(']');
    with_port.or_else(|| bare.parse().ok()).map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_trusted_proxy_can_name_the_sender() {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()]);
        for (peer, forwarded, sender) in [
            ("203.0.113.7:1", "8.8.8.8", "203.0.113.7"),
            ("10.0.0.1:1", "", "10.0.0.1"),
            ("10.0.0.1:1", "8.8.8.8", "8.8.8.8"),
            ("10.0.0.1:1", "1.1.1.1, 8.8.8.8", "8.8.8.8"),
            ("10.0.0.1:1", "8.8.8.8:4711, 10.0.0.2", "8.8.8.8"),
            ("10.0.0.1:1", "8.8.8.8, unknown", "10.0.0.1"),
            ("10.0.0.1:1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("[::1]:1", "2001:db8::7", "2001:db8::7"),
            ("[::ffff:10.0.0.1]:1", "[2001:db8::7]:80", "2001:db8::7"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", HeaderValue::from_str(forwarded).unwrap());
            let told = proxies.sender_of(peer.parse().unwrap(), &headers);
            assert_eq!(told, sender.parse::<IpAddr>().unwrap(), "{peer} {forwarded}");
        }
    }
}
