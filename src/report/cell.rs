//! Cells that a spreadsheet shows instead of running them.

use std::borrow::Cow;

/// The cell, with a leading `'` where a spreadsheet would take it for a formula.
///
/// `+` and `-` begin phone numbers and amounts too; they are left alone when only digits follow.
pub(super) fn harmless(cell: &str) -> Cow<'_, str> {
    let dangerous = match cell.as_bytes() {
        [b'=' | b'@' | b'\t' | b'\r', ..] => true,
        [b'+' | b'-', rest @ ..] => rest.is_empty() || !rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if dangerous { Cow::Owned(format!("'{cell}")) } else { Cow::Borrowed(cell) }
}

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
            assert_eq!(harmless(cell), expected, "{cell:?}");
        }
    }
}
