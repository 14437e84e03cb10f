//! Did-you-mean, lists of names in prose, and words of a command line.

use std::ffi::OsStr;

/// The name that was probably meant by `typed`, if one is near enough.
pub fn did_you_mean<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = typed.to_lowercase();
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&lower, &name.to_lowercase()), name))
        .filter(|&(distance, name)| distance <= (name.chars().count().max(typed.chars().count()) / 3).max(1))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// Names in backticks, joined by commas and a last `or`: one of them is meant.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    joined(names, "or")
}

/// Names in backticks, joined by commas and a last `and`: all of them are meant.
pub fn list_all<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    joined(names, "and")
}

fn joined<'a>(names: impl IntoIterator<Item = &'a str>, word: &str) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

/// A word as it is typed in a shell.
pub fn quoted(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let plain = |character: char| character.is_alphanumeric() || "/._-".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised_and_a_stranger_is_not() {
        let names = ["signature", "message", "lifetime"];
        assert_eq!(did_you_mean("signatur", names), Some("signature"));
        assert_eq!(did_you_mean("Mesage", names), Some("message"));
        assert_eq!(did_you_mean("hook", names), None);
    }

    #[test]
    fn a_list_reads_as_prose() {
        assert_eq!(list(["a"]), "`a`");
        assert_eq!(list(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(list_all(["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!((list([]), list_all([])), (String::new(), String::new()));
    }

    #[test]
    fn a_name_in_a_list_is_shown_as_it_is_written() {
        assert_eq!(list_all(["Sale or Promo/", "templates/"]), "`Sale or Promo/` and `templates/`");
        assert_eq!(list(["bread and butter", "tea"]), "`bread and butter` or `tea`");
    }

    #[test]
    fn a_shell_reads_a_word_as_it_is() {
        for (word, typed) in [
            ("/tmp/a-b_c.yaml", "/tmp/a-b_c.yaml"),
            ("осінь.yaml", "осінь.yaml"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$HOME;*", "'$HOME;*'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), typed);
        }
    }
}
