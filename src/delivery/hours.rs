//! When the rows of a start may leave: windows, in zones that may be each recipient's own, and the end of all sending.
//!
//! A start sends in passes. Rows that may not leave yet stay planned and are passed over; when nothing else is left, the
//! start waits until the first of them may, and the list is gone through again.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::feed::Feed;
use super::stop::Stop;
use crate::audience::Fields;
use crate::calendar::{Window, Windows, zone_of_country};
use crate::domain::{Phone, country_of};

/// The wall clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
/// A list that is begun anew.
pub type Feeding = Pin<Box<dyn Future<Output = Result<Feed, Stop>> + Send>>;
/// Begins the list anew with the rows that are still planned; it is told how many left that were planned at the start.
pub type Anew = Box<dyn Fn(u64) -> Feeding + Send + Sync>;

/// How a start goes through its rows again.
pub struct Passes {
    /// When they may leave.
    pub hours: Arc<Hours>,
    /// Begins the list anew.
    pub anew: Anew,
    /// Whether it waits for rows that may leave later.
    pub waits: bool,
    /// At most so many rows are sent.
    pub limit: Option<u64>,
}

impl Passes {
    /// The passes of a start with one message: it leaves within the hours, or the start stops.
    #[must_use]
    pub fn of_one(hours: Arc<Hours>) -> Self {
        let anew = |_| -> Feeding { Box::pin(async { Ok(Feed::of(Vec::new())) }) };
        Self { hours, anew: Box::new(anew), waits: false, limit: None }
    }
}

/// Whose clocks a window is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneOf {
    /// Those of the campaign.
    Campaign,
    /// Those of the country of the number, where it has one zone; else those of the campaign.
    Country,
    /// Those of the zone in this column; those of the campaign where it names none.
    Column(usize),
}

/// What the rows of a start keep.
#[derive(Clone, Debug)]
pub struct Keeping {
    /// The windows, each on the clocks of somebody.
    pub windows: Vec<(Window, ZoneOf)>,
    /// The campaign's zone.
    pub home: TimeZone,
    /// The moment from which nothing leaves.
    pub until: Option<Timestamp>,
}

/// When the rows of a start may leave.
pub struct Hours {
    keeping: Keeping,
    clock: Clock,
    known: Mutex<HashMap<Zones, (Timestamp, Verdict)>>,
    passed: Mutex<Passed>,
}

/// Rows that were passed over.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    /// When the first of them may leave.
    opens: Option<Timestamp>,
    /// When the time ends of the first of them that would have left too late.
    closes: Option<Timestamp>,
    /// Whether there are some that never may.
    never: bool,
}

/// When rows that were passed over are to be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// At this moment, when some may leave.
    Opens(Timestamp),
    /// At this moment, when the time of some is over that could not leave within it.
    Closes(Timestamp),
    /// Not at all: the end of all sending comes before.
    Over,
    /// Not at all: they may not leave for a year.
    NeverOpens,
    /// Not at all: there are none.
    Nothing,
}

/// Whether a single message may leave now.
#[derive(Clone, Debug, PartialEq)]
pub enum Departure {
    /// It may, before this moment if there is one.
    Open(Option<Timestamp>),
    /// It may not; the window opens at this time on the recipient's clocks. Nothing if it stays closed for a year.
    Closed(Option<Zoned>),
}

/// The zones of a row, as far as they are its own.
type Zones = (Option<&'static str>, Vec<String>);

/// Whether rows of some zones may leave, and until when that holds from the moment at which it was found.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    Open(Option<Timestamp>),
    Closed(Option<Timestamp>),
}

impl Hours {
    /// Hours that are read from this clock.
    #[must_use]
    pub fn new(keeping: Keeping, clock: Clock) -> Self {
        Self { keeping, clock, known: Mutex::default(), passed: Mutex::default() }
    }

