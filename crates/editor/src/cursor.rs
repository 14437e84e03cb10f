//! The position of the cursor in unfinished text: in a key or a value of YAML, or in a part of a template.
//!
//! Unfinished text is rarely valid YAML. The outline of its keys is therefore built from indentation and brackets,
//! never fails, and can be wrong about unusual YAML. Findings come from the real parser.

use std::ops::Range;

use campaign_manifest::PathStep;

use crate::protocol::floor_boundary;

/// The kind of YAML node at the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum YamlSlot {
    /// A key, or an empty place where a key can begin.
    Key,
    Value,
}

/// The position of the cursor in YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct YamlCursor {
    /// The path of the map for a key; the path of the value for a value.
    pub(crate) path: Vec<PathStep>,
    pub(crate) slot: YamlSlot,
    /// The part of the key or value that is on one line.
    pub(crate) word: Range<usize>,
    /// Whether the cursor is between brackets.
    pub(crate) is_flow: bool,
}

/// A key in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct YamlKey {
    /// The path of its map.
    pub(crate) parent: Vec<PathStep>,
    pub(crate) name: String,
    pub(crate) span: Range<usize>,
    /// The value on the key's line, which can be empty.
    pub(crate) value: Range<usize>,
}

/// The keys of a text, in the order of the text.
#[derive(Debug)]
pub(crate) struct YamlOutline {
    pub(crate) keys: Vec<YamlKey>,
    /// The position of the cursor; `None` in a comment.
    pub(crate) cursor: Option<YamlCursor>,
}

impl YamlOutline {
    /// Reads the outline of a text with the cursor at this byte.
    pub(crate) fn read(text: &str, cursor: usize) -> Self {
        let mut scanner =
            Scanner { text, at_cursor: cursor, frames: Vec::new(), top_items: 0, keys: Vec::new(), cursor: None };
        scanner.scan();
        Self { keys: scanner.keys, cursor: scanner.cursor }
    }

    /// The names of all keys in the map at the cursor, except the key at the cursor.
    pub(crate) fn sibling_key_names<'o>(&'o self, cursor: &'o YamlCursor) -> impl Iterator<Item = &'o str> {
        let others = self.keys.iter().filter(|key| key.parent == cursor.path && key.span.start != cursor.word.start);
        others.map(|key| key.name.as_str())
    }
}

struct Scanner<'t> {
    text: &'t str,
    /// The byte offset of the cursor.
    at_cursor: usize,
    /// The open keys and items, from the top.
    frames: Vec<Frame>,
    /// The number of items so far in a list that belongs to no key.
    top_items: usize,
    keys: Vec<YamlKey>,
    cursor: Option<YamlCursor>,
}

/// An open key or list item.
struct Frame {
    column: usize,
    step: PathStep,
    /// The number of its list items so far.
    items: usize,
}

/// A map or a list between brackets.
enum FlowLevel {
    Map {
        key: Option<String>,
    },
    List {
        index: usize,
    },
    /// A key with its value in a list, without braces of its own.
    Pair {
        key: String,
    },
}

