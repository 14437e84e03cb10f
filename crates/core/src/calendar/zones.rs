//! Time zones by country and area code, and zones with an inverted sign (`Etc/GMT+2`).
//!
//! The table of countries comes from `zone.tab` of the IANA time zone database (2025). It contains a country if all its
//! zones have kept the same time since 2024. For Ukraine, it ignores the separate entry for Crimea.
//!
//! The area codes are those of the United States and Canada (+1), as published by the North American Numbering Plan
//! Administrator (NANPA). An area code that spans two time zones has the zone of most of its residents. The table
//! was compared with the time zone data of Google's libphonenumber.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The time zone of the country with this ISO 3166 code. `None` if the country has several time zones or is unknown.
pub fn zone_of_country(code: &str) -> Option<&'static str> {
    let index = ZONES.binary_search_by(|(known, _)| (*known).cmp(code)).ok()?;
    ZONES.get(index).map(|(_, zone)| *zone)
}

/// The ISO 3166 code of the country whose only time zone is `zone`. `None` for other zones.
pub fn country_of_zone(zone: &str) -> Option<&'static str> {
    let zone = if zone == "Europe/Kiev" { "Europe/Kyiv" } else { zone };
    ZONES.iter().find(|(_, known)| *known == zone).map(|(code, _)| *code)
}

