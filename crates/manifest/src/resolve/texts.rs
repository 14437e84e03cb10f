//! Texts of channels: inline, from a text file or chosen by a column.
//!
//! This module also finds mistakes that would send a wrong text: text that YAML misreads, and placeholders of other
//! programs, such as `{name}` or `%name%`.

use std::ops::Range;

use super::timing::has_placeholder;
use super::{CampaignDay, Resolver};
use crate::keys::has_bare_texts;
use crate::source_map::align_characters;
use crate::text_folders::unify_line_breaks;
use crate::yaml::{MapEntry, Node, Scalar};
use campaign_core::domain::NamedTemplate;
use campaign_core::domain::variable::{is_built_in, is_variable};
use campaign_core::finding::{
    Finding, Rule, SourceLocation, SourceText, did_you_mean, join_alternatives, quote_for_yaml, rules,
};

/// The maximum size of an inline text, in bytes; the same as for a text file.
const MAX_BYTES: usize = 64 * 1024;
/// Extensions that distinguish the name of a text file from a text.
const ENDINGS: [&str; 6] = [".txt", ".tera", ".md", ".html", ".j2", ".tpl"];

/// Stands in for the text file of a future day, which might not exist yet.
const PENDING_TEXT: &str = "…";

impl Resolver<'_> {
    /// The text under a key. `path` is the path of the key, which becomes the name of the text.
    pub(super) fn resolve_text(&mut self, path: String, entry: &MapEntry) -> Option<NamedTemplate> {
        match entry.value.as_scalar() {
            Some(scalar) if !scalar.is_null() => self.resolve_inline_text(path, entry, scalar),
            Some(_) => None,
            None if entry.value.find_entry("by").is_some() => self.resolve_chosen_text(&path, entry),
            None => self.resolve_text_file(entry),
        }
    }

    fn resolve_inline_text(&mut self, path: String, entry: &MapEntry, scalar: &Scalar) -> Option<NamedTemplate> {
        self.report_cut_text(&path, &entry.value);
        if scalar.text.trim().is_empty() {
            let finding = Finding::new(&rules::EMPTY_TEXT, format!("`{}` is empty", entry.key)).help("write a message");
            self.report.add(&entry.key_span, finding);
            return None;
        }
        // The final line break of a block is not meant to be sent.
        let typed = scalar.text.as_str();
        let text = if scalar.is_block() { typed.strip_suffix('\n').unwrap_or(typed) } else { typed };
        let text = unify_line_breaks(text);
        if matches!(entry.key.as_str(), "message" | "caption") && is_file_name(&text) {
            let message = format!("`{text}` looks like a file name, but would be sent as the message text");
            let help = format!("write `{}: {{ file: {text} }}`", entry.key);
            self.report.add(&entry.value.span, Finding::new(&rules::LOOKS_LIKE_A_FILE, message).help(help));
        }
        if text.len() > MAX_BYTES {
            let finding = Finding::new(&rules::TEXT_TOO_LONG, format!("`{}` is longer than 64 KiB", entry.key));
            self.report.add(
                &entry.key_span,
                finding.help("check whether a closing quote is missing; messages are never that long"),
            );
            return None;
        }
        self.warn_about_placeholders(&entry.value, scalar, &text);
        Some(NamedTemplate { name: path, source: text })
    }

    fn resolve_text_file(&mut self, entry: &MapEntry) -> Option<NamedTemplate> {
        let file = &entry.value.find_entry("file")?.value;
        for other in ["texts", "else"].iter().filter_map(|key| entry.value.find_entry(key)) {
            let message = format!("`{}` has both `file` and `{}`", entry.key, other.key);
            let help = format!(
                "keep one of them; `{}` belongs to `by: COLUMN`, which selects one of several message texts",
                other.key
            );
            self.report.add(&other.key_span, Finding::new(&rules::ONE_OF_TWO, message).help(help));
        }
        let typed_name = file.as_scalar().filter(|scalar| !scalar.is_null())?.text.trim();
        let name = &self.resolve_dated_name(typed_name, &file.span)?;
        let text_file = match self.folders.find_text(name) {
            Ok(text_file) => text_file,
            // The texts of a future day are unknown; they are checked on the day itself.
            Err(_) if matches!(self.day, CampaignDay::Coming(_)) && has_placeholder(typed_name) => {
                return Some(NamedTemplate { name: name.clone(), source: PENDING_TEXT.to_owned() });
            }
            Err(problem) => {
                self.report.add(&file.span, Finding::new(&rules::TEXT_FILE, problem.message).help(problem.help));
                return None;
            }
        };
        if text_file.text.trim().is_empty() {
            let finding =
                Finding::new(&rules::EMPTY_TEXT, format!("the text file `{}` is empty", text_file.path.display()));
            self.report.add(&file.span, finding.help("write the message text in this file"));
            return None;
        }
        let source = SourceText::new(text_file.path, text_file.text.as_str());
        for placeholder in find_placeholders(&text_file.text, &self.columns) {
            let finding = placeholder
                .to_finding(&text_file.text, &self.columns)
                .at(SourceLocation::new(&source, placeholder.span));
            self.report.findings.push(finding);
        }
        self.files.insert(name.clone(), source);
        Some(NamedTemplate { name: name.clone(), source: text_file.text })
    }

    /// Reports an unquoted text that is cut off by ` #`.
    ///
    /// After a sender name, ` #` with at least two spaces before it counts as a comment. After other texts, a part of
    /// the text is probably lost.
    pub(super) fn report_cut_text(&mut self, name: &str, node: &Node) {
        if !node.as_scalar().is_some_and(Scalar::is_plain) {
            return;
        }
        let end = node.span.end;
        let rest = self.report.source.text()[end..].lines().next().unwrap_or("");
        let gap = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let is_comment = gap > 1 && name.ends_with(".signature");
        if gap > 0 && !is_comment && rest.trim_start().starts_with('#') {
            let cut = end..end + rest.trim_end().len();
            let finding = Finding::new(
                &rules::CUT_TEXT,
                "YAML reads the part after ` #` as a comment, so the value is cut off there",
            );
            let help = "to keep ` #`, put the whole value in quotes; if it starts a comment, put only the part before it in quotes";
            self.report.add(&cut, finding.help(help));
        }
    }

    /// Warns about placeholders in the syntax of other programs. Each finding has the exact location of the
    /// placeholder, if that is known.
    fn warn_about_placeholders(&mut self, node: &Node, scalar: &Scalar, text: &str) {
        let placeholders = find_placeholders(text, &self.columns);
        if placeholders.is_empty() {
            return;
        }
        let char_offsets = align_characters(self.report.source_slice(&node.span), scalar);
        let count_chars = |to: usize| text.get(..to).map_or(0, |text| text.chars().count());
        for placeholder in placeholders {
            let span = &placeholder.span;
            let exact = char_offsets.as_ref().and_then(|char_offsets| {
                let (first, last) =
                    (*char_offsets.get(count_chars(span.start))?, *char_offsets.get(count_chars(span.end) - 1)?);
                Some(node.span.start + first..node.span.start + last + 1)
            });
            self.report.add(&exact.unwrap_or_else(|| node.span.clone()), placeholder.to_finding(text, &self.columns));
        }
    }
}

