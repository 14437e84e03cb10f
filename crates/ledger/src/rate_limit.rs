//! Rate limits of accounts, shared by all campaigns and processes of a ledger. The functions are pure.
//!
//! Times are microseconds of the wall clock, because they are shared and survive a restart.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// A second in microseconds.
pub(super) const SECOND: i64 = 1_000_000;
/// The longest wait that a gateway can request. A longer request stops the run.
const MAX_REQUESTED_WAIT: i64 = 600 * SECOND;
/// The minimum share of the allowance.
const MIN_SHARE: f64 = 1.0 / 64.0;

/// The state of an account's rate limit.
///
/// Booked slots are measured from `written_at` and not from the current clock, because they were correct at that time.
/// Therefore, setting the clock back never extends a wait beyond the booked slots or the gateway's request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccountRateLimit {
    /// The time from which the next operation may be sent.
    pub next_free: i64,
    /// The share of the rate that was allowed at `slowed_at`: above 0, at most 1.
    pub share: f64,
    /// The time at which the share changed.
    pub slowed_at: i64,
    /// Nothing is sent before this time, even if the rate would allow it.
    pub not_before: i64,
    /// The time at which this state was written, by the same clock.
    pub written_at: i64,
    /// The rate of the last reservation, in operations per second. `None` without a limit.
    pub rate: Option<f64>,
    /// The total number of operations that took a slot.
    pub taken: i64,
}

impl Default for AccountRateLimit {
    fn default() -> Self {
        Self { next_free: 0, share: 1.0, slowed_at: 0, not_before: 0, written_at: 0, rate: None, taken: 0 }
    }
}

/// The wait for a slot, with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotWait {
    /// The duration.
    pub time: Duration,
    /// The reason. Meaningless for a zero wait.
    pub reason: WaitReason,
}

/// The reason why an operation must wait for its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// Other operations have booked the next slots.
    RateLimitUsed,
    /// The gateway requested the wait.
    GatewayRequested,
    /// The clock was set back, so the remaining part of an earlier wait is unknown.
    ClockSetBack,
}

impl SlotWait {
    /// No wait.
    pub const NONE: Self = Self { time: Duration::ZERO, reason: WaitReason::RateLimitUsed };
}

impl WaitReason {
    /// The reason as text, to follow "waiting 12 s: ".
    pub fn describe(self) -> &'static str {
        match self {
            Self::RateLimitUsed => "the account's rate limit is used up for now",
            Self::GatewayRequested => "the gateway asked `campaign` to wait",
            Self::ClockSetBack => "the clock was set back while campaign was waiting for the rate limit or the gateway",
        }
    }
}

/// A reservation of slots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reservation {
    /// The state after the reservation.
    pub rate_limit: AccountRateLimit,
    /// The wait until the operations may be sent.
    pub wait: SlotWait,
}

impl AccountRateLimit {
    /// Reserves `count` slots at `rate` per second (`None`: unlimited) at `now`.
    pub fn reserve(self, now: i64, count: u32, rate: Option<f64>) -> Reservation {
        let was_set_back = now < self.written_at;
        let mut limit = self.rebase_to(now);
        let spacing = rate.map(|rate| slot_length(count, rate * limit.share_at(now)));
        let departure = limit.next_free.max(limit.not_before).max(now);
        let reason = if was_set_back {
            WaitReason::ClockSetBack
        } else if limit.not_before >= limit.next_free {
            WaitReason::GatewayRequested
        } else {
            WaitReason::RateLimitUsed
        };
        limit.next_free = spacing.map_or(limit.next_free, |spacing| departure + spacing);
        (limit.rate, limit.taken) = (rate, limit.taken.saturating_add(count.into()));
        let time = Duration::from_micros(u64::try_from(departure - now).unwrap_or(0));
        Reservation { rate_limit: limit, wait: if time.is_zero() { SlotWait::NONE } else { SlotWait { time, reason } } }
    }

    /// The state after the gateway asked to slow down and to wait `wait` microseconds. `None` means one second.
    #[must_use]
    pub fn slow_down(self, now: i64, wait: Option<i64>) -> Self {
        let limit = self.rebase_to(now);
        Self {
            share: halve_share(limit.share_at(now)),
            slowed_at: now,
            not_before: limit.not_before.max(now + wait.unwrap_or(SECOND)),
            ..limit
        }
    }

    /// The rest of the wait that the gateway requested.
    pub(super) fn requested_wait(self, now: i64) -> Duration {
        duration_from_micros(self.not_before.saturating_sub(now))
    }

