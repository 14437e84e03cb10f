//! The tables of messages: a text for a key, or a form of it for each way in which the language counts.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use icu_locale_core::locale;
use icu_plurals::{PluralCategory, PluralRules};
use serde::Deserialize;

use super::Language;

/// The tables as they stand in the files, in the order of [`Language::ALL`].
pub(super) const SOURCES: [&str; 2] = [include_str!("en.yaml"), include_str!("uk.yaml")];

/// The words of a language.
#[derive(Debug)]
pub struct Words {
    language: Language,
    messages: BTreeMap<String, Message>,
}

/// A message.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Message {
    /// It is the same for every number.
    Text(String),
    /// It has a form for each way to count.
    Counted(Forms),
}

/// The forms of a message that counts, by the categories of Unicode's rules.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Forms {
    pub(super) one: Option<String>,
    pub(super) few: Option<String>,
    pub(super) many: Option<String>,
    pub(super) other: String,
}

impl Forms {
    /// The form of a category.
    pub(super) fn of(&self, category: PluralCategory) -> Option<&String> {
        match category {
            PluralCategory::One => self.one.as_ref(),
            PluralCategory::Few => self.few.as_ref(),
            PluralCategory::Many => self.many.as_ref(),
            PluralCategory::Other => Some(&self.other),
            PluralCategory::Zero | PluralCategory::Two => None,
        }
    }
}

static WORDS: LazyLock<[Words; 2]> = LazyLock::new(|| Language::ALL.map(Words::read));

impl Words {
    /// Those of a language.
    #[must_use]
    pub fn of(language: Language) -> &'static Self {
        &WORDS[language as usize]
    }

    fn read(language: Language) -> Self {
        // The tables are a part of the program, and a test reads them.
        let messages = serde_yaml::from_str(SOURCES[language as usize]).unwrap_or_default();
        Self { language, messages }
    }

    /// Which language it is.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// The message of a key.
    #[must_use]
    pub fn say<'w>(&'w self, key: &'w str) -> &'w str {
        match self.messages.get(key) {
            Some(Message::Text(text)) => text,
            Some(Message::Counted(forms)) => &forms.other,
            // A key that is nowhere shows itself; a test finds it before.
            None => key,
        }
    }

    /// The message of a key with these in its places: `{name}`.
    #[must_use]
    pub fn say_with(&self, key: &str, values: &[(&str, &str)]) -> String {
        fill(self.say(key), values)
    }

    /// The message of a key for so many, which stand in its place `{count}`, with these in the other places.
    #[must_use]
    pub fn count(&self, key: &str, count: u64, values: &[(&str, &str)]) -> String {
        let text = match self.messages.get(key) {
            Some(Message::Counted(forms)) => forms.of(rules(self.language).category_for(count)).unwrap_or(&forms.other),
            _ => self.say(key),
        };
        let number = self.number(count);
        fill(text, &[&[("count", number.as_str())], values].concat())
    }

    /// How a thing of a kind is called, by its own word: `kind("state", "in_doubt")`; nothing where it has no name here.
    #[must_use]
    pub fn kind(&self, kind: &str, word: &str) -> Option<&str> {
        match self.messages.get(&format!("{kind}.{word}")) {
            Some(Message::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Its messages.
    #[cfg(test)]
    pub(super) fn messages(&self) -> &BTreeMap<String, Message> {
        &self.messages
    }
}

/// How a language counts. They are not shared between threads, and made from what is in the program at little cost.
pub(super) fn rules(language: Language) -> PluralRules {
    let locale = match language {
        Language::English => locale!("en"),
        Language::Ukrainian => locale!("uk"),
    };
    PluralRules::try_new_cardinal(locale.into()).expect("the library has the rules of every language")
}

/// A text with these in its places; a place of which nothing is said stays as it is. What is put in is not looked at again.
fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let place = after.split_once('}').and_then(|(name, after)| {
            let value = values.iter().find(|(known, _)| *known == name)?.1;
            Some((value, after))
        });
        match place {
            Some((value, after)) => {
                filled.push_str(value);
                rest = after;
            }
            None => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_the_form_that_its_language_wants() {
        let table = [
            (Language::English, 1, "1 part"),
            (Language::English, 0, "0 parts"),
            (Language::English, 1_000_000, "1\u{202f}000\u{202f}000 parts"),
            (Language::Ukrainian, 1, "1 частина"),
            (Language::Ukrainian, 3, "3 частини"),
            (Language::Ukrainian, 5, "5 частин"),
            (Language::Ukrainian, 12, "12 частин"),
            (Language::Ukrainian, 21, "21 частина"),
            (Language::Ukrainian, 1_002, "1\u{202f}002 частини"),
        ];
        for (language, count, text) in table {
            assert_eq!(Words::of(language).count("phone.parts", count, &[]), text);
        }
    }

    #[test]
    fn places_are_filled_once_and_what_is_put_in_is_not_looked_at() {
        let values = [("a", "{b}"), ("b", "x")];
        let table = [("{a} and {b}", "{b} and x"), ("{c} {a", "{c} {a"), ("} {{a}", "} {{b}"), ("", "")];
        for (text, filled) in table {
            assert_eq!(fill(text, &values), filled, "{text}");
        }
    }
}
