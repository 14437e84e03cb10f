//! Local times in messages: the clock of this computer, without the format of programs.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A local time to the minute: `2026-11-26 17:02`.
#[must_use]
pub fn format_local_minute(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// A local time to the second: `2026-11-26 17:02:31`.
#[must_use]
pub fn format_local_second(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