    /// The allowed operations per second at `now`. `None` if the rate is unlimited.
    pub fn allowed_rate(self, now: i64) -> Option<f64> {
        self.rate.map(|rate| rate * self.rebase_to(now).share_at(now))
    }

    /// The share of the rate that is allowed at `now`.
    pub(super) fn share_at(self, now: i64) -> f64 {
        let since = u64::try_from(now - self.slowed_at).unwrap_or(0);
        recover_share(self.share, Duration::from_micros(since))
    }

    /// The state as written at `now`. If the clock was set back, all times are moved back by the same amount. A
    /// requested wait is limited to [`MAX_REQUESTED_WAIT`].
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

/// The share of a rate after the gateway asked to slow down.
pub fn halve_share(share: f64) -> f64 {
    (share / 2.0).max(MIN_SHARE)
}

/// The seconds in which the full rate returns: a tenth per minute.
const RECOVERY_SECONDS: f64 = 600.0;

/// The share of a rate after some time: a tenth of the rate returns per minute.
pub fn recover_share(share: f64, after: Duration) -> f64 {
    (share + after.as_secs_f64() / RECOVERY_SECONDS).min(1.0)
}

/// The time that `count` operations take at a rate per second, in microseconds.
pub(super) fn slot_length(count: u32, rate: f64) -> i64 {
    (f64::from(count) * SECOND as f64 / rate).ceil() as i64
}

/// The share of the rate for inquiries while the account sends messages.
const INQUIRY_SHARE: f64 = 0.1;
/// The period for which an account counts as sending after its last message, in microseconds.
const SENDING_PERIOD: i64 = 30 * SECOND;
/// At a low rate, the period lasts at least as long as this number of messages takes.
const SENDING_MESSAGES: u32 = 2;
/// The suffix of the name under which the rate limit of an account's inquiries is stored.
const INQUIRIES_SUFFIX: &str = " (questions)";

/// A request to an account's rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateRequest {
    /// Slots for this many operations, regardless of the wait.
    Operations(u32),
    /// A slot for one inquiry of an assistant, if it can be sent within `longest`. While the account sends messages,
    /// all inquiries of assistants together get a tenth of the account's rate.
    Inquiry {
        /// The longest wait.
        longest: Duration,
    },
    /// Halve the rate, because the gateway asked to slow down. Nothing is sent before this wait is over. `None` means
    /// one second.
    SlowDown(Option<Duration>),
}

/// The answer of an account's rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotPermit {
    /// The slots are taken.
    Granted {
        /// The wait for the account's rate limit.
        wait: SlotWait,
        /// The time that the next inquiry waits for a slot.
        next: Duration,
    },
    /// No slot was taken. A slot might become free after this time.
    Later(Duration),
}

/// The rate limits of an account and of its inquiries.
///
/// Inquiries of assistants have an additional limit, which all connectors of the ledger share. An inquiry
/// never books ahead: it takes a free slot or none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct InquiryRateLimit {
    pub(crate) account: AccountRateLimit,
    /// The limit of the inquiries. Its `slowed_at` is the time of the account's last message.
    pub(crate) inquiries: AccountRateLimit,
}

/// The name under which the ledger stores the rate limit of an account's inquiries.
pub(crate) fn inquiry_account_name(account: &str) -> String {
    format!("{account}{INQUIRIES_SUFFIX}")
}

/// Whether this is the name of the rate limit of an account's inquiries.
pub(crate) fn is_inquiry_account(name: &str) -> bool {
    name.ends_with(INQUIRIES_SUFFIX)
}

impl InquiryRateLimit {
    /// Takes a slot for one inquiry at `now`, if the inquiry can be sent within `longest_wait`.
    ///
    /// `rate` is the account's rate. With `None`, only waits that the gateway requested apply.
    pub(crate) fn reserve_inquiry(self, now: i64, rate: Option<f64>, longest_wait: Duration) -> (Self, SlotPermit) {
        let sent_at = self.last_message_at().min(now);
        let inquiries = self.inquiries.rebase_to(now);
        if rate.is_some() && inquiries.next_free > now {
            return (self, SlotPermit::Later(duration_from_micros(inquiries.next_free - now)));
        }
        let reservation = self.account.reserve(now, 1, rate);
        if reservation.wait.time > longest_wait {
            return (self, SlotPermit::Later(reservation.wait.time));
        }
        let Some(rate) = rate else {
            let permit = SlotPermit::Granted { wait: reservation.wait, next: Duration::ZERO };
            return (Self { account: reservation.rate_limit, ..self }, permit);
        };
        let allowed_rate = rate * self.account.share_at(now);
        let is_sending = now - sent_at < SENDING_PERIOD.max(slot_length(SENDING_MESSAGES, allowed_rate));
        let share = if is_sending { INQUIRY_SHARE } else { 1.0 };
        let next_wait = slot_length(1, allowed_rate * share);
        let updated_inquiries = AccountRateLimit {
            next_free: now + next_wait,
            share,
            // For inquiries, this is the time of the account's last message.
            slowed_at: sent_at,
            not_before: 0,
            written_at: now,
            rate: Some(allowed_rate),
            taken: inquiries.taken.saturating_add(1),
        };
        let permit = SlotPermit::Granted { wait: reservation.wait, next: duration_from_micros(next_wait) };
        (Self { account: reservation.rate_limit, inquiries: updated_inquiries }, permit)
    }

