//! Rules about the wording of messages: alphabets, unfinished text, costly characters, captions and one-time codes.

use std::cmp::Reverse;
use std::ops::Range;

use crate::check::{CostlyRows, Survey};
use campaign_content::message::{TextProblem, constant_parts, cyrillic_lookalike, latin_lookalike, problem_at};
use campaign_core::define_rules;
use campaign_core::domain::{
    self, CostlyCharacters, NamedTemplate, OperationKind, Stage, TextLimit, keyboard_replacement,
};
use campaign_core::finding::Finding;
use campaign_manifest::{CampaignBrief, Profile};

define_rules! {
    TEXTS:
    warning TWO_SCRIPTS = "two-scripts" {
        cause: "A word mixes Latin and Cyrillic letters. It looks right, but spam filters might block it, and an SMS \
                can cost more.",
        example: ["message: \"Знижкa 20%\"                       # the last letter is Latin"],
        fix: "type the word again, using a single keyboard layout",
    }
    warning UNFINISHED_TEXT = "unfinished-text" {
        cause: "A placeholder for missing text would be sent.",
        example: ["message: \"TODO: ask Olena for the text\""],
        fix: "write the final text",
    }
    note LONG_BUTTON = "long-button" {
        cause: "A Viber button has more than 19 characters. Up to 30 are allowed, but some accounts allow only 19.",
        example: [
            "channels: [{ viber: { signature: OlenaCo, message: Hi, button: \"Shop the autumn sale now\",",
            "                      link: \"https://shop.example\", image: \"https://shop.example/a.png\" } }]",
        ],
        fix: "shorten the button text to 19 characters, or ask the gateway's support team what your account allows",
    }
    warning CODE_FOR_ALL = "code-for-all" {
        cause: "All recipients would get the same code. Telegram and verification calls are for one-time codes only.",
        example: ["channels: [{ telegram: { message: \"1234\" } }]"],
        fix: "send each recipient their own code, for example with `{{ code }}`, or use another channel",
    }
    error CODES_ONLY = "codes-only" {
        cause: "Telegram sends only one-time codes. The gateway accepts 4 to 8 digits, without words or spaces.",
        example: ["channels: [{ telegram: { message: \"Your code: {{ code }}\" } }]"],
        fix: "write only the code, `message: \"{{ code }}\"`, or use another channel for text",
    }
}

define_rules! {
    RECIPIENTS:
    warning COSTLY_CHARACTER = "costly-character" {
        cause: "A character makes an SMS longer. With characters outside the GSM alphabet, a part has room for 67 \
                characters instead of 153, and each part is billed.",
        example: ["message: \"It’s your last chance to save 20% on everything, online and in all of our shops.\""],
        fix: "use another character, let `plain: quotes` or `plain: latin` replace it, or accept the extra cost",
    }
    note SAME_FOR_ALL = "same-for-all" {
        cause: "No message uses a column of the list. The list has names, so you might have forgotten a greeting.",
        example: [
            "message: \"-20% on everything\"",
            "list.csv: phone,first_name",
            "          380501234567,Olena",
            "          380671234567,Taras",
        ],
        fix: "add the name, for example `{{ first_name }}`, unless everyone should get the same message",
    }
}

const TWO_SCRIPTS_HELP: &str = "type the word again, using a single keyboard layout";

/// Reports words with mixed alphabets in the constant parts of a text.
pub(super) fn check_mixed_alphabets(text: &NamedTemplate) -> Vec<TextProblem> {
    let words = constant_parts(text).filter_map(|(part, part_span)| {
        let word = find_mixed_word(part)?;
        Some((part[word.clone()].to_owned(), part_span.start + word.start..part_span.start + word.end))
    });
    words.map(|(word, span)| problem_at(text, span, &TWO_SCRIPTS, describe_word(&word), TWO_SCRIPTS_HELP)).collect()
}

/// A finding about words with mixed alphabets in cells that messages show.
pub(super) fn report_mixed_alphabets(column: &str, example: &str, rows: &str) -> Finding {
    let message = format!("{}, in the column `{column}` of {rows}", describe_word(example));
    Finding::new(&TWO_SCRIPTS, message).help("retype the words in the list, using a single keyboard layout")
}

