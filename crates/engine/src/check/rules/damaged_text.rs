//! Text that a program damaged on its way into a cell or a template: its detection, and a rule for each kind of damage.
//!
//! Detection is pure and examines one text. A fast scan of the bytes comes first, because every used cell of a list is
//! examined.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use encoding_rs::{Encoding, WINDOWS_1251, WINDOWS_1252};

use super::markup;
use campaign_content::message::{TextProblem, constant_parts, problem_at};
use campaign_core::define_rules;
use campaign_core::domain::NamedTemplate;
use campaign_core::finding::Finding;

define_rules! {
    TEXTS:
    warning CONTROL_CHARACTER = "control-character" {
        cause: "A message or cell contains a control character. Phones show a box or nothing in its place, and the SMS \
                gets longer.",
        example: ["message: \"Sale\\x96today\""],
        fix: "remove the character, or export the list again as UTF-8; the character is often a dash or a quote from \
              another encoding",
    }
    warning LOST_LETTERS = "lost-letters" {
        cause: "Letters were replaced with `?` or U+FFFD. A program saved the text in an encoding that does not \
                support them.",
        example: ["message: \"????? ???????!\""],
        fix: "export the list again from its source as UTF-8, or type the text again; the original characters are lost",
    }
    warning MISREAD_ENCODING = "misread-encoding" {
        cause: "UTF-8 text was read with the wrong encoding. Non-ASCII letters became two or three other characters: \
                `cafÃ©` instead of `café`.",
        example: ["message: \"See you at the cafÃ©\""],
        fix: "export the list again from its source as UTF-8, or type the text again",
    }
}

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextDamage {
    /// Letters were replaced by `?` or by U+FFFD.
    LostLetters,
    /// The text contains a control character.
    ControlCharacter,
    /// The text is UTF-8 that was read in another encoding.
    MisreadEncoding,
    /// The text contains an HTML entity, such as `&#039;`.
    HtmlEntity,
}

/// The kinds of bytes in a text that need a closer look, one bit each.
#[derive(Clone, Copy)]
pub(in crate::check) struct ByteKinds(u8);

impl ByteKinds {
    pub(in crate::check) const NON_ASCII: u8 = 1;
    /// An ASCII control character other than a tab or a line break.
    const CONTROL: u8 = 1 << 1;
    const QUESTION_MARK: u8 = 1 << 2;
    const AMPERSAND: u8 = 1 << 3;
    pub(in crate::check) const BRACE: u8 = 1 << 4;
    /// White space in ASCII, and signs that end a link.
    pub(in crate::check) const LINK_END: u8 = 1 << 5;

    /// The kinds of each byte.
    const TABLE: [u8; 256] = {
        let (mut kinds, mut byte) = ([0; 256], 0);
        while byte < kinds.len() {
            kinds[byte] = match byte as u8 {
                b'\t' | b'\n' | b'\r' | b' ' | b'#' => Self::LINK_END,
                0x0b | 0x0c => Self::CONTROL | Self::LINK_END,
                ..b' ' | 0x7f => Self::CONTROL,
                b'&' => Self::AMPERSAND | Self::LINK_END,
                b'?' => Self::QUESTION_MARK,
                b'{' => Self::BRACE,
                0x80.. => Self::NON_ASCII,
                _ => 0,
            };
            byte += 1;
        }
        kinds
    };

    /// The kinds of all bytes of a text.
    pub(in crate::check) fn from_text(text: &str) -> Self {
        Self(text.bytes().fold(0, |kinds, byte| kinds | Self::TABLE[usize::from(byte)]))
    }

    /// Whether the text has a byte of one of these kinds.
    pub(in crate::check) fn contain(self, kinds: u8) -> bool {
        self.0 & kinds != 0
    }
}

/// The first damage in a text, and the byte range of the damaged word.
fn find_damage(text: &str) -> Option<(TextDamage, Range<usize>)> {
    find_damage_in(text, ByteKinds::from_text(text))
}

