//! The day of a campaign, its date in file names and other texts, and the keys for times: `timezone`, `schedule`,
//! and `window`, `until` and `per_day` under `delivery`.

use std::ops::Range;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::Resolver;
use crate::document::ConfigSection;
use crate::value::Seconds;
use crate::window::{ColumnSupport, SendingDeadline, SendingWindow, read_window};
use campaign_core::calendar::{DailyLimits, Schedule, Timing, TimingError, suggest_date_order};
use campaign_core::finding::{Finding, Rule, did_you_mean, join_alternatives, rules};

/// Abbreviations that are not zones of the database, with places that use them.
const ABBREVIATIONS: [(&str, &[&str]); 29] = [
    ("Z", &["UTC"]),
    ("MSK", &["Europe/Moscow"]),
    ("EEST", &["Europe/Kyiv"]),
    ("CEST", &["Europe/Berlin"]),
    ("MEZ", &["Europe/Berlin"]),
    ("MESZ", &["Europe/Berlin"]),
    ("WEST", &["Europe/Lisbon"]),
    ("BST", &["Europe/London"]),
    ("TRT", &["Europe/Istanbul"]),
    ("SAMT", &["Europe/Samara"]),
    ("YEKT", &["Asia/Yekaterinburg"]),
    ("GST", &["Asia/Dubai"]),
    ("PKT", &["Asia/Karachi"]),
    ("IST", &["Asia/Kolkata", "Asia/Jerusalem", "Europe/Dublin"]),
    ("WIB", &["Asia/Jakarta"]),
    ("SGT", &["Asia/Singapore"]),
    ("HKT", &["Asia/Hong_Kong"]),
    ("JST", &["Asia/Tokyo"]),
    ("KST", &["Asia/Seoul"]),
    ("AEST", &["Australia/Brisbane"]),
    ("AEDT", &["Australia/Sydney"]),
    ("NZST", &["Pacific/Auckland"]),
    ("NZDT", &["Pacific/Auckland"]),
    ("EDT", &["America/New_York"]),
    ("CST", &["America/Chicago", "Asia/Shanghai"]),
    ("CDT", &["America/Chicago"]),
    ("MDT", &["America/Denver"]),
    ("PST", &["America/Los_Angeles"]),
    ("PDT", &["America/Los_Angeles"]),
];

/// The day for which a campaign file is read: `today` in its texts and file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CampaignDay {
    /// The day of this moment, in the campaign's time zone.
    Of(Timestamp),
    /// This day.
    Is(Date),
    /// This future day: text files that are named after it can be missing.
    Coming(Date),
}

impl CampaignDay {
    /// The date in a time zone, or in the computer's time zone if none is given.
    pub(super) fn resolve_date(self, zone: Option<&str>) -> Date {
        match self {
            CampaignDay::Is(date) | CampaignDay::Coming(date) => date,
            CampaignDay::Of(moment) => {
                let zone = zone.and_then(|zone| TimeZone::get(zone).ok()).unwrap_or_else(TimeZone::system);
                moment.to_zoned(zone).date()
            }
        }
    }
}

impl Resolver<'_> {
    /// The campaign's time zone. An unknown name is reported.
    pub(super) fn resolve_timezone(&mut self, root: ConfigSection<'_>) -> Option<String> {
        let (name, span) = root.typed_text("timezone")?;
        if let Ok(zone) = TimeZone::get(name) {
            return Some(zone.iana_name().unwrap_or(name).to_owned());
        }
        let finding = Finding::new(&rules::UNKNOWN_TIMEZONE, format!("unknown time zone `{name}`"));
        self.report.add(span, finding.help(suggest_zone(name)));
        None
    }

    /// Whether `timezone` is missing. False if a misspelt or misplaced `timezone` is reported as an unknown key.
    pub(super) fn lacks_timezone(&self, root: ConfigSection<'_>) -> bool {
        let is_misplaced = |finding: &Finding| {
            let place = finding.place.as_ref().filter(|_| *finding.rule == rules::UNKNOWN_KEY);
            place.is_some_and(|place| self.report.source_slice(&place.span).trim_matches(['"', '\'']) == "timezone")
        };
        !root.has_value("timezone")
            && !root.has_misspelling("timezone")
            && !self.report.findings.iter().any(is_misplaced)
    }
}

