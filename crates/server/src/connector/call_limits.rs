//! Rate limits of callers, by address and by API key.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hash};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use secrecy::{ExposeSecret as _, SecretString};

/// The largest number of calls per second of a caller.
const CALLS_PER_SECOND: NonZeroU32 = NonZeroU32::new(2_000).expect("more than none");
/// The maximum number of known callers.
const MAX_CALLERS: usize = 16_384;

/// Rate limits of callers.
pub(super) struct CallLimits {
    limiter: RateLimiter<u64, DefaultKeyedStateStore<u64>, DefaultClock>,
    /// Its random secret keeps stored hashes from revealing keys.
    hasher: RandomState,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self::with_rate(CALLS_PER_SECOND)
    }
}

impl CallLimits {
    fn with_rate(calls: NonZeroU32) -> Self {
        Self { limiter: RateLimiter::keyed(Quota::per_second(calls)), hasher: RandomState::new() }
    }

    /// Charges a call to an address.
    ///
    /// # Errors
    /// The time to wait, if the limit is exceeded.
    pub(super) fn charge_address(&self, address: IpAddr) -> Result<(), Duration> {
        self.charge_caller(("address", address))
    }

    /// Charges a call to a key.
    ///
    /// # Errors
    /// The time to wait, if the limit is exceeded.
    pub(super) fn charge_key(&self, key: &SecretString) -> Result<(), Duration> {
        self.charge_caller(("key", key.expose_secret()))
    }

    fn charge_caller(&self, caller: impl Hash) -> Result<(), Duration> {
        if self.limiter.len() >= MAX_CALLERS {
            self.limiter.retain_recent();
        }
        let caller = self.hasher.hash_one(caller);
        self.limiter.check_key(&caller).map_err(|early| early.wait_time_from(DefaultClock::default().now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caller_over_the_limit_waits_alone() {
        let limits = CallLimits::with_rate(NonZeroU32::new(3).unwrap());
        let (one, other) = (SecretString::from("one"), SecretString::from("other"));
        let allowed = (0..10).filter(|_| limits.charge_key(&one).is_ok()).count();
        assert_eq!(allowed, 3);
        assert!(limits.charge_key(&one).is_err_and(|wait| wait <= Duration::from_secs(1)));
        assert!(limits.charge_key(&other).is_ok());
        assert!(limits.charge_address(IpAddr::from([127, 0, 0, 1])).is_ok());
    }
}