/// The first damage in a text with these kinds of bytes, and the byte range of the damaged word.
pub(in crate::check) fn find_damage_in(text: &str, kinds: ByteKinds) -> Option<(TextDamage, Range<usize>)> {
    let mut has_control_character = kinds.contain(ByteKinds::CONTROL);
    if kinds.contain(ByteKinds::NON_ASCII) && can_be_damaged(text.as_bytes()) {
        if let Some(at) = text.find('\u{fffd}') {
            return Some((TextDamage::LostLetters, find_word(text, at)));
        }
        // Misread letters can be control characters, so misread text is checked first.
        if let Some((word, _)) = find_misread_word(text) {
            return Some((TextDamage::MisreadEncoding, word));
        }
        has_control_character |= text.contains(is_c1_control);
    }
    if has_control_character && let Some(at) = text.find(|c: char| is_c1_control(c) || is_unusual_ascii_control(c)) {
        return Some((TextDamage::ControlCharacter, find_word(text, at)));
    }
    if kinds.contain(ByteKinds::QUESTION_MARK)
        && let Some(word) = find_lost_letters(text)
    {
        return Some((TextDamage::LostLetters, word));
    }
    if kinds.contain(ByteKinds::AMPERSAND) {
        return find_html_entities(text).into_iter().next().map(|entity| (TextDamage::HtmlEntity, entity));
    }
    None
}

/// Whether this is an ASCII control character other than a tab or a line break.
fn is_unusual_ascii_control(c: char) -> bool {
    c.is_ascii_control() && !matches!(c, '\t' | '\n' | '\r')
}

/// Whether this is a control character outside ASCII, which people do not type.
fn is_c1_control(c: char) -> bool {
    ('\u{80}'..='\u{9f}').contains(&c)
}

/// Whether UTF-8 bytes contain U+FFFD, a control character outside ASCII, or a byte pair of misread text.
fn can_be_damaged(bytes: &[u8]) -> bool {
    (0..bytes.len()).any(|at| match &bytes[at..] {
        [0xef, 0xbf, 0xbd, ..] | [0xc2, 0x80..=0x9f, ..] => true,
        // A UTF-8 lead byte that Windows-1251 shows as a Cyrillic letter, followed by a misread continuation byte.
        [0xd0, 0x92..=0xa1 | 0xb1 | 0xb2, next @ ..] | [0xd1, 0x80, next @ ..] => {
            matches!(next, [0xc2 | 0xd2 | 0xe2, ..] | [0xd0, 0x81..=0x8f, ..] | [0xd1, 0x91..=0x9f, ..])
        }
        // A UTF-8 lead byte that Windows-1252 shows as a letter from `Â` to `ô`, followed by a misread continuation
        // byte.
        [0xc3, 0x82..=0xb4, 0xc2 | 0xc5 | 0xc6 | 0xcb | 0xe2, ..] => true,
        _ => false,
    })
}

/// The byte range of the word around a position, delimited by white space.
fn find_word(text: &str, at: usize) -> Range<usize> {
    let start = text[..at]
        .rfind(char::is_whitespace)
        .map_or(0, |blank| blank + text[blank..].chars().next().map_or(1, char::len_utf8));
    let next = at + text[at..].chars().next().map_or(0, char::len_utf8);
    let end = text[next..].find(char::is_whitespace).map_or(text.len(), |blank| next + blank);
    start..end
}

/// Finds question marks in place of letters: a leading word of question marks, several such words, or a text without
/// any letters.
fn find_lost_letters(text: &str) -> Option<Range<usize>> {
    let is_lost = |word: &str| {
        let marks = word.trim_matches(|c: char| c.is_ascii_punctuation() && c != '?');
        marks.len() >= 2 && marks.bytes().all(|byte| byte == b'?' || byte == b'-' || byte == b'\'')
    };
    let words = || text.split_whitespace();
    let lost_words = words().filter(|word| is_lost(word)).count();
    let has_letters = text.contains(char::is_alphabetic);
    let first = words().next()?;
    // `Really ???` is a question; `??? Smith` has lost a name.
    let starts_with_lost_word = is_lost(first) && first.matches('?').count() >= 3;
    let is_damaged = if has_letters {
        starts_with_lost_word || lost_words >= 2 && words().any(|word| word.matches('?').count() >= 3 && is_lost(word))
    } else {
        lost_words > 0
    };
    let word = words().find(|word| is_lost(word)).filter(|_| is_damaged)?;
    // The word is a slice of the text.
    let start = word.as_ptr() as usize - text.as_ptr() as usize;
    Some(start..start + word.len())
}