/// The remedy for a name that is not in the time zone database. The remedy never suggests a zone with another offset.
pub fn suggest_zone(name: &str) -> String {
    const ZONE_HELP: &str = "write a name from the time zone database, such as `Europe/Kyiv`";
    let name = name.trim();
    if let Some((_, places)) = ABBREVIATIONS.iter().find(|(short, _)| short.eq_ignore_ascii_case(name)) {
        return format!("did you mean {}?", join_alternatives(places.iter().copied()));
    }
    if let Some(minutes) = parse_offset(name) {
        return match find_fixed_zone(minutes) {
            Some(zone) => format!("did you mean `{zone}`? If the place observes daylight saving time, {ZONE_HELP}"),
            None => ZONE_HELP.into(),
        };
    }
    let zones: Vec<String> = jiff::tz::db().available().map(|zone| zone.to_string()).collect();
    match find_meant_zone(name, &zones) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => ZONE_HELP.into(),
    }
}

/// The zone that was probably meant. Short names are never guessed: one letter of an abbreviation can mean hours of
/// difference.
fn find_meant_zone<'z>(name: &str, zones: &'z [String]) -> Option<&'z str> {
    let typed = name.replace(' ', "_");
    // The database keeps both the old and the new spelling of Kyiv.
    let is_place = |zone: &&String| !zone.starts_with("Etc/") && *zone != "Europe/Kiev";
    let places = || zones.iter().filter(is_place).filter_map(|zone| Some((zone, zone_city(zone)?)));
    let named = places().find(|(_, city)| city.eq_ignore_ascii_case(&typed)).map(|(zone, _)| zone.as_str());
    named.or_else(|| match zone_city(&typed) {
        Some(_) => did_you_mean(&typed, places().map(|(zone, _)| zone.as_str())),
        // Abbreviations have at most five letters.
        None if typed.chars().count() > 5 => {
            let city = did_you_mean(&typed, places().map(|(_, city)| city))?;
            places().find(|(_, other)| *other == city).map(|(zone, _)| zone.as_str())
        }
        None => None,
    })
}

/// The part after the last slash of a name.
fn zone_city(zone: &str) -> Option<&str> {
    zone.rsplit_once('/').map(|(_, city)| city)
}

/// The minutes east of UTC in a name such as `GMT+2`, `UTC-03:30` or `+0200`.
///
/// In names that begin with `Etc/GMT`, the sign follows POSIX: `Etc/GMT-2` is east.
fn parse_offset(name: &str) -> Option<i32> {
    let upper = name.to_ascii_uppercase().replace('−', "-").replace(' ', "");
    let (upper, has_posix_sign) = match upper.strip_prefix("ETC/") {
        Some(rest) => (rest, rest.starts_with("GMT")),
        None => (upper.as_str(), false),
    };
    let rest = ["GMT", "UTC", "UT"].iter().find_map(|prefix| upper.strip_prefix(prefix)).unwrap_or(upper);
    let (sign, digits) = match rest.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if digits.len() >= 3 => digits.split_at_checked(digits.len() - 2)?,
        None => (digits, "0"),
    };
    let is_number = |text: &str| (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(hours) || !is_number(minutes) {
        return None;
    }
    let minutes = hours.parse::<i32>().ok()? * 60 + minutes.parse::<i32>().ok().filter(|minutes| *minutes < 60)?;
    Some(if has_posix_sign { -sign * minutes } else { sign * minutes })
}

/// The zone of the database with this fixed offset, in minutes east of UTC.
fn find_fixed_zone(minutes: i32) -> Option<String> {
    let name = match (minutes / 60, minutes % 60) {
        (0, 0) => "UTC".to_owned(),
        // The sign of these names follows POSIX: west of UTC is positive.
        (hours, 0) => format!("Etc/GMT{:+}", -hours),
        _ => return None,
    };
    TimeZone::get(&name).is_ok().then_some(name)
}

