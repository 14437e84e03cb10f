//! Names that are written as other programs want them, `{name}` or `%name%`, and would be sent as they stand. Pure.

use std::ops::Range;

use crate::finding::{Finding, Rule, rules};

/// A name in the signs of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placeholder {
    /// Its bytes, with the signs.
    pub(super) span: Range<usize>,
    /// The bytes of the name.
    name: Range<usize>,
    rule: &'static Rule,
}

/// The signs around a name, and which of the names between them are taken for one.
struct Signs {
    open: &'static str,
    close: &'static str,
    is_name: fn(&str) -> bool,
    rule: &'static Rule,
}

/// Longer signs come before those that they begin with.
const SIGNS: [Signs; 5] = [
    Signs { open: "*|", close: "|*", is_name: is_words, rule: &rules::FOREIGN_PLACEHOLDER },
    Signs { open: "<<", close: ">>", is_name: is_words, rule: &rules::FOREIGN_PLACEHOLDER },
    Signs { open: "{", close: "}", is_name: is_words, rule: &rules::SINGLE_BRACES },
    // Prices and discounts have these signs too.
    Signs { open: "%", close: "%", is_name: is_one_word, rule: &rules::FOREIGN_PLACEHOLDER },
    Signs { open: "[", close: "]", is_name: is_of_a_person, rule: &rules::FOREIGN_PLACEHOLDER },
];
/// The tags of the template language.
const TAGS: [(&str, &str); 3] = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")];
/// What stands in brackets for a value; other words there are words.
const OF_A_PERSON: [&str; 17] = [
    "name",
    "firstname",
    "lastname",
    "fullname",
    "surname",
    "phone",
    "email",
    "city",
    "code",
    "promocode",
    "company",
    "date",
    "імя",
    "прізвище",
    "имя",
    "фамилия",
    "код",
];

impl Placeholder {
    /// The finding about it.
    pub(super) fn finding(&self, text: &str) -> Finding {
        let (written, name) = (&text[self.span.clone()], text[self.name.clone()].trim());
        let finding = Finding::new(self.rule, format!("`{written}` is sent as it stands"));
        finding.help(format!("write `{{{{ {name} }}}}` if the recipient's value is meant"))
    }
}

/// The placeholders of a text outside the tags of the template language.
pub(super) fn placeholders(text: &str) -> Vec<Placeholder> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(character) = text[at..].chars().next() {
        let rest = &text[at..];
        if let Some((begin, end)) = TAGS.into_iter().find(|(begin, _)| rest.starts_with(begin)) {
            match rest[begin.len()..].find(end) {
                Some(close) => at += begin.len() + close + end.len(),
                None => break,
            }
            continue;
        }
        let placeholder = SIGNS.iter().find_map(|signs| signs.at(text, at));
        at = placeholder.as_ref().map_or(at + character.len_utf8(), |placeholder| placeholder.span.end);
        found.extend(placeholder);
    }
    found
}

impl Signs {
    /// The placeholder that begins here.
    fn at(&self, text: &str, at: usize) -> Option<Placeholder> {
        let inner = text[at..].strip_prefix(self.open)?;
        let close = inner.find(self.close)?;
        let start = at + self.open.len();
        let (name, span) = (start..start + close, at..start + close + self.close.len());
        // `[text](address)` is a link of Markdown.
        let linked = text[span.end..].starts_with('(');
        ((self.is_name)(&inner[..close]) && !linked).then_some(Placeholder { span, name, rule: self.rule })
    }
}

fn is_words(inner: &str) -> bool {
    let name = inner.trim();
    let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    starts && name.chars().count() <= 64 && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ' ' | '.'))
}

fn is_one_word(inner: &str) -> bool {
    is_words(inner) && !inner.contains(' ')
}

/// Whether a word in brackets is a value of a person: by its meaning, or because words of a language have no `_`.
fn is_of_a_person(inner: &str) -> bool {
    let simple: String = inner.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    is_words(&inner.replace(['\'', '\u{2019}'], "")) && (OF_A_PERSON.contains(&simple.as_str()) || inner.contains('_'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Vec<&str> {
        placeholders(text).into_iter().map(|placeholder| &text[placeholder.span]).collect()
    }

    #[test]
    fn names_in_the_signs_of_other_programs_are_noticed_and_tags_and_words_are_not() {
        let cases: [(&str, &[&str]); 21] = [
            ("Hi {name}!", &["{name}"]),
            ("Hi { first name }, {ім'я}", &["{ first name }"]),
            ("{{ name }} {% if x %}{# {c} #}{% endif %}", &[]),
            ("{{ {a} }} {b}", &["{b}"]),
            ("{}", &[]),
            ("{1}", &[]),
            ("{ {{ name }} }", &[]),
            ("{name", &[]),
            ("%name%, %FIRST_NAME%", &["%name%", "%FIRST_NAME%"]),
            ("-20% on all, -50% on some", &[]),
            ("20%+30%", &[]),
            ("100% ваше %", &[]),
            ("{{ '%a%' }}%b%", &["%b%"]),
            ("[name] [Ім'я] [first_name] [FIRST NAME]", &["[name]", "[Ім'я]", "[first_name]", "[FIRST NAME]"]),
            ("[SALE] [new] [1] [name](https://x.example)", &[]),
            ("*|NAME|*, *|FNAME|*", &["*|NAME|*", "*|FNAME|*"]),
            ("*|*|*", &[]),
            ("<<name>> << first name >>", &["<<name>>", "<< first name >>"]),
            ("a << b, 1 >> 2 <name>", &[]),
            ("${name}", &["{name}"]),
            ("{name} {{ x", &["{name}"]),
        ];
        for (text, expected) in cases {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-z{}%\\[\\]*|<># їя(]{0,60}") {
            let _ = found(&text);
        }
    }
}
