//! The gateway's words, no longer than anybody reads. Pure.
//!
//! Whatever a gateway says is kept per message, so that an answer of megabytes would otherwise stay megabytes for each.

use serde_json::value::RawValue;

/// The most characters of a text that are kept.
const LONGEST: usize = 500;
/// The longest answer of a lookup or a code call that is kept as it came, in bytes.
const LONGEST_ANSWER: usize = 4 << 10;
/// The most digits of a number, which is never cut in two: half of it would not be known for one and be shown.
const DIGITS: usize = 15;
/// What stands behind a text that was cut, before the number of its characters.
const CUT: &str = "… (cut, ";

/// The text, or its beginning with a word that it was cut.
pub(super) fn cut(mut text: String) -> String {
    let Some((end, next)) = text.char_indices().nth(LONGEST) else { return text };
    let characters = text.chars().count();
    let before_number = text[..end].trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let split = next.is_ascii_digit() && end - before_number <= DIGITS;
    text.truncate(if split { before_number } else { end });
    text.push_str(&format!("{CUT}{characters} characters)"));
    text.shrink_to_fit();
    text
}

/// Where the words of a text end that was cut.
pub(super) fn end_of_kept(text: &str) -> Option<usize> {
    text.rfind(CUT).filter(|_| text.ends_with(" characters)"))
}

/// The answer of a lookup or a code call as JSON; one that is absurdly long as a JSON string of its beginning.
pub(super) fn answer(object: &RawValue) -> String {
    let whole = object.get().to_owned();
    if whole.len() <= LONGEST_ANSWER { whole } else { serde_json::Value::String(cut(whole)).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_whole_up_to_500_characters_and_says_when_it_was_cut() {
        for whole in ["", "No route", &"ї".repeat(500)] {
            assert_eq!(cut(whole.to_owned()), whole);
            assert_eq!(end_of_kept(whole), None);
        }
        let text = cut("ї".repeat(7_000_000));
        assert_eq!(text, format!("{}… (cut, 7000000 characters)", "ї".repeat(500)));
        assert_eq!(end_of_kept(&text), Some(1_000));
        assert!(text.capacity() < 2_000, "no more is held than is kept");
    }

    #[test]
    fn no_number_is_cut_in_two() {
        let text = cut(format!("{}380501234567 {}", "x".repeat(495), "y".repeat(500)));
        assert_eq!(text, format!("{}… (cut, 1008 characters)", "x".repeat(495)));
        assert!(cut("7".repeat(600)).starts_with(&"7".repeat(500)), "what is no number has its beginning");
    }

    #[test]
    fn an_answer_stays_json_however_long_it_was() {
        let raw = |json: String| serde_json::from_str::<Box<RawValue>>(&json).unwrap();
        assert_eq!(answer(&raw(r#"{"code":"0042"}"#.into())), r#"{"code":"0042"}"#);
        let long: String = serde_json::from_str(&answer(&raw(format!(r#"{{"x":"{}"}}"#, "a".repeat(9_000))))).unwrap();
        assert!(long.starts_with(r#"{"x":"aaa"#) && long.ends_with("… (cut, 9008 characters)"), "{long}");
    }
}