/// Parses the local times of a key.
type TimingParser = fn(&str) -> Result<Timing, TimingError>;

/// The keys that can define the times of a schedule.
const KEYS: [(&str, TimingParser); 3] =
    [("at", Timing::parse_at), ("every", Timing::parse_every), ("cron", Timing::parse_cron)];

impl Resolver<'_> {
    /// The schedule. `None` if there is none, or if it has errors, which were reported.
    pub(super) fn resolve_schedule(&mut self, root: ConfigSection<'_>, zone: Option<&str>) -> Option<Schedule> {
        let key = &root.entry("schedule")?.key_span;
        let section = root.subsection("schedule");
        let (timing, ends) = (self.resolve_timing(section, key), self.resolve_end_date(section));
        if self.lacks_timezone(root) {
            let finding = Finding::new(&rules::SCHEDULE, "`schedule` contains times, so `timezone` must be set");
            self.report.add(key, finding.help("add `timezone: Europe/Kyiv`, or another time zone"));
        }
        let parse_duration =
            |name| section.parse_value(name).map(|Seconds(seconds)| Duration::from_secs(seconds.into()));
        Some(Schedule {
            timing: timing?,
            zone: TimeZone::get(zone?).ok()?,
            ends,
            grace: parse_duration("grace")?,
            wait_for_file: parse_duration("wait_for_file"),
        })
    }

    /// The local times of the schedule, which exactly one key must define.
    fn resolve_timing(&mut self, section: ConfigSection<'_>, schedule_span: &Range<usize>) -> Option<Timing> {
        let typed: Vec<_> =
            KEYS.into_iter().filter_map(|(name, parse)| Some((name, parse, section.typed_text(name)?))).collect();
        match typed[..] {
            [] => {
                let finding = Finding::new(&rules::SCHEDULE, "`schedule` has no time");
                let help = "add `at: 2026-12-01 10:00`, `every: Mon 10:00` or `cron: 0 10 * * MON` under `schedule`";
                self.report.add(schedule_span, finding.help(help));
                None
            }
            [(name, parse, (text, span))] => match parse(text) {
                Ok(timing) => Some(timing),
                Err(TimingError { why, help }) => {
                    self.report.add(span, Finding::new(&rules::SCHEDULE, format!("`{name}: {text}` {why}")).help(help));
                    None
                }
            },
            [(first, ..), (second, _, (_, span)), ..] => {
                let message = format!("`schedule` has two times: `{first}` and `{second}`");
                self.report.add(span, Finding::new(&rules::SCHEDULE, message).help("remove one of them"));
                None
            }
        }
    }

    /// The last day of the schedule. An invalid date is reported.
    fn resolve_end_date(&mut self, section: ConfigSection<'_>) -> Option<Date> {
        let (text, span) = section.typed_text("ends")?;
        let date = Date::strptime("%Y-%m-%d", text);
        if date.is_err() {
            let finding = Finding::new(&rules::SCHEDULE, format!("`ends: {text}` is not a valid date"));
            let form = "write the last day on which the campaign runs, such as `2027-01-01`";
            self.report.add(span, finding.help(suggest_date_order(text).unwrap_or_else(|| form.to_owned())));
        }
        date.ok()
    }
}

