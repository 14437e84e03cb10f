//! Amounts as shops write them: `1 234,50`, `1,234.50`, `1234.5 грн`.

use crate::domain::Amount;

/// The amount in a cell, whatever its separators and with a currency before or behind it.
///
/// A single separator before exactly three digits is one of thousands.
pub(super) fn parse_amount(cell: &str) -> Option<Amount> {
    let outer = |c: char| !c.is_ascii_digit() && c != '-';
    let number: String = cell.trim_matches(outer).chars().filter(|c| !c.is_whitespace() && *c != '\'').collect();
    let decimal = number.rfind(['.', ',']).filter(|at| is_decimal(&number, *at));
    let (whole, fraction) = decimal.map_or((number.as_str(), ""), |at| (&number[..at], &number[at + 1..]));
    let mut groups = whole.split(['.', ',']);
    let first = groups.next().unwrap_or_default();
    let mut digits = first.to_owned();
    for group in groups {
        if group.len() != 3 || first.trim_start_matches('-').len() > 3 {
            return None;
        }
        digits.push_str(group);
    }
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{digits}{point}{fraction}").parse().ok()
}

/// Whether the last separator is the one before the decimals.
fn is_decimal(number: &str, at: usize) -> bool {
    let (before, behind) = (number[..at].trim_start_matches('-'), &number[at + 1..]);
    let alone = !before.contains(['.', ',']);
    let repeated = before.contains(&number[at..=at]);
    !repeated && (behind.len() != 3 || before == "0" || !alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_parsed_with_any_separators() {
        for (cell, digits) in [
            ("1234.50", "1234.50"),
            ("1234,5", "1234.5"),
            ("1 234,50", "1234.50"),
            ("1\u{a0}234,50 грн", "1234.50"),
            ("1\u{202f}234,50 ₴", "1234.50"),
            ("1,234.50", "1234.50"),
            ("1.234.567,89", "1234567.89"),
            ("1,234", "1234"),
            ("12.345.678", "12345678"),
            ("0,125", "0.125"),
            ("UAH 99", "99"),
            ("-5.00", "-5.00"),
            ("$1'000", "1000"),
        ] {
            assert_eq!(parse_amount(cell).map(Amount::to_json_digits).as_deref(), Some(digits), "{cell:?}");
        }
        for cell in ["", "free", "1.2.3,4,5", "--", "1-2"] {
            assert_eq!(parse_amount(cell).map(Amount::to_json_digits), None, "{cell:?}");
        }
    }
}
