//! The account's pace: one gate that every campaign and process on the ledger passes. Pure.
//!
//! Times are microseconds of the wall clock, because they are shared and survive a restart.

use std::time::Duration;

/// Microseconds in a second.
pub(super) const SECOND: i64 = 1_000_000;
/// The longest that a gateway can have everybody wait; a longer wish stops the run.
const MAX_REQUESTED_WAIT: i64 = 600 * SECOND;
/// The pace is never slowed to less than this share of the allowance.
const MIN_SHARE: f64 = 1.0 / 64.0;

/// What the ledger keeps of an account's pace.
///
/// What is booked ahead counts from `written_at` and not from the clock as it is now: it was booked honestly then, an
/// envelope by each process that waits for its slot. So however far the clock is set back, nobody waits for longer than
/// what was booked, or than the gateway asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccountRateLimit {
    /// The first instant at which the next operation may leave.
    pub next_free: i64,
    /// The share of the allowance that is used, 0 to 1, as of `slowed_at`.
    pub share: f64,
    /// When the share was last changed.
    pub slowed_at: i64,
    /// Nothing leaves before this instant, whatever the rate.
    pub not_before: i64,
    /// When all this was written, by the same clock.
    pub written_at: i64,
    /// Operations per second that were allowed last; nothing if there was no limit.
    pub rate: Option<f64>,
    /// How many operations ever took room.
    pub taken: i64,
}

impl Default for AccountRateLimit {
    fn default() -> Self {
        Self { next_free: 0, share: 1.0, slowed_at: 0, not_before: 0, written_at: 0, rate: None, taken: 0 }
    }
}

/// How long an envelope waits for its slot, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotWait {
    /// How long.
    pub time: Duration,
    /// Why; nothing is to be told of a wait of no time.
    pub reason: WaitReason,
}

/// Why an envelope waits for its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// Others have booked what the rate has room for.
    RateLimitUsed,
    /// The gateway asked for it.
    GatewayRequested,
    /// The clock was set back, so that nobody knows how much of an earlier wait is over.
    ClockSetBack,
}

impl SlotWait {
    /// No wait at all.
    pub const NONE: Self = Self { time: Duration::ZERO, reason: WaitReason::RateLimitUsed };
}

impl WaitReason {
    /// The reason in words, behind "waiting 12 s: ".
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::RateLimitUsed => "another process is using the account's rate limit",
            Self::GatewayRequested => "the gateway asked campaign to wait",
            Self::ClockSetBack => "the clock was set back during a wait for the rate limit or the gateway",
        }
    }
}

/// Room that was taken from an account's pace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reservation {
    /// The pace after it.
    pub rate_limit: AccountRateLimit,
    /// How long until the operations may leave.
    pub wait: SlotWait,
}

impl AccountRateLimit {
    /// Takes room for `count` operations at `rate` per second (`None`: unlimited) at the instant `now`.
    #[must_use]
    pub fn reserve(self, now: i64, count: u32, rate: Option<f64>) -> Reservation {
        let set_back = now < self.written_at;
        let mut pace = self.rebase_to(now);
        let spacing = rate.map(|rate| slot_length(count, rate * pace.share_at(now)));
        let leave = pace.next_free.max(pace.not_before).max(now);
        let reason = match () {
            () if set_back => WaitReason::ClockSetBack,
            () if pace.not_before >= pace.next_free => WaitReason::GatewayRequested,
            () => WaitReason::RateLimitUsed,
        };
        pace.next_free = spacing.map_or(pace.next_free, |spacing| leave + spacing);
        (pace.rate, pace.taken) = (rate, pace.taken.saturating_add(count.into()));
        let time = Duration::from_micros(u64::try_from(leave - now).unwrap_or(0));
        Reservation { rate_limit: pace, wait: if time.is_zero() { SlotWait::NONE } else { SlotWait { time, reason } } }
    }

    /// The pace after the gateway asked to slow down, and maybe to wait `wait` microseconds.
    #[must_use]
    pub fn slow_down(self, now: i64, wait: Option<i64>) -> Self {
        let pace = self.rebase_to(now);
        Self {
            share: halve_share(pace.share_at(now)),
            slowed_at: now,
            not_before: pace.not_before.max(now + wait.unwrap_or(SECOND)),
            ..pace
        }
    }