/// The countries with a single time zone, sorted by ISO 3166 code.
static ZONES: &[(&str, &str)] = &[
    ("AD", "Europe/Andorra"),
    ("AE", "Asia/Dubai"),
    ("AF", "Asia/Kabul"),
    ("AG", "America/Antigua"),
    ("AI", "America/Anguilla"),
    ("AL", "Europe/Tirane"),
    ("AM", "Asia/Yerevan"),
    ("AO", "Africa/Luanda"),
    ("AR", "America/Argentina/Buenos_Aires"),
    ("AS", "Pacific/Pago_Pago"),
    ("AT", "Europe/Vienna"),
    ("AW", "America/Aruba"),
    ("AX", "Europe/Mariehamn"),
    ("AZ", "Asia/Baku"),
    ("BA", "Europe/Sarajevo"),
    ("BB", "America/Barbados"),
    ("BD", "Asia/Dhaka"),
    ("BE", "Europe/Brussels"),
    ("BF", "Africa/Ouagadougou"),
    ("BG", "Europe/Sofia"),
    ("BH", "Asia/Bahrain"),
    ("BI", "Africa/Bujumbura"),
    ("BJ", "Africa/Porto-Novo"),
    ("BL", "America/St_Barthelemy"),
    ("BM", "Atlantic/Bermuda"),
    ("BN", "Asia/Brunei"),
    ("BO", "America/La_Paz"),
    ("BQ", "America/Kralendijk"),
    ("BS", "America/Nassau"),
    ("BT", "Asia/Thimphu"),
    ("BW", "Africa/Gaborone"),
    ("BY", "Europe/Minsk"),
    ("BZ", "America/Belize"),
    ("CC", "Indian/Cocos"),
    ("CF", "Africa/Bangui"),
    ("CG", "Africa/Brazzaville"),
    ("CH", "Europe/Zurich"),
    ("CI", "Africa/Abidjan"),
    ("CK", "Pacific/Rarotonga"),
    ("CM", "Africa/Douala"),
    ("CO", "America/Bogota"),
    ("CR", "America/Costa_Rica"),
    ("CU", "America/Havana"),
    ("CV", "Atlantic/Cape_Verde"),
    ("CW", "America/Curacao"),
    ("CX", "Indian/Christmas"),
    ("CY", "Asia/Nicosia"),
    ("CZ", "Europe/Prague"),
    ("DE", "Europe/Berlin"),
    ("DJ", "Africa/Djibouti"),
    ("DK", "Europe/Copenhagen"),
    ("DM", "America/Dominica"),
    ("DO", "America/Santo_Domingo"),
    ("DZ", "Africa/Algiers"),
    ("EE", "Europe/Tallinn"),
    ("EG", "Africa/Cairo"),
    ("EH", "Africa/El_Aaiun"),
    ("ER", "Africa/Asmara"),
    ("ET", "Africa/Addis_Ababa"),
    ("FI", "Europe/Helsinki"),
    ("FJ", "Pacific/Fiji"),
    ("FK", "Atlantic/Stanley"),
    ("FO", "Atlantic/Faroe"),
    ("FR", "Europe/Paris"),
    ("GA", "Africa/Libreville"),
    ("GB", "Europe/London"),
    ("GD", "America/Grenada"),
    ("GE", "Asia/Tbilisi"),
    ("GF", "America/Cayenne"),
    ("GG", "Europe/Guernsey"),
    ("GH", "Africa/Accra"),
    ("GI", "Europe/Gibraltar"),
    ("GM", "Africa/Banjul"),
    ("GN", "Africa/Conakry"),
    ("GP", "America/Guadeloupe"),
    ("GQ", "Africa/Malabo"),
    ("GR", "Europe/Athens"),
    ("GS", "Atlantic/South_Georgia"),
    ("GT", "America/Guatemala"),
    ("GU", "Pacific/Guam"),
    ("GW", "Africa/Bissau"),
    ("GY", "America/Guyana"),
    ("HK", "Asia/Hong_Kong"),
    ("HN", "America/Tegucigalpa"),
    ("HR", "Europe/Zagreb"),
    ("HT", "America/Port-au-Prince"),
    ("HU", "Europe/Budapest"),
    ("IE", "Europe/Dublin"),
    ("IL", "Asia/Jerusalem"),
    ("IM", "Europe/Isle_of_Man"),
    ("IN", "Asia/Kolkata"),
    ("IO", "Indian/Chagos"),
    ("IQ", "Asia/Baghdad"),
    ("IR", "Asia/Tehran"),
    ("IS", "Atlantic/Reykjavik"),
    ("IT", "Europe/Rome"),
    ("JE", "Europe/Jersey"),
    ("JM", "America/Jamaica"),
    ("JO", "Asia/Amman"),
    ("JP", "Asia/Tokyo"),
    ("KE", "Africa/Nairobi"),
    ("KG", "Asia/Bishkek"),
    ("KH", "Asia/Phnom_Penh"),
    ("KM", "Indian/Comoro"),
    ("KN", "America/St_Kitts"),
    ("KP", "Asia/Pyongyang"),
    ("KR", "Asia/Seoul"),
    ("KW", "Asia/Kuwait"),
    ("KY", "America/Cayman"),
    ("LA", "Asia/Vientiane"),
    ("LB", "Asia/Beirut"),
    ("LC", "America/St_Lucia"),
    ("LI", "Europe/Vaduz"),
    ("LK", "Asia/Colombo"),
    ("LR", "Africa/Monrovia"),
    ("LS", "Africa/Maseru"),
    ("LT", "Europe/Vilnius"),
    ("LU", "Europe/Luxembourg"),
    ("LV", "Europe/Riga"),
    ("LY", "Africa/Tripoli"),
    ("MA", "Africa/Casablanca"),
    ("MC", "Europe/Monaco"),
    ("MD", "Europe/Chisinau"),
    ("ME", "Europe/Podgorica"),
    ("MF", "America/Marigot"),
    ("MG", "Indian/Antananarivo"),
    ("MH", "Pacific/Majuro"),
    ("MK", "Europe/Skopje"),
    ("ML", "Africa/Bamako"),
    ("MM", "Asia/Yangon"),
    ("MO", "Asia/Macau"),
    ("MP", "Pacific/Saipan"),
    ("MQ", "America/Martinique"),
    ("MR", "Africa/Nouakchott"),
    ("MS", "America/Montserrat"),
    ("MT", "Europe/Malta"),
    ("MU", "Indian/Mauritius"),
    ("MV", "Indian/Maldives"),
    ("MW", "Africa/Blantyre"),
    ("MY", "Asia/Kuala_Lumpur"),
    ("MZ", "Africa/Maputo"),
    ("NA", "Africa/Windhoek"),
    ("NC", "Pacific/Noumea"),
    ("NE", "Africa/Niamey"),
    ("NF", "Pacific/Norfolk"),
    ("NG", "Africa/Lagos"),
    ("NI", "America/Managua"),
    ("NL", "Europe/Amsterdam"),
    ("NO", "Europe/Oslo"),
    ("NP", "Asia/Kathmandu"),
    ("NR", "Pacific/Nauru"),
    ("NU", "Pacific/Niue"),
    ("OM", "Asia/Muscat"),
    ("PA", "America/Panama"),
    ("PE", "America/Lima"),
    ("PH", "Asia/Manila"),
    ("PK", "Asia/Karachi"),
    ("PL", "Europe/Warsaw"),
    ("PM", "America/Miquelon"),
    ("PN", "Pacific/Pitcairn"),
    ("PR", "America/Puerto_Rico"),
    ("PS", "Asia/Gaza"),
    ("PW", "Pacific/Palau"),
    ("PY", "America/Asuncion"),
    ("QA", "Asia/Qatar"),
    ("RE", "Indian/Reunion"),
    ("RO", "Europe/Bucharest"),
    ("RS", "Europe/Belgrade"),
    ("RW", "Africa/Kigali"),
    ("SA", "Asia/Riyadh"),
    ("SB", "Pacific/Guadalcanal"),
    ("SC", "Indian/Mahe"),
    ("SD", "Africa/Khartoum"),
    ("SE", "Europe/Stockholm"),
    ("SG", "Asia/Singapore"),
    ("SH", "Atlantic/St_Helena"),
    ("SI", "Europe/Ljubljana"),
    ("SJ", "Arctic/Longyearbyen"),
    ("SK", "Europe/Bratislava"),
    ("SL", "Africa/Freetown"),
    ("SM", "Europe/San_Marino"),
    ("SN", "Africa/Dakar"),
    ("SO", "Africa/Mogadishu"),
    ("SR", "America/Paramaribo"),
    ("SS", "Africa/Juba"),
    ("ST", "Africa/Sao_Tome"),
    ("SV", "America/El_Salvador"),
    ("SX", "America/Lower_Princes"),
    ("SY", "Asia/Damascus"),
    ("SZ", "Africa/Mbabane"),
    ("TC", "America/Grand_Turk"),
    ("TD", "Africa/Ndjamena"),
    ("TF", "Indian/Kerguelen"),
    ("TG", "Africa/Lome"),
    ("TH", "Asia/Bangkok"),
    ("TJ", "Asia/Dushanbe"),
    ("TK", "Pacific/Fakaofo"),
    ("TL", "Asia/Dili"),
    ("TM", "Asia/Ashgabat"),
    ("TN", "Africa/Tunis"),
    ("TO", "Pacific/Tongatapu"),
    ("TR", "Europe/Istanbul"),
    ("TT", "America/Port_of_Spain"),
    ("TV", "Pacific/Funafuti"),
    ("TW", "Asia/Taipei"),
    ("TZ", "Africa/Dar_es_Salaam"),
    ("UA", "Europe/Kyiv"),
    ("UG", "Africa/Kampala"),
    ("UY", "America/Montevideo"),
    ("UZ", "Asia/Samarkand"),
    ("VA", "Europe/Vatican"),
    ("VC", "America/St_Vincent"),
    ("VE", "America/Caracas"),
    ("VG", "America/Tortola"),
    ("VI", "America/St_Thomas"),
    ("VN", "Asia/Ho_Chi_Minh"),
    ("VU", "Pacific/Efate"),
    ("WF", "Pacific/Wallis"),
    ("WS", "Pacific/Apia"),
    ("YE", "Asia/Aden"),
    ("YT", "Indian/Mayotte"),
    ("ZA", "Africa/Johannesburg"),
    ("ZM", "Africa/Lusaka"),
    ("ZW", "Africa/Harare"),
];

