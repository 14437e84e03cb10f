//! Phone number parsing compared with libphonenumber, whose results `golden.py` recorded.

use campaign_content::audience::{PhoneProblem, parse_number};
use campaign_core::domain::Region;

/// A line of the golden file.
struct GoldenNumber {
    text: &'static str,
    region: Region,
    /// The number that libphonenumber parses in the region.
    national: Option<u64>,
    /// The number that libphonenumber parses after a plus sign.
    abroad: Option<u64>,
    /// The kind of that number.
    kind: &'static str,
}

/// Results of libphonenumber 9.0.43. They do not depend on the metadata version of the library that campaign uses.
const GOLDEN: &str = include_str!("golden.csv");

/// The kinds of numbers that cannot get messages.
const LANDLINES: [&str; 6] = ["fixed_line", "toll_free", "premium_rate", "shared_cost", "uan", "voicemail"];

/// The largest number of 15 digits.
const LARGEST: u64 = 999_999_999_999_999;

fn golden_numbers() -> impl Iterator<Item = GoldenNumber> {
    GOLDEN.lines().map(|line| {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().expect("five cells");
        let (text, region, national, abroad, kind) = (cell(), cell(), cell(), cell(), cell());
        let region = region.parse().expect("a region");
        GoldenNumber { text, region, national: national.parse().ok(), abroad: abroad.parse().ok(), kind }
    })
}

impl GoldenNumber {
    fn is_international(&self) -> bool {
        self.text.starts_with('+')
    }

    fn is_mobile(&self) -> bool {
        matches!(self.kind, "mobile" | "fixed_line_or_mobile")
    }

    /// The expected number: in a region, the national number if it is valid; otherwise the number after a plus sign.
    fn expected(&self, with_region: bool) -> Option<u64> {
        match with_region {
            _ if self.is_international() => self.abroad,
            true => self.national.or(self.abroad),
            // One leading zero means a national number; two are followed by a country code.
            false if self.text.starts_with('0') && !self.text.starts_with("00") => None,
            false => self.abroad,
        }
    }

    /// Why a different result is acceptable; `None` if it is not.
    fn accepted_difference(&self, with_region: bool, parsed: Result<u64, PhoneProblem>) -> Option<&'static str> {
        if self.expected(true).is_some_and(|number| number > LARGEST) {
            return (parsed == Err(PhoneProblem::TooLong)).then_some("E.164 has 15 digits; Germany has longer numbers");
        }
        let (national, abroad) = (self.national?, self.abroad?);
        let is_ambiguous = with_region && national != abroad && !self.is_international();
        match parsed {
            Err(PhoneProblem::Ambiguous) if is_ambiguous => Some("the number is ambiguous"),
            Ok(parsed) if is_ambiguous && parsed == abroad && self.is_mobile() => {
                Some("only the number with a country code is mobile")
            }
            _ => None,
        }
    }
}

#[test]
fn number_parsing_agrees_with_libphonenumber() {
    let (mut lines, mut differing, mut wrong) = (0, 0, Vec::new());
    for golden in golden_numbers() {
        lines += 1;
        let GoldenNumber { text, region, .. } = golden;
        for with_region in [true, false] {
            let parsed = parse_number(text, with_region.then_some(region)).map(|number| number.phone.to_u64());
            if parsed.ok() == golden.expected(with_region) {
                continue;
            }
            match golden.accepted_difference(with_region, parsed) {
                Some(_) => differing += 1,
                _ => {
                    let expected = golden.expected(with_region);
                    wrong.push(format!("{text:?} in {region} ({with_region}): {parsed:?}, not {expected:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {lines} lines:\n{}", wrong.len(), wrong.join("\n"));
    assert!(lines > 4_000 && (1..lines / 20).contains(&differing), "{differing} of {lines} lines differ");
}

#[test]
fn landline_detection_agrees_with_libphonenumber() {
    let (mut landlines, mut others) = (0, 0);
    for GoldenNumber { text, abroad, kind, .. } in golden_numbers() {
        let Some(abroad) = abroad.filter(|number| *number <= LARGEST) else { continue };
        let number = parse_number(&format!("+{abroad}"), None).expect("a valid number");
        assert_eq!(number.landline, LANDLINES.contains(&kind), "{text}");
        *if number.landline { &mut landlines } else { &mut others } += 1;
    }
    assert!(landlines > 1_000 && others > 500, "{landlines} and {others}");
}
