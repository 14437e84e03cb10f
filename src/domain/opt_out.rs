//! Replies by which somebody opts out: which words they are, however they are written. Pure.
//!
//! A reply is one if it is such a word, or if it has at most three words and begins with one: "Stop. Thank you" is one,
//! "Cancel my order 12" is not.

/// The words, by language. What stands as several words is written as one, with a dash, or with blanks.
const WORDS: &[(&str, &[&str])] = &[
    ("en", &["STOP", "STOP ALL", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPT OUT", "OPTOUT"]),
    ("uk", &["СТОП", "ВІДПИСАТИСЬ", "ВІДПИСАТИСЯ", "ВІДПИСКА", "ВІДМІНА"]),
    ("ru", &["СТОП", "ОТПИСАТЬСЯ", "ОТПИСКА", "ОТМЕНА"]),
];

/// The most words of a reply that only begins with such a word, and of such a word.
pub const MOST_OPT_OUT_WORDS: usize = 3;
/// Letters of a word that are looked at; no such word is longer.
const LONGEST: usize = 64;

/// The words by which people opt out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptOutWords {
    /// Each as it is told, and as its words look.
    known: Vec<(String, Vec<String>)>,
}

impl Default for OptOutWords {
    /// The words of the table.
    fn default() -> Self {
        let words = WORDS.iter().flat_map(|(_, words)| *words);
        Self { known: Vec::new() }.with(words.map(|word| (*word).to_owned()))
    }
}

impl OptOutWords {
    /// These words besides; one without a letter or a digit is none.
    #[must_use]
    pub fn with(mut self, words: impl IntoIterator<Item = String>) -> Self {
        let looks = words.into_iter().map(|word| (looks_of(&word).collect::<Vec<_>>(), word));
        self.known.extend(looks.filter(|(looks, _)| !looks.is_empty()).map(|(looks, word)| (word, looks)));
        self
    }

    /// Of how many words a text is, as a reply is read.
    #[must_use]
    pub fn count(text: &str) -> usize {
        looks_of(text).count()
    }

    /// The word by which a reply opts out, as it is written in the table; nothing if it does not.
    #[must_use]
    pub fn find(&self, reply: &str) -> Option<&str> {
        let longest = self.known.iter().map(|(_, word)| word.len()).max().unwrap_or(0);
        let reply: Vec<String> = looks_of(reply).take(longest.max(MOST_OPT_OUT_WORDS) + 1).collect();
        let opts_out =
            |word: &Vec<String>| reply == *word || reply.len() <= MOST_OPT_OUT_WORDS && reply.starts_with(word);
        self.known.iter().find(|(_, word)| opts_out(word)).map(|(told, _)| told.as_str())
    }
}

/// The words of a text, as they look: whatever their case, and letters of other alphabets as those that look the same.
fn looks_of(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|character: char| !character.is_alphanumeric() && !is_unseen(character));
    words.map(look).filter(|word| !word.is_empty())
}

fn look(word: &str) -> String {
    let seen = word.chars().filter(|character| !is_unseen(*character));
    seen.flat_map(char::to_uppercase).map(latin).take(LONGEST).collect()
}

