//! The clock of this machine, compared with the gateways' clocks, with the ledger, and with the monotonic clock.

use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

use super::super::exit;
use super::CheckResult;
use campaign_engine::report::{format_duration, format_local_minute};

/// The name of the check.
const CHECK: &str = "clock";
/// A larger difference from a gateway's clock is reported. Times in HTTP have whole seconds, and an answer takes time.
const SMALL_OFFSET: SignedDuration = SignedDuration::from_secs(5);
/// A larger difference makes windows, `until` and schedules start or end at a wrong time.
const LARGE_OFFSET: SignedDuration = SignedDuration::from_secs(60);
/// A larger difference between both clocks of this machine means that the time was set meanwhile.
const LARGE_JUMP: SignedDuration = SignedDuration::from_secs(1);
/// No clock of a machine with this version is right before this time.
const EARLIEST: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// The remedy for a wrong clock.
const SET_CLOCK: &str = "synchronize the clock, for example with `timedatectl set-ntp true`: sending windows, `until` \
                         and schedules depend on it";

/// The time of a gateway, as the difference from this machine's clock.
#[derive(Clone, Debug)]
pub(super) struct GatewayTime {
    pub(super) gateway: String,
    /// The gateway's time minus ours.
    pub(super) offset: SignedDuration,
}

impl GatewayTime {
    /// Estimates the offset of a gateway's clock from the date in its answer.
    pub(super) fn from_answer(gateway: &str, date: Timestamp, asked: Timestamp, answered: Timestamp) -> Self {
        let half = answered.duration_since(asked) / 2;
        // The date has no fractional seconds, so on average it is half a second old.
        let theirs = date.saturating_add(SignedDuration::from_millis(500)).unwrap_or(date);
        Self { gateway: gateway.to_owned(), offset: theirs.duration_since(asked) - half }
    }
}

/// The latest run in the ledger.
#[derive(Clone, Debug)]
pub(super) struct LatestRun {
    pub(super) name: String,
    pub(super) began_at: Timestamp,
}

/// Both clocks of this machine at the same moment.
pub(super) struct ClockWatch {
    wall: Timestamp,
    monotonic: Instant,
}

impl ClockWatch {
    pub(super) fn start() -> Self {
        Self { wall: Timestamp::now(), monotonic: Instant::now() }
    }

    /// Checks the clock now.
    pub(super) fn check(&self, gateways: &[GatewayTime], latest: Option<&LatestRun>) -> CheckResult {
        let (now, elapsed) = (Timestamp::now(), self.monotonic.elapsed());
        let passed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::ZERO);
        judge_clock(now, now.duration_since(self.wall) - passed, gateways, latest)
    }
}

/// Evaluates the clock. `jump` is how far the clock was changed while the gateways were queried.
fn judge_clock(
    now: Timestamp,
    jump: SignedDuration,
    gateways: &[GatewayTime],
    latest: Option<&LatestRun>,
) -> CheckResult {
    let wrong = |message: String| CheckResult::failed(CHECK, exit::INVALID, message, SET_CLOCK);
    let shown = format_local_minute(now);
    if now < EARLIEST {
        return wrong(format!("the clock shows {shown}, which is far in the past"));
    }
    if let Some(LatestRun { name, began_at }) = latest.filter(|run| run.began_at.duration_since(now) > LARGE_OFFSET) {
        return wrong(format!(
            "the clock shows {shown}, but according to the ledger, {name} began at {}",
            format_local_minute(*began_at)
        ));
    }
    if jump.abs() > LARGE_JUMP {
        let message = format!("the clock jumped by {} during this check", format_offset(jump));
        return CheckResult::warning(CHECK, message, "wait until the clock is synchronized, then run the check again");
    }
    // One gateway with a wrong clock must not make ours look wrong.
    let Some(GatewayTime { gateway, offset }) = gateways.iter().min_by_key(|time| time.offset.abs()) else {
        return CheckResult::skipped(CHECK, format!("{shown}; not compared, because no gateway reported its time"));
    };
    // The gateway's clock is ahead if ours is behind.
    let side = if offset.is_positive() { "behind" } else { "ahead of" };
    let differs = format!("the clock is {} {side} the clock of {gateway}", format_offset(*offset));
    match offset.abs() {
        offset if offset > LARGE_OFFSET => wrong(differs),
        offset if offset > SMALL_OFFSET => CheckResult::warning(CHECK, differs, SET_CLOCK),
        _ => CheckResult::ok(CHECK, format!("agrees with the clock of {gateway}")),
    }
}

/// Formats the size of an offset.
fn format_offset(offset: SignedDuration) -> String {
    format_duration(offset.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;

    fn now() -> Timestamp {
        "2026-11-27T10:00:00Z".parse().unwrap()
    }

    fn gateway(name: &str, seconds: i64) -> GatewayTime {
        GatewayTime { gateway: name.to_owned(), offset: SignedDuration::from_secs(seconds) }
    }

    fn judge(gateways: &[GatewayTime]) -> (CheckStatus, String) {
        let result = judge_clock(now(), SignedDuration::ZERO, gateways, None);
        (result.status, result.message)
    }

    #[test]
    fn clock_is_compared_with_the_closest_gateway_clock() {
        let wrong = CheckStatus::Failed(exit::INVALID);
        assert_eq!(judge(&[gateway("a", -2)]), (CheckStatus::Ok, "agrees with the clock of a".to_owned()));
        assert_eq!(judge(&[gateway("a", 4_000), gateway("b", 1)]).0, CheckStatus::Ok);
        let ahead = "the clock is 30 s ahead of the clock of a".to_owned();
        assert_eq!(judge(&[gateway("a", -30)]), (CheckStatus::Warning, ahead));
        let behind = "the clock is 10 min 0 s behind the clock of a".to_owned();
        assert_eq!(judge(&[gateway("a", 600)]), (wrong, behind));
        assert_eq!(judge(&[]).0, CheckStatus::Skipped);
    }

    #[test]
    fn clock_earlier_than_a_recorded_run_is_wrong() {
        let run = |minutes: i64| LatestRun {
            name: "sale@3".to_owned(),
            began_at: now() + SignedDuration::from_mins(minutes),
        };
        let status = |run: &LatestRun| judge_clock(now(), SignedDuration::ZERO, &[gateway("a", 0)], Some(run)).status;
        assert_eq!(status(&run(10)), CheckStatus::Failed(exit::INVALID));
        assert_eq!(status(&run(-10)), CheckStatus::Ok);
    }

    #[test]
    fn clock_that_jumps_or_is_in_the_past_is_reported() {
        let jumped = judge_clock(now(), SignedDuration::from_secs(-7), &[gateway("a", 0)], None);
        assert_eq!((jumped.status, jumped.message.contains("7.0 s")), (CheckStatus::Warning, true), "{jumped:?}");
        let past = judge_clock(Timestamp::UNIX_EPOCH, SignedDuration::ZERO, &[], None);
        assert_eq!(past.status, CheckStatus::Failed(exit::INVALID));
    }

    #[test]
    fn offset_is_measured_from_the_middle_of_the_request() {
        let date = now();
        let time = GatewayTime::from_answer("a", date, date, date + SignedDuration::from_secs(1));
        assert_eq!(time.offset, SignedDuration::ZERO);
    }
}