fn describe_word(word: &str) -> String {
    let quote_letters = |is_wanted: fn(char) -> bool| -> Vec<String> {
        word.chars().filter(|c| is_wanted(*c)).map(|c| format!("`{c}`")).collect()
    };
    let (latin, cyrillic) = (quote_letters(|c| c.is_ascii_alphabetic()), quote_letters(is_cyrillic));
    match latin.len() <= cyrillic.len() {
        true => format!("the Cyrillic word `{word}` contains the Latin {}", format_letters(&latin)),
        false => format!("the Latin word `{word}` contains the Cyrillic {}", format_letters(&cyrillic)),
    }
}

/// Formats letters after the noun “letter” or “letters”: ``letters `a` and `o` ``.
fn format_letters(letters: &[String]) -> String {
    let noun = if letters.len() == 1 { "letter" } else { "letters" };
    format!("{noun} {}", letters.join(" and "))
}

/// The first word of a text that mixes alphabets.
pub(in crate::check) fn find_mixed_word(text: &str) -> Option<Range<usize>> {
    if text.is_ascii() || !text.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    let mut rest = text;
    loop {
        let start = text.len() - rest.len() + rest.find(char::is_alphabetic)?;
        let word = &text[start..];
        let word = &word[..word.find(|c: char| !c.is_alphabetic()).unwrap_or(word.len())];
        if has_wrong_alphabet_letters(word) {
            return Some(start..start + word.len());
        }
        rest = &text[start + word.len()..];
    }
}

/// Whether a word has letters of one alphabet in place of lookalikes from another alphabet.
///
/// A foreign word with a native ending, such as `VIPам` or `SMSу`, is not considered a mistake.
fn has_wrong_alphabet_letters(word: &str) -> bool {
    let letters = |is_part: fn(char) -> bool| word.chars().filter(move |c| is_part(*c));
    let (latin, cyrillic) = (letters(|c| c.is_ascii_alphabetic()), letters(is_cyrillic));
    if latin.clone().next().is_none() || cyrillic.clone().next().is_none() {
        return false;
    }
    let stem = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
    let has_native_ending = stem >= 2 && word[stem..].chars().all(is_cyrillic);
    let meant_as_cyrillic = latin.clone().all(|c| cyrillic_lookalike(c).is_some());
    let meant_as_latin = cyrillic.clone().all(|c| latin_lookalike(c).is_some());
    let is_foreign =
        has_native_ending && (word[..stem].bytes().all(|byte| byte.is_ascii_uppercase()) || !meant_as_cyrillic);
    (meant_as_cyrillic || meant_as_latin) && !is_foreign
}

fn is_cyrillic(c: char) -> bool {
    ('\u{400}'..='\u{52f}').contains(&c)
}

const PLACEHOLDER_WORDS: [&str; 6] = ["TODO", "FIXME", "TBD", "XXX", "XXXX", "ХХХ"];

/// Reports placeholder words in the constant parts of a text.
pub(super) fn check_unfinished_text(text: &NamedTemplate) -> Vec<TextProblem> {
    let mut problems = Vec::new();
    for (part, part_span) in constant_parts(text) {
        let lorem = part.to_ascii_lowercase().find("lorem ipsum").map(|start| (start, "lorem ipsum".len()));
        let words = part.split(|c: char| !c.is_alphanumeric()).filter(|word| PLACEHOLDER_WORDS.contains(word));
        let words = words.map(|word| (word.as_ptr() as usize - part.as_ptr() as usize, word.len()));
        for (start, length) in lorem.into_iter().chain(words) {
            let span = part_span.start + start..part_span.start + start + length;
            let message = format!("`{}` would be sent literally", &text.source[span.clone()]);
            problems.push(problem_at(text, span, &UNFINISHED_TEXT, message, "write the final text"));
        }
    }
    problems
}

/// The maximum number of groups of characters that are reported.
const MAX_NAMED: usize = 5;