    /// How many operations per second are allowed at `now`, after what the gateway asked for; nothing if there is no limit.
    #[must_use]
    pub fn allowed_rate(self, now: i64) -> Option<f64> {
        self.rate.map(|rate| rate * self.rebase_to(now).share_at(now))
    }

    /// The share of the allowance at `now`.
    pub(super) fn share_at(self, now: i64) -> f64 {
        let since = u64::try_from(now - self.slowed_at).unwrap_or(0);
        recover_share(self.share, Duration::from_micros(since))
    }

    /// The pace as it is written at `now`. A clock that was set back moves everything with it, as if no time had passed.
    pub(super) fn rebase_to(self, now: i64) -> Self {
        let set_back = (self.written_at - now).max(0);
        Self {
            next_free: self.next_free - set_back,
            slowed_at: self.slowed_at - set_back,
            not_before: (self.not_before - set_back).min(now + MAX_REQUESTED_WAIT),
            written_at: now,
            ..self
        }
    }
}

/// The share of a rate that is left after the gateway asked to slow down.
#[must_use]
pub fn halve_share(share: f64) -> f64 {
    (share / 2.0).max(MIN_SHARE)
}

/// What a share of a rate has become after a time: a tenth of the rate comes back each minute.
#[must_use]
pub fn recover_share(share: f64, after: Duration) -> f64 {
    (share + after.as_secs_f64() / 600.0).min(1.0)
}

