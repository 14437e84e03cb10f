//! Slows down senders of what nobody gave an address for. Only a wrong mac is charged, so that no forger keeps out the
//! gateway behind the same address.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use governor::clock::DefaultClock;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

/// How many forged webhooks of a sender are looked at in a second, and at once.
const FORGERIES_PER_SECOND: NonZeroU32 = NonZeroU32::new(10).expect("more than none");
/// The most senders that are known apart; beyond that strangers share one.
const MAX_SENDERS: usize = 65_536;
/// After how many charges those are forgotten that were quiet meanwhile.
const CHARGES_PER_CLEANUP: u32 = 8_192;

type Limiter = RateLimiter<IpAddr, DefaultKeyedStateStore<IpAddr>, DefaultClock>;

/// What the senders of forged webhooks were charged.
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
    /// Charges a sender for a forged webhook; tells whether it still is listened to.
    pub(super) fn charge_sender(&self, sender: IpAddr) -> bool {
        if self.charged.fetch_add(1, Ordering::Relaxed) % CHARGES_PER_CLEANUP == CHARGES_PER_CLEANUP - 1 {
            self.limiter.retain_recent();
        }
        let known = self.limiter.len() < MAX_SENDERS;
        let key = if known { sender_network(sender) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        self.limiter.check_key(&key).is_ok()
    }
}

/// What of an address its sender cannot change: a customer's whole network where the addresses are of IPv6.
fn sender_network(sender: IpAddr) -> IpAddr {
    match sender {
        IpAddr::V4(_) => sender,
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_forger_is_limited_alone() {
        let strangers = ForgeryLimiter::default();
        let sender = |text: &str| text.parse::<IpAddr>().unwrap();
        let heard = (0..1_000).filter(|_| strangers.charge_sender(sender("203.0.113.7"))).count();
        assert!((10..100).contains(&heard), "{heard}");
        assert!(strangers.charge_sender(sender("203.0.113.8")));
        let of_one_network = |last: u16| sender(&format!("2001:db8::{last:x}"));
        let heard = (0..1_000).filter(|last| strangers.charge_sender(of_one_network(*last))).count();
        assert!((10..100).contains(&heard), "{heard}");
    }
}
