//! The campaign's time zone, and advice if the time zone database has no such name.

use jiff::tz::TimeZone;

use super::Resolver;
use crate::finding::{Finding, did_you_mean, list, rules};
use crate::manifest::section::Section;

/// Abbreviations that are no zones of the database, with places whose clocks they name.
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

impl Resolver<'_> {
    /// The time zone, if it exists.
    pub(super) fn timezone(&mut self, root: Section<'_>) -> Option<String> {
        let (name, span) = root.typed("timezone")?;
        if let Ok(zone) = TimeZone::get(name) {
            return Some(zone.iana_name().unwrap_or(name).to_owned());
        }
        let finding = Finding::new(&rules::UNKNOWN_TIMEZONE, format!("unknown time zone `{name}`"));
        self.report.at(span, finding.help(zone_advice(name)));
        None
    }

    /// Whether `timezone` is missing, and is not reported as an unknown key because it is misspelt or misplaced.
    pub(super) fn lacks_timezone(&self, root: Section<'_>) -> bool {
        let is_misplaced = |finding: &Finding| {
            let place = finding.place.as_ref().filter(|_| *finding.rule == rules::UNKNOWN_KEY);
            place.is_some_and(|place| self.report.slice(&place.span).trim_matches(['"', '\'']) == "timezone")
        };
        !root.has("timezone") && !root.has_misspelt("timezone") && !self.report.findings.iter().any(is_misplaced)
    }
}

/// What to write instead of a name that the database does not have. Never suggests a zone with another offset.
#[must_use]
pub fn zone_advice(name: &str) -> String {
    const PLACE: &str = "write a name from the time zone database, such as `Europe/Kyiv`";
    let name = name.trim();
    if let Some((_, places)) = ABBREVIATIONS.iter().find(|(short, _)| short.eq_ignore_ascii_case(name)) {
        return format!("did you mean {}?", list(places.iter().copied()));
    }
    if let Some(minutes) = offset(name) {
        return match fixed_zone(minutes) {
            Some(zone) => format!("did you mean `{zone}`? If the place observes daylight saving time, {PLACE}"),
            None => PLACE.into(),
        };
    }
    let zones: Vec<String> = jiff::tz::db().available().map(|zone| zone.to_string()).collect();
    match meant(name, &zones) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => PLACE.into(),
    }
}

/// The place that was probably meant. Short names are never guessed: one letter of an abbreviation is hours of difference.
fn meant<'z>(name: &str, zones: &'z [String]) -> Option<&'z str> {
    let typed = name.replace(' ', "_");
    // The database keeps the old spelling of Kyiv beside the new one.
    let is_place = |zone: &&String| !zone.starts_with("Etc/") && *zone != "Europe/Kiev";
    let places = || zones.iter().filter(is_place).filter_map(|zone| Some((zone, city(zone)?)));
    let named = places().find(|(_, city)| city.eq_ignore_ascii_case(&typed)).map(|(zone, _)| zone.as_str());
    named.or_else(|| match city(&typed) {
        Some(_) => did_you_mean(&typed, places().map(|(zone, _)| zone.as_str())),
        // Abbreviations have at most five letters.
        None if typed.chars().count() > 5 => {
            let city = did_you_mean(&typed, places().map(|(_, city)| city))?;
            places().find(|(_, other)| *other == city).map(|(zone, _)| zone.as_str())
        }
        None => None,
    })
}

/// What follows the last slash of a name.
fn city(zone: &str) -> Option<&str> {
    zone.rsplit_once('/').map(|(_, city)| city)
}

/// The minutes east of UTC that a name such as `GMT+2`, `UTC-03:30` or `+0200` says.
///
/// In names that begin with `Etc/GMT`, the sign is that of POSIX: `Etc/GMT-2` is east.
fn offset(name: &str) -> Option<i32> {
    let upper = name.to_ascii_uppercase().replace('−', "-").replace(' ', "");
    let (upper, etc) = match upper.strip_prefix("ETC/") {
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
    Some(if etc { -sign * minutes } else { sign * minutes })
}

/// The zone of the database that always is so many minutes east of UTC.
fn fixed_zone(minutes: i32) -> Option<String> {
    let name = match (minutes / 60, minutes % 60) {
        (0, 0) => "UTC".to_owned(),
        // The sign of these names is that of POSIX: west of UTC is positive.
        (hours, 0) => format!("Etc/GMT{:+}", -hours),
        _ => return None,
    };
    TimeZone::get(&name).is_ok().then_some(name)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// The zones that an advice names.
    fn suggested(name: &str) -> Vec<TimeZone> {
        let advice = zone_advice(name);
        let Some((zones, _)) = advice.strip_prefix("did you mean ").and_then(|rest| rest.split_once('?')) else {
            return Vec::new();
        };
        zones.split('`').skip(1).step_by(2).map(|zone| TimeZone::get(zone).expect("a zone")).collect()
    }

    #[test]
    fn advice_keeps_the_offset_that_was_written() {
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
                let zones = suggested(&name);
                assert_eq!(zones.len(), 1, "{name}: {}", zone_advice(&name));
                assert_eq!(zones[0].to_offset(Timestamp::UNIX_EPOCH).seconds(), hours * 3600, "{name}");
            }
        }
    }

    #[test]
    fn advice_names_no_zone_for_an_offset_that_no_fixed_zone_has() {
        for name in ["GMT+5:30", "UTC-0330", "GMT+15", "GMT-13", "+99", "GMT+1:75", "UTC+"] {
            assert_eq!(suggested(name), [], "{name}: {}", zone_advice(name));
        }
    }

    #[test]
    fn advice_for_an_abbreviation_is_a_place_that_uses_it() {
        let year = ["2026-01-15T12:00:00Z", "2026-07-15T12:00:00Z"].map(|at| at.parse::<Timestamp>().unwrap());
        // Names of places in the database stand for some of these.
        let written_otherwise = ["Z", "MSD", "MEZ", "MESZ", "TRT", "SAMT", "YEKT", "GST", "SGT"];
        for (short, _) in ABBREVIATIONS.iter().filter(|(short, _)| !written_otherwise.contains(short)) {
            for zone in suggested(short) {
                let used = year.map(|at| zone.to_offset_info(at).abbreviation().to_owned());
                assert!(used.iter().any(|used| used == short), "{short}: {zone:?} uses {used:?}");
            }
        }
        for (short, place) in [("MSK", "Europe/Moscow"), ("z", "UTC"), ("PST", "America/Los_Angeles")] {
            assert_eq!(zone_advice(short), format!("did you mean `{place}`?"));
        }
    }

    #[test]
    fn advice_guesses_misspelt_places_and_no_abbreviations() {
        for (name, meant) in [("Europe/Kiyv", "Europe/Kyiv"), ("kyiv", "Europe/Kyiv"), ("Warsow ", "Europe/Warsaw")] {
            assert_eq!(zone_advice(name), format!("did you mean `{meant}`?"));
        }
        for name in ["XST", "ECT", "EEDT", "GMT2", "MST7", "CETS", "", "/"] {
            assert_eq!(suggested(name), [], "{name}: {}", zone_advice(name));
        }
    }
}