impl Scanner<'_> {
    /// Reads all lines, and records the keys and the cursor.
    fn scan(&mut self) {
        let (mut at, mut block_owner) = (0, None);
        while at <= self.text.len() {
            let end = self.line_end(at);
            if let Some(owner) = block_owner {
                let line = &self.text[at..end];
                let is_blank = line.trim().is_empty();
                if is_blank || indentation(line) > owner {
                    if self.is_cursor_in(at..end) {
                        if is_blank && self.at_cursor - at <= owner {
                            self.record_cursor_in_blank_line(at);
                        } else {
                            self.record_cursor(YamlSlot::Value, self.path(), self.at_cursor..self.at_cursor, false);
                        }
                    }
                    at = end + 1;
                    continue;
                }
                block_owner = None;
            }
            at = self.scan_line(at, end, &mut block_owner);
        }
    }

    /// Reads a line, and all lines of a flow collection that begins on it. Returns the start of the next line. If a
    /// block scalar begins on the line, `block_owner` is set to the column of its key.
    fn scan_line(&mut self, start: usize, end: usize, block_owner: &mut Option<usize>) -> usize {
        let line = &self.text[start..end];
        let mut at = start + indentation(line);
        let rest = self.text[at..end].trim_end();
        if rest.is_empty() {
            if self.is_cursor_in(start..end) {
                self.record_cursor_in_blank_line(start);
            }
            return end + 1;
        }
        if rest.starts_with('#') || rest == "---" {
            return end + 1;
        }
        while self.text[at..end].trim_end() == "-" || self.text[at..end].starts_with("- ") {
            self.open_item(at - start);
            let next = at + 1 + indentation(&self.text[at + 1..end]);
            if self.text[next..end].trim().is_empty() {
                if self.is_cursor_in(at + 1..end) {
                    self.record_cursor(YamlSlot::Key, self.path(), self.at_cursor..self.at_cursor, false);
                }
                return end + 1;
            }
            at = next;
        }
        let (column, rest) = (at - start, &self.text[at..end]);
        if rest.starts_with(['{', '[']) {
            return self.scan_flow(at, column);
        }
        let Some(key) = find_key(rest) else {
            if self.is_cursor_in(at..end) {
                self.close_frames(column);
                self.record_cursor(YamlSlot::Key, self.path(), at..at + value_length(rest), false);
            }
            return end + 1;
        };
        self.close_frames(column);
        let (parent, span) = (self.path(), at..at + key.length);
        if self.is_cursor_in(span.clone()) {
            self.record_cursor(YamlSlot::Key, parent.clone(), span.clone(), false);
        }
        let after = at + key.colon + 1;
        let value = after + indentation(&self.text[after..end]);
        let value = value..value + value_length(&self.text[value..end]);
        self.frames.push(Frame { column, step: PathStep::Key(key.name.clone()), items: 0 });
        self.keys.push(YamlKey { parent, name: key.name, span, value: value.clone() });
        let value_text = &self.text[value.clone()];
        if value_text.starts_with(['{', '[']) {
            return self.scan_flow(value.start, column);
        }
        if value_text.starts_with(['|', '>']) {
            *block_owner = Some(column);
        }
        let is_in_comment = self.at_cursor > value.end && self.text[value.end..end].trim_start().starts_with('#');
        if self.is_cursor_in(after..end) && !is_in_comment {
            let is_on_value = value.contains(&self.at_cursor) || value.end == self.at_cursor;
            let word = if is_on_value { value } else { self.at_cursor..self.at_cursor };
            self.record_cursor(YamlSlot::Value, self.path(), word, false);
        }
        end + 1
    }

    /// Reads the flow collection that begins at byte `start`. `owner` is the column of the key that it belongs to.
    /// Returns the start of the line after the collection.
    ///
    /// If the brackets are not closed, the collection ends where the next key of the same or an outer map begins.
    fn scan_flow(&mut self, start: usize, owner: usize) -> usize {
        let (base, bytes) = (self.path(), self.text.as_bytes());
        let mut levels: Vec<FlowLevel> = Vec::new();
        let (mut at, mut token) = (start, start);
        while at < bytes.len() {
            if !self.text.is_char_boundary(at) {
                at += 1;
                continue;
            }
            if at == self.at_cursor && !levels.is_empty() {
                self.record_cursor_in_flow(&base, &levels, token);
            }
            let is_token_start = self.text[token..at].trim().is_empty();
            match bytes[at] {
                b'"' | b'\'' if is_token_start => {
                    let end = find_quote_end(self.text, at);
                    if (at + 1..end).contains(&self.at_cursor) {
                        self.record_cursor_in_flow(&base, &levels, token);
                    }
                    at = end;
                    continue;
                }
                b'{' | b'[' if is_token_start => {
                    let is_map = bytes[at] == b'{';
                    levels.push(if is_map { FlowLevel::Map { key: None } } else { FlowLevel::List { index: 0 } });
                    token = at + 1;
                }
                b'}' | b']' => {
                    if let Some(FlowLevel::Pair { .. }) = levels.pop() {
                        levels.pop();
                    }
                    token = at + 1;
                    if levels.is_empty() {
                        break;
                    }
                }
                b',' => {
                    levels.pop_if(|level| matches!(level, FlowLevel::Pair { .. }));
                    match levels.last_mut() {
                        Some(FlowLevel::Map { key }) => *key = None,
                        Some(FlowLevel::List { index }) => *index += 1,
                        Some(FlowLevel::Pair { .. }) | None => {}
                    }
                    token = at + 1;
                }
                b':' if matches!(bytes.get(at + 1), None | Some(b' ' | b'\n' | b'\r' | b',' | b'}')) => {
                    let key_text = &self.text[token..at];
                    let key_start = token + (key_text.len() - key_text.trim_start().len());
                    let name = key_text.trim().trim_matches(['"', '\'']).to_owned();
                    let parent = flow_path(&base, &levels);
                    let is_key = match levels.last_mut() {
                        _ if name.is_empty() => false,
                        Some(FlowLevel::Map { key }) if key.is_none() => {
                            *key = Some(name.clone());
                            true
                        }
                        Some(FlowLevel::List { .. }) => {
                            levels.push(FlowLevel::Pair { key: name.clone() });
                            true
                        }
                        Some(FlowLevel::Map { .. } | FlowLevel::Pair { .. }) | None => false,
                    };
                    if is_key {
                        let span = key_start..key_start + self.text[key_start..at].trim_end().len();
                        let value = at + 1..at + 1 + flow_value_length(&self.text[at + 1..]);
                        self.keys.push(YamlKey { parent, name, span, value });
                        token = at + 1;
                    }
                }
                b'#' if bytes[at - 1].is_ascii_whitespace() => {
                    at = self.line_end(at);
                    continue;
                }
                b'\n' if self.ends_flow(at + 1, owner) => return at + 1,
                _ => {}
            }
            at += 1;
        }
        if at == bytes.len() && at == self.at_cursor && !levels.is_empty() {
            self.record_cursor_in_flow(&base, &levels, token);
        }
        self.line_end(at.min(bytes.len())) + 1
    }

    /// Whether the line at `next` is outside the open flow collection.
    fn ends_flow(&self, next: usize, owner: usize) -> bool {
        let line = self.text[next..].lines().find(|line| !line.trim().is_empty());
        line.is_some_and(|line| indentation(line) <= owner && !line.trim_start().starts_with(['}', ']']))
    }

    /// Records the cursor in a flow collection. `token` is the start of the key or value at the cursor.
    fn record_cursor_in_flow(&mut self, base: &[PathStep], levels: &[FlowLevel], token: usize) {
        let rest = &self.text[token..];
        let start = token + (rest.len() - rest.trim_start_matches([' ', '\n', '\r']).len());
        let word = match start <= self.at_cursor {
            true => start..(start + flow_value_length(&self.text[start..])).max(self.at_cursor),
            false => self.at_cursor..self.at_cursor,
        };
        let is_key = matches!(levels.last(), Some(FlowLevel::Map { key: None }));
        let slot = if is_key { YamlSlot::Key } else { YamlSlot::Value };
        self.record_cursor(slot, flow_path(base, levels), word, true);
    }

    /// Records the cursor in an empty line, where a key can begin in the column of the cursor.
    fn record_cursor_in_blank_line(&mut self, start: usize) {
        let column = self.at_cursor - start;
        let open = self.frames.iter().take_while(|frame| frame.column < column);
        let path = open.map(|frame| frame.step.clone()).collect();
        self.record_cursor(YamlSlot::Key, path, self.at_cursor..self.at_cursor, false);
    }

    /// Records the cursor, unless an earlier call has already recorded it.
    fn record_cursor(&mut self, slot: YamlSlot, path: Vec<PathStep>, word: Range<usize>, is_flow: bool) {
        self.cursor.get_or_insert(YamlCursor { path, slot, word, is_flow });
    }

    fn path(&self) -> Vec<PathStep> {
        self.frames.iter().map(|frame| frame.step.clone()).collect()
    }

    /// Closes the keys and items that end before a key in this column.
    fn close_frames(&mut self, column: usize) {
        while self.frames.last().is_some_and(|frame| frame.column >= column) {
            self.frames.pop();
        }
    }

    /// Opens a list item in this column, and closes the keys and items that end before it.
    fn open_item(&mut self, column: usize) {
        // A list can start in the same column as its key.
        let is_parent =
            |frame: &Frame| frame.column < column || (frame.column == column && matches!(frame.step, PathStep::Key(_)));
        while self.frames.last().is_some_and(|frame| !is_parent(frame)) {
            self.frames.pop();
        }
        let count = self.frames.last_mut().map_or(&mut self.top_items, |frame| &mut frame.items);
        let index = *count;
        *count += 1;
        self.frames.push(Frame { column, step: PathStep::Item(index), items: 0 });
    }

    fn is_cursor_in(&self, span: Range<usize>) -> bool {
        (span.start..=span.end).contains(&self.at_cursor)
    }

    fn line_end(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |length| at + length)
    }
}