    /// What the clock shows.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Whether the end of all sending has come.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.keeping.until.is_some_and(|until| self.now() >= until)
    }

    /// The moment before which a row has to leave that may leave now; nothing where it may not, and is to be looked at again.
    pub(super) fn of_row(&self, phone: Phone, fields: Fields<'_>) -> Option<Option<Timestamp>> {
        let (now, until) = (self.now(), self.keeping.until);
        if until.is_some_and(|until| now >= until) {
            return None;
        }
        match self.verdict(now, self.zones_of(phone, fields)) {
            Verdict::Open(ends) => Some([ends, until].into_iter().flatten().min()),
            Verdict::Closed(opens) => {
                let mut passed = self.passed();
                match opens {
                    Some(at) => passed.opens = Some(passed.opens.map_or(at, |known| known.min(at))),
                    None => passed.never = true,
                }
                None
            }
        }
    }

    /// Whether a message to a number may leave at a moment. A number has no columns.
    #[must_use]
    pub fn departure(&self, phone: Phone, at: Timestamp) -> Departure {
        let zones = (self.country_zone(phone), Vec::new());
        let clocks = zones.0.and_then(|name| TimeZone::get(name).ok()).unwrap_or_else(|| self.keeping.home.clone());
        match self.verdict(at, zones) {
            Verdict::Open(closes) => Departure::Open(closes),
            Verdict::Closed(opens) => Departure::Closed(opens.map(|opens| opens.to_zoned(clocks))),
        }
    }

    /// Takes in when the time ends of rows that would have left too late.
    pub(super) fn closes(&self, at: Timestamp) {
        let mut passed = self.passed();
        passed.closes = Some(passed.closes.map_or(at, |known| known.min(at)));
    }

    /// Whether rows that were passed over may leave now.
    pub(super) fn is_due(&self) -> bool {
        let opens = self.passed().opens;
        opens.is_some_and(|at| self.now() >= at)
    }

    /// When rows that were passed over are to be looked at again, which whoever asks does.
    pub(super) fn next_look(&self) -> Look {
        let Passed { opens, closes, never } = std::mem::take(&mut *self.passed());
        let look = match (opens, closes) {
            (Some(opens), Some(closes)) if closes < opens => Look::Closes(closes),
            (Some(opens), _) => Look::Opens(opens),
            (None, Some(closes)) => Look::Closes(closes),
            (None, None) if never => Look::NeverOpens,
            (None, None) => Look::Nothing,
        };
        let comes_first = |at: Timestamp| self.keeping.until.is_some_and(|until| at >= until);
        match look {
            _ if self.is_over() => Look::Over,
            Look::Opens(at) if comes_first(at) => Look::Over,
            Look::NeverOpens if self.keeping.until.is_some() => Look::Over,
            look => look,
        }
    }

    fn passed(&self) -> MutexGuard<'_, Passed> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time until a moment.
    pub(super) fn time_until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.now())).unwrap_or_default()
    }

    /// A moment as the clocks of the campaign show it.
    pub(super) fn words(&self, at: Timestamp) -> String {
        let home = &self.keeping.home;
        format!("at {} ({})", home.to_datetime(at).strftime("%Y-%m-%d %H:%M"), home.iana_name().unwrap_or("UTC"))
    }

    fn zones_of(&self, phone: Phone, fields: Fields<'_>) -> Zones {
        let columns = self.keeping.windows.iter().filter_map(|(_, zone)| match zone {
            ZoneOf::Column(column) => Some(fields.get(*column).trim().to_owned()),
            ZoneOf::Campaign | ZoneOf::Country => None,
        });
        (self.country_zone(phone), columns.collect())
    }

    /// The zone of a number's country, if a window goes by it and the country has one zone.
    fn country_zone(&self, phone: Phone) -> Option<&'static str> {
        let is_wanted = self.keeping.windows.iter().any(|(_, zone)| *zone == ZoneOf::Country);
        if is_wanted { zone_of_country(&country_of(phone)?) } else { None }
    }

    fn verdict(&self, now: Timestamp, zones: Zones) -> Verdict {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = |(found, verdict): &(Timestamp, Verdict)| match verdict {
            // Of the time before, to which a clock can be set back, it says nothing.
            Verdict::Open(turns) | Verdict::Closed(turns) => *found <= now && turns.is_none_or(|turns| now < turns),
        };
        if let Some((_, verdict)) = known.get(&zones).copied().filter(fresh) {
            return verdict;
        }
        let windows = self.windows_in(&zones);
        let verdict = match windows.are_open(now) {
            true => Verdict::Open(windows.closed_from(now)),
            false => Verdict::Closed(windows.open_from(now)),
        };
        known.insert(zones, (now, verdict));
        verdict
    }

    fn windows_in(&self, (country, columns): &Zones) -> Windows {
        let Keeping { windows, home, .. } = &self.keeping;
        let mut columns = columns.iter();
        let named = |name: Option<&str>| name.and_then(|name| TimeZone::get(name).ok()).unwrap_or_else(|| home.clone());
        let mut zoned = |zone: ZoneOf| match zone {
            ZoneOf::Campaign => home.clone(),
            ZoneOf::Country => named(*country),
            ZoneOf::Column(_) => named(columns.next().map(String::as_str).filter(|name| !name.is_empty())),
        };
        Windows::new(windows.iter().map(|(window, zone)| (window.clone(), zoned(*zone))).collect())
    }
}