/// A zone such as `Etc/GMT+2`: as in POSIX, its sign is positive west of UTC.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InvertedZone {
    /// The hours west of UTC, as in the name.
    west: i8,
}

impl InvertedZone {
    /// The zone with this name, if the sign in the name is inverted.
    pub fn from_name(name: &str) -> Option<Self> {
        let zone = TimeZone::get(name).ok()?;
        let hours = zone.iana_name()?.strip_prefix("Etc/GMT")?;
        let west = hours.parse().ok().filter(|west| *west != 0 && hours.starts_with(['+', '-']))?;
        Some(Self { west })
    }

    /// The name in the IANA database.
    pub fn name(&self) -> String {
        format!("Etc/GMT{:+}", self.west)
    }

    /// The offset: `UTC-02:00`.
    pub fn format_offset(&self) -> String {
        format!("UTC{:+03}:00", -self.west)
    }

    /// The zone with the opposite sign, if there is one.
    pub fn with_opposite_sign(&self) -> Option<Self> {
        Self::from_name(&Self { west: -self.west }.name())
    }

    /// The local time in the zone: `14:05`.
    pub fn format_local_time(&self, now: Timestamp) -> String {
        let local = TimeZone::get(&self.name()).unwrap_or(TimeZone::UTC).to_datetime(now);
        local.strftime("%H:%M").to_string()
    }
}

