//! Counts with their words, for people. Pure.

/// A number with separated thousands: `1 000 000`.
#[must_use]
pub fn thousands(number: u64) -> String {
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
pub fn plural(count: u64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {noun}{s}", thousands(count))
}

/// A number of people: `1 person`, `2 people`.
#[must_use]
pub fn people(count: u64) -> String {
    format!("{} {}", thousands(count), one_or(count, "person", "people"))
}

/// The word for one, or the word for any other number: `is` or `are`.
#[must_use]
pub fn one_or<'w>(count: u64, one: &'w str, other: &'w str) -> &'w str {
    if count == 1 { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_agrees_with_its_words() {
        assert_eq!(
            [0, 1, 2, 1_000_000].map(|count| plural(count, "row")),
            ["0 rows", "1 row", "2 rows", "1 000 000 rows"]
        );
        assert_eq!([0, 1, 2_000].map(people), ["0 people", "1 person", "2 000 people"]);
        assert_eq!([0, 1, 2].map(|count| one_or(count, "is", "are")), ["are", "is", "are"]);
        assert_eq!([0, 999, 1_000_000].map(thousands), ["0", "999", "1 000 000"]);
    }
}