fn is_file_name(text: &str) -> bool {
    let is_single_word = !text.contains(|c: char| c.is_whitespace() || c == '{');
    is_single_word
        && !text.contains("://")
        && ENDINGS.iter().any(|ending| text.ends_with(ending) && text.len() > ending.len())
}

impl Resolver<'_> {
    /// The text under a key with `by`. `path` is the path of the key, which becomes the name of the text.
    pub(super) fn resolve_chosen_text(&mut self, path: &str, entry: &MapEntry) -> Option<NamedTemplate> {
        let by =
            entry.value.find_entry("by")?.value.as_scalar().filter(|scalar| !scalar.is_null())?.text.trim().to_owned();
        let Some(texts) = entry
            .value
            .find_entry("texts")
            .and_then(|texts| texts.value.as_entries())
            .filter(|texts| !texts.is_empty())
        else {
            // Texts next to `by` are already reported.
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
        // Each value of the column in lower case, with the name of its text.
        let mut chosen: Vec<(String, String)> = Vec::new();
        let mut is_complete = true;
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
                is_complete = false;
                continue;
            }
            let text_path = format!("{path}.texts.{}", text.key);
            let Some(NamedTemplate { name, source }) = self.resolve_text(text_path.clone(), text) else {
                is_complete = false;
                continue;
            };
            // The text file of a future day might not exist yet, so its placeholder is added like an inline text.
            if name == text_path || self.folders.find_text(&name).is_err() {
                self.folders.add_inline_text(name.clone(), source);
            }
            chosen.push((word, name));
        }
        // Even if a text is missing, the other texts are checked.
        self.gaps.any |= !is_complete;
        let words = || chosen.iter().map(|(word, _)| word.as_str());
        let fallback = match entry
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
                let help = meant.unwrap_or_else(|| {
                    format!(
                        "`else` names one of the texts: add the text for all other values under `texts`, as in `other: \
                         \"…\"`, and write `else: other`; or write one of {}",
                        join_alternatives(words())
                    )
                });
                self.report.add(&other.value.span, finding.help(help));
                self.gaps.any = true;
                None
            }
        };
        if chosen.is_empty() {
            return None;
        }
        Some(NamedTemplate { name: path.to_owned(), source: build_chooser(&by, &chosen, fallback.as_deref()) })
    }
}

