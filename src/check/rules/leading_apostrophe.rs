//! Leading apostrophes of spreadsheet cells, in files that are not spreadsheets.

use crate::finding::{Finding, Rule, RuleText};

pub(super) static RULE: Rule = Rule::warning(
    "leading-apostrophe",
    RuleText {
        cause: "A cell starts with an apostrophe. Spreadsheets hide the apostrophe, but recipients would see it.",
        example: &["message: \"Your code: {{ code }}\"", "list.csv: phone,code", "          380501234567,'00123"],
        fix: "remove the apostrophes from the column, or export the list again without them",
    },
);

/// The cells of a column.
pub(super) fn report_rows(column: &str, example: &str, rows: &str) -> Finding {
    let message = format!("values in the column `{column}` start with an apostrophe in {rows}: `{example}`");
    Finding::new(&RULE, message).help("remove the apostrophes from the column, or they will be sent")
}

/// Whether a cell is a number or a code after an apostrophe. A year or a decade such as `'90s` is not a code.
pub(in crate::check) fn is_code_behind_apostrophe(cell: &str) -> bool {
    let Some(code) = cell.strip_prefix('\'') else { return false };
    let is_code = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase() || b"+-./= ".contains(&byte);
    let begins = code.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '='));
    begins && code.len() > 2 && code.bytes().all(is_code) && code.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::is_code_behind_apostrophe;

    #[test]
    fn codes_are_distinguished_from_words_and_years() {
        for cell in ["'00123", "'0007", "'+380501234567", "'=1+1", "'-12", "'1/2", "'12-AB"] {
            assert!(is_code_behind_apostrophe(cell), "{cell}");
        }
        for cell in
            ["", "'", "'90", "'90s", "'1990s", "'n'", "'tis", "00123", "O'Neil", "''00123", "'00123'", "'Акція 20"]
        {
            assert!(!is_code_behind_apostrophe(cell), "{cell}");
        }
    }
}