/// Findings about characters that make SMS longer, most expensive first, with the extra cost if the profile has a
/// price.
pub fn check_costly_characters(survey: &Survey, brief: &CampaignBrief, profile: Option<&Profile>) -> Vec<Finding> {
    let mut costly: Vec<_> = survey.costly.iter().collect();
    costly.sort_by_key(|(_, costly)| Reverse(costly.extra_parts));
    // If the SMS is a fallback, it reaches only some recipients.
    let arms = brief.list_arms();
    let about = if arms.iter().any(|arm| arm.content.stages.len() > 1) { "at most" } else { "about" };
    let mut channels = arms.iter().flat_map(|arm| &arm.content.stages).map(Stage::channel);
    let billed = channels.find(|channel| channel.facts().billed_by_part);
    let describe_price = |more: u64| {
        let profile = profile?;
        let price = profile.price_per_message(billed?)?;
        // The countries of these rows are not known here.
        let about = if price.by_country.is_empty() { about } else { "at most" };
        let price = price.highest_price().saturating_mul(more);
        Some(format!(", {about} {price} {}", profile.currency.as_deref().unwrap_or_default()).trim_end().to_owned())
    };
    let create_finding = |(characters, costly): (&Vec<char>, &CostlyRows)| {
        let CostlyRows { rows, extra_parts: more, first: (parts, without) } = costly;
        let (names, make) = (format_characters(characters), if characters.len() == 1 { "makes" } else { "make" });
        let row = rows.min().unwrap_or_default();
        let mut message = format!("{names} in row {row} {make} the SMS {parts} parts long instead of {without}");
        if rows.len() > 1 {
            message += &format!("; in total, {more} extra parts in {} rows", rows.len());
        }
        message += &describe_price(*more).unwrap_or_default();
        Finding::new(&COSTLY_CHARACTER, message).help(suggest_replacements(characters))
    };
    costly.into_iter().take(MAX_NAMED).map(create_finding).collect()
}

/// A finding about characters that make a single SMS longer.
pub(super) fn check_costly_characters_in_message(text: &str) -> Option<Finding> {
    let CostlyCharacters { characters, parts, without } = domain::find_costly_characters(text)?;
    let make = if characters.len() == 1 { "makes" } else { "make" };
    let message = format!("{} {make} the SMS {parts} parts long instead of {without}", format_characters(&characters));
    let replacements: Option<Vec<&str>> = characters.iter().map(|c| keyboard_replacement(*c)).collect();
    let help = match replacements {
        Some(replacements) => {
            format!("write {} instead", join_with_and(replacements.into_iter().map(describe_replacement).collect()))
        }
        None => "use another character, or accept the extra cost".to_owned(),
    };
    Some(Finding::new(&COSTLY_CHARACTER, message).help(help))
}

/// Formats characters with code points, because some characters look alike.
fn format_characters(characters: &[char]) -> String {
    let format_character = |c: &char| format!("`{c}` (U+{:04X})", u32::from(*c));
    join_with_and(characters.iter().map(format_character).collect())
}

/// Joins items: `a, b and c`.
fn join_with_and(items: Vec<String>) -> String {
    match items.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        items => items.concat(),
    }
}

/// Suggests replacements for characters that make SMS longer.
fn suggest_replacements(characters: &[char]) -> String {
    let typed: Option<Vec<&str>> = characters.iter().map(|c| keyboard_replacement(*c)).collect();
    match typed {
        Some(mut typed) => {
            typed.dedup();
            let typed = join_with_and(typed.into_iter().map(describe_replacement).collect());
            format!("write {typed} instead, or set `plain: quotes` for the SMS")
        }
        None if characters.iter().all(|c| "[]{}".contains(*c)) => "write `(` and `)` instead".to_owned(),
        None if characters.iter().all(|c| "^\\~|€\u{c}".contains(*c)) => match characters {
            [_] => "remove this character, which counts as two, or accept the extra cost".to_owned(),
            _ => "remove these characters, which count as two each, or accept the extra cost".to_owned(),
        },
        None => "use another character, or set `plain: latin` for the SMS".to_owned(),
    }
}

fn describe_replacement(replacement: &str) -> String {
    match replacement {
        "" => "nothing".to_owned(),
        " " => "an ordinary space".to_owned(),
        "\n" => "an ordinary line break".to_owned(),
        typed => format!("`{typed}`"),
    }
}

/// Finds constant button captions that are longer than some accounts allow.
pub(super) fn check_long_buttons(stage: &Stage<NamedTemplate>) -> Vec<TextProblem> {
    let is_constant = |text: &NamedTemplate| !text.source.contains("{{") && !text.source.contains("{%");
    let problems = stage.texts().filter_map(|(field, text)| {
        let (safe, length) = (field.safe_length?, text.source.chars().count());
        let (title, noun) = (stage.channel().facts().title, field.noun);
        (is_constant(text) && length > safe).then(|| {
            let message = format!("the {title} {noun} has {length} characters, but some accounts allow only {safe}");
            let help = "shorten the text, or ask the gateway's support team what your account allows";
            problem_at(text, 0..text.source.len(), &LONG_BUTTON, message, help)
        })
    });
    problems.collect()
}

