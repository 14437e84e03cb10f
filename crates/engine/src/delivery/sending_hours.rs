//! Sending windows in the time zones of the campaign or the recipients: when a run's rows may be sent, and when all
//! sending ends.
//!
//! A run sends in passes. Rows that may not be sent yet are skipped and stay planned. When no other rows are left, the
//! run waits until the first skipped row may be sent, and starts another pass.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::feed::Feed;
use super::tally::Stop;
use crate::check::zone_of_number;
use campaign_content::audience::RecordFields;
use campaign_core::calendar::{Window, Windows};
use campaign_core::domain::{Phone, find_country};

/// A source of the current time, which can be set back.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
/// A future with a new feed.
pub type FeedFuture = Pin<Box<dyn Future<Output = Result<Feed, Stop>> + Send>>;
/// Starts a feed with the rows that are still planned. The argument is the number of rows that were already sent.
pub type FeedFactory = Box<dyn Fn(u64) -> FeedFuture + Send + Sync>;

/// The rules by which a run repeats its passes.
pub struct SendingPasses {
    /// The times at which rows may be sent.
    pub hours: Arc<SendingHours>,
    /// Starts a new feed.
    pub restart_feed: FeedFactory,
    /// Whether the run waits for rows that may be sent later.
    pub waits: bool,
    /// The maximum number of rows to send.
    pub limit: Option<u64>,
}

impl SendingPasses {
    /// The passes for a single message: the message is sent within the window, or the run stops.
    pub fn for_one_message(hours: Arc<SendingHours>) -> Self {
        let empty_feed = |_| -> FeedFuture { Box::pin(async { Ok(Feed::from_groups(Vec::new())) }) };
        Self { hours, restart_feed: Box::new(empty_feed), waits: false, limit: None }
    }
}

/// The time zone of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneSource {
    /// The zone of the campaign.
    Campaign,
    /// The zone that the number indicates by its country or area code. If it indicates none, the campaign's zone.
    Country,
    /// The zone in this column. If the cell names no known zone, the campaign's zone.
    Column(usize),
}

/// The time rules for the rows of a run.
#[derive(Clone, Debug)]
pub struct SendingRules {
    /// The windows with their time zones.
    pub windows: Vec<(Window, ZoneSource)>,
    /// The campaign's zone.
    pub home: TimeZone,
    /// The time after which nothing is sent.
    pub until: Option<Timestamp>,
}

/// Decides when the rows of a run may be sent.
pub struct SendingHours {
    rules: SendingRules,
    clock: WallClock,
    window_states: Mutex<HashMap<RowZones, (Timestamp, WindowState)>>,
    skipped_rows: Mutex<SkippedRows>,
}

/// The rows that a pass has skipped.
#[derive(Clone, Copy, Debug, Default)]
struct SkippedRows {
    /// The time from which the first of these rows may be sent.
    opens: Option<Timestamp>,
    /// The earliest time at which a window closes that is open, but closes before the message of its row can be sent.
    closes: Option<Timestamp>,
    /// Whether the window of some of these rows never opens.
    never_opens: bool,
}

/// The time when skipped rows must be checked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextCheck {
    /// At this time, when some rows may be sent.
    AtOpening(Timestamp),
    /// At this time, when the window closes for rows that could not be sent in time.
    AtClosing(Timestamp),
    /// Never: all sending ends first.
    Ended,
    /// Never: the window stays closed for a year.
    NeverOpens,
    /// Never: the run has no such rows.
    Nothing,
}

/// Whether a single message may be sent now.
#[derive(Clone, Debug, PartialEq)]
pub enum Departure {
    /// The message may be sent, before this time if there is one.
    Open(Option<Timestamp>),
    /// The message may not be sent. The window opens at this time in the recipient's zone; `None` if the window stays
    /// closed for a year.
    Closed(Option<Zoned>),
}