impl Resolver<'_> {
    /// The sending window. `Some(None)` if the campaign has none; `None` if it is invalid, which was reported.
    pub(super) fn resolve_window(&mut self, root: ConfigSection<'_>) -> Option<Option<SendingWindow>> {
        let delivery = root.subsection("delivery");
        let window = read_window(delivery, ColumnSupport::Allowed, self.report);
        if let Some(entry) = delivery.entry("window").filter(|_| delivery.has_value("window")) {
            self.require_zone(root, "delivery.window", &rules::WINDOW, &entry.key_span);
        }
        window
    }

    /// The deadline. `Some(None)` if the campaign has none; `None` if it is invalid, which was reported.
    pub(super) fn resolve_until(&mut self, root: ConfigSection<'_>) -> Option<Option<SendingDeadline>> {
        let Some((text, span)) = root.subsection("delivery").typed_text("until") else { return Some(None) };
        if let Ok(Seconds(seconds)) = text.parse() {
            if seconds == 0 {
                let finding = Finding::new(&rules::UNTIL, "`until` leaves no time for sending messages");
                self.report.add(span, finding.help("write a duration such as `12h`"));
            }
            return Some(Some(SendingDeadline::After(Duration::from_secs(seconds.into()))));
        }
        self.require_zone(root, "delivery.until", &rules::UNTIL, span);
        match Timing::parse_at(text) {
            Ok(timing) => timing.single_time().map(SendingDeadline::At).map(Some),
            Err(error) => {
                let form = "write a date and time such as `2026-12-07 20:00`, or a duration such as `12h`";
                let with_time = if text.contains(':') { text.to_owned() } else { format!("{text} 20:00") };
                let help = suggest_date_order(&with_time).unwrap_or_else(|| form.to_owned());
                let finding = Finding::new(&rules::UNTIL, format!("`until: {text}` {}", error.why));
                self.report.add(span, finding.help(help));
                None
            }
        }
    }

    /// The maximum numbers of messages per day. `None` if there are none, or if the time zone is missing.
    pub(super) fn resolve_per_day(&mut self, root: ConfigSection<'_>, zone: Option<&str>) -> Option<DailyLimits> {
        let delivery = root.subsection("delivery");
        let entry = delivery.entry("per_day").filter(|_| delivery.has_value("per_day"))?;
        if self.lacks_timezone(root) {
            let finding =
                Finding::new(&rules::MISSING_TIMEZONE, "`per_day` needs `timezone`, which defines when a day starts");
            self.report.add(&entry.key_span, finding.help("add `timezone: Europe/Kyiv`, or another time zone"));
        }
        let counts = match entry.value.as_items() {
            Some(_) => delivery.parse_items("per_day"),
            None => delivery.parse_value("per_day").into_iter().collect(),
        };
        DailyLimits::new(counts, TimeZone::get(zone?).ok()?)
    }

    /// Reports a key with local times if `timezone` is missing.
    fn require_zone(&mut self, root: ConfigSection<'_>, key: &str, rule: &'static Rule, span: &Range<usize>) {
        if self.lacks_timezone(root) {
            let finding = Finding::new(rule, format!("`{key}` contains times, so `timezone` must be set"));
            self.report.add(span, finding.help("add `timezone: Europe/Kyiv`, or another time zone"));
        }
    }
}

/// Whether a file name contains a date placeholder or the beginning of any other template tag.
pub(super) fn has_placeholder(name: &str) -> bool {
    name.contains("{{") || name.contains("{%")
}

/// Inserts the date into a file name: `daily-{{ today }}.csv` becomes `daily-2026-12-01.csv`. `None` if braces contain
/// anything but `today`.
pub(super) fn insert_date(name: &str, today: Date) -> Option<String> {
    let mut pieces = name.split("{{");
    let mut dated = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (inner, rest) = piece.split_once("}}")?;
        if inner.trim() != "today" {
            return None;
        }
        dated += &format!("{today}{rest}");
    }
    (!has_placeholder(&dated)).then_some(dated)
}