impl fmt::Debug for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hours").field("keeping", &self.keeping).finish_non_exhaustive()
    }
}

impl fmt::Debug for Passes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passes").field("waits", &self.waits).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar;

    #[test]
    fn a_window_that_was_open_is_closed_to_a_clock_that_was_set_back_before_it() {
        let hours = calendar::Hours::read("10:00-20:00").unwrap();
        let window = Window { hours, days: calendar::Days::ALL, except: [].into() };
        let keeping = Keeping { windows: vec![(window, ZoneOf::Campaign)], home: TimeZone::UTC, until: None };
        let hours = Hours::new(keeping, Arc::new(Timestamp::now));
        let is_open = |time: &str| {
            let now = format!("2026-11-25T{time}Z").parse().unwrap();
            matches!(hours.verdict(now, (None, Vec::new())), Verdict::Open(_))
        };
        let shown = [
            "12:00:00", "12:00:01", "11:59:59", "09:59:59", "09:00:00", "10:00:00", "19:59:59", "20:00:00", "19:00:00",
        ];
        assert_eq!(shown.map(is_open), [true, true, true, false, false, true, true, false, true]);
    }

    #[test]
    fn departure_goes_by_the_country_of_the_number_else_by_home() {
        let window = Window {
            hours: calendar::Hours::read("09:00-20:00").unwrap(),
            days: calendar::Days::ALL,
            except: [].into(),
        };
        let home = TimeZone::get("America/New_York").unwrap();
        let of = |zone| {
            let keeping = Keeping { windows: vec![(window.clone(), zone)], home: home.clone(), until: None };
            Hours::new(keeping, Arc::new(Timestamp::now))
        };
        let departure = |zone: ZoneOf, phone: u64, time: &str| {
            let at = format!("2026-11-26T{time}Z").parse().unwrap();
            of(zone).departure(Phone::new(phone).unwrap(), at)
        };
        let (kyiv, us) = (380_501_234_567, 12_125_550_123);
        let closes = |time: &str| Departure::Open(Some(time.parse().unwrap()));
        let opens = |time: &str| Departure::Closed(Some(time.parse().unwrap()));
        let next = "2026-11-27T09:00:00+02:00[Europe/Kyiv]";
        assert_eq!(departure(ZoneOf::Country, kyiv, "17:59:59"), closes("2026-11-26T18:00:00Z"));
        assert_eq!(departure(ZoneOf::Country, kyiv, "18:00:00"), opens(next));
        assert_eq!(departure(ZoneOf::Country, us, "18:00:00"), closes("2026-11-27T01:00:00Z"), "it has several zones");
        let morning = "2026-11-26T09:00:00-05:00[America/New_York]";
        assert_eq!(departure(ZoneOf::Country, us, "12:00:00"), opens(morning));
        assert_eq!(departure(ZoneOf::Campaign, kyiv, "12:00:00"), opens(morning));
    }
}