/// The zones of a row: the zone that its number indicates, and the zones in its time zone columns.
type RowZones = (Option<&'static str>, Vec<String>);

/// Whether rows in these zones may be sent, and until when this holds.
#[derive(Clone, Copy, Debug)]
enum WindowState {
    Open(Option<Timestamp>),
    Closed(Option<Timestamp>),
}

/// Formats a time with the name of its zone: `2026-11-27 09:00 (Europe/Kyiv)`.
pub(super) fn format_with_zone(time: &Zoned) -> String {
    format!("{} ({})", time.strftime("%Y-%m-%d %H:%M"), time.time_zone().iana_name().unwrap_or("UTC"))
}

impl SendingHours {
    /// Creates sending hours from rules and a clock.
    pub fn new(rules: SendingRules, clock: WallClock) -> Self {
        Self { rules, clock, window_states: Mutex::default(), skipped_rows: Mutex::default() }
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Whether `until`, the end of all sending, has passed.
    pub fn has_ended(&self) -> bool {
        self.rules.until.is_some_and(|until| self.now() >= until)
    }

    /// Checks whether the message to a row may be sent now, and returns the time before which it must be sent. Returns
    /// `Some(None)` if it may be sent at any later time, and `None` if it must not be sent now. If its window is
    /// closed, also records when the window opens.
    pub(super) fn departure_deadline(&self, phone: Phone, fields: RecordFields<'_>) -> Option<Option<Timestamp>> {
        let (now, until) = (self.now(), self.rules.until);
        if until.is_some_and(|until| now >= until) {
            return None;
        }
        match self.window_state(now, self.row_zones(phone, fields)) {
            WindowState::Open(ends) => Some([ends, until].into_iter().flatten().min()),
            WindowState::Closed(opens) => {
                let mut skipped_rows = self.skipped_rows();
                match opens {
                    Some(at) => skipped_rows.opens = Some(skipped_rows.opens.map_or(at, |known| known.min(at))),
                    None => skipped_rows.never_opens = true,
                }
                None
            }
        }
    }

    /// Whether the message to a row can no longer be sent, because all sending ends before its window opens.
    pub fn ends_before_departure(&self, phone: Phone, fields: RecordFields<'_>) -> bool {
        let (now, Some(until)) = (self.now(), self.rules.until) else { return false };
        now >= until
            || match self.window_state(now, self.row_zones(phone, fields)) {
                WindowState::Open(_) => false,
                WindowState::Closed(opens) => opens.is_none_or(|at| at >= until),
            }
    }

    /// Whether a message to `phone` may be sent at this time. Time zone columns are not used, because there is no row.
    pub fn check_departure(&self, phone: Phone, at: Timestamp) -> Departure {
        let zones = (self.find_country_zone(phone), Vec::new());
        let zone = zones.0.and_then(|name| TimeZone::get(name).ok()).unwrap_or_else(|| self.rules.home.clone());
        match self.window_state(at, zones) {
            WindowState::Open(closes) => Departure::Open(closes),
            WindowState::Closed(opens) => Departure::Closed(opens.map(|opens| opens.to_zoned(zone))),
        }
    }

    /// Records when the window closes for rows whose messages would be sent too late.
    pub(super) fn note_closing(&self, at: Timestamp) {
        let mut skipped_rows = self.skipped_rows();
        skipped_rows.closes = Some(skipped_rows.closes.map_or(at, |known| known.min(at)));
    }

    /// Whether a message to at least one skipped row may be sent now.
    pub(super) fn is_due(&self) -> bool {
        let opens = self.skipped_rows().opens;
        opens.is_some_and(|at| self.now() >= at)
    }

    /// The time when skipped rows must be checked again. Clears the record of skipped rows.
    pub(super) fn take_next_check(&self) -> NextCheck {
        let SkippedRows { opens, closes, never_opens } = std::mem::take(&mut *self.skipped_rows());
        let check = match (opens, closes) {
            (Some(opens), Some(closes)) if closes < opens => NextCheck::AtClosing(closes),
            (Some(opens), _) => NextCheck::AtOpening(opens),
            (None, Some(closes)) => NextCheck::AtClosing(closes),
            (None, None) if never_opens => NextCheck::NeverOpens,
            (None, None) => NextCheck::Nothing,
        };
        let is_after_end = |at: Timestamp| self.rules.until.is_some_and(|until| at >= until);
        match check {
            _ if self.has_ended() => NextCheck::Ended,
            NextCheck::AtOpening(at) if is_after_end(at) => NextCheck::Ended,
            NextCheck::NeverOpens if self.rules.until.is_some() => NextCheck::Ended,
            check => check,
        }
    }

    /// The first time from `at` on at which messages may be sent. `None` if all sending ends before that time.
    ///
    /// If windows depend on the recipient, the result is the earliest opening for the recipients that are known so far.
    /// If that opening is not before `until`, the result is `at`, because the windows of other recipients might open
    /// earlier.
    pub(super) fn find_next_departure(&self, at: Timestamp) -> Option<Timestamp> {
        let known: Vec<RowZones> = self.window_states().keys().cloned().collect();
        let opens = known.iter().filter_map(|zones| self.build_windows(zones).next_open_from(at)).min().unwrap_or(at);
        let is_same_for_all = self.rules.windows.iter().all(|(_, zone)| *zone == ZoneSource::Campaign);
        match self.rules.until {
            Some(until) if at >= until || (is_same_for_all && opens >= until) => None,
            Some(until) if opens >= until => Some(at),
            _ => Some(opens),
        }
    }

    fn window_states(&self) -> MutexGuard<'_, HashMap<RowZones, (Timestamp, WindowState)>> {
        self.window_states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn skipped_rows(&self) -> MutexGuard<'_, SkippedRows> {
        self.skipped_rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time until `at`, or zero if it has passed.
    pub(super) fn time_until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.now())).unwrap_or_default()
    }

    /// Formats a time in the campaign's time zone, after “at”: `at 2026-11-27 09:00 (Europe/Kyiv)`.
    pub(super) fn format_time(&self, at: Timestamp) -> String {
        format!("at {}", format_with_zone(&at.to_zoned(self.rules.home.clone())))
    }

    fn row_zones(&self, phone: Phone, fields: RecordFields<'_>) -> RowZones {
        let columns = self.rules.windows.iter().filter_map(|(_, zone)| match zone {
            ZoneSource::Column(column) => Some(fields.get(*column).trim().to_owned()),
            ZoneSource::Campaign | ZoneSource::Country => None,
        });
        (self.find_country_zone(phone), columns.collect())
    }

    /// The time zone of a phone number, if a window needs it and the number indicates it.
    fn find_country_zone(&self, phone: Phone) -> Option<&'static str> {
        let is_wanted = self.rules.windows.iter().any(|(_, zone)| *zone == ZoneSource::Country);
        if is_wanted { zone_of_number(phone, find_country(phone)) } else { None }
    }

    fn window_state(&self, now: Timestamp, zones: RowZones) -> WindowState {
        let mut states = self.window_states();
        let is_current = |(judged_at, verdict): &(Timestamp, WindowState)| match verdict {
            // A known result does not hold for earlier times: the clock might have been set back.
            WindowState::Open(changes_at) | WindowState::Closed(changes_at) => {
                *judged_at <= now && changes_at.is_none_or(|changes_at| now < changes_at)
            }
        };
        if let Some((_, verdict)) = states.get(&zones).copied().filter(is_current) {
            return verdict;
        }
        let windows = self.build_windows(&zones);
        let verdict = match windows.are_open(now) {
            true => WindowState::Open(windows.next_closed_from(now)),
            false => WindowState::Closed(windows.next_open_from(now)),
        };
        states.insert(zones, (now, verdict));
        verdict
    }

    fn build_windows(&self, (country, columns): &RowZones) -> Windows {
        let SendingRules { windows, home, .. } = &self.rules;
        let mut columns = columns.iter();
        let named = |name: Option<&str>| name.and_then(|name| TimeZone::get(name).ok()).unwrap_or_else(|| home.clone());
        let mut zoned = |zone: ZoneSource| match zone {
            ZoneSource::Campaign => home.clone(),
            ZoneSource::Country => named(*country),
            ZoneSource::Column(_) => named(columns.next().map(String::as_str).filter(|name| !name.is_empty())),
        };
        Windows::new(windows.iter().map(|(window, zone)| (window.clone(), zoned(*zone))).collect())
    }
}

