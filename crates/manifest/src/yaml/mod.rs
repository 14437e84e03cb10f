//! Parsing of YAML into a tree whose nodes record their byte ranges in the file.
//!
//! The parser also reports YAML features that campaign files must not use, but knows nothing else about campaigns.
//! Values stay as typed; only [`node_to_json`] gives them the types of the core schema of YAML 1.2.

mod fixes;
mod mistakes;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use granit_parser::{Event, Parser, Span, StrInput, options};
use serde_json::{Map, Number, Value};

use crate::document::FindingCollector;
use campaign_core::finding::{Finding, Fix, SourceLocation, rules};
use mistakes::explain_error;

pub(crate) use fixes::KnownKeys;
pub(crate) use granit_parser::ScalarStyle as Style;
pub(crate) use mistakes::find_slips;

/// A value with its position in the file.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) content: NodeContent,
    /// The byte range of the value in the file.
    pub span: Range<usize>,
}

#[derive(Clone, Debug)]
pub(crate) enum NodeContent {
    /// A single value, such as a text or a number.
    Scalar(Scalar),
    List(Vec<Node>),
    /// A map, with its keys in the order of the file and without duplicates.
    Map(Vec<MapEntry>),
}

/// A single value as typed, with quotes and escapes removed.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// The text; empty for a missing value.
    pub text: String,
    /// The style in which it was written.
    pub(crate) style: Style,
}

/// A key of a map with its value.
#[derive(Clone, Debug)]
pub struct MapEntry {
    /// The key, without quotes and escapes.
    pub key: String,
    /// The key's bytes in the file.
    pub key_span: Range<usize>,
    /// The value, which is an empty scalar if it is missing.
    pub value: Node,
}

impl Scalar {
    /// Whether the scalar was written without quotes, and not as a block.
    pub(crate) fn is_plain(&self) -> bool {
        self.style == Style::Plain
    }

    /// Whether the scalar was written as a block after `|` or `>`.
    pub(crate) fn is_block(&self) -> bool {
        matches!(self.style, Style::Literal | Style::Folded)
    }

    /// Whether the scalar has no value: empty, `~` or `null`.
    pub(crate) fn is_null(&self) -> bool {
        self.is_plain() && matches!(self.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }
}

impl Node {
    /// The scalar, if the node is one.
    pub fn as_scalar(&self) -> Option<&Scalar> {
        match &self.content {
            NodeContent::Scalar(scalar) => Some(scalar),
            NodeContent::List(_) | NodeContent::Map(_) => None,
        }
    }

    /// The entries, if the node is a map; empty if it has no value.
    pub fn as_entries(&self) -> Option<&[MapEntry]> {
        match &self.content {
            NodeContent::Map(entries) => Some(entries),
            NodeContent::Scalar(scalar) if scalar.is_null() => Some(&[]),
            NodeContent::Scalar(_) | NodeContent::List(_) => None,
        }
    }

    /// The items, if the node is a list.
    pub fn as_items(&self) -> Option<&[Node]> {
        match &self.content {
            NodeContent::List(items) => Some(items),
            NodeContent::Scalar(_) | NodeContent::Map(_) => None,
        }
    }

    /// The entry of a map with this key.
    pub(crate) fn find_entry(&self, key: &str) -> Option<&MapEntry> {
        self.as_entries()?.iter().find(|entry| entry.key == key)
    }

    /// Whether the value is missing.
    pub fn is_null(&self) -> bool {
        self.as_scalar().is_some_and(Scalar::is_null)
    }

    /// Adds the missing keys from another map, if both are maps.
    pub(crate) fn merge_missing(&mut self, other: Node) {
        let (NodeContent::Map(entries), NodeContent::Map(others)) = (&mut self.content, other.content) else { return };
        for entry in others {
            match entries.iter_mut().find(|known| known.key == entry.key) {
                Some(known) => known.value.merge_missing(entry.value),
                None => entries.push(entry),
            }
        }
    }

    /// The total size of all keys and values in bytes.
    pub(crate) fn count_bytes(&self) -> usize {
        match &self.content {
            NodeContent::Scalar(scalar) => scalar.text.len(),
            NodeContent::List(items) => items.iter().map(Node::count_bytes).sum(),
            NodeContent::Map(entries) => entries.iter().map(|entry| entry.key.len() + entry.value.count_bytes()).sum(),
        }
    }

