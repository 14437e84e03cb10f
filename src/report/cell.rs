//! Cells that a spreadsheet shows instead of running them.

use std::borrow::Cow;

/// The cell, with a leading `'` where a spreadsheet would take it for a formula.
///
/// `+` and `-` begin phone numbers and amounts too; they are left alone when only digits follow.
pub(super) fn escape_formula(cell: &str) -> Cow<'_, str> {
    let dangerous = match cell.as_bytes() {
        [b'=' | b'@' | b'\t' | b'\r', ..] => true,
        [b'+' | b'-', rest @ ..] => rest.is_empty() || !rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if dangerous { Cow::Owned(format!("'{cell}")) } else { Cow::Borrowed(cell) }
}

/// The cell as a formula that gives the same text, where a spreadsheet would take it for a number and change its digits.
///
/// Excel shows 12 digits and more as a power of ten, and saves what it shows; it drops zeros and a plus sign in front.
/// LibreOffice keeps the formula, or what it gives. Other readers of lists take the signs for decoration.
pub(super) fn preserve_digits(cell: &str) -> Option<String> {
    let digits = cell.strip_prefix('+').unwrap_or(cell);
    let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let changed =
        digits.len() >= EXPONENT_DIGITS || digits.len() > 1 && digits.starts_with('0') || digits.len() < cell.len();
    (number && changed).then(|| format!("=\"{cell}\""))
}

/// From so many digits on a spreadsheet shows a number as a power of ten.
const EXPONENT_DIGITS: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_text_and_numbers_stay_numbers() {
        let table = [
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\rx", "'\rx"),
            ("+380501234567", "+380501234567"),
            ("-5", "-5"),
            ("-", "'-"),
            ("+1+1", "'+1+1"),
            ("-cmd|x", "'-cmd|x"),
            ("Olena", "Olena"),
            ("", ""),
        ];
        for (cell, expected) in table {
            assert_eq!(escape_formula(cell), expected, "{cell:?}");
        }
    }

    #[test]
    fn numbers_that_excel_would_change_become_formulas() {
        for cell in ["380501234567", "+380501234567", "0501234567", "00", "+1", "123456789012345678901"] {
            assert_eq!(preserve_digits(cell), Some(format!("=\"{cell}\"")));
        }
        for cell in ["", "0", "7", "12345678901", "-5", "+", "1.5", "38050123456a", "Olena", "=1+1"] {
            assert_eq!(preserve_digits(cell), None, "{cell:?}");
        }
    }
}