impl fmt::Debug for SendingHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendingHours").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl fmt::Debug for SendingPasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendingPasses").field("waits", &self.waits).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_core::calendar;

    #[test]
    fn window_state_follows_the_clock_when_it_is_set_back() {
        let hours = calendar::DailyHours::parse("10:00-20:00").unwrap();
        let window = Window { hours, days: calendar::Days::ALL, except: [].into() };
        let rules = SendingRules { windows: vec![(window, ZoneSource::Campaign)], home: TimeZone::UTC, until: None };
        let hours = SendingHours::new(rules, Arc::new(Timestamp::now));
        let is_open = |time: &str| {
            let now = format!("2026-11-25T{time}Z").parse().unwrap();
            matches!(hours.window_state(now, (None, Vec::new())), WindowState::Open(_))
        };
        let times = [
            "12:00:00", "12:00:01", "11:59:59", "09:59:59", "09:00:00", "10:00:00", "19:59:59", "20:00:00", "19:00:00",
        ];
        assert_eq!(times.map(is_open), [true, true, true, false, false, true, true, false, true]);
    }

    #[test]
    fn next_departure_is_in_a_window_and_before_until() {
        let hours = calendar::DailyHours::parse("09:00-20:00").unwrap();
        let window = Window { hours, days: calendar::Days::ALL, except: [].into() };
        let now: Timestamp = "2026-11-25T12:00:00Z".parse().unwrap();
        let at_hour = |day: u8, hour: u8| format!("2026-11-{day}T{hour:02}:00:00Z").parse::<Timestamp>().unwrap();
        let midnight = at_hour(26, 0);
        let departure = |zone: ZoneSource, until: Option<Timestamp>| {
            let rules = SendingRules { windows: vec![(window.clone(), zone)], home: TimeZone::UTC, until };
            let hours = SendingHours::new(rules, Arc::new(Timestamp::now));
            hours.window_state(now, (None, Vec::new()));
            hours.find_next_departure(midnight)
        };
        let campaign = ZoneSource::Campaign;
        assert_eq!(departure(campaign, None), Some(at_hour(26, 9)));
        assert_eq!(departure(campaign, Some(at_hour(26, 10))), Some(at_hour(26, 9)));
        assert_eq!(departure(campaign, Some(at_hour(26, 9))), None);
        assert_eq!(departure(campaign, Some(at_hour(25, 23))), None);
        // Recipients that are not read yet might be in another zone.
        assert_eq!(departure(ZoneSource::Country, Some(at_hour(26, 9))), Some(midnight));
        assert_eq!(departure(ZoneSource::Country, Some(midnight)), None);
    }

    #[test]
    fn sending_hours_use_the_zone_of_the_number_or_the_home_zone() {
        let window = Window {
            hours: calendar::DailyHours::parse("09:00-20:00").unwrap(),
            days: calendar::Days::ALL,
            except: [].into(),
        };
        let home = TimeZone::get("America/New_York").unwrap();
        let hours_for = |zone| {
            let rules = SendingRules { windows: vec![(window.clone(), zone)], home: home.clone(), until: None };
            SendingHours::new(rules, Arc::new(Timestamp::now))
        };
        let departure = |zone: ZoneSource, phone: u64, time: &str| {
            let at = format!("2026-11-26T{time}Z").parse().unwrap();
            hours_for(zone).check_departure(Phone::new(phone).unwrap(), at)
        };
        let (kyiv, spain, chicago) = (380_501_234_567, 34_612_345_678, 13_125_550_123);
        let closes = |time: &str| Departure::Open(Some(time.parse().unwrap()));
        let opens = |time: &str| Departure::Closed(Some(time.parse().unwrap()));
        let next = "2026-11-27T09:00:00+02:00[Europe/Kyiv]";
        assert_eq!(departure(ZoneSource::Country, kyiv, "17:59:59"), closes("2026-11-26T18:00:00Z"));
        assert_eq!(departure(ZoneSource::Country, kyiv, "18:00:00"), opens(next));
        assert_eq!(
            departure(ZoneSource::Country, spain, "18:00:00"),
            closes("2026-11-27T01:00:00Z"),
            "Spain has several zones"
        );
        let morning = "2026-11-26T09:00:00-05:00[America/New_York]";
        assert_eq!(departure(ZoneSource::Country, spain, "12:00:00"), opens(morning));
        let central = "2026-11-26T09:00:00-06:00[America/Chicago]";
        assert_eq!(departure(ZoneSource::Country, chicago, "14:30:00"), opens(central), "by its area code");
        assert_eq!(departure(ZoneSource::Campaign, kyiv, "12:00:00"), opens(morning));
    }
}