/// The path of the innermost flow collection; `base` is the path of the outermost collection.
fn flow_path(base: &[PathStep], levels: &[FlowLevel]) -> Vec<PathStep> {
    let steps = levels.iter().filter_map(|level| match level {
        FlowLevel::Map { key } => key.clone().map(PathStep::Key),
        FlowLevel::Pair { key } => Some(PathStep::Key(key.clone())),
        FlowLevel::List { index } => Some(PathStep::Item(*index)),
    });
    base.iter().cloned().chain(steps).collect()
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The length in bytes of a value without trailing spaces and comments.
fn value_length(text: &str) -> usize {
    let text = text.split_once(" #").filter(|_| !text.starts_with(['"', '\''])).map_or(text, |(before, _)| before);
    text.trim_end().len()
}

/// The length in bytes of the key or value at the beginning of `text`, including leading spaces.
fn flow_value_length(text: &str) -> usize {
    let spaces = indentation(text);
    let rest = &text[spaces..];
    if rest.starts_with(['"', '\'']) {
        return spaces + find_quote_end(rest, 0);
    }
    let end = rest.find([',', '}', ']', '\n']).unwrap_or(rest.len());
    let rest = &rest[..end];
    let rest = rest.split_once(": ").map_or(rest, |(key, _)| key);
    spaces + rest.trim_end().trim_end_matches(':').len()
}

/// The offset just after the closing quote, or the end of the line if the quote is not closed.
fn find_quote_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let (quote, mut at) = (bytes[start], start + 1);
    while at < bytes.len() && bytes[at] != b'\n' {
        match bytes[at] {
            b'\\' if quote == b'"' => at += 1,
            b'\'' if quote == b'\'' && bytes.get(at + 1) == Some(&b'\'') => at += 1,
            byte if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at.min(bytes.len())
}

struct FoundKey {
    name: String,
    /// The length with quotes.
    length: usize,
    colon: usize,
}

/// The key at the beginning of a line. `None` if the line does not begin with a key.
fn find_key(text: &str) -> Option<FoundKey> {
    let is_end = |colon: usize| text[colon + 1..].chars().next().is_none_or(char::is_whitespace);
    if text.starts_with(['"', '\'']) {
        let length = find_quote_end(text, 0);
        let rest = &text[length..];
        let colon = length + (rest.len() - rest.trim_start().len());
        let is_key = text[colon..].starts_with(':') && is_end(colon);
        return is_key.then(|| FoundKey { name: text[1..length - 1].to_owned(), length, colon });
    }
    let colon = text.match_indices(':').map(|(at, _)| at).find(|&at| is_end(at))?;
    let name = text[..colon].trim_end();
    let is_name = !name.is_empty() && !name.contains(" #") && !name.contains("{{") && !name.contains("{%");
    is_name.then(|| FoundKey { name: name.to_owned(), length: name.len(), colon })
}

/// The number of bytes before the cursor that are searched for the start of a tag.
const MAX_TAG: usize = 4_000;
/// The length in bytes of `{{` and `{%`.
const DELIMITER_LENGTH: usize = 2;

/// The part of a template that can be written at the cursor.
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

/// The cursor in a template. `None` outside tags, after a dot, and in quoted strings other than the name of an included
/// template.
pub(crate) fn find_template_cursor(text: &str, cursor: usize) -> Option<TemplateCursor> {
    let cursor = floor_boundary(text, cursor);
    let first = floor_boundary(text, cursor.saturating_sub(MAX_TAG));
    let before = &text[first..cursor];
    let open = before.rfind("{{").max(before.rfind("{%"))?;
    if before.rfind("}}").max(before.rfind("%}")).is_some_and(|close| close > open)
        || open + DELIMITER_LENGTH > before.len()
    {
        return None;
    }
    let is_statement = before[open..].starts_with("{%");
    let inside = before[open + DELIMITER_LENGTH..].trim_start_matches('-');
    if let Some(quoted) = find_open_quote(inside) {
        let head = inside[..quoted].trim_end().trim_end_matches('\\').trim_end();
        let is_include = is_statement && (head.ends_with("include") || head.ends_with("extends"));
        let start = cursor - inside.len() + quoted + 1;
        let length = text[start..].find(['"', '\'', '`', '\\', '\n']).unwrap_or(text.len() - start);
        return is_include.then_some(TemplateCursor { slot: TemplateSlot::Include, word: start..start + length });
    }
    let word = find_word(text, cursor);
    let head = text[first + open + DELIMITER_LENGTH..word.start].trim_start_matches('-').trim();
    let slot = match head.chars().next_back() {
        Some('|') => TemplateSlot::Filter,
        Some('.') => return None,
        None if is_statement => TemplateSlot::Tag,
        _ => TemplateSlot::Expression,
    };
    Some(TemplateCursor { slot, word })
}

/// The range of the word at the cursor. Empty if there is no word.
pub(crate) fn find_word(text: &str, cursor: usize) -> Range<usize> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let cursor = floor_boundary(text, cursor);
    let start = text[..cursor].rfind(|character: char| !is_part(character));
    let start = start.map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    let end = text[cursor..].find(|character: char| !is_part(character)).map_or(text.len(), |length| cursor + length);
    start..end
}

/// The byte offset of a quotation mark that is not closed.
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

    fn format_path(path: &[PathStep]) -> String {
        let steps = path.iter().map(|step| match step {
            PathStep::Key(name) => name.clone(),
            PathStep::Item(index) => index.to_string(),
        });
        steps.collect::<Vec<_>>().join(".")
    }

    /// The YAML slot, the path and the word at the marker `¦`, which stands for the cursor.
    fn find(marked: &str) -> Option<(YamlSlot, String, String)> {
        let at = marked.find('¦').unwrap();
        let text = marked.replace('¦', "");
        let cursor = YamlOutline::read(&text, at).cursor?;
        Some((cursor.slot, format_path(&cursor.path), text[cursor.word].to_owned()))
    }

    #[test]
    fn cursor_is_found_in_unfinished_text() {
        use YamlSlot::{Key, Value};
        for (marked, expected) in [
            ("¦", Some((Key, "", ""))),
            ("na¦", Some((Key, "", "na"))),
            ("na¦me: x\n", Some((Key, "", "name"))),
            ("name:¦", Some((Value, "name", ""))),
            ("purpose: mar¦keting # why\n", Some((Value, "purpose", "marketing"))),
            ("recipients:\n  ¦", Some((Key, "recipients", ""))),
            ("recipients:\n  file: a.csv\n  ¦\nchannels:\n", Some((Key, "recipients", ""))),
            ("recipients:\n  file: a.csv\n¦\nchannels:\n", Some((Key, "", ""))),
            ("channels:\n  - ¦", Some((Key, "channels.0", ""))),
            ("channels:\n- sms:\n    signature: X\n    me¦", Some((Key, "channels.0.sms", "me"))),
            ("channels:\n- sms:\n    signature: X\n- vi¦", Some((Key, "channels.1", "vi"))),
            ("channels:\n  - sms: { ¦", Some((Key, "channels.0.sms", ""))),
            ("channels:\n  - sms: { signature: X, mes¦ }\n", Some((Key, "channels.0.sms", "mes"))),
            ("channels:\n  - sms: { signature: O¦le }\n", Some((Value, "channels.0.sms.signature", "Ole"))),
            ("channels: [sms, ¦]", Some((Value, "channels.1", ""))),
            ("channels: [ sms: { ¦ } ]", Some((Key, "channels.0.sms", ""))),
            ("recipients: { file: \"a.c¦sv\" }\n", Some((Value, "recipients.file", "\"a.csv\""))),
            ("recipients: { fi¦\nchannels:\n", Some((Key, "recipients", "fi"))),
            ("recipients: {\n  file: a.csv,\n  ¦\n}\n", Some((Key, "recipients", ""))),
            ("vars:\n  a: |\n    text¦ here\n", Some((Value, "vars.a", ""))),
            ("vars:\n  a: >-\n    text\n¦", Some((Key, "", ""))),
            ("# com¦ment\n", None),
            ("'na¦me': x", Some((Key, "", "'name'"))),
            ("a:\n  b:\n    c: 1\n  ¦d: 2\n", Some((Key, "a", "d"))),
        ] {
            let expected = expected.map(|(slot, path, word)| (slot, path.to_owned(), word.to_owned()));
            assert_eq!(find(marked), expected, "{marked}");
        }
    }

    #[test]
    fn keys_are_listed_with_their_parent_paths() {
        let text = "name: x\nrecipients: { file: a.csv, columns: { phone: P } }\nchannels:\n  - sms:\n      signature: S\n  - viber: {}\n";
        let outline = YamlOutline::read(text, 0);
        let keys: Vec<String> = outline
            .keys
            .iter()
            .map(|key| format!("{}/{}={}", format_path(&key.parent), key.name, &text[key.span.clone()]))
            .collect();
        assert_eq!(
            keys,
            [
                "/name=name",
                "/recipients=recipients",
                "recipients/file=file",
                "recipients/columns=columns",
                "recipients.columns/phone=phone",
                "/channels=channels",
                "channels.0/sms=sms",
                "channels.0.sms/signature=signature",
                "channels.1/viber=viber",
            ]
        );
    }

    #[test]
    fn any_text_can_be_read_at_any_cursor_position() {
        let texts = [
            "a: {b: [c, {d: 'e', \"f\": }], g: | \n  - - x: [\n'",
            "- [\n",
            "\"",
            "'a",
            "{{ x }}: y",
            "}]",
            ": :\n-",
            "a: \"x\\",
            "я: { є: \"ї\n",
            "\r\n- a\r\n  b: [1,\r\n",
            "a: [ {",
            "-\n-  -\n   - b:",
            "k: 'it''s' #",
            ",",
            "[,:]",
            "a: # x",
        ];
        for text in texts {
            for cursor in (0..=text.len() + 1).filter(|&at| at > text.len() || text.is_char_boundary(at)) {
                let outline = YamlOutline::read(text, cursor.min(text.len()));
                for span in outline.keys.iter().flat_map(|key| [key.span.clone(), key.value.clone()]) {
                    assert!(text.get(span.clone()).is_some(), "{text:?} {span:?}");
                }
                if let Some(cursor) = outline.cursor {
                    assert!(text.get(cursor.word.clone()).is_some(), "{text:?} {cursor:?}");
                }
            }
        }
    }
}

#[cfg(test)]
mod template_tests {
    use super::*;

    /// The slot and the word at the marker `¦`, which stands for the cursor.
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
