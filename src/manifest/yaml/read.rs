//! A file's text becomes the tree; what YAML allows and a campaign does not is told here.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use granit_parser::{Event, Parser, Span, StrInput, options};

use super::explain::explain;
use super::node::Style;
use super::{Content, Entry, Node, Scalar};
use crate::finding::{Finding, Place, rules};
use crate::manifest::report::Report;

/// How deep lists and maps may lie in each other.
const DEPTH: usize = 32;
/// How many values a file may have, those repeated by aliases included.
const NODES: usize = 20_000;
/// How many times a file may refer back to an anchor.
const ALIASES: usize = 100;
/// How many bytes aliases may repeat: as many as a file may have.
const REPEATED: usize = 1 << 20;

/// Reads the report's file; findings go into the report, and there is no tree if it cannot be read.
pub(crate) fn read(report: &mut Report) -> Option<Node> {
    let source = report.source.clone();
    let options = options! { emit_anchor_events: true, flow_nesting_limit: DEPTH, block_nesting_limit: DEPTH };
    let events = Parser::new_from_str_with_options(source.text(), options);
    let mut reader = Reader { events, report, anchors: BTreeMap::new(), nodes: 0, aliases: 0, repeated: 0 };
    match reader.document() {
        Ok(node) => node,
        Err(finding) => {
            // Where a text without quotes is told already, YAML's own trouble with it is no second one.
            let line = |finding: &Finding| finding.place.as_ref().map(|place| place.line());
            let is_told = |told: &Finding| *told.rule == rules::UNQUOTED_TEMPLATE && line(told) == line(&finding);
            if !reader.report.findings.iter().any(is_told) {
                reader.report.findings.push(*finding);
            }
            None
        }
    }
}

/// Why reading stops.
type Fatal = Box<Finding>;

struct Reader<'s, 'r> {
    events: Parser<'s, StrInput<'s>>,
    report: &'r mut Report,
    anchors: BTreeMap<usize, Anchor>,
    nodes: usize,
    aliases: usize,
    repeated: usize,
}

#[derive(Default)]
struct Anchor {
    span: Range<usize>,
    node: Option<Node>,
    used: bool,
}

