//! The tables of messages: a text for a key, or a form of it for each way in which the language counts.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use icu_locale_core::locale;
use icu_plurals::{PluralCategory, PluralRules};
use serde::Deserialize;

use super::PageLanguage;

/// The tables as they stand in the files, in the order of [`Language::ALL`].
pub(super) const SOURCES: [&str; 2] = [include_str!("en.yaml"), include_str!("uk.yaml")];

/// The words of a language.
#[derive(Debug)]
pub struct PageWords {
    language: PageLanguage,
    messages: BTreeMap<String, Translation>,
}

/// A message.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Translation {
    /// It is the same for every number.
    Text(String),
    /// It has a form for each way to count.
    Counted(PluralForms),
}

/// The forms of a message that counts, by the categories of Unicode's rules.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PluralForms {
    pub(super) one: Option<String>,
    pub(super) few: Option<String>,
    pub(super) many: Option<String>,
    pub(super) other: String,
}

impl PluralForms {
    /// The form of a category.
    pub(super) fn for_category(&self, category: PluralCategory) -> Option<&String> {
        match category {
            PluralCategory::One => self.one.as_ref(),
            PluralCategory::Few => self.few.as_ref(),
            PluralCategory::Many => self.many.as_ref(),
            PluralCategory::Other => Some(&self.other),
            PluralCategory::Zero | PluralCategory::Two => None,
        }
    }
}

static WORDS: LazyLock<[PageWords; 2]> = LazyLock::new(|| PageLanguage::ALL.map(PageWords::load));

impl PageWords {
    /// Those of a language.
    #[must_use]
    pub fn in_language(language: PageLanguage) -> &'static Self {
        &WORDS[language as usize]
    }

    fn load(language: PageLanguage) -> Self {
        // The tables are a part of the program, and a test reads them.
        let messages = serde_yaml::from_str(SOURCES[language as usize]).unwrap_or_default();
        Self { language, messages }
    }

    /// Which language it is.
    #[must_use]
    pub fn language(&self) -> PageLanguage {
        self.language
    }

    /// The message of a key.
    #[must_use]
    pub fn say<'w>(&'w self, key: &'w str) -> &'w str {
        match self.messages.get(key) {
            Some(Translation::Text(text)) => text,
            Some(Translation::Counted(forms)) => &forms.other,
            // A key that is nowhere shows itself; a test finds it before.
            None => key,
        }
    }

    /// The message of a key with these in its places: `{name}`.
    #[must_use]
    pub fn say_with(&self, key: &str, values: &[(&str, &str)]) -> String {
        fill_places(self.say(key), values)
    }

    /// The message of a key for so many, which stand in its place `{count}`, with these in the other places.
    #[must_use]
    pub fn count(&self, key: &str, count: u64, values: &[(&str, &str)]) -> String {
        let text = match self.messages.get(key) {
            Some(Translation::Counted(forms)) => {
                forms.for_category(plural_rules(self.language).category_for(count)).unwrap_or(&forms.other)
            }
            _ => self.say(key),
        };
        let number = self.format_number(count);
        fill_places(text, &[&[("count", number.as_str())], values].concat())
    }

    /// How a thing of a kind is called, by its own word: `kind("state", "in_doubt")`; nothing where it has no name here.
    #[must_use]
    pub fn kind(&self, kind: &str, word: &str) -> Option<&str> {
        match self.messages.get(&format!("{kind}.{word}")) {
            Some(Translation::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Its messages.
    #[cfg(test)]
    pub(super) fn messages(&self) -> &BTreeMap<String, Translation> {
        &self.messages
    }
}

/// How a language counts. They are not shared between threads, and made from what is in the program at little cost.
pub(super) fn plural_rules(language: PageLanguage) -> PluralRules {
    let locale = match language {
        PageLanguage::English => locale!("en"),
        PageLanguage::Ukrainian => locale!("uk"),
    };
    PluralRules::try_new_cardinal(locale.into()).expect("the library has the rules of every language")
}

/// A text with these in its places; a place of which nothing is said stays as it is. What is put in is not looked at again.
fn fill_places(text: &str, values: &[(&str, &str)]) -> String {
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
    fn count_uses_the_plural_form_of_its_language() {
        let table = [
            (PageLanguage::English, 1, "1 part"),
            (PageLanguage::English, 0, "0 parts"),
            (PageLanguage::English, 1_000_000, "1\u{202f}000\u{202f}000 parts"),
            (PageLanguage::Ukrainian, 1, "1 частина"),
            (PageLanguage::Ukrainian, 3, "3 частини"),
            (PageLanguage::Ukrainian, 5, "5 частин"),
            (PageLanguage::Ukrainian, 12, "12 частин"),
            (PageLanguage::Ukrainian, 21, "21 частина"),
            (PageLanguage::Ukrainian, 1_002, "1\u{202f}002 частини"),
        ];
        for (language, count, text) in table {
            assert_eq!(PageWords::in_language(language).count("phone.parts", count, &[]), text);
        }
    }

    #[test]
    fn places_are_filled_once_and_not_recursively() {
        let values = [("a", "{b}"), ("b", "x")];
        let table = [("{a} and {b}", "{b} and x"), ("{c} {a", "{c} {a"), ("} {{a}", "} {{b}"), ("", "")];
        for (text, filled) in table {
            assert_eq!(fill_places(text, &values), filled, "{text}");
        }
    }
}