/// The time zone of an area code in the United States or Canada. `None` for codes without an area, such as 800, and for
/// codes of other countries.
pub fn zone_of_area_code(code: u16) -> Option<&'static str> {
    AREA_CODES.iter().find(|(_, codes)| codes.binary_search(&code).is_ok()).map(|(zone, _)| *zone)
}

/// The area codes of each time zone, in ascending order.
static AREA_CODES: &[(&str, &[u16])] = &[
    ("America/Anchorage", &[907]),
    (
        "America/Chicago",
        &[
            205, 210, 214, 217, 218, 219, 224, 225, 228, 235, 251, 254, 256, 262, 270, 274, 281, 308, 309, 312, 314,
            316, 318, 319, 320, 325, 327, 331, 334, 337, 346, 353, 361, 364, 402, 405, 409, 414, 417, 430, 432, 447,
            448, 457, 464, 469, 479, 501, 504, 507, 512, 515, 531, 534, 539, 557, 563, 572, 573, 580, 601, 605, 608,
            612, 615, 618, 620, 629, 630, 636, 641, 651, 659, 660, 662, 682, 701, 708, 712, 713, 715, 726, 730, 731,
            737, 763, 769, 773, 779, 785, 806, 815, 816, 817, 830, 832, 847, 850, 861, 870, 872, 901, 903, 913, 918,
            920, 924, 931, 936, 938, 940, 945, 952, 956, 972, 975, 979, 985,
        ],
    ),
    ("America/Denver", &[208, 303, 307, 385, 406, 435, 505, 575, 719, 720, 748, 801, 915, 970, 983, 986]),
    ("America/Edmonton", &[368, 403, 587, 780, 825, 867]),
    ("America/Halifax", &[428, 506, 782, 902]),
    (
        "America/Los_Angeles",
        &[
            206, 209, 213, 253, 279, 310, 323, 341, 350, 360, 369, 408, 415, 424, 425, 442, 458, 503, 509, 510, 530,
            541, 559, 562, 564, 619, 626, 628, 650, 657, 661, 669, 702, 707, 714, 725, 738, 747, 760, 775, 805, 818,
            820, 831, 837, 840, 858, 909, 916, 925, 949, 951, 971,
        ],
    ),
    (
        "America/New_York",
        &[
            201, 202, 203, 207, 212, 215, 216, 220, 223, 227, 229, 231, 234, 239, 240, 248, 252, 260, 267, 269, 272,
            276, 283, 301, 302, 304, 305, 313, 315, 317, 321, 324, 326, 329, 330, 332, 336, 339, 347, 351, 352, 363,
            380, 386, 401, 404, 407, 410, 412, 413, 419, 423, 434, 436, 440, 443, 445, 463, 470, 472, 475, 478, 484,
            502, 508, 513, 516, 517, 518, 540, 551, 561, 567, 570, 571, 574, 582, 585, 586, 603, 606, 607, 609, 610,
            614, 616, 617, 624, 631, 640, 645, 646, 656, 667, 678, 679, 680, 681, 686, 689, 703, 704, 706, 716, 717,
            718, 724, 727, 728, 732, 734, 740, 743, 754, 757, 762, 765, 770, 771, 772, 774, 781, 786, 802, 803, 804,
            810, 812, 813, 814, 821, 826, 828, 835, 838, 839, 843, 845, 848, 854, 856, 857, 859, 860, 862, 863, 864,
            865, 878, 904, 906, 908, 910, 912, 914, 917, 919, 929, 930, 934, 937, 941, 943, 947, 948, 954, 959, 973,
            978, 980, 984, 989,
        ],
    ),
    ("America/Phoenix", &[480, 520, 602, 623, 928]),
    ("America/Regina", &[306, 474, 639]),
    ("America/St_Johns", &[709, 879]),
    (
        "America/Toronto",
        &[
            226, 249, 263, 289, 343, 354, 365, 367, 382, 416, 418, 437, 438, 450, 468, 514, 519, 548, 579, 581, 613,
            647, 683, 705, 742, 753, 807, 819, 873, 905, 942,
        ],
    ),
    ("America/Vancouver", &[236, 250, 257, 604, 672, 778]),
    ("America/Winnipeg", &[204, 431, 584]),
    ("Pacific/Honolulu", &[808]),
];

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use crate::calendar::zones::*;

    #[test]
    fn country_has_a_zone_only_if_the_whole_country_uses_it() {
        assert_eq!(zone_of_country("UA"), Some("Europe/Kyiv"));
        assert_eq!(zone_of_country("DE"), Some("Europe/Berlin"));
        assert_eq!(zone_of_country("WS"), Some("Pacific/Apia"));
        for code in ["US", "AU", "ES", "PT", "RU", "", "XX"] {
            assert_eq!(zone_of_country(code), None, "{code}");
        }
    }

    #[test]
    fn zone_used_by_a_whole_country_identifies_it() {
        assert_eq!(country_of_zone("Europe/Kyiv"), Some("UA"));
        assert_eq!(country_of_zone("Europe/Kiev"), Some("UA"));
        assert_eq!(country_of_zone("America/New_York"), None);
    }

    #[test]
    fn country_table_is_sorted_and_names_known_zones() {
        assert!(ZONES.is_sorted_by(|a, b| a.0 < b.0));
        ZONES.iter().for_each(|(code, zone)| assert!(TimeZone::get(zone).is_ok(), "{code}: {zone}"));
    }
}

#[cfg(test)]
mod inverted_zone_tests {
    use crate::calendar::zones::*;

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

#[cfg(test)]
mod area_codes_tests {
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn area_code_maps_to_its_time_zone() {
        for (code, zone) in [
            (212, Some("America/New_York")),
            (312, Some("America/Chicago")),
            (303, Some("America/Denver")),
            (602, Some("America/Phoenix")),
            (213, Some("America/Los_Angeles")),
            (808, Some("Pacific/Honolulu")),
            (416, Some("America/Toronto")),
            (709, Some("America/St_Johns")),
            (800, None),
            (876, None),
            (0, None),
        ] {
            assert_eq!(zone_of_area_code(code), zone, "{code}");
        }
    }

    #[test]
    fn area_codes_are_sorted_unique_and_in_known_zones() {
        for (zone, codes) in AREA_CODES {
            assert!(codes.is_sorted_by(|a, b| a < b) && TimeZone::get(zone).is_ok(), "{zone}");
        }
        let mut all: Vec<u16> = AREA_CODES.iter().flat_map(|(_, codes)| codes.iter().copied()).collect();
        all.sort_unstable();
        assert!(all.len() > 400 && all.is_sorted_by(|a, b| a < b), "an area code has two zones");
    }
}