/// Builds the template that includes the text for the value of the column `by`.
///
/// `texts` contains each value in lower case with the name of its text. All other values get the text of `fallback`.
fn build_chooser(by: &str, texts: &[(String, String)], fallback: Option<&str>) -> String {
    let cell = if is_variable(by) { by.to_owned() } else { format!("recipient[{}]", quote_text(by)) };
    let mut source = String::new();
    for (index, (word, name)) in texts.iter().enumerate() {
        let keyword = if index == 0 { "if" } else { "elif" };
        source +=
            &format!("{{% {keyword} ({cell} | trim | lower) == \"{word}\" %}}{{% include {} %}}", quote_text(name));
    }
    let fallback_name = fallback.and_then(|value| texts.iter().find(|(word, _)| word == value)).map(|(_, name)| name);
    source += &match fallback_name {
        Some(name) => format!("{{% else %}}{{% include {} %}}{{% endif %}}", quote_text(name)),
        None => {
            let words: Vec<&str> = texts.iter().map(|(word, _)| word.as_str()).collect();
            let reason = format!("{}, only for {}", missing_text_reason(by), words.join(", "));
            format!("{{% else %}}{{{{ throw(message={}) }}}}{{% endif %}}", quote_text(&reason))
        }
    };
    source
}

/// The beginning of the reason for skipping a row that has no text for its value in the column `by`.
pub fn missing_text_reason(by: &str) -> String {
    format!("there is no text for the value of {by}")
}

/// Puts a text in single quotes if it contains double quotes, or else in double quotes.
fn quote_text(text: &str) -> String {
    let quote = if text.contains('"') { '\'' } else { '"' };
    format!("{quote}{text}{quote}")
}

/// The names that texts use for columns, each with the column's header.
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

/// The placeholder syntaxes of other programs. Longer delimiters come before their prefixes.
const SYNTAXES: [PlaceholderSyntax; 15] = [
    PlaceholderSyntax { open: "*|", close: "|*", is_name: consists_of_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "<<", close: ">>", is_name: consists_of_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "<%=", close: "%>", is_name: consists_of_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "${", close: "}", is_name: consists_of_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "#{", close: "}", is_name: consists_of_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "{!", close: "}", is_name: consists_of_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "{$", close: "}", is_name: consists_of_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "[[", close: "]]", is_name: consists_of_words, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "{", close: "}", is_name: consists_of_words, rule: &rules::SINGLE_BRACES },
    PlaceholderSyntax { open: "%%", close: "%%", is_name: is_one_word, rule: &rules::FOREIGN_PLACEHOLDER },
    // These characters also occur in prices, discounts, tags and ordinary text.
    PlaceholderSyntax { open: "%", close: "%", is_name: is_one_word, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "[", close: "]", is_name: is_recipient_value, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "<", close: ">", is_name: is_recipient_value, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "((", close: "))", is_name: is_recipient_value, rule: &rules::FOREIGN_PLACEHOLDER },
    PlaceholderSyntax { open: "#", close: "#", is_name: is_recipient_word, rule: &rules::FOREIGN_PLACEHOLDER },
];
/// The delimiters of the template language.
const TAGS: [(&str, &str); 3] = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")];
/// Words in brackets that stand for a recipient's value. Other words in brackets are ordinary text.
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
        let last_part = name.rsplit('.').next().unwrap_or(name).trim();
        if let Some(name) = find_column(name, columns).or_else(|| find_column(last_part, columns)) {
            return finding.help(suggest_replacement(name, written));
        }
        if let Some(usual) = guess_column_name(last_part).filter(|usual| *usual != name) {
            let help = suggest_replacement(&usual, written);
            return finding.help(format!("{help}; put the column's name between the braces"));
        }
        finding.help(match is_known.then_some(name) {
            Some(name) => suggest_replacement(name, written),
            None => format!(
                "for the column `{name}`, define a name in Latin letters under `recipients`, as in `columns: {{ \
                 my_name: {} }}`, and write `{{{{ my_name }}}}`",
                quote_for_yaml(name)
            ),
        })
    }
}

/// The remedy for a placeholder that stands for the value called `name`.
fn suggest_replacement(name: &str, written: &str) -> String {
    let price_hint = if written.starts_with("${") {
        format!(", or `${{{{ {name} }}}}` for a price in dollars")
    } else {
        String::new()
    };
    format!("write `{{{{ {name} }}}}` for the recipient's value{price_hint}")
}

