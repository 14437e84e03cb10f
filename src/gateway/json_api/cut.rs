//! The gateway's words, no longer than anybody reads. Pure.
//!
//! Whatever a gateway says is kept per message, so that an answer of megabytes would otherwise stay megabytes for each.

use serde_json::value::RawValue;

/// The most characters of a text that are kept.
const MAX_CHARACTERS: usize = 500;
/// The longest answer of a lookup or a code call that is kept as it came, in bytes.
const MAX_ANSWER: usize = 4 << 10;
/// The most digits of a number, which is never cut in two: half of it would not be known for one and be shown.
const MAX_DIGITS: usize = 15;
/// What stands behind a text that was cut, before the number of its characters.
const CUT: &str = "… (cut, ";

/// The text, or its beginning with a word that it was cut.
pub(super) fn truncate(mut text: String) -> String {
    let Some((end, next)) = text.char_indices().nth(MAX_CHARACTERS) else { return text };
    let characters = text.chars().count();
    let before_number = text[..end].trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let split = next.is_ascii_digit() && end - before_number <= MAX_DIGITS;
    text.truncate(if split { before_number } else { end });
    text.push_str(&format!("{CUT}{characters} characters)"));
    text.shrink_to_fit();
    text
}

/// Where the words of a text end that was cut.
pub(super) fn find_cut(text: &str) -> Option<usize> {
    text.rfind(CUT).filter(|_| text.ends_with(" characters)"))
}

/// The answer of a lookup or a code call as JSON; one that is absurdly long as a JSON string of its beginning.
pub(super) fn truncate_answer(object: &RawValue) -> String {
    let whole = object.get().to_owned();
    if whole.len() <= MAX_ANSWER { whole } else { serde_json::Value::String(truncate(whole)).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_over_500_characters_is_marked_as_cut() {
        for whole in ["", "No route", &"ї".repeat(500)] {
            assert_eq!(truncate(whole.to_owned()), whole);
            assert_eq!(find_cut(whole), None);
        }
        let text = truncate("ї".repeat(7_000_000));
        assert_eq!(text, format!("{}… (cut, 7000000 characters)", "ї".repeat(500)));
        assert_eq!(find_cut(&text), Some(1_000));
        assert!(text.capacity() < 2_000, "no more is held than is kept");
    }

    #[test]
    fn number_is_never_cut_in_two() {
        let text = truncate(format!("{}380501234567 {}", "x".repeat(495), "y".repeat(500)));
        assert_eq!(text, format!("{}… (cut, 1008 characters)", "x".repeat(495)));
        assert!(truncate("7".repeat(600)).starts_with(&"7".repeat(500)), "what is no number has its beginning");
    }

    #[test]
    fn long_answer_stays_json() {
        let raw = |json: String| serde_json::from_str::<Box<RawValue>>(&json).unwrap();
        assert_eq!(truncate_answer(&raw(r#"{"code":"0042"}"#.into())), r#"{"code":"0042"}"#);
        let long: String =
            serde_json::from_str(&truncate_answer(&raw(format!(r#"{{"x":"{}"}}"#, "a".repeat(9_000))))).unwrap();
        assert!(long.starts_with(r#"{"x":"aaa"#) && long.ends_with("… (cut, 9008 characters)"), "{long}");
    }
}