/// Whether nobody sees the character: marks on letters, and what joins or divides without width.
fn is_unseen(character: char) -> bool {
    matches!(character, '\u{300}'..='\u{36f}' | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{fe0e}' | '\u{fe0f}' | '\u{feff}')
}

/// The Latin capital that a Cyrillic or Greek one looks like; the character itself where there is none.
fn latin(capital: char) -> char {
    match capital {
        'А' | 'Α' => 'A',
        'В' | 'Β' => 'B',
        'С' | 'Ϲ' => 'C',
        'Е' | 'Ё' | 'Ε' => 'E',
        'Н' | 'Η' => 'H',
        'І' | 'Ї' | 'Ӏ' | 'Ι' => 'I',
        'Ј' => 'J',
        'К' | 'Κ' => 'K',
        'М' | 'Μ' => 'M',
        'Ν' => 'N',
        'О' | 'Ο' | '0' => 'O',
        'Р' | 'Ρ' => 'P',
        'Ѕ' => 'S',
        'Т' | 'Τ' => 'T',
        'У' | 'Υ' => 'Y',
        'Х' | 'Χ' => 'X',
        'Ζ' => 'Z',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(reply: &str) -> bool {
        OptOutWords::default().find(reply).is_some()
    }

    #[test]
    fn a_word_alone_or_before_few_others_opts_out_and_a_sentence_does_not() {
        for reply in [
            "STOP",
            "stop",
            "Stop.",
            " sTop!!! ",
            "Stop. Thank you",
            "stop it now",
            "STOPALL",
            "stop all",
            "Unsubscribe",
            "cancel",
            "Cancel please",
            "END",
            "quit",
            "revoke",
            "optout",
            "OPT OUT",
            "opt-out",
            "Opt out, please",
            "СТОП",
            "стоп",
            "Стоп, дякую",
            "відписатись",
            "Відписатися",
            "ВІДМІНА",
            "отписаться",
            "Отписаться!",
            "🛑 STOP",
            "«Стоп»",
            "s\u{200b}top",
            "С\u{301}ТОП",
            "St0p",
        ] {
            assert!(found(reply), "{reply:?}");
        }
        for reply in [
            "",
            "  ",
            "...",
            "🛑",
            "Cancel my order 12",
            "Please stop",
            "Please do not stop sending",
            "I will stop by at five",
            "Stopped",
            "nonstop",
            "Endless",
            "не стоп",
            "Стоп це було дуже смачно",
            "Opt in",
            "opt",
            "out",
            "S T O P",
            "yes",
        ] {
            assert!(!found(reply), "{reply:?}");
        }
    }

    #[test]
    fn the_word_is_told_as_the_table_has_it() {
        assert_eq!(OptOutWords::default().find("cтоп, дякую"), Some("СТОП"));
        assert_eq!(OptOutWords::default().find("opt-out"), Some("OPT OUT"));
    }

    #[test]
    fn a_file_can_add_words_and_takes_none_away() {
        let words = OptOutWords::default().with(["Godi".to_owned(), "не пишіть".to_owned(), " … ".to_owned()]);
        for reply in ["GODI", "не пишіть", "НЕ ПИШІТЬ більше", "STOP"] {
            assert!(words.find(reply).is_some(), "{reply}");
        }
        assert_eq!((words.find(""), words.find("не хочу")), (None, None));
    }

    /// A letter as it is, in the other case, or as one that looks the same.
    fn disguises(letter: char) -> Vec<char> {
        let same = (' '..='\u{52f}').filter(|other| latin(*other) == latin(letter) && other.is_alphabetic());
        let same: Vec<char> = same.chain([letter]).collect();
        let lower =
            same.iter().flat_map(|letter| letter.to_lowercase()).filter(|lower| lower.to_uppercase().count() == 1);
        same.iter().copied().chain(lower).collect()
    }

    proptest! {
        #[test]
        fn each_word_is_found_however_its_letters_are_written(
            chosen in any::<prop::sample::Index>(), picks in prop::collection::vec(any::<prop::sample::Index>(), 64),
            before in "[ .,!?\"«(-]{0,4}", behind in "[ .,!?\"»)-]{0,4}",
        ) {
            let all: Vec<&str> = WORDS.iter().flat_map(|(_, words)| *words).copied().collect();
            let word = chosen.get(&all);
            let written: String = word.chars().zip(&picks).map(|(letter, pick)| *pick.get(&disguises(letter))).collect();
            let reply = format!("{before}{written}{behind}");
            prop_assert!(found(&reply), "{:?} for {}", reply, word);
        }

        #[test]
        fn nothing_of_four_words_or_more_opts_out(words in prop::collection::vec("[A-Za-zА-Яа-я]{1,9}", 4..9)) {
            let sentence = words.join(" ");
            prop_assert!(!found(&sentence), "{}", sentence);
            let sentence = format!("STOP {}", words.join(" "));
            prop_assert!(!found(&sentence), "{}", sentence);
        }

        #[test]
        fn any_text_is_judged(reply in "\\PC{0,200}") {
            let _ = found(&reply);
        }
    }
}