/// Replaces each `{{ today }}` with the date; other braces stay.
pub(super) fn replace_today(text: &str, today: Date) -> String {
    let mut pieces = text.split("{{");
    let mut dated = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once("}}") {
            Some((inner, rest)) if inner.trim() == "today" => dated += &format!("{today}{rest}"),
            _ => dated += &format!("{{{{{piece}"),
        }
    }
    dated
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// The zones that a help text suggests.
    fn suggested_zones(name: &str) -> Vec<TimeZone> {
        let advice = suggest_zone(name);
        let Some((zones, _)) = advice.strip_prefix("did you mean ").and_then(|rest| rest.split_once('?')) else {
            return Vec::new();
        };
        zones.split('`').skip(1).step_by(2).map(|zone| TimeZone::get(zone).expect("a zone")).collect()
    }

    #[test]
    fn zone_advice_keeps_the_offset() {
        for hours in -12..=14_i32 {
            for name in [
                format!("GMT{hours:+}"),
                format!("UTC{hours:+}"),
                format!("gmt {hours:+03}"),
                format!("UTC{hours:+03}:00"),
                format!("{hours:+03}00"),
                format!("Etc/UTC{hours:+}"),
                format!("Etc/GMT{:+03}", -hours),
            ] {
                let zones = suggested_zones(&name);
                assert_eq!(zones.len(), 1, "{name}: {}", suggest_zone(&name));
                assert_eq!(zones[0].to_offset(Timestamp::UNIX_EPOCH).seconds(), hours * 3600, "{name}");
            }
        }
    }

    #[test]
    fn zone_advice_omits_offsets_without_a_fixed_zone() {
        for name in ["GMT+5:30", "UTC-0330", "GMT+15", "GMT-13", "+99", "GMT+1:75", "UTC+"] {
            assert_eq!(suggested_zones(name), [], "{name}: {}", suggest_zone(name));
        }
    }

    #[test]
    fn zone_advice_for_an_abbreviation_is_a_place_that_uses_it() {
        let winter_and_summer =
            ["2026-01-15T12:00:00Z", "2026-07-15T12:00:00Z"].map(|at| at.parse::<Timestamp>().unwrap());
        // The database does not use these abbreviations.
        let absent_from_database = ["Z", "MSD", "MEZ", "MESZ", "TRT", "SAMT", "YEKT", "GST", "SGT"];
        for (short, _) in ABBREVIATIONS.iter().filter(|(short, _)| !absent_from_database.contains(short)) {
            for zone in suggested_zones(short) {
                let used = winter_and_summer.map(|at| zone.to_offset_info(at).abbreviation().to_owned());
                assert!(used.iter().any(|used| used == short), "{short}: {zone:?} uses {used:?}");
            }
        }
        for (short, place) in [("MSK", "Europe/Moscow"), ("z", "UTC"), ("PST", "America/Los_Angeles")] {
            assert_eq!(suggest_zone(short), format!("did you mean `{place}`?"));
        }
    }

    #[test]
    fn zone_advice_corrects_places_but_not_abbreviations() {
        for (name, meant) in [("Europe/Kiyv", "Europe/Kyiv"), ("kyiv", "Europe/Kyiv"), ("Warsow ", "Europe/Warsaw")] {
            assert_eq!(suggest_zone(name), format!("did you mean `{meant}`?"));
        }
        for name in ["XST", "ECT", "EEDT", "GMT2", "MST7", "CETS", "", "/"] {
            assert_eq!(suggested_zones(name), [], "{name}: {}", suggest_zone(name));
        }
    }

    #[test]
    fn file_name_can_contain_only_the_date_variable() {
        for (name, expected) in [
            ("a.csv", Some("a.csv")),
            ("daily-{{ today }}.csv", Some("daily-2026-12-01.csv")),
            ("{{today}}/{{ today }}.csv", Some("2026-12-01/2026-12-01.csv")),
            ("a-{{ name }}.csv", None),
            ("a-{{ today.csv", None),
            ("a-{% if x %}.csv", None),
            ("a-{{ today }}{{", None),
            ("a}}.csv", Some("a}}.csv")),
        ] {
            assert_eq!(insert_date(name, date(2026, 12, 1)).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn date_is_inserted_into_text_and_other_braces_are_kept() {
        let insert_today = |text| replace_today(text, date(2026, 12, 1));
        assert_eq!(insert_today("--day={{ today }}/{{today}}"), "--day=2026-12-01/2026-12-01");
        assert_eq!(insert_today("{{json .}} {{ today }} {{"), "{{json .}} 2026-12-01 {{");
    }

    #[test]
    fn date_of_a_timestamp_depends_on_the_time_zone() {
        let night = CampaignDay::Of("2026-11-30T23:30:00Z".parse().unwrap());
        assert_eq!(night.resolve_date(Some("Europe/Kyiv")), date(2026, 12, 1));
        assert_eq!(night.resolve_date(Some("America/New_York")), date(2026, 11, 30));
    }
}
