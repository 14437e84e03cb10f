//! Placeholders in the syntax of other programs, `{name}` or `%name%`, which would be sent unchanged. Pure.

use std::ops::Range;

use campaign_core::domain::variable::{is_built_in, is_variable};
use campaign_core::finding::{Finding, Rule, rules};

/// The names of columns in texts with their headers.
pub(super) type ColumnHeaders = [(String, String)];

/// A name in the placeholder syntax of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placeholder {
    /// The bytes of the placeholder.
    pub(super) span: Range<usize>,
    /// The bytes of the name.
    name: Range<usize>,
    rule: &'static Rule,
}

/// The delimiters of a placeholder, and which names between them count.
struct PlaceholderSyntax {
    open: &'static str,
    close: &'static str,
    is_name: fn(&str, &ColumnHeaders) -> bool,
    rule: &'static Rule,
}

/// Longer delimiters come before those that they begin with.
const SYNTAXES: [PlaceholderSyntax; 15] = [
    PlaceholderSyntax { open: "*|", close: "|*", is_name: is_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "<<", close: ">>", is_name: is_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "<%=", close: "%>", is_name: is_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "${", close: "}", is_name: is_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "#{", close: "}", is_name: is_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "{!", close: "}", is_name: is_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "{$", close: "}", is_name: is_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "[[", close: "]]", is_name: is_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "{", close: "}", is_name: is_words, rule: &rules::SINGLE_BRACES },
    PlaceholderSyntax { open: "%%", close: "%%", is_name: is_one_word, rule: &rules::FOREIGN_PLACEHOLDER },
    // Prices, discounts and tags also contain these characters, as can any text.
    PlaceholderSyntax { open: "%", close: "%", is_name: is_one_word, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "[", close: "]", is_name: is_person_value, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "<", close: ">", is_name: is_person_value, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "((", close: "))", is_name: is_person_value, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "#", close: "#", is_name: is_person_word, rule: &rules::FOREIGN_PLACEHOLDER },
];
/// The delimiters of the template language.
const TAGS: [(&str, &str); 3] = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")];
/// Words in brackets that mean a value; other words are just words.
const PERSON_WORDS: [&str; 21] = [
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
    "піб",
    "місто",
    "имя",
    "фамилия",
    "фио",
    "город",
    "код",
];

impl Placeholder {
    /// The finding about the placeholder.
    pub(super) fn to_finding(&self, text: &str, columns: &ColumnHeaders) -> Finding {
        let (written, name) = (&text[self.span.clone()], text[self.name.clone()].trim());
        let finding = Finding::new(self.rule, format!("`{written}` is not a placeholder, so it is sent unchanged"));
        let is_known = is_variable(name) || is_built_in(name);
        let last = name.rsplit('.').next().unwrap_or(name).trim();
        if let Some(name) = find_column(name, columns).or_else(|| find_column(last, columns)) {
            return finding.help(suggest_replacement(name, written));
        }
        if let Some(usual) = guess_column_name(last).filter(|usual| *usual != name) {
            let help = suggest_replacement(&usual, written);
            return finding.help(format!("{help}; put the column's name between the braces"));
        }
        finding.help(match is_known.then_some(name) {
            Some(name) => suggest_replacement(name, written),
            None => format!(
                "for the column `{name}`, define a name in Latin letters under `recipients`, as in `columns: {{ \
                 my_name: {name:?} }}`, and write `{{{{ my_name }}}}`"
            ),
        })
    }
}

/// The remedy if a placeholder means the value with this name.
fn suggest_replacement(name: &str, written: &str) -> String {
    let of_a_price = if written.starts_with("${") {
        format!(", or `${{{{ {name} }}}}` for a price in dollars")
    } else {
        String::new()
    };
    format!("write `{{{{ {name} }}}}` for the recipient's value{of_a_price}")
}

/// The usual column name for a name in other programs: `first_name` for `FirstName` and `FNAME`; `None` if the name has
/// no Latin words.
fn guess_column_name(name: &str) -> Option<String> {
    let known = |short: &str| match short {
        "fname" => Some("first_name"),
        "lname" => Some("last_name"),
        _ => None,
    };
    if let Some(usual) = known(&simplify_name(name)) {
        return Some(usual.to_owned());
    }
    let mut words = String::new();
    let mut before = None;
    for character in name.chars() {
        if character.is_uppercase() && before.is_some_and(|before: char| before.is_lowercase()) {
            words.push('_');
        }
        words.extend(character.to_lowercase());
        before = Some(character);
    }
    // A name in capitals might be a header of the list.
    let is_mixed = name.contains(char::is_lowercase);
    (is_mixed && is_variable(&words)).then_some(words)
}

/// The name in texts of the column with this name or header, in any spelling.
fn find_column<'c>(name: &str, columns: &'c ColumnHeaders) -> Option<&'c str> {
    let simple = simplify_name(name);
    let column = columns
        .iter()
        .find(|(known, header)| simple == self::simplify_name(known) || simple == self::simplify_name(header));
    column.filter(|_| !simple.is_empty()).map(|(known, _)| known.as_str())
}

/// The letters and digits of a name.
fn simplify_name(name: &str) -> String {
    name.chars().filter(|&c| c.is_alphanumeric() && !is_apostrophe(c)).flat_map(char::to_lowercase).collect()
}

fn is_apostrophe(character: char) -> bool {
    matches!(character, '\'' | '`' | '\u{b4}' | '\u{2bc}' | '\u{2018}' | '\u{2019}')
}

