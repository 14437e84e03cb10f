//! Checks of this machine: state folder, free disk space, time zone, file permissions, and the clock. The clock is
//! compared with the gateways' clocks, with the ledger, and with the monotonic clock.

use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::super::context::{Context, LEDGER_FILE};
use super::super::exit;
use super::{CheckResult, CheckStatus};
use campaign_core::finding::quote_for_shell;
use campaign_core::private::{self, FileAccess};
use campaign_engine::report::{format_duration, format_local_minute};

/// The free space in bytes below which the check fails, because the next run might fill the disk.
#[cfg(unix)]
const TOO_LITTLE_SPACE: u64 = 100 << 20;
/// The free space in bytes below which a warning is reported.
#[cfg(unix)]
const LITTLE_SPACE: u64 = 1 << 30;
/// The size of the test file in bytes, larger than a page of the ledger.
const TEST_BYTES: usize = 64 << 10;

/// Checks that the state folder exists or can be created, and that files can be created in this folder.
pub(super) fn check_state_folder(state: &Path) -> CheckResult {
    const CHECK: &str = "state-folder";
    let folder = format!("`{}`", state.display());
    let failure =
        |problem: &str, help: &str| CheckResult::failed(CHECK, exit::STORAGE, format!("{folder} {problem}"), help);
    let access_help = "give yourself access to the folder, or choose another one with `--state-dir DIR`";
    match std::fs::metadata(state) {
        Ok(metadata) if !metadata.is_dir() => failure("is not a folder", "choose a folder with `--state-dir DIR`"),
        Ok(_) => match tempfile::tempfile_in(state) {
            Ok(_) => CheckResult::ok(CHECK, folder),
            Err(error) => failure(&format!("cannot be written: {error}"), access_help),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => match is_writable(&nearest_folder(state)) {
            true => CheckResult::ok(CHECK, format!("{folder} does not exist yet; the first run creates it")),
            false => failure("does not exist and cannot be created", access_help),
        },
        Err(error) => failure(&format!("cannot be read: {error}"), access_help),
    }
}

/// The nearest existing folder at or above a path.
fn nearest_folder(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.ancestors().find(|above| above.is_dir()).map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Whether this process can create files in a folder, checked without creating a file.
fn is_writable(folder: &Path) -> bool {
    #[cfg(unix)]
    {
        use rustix::fs::{Access, access};
        access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
    }
    #[cfg(not(unix))]
    {
        std::fs::metadata(folder).is_ok_and(|folder| !folder.permissions().readonly())
    }
}

/// Checks that the disk of the state folder has enough free space, and that a file can be written to the folder.
pub(super) fn check_disk(state: &Path) -> CheckResult {
    const CHECK: &str = "disk";
    let help = "free up disk space, or choose a folder on another disk with `--state-dir DIR`";
    if state.is_dir()
        && let Err(error) = write_test_file(state)
    {
        let message = format!("cannot write {} KiB to the state folder: {error}", TEST_BYTES >> 10);
        return CheckResult::failed(CHECK, exit::STORAGE, message, help);
    }
    match free_bytes(&nearest_folder(state)) {
        Some(free) => check_free_space(free, help),
        None => CheckResult::skipped(CHECK, "the free space cannot be determined on this system"),
    }
}

/// Writes and syncs an unnamed temporary file, which the system removes.
fn write_test_file(folder: &Path) -> io::Result<()> {
    let mut file = tempfile::tempfile_in(folder)?;
    file.write_all(&[0; TEST_BYTES])?;
    file.sync_all()
}

#[cfg(unix)]
fn free_bytes(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

#[cfg(unix)]
fn check_free_space(free: u64, help: &str) -> CheckResult {
    const CHECK: &str = "disk";
    let message = format!("{} free", format_bytes(free));
    match free {
        LITTLE_SPACE.. => CheckResult::ok(CHECK, message),
        TOO_LITTLE_SPACE.. => CheckResult::warning(CHECK, format!("only {message}"), help),
        _ => CheckResult::failed(CHECK, exit::STORAGE, format!("only {message}"), help),
    }
}

#[cfg(not(unix))]
fn check_free_space(_: u64, _: &str) -> CheckResult {
    CheckResult::skipped("disk", "the free space cannot be determined on this system")
}

/// Formats a size in a unit that fits it, such as `12.3 GiB`.
#[cfg(unix)]
fn format_bytes(bytes: u64) -> String {
    const GIB: u64 = 1 << 30;
    match bytes {
        ..GIB => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} GiB", bytes as f64 / GIB as f64),
    }
}

/// Checks whether the time zone of this machine is known. Displayed times are in this zone, and so is `today` in
/// campaigns without `timezone`.
pub(super) fn check_time_zone() -> CheckResult {
    const CHECK: &str = "time-zone";
    let zone = TimeZone::system();
    match zone.iana_name() {
        Some(name) => CheckResult::ok(CHECK, name),
        None if zone.is_unknown() => {
            let variable = std::env::var("TZ").ok().filter(|zone| !zone.is_empty());
            let source = variable.map_or_else(
                || "this computer's time zone is unknown".to_owned(),
                |zone| format!("the environment variable `TZ` is set to `{zone}`, which is not a valid time zone"),
            );
            let help = "set the time zone, for example with `timedatectl set-timezone Europe/Kyiv` or `TZ=Europe/Kyiv`";
            CheckResult::warning(CHECK, format!("{source}; times are shown in UTC"), help)
        }
        None => CheckResult::ok(CHECK, "a zone without a name"),
    }
}

/// Checks whether other users of this machine can read or change the state folder, the ledger or the gateway profiles.
pub(super) fn check_permissions(context: &Context, state: &Path) -> CheckResult {
    const CHECK: &str = "permissions";
    let profiles_file = context.profiles().new_profile_path(None);
    let ledger = state.join(LEDGER_FILE);
    // The status, message and remedy of each problem.
    let mut problems: Vec<(CheckStatus, String, String)> = Vec::new();
    for (path, is_private) in [(state, true), (ledger.as_path(), true), (profiles_file.as_path(), false)] {
        let is_there = path != state || path.is_dir();
        let Some(access) = private::read_access(path).filter(|_| is_there) else { continue };
        let action = match (access.everyone_reads, access.everyone_writes) {
            (_, true) => "change",
            // gateways.yaml contains no secrets.
            (true, false) if is_private => "read",
            _ => continue,
        };
        let status = if access.everyone_writes { CheckStatus::Failed(exit::INVALID) } else { CheckStatus::Warning };
        let message = format!("everyone on this machine can {action} `{}` (mode {:04o})", path.display(), access.mode);
        problems.push((status, message, access_remedy(path, access, is_private)));
    }
    let is_failure = |status: &CheckStatus| *status != CheckStatus::Warning;
    let statuses = || problems.iter().map(|(status, ..)| *status);
    let Some(status) = statuses().find(is_failure).or_else(|| statuses().next()) else {
        return CheckResult::ok(CHECK, "other users cannot change the ledger or the gateway profiles");
    };
    let messages: Vec<String> = problems.iter().map(|(_, message, _)| message.clone()).collect();
    let remedies: Vec<String> = problems.iter().map(|(.., remedy)| remedy.clone()).collect();
    CheckResult::new(CHECK, status, messages.join("; ")).with_help(remedies.join("; "))
}

/// The remedy that revokes the access of other users.
fn access_remedy(path: &Path, access: FileAccess, is_private: bool) -> String {
    let name = quote_for_shell(path);
    match access {
        FileAccess { is_shared_temporary: true, .. } => "choose your own folder with `--state-dir DIR`".to_owned(),
        // A group shares the folder, so only others lose access.
        FileAccess { is_setgid: true, .. } => format!("run `chmod o= {name}`"),
        _ if !is_private => format!("run `chmod o-w {name}`"),
        _ if path.is_dir() => format!("run `chmod 700 {name}`"),
        _ => format!("run `chmod 600 {name}`"),
    }
}

/// The name of the clock check.
const CHECK: &str = "clock";
/// A larger difference from a gateway's clock is reported. Times in HTTP have whole seconds, and an answer takes time.
const SMALL_OFFSET: SignedDuration = SignedDuration::from_secs(5);
/// A larger difference fails the check, because windows, `until` and schedules would start or end at the wrong time.
const LARGE_OFFSET: SignedDuration = SignedDuration::from_secs(60);
/// A larger difference between the wall clock and the monotonic clock means that the time was set during the check.
const LARGE_JUMP: SignedDuration = SignedDuration::from_secs(1);
/// The earliest plausible time, 2026-01-01: this version of the program did not exist before then.
const EARLIEST: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// The remedy for a wrong clock.
const SET_CLOCK: &str = "synchronize the clock, for example with `timedatectl set-ntp true`: sending windows, `until` \
                         and schedules depend on it";

/// The time of a gateway, as the difference from this machine's clock.
#[derive(Clone, Debug)]
pub(super) struct GatewayTime {
    pub(super) gateway: String,
    /// The gateway's time minus this machine's time.
    pub(super) offset: SignedDuration,
}

impl GatewayTime {
    /// Estimates the offset of a gateway's clock from the date in its answer.
    pub(super) fn from_answer(gateway: &str, date: Timestamp, sent_at: Timestamp, answered_at: Timestamp) -> Self {
        let half_round_trip = answered_at.duration_since(sent_at) / 2;
        // The date has no fractional seconds, so on average it is half a second old.
        let gateway_time = date.saturating_add(SignedDuration::from_millis(500)).unwrap_or(date);
        Self { gateway: gateway.to_owned(), offset: gateway_time.duration_since(sent_at) - half_round_trip }
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

    /// Checks the clock of this machine against the gateways and the latest run.
    pub(super) fn check(&self, gateways: &[GatewayTime], latest: Option<&LatestRun>) -> CheckResult {
        let (now, elapsed) = (Timestamp::now(), self.monotonic.elapsed());
        let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::ZERO);
        check_clock(now, now.duration_since(self.wall) - elapsed, gateways, latest)
    }
}

/// Evaluates the clock. `jump` is the change of the clock while the gateways were queried.
fn check_clock(
    now: Timestamp,
    jump: SignedDuration,
    gateways: &[GatewayTime],
    latest: Option<&LatestRun>,
) -> CheckResult {
    let wrong = |message: String| CheckResult::failed(CHECK, exit::INVALID, message, SET_CLOCK);
    let local_time = format_local_minute(now);
    if now < EARLIEST {
        return wrong(format!("the clock shows {local_time}, which is far in the past"));
    }
    if let Some(LatestRun { name, began_at }) = latest.filter(|run| run.began_at.duration_since(now) > LARGE_OFFSET) {
        return wrong(format!(
            "the clock shows {local_time}, but according to the ledger, {name} began at {}",
            format_local_minute(*began_at)
        ));
    }
    if jump.abs() > LARGE_JUMP {
        let message = format!("the clock jumped by {} during this check", format_offset(jump));
        return CheckResult::warning(CHECK, message, "wait until the clock is synchronized, then run the check again");
    }
    // The closest clock counts, so that one gateway with a wrong clock does not make this machine's clock look wrong.
    let Some(GatewayTime { gateway, offset }) = gateways.iter().min_by_key(|time| time.offset.abs()) else {
        return CheckResult::skipped(
            CHECK,
            format!("{local_time}; not compared, because no gateway reported its time"),
        );
    };
    // A positive offset means that the gateway's clock is ahead, so ours is behind.
    let side = if offset.is_positive() { "behind" } else { "ahead of" };
    let difference = format!("the clock is {} {side} the clock of {gateway}", format_offset(*offset));
    match offset.abs() {
        offset if offset > LARGE_OFFSET => wrong(difference),
        offset if offset > SMALL_OFFSET => CheckResult::warning(CHECK, difference, SET_CLOCK),
        _ => CheckResult::ok(CHECK, format!("agrees with the clock of {gateway}")),
    }
}

/// Formats the size of an offset.
fn format_offset(offset: SignedDuration) -> String {
    format_duration(offset.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn low_disk_space_warns_before_it_fails_the_check() {
        let status = |free| check_free_space(free, "help").status;
        assert_eq!(status(5 << 30), CheckStatus::Ok);
        assert_eq!(status(LITTLE_SPACE - 1), CheckStatus::Warning);
        assert_eq!(status(TOO_LITTLE_SPACE - 1), CheckStatus::Failed(exit::STORAGE));
        assert_eq!(check_free_space(TOO_LITTLE_SPACE, "help").message, "only 100 MiB free");
        assert_eq!(format_bytes(5_500 << 20), "5.4 GiB");
    }

    #[cfg(unix)]
    #[test]
    fn missing_state_folder_is_not_created() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("a/b");
        let result = check_state_folder(&state);
        assert_eq!(result.status, CheckStatus::Ok, "{result:?}");
        assert_eq!(check_disk(&state).check, "disk");
        assert!(!folder.path().join("a").exists());
    }

    fn now() -> Timestamp {
        "2026-11-27T10:00:00Z".parse().unwrap()
    }

    fn gateway(name: &str, seconds: i64) -> GatewayTime {
        GatewayTime { gateway: name.to_owned(), offset: SignedDuration::from_secs(seconds) }
    }

    fn check_gateway_clocks(gateways: &[GatewayTime]) -> (CheckStatus, String) {
        let result = check_clock(now(), SignedDuration::ZERO, gateways, None);
        (result.status, result.message)
    }

    #[test]
    fn clock_is_compared_with_the_closest_gateway_clock() {
        let wrong = CheckStatus::Failed(exit::INVALID);
        assert_eq!(
            check_gateway_clocks(&[gateway("a", -2)]),
            (CheckStatus::Ok, "agrees with the clock of a".to_owned())
        );
        assert_eq!(check_gateway_clocks(&[gateway("a", 4_000), gateway("b", 1)]).0, CheckStatus::Ok);
        let ahead = "the clock is 30 s ahead of the clock of a".to_owned();
        assert_eq!(check_gateway_clocks(&[gateway("a", -30)]), (CheckStatus::Warning, ahead));
        let clock_error = "the clock is 10 min 0 s behind the clock of a".to_owned();
        assert_eq!(check_gateway_clocks(&[gateway("a", 600)]), (wrong, clock_error));
        assert_eq!(check_gateway_clocks(&[]).0, CheckStatus::Skipped);
    }

    #[test]
    fn clock_earlier_than_a_recorded_run_fails_the_check() {
        let run = |minutes: i64| LatestRun {
            name: "sale@3".to_owned(),
            began_at: now() + SignedDuration::from_mins(minutes),
        };
        let status = |run: &LatestRun| check_clock(now(), SignedDuration::ZERO, &[gateway("a", 0)], Some(run)).status;
        assert_eq!(status(&run(10)), CheckStatus::Failed(exit::INVALID));
        assert_eq!(status(&run(-10)), CheckStatus::Ok);
    }

    #[test]
    fn clock_that_jumps_or_is_in_the_past_is_reported() {
        let jumped = check_clock(now(), SignedDuration::from_secs(-7), &[gateway("a", 0)], None);
        assert_eq!((jumped.status, jumped.message.contains("7.0 s")), (CheckStatus::Warning, true), "{jumped:?}");
        let past = check_clock(Timestamp::UNIX_EPOCH, SignedDuration::ZERO, &[], None);
        assert_eq!(past.status, CheckStatus::Failed(exit::INVALID));
    }

    #[test]
    fn clock_offset_is_measured_from_the_middle_of_the_request() {
        let date = now();
        let time = GatewayTime::from_answer("a", date, date, date + SignedDuration::from_secs(1));
        assert_eq!(time.offset, SignedDuration::ZERO);
    }
}