/// Finds a UTF-8 word that was read as Windows-1251 or Windows-1252, and restores the original word.
pub(super) fn find_misread_word(text: &str) -> Option<(Range<usize>, String)> {
    let mut at = 0;
    while let Some(offset) = text[at..].find(|c: char| !c.is_ascii()) {
        let start = at + offset;
        let end = text[start..].find(|c: char| c.is_ascii()).map_or(text.len(), |length| start + length);
        let is_beside_letter = text[..start].ends_with(|c: char| c.is_ascii_alphabetic())
            || text[end..].starts_with(|c: char| c.is_ascii_alphabetic());
        let run = text[start..end].trim_matches('\u{a0}');
        let run_start = start + (text[start..end].len() - text[start..end].trim_start_matches('\u{a0}').len());
        for encoding in [WINDOWS_1252, WINDOWS_1251] {
            if let Some(original) = decode_misread(run, encoding, is_beside_letter) {
                let word = find_word(text, run_start);
                let word = word.start..word.end.max(run_start + run.len());
                let (before, after) = (&text[word.start..run_start], &text[run_start + run.len()..word.end]);
                return Some((word, format!("{before}{original}{after}")));
            }
        }
        at = end;
    }
    None
}

/// Encodes the characters in `encoding` and decodes the bytes as UTF-8. `None` unless this yields letters and symbols
/// that people write.
fn decode_misread(run: &str, encoding: &'static Encoding, is_beside_letter: bool) -> Option<String> {
    let (bytes, _, has_unmappable) = encoding.encode(run);
    let Cow::Owned(bytes) = bytes else { return None };
    if has_unmappable {
        return None;
    }
    let decoded = match std::str::from_utf8(&bytes) {
        Ok(original) => original,
        // The last letter might be cut off, so it is ignored.
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    let is_windows_1251 = encoding == WINDOWS_1251;
    let count = decoded.chars().count();
    let is_symbol = decoded.chars().all(|c| !c.is_alphabetic()) && (!is_windows_1251 || bytes.len() > 2);
    let is_enough = count >= 2 || is_beside_letter || is_symbol;
    (count > 0 && is_enough && decoded.chars().all(is_common_char)).then(|| decoded.to_owned())
}

/// Whether this is a letter or symbol that is common in messages: European alphabets, typographic symbols and emoji.
fn is_common_char(c: char) -> bool {
    matches!(c,
        '\u{a0}'..='\u{17f}'
        | '\u{218}'..='\u{21b}'
        | '\u{386}'..='\u{3ce}'
        | '\u{400}'..='\u{45f}'
        | '\u{490}'..='\u{491}'
        | '\u{10d0}'..='\u{10ff}'
        | '\u{2010}'..='\u{203a}'
        | '\u{20ac}'
        | '\u{20b4}'
        | '\u{2116}'
        | '\u{2122}'
        | '\u{2600}'..='\u{27bf}'
        | '\u{fe0f}'
        | '\u{1f300}'..='\u{1faff}')
}

/// The HTML entities of a text.
pub(super) fn find_html_entities(text: &str) -> Vec<Range<usize>> {
    /// The maximum number of bytes after the ampersand.
    const MAX_ENTITY_BYTES: usize = 8;
    const NAMES: [&str; 17] = [
        "amp", "apos", "bull", "copy", "euro", "gt", "hellip", "laquo", "ldquo", "lt", "mdash", "nbsp", "ndash",
        "quot", "raquo", "rdquo", "rsquo",
    ];
    let find_entity = |(start, _): (usize, &str)| {
        let rest = &text[start + 1..];
        let length = rest.bytes().take(MAX_ENTITY_BYTES).position(|byte| byte == b';')?;
        let name = &rest[..length];
        let digits =
            name.strip_prefix('#').map(|digits| digits.strip_prefix(['x', 'X']).map_or((digits, 10), |hex| (hex, 16)));
        let is_number = digits.is_some_and(|(digits, base)| {
            u32::from_str_radix(digits, base).is_ok_and(|code| char::from_u32(code).is_some())
        });
        // `&copy;` in a link is a mistake too, but `&amp=1` is not an entity, because an entity needs the semicolon.
        (is_number || NAMES.contains(&name)).then(|| start..start + length + 2)
    };
    text.match_indices('&').filter_map(find_entity).collect()
}

/// The text to type instead of an HTML entity, such as `-` for `&mdash;`. `None` if no such text is known.
pub(super) fn decode_entity(entity: &str) -> Option<String> {
    let name = entity.trim_start_matches('&').trim_end_matches(';');
    if let Some(digits) = name.strip_prefix('#') {
        let code = match digits.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        return code.ok().and_then(char::from_u32).map(String::from);
    }
    let replacement = match name {
        "amp" => "&",
        "apos" | "rsquo" => "'",
        "quot" | "ldquo" | "rdquo" => "\"",
        "lt" => "<",
        "gt" => ">",
        "nbsp" => " ",
        "euro" => "€",
        "laquo" => "«",
        "raquo" => "»",
        "mdash" | "ndash" => "-",
        "hellip" => "...",
        _ => return None,
    };
    Some(replacement.to_owned())
}

/// The HTML tags of a text, such as `<br>` and `</b>`.
pub(super) fn find_html_tags(text: &str) -> Vec<Range<usize>> {
    const TAGS: [&str; 15] =
        ["a", "b", "br", "div", "em", "font", "h1", "h2", "i", "img", "li", "p", "span", "strong", "ul"];
    let find_tag = |(start, _): (usize, &str)| {
        let rest = &text[start + 1..];
        let end = rest.find('>')?;
        let inner = rest[..end].trim_start_matches('/');
        let name = inner.split(|c: char| c.is_whitespace() || c == '/').next()?.to_ascii_lowercase();
        let attributes = inner[name.len()..].trim().trim_end_matches('/').trim();
        let has_valid_attributes = !attributes.contains('<') && (attributes.is_empty() || attributes.contains('='));
        (TAGS.contains(&name.as_str()) && has_valid_attributes).then(|| start..start + end + 2)
    };
    text.match_indices('<').filter_map(find_tag).collect()
}

/// URL-escaped line breaks and spaces outside an address.
pub(super) fn find_url_escapes(text: &str) -> Vec<Range<usize>> {
    let find_escape = |(start, _): (usize, &str)| {
        let escape = text.get(start..start + 3).filter(|escape| is_escaped_whitespace(escape))?;
        let word = &text[find_word(text, start).start..start];
        // `5%20` might be a discount. A word with a slash, `?` or `=` before the percent sign is an address.
        let is_address = word.contains(['/', '?', '=']);
        let is_percentage = escape == "%20" && word.ends_with(|c: char| c.is_ascii_digit());
        (!is_address && !is_percentage).then(|| start..start + escape.len())
    };
    text.match_indices('%').filter_map(find_escape).collect()
}

/// Whether three characters are a URL-escaped line break or space.
pub(super) fn is_escaped_whitespace(escape: &str) -> bool {
    ["%0A", "%0D", "%20"].iter().any(|known| known.eq_ignore_ascii_case(escape))
}

/// Finds Markdown in a text: words in `**` or `__`, which no channel makes bold, and `[words](address)`.
///
/// The address can be a template tag, which is replaced by `x` in `masked` and readable in `source`.
pub(super) fn find_markdown(masked: &str, source: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> =
        ["**", "__"].into_iter().flat_map(|marks| find_between(masked, marks)).collect();
    ranges.extend(masked.match_indices("](").filter_map(|(middle, _)| {
        let start =
            masked[..middle].rfind(['[', '\n']).filter(|&at| masked[at..].starts_with('[') && at + 1 < middle)?;
        let address = middle + 2..middle + 2 + masked[middle + 2..].find(')')?;
        let masked_address = &masked[address.clone()];
        let is_address = masked_address.contains("://")
            || masked_address.starts_with("www.")
            || source[address.start..].starts_with("{{");
        (is_address && !masked_address.contains(char::is_whitespace)).then(|| start..address.end + 1)
    }));
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// The words between two double marks such as `**`, including the marks.
fn find_between(text: &str, marks: &str) -> Vec<Range<usize>> {
    let mark = &marks[..1];
    let continues = |c: char| c.is_alphanumeric() || mark.contains(c);
    let (mut ranges, mut from) = (Vec::new(), 0);
    while let Some(start) = text[from..].find(marks).map(|at| from + at) {
        let rest = &text[start + marks.len()..];
        let Some(length) = rest.find(marks) else { break };
        let (inner, after) = (&rest[..length], &rest[length + marks.len()..]);
        let opens =
            !text[..start].ends_with(continues) && inner.starts_with(|c: char| !c.is_whitespace() && !mark.contains(c));
        let closes = inner.ends_with(|c: char| !c.is_whitespace()) && !after.starts_with(continues);
        let is_word = inner.contains(|c: char| c.is_alphabetic() || c == '%') && !inner.contains('\n');
        let is_marked = opens && closes && is_word;
        let end = start + length + 2 * marks.len();
        ranges.extend(is_marked.then_some(start..end));
        from = if is_marked { end } else { start + marks.len() };
    }
    ranges
}

/// Finds a line break written as the two characters `\n`, which would be sent literally.
pub(super) fn find_escaped_line_break(text: &str) -> Option<Range<usize>> {
    text.match_indices("\\n").find_map(|(start, _)| {
        let before = &text[..start];
        // `C:\new` is a path.
        let is_path = before.ends_with(':')
            && before[..before.len() - 1].ends_with(|c: char| c.is_ascii_alphabetic())
            && !before[..before.len() - 2].ends_with(|c: char| c.is_alphanumeric());
        let start = if before.ends_with("\\r") { start - 2 } else { start };
        (!is_path).then(|| start..start + if text[start..].starts_with("\\r\\n") { 4 } else { 2 })
    })
}

/// Finds the first occurrence of each kind of damage in a text.
pub(super) fn check_damaged_text(text: &NamedTemplate) -> Vec<TextProblem> {
    let mut reported = Vec::new();
    let first_damages = constant_parts(text).filter_map(|(part, part_span)| {
        let (damage, word) = find_damage(part)?;
        if reported.contains(&damage) {
            return None;
        }
        reported.push(damage);
        Some((damage, part_span.start + word.start..part_span.start + word.end))
    });
    let report_damage = |(damage, span)| match damage {
        TextDamage::LostLetters => Some(report_lost_letters_in_text(text, span)),
        TextDamage::ControlCharacter => Some(report_control_character_in_text(text, span)),
        TextDamage::MisreadEncoding => Some(report_misread_encoding_in_text(text, span)),
        TextDamage::HtmlEntity => markup::check_html_entities(text),
    };
    first_damages.filter_map(report_damage).collect()
}

/// A finding about damage in the cells of a column.
pub(super) fn report_damaged_text(damage: TextDamage, column: &str, example: &str, rows: &str) -> Finding {
    match damage {
        TextDamage::LostLetters => report_lost_letters(column, example, rows),
        TextDamage::ControlCharacter => report_control_character(column, example, rows),
        TextDamage::MisreadEncoding => report_misread_encoding(column, example, rows),
        TextDamage::HtmlEntity => markup::report_html_entity(column, example, rows),
    }
}

/// Reports a control character in the constant part of a text.
pub(super) fn report_control_character_in_text(text: &NamedTemplate, span: Range<usize>) -> TextProblem {
    let message = format!("this word contains a control character{}", format_code_point(&text.source[span.clone()]));
    problem_at(text, span, &CONTROL_CHARACTER, message, "type the word again")
}

/// A finding about control characters in the cells of a column.
pub(super) fn report_control_character(column: &str, example: &str, rows: &str) -> Finding {
    let message = format!("the column `{column}` contains a control character in {rows}{}", format_code_point(example));
    Finding::new(&CONTROL_CHARACTER, message)
        .help("export the list again as UTF-8, or remove the character from the list")
}

/// Formats the code point of the first control character in a word, because the character cannot be displayed.
fn format_code_point(word: &str) -> String {
    let control = word.chars().find(|c| c.is_control());
    control.map(|c| format!(": U+{:04X}", u32::from(c))).unwrap_or_default()
}

/// Reports lost letters in the constant part of a text.
pub(super) fn report_lost_letters_in_text(text: &NamedTemplate, span: Range<usize>) -> TextProblem {
    let message = format!("the original characters of `{}` are lost", &text.source[span.clone()]);
    problem_at(text, span, &LOST_LETTERS, message, "type the word again, and save the file as UTF-8")
}

/// A finding about lost letters in the cells of a column.
pub(super) fn report_lost_letters(column: &str, example: &str, rows: &str) -> Finding {
    let message = format!("the original characters in the column `{column}` are lost in {rows}: `{example}`");
    Finding::new(&LOST_LETTERS, message)
        .help("export the list again from its source as UTF-8; the characters cannot be restored from this file")
}

/// Reports a word, in the constant part of a text, that was read in the wrong encoding.
pub(super) fn report_misread_encoding_in_text(text: &NamedTemplate, span: Range<usize>) -> TextProblem {
    let word = &text.source[span.clone()];
    let help = match find_misread_word(word) {
        Some((_, original)) => format!("write `{original}`, and save the file as UTF-8"),
        None => "type the word again, and save the file as UTF-8".to_owned(),
    };
    let message = format!("`{word}` is UTF-8 text that was read in another encoding");
    problem_at(text, span, &MISREAD_ENCODING, message, &help)
}

/// A finding about cells of a column that were read in the wrong encoding.
pub(super) fn report_misread_encoding(column: &str, example: &str, rows: &str) -> Finding {
    let original = find_misread_word(example).map(|(_, original)| format!(", which should be `{original}`"));
    let original = original.unwrap_or_default();
    let message = format!(
        "in {rows}, the column `{column}` contains UTF-8 text that was read in another encoding: `{example}`{original}"
    );
    Finding::new(&MISREAD_ENCODING, message).help("export the list again from its source as UTF-8")
}
