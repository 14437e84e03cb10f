//! Schedules and sending windows: when a campaign is due in its time zone, and when its messages may be sent.
//!
//! Pure: no clock, no file, no ledger. The scheduler decides which occurrences fire.

mod outlook;
mod schedule;
mod timing;
mod window;
mod zones;

pub use outlook::{DailyLimits, MessageGroup, OccurrenceOutlook, Outlook, RunDeadline, RunLimits, ScheduledRun};
pub use schedule::{Occurrence, Occurrences, Schedule};
pub use timing::{Timing, TimingError, suggest_date_order};
pub use window::{DailyHours, Days, Window, Windows};
pub use zones::{InvertedZone, zone_of_area_code, zone_of_country};
