//! A text that is chosen by a column: `message: { by: lang, texts: { … }, else: uk }`.
//!
//! It becomes one template that includes the others, so that everything that holds for texts holds for each of them.

use super::Resolver;
use crate::domain::NamedTemplate;
use crate::domain::variable::is_variable;
use crate::finding::{Finding, did_you_mean, join_alternatives, rules};
use crate::manifest::keys::has_bare_texts;
use crate::manifest::yaml::MapEntry;

impl Resolver<'_> {
    /// The text under a key that has `by`; `path` is the path of keys that becomes its name.
    pub(super) fn resolve_chosen_text(&mut self, path: &str, entry: &MapEntry) -> Option<NamedTemplate> {
        let by =
            entry.value.find_entry("by")?.value.as_scalar().filter(|scalar| !scalar.is_null())?.text.trim().to_owned();
        let Some(texts) = entry
            .value
            .find_entry("texts")
            .and_then(|texts| texts.value.as_entries())
            .filter(|texts| !texts.is_empty())
        else {
            // Texts beside `by` are already reported.
            if has_bare_texts(&entry.value) {
                return None;
            }
            let finding =
                Finding::new(&rules::MISSING_KEY, format!("`{}` has `by`, so it also needs `texts`", entry.key));
            self.report.add(
                &entry.key_span,
                finding.help(format!("add `texts: {{ uk: \"…\", en: \"…\" }}`, with the values of `{by}` as keys")),
            );
            return None;
        };
        let (mut chosen, mut whole): (Vec<(String, String)>, bool) = (Vec::new(), true);
        for text in texts {
            let word = text.key.trim().to_lowercase();
            if word.is_empty() || word.contains(['"', '\\']) || chosen.iter().any(|(other, _)| *other == word) {
                let message =
                    format!("`{}` is empty, duplicates another key, or contains a quote or a backslash", text.key);
                let finding = Finding::new(&rules::UNKNOWN_VALUE, message);
                self.report.add(
                    &text.key_span,
                    finding.help("write each value of the column only once, without quotes or backslashes"),
                );
                whole = false;
                continue;
            }
            let own = format!("{path}.texts.{}", text.key);
            let Some(NamedTemplate { name, source }) = self.resolve_text(own.clone(), text) else {
                whole = false;
                continue;
            };
            // A text file that is to come is in no folder either.
            if name == own || self.folders.find_text(&name).is_err() {
                self.folders.add_inline_text(name.clone(), source);
            }
            chosen.push((word, name));
        }
        // The readable texts are checked anyway.
        self.gaps.any |= !whole;
        let words = || chosen.iter().map(|(word, _)| word.as_str());
        let other = match entry
            .value
            .find_entry("else")
            .and_then(|other| Some((other, other.value.as_scalar()?.text.trim().to_lowercase())))
        {
            None => None,
            Some((_, word)) if words().any(|known| known == word) => Some(word),
            Some((_, word)) if texts.iter().any(|text| text.key.trim().to_lowercase() == word) => None,
            Some((other, word)) => {
                let finding =
                    Finding::new(&rules::UNKNOWN_VALUE, format!("`else` is `{word}`, but `texts` has no such key"));
                let meant = did_you_mean(&word, words()).map(|meant| format!("did you mean `{meant}`?"));
                let help = meant.unwrap_or_else(|| format!("write one of {}", join_alternatives(words())));
                self.report.add(&other.value.span, finding.help(help));
                self.gaps.any = true;
                None
            }
        };
        if chosen.is_empty() {
            return None;
        }
        Some(NamedTemplate { name: path.to_owned(), source: build_chooser(&by, &chosen, other.as_deref()) })
    }
}

/// The template that includes the text whose word stands in a column.
fn build_chooser(by: &str, texts: &[(String, String)], other: Option<&str>) -> String {
    let cell = if is_variable(by) { by.to_owned() } else { format!("recipient[{}]", quote_text(by)) };
    let mut source = String::new();
    for (index, (word, name)) in texts.iter().enumerate() {
        let keyword = if index == 0 { "if" } else { "elif" };
        source +=
            &format!("{{% {keyword} ({cell} | trim | lower) == \"{word}\" %}}{{% include {} %}}", quote_text(name));
    }
    let name = other.and_then(|other| texts.iter().find(|(word, _)| word == other)).map(|(_, name)| name);
    source += &match name {
        Some(name) => format!("{{% else %}}{{% include {} %}}{{% endif %}}", quote_text(name)),
        None => {
            let words: Vec<&str> = texts.iter().map(|(word, _)| word.as_str()).collect();
            let why = format!("{}, only for {}", missing_text_reason(by), words.join(", "));
            format!("{{% else %}}{{{{ throw(message={}) }}}}{{% endif %}}", quote_text(&why))
        }
    };
    source
}

/// The beginning of the reason for a row without a text, by the column that chooses it.
#[must_use]
pub fn missing_text_reason(by: &str) -> String {
    format!("there is no text for what stands in {by}")
}

/// A text between the quotes that it leaves free.
fn quote_text(text: &str) -> String {
    let quote = if text.contains('"') { '\'' } else { '"' };
    format!("{quote}{text}{quote}")
}