    /// The time of the account's last message, as far as inquiries can tell.
    ///
    /// An inquiry writes both states at the same time. If the account's state is newer, a message was sent then.
    fn last_message_at(&self) -> i64 {
        match self.account.written_at == self.inquiries.written_at {
            true => self.inquiries.slowed_at,
            false => self.account.written_at,
        }
    }
}

fn duration_from_micros(time: i64) -> Duration {
    Duration::from_micros(u64::try_from(time).unwrap_or(0))
}

/// A rate limit: that of an account, or of a run that several workers send. Equal names share a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Allowance {
    /// The name of the account or the run.
    pub name: Arc<str>,
    /// Operations per second. `None` without a limit.
    pub rate: Option<f64>,
}

impl Allowance {
    /// The allowance with this name.
    pub fn new(name: impl Into<Arc<str>>, rate: Option<f64>) -> Self {
        Self { name: name.into(), rate }
    }

    /// The allowance of an account. Loopback has a separate allowance, so that a sandbox never slows a live gateway.
    ///
    /// Accounts that are named by a loopback address are already separate.
    pub fn of_account(account: &str, loopback: bool, rate: Option<f64>) -> Self {
        match loopback && !is_loopback_address(account) {
            true => Self::new(format!("{account} (loopback)"), rate),
            false => Self::new(account, rate),
        }
    }
}

