//! Sending windows and deadlines of a campaign or a profile.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::campaign::Campaign;
use super::document::{ConfigSection, FindingCollector};
use super::keys::WINDOW;
use super::profile::Profile;
use campaign_core::calendar::{DailyHours, Days, Occurrence, Window, Windows, suggest_date_order};
use campaign_core::finding::{Finding, rules};

const HOURS_HELP: &str = "write the hours in the form `09:00-20:00`; `22:00-06:00` ends the next morning";
const DAYS_HELP: &str = "write the days in the form `mon-fri` or `mon, wed`";

/// The times at which messages can be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendingWindow {
    /// The hours and days, in the time zone `zone`.
    pub window: Window,
    /// The time zone.
    pub zone: WindowZone,
}

/// The time zone of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WindowZone {
    /// The campaign's `timezone`.
    Campaign,
    /// The time zone of the number's country or area code.
    Recipient,
    /// The time zone in this column.
    Column(String),
}

/// The time at which sending ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SendingDeadline {
    /// At this local time.
    At(DateTime),
    /// This long after the run began.
    After(Duration),
}

/// Whether a window can name a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnSupport {
    /// A window can name a column of the campaign's list.
    Allowed,
    /// A window cannot name a column, because a profile has no list.
    Forbidden,
}

impl Campaign {
    /// The windows of the campaign and its profile.
    pub fn effective_windows<'c>(&'c self, profile: Option<&'c Profile>) -> impl Iterator<Item = &'c SendingWindow> {
        SendingWindow::effective_windows(self.window.as_ref(), profile)
    }

    /// The windows of the campaign and its profile in the campaign's time zone, and the beginning of the campaign's
    /// day.
    pub fn home_windows(&self, profile: Option<&Profile>) -> (Windows, Timestamp) {
        let home = self.home_zone();
        let day_start = self.today.to_zoned(home.clone()).map_or(Timestamp::UNIX_EPOCH, |day| day.timestamp());
        (
            Windows::new(self.effective_windows(profile).map(|window| (window.window.clone(), home.clone())).collect()),
            day_start,
        )
    }

    /// Whether a window uses the time zone of the number's country or area code.
    pub fn uses_recipient_zones(&self, profile: Option<&Profile>) -> bool {
        self.effective_windows(profile).any(|window| window.zone == WindowZone::Recipient)
    }

    /// The windows for a recipient. `number_zone` is the time zone of the number's country or area code, and `cell` is
    /// the value of the row's time zone column. If a time zone is missing, the windows that need it use the campaign's
    /// time zone.
    pub fn windows_for_recipient(
        &self,
        profile: Option<&Profile>,
        number_zone: Option<&str>,
        cell: Option<&str>,
    ) -> Windows {
        let zone_name = |zone: &WindowZone| match zone {
            WindowZone::Campaign => None,
            WindowZone::Recipient => number_zone,
            WindowZone::Column(_) => cell,
        };
        let find_zone = |name: Option<&str>| name.and_then(|name| TimeZone::get(name).ok());
        let with_zone = |window: &SendingWindow| {
            (window.window.clone(), find_zone(zone_name(&window.zone)).unwrap_or_else(|| self.home_zone()))
        };
        Windows::new(self.effective_windows(profile).map(with_zone).collect())
    }

    /// The windows that do not depend on the recipient's time zone.
    pub fn windows_for_all(&self, profile: Option<&Profile>) -> Windows {
        let windows = self.effective_windows(profile).filter(|window| window.zone == WindowZone::Campaign);
        Windows::new(windows.map(|window| (window.window.clone(), self.home_zone())).collect())
    }

    /// The sending hours with a profile, in words; `None` if sending is always allowed. Plans are compared by this
    /// text, so it must not change.
    pub fn describe_hours(&self, profile: Option<&Profile>) -> Option<String> {
        let windows = self.effective_windows(profile).map(|window| format!("within {window}"));
        let mut hours: Vec<String> = windows.chain(self.until.map(|until| format!("until {until}"))).collect();
        if hours.is_empty() {
            return None;
        }
        hours.extend(self.brief.timezone.as_ref().map(|zone| format!("by the clocks of {zone}")));
        Some(hours.join(", "))
    }

    /// The deadline, if it is a date and a time.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.until?.to_timestamp(&self.home_zone())
    }

    /// The campaign with its deadline as a date and time, for a run that began at `began_at`.
    #[must_use]
    pub fn with_fixed_deadline(&self, began_at: Timestamp) -> Self {
        let until = self.until.map(|until| match until {
            SendingDeadline::After(time) => {
                let ends = began_at.checked_add(time).unwrap_or(Timestamp::MAX);
                SendingDeadline::At(ends.to_zoned(self.home_zone()).datetime())
            }
            fixed @ SendingDeadline::At(_) => fixed,
        });
        Self { until, ..self.clone() }
    }

    /// The number of times that the window must open to be open for `time` in total. `None` if once is enough. If
    /// `begins` is `None`, openings are counted from the beginning of the campaign's day.
    pub fn count_openings(&self, profile: Option<&Profile>, time: Duration, begins: Option<Timestamp>) -> Option<u64> {
        let (windows, today) = self.home_windows(profile);
        windows.count_openings(begins.unwrap_or(today), time).filter(|openings| *openings > 1)
    }

    /// The moment of the schedule's next occurrence after `moment`.
    pub fn next_due_after(&self, moment: Timestamp) -> Option<Timestamp> {
        Some(self.schedule.as_ref()?.occurrences_after(moment).next()?.at)
    }
}