/// A warning about a one-time code that is the same for all recipients.
pub(super) fn check_constant_code(stage: &Stage<NamedTemplate>) -> Vec<TextProblem> {
    let facts = stage.channel().facts();
    let messages = stage.texts().filter(|(field, _)| facts.personal && field.key == "message");
    let constant_messages = messages.filter(|(_, text)| !text.source.contains("{{") && !text.source.contains("{%"));
    let report_text = |(_, text): (_, &NamedTemplate)| {
        let title = facts.title;
        let message = format!("all recipients get the same {title} message, but {title} is for one-time codes");
        let help = "insert each recipient's own code, for example with `{{ code }}`, or use another channel";
        problem_at(text, 0..text.source.len(), &CODE_FOR_ALL, message, help)
    };
    constant_messages.map(report_text).collect()
}

/// An error about the first constant words in the text of a one-time code.
pub(super) fn check_code_text(stage: &Stage<NamedTemplate>) -> Vec<TextProblem> {
    let codes = stage.texts().filter(|(field, _)| matches!(field.limit, TextLimit::Digits { .. }));
    // Texts without tags are checked elsewhere as a whole, and text within a condition might not be sent.
    let filled = codes.filter(|(_, text)| text.source.contains("{{") && !text.source.contains("{%"));
    let report_text = |(_, text): (_, &NamedTemplate)| {
        let (words, span) = constant_parts(text).find(|(part, _)| part.bytes().any(|byte| !byte.is_ascii_digit()))?;
        let title = stage.channel().facts().title;
        let words = if words.trim().is_empty() { "a space".to_owned() } else { format!("`{}`", words.trim()) };
        let message = format!("{title} cannot send {words}: it accepts only a code of 4 to 8 digits");
        let help = "write only the code, for example `message: \"{{ code }}\"`, or use `sms` or `viber` for text";
        Some(problem_at(text, span, &CODES_ONLY, message, help))
    };
    filled.filter_map(report_text).collect()
}

/// Words at the start or end of the headers of name columns, in lower case.
const NAME_HEADER_WORDS: [&str; 12] =
    ["name", "ім'я", "ім’я", "імя", "имя", "піб", "фио", "vorname", "prénom", "prenom", "nombre", "imię"];

/// A note that no message uses a column although the list has names.
pub(super) fn check_constant_message(survey: &Survey, kind: OperationKind) -> Option<Finding> {
    if kind.is_single() || survey.columns.iter().any(|column| column.is_used) || survey.count_planned() < 2 {
        return None;
    }
    let column = survey.columns.iter().find(|column| is_name_header(&column.header))?;
    let message =
        format!("no message contains the recipient's name, although the column `{}` contains names", column.header);
    Some(Finding::new(&SAME_FOR_ALL, message).help("to greet recipients by name, use the column in the message"))
}

fn is_name_header(header: &str) -> bool {
    let header = header.trim().to_lowercase();
    NAME_HEADER_WORDS.iter().any(|name| header.starts_with(name) || header.ends_with(name)) && !header.contains("file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookalike_letters_are_found_and_foreign_words_are_not() {
        for (text, word) in [
            ("Пpивіт, Олено", Some("Пpивіт")),
            ("Знижка на вcе", Some("вcе")),
            ("Big sаle", Some("sаle")),
            ("Оlena", Some("Оlena")),
            ("Привіт, Олено! Shop now", None),
            ("iPhone'ом і SMSкою, VIPам, COVIDу, Viberа, TOPовий, QR-код", None),
            ("plain ascii", None),
            ("самі літери", None),
            ("Straße, naïve", None),
            ("", None),
        ] {
            assert_eq!(find_mixed_word(text).map(|at| &text[at]), word, "{text}");
        }
        assert!(describe_word("Пpивіт").contains("contains the Latin letter `p`"));
        assert!(describe_word("sаle").contains("contains the Cyrillic letter `а`"));
    }

    #[test]
    fn several_costly_characters_are_joined_with_commas() {
        assert_eq!(format_characters(&['’']), "`’` (U+2019)");
        assert_eq!(format_characters(&['’', '—', '…']), "`’` (U+2019), `—` (U+2014) and `…` (U+2026)");
        assert!(suggest_replacements(&['’', '“', '—']).starts_with("write `'`, `\"` and `-` instead"));
    }

    #[test]
    fn placeholder_words_are_found() {
        let found =
            |source: &str| check_unfinished_text(&NamedTemplate { name: "t".into(), source: source.into() }).len();
        assert_eq!(found("Hello {{ name }}, TODO: price. Lorem ipsum"), 2);
        assert_eq!(found("Todo incluido, size XXXL, TODOS {# TODO #}"), 0);
    }
}