/// The usual column name for a name from another program, such as `first_name` for `FirstName` and `FNAME`. `None` if
/// the name has no Latin words.
fn guess_column_name(name: &str) -> Option<String> {
    let expand_abbreviation = |short: &str| match short {
        "fname" => Some("first_name"),
        "lname" => Some("last_name"),
        _ => None,
    };
    if let Some(usual) = expand_abbreviation(&simplify_name(name)) {
        return Some(usual.to_owned());
    }
    let mut words = String::new();
    let mut previous = None;
    for character in name.chars() {
        if character.is_uppercase() && previous.is_some_and(|previous: char| previous.is_lowercase()) {
            words.push('_');
        }
        words.extend(character.to_lowercase());
        previous = Some(character);
    }
    // A name in capitals might be a header of the list.
    let is_mixed = name.contains(char::is_lowercase);
    (is_mixed && is_variable(&words)).then_some(words)
}

/// Finds a column by name or header in any spelling, and returns the name that texts use for the column.
fn find_column<'c>(name: &str, columns: &'c ColumnHeaders) -> Option<&'c str> {
    let simplified = simplify_name(name);
    let column = columns
        .iter()
        .find(|(known, header)| simplified == simplify_name(known) || simplified == simplify_name(header));
    column.filter(|_| !simplified.is_empty()).map(|(known, _)| known.as_str())
}

/// The letters and digits of a name in lower case, without apostrophes.
fn simplify_name(name: &str) -> String {
    name.chars().filter(|&c| c.is_alphanumeric() && !is_apostrophe(c)).flat_map(char::to_lowercase).collect()
}

fn is_apostrophe(character: char) -> bool {
    matches!(character, '\'' | '`' | '\u{b4}' | '\u{2bc}' | '\u{2018}' | '\u{2019}')
}

/// The placeholders of a text outside the tags of the template language.
pub(super) fn find_placeholders(text: &str, columns: &ColumnHeaders) -> Vec<Placeholder> {
    let (mut placeholders, mut at) = (Vec::new(), 0);
    while let Some(character) = text[at..].chars().next() {
        let rest = &text[at..];
        if let Some((begin, end)) = TAGS.into_iter().find(|(begin, _)| rest.starts_with(begin)) {
            match rest[begin.len()..].find(end) {
                Some(close) => at += begin.len() + close + end.len(),
                None => break,
            }
            continue;
        }
        let placeholder = SYNTAXES.iter().find_map(|syntax| syntax.placeholder_at(text, at, columns));
        at = placeholder.as_ref().map_or(at + character.len_utf8(), |placeholder| placeholder.span.end);
        placeholders.extend(placeholder);
    }
    placeholders
}

impl PlaceholderSyntax {
    /// The placeholder that begins at the byte `at`, if there is one.
    fn placeholder_at(&self, text: &str, at: usize, columns: &ColumnHeaders) -> Option<Placeholder> {
        let inner = text[at..].strip_prefix(self.open)?;
        let close = inner.find(self.close)?;
        let start = at + self.open.len();
        let (name, span) = (start..start + close, at..start + close + self.close.len());
        let next = text[span.end..].chars().next();
        // `[text](address)` is a Markdown link, and `#one#two` is two hashtags.
        let continues = next == Some('(') || self.open == "#" && next.is_some_and(char::is_alphanumeric);
        ((self.is_name)(&inner[..close], columns) && !continues).then_some(Placeholder { span, name, rule: self.rule })
    }
}

/// The maximum length of a name in a placeholder, in characters.
const MAX_NAME_LENGTH: usize = 64;

fn consists_of_words(inner: &str, _: &ColumnHeaders) -> bool {
    let name = inner.trim();
    let has_valid_start = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let fits = |c: char| c.is_alphanumeric() || is_apostrophe(c) || matches!(c, '_' | ' ' | '.');
    has_valid_start && name.chars().count() <= MAX_NAME_LENGTH && name.chars().all(fits)
}

fn is_one_word(inner: &str, columns: &ColumnHeaders) -> bool {
    consists_of_words(inner, columns) && !inner.contains(' ')
}

fn is_recipient_word(inner: &str, columns: &ColumnHeaders) -> bool {
    is_one_word(inner, columns) && is_recipient_value(inner, columns)
}

/// Whether the words stand for a recipient's value, because they name a column, are a typical column name such as
/// `city`, or contain `_`.
fn is_recipient_value(inner: &str, columns: &ColumnHeaders) -> bool {
    let is_typical = || PERSON_WORDS.contains(&simplify_name(inner).as_str()) || inner.contains('_');
    consists_of_words(inner, columns) && (is_typical() || find_column(inner, columns).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_distinguished_from_texts() {
        for name in ["welcome.sms.txt", "templates/a.txt", "вітання.md"] {
            assert!(is_file_name(name), "{name}");
        }
        for text in ["see a.txt", ".txt", "https://x.example/a.html", "{{ file }}.txt", "Sale"] {
            assert!(!is_file_name(text), "{text}");
        }
    }
}

#[cfg(test)]
mod placeholder_tests {
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
        fn placeholder_search_never_panics(text in "[a-zA-Z.{}%$!=\\[\\]*|<># їя(]{0,60}") {
            let _ = find_texts(&text);
        }
    }
}
