//! Zones of the form `Etc/GMT+2`, whose sign is that of POSIX: west of UTC is positive.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A zone whose name has the inverted sign.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InvertedZone {
    /// The hours of its name, west of UTC.
    west: i8,
}

impl InvertedZone {
    /// The zone of that name, if the sign of the name is inverted.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let zone = TimeZone::get(name).ok()?;
        let hours = zone.iana_name()?.strip_prefix("Etc/GMT")?;
        let west = hours.parse().ok().filter(|west| *west != 0 && hours.starts_with(['+', '-']))?;
        Some(Self { west })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        format!("Etc/GMT{:+}", self.west)
    }

    /// Its offset: `UTC-02:00`.
    #[must_use]
    pub fn format_offset(&self) -> String {
        format!("UTC{:+03}:00", -self.west)
    }

    /// The zone of the other sign, if there is one.
    #[must_use]
    pub fn with_opposite_sign(&self) -> Option<Self> {
        Self::from_name(&Self { west: -self.west }.name())
    }

    /// The local time there: `14:05`.
    #[must_use]
    pub fn format_local_time(&self, now: Timestamp) -> String {
        let local = TimeZone::get(&self.name()).unwrap_or(TimeZone::UTC).to_datetime(now);
        local.strftime("%H:%M").to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverted_zone_shows_its_offset_and_local_time() {
        let now = "2026-11-26T12:05:00Z".parse().unwrap();
        for (name, offset, local, opposite) in [
            ("Etc/GMT+2", "UTC-02:00", "10:05", Some("Etc/GMT-2")),
            ("etc/gmt-2", "UTC+02:00", "14:05", Some("Etc/GMT+2")),
            ("Etc/GMT-14", "UTC+14:00", "02:05", None),
            ("Etc/GMT+12", "UTC-12:00", "00:05", Some("Etc/GMT-12")),
        ] {
            let zone = InvertedZone::from_name(name).expect("an inverted zone");
            assert_eq!(
                (zone.format_offset().as_str(), zone.format_local_time(now).as_str()),
                (offset, local),
                "{name}"
            );
            assert_eq!(zone.with_opposite_sign().map(|zone| zone.name()).as_deref(), opposite, "{name}");
            let offset = TimeZone::get(name).unwrap().to_offset(now).seconds();
            assert_eq!(offset, -i32::from(zone.west) * 3600, "{name}");
        }
        for name in ["UTC", "Etc/GMT", "Etc/GMT+0", "Etc/GMT-0", "Etc/GMT0", "GMT+0", "EST5EDT", "Europe/Kyiv", "GMT+2"]
        {
            assert_eq!(InvertedZone::from_name(name), None, "{name}");
        }
    }
}
