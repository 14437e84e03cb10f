//! Counts as text: thousands separators, and singular and plural nouns. English only.

/// A number with separated thousands: `1 000 000`.
#[must_use]
pub fn format_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun: `1 row`, `2 rows`.
#[must_use]
pub fn format_count(count: u64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {noun}{s}", format_thousands(count))
}

/// The singular or the plural form: `is` or `are`.
#[must_use]
pub fn choose_plural<'w>(count: u64, one: &'w str, other: &'w str) -> &'w str {
    if count == 1 { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_agree_with_their_counts() {
        assert_eq!(
            [0, 1, 2, 1_000_000].map(|count| format_count(count, "row")),
            ["0 rows", "1 row", "2 rows", "1 000 000 rows"]
        );
        assert_eq!([0, 1, 2].map(|count| choose_plural(count, "is", "are")), ["are", "is", "are"]);
        assert_eq!([0, 999, 1_000_000].map(format_thousands), ["0", "999", "1 000 000"]);
    }
}
