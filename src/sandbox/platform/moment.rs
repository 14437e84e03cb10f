//! Points in virtual time: eight bytes each, because a sandbox keeps millions of them.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::Offset;
use serde::{Serialize, Serializer};

/// A point in time, in microseconds since 1970 in UTC.
///
/// In the journal it is written in ISO 8601 with an offset and milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(i64);

impl Moment {
    /// Before everything that happens.
    pub(crate) const BEGINNING: Moment = Moment(i64::MIN);
    /// After everything that happens.
    pub(crate) const END: Moment = Moment(i64::MAX);

    /// The moment at or just before a timestamp.
    pub(crate) fn of(timestamp: Timestamp) -> Self {
        Self(timestamp.as_microsecond())
    }

    /// So much later, or the end of time.
    pub(crate) fn after(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros).min(Timestamp::MAX.as_microsecond()))
    }

    /// The same point as a timestamp.
    pub(crate) fn timestamp(self) -> Timestamp {
        Timestamp::from_microsecond(self.0).unwrap_or(if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX })
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.timestamp().display_with_offset(Offset::UTC))
    }
}

/// A moment as the gateway tells it: whole seconds with an offset, PHP's `DATE_ATOM` (contract 2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireMoment(pub Moment);

impl Serialize for WireMoment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:.0}", self.0.timestamp().display_with_offset(Offset::UTC)))
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_with_its_offset_and_never_leaves_the_calendar() {
        let at = Moment::of(Timestamp::UNIX_EPOCH).after(Duration::from_millis(1_500));
        assert_eq!(at.to_string(), "1970-01-01T00:00:01.500+00:00");
        assert_eq!(at.timestamp().as_millisecond(), 1_500);
        assert_eq!(serde_json::to_value(WireMoment(at)).expect("JSON"), "1970-01-01T00:00:01+00:00");
        for wait in [Duration::MAX, Duration::from_secs(u64::from(u32::MAX) * 1_000)] {
            let end = at.after(wait).after(wait);
            assert_eq!(end.timestamp().as_second(), Timestamp::MAX.as_second());
            assert!(end.to_string().starts_with("9999-"), "{end}");
        }
        assert_eq!(Moment::BEGINNING.timestamp(), Timestamp::MIN);
        assert!(Moment::BEGINNING < Moment::of(Timestamp::MIN));
    }
}