pub(super) fn slot_length(count: u32, rate: f64) -> i64 {
    (f64::from(count) * SECOND as f64 / rate).ceil() as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn one_second_holds_at_most_the_rate_and_one_envelope(
            rate in 1.0_f64..5_000.0,
            steps in prop::collection::vec((0_i64..2_000_000, 1_u32..100), 1..200),
        ) {
            let largest = steps.iter().map(|&(_, count)| count).max().unwrap_or(0);
            let mut pace = AccountRateLimit::default();
            let mut now = 1_000_000_000;
            let mut left: Vec<(i64, u32)> = Vec::new();
            for (pause, count) in steps {
                now += pause;
                let count = count.min(rate.max(1.0) as u32);
                let reservation = pace.reserve(now, count, Some(rate));
                pace = reservation.rate_limit;
                left.push((now + micros(reservation.wait), count));
            }
            for &(start, _) in &left {
                let within: u32 = left.iter().filter(|(at, _)| (start..start + SECOND).contains(at)).map(|&(_, n)| n).sum();
                prop_assert!(f64::from(within) <= rate + f64::from(largest) + 1.0, "{within} at {rate}/s");
            }
        }
    }

    fn micros(wait: SlotWait) -> i64 {
        wait.time.as_micros() as i64
    }

    /// What happens in a world of several processes: time passes, the clock is set, somebody books or is asked to wait.
    #[derive(Clone, Debug)]
    enum Happening {
        Passes(i64),
        ClockSet(i64),
        Books(usize),
        Asked(i64),
    }

    fn happening() -> impl Strategy<Value = Happening> {
        prop_oneof![
            3 => (0..400_000_i64).prop_map(Happening::Passes),
            1 => (-7_200..7_200_i64).prop_map(|seconds| Happening::ClockSet(seconds * SECOND)),
            8 => (0..3_usize).prop_map(Happening::Books),
            1 => (1..=600_i64).prop_map(|seconds| Happening::Asked(seconds * SECOND)),
        ]
    }

    proptest! {
        /// Each process books its next slot once it has used the one before, so at most two others are ahead of it.
        #[test]
        fn clock_changes_never_extend_a_wait_beyond_the_booked_time(
            rate in 1.0_f64..5_000.0,
            count in 1_u32..100,
            happenings in prop::collection::vec(happening(), 1..200),
        ) {
            let count = count.min(rate as u32).max(1);
            let (mut pace, mut real, mut shift) = (AccountRateLimit::default(), 1_800_000_000 * SECOND, 0);
            let (mut free, mut asked_until, mut asked) = ([0_i64; 3], 0, false);
            let (mut left, mut forward, mut back) = (Vec::<(i64, u32)>::new(), 0_u32, 0_i64);
            for happening in happenings {
                match happening {
                    Happening::Passes(time) => real += time,
                    Happening::ClockSet(by) => {
                        shift += by;
                        forward += u32::from(by > 0);
                        back += i64::from(by < 0);
                    }
                    Happening::Asked(wait) => {
                        (asked_until, asked) = (asked_until.max(real + wait), true);
                        pace = pace.slow_down(real + shift, Some(wait));
                    }
                    Happening::Books(process) => {
                        if free[process] > real {
                            continue;
                        }
                        let share = pace.rebase_to(real + shift).share_at(real + shift);
                        let reservation = pace.reserve(real + shift, count, Some(rate));
                        let wait = micros(reservation.wait);
                        let each = slot_length(count, rate * if asked { MIN_SHARE } else { share });
                        // Each time that the clock is set back, what is over of the waits is not known.
                        let most = 3 * (1 + back) * each + if asked { MAX_REQUESTED_WAIT } else { 0 };
                        prop_assert!(wait <= most, "waits {wait} of {most}");
                        // What was asked for is waited for, unless somebody sets the clock forward.
                        prop_assert!(forward > 0 || real + wait >= asked_until, "{wait} is too early");
                        pace = reservation.rate_limit;
                        free[process] = real + wait;
                        left.push((real + wait, count));
                    }
                }
            }
            for &(start, _) in &left {
                let within: u32 = left.iter().filter(|(at, _)| (start..start + SECOND).contains(at)).map(|&(_, n)| n).sum();
                // A clock set forward forgets what is booked, an envelope of each of the others.
                let spare = f64::from(count * (3 + 2 * forward)) + 1.0;
                prop_assert!(f64::from(within) <= rate + spare, "{within} at {rate}/s");
            }
        }
    }

    #[test]
    fn clock_set_back_does_not_extend_a_booked_wait() {
        let then = 1_800_000_000 * SECOND;
        for back in [SECOND, 600 * SECOND, 86_400 * SECOND] {
            let booked = AccountRateLimit::default().reserve(then, 20, Some(10.0)).rate_limit;
            let wait = booked.reserve(then - back, 1, Some(10.0)).wait;
            assert_eq!(wait, SlotWait { time: Duration::from_secs(2), reason: WaitReason::ClockSetBack });
            let asked = AccountRateLimit::default().slow_down(then, Some(600 * SECOND));
            assert_eq!(asked.reserve(then - back, 1, None).wait.time, Duration::from_secs(600));
            let later = asked.reserve(then + 599 * SECOND, 1, Some(10.0)).rate_limit;
            assert_eq!(later.reserve(then + 599 * SECOND - back, 1, None).wait.time.as_secs(), 1);
        }
    }

    #[test]
    fn a_wait_has_its_reason() {
        let then = 1_800_000_000 * SECOND;
        let booked = AccountRateLimit::default().reserve(then, 50, Some(10.0)).rate_limit;
        assert_eq!(booked.reserve(then, 1, Some(10.0)).wait.reason, WaitReason::RateLimitUsed);
        let asked = booked.slow_down(then, Some(60 * SECOND));
        assert_eq!(asked.reserve(then, 1, Some(10.0)).wait.reason, WaitReason::GatewayRequested);
    }

    #[test]
    fn slow_down_halves_the_rate_and_a_tenth_returns_a_minute() {
        let now = 1_000 * SECOND;
        let slowed = AccountRateLimit::default().slow_down(now, Some(5 * SECOND));
        assert_eq!(slowed.reserve(now, 1, Some(10.0)).wait.time, Duration::from_secs(5));
        let later = now + 60 * SECOND;
        let spacing = |pace: AccountRateLimit| pace.reserve(later, 6, Some(10.0)).rate_limit.next_free - later;
        assert_eq!(spacing(slowed), SECOND);
        assert_eq!(spacing(AccountRateLimit::default()), 600_000);
    }

    #[test]
    fn account_without_a_rate_never_waits() {
        let reservation = AccountRateLimit::default().reserve(7, 1_000_000, None);
        assert_eq!(reservation.wait, SlotWait::NONE);
        assert_eq!(reservation.rate_limit.reserve(7, 1, None).wait, SlotWait::NONE);
    }
}
