//! Senders of webhooks: the address of a sender behind trusted proxies, and the rate limit for forged webhooks.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::http::HeaderMap;
use governor::clock::DefaultClock;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use ipnet::IpNet;

/// The proxies whose `X-Forwarded-For` headers are trusted.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Trusts the proxies of these networks.
    #[must_use]
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// The client address of a request on a connection from `peer`.
    ///
    /// Each proxy appends the address of its client. The last address that is not a trusted proxy counts, because
    /// anyone can write the addresses before it.
    pub(super) fn sender_of(&self, peer: SocketAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.ip().to_canonical();
        if !self.is_trusted(peer) {
            return peer;
        }
        let hops: Vec<&str> = headers
            .get_all("x-forwarded-for")
            .into_iter()
            .flat_map(|value| value.to_str().unwrap_or("").split(','))
            .map(str::trim)
            .collect();
        let mut sender = peer;
        for hop in hops.into_iter().rev() {
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

/// The number of forged webhooks of a sender that are examined per second, and at once.
const FORGERIES_PER_SECOND: NonZeroU32 = NonZeroU32::new(10).expect("more than none");
/// The largest number of senders that are counted separately; further senders share one counter.
const MAX_SENDERS: usize = 65_536;
/// The number of charges after which idle senders are forgotten.
const CHARGES_PER_CLEANUP: u32 = 8_192;

type Limiter = RateLimiter<IpAddr, DefaultKeyedStateStore<IpAddr>, DefaultClock>;

/// Rate limit for senders of forged webhooks.
pub(super) struct ForgeryLimiter {
    limiter: Limiter,
    charged: AtomicU32,
}

impl Default for ForgeryLimiter {
    fn default() -> Self {
        Self { limiter: RateLimiter::keyed(Quota::per_second(FORGERIES_PER_SECOND)), charged: AtomicU32::new(0) }
    }
}

impl ForgeryLimiter {
    /// Charges a sender for a forged webhook. Returns whether it is within the limit.
    pub(super) fn charge_sender(&self, sender: IpAddr) -> bool {
        if self.charged.fetch_add(1, Ordering::Relaxed) % CHARGES_PER_CLEANUP == CHARGES_PER_CLEANUP - 1 {
            self.limiter.retain_recent();
        }
        let has_room = self.limiter.len() < MAX_SENDERS;
        let key = if has_room { sender_network(sender) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        self.limiter.check_key(&key).is_ok()
    }
}

/// The part of an address that the sender cannot choose: for IPv6, the /64 network of a customer.
fn sender_network(sender: IpAddr) -> IpAddr {
    match sender {
        IpAddr::V4(_) => sender,
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_trusted_proxy_can_name_the_sender() {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()]);
        for (peer, forwarded, expected) in [
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
            let sender = proxies.sender_of(peer.parse().unwrap(), &headers);
            assert_eq!(sender, expected.parse::<IpAddr>().unwrap(), "{peer} {forwarded}");
        }
    }

    #[test]
    fn each_sender_has_a_separate_limit() {
        let limiter = ForgeryLimiter::default();
        let sender = |text: &str| text.parse::<IpAddr>().unwrap();
        let allowed = (0..1_000).filter(|_| limiter.charge_sender(sender("203.0.113.7"))).count();
        assert!((10..100).contains(&allowed), "{allowed}");
        assert!(limiter.charge_sender(sender("203.0.113.8")));
        let of_one_network = |last: u16| sender(&format!("2001:db8::{last:x}"));
        let allowed = (0..1_000).filter(|last| limiter.charge_sender(of_one_network(*last))).count();
        assert!((10..100).contains(&allowed), "{allowed}");
    }
}