impl SendingWindow {
    /// The windows of a campaign and its profile.
    pub(super) fn effective_windows<'w>(
        campaign_window: Option<&'w Self>,
        profile: Option<&'w Profile>,
    ) -> impl Iterator<Item = &'w Self> {
        campaign_window.into_iter().chain(profile.and_then(|profile| profile.window.as_ref()))
    }

    /// The window in words, with ranges of days: `09:00-20:00 on mon-fri in the recipient's time zone`.
    pub fn format_short(&self) -> String {
        let zone = match &self.zone {
            WindowZone::Campaign => String::new(),
            WindowZone::Recipient => " in the recipient's time zone".to_owned(),
            WindowZone::Column(column) => format!(" in the time zone of column `{column}`"),
        };
        self.window.format_short() + &zone
    }
}

impl SendingDeadline {
    /// The moment in this time zone, if it is a date and a time.
    pub(super) fn to_timestamp(self, home: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::At(local) => Occurrence::at_local_time(local, home).map(|occurrence| occurrence.at),
            Self::After(_) => None,
        }
    }
}

impl fmt::Display for SendingWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.window, self.zone.stored_suffix())
    }
}

impl WindowZone {
    /// The suffix of a window in a stored plan. The suffix must not change, because plans are compared by it.
    fn stored_suffix(&self) -> String {
        match self {
            WindowZone::Campaign => String::new(),
            WindowZone::Recipient => " where the recipient is".to_owned(),
            WindowZone::Column(column) => format!(" in the zone of `{column}`"),
        }
    }
}

impl fmt::Display for SendingDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendingDeadline::At(local) => write!(f, "{}", local.strftime("%Y-%m-%d %H:%M")),
            SendingDeadline::After(time) => write!(f, "{} s after it began", time.as_secs()),
        }
    }
}

/// The sending window under `window`. `Some(None)` if there is none; `None` if it is invalid, which was reported.
pub(super) fn read_window(
    parent: ConfigSection<'_>,
    columns: ColumnSupport,
    report: &mut FindingCollector,
) -> Option<Option<SendingWindow>> {
    let Some(node) = parent.find_value("window") else { return Some(None) };
    if let Some((text, span)) = parent.typed_text("window") {
        let hours = DailyHours::parse(text);
        if hours.is_none() {
            report
                .add(span, Finding::new(&rules::WINDOW, format!("`{text}` is not a range of hours")).help(HOURS_HELP));
        }
        let window = |hours| Window { hours, days: Days::ALL, except: Default::default() };
        return Some(Some(SendingWindow { window: window(hours?), zone: WindowZone::Campaign }));
    }
    let section = ConfigSection::new(Some(node), WINDOW);
    read_window_map(section, columns, report).map(Some)
}

fn read_window_map(
    section: ConfigSection<'_>,
    columns: ColumnSupport,
    report: &mut FindingCollector,
) -> Option<SendingWindow> {
    let (text, span) = section.typed_text("hours")?;
    let hours = DailyHours::parse(text);
    if hours.is_none() {
        report.add(span, Finding::new(&rules::WINDOW, format!("`{text}` is not a range of hours")).help(HOURS_HELP));
    }
    let days = match section.typed_text("days") {
        None => Some(Days::ALL),
        Some((text, span)) => {
            let days = Days::parse(text);
            if days.is_none() {
                report.add(
                    span,
                    Finding::new(&rules::WINDOW, format!("`{text}` is not a valid list of weekdays")).help(DAYS_HELP),
                );
            }
            days
        }
    };
    let items = section.find_value("except").and_then(|node| node.as_items()).unwrap_or_default();
    let dates = items.iter().map(|item| {
        let text = item.as_scalar()?.text.trim();
        let date = Date::strptime("%Y-%m-%d", text).ok();
        if date.is_none() {
            let finding = Finding::new(&rules::WINDOW, format!("`{text}` under `except` is not a valid date"));
            let form = "write dates such as `2026-12-25`";
            report.add(&item.span, finding.help(suggest_date_order(text).unwrap_or_else(|| form.to_owned())));
        }
        date
    });
    let except = dates.collect::<Vec<_>>().into_iter().collect::<Option<_>>();
    let zone = match section.text("zone")? {
        "campaign" => WindowZone::Campaign,
        "recipient" => WindowZone::Recipient,
        column if columns == ColumnSupport::Allowed => WindowZone::Column(column.to_owned()),
        _ => {
            if let Some((text, span)) = section.typed_text("zone") {
                let finding =
                    Finding::new(&rules::WINDOW, format!("`zone` is `{text}`, but a profile cannot use a list column"));
                report.add(span, finding.help("write `zone: campaign` or `zone: recipient`"));
            }
            return None;
        }
    };
    Some(SendingWindow { window: Window { hours: hours?, days: days?, except: except? }, zone })
}
