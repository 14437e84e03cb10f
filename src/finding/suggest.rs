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
pub fn join_alternatives<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    join_with(names, "or")
}

/// Names in backticks, joined by commas and a last `and`: all of them are meant.
pub fn join_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    join_with(names, "and")
}

fn join_with<'a>(names: impl IntoIterator<Item = &'a str>, word: &str) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

/// A word as it is typed in a shell.
pub fn quote_for_shell(word: impl AsRef<OsStr>) -> String {
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
    fn typing_errors_are_recognized_and_other_words_are_not() {
        let names = ["signature", "message", "lifetime"];
        assert_eq!(did_you_mean("signatur", names), Some("signature"));
        assert_eq!(did_you_mean("Mesage", names), Some("message"));
        assert_eq!(did_you_mean("hook", names), None);
    }

    #[test]
    fn names_are_joined_as_prose() {
        assert_eq!(join_alternatives(["a"]), "`a`");
        assert_eq!(join_alternatives(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(join_names(["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!((join_alternatives([]), join_names([])), (String::new(), String::new()));
    }

    #[test]
    fn listed_names_keep_their_spelling() {
        assert_eq!(join_names(["Sale or Promo/", "templates/"]), "`Sale or Promo/` and `templates/`");
        assert_eq!(join_alternatives(["bread and butter", "tea"]), "`bread and butter` or `tea`");
    }

    #[test]
    fn quoted_word_survives_the_shell() {
        for (word, typed) in [
            ("/tmp/a-b_c.yaml", "/tmp/a-b_c.yaml"),
            ("осінь.yaml", "осінь.yaml"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$HOME;*", "'$HOME;*'"),
            ("", "''"),
        ] {
            assert_eq!(quote_for_shell(word), typed);
        }
    }
}
