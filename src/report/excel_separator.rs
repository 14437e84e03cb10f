//! The CSV separator that Excel expects: the list separator of the country settings. Pure.

use crate::domain::{Delimiter, Region};

/// Regions whose settings have a comma in decimals and therefore a semicolon between cells.
const SEMICOLON_REGIONS: [&str; 72] = [
    "AD", "AL", "AM", "AO", "AR", "AT", "AZ", "BA", "BE", "BG", "BO", "BR", "BY", "CH", "CL", "CO", "CR", "CY", "CZ",
    "DE", "DK", "DZ", "EC", "EE", "ES", "FI", "FO", "FR", "GE", "GL", "GR", "HR", "HU", "ID", "IS", "IT", "KG", "KZ",
    "LI", "LT", "LU", "LV", "MA", "MC", "MD", "ME", "MK", "MZ", "NL", "NO", "PL", "PT", "PY", "RO", "RS", "RU", "SE",
    "SI", "SK", "SM", "TJ", "TM", "TN", "TR", "UA", "UY", "UZ", "VA", "VE", "VN", "XK", "ZA",
];
/// Zones of Europe whose settings have a comma between cells.
const COMMA_ZONES: [&str; 8] = [
    "Europe/London",
    "Europe/Dublin",
    "Europe/Malta",
    "Europe/Belfast",
    "Europe/Gibraltar",
    "Europe/Guernsey",
    "Europe/Jersey",
    "Europe/Isle_of_Man",
];

/// The separator for Excel, from the separator of the list, its region, and the campaign's time zone.
///
/// A list with semicolons or tabs keeps them: a spreadsheet wrote them. Workbooks count as lists with commas.
pub(super) fn choose_excel_separator(list: u8, region: Option<Region>, timezone: Option<&str>) -> u8 {
    let (semicolon, comma) = (Delimiter::SEMICOLON.to_byte(), Delimiter::COMMA.to_byte());
    if list == semicolon || list == Delimiter::TAB.to_byte() {
        return list;
    }
    let writes_semicolons = match region {
        Some(region) => SEMICOLON_REGIONS.contains(&region.to_string().as_str()),
        None => timezone.is_some_and(|zone| zone.starts_with("Europe/") && !COMMA_ZONES.contains(&zone)),
    };
    // Spreadsheets do not detect other separators, such as a bar.
    if writes_semicolons || list != comma { semicolon } else { comma }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separator_follows_the_list_or_its_country() {
        for (list, region, timezone, expected) in [
            (b',', "UA", None, b';'),
            (b',', "DE", Some("America/New_York"), b';'),
            (b',', "US", Some("Europe/Kyiv"), b','),
            (b',', "GB", None, b','),
            (b',', "", Some("Europe/Kyiv"), b';'),
            (b',', "", Some("Europe/London"), b','),
            (b',', "", Some("Asia/Tokyo"), b','),
            (b',', "", None, b','),
            (b';', "US", None, b';'),
            (b'\t', "UA", None, b'\t'),
            (b'|', "US", None, b';'),
            (b'^', "", None, b';'),
        ] {
            let found = choose_excel_separator(list, region.parse().ok(), timezone);
            assert_eq!(char::from(found), char::from(expected), "{} {region} {timezone:?}", char::from(list));
        }
    }

    #[test]
    fn semicolon_regions_are_valid() {
        assert!(SEMICOLON_REGIONS.is_sorted());
        assert!(SEMICOLON_REGIONS.iter().all(|code| code.parse::<Region>().is_ok()));
    }
}