fn is_loopback_address(account: &str) -> bool {
    let host = account.rsplit_once(':').map_or(account, |(host, _)| host).trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn one_second_allows_at_most_the_rate_plus_one_envelope(
            rate in 1.0_f64..5_000.0,
            steps in prop::collection::vec((0_i64..2_000_000, 1_u32..100), 1..200),
        ) {
            let largest = steps.iter().map(|&(_, count)| count).max().unwrap_or(0);
            let mut limit = AccountRateLimit::default();
            let mut now = 1_000_000_000;
            let mut departures: Vec<(i64, u32)> = Vec::new();
            for (pause, count) in steps {
                now += pause;
                let count = count.min(rate.max(1.0) as u32);
                let reservation = limit.reserve(now, count, Some(rate));
                limit = reservation.rate_limit;
                departures.push((now + micros(reservation.wait), count));
            }
            for &(start, _) in &departures {
                let within: u32 =
                    departures.iter().filter(|(at, _)| (start..start + SECOND).contains(at)).map(|&(_, n)| n).sum();
                prop_assert!(f64::from(within) <= rate + f64::from(largest) + 1.0, "{within} at {rate}/s");
            }
        }
    }

    fn micros(wait: SlotWait) -> i64 {
        wait.time.as_micros() as i64
    }

    /// An event among several processes.
    #[derive(Clone, Debug)]
    enum Event {
        TimePasses(i64),
        ClockSet(i64),
        Booking(usize),
        SlowDown(i64),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            3 => (0..400_000_i64).prop_map(Event::TimePasses),
            1 => (-7_200..7_200_i64).prop_map(|seconds| Event::ClockSet(seconds * SECOND)),
            8 => (0..3_usize).prop_map(Event::Booking),
            1 => (1..=600_i64).prop_map(|seconds| Event::SlowDown(seconds * SECOND)),
        ]
    }

    proptest! {
        /// Each process books its next slot after it used the previous one, so at most two others are ahead of it.
        #[test]
        fn clock_changes_never_extend_a_wait_beyond_the_booked_time(
            rate in 1.0_f64..5_000.0,
            count in 1_u32..100,
            events in prop::collection::vec(event(), 1..200),
        ) {
            let count = count.min(rate as u32).max(1);
            let (mut limit, mut real, mut shift) = (AccountRateLimit::default(), 1_800_000_000 * SECOND, 0);
            let (mut free, mut requested_until, mut is_slowed) = ([0_i64; 3], 0, false);
            let (mut departures, mut forward, mut back) = (Vec::<(i64, u32)>::new(), 0_u32, 0_i64);
            for event in events {
                match event {
                    Event::TimePasses(time) => real += time,
                    Event::ClockSet(by) => {
                        shift += by;
                        forward += u32::from(by > 0);
                        back += i64::from(by < 0);
                    }
                    Event::SlowDown(wait) => {
                        (requested_until, is_slowed) = (requested_until.max(real + wait), true);
                        limit = limit.slow_down(real + shift, Some(wait));
                    }
                    Event::Booking(process) => {
                        if free[process] > real {
                            continue;
                        }
                        let share = limit.rebase_to(real + shift).share_at(real + shift);
                        let reservation = limit.reserve(real + shift, count, Some(rate));
                        let wait = micros(reservation.wait);
                        let slot = slot_length(count, rate * if is_slowed { MIN_SHARE } else { share });
                        // Each time the clock is set back, the remaining wait is unknown.
                        let max_wait = 3 * (1 + back) * slot + if is_slowed { MAX_REQUESTED_WAIT } else { 0 };
                        prop_assert!(wait <= max_wait, "waits {wait} of {max_wait}");
                        // A requested wait is respected, unless the clock is set forward.
                        prop_assert!(forward > 0 || real + wait >= requested_until, "{wait} is too early");
                        limit = reservation.rate_limit;
                        free[process] = real + wait;
                        departures.push((real + wait, count));
                    }
                }
            }
            for &(start, _) in &departures {
                let within: u32 =
                    departures.iter().filter(|(at, _)| (start..start + SECOND).contains(at)).map(|&(_, n)| n).sum();
                // Setting the clock forward drops the booked slots, one envelope for each other process.
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
            let slowed = AccountRateLimit::default().slow_down(then, Some(600 * SECOND));
            assert_eq!(slowed.reserve(then - back, 1, None).wait.time, Duration::from_secs(600));
            let later = slowed.reserve(then + 599 * SECOND, 1, Some(10.0)).rate_limit;
            assert_eq!(later.reserve(then + 599 * SECOND - back, 1, None).wait.time.as_secs(), 1);
        }
    }

    #[test]
    fn wait_reports_its_reason() {
        let then = 1_800_000_000 * SECOND;
        let booked = AccountRateLimit::default().reserve(then, 50, Some(10.0)).rate_limit;
        assert_eq!(booked.reserve(then, 1, Some(10.0)).wait.reason, WaitReason::RateLimitUsed);
        let slowed = booked.slow_down(then, Some(60 * SECOND));
        assert_eq!(slowed.reserve(then, 1, Some(10.0)).wait.reason, WaitReason::GatewayRequested);
    }

    #[test]
    fn slow_down_halves_the_rate_which_recovers_a_tenth_per_minute() {
        let now = 1_000 * SECOND;
        let slowed = AccountRateLimit::default().slow_down(now, Some(5 * SECOND));
        assert_eq!(slowed.reserve(now, 1, Some(10.0)).wait.time, Duration::from_secs(5));
        let later = now + 60 * SECOND;
        let spacing = |limit: AccountRateLimit| limit.reserve(later, 6, Some(10.0)).rate_limit.next_free - later;
        assert_eq!(spacing(slowed), SECOND);
        assert_eq!(spacing(AccountRateLimit::default()), 600_000);
    }

    #[test]
    fn account_without_a_rate_does_not_wait_for_slots() {
        let reservation = AccountRateLimit::default().reserve(7, 1_000_000, None);
        assert_eq!(reservation.wait, SlotWait::NONE);
        assert_eq!(reservation.rate_limit.reserve(7, 1, None).wait, SlotWait::NONE);
    }
}

#[cfg(test)]
mod inquiry_tests {
    use super::*;

    const START: i64 = 1_800_000_000 * SECOND;
    const LONGEST_WAIT: Duration = Duration::from_secs(5);

    /// An account in use: messages are sent at the full rate, and 60 inquiries are tried every 10 ms.
    #[derive(Default)]
    struct Account {
        limit: InquiryRateLimit,
        messages: u32,
        inquiries: u32,
    }

    impl Account {
        fn try_inquiry(&mut self, now: i64, rate: f64) {
            let (limit, permit) = self.limit.reserve_inquiry(now, Some(rate), LONGEST_WAIT);
            self.limit = limit;
            self.inquiries += u32::from(matches!(permit, SlotPermit::Granted { .. }));
        }

