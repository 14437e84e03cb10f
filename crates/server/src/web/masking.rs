//! Masking of phone numbers in texts: pages and files show only the last two digits of a number.

use std::borrow::Cow;
use std::ops::Range;

use campaign_content::audience::{PhoneProblem, parse_phone_number};
use campaign_core::domain::{Phone, Region, find_country};

/// The numbers of digits that a phone number can have, with or without its country code.
const PHONE_LENGTHS: Range<usize> = 8..16;
/// The maximum number of separators between two digits of a phone number.
const MAX_SEPARATORS: usize = 3;

/// Finds the byte ranges of valid phone numbers in a text. A number without a country code is found if it is valid in
/// the country of `recipient`. The longest number wins, because a shorter number can be a part of a longer
/// number.
pub(super) fn find_phone_numbers(text: &str, recipient: Phone) -> Vec<Range<usize>> {
    let region = find_country(recipient);
    let groups = find_digit_groups(text);
    let (mut numbers, mut first) = (Vec::new(), 0);
    while first < groups.len() {
        let plus = if text[..groups[first].start].ends_with('+') { "+" } else { "" };
        // The groups are joined one by one, up to the longest sequence that is a valid number.
        let (mut digits, mut longest) = (plus.to_owned(), None);
        for last in first..groups.len() {
            let is_too_long = digits.len() > PHONE_LENGTHS.end;
            if last > first && (is_too_long || !are_close(text, &groups[last - 1..=last])) {
                break;
            }
            digits.push_str(&text[groups[last].clone()]);
            if is_phone_number(&digits, region) {
                longest = Some(last);
            }
        }
        numbers.extend(longest.map(|last| groups[first].start - plus.len()..groups[last].end));
        first = longest.unwrap_or(first) + 1;
    }
    numbers
}

/// Replaces the recipient's phone number and all other valid phone numbers in a text with their last two digits.
pub(super) fn mask_all_numbers(text: &str, recipient: Phone) -> String {
    mask_valid_numbers(&mask_recipient(text, recipient), recipient)
}

/// Replaces the valid phone numbers in a text with their last two digits.
fn mask_valid_numbers(text: &str, recipient: Phone) -> String {
    let (mut masked, mut copied_end) = (String::with_capacity(text.len()), 0);
    for number in find_phone_numbers(text, recipient) {
        let digits: Vec<char> = text[number.clone()].chars().filter(char::is_ascii_digit).collect();
        masked.push_str(&text[copied_end..number.start]);
        masked.push('…');
        masked.extend(&digits[digits.len() - 2..]);
        copied_end = number.end;
    }
    masked + &text[copied_end..]
}

/// Replaces the recipient's phone number in a text with its last two digits. Other numbers are kept.
pub(super) fn mask_recipient(text: &str, recipient: Phone) -> Cow<'_, str> {
    recipient.hide_in_text(text, &recipient.format_masked())
}

/// Finds the byte ranges of the sequences of digits in a text.
fn find_digit_groups(text: &str) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.match_indices(|c: char| c.is_ascii_digit()) {
        match groups.last_mut() {
            Some(group) if group.end == at => group.end = at + 1,
            _ => groups.push(at..at + 1),
        }
    }
    groups
}

/// Whether two groups of digits can belong to one number: only a few separators are between them.
fn are_close(text: &str, groups: &[Range<usize>]) -> bool {
    let between = &text[groups[0].end..groups[1].start];
    between.chars().count() <= MAX_SEPARATORS
        && between.chars().all(|c| matches!(c, ' ' | '\u{a0}' | '-' | '.' | '(' | ')'))
}

/// Whether digits are an international number, or a national number of `region`.
fn is_phone_number(digits: &str, region: Option<Region>) -> bool {
    PHONE_LENGTHS.contains(&digits.chars().filter(char::is_ascii_digit).count())
        && matches!(parse_phone_number(digits, region), Ok(_) | Err(PhoneProblem::Ambiguous))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_phone_numbers_in_a_text_are_masked() {
        let recipient = Phone::new(380_501_234_567).unwrap();
        for (text, masked) in [
            ("", ""),
            ("call +380671234589 now", "call …89 now"),
            ("380671234589", "…89"),
            ("00380671234589.", "…89."),
            ("0671234589, 067 123-45-88", "…89, …88"),
            ("(067) 123 45 89", "(…89"),
            ("671234589", "…89"),
            ("067 123 45 89 050 123 45 88", "…89 …88"),
            ("https://a.example/?to=+48512345678", "https://a.example/?to=…78"),
            ("їжак 0671234589 — так", "їжак …89 — так"),
            // Amounts, dates, and the numbers of orders and parcels are not phone numbers.
            ("1 250 000.00 on 2026-12-01 at 10:00", "1 250 000.00 on 2026-12-01 at 10:00"),
            ("order 12345678, parcel 20450123456789", "order 12345678, parcel 20450123456789"),
        ] {
            assert_eq!(mask_valid_numbers(text, recipient), masked, "{text}");
        }
    }
}
