//! What the product reads agrees with libphonenumber, whose answers `golden.py` wrote down.

use campaign::audience::{PhoneProblem, parse_number};
use campaign::domain::Region;

/// A line of the golden file.
struct Judged {
    text: &'static str,
    region: Region,
    /// What libphonenumber reads in the region.
    national: Option<u64>,
    /// What it reads behind a plus sign.
    abroad: Option<u64>,
    /// The kind of that number.
    kind: &'static str,
}

/// The answers of version 9.0.43; no line shows that the metadata of our library are of another one.
const GOLDEN: &str = include_str!("golden.csv");

/// Which kinds of numbers get no message.
const LANDLINES: [&str; 6] = ["fixed_line", "toll_free", "premium_rate", "shared_cost", "uan", "voicemail"];

/// The largest number of 15 digits.
const MOST: u64 = 999_999_999_999_999;

fn judged() -> impl Iterator<Item = Judged> {
    GOLDEN.lines().map(|line| {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().expect("five cells");
        let (text, region, national, abroad, kind) = (cell(), cell(), cell(), cell(), cell());
        let region = region.parse().expect("a region");
        Judged { text, region, national: national.parse().ok(), abroad: abroad.parse().ok(), kind }
    })
}

impl Judged {
    fn international(&self) -> bool {
        self.text.starts_with('+')
    }

    fn is_mobile(&self) -> bool {
        matches!(self.kind, "mobile" | "fixed_line_or_mobile")
    }

    /// What the interface promises: in a region a national number if that is valid, else as if a plus sign stood before it.
    fn expected(&self, region: bool) -> Option<u64> {
        match region {
            _ if self.international() => self.abroad,
            true => self.national.or(self.abroad),
            // It is national, or the country's code stands behind the zeros.
            false if self.text.starts_with('0') && !self.text.starts_with("00") => None,
            false => self.abroad,
        }
    }

    /// Why the product may say something else than that, if it may.
    fn may_differ(&self, home: bool, got: Result<u64, PhoneProblem>) -> Option<&'static str> {
        if self.expected(true).is_some_and(|number| number > MOST) {
            return (got == Err(PhoneProblem::TooLong)).then_some("E.164 has 15 digits; Germany has calls to more");
        }
        let (national, abroad) = (self.national?, self.abroad?);
        let two = home && national != abroad && !self.international();
        match got {
            Err(PhoneProblem::Ambiguous) if two => Some("it is two people's number, so it is nobody's"),
            Ok(got) if two && got == abroad && self.is_mobile() => {
                Some("behind its own country's code it is mobile, and without it is not")
            }
            _ => None,
        }
    }
}

#[test]
fn numbers_are_read_as_libphonenumber_reads_them() {
    let (mut lines, mut apart, mut wrong) = (0, 0, Vec::new());
    for judged in judged() {
        lines += 1;
        let Judged { text, region, .. } = judged;
        for home in [true, false] {
            let got = parse_number(text, home.then_some(region)).map(|number| number.phone.to_u64());
            if got.ok() == judged.expected(home) {
                continue;
            }
            match judged.may_differ(home, got) {
                Some(_) => apart += 1,
                _ => wrong.push(format!("{text:?} in {region} ({home}): {got:?}, not {:?}", judged.expected(home))),
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {lines} lines:\n{}", wrong.len(), wrong.join("\n"));
    assert!(lines > 4_000 && (1..lines / 20).contains(&apart), "{apart} of {lines} lines are read as something else");
}

#[test]
fn landlines_are_those_of_libphonenumber() {
    let (mut landlines, mut others) = (0, 0);
    for Judged { text, abroad, kind, .. } in judged() {
        let Some(abroad) = abroad.filter(|number| *number <= MOST) else { continue };
        let number = parse_number(&format!("+{abroad}"), None).expect("a valid number");
        assert_eq!(number.landline, LANDLINES.contains(&kind), "{text}");
        *if number.landline { &mut landlines } else { &mut others } += 1;
    }
    assert!(landlines > 1_000 && others > 500, "{landlines} and {others}");
}
