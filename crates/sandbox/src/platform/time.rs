//! Virtual time of the sandbox, in the forms of the journal and of the wire.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::Offset;
use serde::{Serialize, Serializer};

/// A virtual time in microseconds since 1970 in UTC.
///
/// The journal has it in ISO 8601 with an offset and milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VirtualTime(i64);

impl VirtualTime {
    /// Before all events.
    pub(crate) const MIN: VirtualTime = VirtualTime(i64::MIN);
    /// After all events.
    pub(crate) const MAX: VirtualTime = VirtualTime(i64::MAX);

    /// The virtual time of a timestamp, rounded down.
    pub(crate) fn from_timestamp(timestamp: Timestamp) -> Self {
        Self(timestamp.as_microsecond())
    }

    /// Adds a duration, up to the end of time.
    pub(crate) fn saturating_add(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros).min(Timestamp::MAX.as_microsecond()))
    }

    /// The timestamp of a virtual time.
    pub(crate) fn to_timestamp(self) -> Timestamp {
        Timestamp::from_microsecond(self.0).unwrap_or(if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX })
    }
}

impl fmt::Display for VirtualTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.to_timestamp().display_with_offset(Offset::UTC))
    }
}

impl Serialize for VirtualTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A time as the gateway writes it: whole seconds with an offset, PHP's `DATE_ATOM` (contract 2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireTime(pub(crate) VirtualTime);

impl Serialize for WireTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:.0}", self.0.to_timestamp().display_with_offset(Offset::UTC)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_has_offset_and_saturates() {
        let at = VirtualTime::from_timestamp(Timestamp::UNIX_EPOCH).saturating_add(Duration::from_millis(1_500));
        assert_eq!(at.to_string(), "1970-01-01T00:00:01.500+00:00");
        assert_eq!(at.to_timestamp().as_millisecond(), 1_500);
        assert_eq!(serde_json::to_value(WireTime(at)).expect("JSON"), "1970-01-01T00:00:01+00:00");
        for wait in [Duration::MAX, Duration::from_secs(u64::from(u32::MAX) * 1_000)] {
            let end = at.saturating_add(wait).saturating_add(wait);
            assert_eq!(end.to_timestamp().as_second(), Timestamp::MAX.as_second());
            assert!(end.to_string().starts_with("9999-"), "{end}");
        }
        assert_eq!(VirtualTime::MIN.to_timestamp(), Timestamp::MIN);
        assert!(VirtualTime::MIN < VirtualTime::from_timestamp(Timestamp::MIN));
    }
}