        /// Lets this many seconds pass, with or without messages.
        fn pass_time(&mut self, from: i64, seconds: i64, rate: f64, sends: bool) {
            let mut departs_at = from;
            for now in (from..from + seconds * SECOND).step_by(10_000) {
                if sends && departs_at <= now {
                    let reservation = self.limit.account.reserve(now, 1, Some(rate));
                    self.limit.account = reservation.rate_limit;
                    departs_at = now + i64::try_from(reservation.wait.time.as_micros()).unwrap();
                    self.messages += 1;
                }
                (0..60).for_each(|_| self.try_inquiry(now, rate));
            }
        }
    }

    #[test]
    fn inquiries_take_a_tenth_of_the_rate_while_sending() {
        for rate in [1.0, 10.0, 50.0] {
            let mut account = Account::default();
            account.pass_time(START, 100, rate, true);
            let whole = 100.0 * rate;
            assert!(f64::from(account.inquiries) <= whole * INQUIRY_SHARE + 2.0, "{} at {rate}/s", account.inquiries);
            assert!(f64::from(account.messages) >= whole * 0.85, "{} at {rate}/s", account.messages);
        }
    }

    #[test]
    fn inquiries_use_the_full_rate_while_no_messages_are_sent() {
        let mut account = Account::default();
        account.pass_time(START, 100, 10.0, false);
        assert!((990..=1_001).contains(&account.inquiries), "{}", account.inquiries);
    }

    #[test]
    fn messages_take_precedence_over_inquiries_at_once() {
        let mut account = Account::default();
        account.pass_time(START, 10, 10.0, false);
        (account.messages, account.inquiries) = (0, 0);
        account.pass_time(START + 10 * SECOND, 20, 10.0, true);
        assert!(account.messages >= 178 && account.inquiries <= 22, "{} {}", account.messages, account.inquiries);
        account.inquiries = 0;
        account.pass_time(START + 30 * SECOND, 29, 10.0, false);
        assert!(account.inquiries <= 31, "{} while the account may still be sending", account.inquiries);
        account.inquiries = 0;
        account.pass_time(START + 61 * SECOND, 10, 10.0, false);
        assert!(account.inquiries >= 95, "{}", account.inquiries);
    }

    #[test]
    fn inquiry_above_the_rate_reserves_nothing() {
        let granted = InquiryRateLimit::default().reserve_inquiry(START, Some(1.0), LONGEST_WAIT).0;
        let (after, permit) = granted.reserve_inquiry(START + SECOND / 4, Some(1.0), LONGEST_WAIT);
        assert_eq!((after, permit), (granted, SlotPermit::Later(Duration::from_millis(750))));
        // A wait that the gateway requested applies to inquiries too, at any rate.
        for rate in [None, Some(10.0)] {
            let account = AccountRateLimit::default().slow_down(START, Some(60 * SECOND));
            let limit = InquiryRateLimit { account, ..InquiryRateLimit::default() };
            assert_eq!(
                limit.reserve_inquiry(START, rate, LONGEST_WAIT),
                (limit, SlotPermit::Later(Duration::from_secs(60)))
            );
        }
    }

    #[test]
    fn clock_set_back_does_not_extend_an_inquiry_wait() {
        let mut account = Account::default();
        account.pass_time(START, 10, 1.0, true);
        for back in [SECOND, 86_400 * SECOND] {
            let (_, permit) = account.limit.reserve_inquiry(START + 10 * SECOND - back, Some(1.0), LONGEST_WAIT);
            assert!(matches!(permit, SlotPermit::Later(wait) if wait <= Duration::from_secs(10)), "{permit:?}");
        }
    }

    #[test]
    fn inquiry_account_names_are_recognized() {
        assert!(is_inquiry_account(&inquiry_account_name("main")) && !is_inquiry_account("main"));
    }
}

#[cfg(test)]
mod allowance_tests {
    use super::*;

    #[test]
    fn loopback_has_its_own_allowance() {
        for (account, loopback, name) in [
            ("main", false, "main"),
            ("main", true, "main (loopback)"),
            ("gateway.example", true, "gateway.example (loopback)"),
            ("127.0.0.1:8025", true, "127.0.0.1:8025"),
            ("[::1]:8025", true, "[::1]:8025"),
            ("localhost:8025", true, "localhost:8025"),
        ] {
            assert_eq!(&*Allowance::of_account(account, loopback, None).name, name);
        }
    }
}