impl<'s> Reader<'s, '_> {
    fn document(&mut self) -> Result<Option<Node>, Fatal> {
        let mut root = None;
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => break,
                (Event::DocumentStart(..), span) if root.is_some() => {
                    return Err(self.fatal(
                        &span,
                        Finding::new(&rules::YAML_DOCUMENTS, "a second document starts here")
                            .help("remove the line `---`; a file contains one document"),
                    ));
                }
                (Event::DocumentStart(..), _) => root = Some(self.node(1)?),
                _ => {}
            }
        }
        self.unused_anchors();
        if root.is_none() {
            self.report.at(
                &(0..0),
                Finding::new(&rules::FILE_EMPTY, "the file is empty")
                    .help("start with `recipients:` and `channels:`, or create a campaign with `campaign init NAME`"),
            );
        }
        Ok(root)
    }

    /// The next event that is not about an anchor, with its bytes.
    fn next(&mut self) -> Result<(Event<'s>, Range<usize>), Fatal> {
        loop {
            let Some(event) = self.events.next() else { return Ok((Event::StreamEnd, 0..0)) };
            let (event, span) = event.map_err(|error| Box::new(explain(&error, &self.report.source)))?;
            if event.tag().is_some() {
                self.tag(&span.tag_span().as_ref().map_or_else(|| bytes(&span), bytes));
            }
            match event {
                Event::Anchor(id, _) => self.anchors.entry(id).or_default().span = bytes(&span),
                event => return Ok((event, bytes(&span))),
            }
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node, Fatal> {
        let (event, span) = self.next()?;
        self.build(event, span, depth)
    }

    fn build(&mut self, event: Event<'s>, span: Range<usize>, depth: usize) -> Result<Node, Fatal> {
        self.spend((1, 1), depth, &span)?;
        let anchor = event.anchor_id();
        let node = match event {
            Event::Scalar(text, style, _, _) => {
                let absent = style == Style::Plain && span.is_empty();
                let text = if absent { String::new() } else { text.into_owned() };
                Node { content: Content::Scalar(Scalar { text, style }), span }
            }
            Event::SequenceStart(..) => self.list(span, depth)?,
            Event::MappingStart(..) => self.map(span, depth)?,
            Event::Alias(id) => return self.alias(id, span, depth),
            _ => return Err(self.fatal(&span, Finding::new(&rules::YAML_SYNTAX, "a value is missing here"))),
        };
        if let Some(id) = anchor {
            self.anchors.entry(id).or_default().node = Some(node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, start: Range<usize>, depth: usize) -> Result<Node, Fatal> {
        let mut items: Vec<Node> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                let end = end(&span, items.last().map(|item| &item.span), &start);
                return Ok(Node { content: Content::List(items), span: start.start..end });
            }
            items.push(self.build(event, span, depth + 1)?);
        }
    }

    fn map(&mut self, start: Range<usize>, depth: usize) -> Result<Node, Fatal> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        let mut is_template = false;
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                let end = end(&span, entries.last().map(|entry| &entry.value.span), &start);
                let span = start.start..end;
                // The intended text is read as text, so that its own mistakes are found at once.
                let content = match self.report.source.text().get(span.clone()).filter(|_| is_template) {
                    Some(text) => Content::Scalar(Scalar { text: text.to_owned(), style: Style::Plain }),
                    None => Content::Map(entries),
                };
                return Ok(Node { content, span });
            }
            let key = self.build(event, span, depth + 1)?;
            let value = self.node(depth + 1)?;
            is_template |= key.scalar().is_none() && self.report.source.text()[start.start..].starts_with("{{");
            let Some(name) = self.key(&key, &start) else { continue };
            if seen.insert(name.clone()) {
                entries.push(Entry { key: name, key_span: key.span, value });
            } else {
                let finding = Finding::new(&rules::YAML_DUPLICATE_KEY, format!("`{name}` is defined twice"));
                let help = match value.scalar() {
                    Some(_) => "keep one of them; a key can appear only once",
                    None => "move its lines under the first one, and remove this line; a key can appear only once",
                };
                self.report.at(&key.span, finding.help(help));
                // The content of the second one is checked too.
                if let Some(first) = entries.iter_mut().find(|entry| entry.key == name) {
                    first.value.merge(value);
                }
            }
        }
    }

    /// The name of a key; what cannot be one is told.
    fn key(&mut self, key: &Node, map: &Range<usize>) -> Option<String> {
        let unquoted = self.report.source.text()[map.start..].starts_with("{{");
        match key.scalar() {
            Some(scalar) if scalar.is_plain() && scalar.text == "<<" => {
                let finding = Finding::new(&rules::YAML_MERGE, "merging maps with `<<` is not supported");
                self.report.at(&key.span, finding.help("write all keys out in full"));
            }
            Some(scalar) if !scalar.is_null() => return Some(scalar.text.clone()),
            None if unquoted => self.report.at(
                &(map.start..key.span.end + 1),
                Finding::new(
                    &rules::UNQUOTED_TEMPLATE,
                    "YAML reads a value that starts with `{{` as a map, not as text",
                )
                .help("put the whole value in quotes, as in `message: \"{{ first_name }}, hello\"`"),
            ),
            _ => {
                let finding = Finding::new(&rules::YAML_KEY, "the name before `:` is missing or not valid");
                self.report.at(
                    &key.span,
                    finding.help("write `key: value`; if a value contains `:` or braces, put it in quotes"),
                );
            }
        }
        None
    }

    fn alias(&mut self, id: usize, span: Range<usize>, depth: usize) -> Result<Node, Fatal> {
        self.aliases += 1;
        let anchor = self.anchors.entry(id).or_default();
        anchor.used = true;
        let Some(node) = anchor.node.clone() else {
            let finding =
                Finding::new(&rules::YAML_ALIAS, "this alias refers to a value that contains the alias itself");
            return Err(self.fatal(&span, finding.help("replace the alias with its value")));
        };
        if self.aliases > ALIASES {
            let finding = Finding::new(&rules::FILE_TOO_COMPLEX, format!("the file has more than {ALIASES} aliases"));
            return Err(self.fatal(&span, finding.help("replace aliases with their values")));
        }
        self.repeated += node.bytes();
        if self.repeated > REPEATED {
            let finding = Finding::new(&rules::FILE_TOO_COMPLEX, "the aliases in the file expand to more than 1 MiB");
            return Err(self.fatal(&span, finding.help("replace aliases with their values")));
        }
        self.spend(node.size(), depth, &span)?;
        Ok(node)
    }

    /// Takes values from what a file may have.
    fn spend(&mut self, (count, deep): (usize, usize), depth: usize, span: &Range<usize>) -> Result<(), Fatal> {
        self.nodes += count;
        let problem = if self.nodes > NODES {
            format!("the file has more than {NODES} values")
        } else if depth + deep > DEPTH + 1 {
            format!("lists and maps are nested more than {DEPTH} levels deep")
        } else {
            return Ok(());
        };
        let help = "make the file smaller; move recipients to a CSV file, and long messages to text files";
        Err(self.fatal(span, Finding::new(&rules::FILE_TOO_COMPLEX, problem).help(help)))
    }

    /// The word is not repeated: it may be a key that opens a gateway. Its place shows it where it may be shown.
    fn tag(&mut self, span: &Range<usize>) {
        let message = "YAML reads a word that starts with `!` as a tag, and removes it from the value";
        self.report.at(span, Finding::new(&rules::YAML_TAG, message).help("put the whole value in quotes"));
    }

    /// An anchor that nothing repeats is far more often the beginning of a text; its word is not repeated either.
    fn unused_anchors(&mut self) {
        for anchor in self.anchors.values().filter(|anchor| !anchor.used) {
            let message = "YAML reads a word that starts with `&` as an anchor, and removes it from the value";
            let finding = Finding::new(&rules::YAML_ANCHOR, message).help("put the whole value in quotes");
            self.report.at(&anchor.span, finding);
        }
    }

    fn fatal(&self, span: &Range<usize>, finding: Finding) -> Fatal {
        Box::new(finding.at(Place::new(&self.report.source, span.clone())))
    }
}

/// The bytes of a parser's span.
fn bytes(span: &Span) -> Range<usize> {
    let Range { start, end } = span.byte_range().unwrap_or_default();
    start..end.max(start)
}

/// Where a list or map ends: at its bracket, or else with its last value.
fn end(bracket: &Range<usize>, last: Option<&Range<usize>>, start: &Range<usize>) -> usize {
    let last = last.map_or(start.end, |last| last.end);
    if bracket.is_empty() { last.max(start.end) } else { bracket.end }
}
