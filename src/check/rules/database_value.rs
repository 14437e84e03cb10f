//! Dates and amounts as databases export them.

use crate::domain::variable::is_variable;
use crate::finding::{Finding, Rule, RuleText};

pub(super) static RULE: Rule = Rule::warning(
    "database-value",
    RuleText {
        cause: "A value is in a database format. Recipients would read `2031-12-05 00:00:00` or `1250.000000`.",
        example: &[
            "message: \"Pay by {{ code }}\"",
            "list.csv: phone,code",
            "          380501234567,2031-12-05 00:00:00",
        ],
        fix: "use a filter, for example `{{ due | date }}` or `{{ sum | money }}`, or export the list in a readable \
              format",
    },
);

/// What a database adds to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DatabaseValue {
    /// A date with the time 00:00:00.
    DateAtMidnight,
    /// A number with four or more decimals, zeros after the second.
    PaddedNumber,
}

/// The kind of database value that a cell holds, if any.
pub(in crate::check) fn find_database_value(cell: &str) -> Option<DatabaseValue> {
    /// `2031-12-05T00:00:00.000000+00:00`
    const LONGEST: usize = 32;
    if cell.len() > LONGEST || !cell.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return None;
    }
    if is_date_at_midnight(cell) {
        return Some(DatabaseValue::DateAtMidnight);
    }
    let (whole, decimals) = cell.split_once('.')?;
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_padded = decimals.len() >= 4 && is_number(decimals) && decimals[2..].bytes().all(|byte| byte == b'0');
    (is_padded && is_number(whole.strip_prefix('-').unwrap_or(whole))).then_some(DatabaseValue::PaddedNumber)
}

fn is_date_at_midnight(cell: &str) -> bool {
    let Some((day, time)) = cell.split_once([' ', 'T']) else { return false };
    let is_day = day.len() == 10
        && day
            .bytes()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() });
    let Some(rest) = time.strip_prefix("00:00:00") else { return false };
    let rest = rest.strip_prefix('.').map_or(rest, |rest| rest.trim_start_matches('0'));
    is_day && matches!(rest, "" | "Z" | "+00" | "+00:00" | "+0000" | " UTC")
}

/// Cells of a column that messages show; `name` is its name in texts.
pub(super) fn report_rows(value: DatabaseValue, name: &str, example: &str, rows: &str) -> Finding {
    let cell = if is_variable(name) { name.to_owned() } else { format!("recipient[{name:?}]") };
    let message = format!("the column `{name}` contains a value in a database format in {rows}: `{example}`");
    let help = match value {
        DatabaseValue::DateAtMidnight => format!(
            "write `{{{{ {cell} | date }}}}` for a date with the name of the month, or `{{{{ {cell} | date(format=\"%d.%m.%Y\") }}}}` \
             for a numeric date"
        ),
        DatabaseValue::PaddedNumber => {
            format!("write `{{{{ {cell} | money }}}}` for an amount, or shorten these numbers in the list")
        }
    };
    Finding::new(&RULE, message).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_values_are_distinguished_from_written_ones() {
        for cell in [
            "2031-12-05 00:00:00",
            "2031-12-05T00:00:00",
            "2031-12-05 00:00:00.000",
            "2031-12-05T00:00:00Z",
            "2031-12-05 00:00:00.000000+00:00",
        ] {
            assert_eq!(find_database_value(cell), Some(DatabaseValue::DateAtMidnight), "{cell}");
        }
        for cell in ["1250.000000", "90.500000", "-3.1000", "0.0000"] {
            assert_eq!(find_database_value(cell), Some(DatabaseValue::PaddedNumber), "{cell}");
        }
        for cell in [
            "",
            "-",
            "2031-12-05",
            "2031-12-05 14:30:00",
            "05.12.2031 00:00:00",
            "00:00:00",
            "1250.00",
            "1.250",
            "50.4501",
            "3.14159",
            "1.2.0000",
            "10.0.0.0",
            "NEW-1.0000",
            "1250.0000 UAH",
            ".0000",
            "1250,000000",
        ] {
            assert_eq!(find_database_value(cell), None, "{cell}");
        }
    }

    #[test]
    fn help_names_the_filter_and_the_column() {
        let help = |value, name| report_rows(value, name, "x", "row 2").help.unwrap();
        assert!(help(DatabaseValue::DateAtMidnight, "due").contains("`{{ due | date }}`"));
        assert!(help(DatabaseValue::PaddedNumber, "To pay").contains("`{{ recipient[\"To pay\"] | money }}`"));
    }
}
