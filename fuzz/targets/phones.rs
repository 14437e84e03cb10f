//! Fuzz target for phone numbers in cells, checked with the phone number library.

use rlibphonenumber::PHONE_NUMBER_UTIL;

use campaign_content::audience::{PhoneProblem, parse_number};
use campaign_core::domain::Region;

/// Regions with different prefixes, lengths and overlaps with calling codes.
const REGIONS: [&str; 10] = ["", "UA", "PL", "US", "DE", "KZ", "RU", "GB", "IT", "JP"];

/// Checks how a cell is read as a phone number. The first byte selects the region; the rest is the cell.
pub(super) fn check(data: &[u8]) {
    let Some((region, rest)) = super::split_choice(data, REGIONS.len() as u8) else { return };
    let Ok(cell) = std::str::from_utf8(rest) else { return };
    let region: Option<Region> = REGIONS[usize::from(region)].parse().ok();
    match parse_number(cell, region) {
        Ok(number) => {
            let international = format!("+{}", number.phone);
            let theirs =
                PHONE_NUMBER_UTIL.parse(international.as_str(), None).expect("the library reads an accepted number");
            assert!(theirs.is_valid(), "{cell:?} in {region:?}: no number of the library");
            for region in [None, region] {
                let again = parse_number(&international, region).map(|again| again.phone);
                assert_eq!(again, Ok(number.phone), "{cell:?}: its international form is another number");
            }
            let digits = number.phone.to_string();
            let note = format!("call {cell} or {international} now");
            let hidden = number.phone.hide_in_text(&note, "NUMBER");
            assert!(!hidden.contains(&digits), "{cell:?}: the number is not hidden");
        }
        // This reason contains a code point, whose digits can also be in the cell.
        Err(PhoneProblem::Sign(_)) => {}
        Err(problem) => {
            let reason = problem.to_string();
            let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
            let shown = digits(&reason);
            let repeats = shown.len() > 4 && digits(cell).contains(&shown);
            assert!(!repeats, "{cell:?}: the reason repeats the number: {reason}");
        }
    }
}