/// The placeholders of a text outside the tags of the template language.
pub(super) fn find_placeholders(text: &str, columns: &ColumnHeaders) -> Vec<Placeholder> {
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
        let placeholder = SYNTAXES.iter().find_map(|signs| signs.placeholder_at(text, at, columns));
        at = placeholder.as_ref().map_or(at + character.len_utf8(), |placeholder| placeholder.span.end);
        found.extend(placeholder);
    }
    found
}

impl PlaceholderSyntax {
    /// The placeholder that begins here.
    fn placeholder_at(&self, text: &str, at: usize, columns: &ColumnHeaders) -> Option<Placeholder> {
        let inner = text[at..].strip_prefix(self.open)?;
        let close = inner.find(self.close)?;
        let start = at + self.open.len();
        let (name, span) = (start..start + close, at..start + close + self.close.len());
        let behind = text[span.end..].chars().next();
        // `[text](address)` is a Markdown link, `#one#two` are tags.
        let continues = behind == Some('(') || self.open == "#" && behind.is_some_and(char::is_alphanumeric);
        ((self.is_name)(&inner[..close], columns) && !continues).then_some(Placeholder { span, name, rule: self.rule })
    }
}

fn is_words(inner: &str, _: &ColumnHeaders) -> bool {
    let name = inner.trim();
    let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let fits = |c: char| c.is_alphanumeric() || is_apostrophe(c) || matches!(c, '_' | ' ' | '.');
    starts && name.chars().count() <= 64 && name.chars().all(fits)
}

fn is_one_word(inner: &str, columns: &ColumnHeaders) -> bool {
    is_words(inner, columns) && !inner.contains(' ')
}

fn is_person_word(inner: &str, columns: &ColumnHeaders) -> bool {
    is_one_word(inner, columns) && is_person_value(inner, columns)
}

/// Whether words mean a value of a person: they are a column, a known word, or contain `_`.
fn is_person_value(inner: &str, columns: &ColumnHeaders) -> bool {
    let means_one = || PERSON_WORDS.contains(&simplify_name(inner).as_str()) || inner.contains('_');
    is_words(inner, columns) && (means_one() || find_column(inner, columns).is_some())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn test_columns() -> Vec<(String, String)> {
        [("first_name", "Ім'я"), ("shop", "Магазин поруч")].map(|(name, header)| (name.into(), header.into())).into()
    }

    fn find_texts(text: &str) -> Vec<&str> {
        find_placeholders(text, &test_columns()).into_iter().map(|placeholder| &text[placeholder.span]).collect()
    }

    #[test]
    fn foreign_placeholders_are_found_but_not_tags_or_words() {
        let cases: [(&str, &[&str]); 35] = [
            ("Hi {name}!", &["{name}"]),
            ("Hi { first name }, {ім'я}", &["{ first name }", "{ім'я}"]),
            ("{Ім’я} {Ім`я} {Імʼя}", &["{Ім’я}", "{Ім`я}", "{Імʼя}"]),
            ("[Місто] [Магазин поруч] [Знижка]", &["[Місто]", "[Магазин поруч]"]),
            ("<first_name> <Ім'я> <3 <b>", &["<first_name>", "<Ім'я>"]),
            ("((first_name)) шкода(( приходьте ще)) f((x))", &["((first_name))"]),
            ("#first_name#, #sale #new #summer_sale#autumn_sale #summer_sale #1", &["#first_name#"]),
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
            ("a << b, 1 >> 2 <name>", &["<name>"]),
            ("${name}, ${Name}", &["${name}", "${Name}"]),
            ("$5 ${{ price }} ${", &[]),
            ("#{name} {# note #}", &["#{name}"]),
            ("{!Contact.FirstName} {$name}", &["{!Contact.FirstName}", "{$name}"]),
            ("{! name", &[]),
            ("%%code%%, 50%% on all, 20%% on some", &["%%code%%"]),
            ("[[name]] [[1]]", &["[[name]]"]),
            ("<%= name %> <%", &["<%= name %>"]),
            ("5 <<< 6 >>> 7", &[]),
            ("*|FNAME|*", &["*|FNAME|*"]),
            ("{name} {{ x", &["{name}"]),
        ];
        for (text, expected) in cases {
            assert_eq!(find_texts(text), expected, "{text}");
        }
    }

    #[test]
    fn help_suggests_the_column_or_how_to_name_it() {
        for (text, help) in [
            ("{Ім’я}", "write `{{ first_name }}` for"),
            ("[FIRST NAME]", "write `{{ first_name }}` for"),
            ("[магазин поруч]", "write `{{ shop }}` for"),
            ("%plan%", "write `{{ plan }}` for"),
            ("{today}", "write `{{ today }}` for"),
            ("${plan}", "write `{{ plan }}` for the recipient's value, or `${{ plan }}` for a price in dollars"),
            ("%%plan%%", "write `{{ plan }}` for"),
            ("{!Contact.FirstName}", "write `{{ first_name }}` for"),
            ("{!Contact.LastName}", "write `{{ last_name }}` for"),
            ("*|FNAME|*", "write `{{ first_name }}` for"),
            ("*|LNAME|*", "write `{{ last_name }}` for the recipient's value; put the column's name"),
            ("{Місто}", "as in `columns: { my_name: \"Місто\" }`, and write `{{ my_name }}`"),
        ] {
            let columns = test_columns();
            let finding = find_placeholders(text, &columns)[0].to_finding(text, &columns);
            assert!(finding.help.as_ref().unwrap().contains(help), "{text}: {finding:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-zA-Z.{}%$!=\\[\\]*|<># їя(]{0,60}") {
            let _ = find_texts(&text);
        }
    }
}
