//! Slows down senders of what nobody gave an address for. Only a wrong mac is charged, so that no forger keeps out the
//! gateway behind the same address.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use governor::clock::DefaultClock;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

/// How many forged webhooks of a sender are looked at in a second, and at once.
const RATE: NonZeroU32 = NonZeroU32::new(10).expect("more than none");
/// The most senders that are known apart; beyond that strangers share one.
const SENDERS: usize = 65_536;
/// After how many charges those are forgotten that were quiet meanwhile.
const TIDY: u32 = 8_192;

type Limiter = RateLimiter<IpAddr, DefaultKeyedStateStore<IpAddr>, DefaultClock>;

/// What the senders of forged webhooks were charged.
pub(super) struct Strangers {
    limiter: Limiter,
    charged: AtomicU32,
}

impl Default for Strangers {
    fn default() -> Self {
        Self { limiter: RateLimiter::keyed(Quota::per_second(RATE)), charged: AtomicU32::new(0) }
    }
}

impl Strangers {
    /// Charges a sender for a forged webhook; tells whether it still is listened to.
    pub(super) fn charge(&self, sender: IpAddr) -> bool {
        if self.charged.fetch_add(1, Ordering::Relaxed) % TIDY == TIDY - 1 {
            self.limiter.retain_recent();
        }
        let known = self.limiter.len() < SENDERS;
        let key = if known { network(sender) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        self.limiter.check_key(&key).is_ok()
    }
}

/// What of an address its sender cannot change: a customer's whole network where the addresses are of IPv6.
fn network(sender: IpAddr) -> IpAddr {
    match sender {
        IpAddr::V4(_) => sender,
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_forges_much_is_not_listened_to_and_nobody_else_pays_for_it() {
        let strangers = Strangers::default();
        let sender = |text: &str| text.parse::<IpAddr>().unwrap();
        let heard = (0..1_000).filter(|_| strangers.charge(sender("203.0.113.7"))).count();
        assert!((10..100).contains(&heard), "{heard}");
        assert!(strangers.charge(sender("203.0.113.8")));
        let of_one_network = |last: u16| sender(&format!("2001:db8::{last:x}"));
        let heard = (0..1_000).filter(|last| strangers.charge(of_one_network(*last))).count();
        assert!((10..100).contains(&heard), "{heard}");
    }
}