    /// The number of nodes, and the depth of their nesting.
    pub(crate) fn measure_size(&self) -> (usize, usize) {
        let children: Box<dyn Iterator<Item = &Node>> = match &self.content {
            NodeContent::Scalar(_) => return (1, 1),
            NodeContent::List(items) => Box::new(items.iter()),
            NodeContent::Map(entries) => Box::new(entries.iter().map(|entry| &entry.value)),
        };
        let (count, depth) = children
            .map(Node::measure_size)
            .fold((0, 0), |(count, depth), (child_count, child_depth)| (count + child_count, depth.max(child_depth)));
        (count + 1, depth + 1)
    }
}

/// The largest whole number that every JSON reader keeps exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// A node as JSON.
///
/// Numbers with a leading zero or plus sign (phone numbers, codes) or too many digits for JSON readers stay text, as do
/// infinite values.
pub(crate) fn node_to_json(node: &Node) -> Value {
    match &node.content {
        NodeContent::Scalar(scalar) => scalar_to_json(scalar),
        NodeContent::List(items) => items.iter().map(node_to_json).collect(),
        NodeContent::Map(entries) => Value::Object(
            entries.iter().map(|entry| (entry.key.clone(), node_to_json(&entry.value))).collect::<Map<_, _>>(),
        ),
    }
}

/// A scalar as JSON.
pub(crate) fn scalar_to_json(scalar: &Scalar) -> Value {
    if !scalar.is_plain() {
        return Value::String(scalar.text.clone());
    }
    match scalar.text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        text => parse_number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

fn parse_number(text: &str) -> Option<Number> {
    let parse_whole = |digits: &str, radix| {
        let number = u64::from_str_radix(digits, radix).ok().filter(|&number| number <= MAX_SAFE_INTEGER);
        number.filter(|_| !digits.starts_with('+'))
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return parse_whole(digits, 16).map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return parse_whole(digits, 8).map(Number::from);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let has_leading_zero = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    if has_leading_zero || !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        parse_whole(digits, 10)?;
        return text.parse::<i64>().ok().map(Number::from);
    }
    let looks_decimal =
        digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    text.parse::<f64>().ok().filter(|_| looks_decimal).and_then(Number::from_f64)
}

/// The maximum nesting of lists and maps.
const MAX_DEPTH: usize = 32;
/// The maximum number of values in a file, including those repeated by aliases.
const MAX_NODES: usize = 20_000;
/// The maximum number of aliases in a file.
const MAX_ALIASES: usize = 100;
/// The maximum number of bytes that aliases can repeat: the maximum size of a file.
const MAX_REPEATED_BYTES: usize = 1 << 20;

/// Parses the file of the collector and reports findings; `None` if the file cannot be read.
pub(crate) fn read_tree(report: &mut FindingCollector) -> Option<Node> {
    let source = report.source.clone();
    let options = options! { emit_anchor_events: true, flow_nesting_limit: MAX_DEPTH, block_nesting_limit: MAX_DEPTH };
    let events = Parser::new_from_str_with_options(source.text(), options);
    let mut reader = TreeReader { events, report, anchors: BTreeMap::new(), nodes: 0, aliases: 0, repeated_bytes: 0 };
    match reader.read_document() {
        Ok(node) => node,
        Err(finding) => {
            // If an unquoted text was already reported, YAML's own error on the same line is not a second problem.
            let line = |finding: &Finding| finding.place.as_ref().map(|place| place.line_number());
            let is_reported =
                |other: &Finding| *other.rule == rules::UNQUOTED_TEMPLATE && line(other) == line(&finding);
            if !reader.report.findings.iter().any(is_reported) {
                reader.report.findings.push(*finding);
            }
            None
        }
    }
}

/// The finding that stops reading.
type FatalFinding = Box<Finding>;

struct TreeReader<'s, 'r> {
    events: Parser<'s, StrInput<'s>>,
    report: &'r mut FindingCollector,
    anchors: BTreeMap<usize, Anchor>,
    nodes: usize,
    aliases: usize,
    repeated_bytes: usize,
}

#[derive(Default)]
struct Anchor {
    span: Range<usize>,
    node: Option<Node>,
    is_used: bool,
}

impl<'s> TreeReader<'s, '_> {
    fn read_document(&mut self) -> Result<Option<Node>, FatalFinding> {
        let mut root = None;
        loop {
            match self.next_event()? {
                (Event::StreamEnd, _) => break,
                (Event::DocumentStart(..), span) if root.is_some() => {
                    return Err(self.fatal_finding(
                        &span,
                        Finding::new(&rules::YAML_DOCUMENTS, "a second document starts here")
                            .help("remove the `---` line; a file can contain only one document"),
                    ));
                }
                (Event::DocumentStart(..), _) => root = Some(self.read_node(1)?),
                _ => {}
            }
        }
        self.report_unused_anchors();
        if root.is_none() {
            self.report.add(
                &(0..0),
                Finding::new(&rules::FILE_EMPTY, "the file is empty")
                    .help("start with `recipients:` and `channels:`, or create a campaign with `campaign init NAME`"),
            );
        }
        Ok(root)
    }

    /// The next event other than an anchor, with the bytes that it covers.
    fn next_event(&mut self) -> Result<(Event<'s>, Range<usize>), FatalFinding> {
        loop {
            let Some(event) = self.events.next() else { return Ok((Event::StreamEnd, 0..0)) };
            let (event, span) = event
                .map_err(|error| self.report.with_keys(|source, keys| Box::new(explain_error(&error, source, keys))))?;
            if event.tag().is_some() {
                self.report_tag(&span.tag_span().as_ref().map_or_else(|| byte_range(&span), byte_range));
            }
            match event {
                Event::Anchor(id, _) => self.anchors.entry(id).or_default().span = byte_range(&span),
                event => return Ok((event, byte_range(&span))),
            }
        }
    }

    fn read_node(&mut self, depth: usize) -> Result<Node, FatalFinding> {
        let (event, span) = self.next_event()?;
        self.build_node(event, span, depth)
    }

    fn build_node(&mut self, event: Event<'s>, span: Range<usize>, depth: usize) -> Result<Node, FatalFinding> {
        self.count_nodes(1, 1, depth, &span)?;
        let anchor = event.anchor_id();
        let node = match event {
            Event::Scalar(text, style, _, _) => {
                let is_absent = style == Style::Plain && span.is_empty();
                let text = if is_absent { String::new() } else { text.into_owned() };
                Node { content: NodeContent::Scalar(Scalar { text, style }), span }
            }
            Event::SequenceStart(..) => self.read_list(span, depth)?,
            Event::MappingStart(..) => self.read_map(span, depth)?,
            Event::Alias(id) => return self.resolve_alias(id, span, depth),
            _ => return Err(self.fatal_finding(&span, Finding::new(&rules::YAML_SYNTAX, "a value is missing here"))),
        };
        if let Some(id) = anchor {
            self.anchors.entry(id).or_default().node = Some(node.clone());
        }
        Ok(node)
    }

    fn read_list(&mut self, opening: Range<usize>, depth: usize) -> Result<Node, FatalFinding> {
        let mut items: Vec<Node> = Vec::new();
        loop {
            let (event, span) = self.next_event()?;
            if event == Event::SequenceEnd {
                let end = end_of_collection(&span, items.last().map(|item| &item.span), &opening);
                return Ok(Node { content: NodeContent::List(items), span: opening.start..end });
            }
            items.push(self.build_node(event, span, depth + 1)?);
        }
    }

    fn read_map(&mut self, opening: Range<usize>, depth: usize) -> Result<Node, FatalFinding> {
        let mut entries: Vec<MapEntry> = Vec::new();
        let mut keys: HashSet<String> = HashSet::new();
        let mut is_template = false;
        loop {
            let (event, span) = self.next_event()?;
            if event == Event::MappingEnd {
                let end = end_of_collection(&span, entries.last().map(|entry| &entry.value.span), &opening);
                let span = opening.start..end;
                // YAML reads an unquoted `{{ placeholder }}` as a map. The value is kept as text, so that its other
                // mistakes are also reported.
                let content = match self.report.source.text().get(span.clone()).filter(|_| is_template) {
                    Some(text) => NodeContent::Scalar(Scalar { text: text.to_owned(), style: Style::Plain }),
                    None => NodeContent::Map(entries),
                };
                return Ok(Node { content, span });
            }
            let key = self.build_node(event, span, depth + 1)?;
            let value = self.read_node(depth + 1)?;
            is_template |= key.as_scalar().is_none() && self.report.source.text()[opening.start..].starts_with("{{");
            let Some(name) = self.read_key(&key, &opening) else { continue };
            if keys.insert(name.clone()) {
                entries.push(MapEntry { key: name, key_span: key.span, value });
            } else {
                let finding = Finding::new(&rules::YAML_DUPLICATE_KEY, format!("`{name}` is defined twice"));
                let first = entries.iter().find(|entry| entry.key == name).and_then(|entry| entry.value.as_scalar());
                let has_same_value = value.as_scalar().zip(first).is_some_and(|(value, first)| {
                    (&value.text, value.style) == (&first.text, first.style) && !value.is_null()
                });
                let text = self.report.source.text();
                let fix = fixes::remove_line(text, &key.span, &value.span).filter(|_| has_same_value);
                let help = match value.as_scalar() {
                    Some(_) => "keep one of them; a key can appear only once",
                    None => {
                        "move the lines below it under the first one, and remove this line; a key can appear \
                             only once"
                    }
                };
                self.report.add(&key.span, finding.help(help).fix(fix));
                // The content of the second key is checked too.
                if let Some(first) = entries.iter_mut().find(|entry| entry.key == name) {
                    first.value.merge_missing(value);
                }
            }
        }
    }

    /// Returns the name of a key, or reports the key if its name is not valid.
    fn read_key(&mut self, key: &Node, map: &Range<usize>) -> Option<String> {
        let is_unquoted_template = self.report.source.text()[map.start..].starts_with("{{");
        match key.as_scalar() {
            Some(scalar) if scalar.is_plain() && scalar.text == "<<" => {
                let finding = Finding::new(&rules::YAML_MERGE, "merging maps with `<<` is not supported");
                self.report.add(&key.span, finding.help("write all keys out in full"));
            }
            Some(scalar) if !scalar.is_null() => return Some(scalar.text.clone()),
            None if is_unquoted_template => self.report.add(
                &(map.start..key.span.end + 1),
                Finding::new(
                    &rules::UNQUOTED_TEMPLATE,
                    "YAML reads a value that starts with `{{` as a map, not as text",
                )
                .help("put the whole value in quotes, as in `message: \"{{ first_name }}, hello\"`")
                .fix(self.fix_quotes(map.start)),
            ),
            _ => {
                let finding = Finding::new(&rules::YAML_KEY, "the name before `:` is missing or not valid");
                self.report.add(
                    &key.span,
                    finding.help("write `key: value`; if a value contains `:` or braces, put it in quotes"),
                );
            }
        }
        None
    }

    fn resolve_alias(&mut self, id: usize, span: Range<usize>, depth: usize) -> Result<Node, FatalFinding> {
        self.aliases += 1;
        let anchor = self.anchors.entry(id).or_default();
        anchor.is_used = true;
        let Some(node) = anchor.node.clone() else {
            let finding =
                Finding::new(&rules::YAML_ALIAS, "this alias refers to a value that contains the alias itself");
            return Err(self.fatal_finding(&span, finding.help("replace the alias with its value")));
        };
        if self.aliases > MAX_ALIASES {
            let finding =
                Finding::new(&rules::FILE_TOO_COMPLEX, format!("the file has more than {MAX_ALIASES} aliases"));
            return Err(self.fatal_finding(&span, finding.help("replace aliases with their values")));
        }
        self.repeated_bytes += node.count_bytes();
        if self.repeated_bytes > MAX_REPEATED_BYTES {
            let finding = Finding::new(&rules::FILE_TOO_COMPLEX, "the aliases in the file expand to more than 1 MiB");
            return Err(self.fatal_finding(&span, finding.help("replace aliases with their values")));
        }
        let (count, inner_depth) = node.measure_size();
        self.count_nodes(count, inner_depth, depth, &span)?;
        Ok(node)
    }

    /// Counts `count` values with `inner_depth` levels at the nesting level `depth`. Returns a finding if the file has
    /// too many values or nests them too deeply.
    fn count_nodes(
        &mut self,
        count: usize,
        inner_depth: usize,
        depth: usize,
        span: &Range<usize>,
    ) -> Result<(), FatalFinding> {
        self.nodes += count;
        let problem = if self.nodes > MAX_NODES {
            format!("the file has more than {MAX_NODES} values")
        } else if depth + inner_depth > MAX_DEPTH + 1 {
            format!("lists and maps are nested more than {MAX_DEPTH} levels deep")
        } else {
            return Ok(());
        };
        let help = "make the file smaller; move recipients to a CSV file, and long messages to text files";
        Err(self.fatal_finding(span, Finding::new(&rules::FILE_TOO_COMPLEX, problem).help(help)))
    }

    /// Reports a tag without quoting it in the message, because it might be an API key. The source excerpt shows the
    /// tag, if source excerpts are allowed.
    fn report_tag(&mut self, span: &Range<usize>) {
        let message = "YAML reads a word that starts with `!` as a tag, and removes it from the value";
        let fix = self.fix_quotes(span.start);
        self.report.add(span, Finding::new(&rules::YAML_TAG, message).help("put the whole value in quotes").fix(fix));
    }

    /// The fix that puts the text at `start` in quotes, which keep it as it was typed.
    fn fix_quotes(&self, start: usize) -> Option<Fix> {
        self.report.with_keys(|source, keys| fixes::quote_value(source.text(), start, keys))
    }

    /// Reports unused anchors, which are usually the beginning of a text, without quoting them in the message.
    fn report_unused_anchors(&mut self) {
        for anchor in self.anchors.values().filter(|anchor| !anchor.is_used) {
            let message = "YAML reads a word that starts with `&` as an anchor, and removes it from the value";
            let finding = Finding::new(&rules::YAML_ANCHOR, message).help("put the whole value in quotes");
            let fix = self.report.with_keys(|source, keys| fixes::quote_value(source.text(), anchor.span.start, keys));
            self.report.add(&anchor.span, finding.fix(fix));
        }
    }

    fn fatal_finding(&self, span: &Range<usize>, finding: Finding) -> FatalFinding {
        Box::new(finding.at(SourceLocation::new(&self.report.source, span.clone())))
    }
}

/// The bytes of a parser's span.
fn byte_range(span: &Span) -> Range<usize> {
    let Range { start, end } = span.byte_range().unwrap_or_default();
    start..end.max(start)
}

/// The end of a list or map: its bracket, or its last value.
fn end_of_collection(bracket: &Range<usize>, last: Option<&Range<usize>>, opening: &Range<usize>) -> usize {
    let last_end = last.map_or(opening.end, |last| last.end);
    if bracket.is_empty() { last_end.max(opening.end) } else { bracket.end }
}

#[cfg(test)]
mod json_tests {
    use super::Style;
    use super::*;

    #[test]
    fn values_have_yaml_types_unless_a_number_would_lose_digits() {
        let cases = [
            ("null", "null"),
            ("~", "null"),
            ("true", "true"),
            ("yes", "\"yes\""),
            ("12", "12"),
            ("-3", "-3"),
            ("0", "0"),
            ("0.5", "0.5"),
            ("1e3", "1000.0"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("0501234567", "\"0501234567\""),
            ("+380501234567", "\"+380501234567\""),
            ("9007199254740991", "9007199254740991"),
            ("9007199254740992", "\"9007199254740992\""),
            ("1e999", "\"1e999\""),
            (".inf", "\".inf\""),
            ("1.2.3", "\"1.2.3\""),
            ("-", "\"-\""),
            ("0x+1", "\"0x+1\""),
        ];
        for (typed, json) in cases {
            let scalar = Scalar { text: typed.into(), style: Style::Plain };
            assert_eq!(scalar_to_json(&scalar).to_string(), json, "{typed}");
        }
        let quoted = Scalar { text: "12".into(), style: Style::DoubleQuoted };
        assert_eq!(scalar_to_json(&quoted).to_string(), "\"12\"");
    }
}
