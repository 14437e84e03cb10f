//! The part of a template that the cursor is in, even if the template is unfinished.

use std::ops::Range;

use crate::position::floor_boundary;

/// How far the beginning of a tag is searched, in bytes.
const MAX_TAG: usize = 4_000;

/// What can be written at the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TemplateSlot {
    /// A name or a value.
    Expression,
    /// A filter, after `|`.
    Filter,
    /// The first word of `{% … %}`.
    Tag,
    /// The name of a template, after `include` or `extends`.
    Include,
}

/// The cursor within `{{ … }}` or `{% … %}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TemplateCursor {
    pub(crate) slot: TemplateSlot,
    /// The word at the cursor, which a completion replaces.
    pub(crate) word: Range<usize>,
}

/// The cursor in a template; `None` outside of tags, in other quoted texts and after a dot.
pub(crate) fn find_template_cursor(text: &str, cursor: usize) -> Option<TemplateCursor> {
    let cursor = floor_boundary(text, cursor);
    let first = floor_boundary(text, cursor.saturating_sub(MAX_TAG));
    let before = &text[first..cursor];
    let open = before.rfind("{{").max(before.rfind("{%"))?;
    if before.rfind("}}").max(before.rfind("%}")).is_some_and(|close| close > open) || open + 2 > before.len() {
        return None;
    }
    let is_statement = before[open..].starts_with("{%");
    let inside = before[open + 2..].trim_start_matches('-');
    if let Some(quoted) = find_open_quote(inside) {
        let head = inside[..quoted].trim_end().trim_end_matches('\\').trim_end();
        let includes = is_statement && (head.ends_with("include") || head.ends_with("extends"));
        let start = first + open + 2 + (before.len() - open - 2 - inside.len()) + quoted + 1;
        let length = text[start..].find(['"', '\'', '`', '\\', '\n']).unwrap_or(text.len() - start);
        return includes.then_some(TemplateCursor { slot: TemplateSlot::Include, word: start..start + length });
    }
    let word = find_word(text, cursor);
    let head = text[first + open + 2..word.start].trim_start_matches('-').trim();
    let slot = match head.chars().next_back() {
        Some('|') => TemplateSlot::Filter,
        Some('.') => return None,
        None if is_statement => TemplateSlot::Tag,
        _ => TemplateSlot::Expression,
    };
    Some(TemplateCursor { slot, word })
}

/// The word around a byte, which can be empty.
pub(crate) fn find_word(text: &str, cursor: usize) -> Range<usize> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let cursor = floor_boundary(text, cursor);
    let start = text[..cursor].rfind(|character: char| !is_part(character));
    let start = start.map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    let end = text[cursor..].find(|character: char| !is_part(character)).map_or(text.len(), |length| cursor + length);
    start..end
}

/// The byte of a quote that is not closed.
fn find_open_quote(text: &str) -> Option<usize> {
    let mut open: Option<(usize, char)> = None;
    for (at, character) in text.char_indices().filter(|(_, character)| matches!(character, '"' | '\'' | '`')) {
        match open {
            None => open = Some((at, character)),
            Some((_, quote)) if quote == character => open = None,
            Some(_) => {}
        }
    }
    open.map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slot and the word at `|` in a text.
    fn find(marked: &str) -> Option<(TemplateSlot, String)> {
        let cursor = marked.find('¦').unwrap();
        let text = marked.replace('¦', "");
        let found = find_template_cursor(&text, cursor)?;
        Some((found.slot, text[found.word].to_owned()))
    }

    #[test]
    fn slot_is_determined_by_the_text_before_the_cursor() {
        for (marked, expected) in [
            ("Hello {{ fir¦", Some((TemplateSlot::Expression, "fir"))),
            ("Hello {{ fir¦st }}", Some((TemplateSlot::Expression, "first"))),
            ("Hello {{¦", Some((TemplateSlot::Expression, ""))),
            ("{{ name | ¦", Some((TemplateSlot::Filter, ""))),
            ("{{ name|up¦ }}", Some((TemplateSlot::Filter, "up"))),
            ("{% i¦", Some((TemplateSlot::Tag, "i"))),
            ("{%- if pla¦ %}", Some((TemplateSlot::Expression, "pla"))),
            ("{% include \"gre¦eting.txt\" %}", Some((TemplateSlot::Include, "greeting.txt"))),
            ("{{ \"te¦xt\" }}", None),
            ("{{ stores[city].¦ }}", None),
            ("Hello {{ name }} ¦", None),
            ("Hello ¦", None),
            ("{¦", None),
            ("{{ Ім¦", Some((TemplateSlot::Expression, "Ім"))),
        ] {
            let expected = expected.map(|(slot, word)| (slot, word.to_owned()));
            assert_eq!(find(marked), expected, "{marked}");
        }
    }
}
