//! Styled text for a person: lines of spans, coloured by what they mean and wrapped at words.
//!
//! Rendering makes every span harmless, so that no cell of a list commands the terminal. Colour never carries meaning alone.

use anstyle::{AnsiColor, Style};
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

use super::table::TerminalTable;
use crate::finding::{KEPT_BLANK, PROSE_WIDTH, escape_to_one_line, is_kept_whole};

/// How much further in the rest of a wrapped line begins, in columns.
const HANGING_INDENT: usize = 2;

/// What a span means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanMeaning {
    /// Ordinary text.
    Plain,
    /// Success: finished runs, accepted and delivered messages.
    Good,
    /// Failure: errors, rejected and failed messages.
    Bad,
    /// Caution: warnings and messages in doubt.
    Caution,
    /// Details of lesser importance, such as times.
    Dim,
    /// Names and figures.
    Strong,
    /// What to do next.
    Next,
}

/// A part of a line with one meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    text: String,
    meaning: SpanMeaning,
    /// Whether the span is never wrapped, because people copy it.
    is_unbroken: bool,
}

/// A line, which can be wrapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StyledLine {
    indent: usize,
    /// Where the rest begins if the line is wrapped; beyond `indent`.
    hang: usize,
    /// Whether the line is never wrapped, because people copy it.
    is_unbroken: bool,
    spans: Vec<Span>,
}

/// Lines and tables for a person.
#[derive(Clone, Debug, Default)]
pub(super) struct StyledText(Vec<TextBlock>);

#[derive(Clone, Debug)]
enum TextBlock {
    Line(StyledLine),
    Table(TerminalTable),
}

/// A span with a meaning.
pub(super) fn span(meaning: SpanMeaning, text: impl Into<String>) -> Span {
    Span { text: text.into(), meaning, is_unbroken: false }
}

/// Ordinary text.
pub(super) fn plain(text: impl Into<String>) -> Span {
    span(SpanMeaning::Plain, text)
}

/// A success.
pub(super) fn good(text: impl Into<String>) -> Span {
    span(SpanMeaning::Good, text)
}

/// A failure.
pub(super) fn bad(text: impl Into<String>) -> Span {
    span(SpanMeaning::Bad, text)
}

/// A warning or a doubt.
pub(super) fn caution(text: impl Into<String>) -> Span {
    span(SpanMeaning::Caution, text)
}

/// A detail.
pub(super) fn dim(text: impl Into<String>) -> Span {
    span(SpanMeaning::Dim, text)
}

/// A name or a figure.
pub(super) fn strong(text: impl Into<String>) -> Span {
    span(SpanMeaning::Strong, text)
}

/// What people copy: a command, a path or an address, which is never wrapped.
pub(super) fn copyable(text: impl Into<String>) -> Span {
    Span { is_unbroken: true, ..plain(text) }
}

/// Spans with another one between them.
pub(super) fn join_spans(parts: impl IntoIterator<Item = Vec<Span>>, between: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    for part in parts {
        if !spans.is_empty() {
            spans.push(dim(between));
        }
        spans.extend(part);
    }
    spans
}

/// Text with its quoted parts and the command at its end in spans of their own, which are never wrapped.
fn split_quoted(text: &str) -> Vec<Span> {
    let command = if text.starts_with("campaign ") { Some(0) } else { text.find(": campaign ").map(|at| at + 2) };
    let (prose, command) = text.split_at(command.unwrap_or(text.len()));
    // Every second part is quoted.
    let quoted = |(at, part): (usize, &str)| match at % 2 {
        1 if is_kept_whole(part) => copyable(format!("`{part}`")),
        1 => plain(format!("`{part}`")),
        _ => plain(part),
    };
    let mut spans: Vec<Span> = match prose.matches('`').count() % 2 {
        0 => prose.split('`').enumerate().map(quoted).collect(),
        _ => vec![plain(prose)],
    };
    spans.push(copyable(command));
    spans.retain(|span| !span.text.is_empty());
    spans
}

impl Span {
    /// The same span, which is never wrapped, such as a time.
    pub(super) fn unbroken(self) -> Self {
        Self { is_unbroken: true, ..self }
    }

    /// The span as it is shown, without its colour.
    pub(super) fn plain_text(&self) -> String {
        escape_to_one_line(&self.text)
    }

    /// The span, in colours if these are wanted.
    pub(super) fn render(&self, color: bool) -> String {
        let (style, text) = (self.meaning.style(), self.plain_text());
        if color && style != Style::new() && !text.is_empty() { format!("{style}{text}{style:#}") } else { text }
    }

    fn render_to_wrap(&self, color: bool) -> String {
        let text = self.render(color);
        if self.is_unbroken { text.replace(' ', KEPT_BLANK.encode_utf8(&mut [0; 4])) } else { text }
    }
}

impl From<&str> for Span {
    fn from(text: &str) -> Self {
        plain(text)
    }
}

impl From<String> for Span {
    fn from(text: String) -> Self {
        plain(text)
    }
}

impl SpanMeaning {
    fn style(self) -> Style {
        let coloured = |color: AnsiColor| color.on_default();
        match self {
            SpanMeaning::Plain => Style::new(),
            SpanMeaning::Good => coloured(AnsiColor::Green),
            SpanMeaning::Bad => coloured(AnsiColor::Red).bold(),
            SpanMeaning::Caution => coloured(AnsiColor::Yellow),
            SpanMeaning::Dim => Style::new().dimmed(),
            SpanMeaning::Strong => Style::new().bold(),
            SpanMeaning::Next => coloured(AnsiColor::Cyan),
        }
    }
}

impl StyledLine {
    /// A line of these spans.
    pub(super) fn new(spans: impl IntoIterator<Item = Span>) -> Self {
        Self { indent: 0, hang: HANGING_INDENT, is_unbroken: false, spans: spans.into_iter().collect() }
    }

    /// The line of what to do next: a command, which is never broken.
    pub(super) fn next_step(command: impl Into<String>) -> Self {
        Self::new([span(SpanMeaning::Next, "next:"), plain(" "), plain(command)]).unbroken()
    }

    /// The same line, this many columns further in.
    pub(super) fn with_indent(self, indent: usize) -> Self {
        Self { indent: self.indent + indent, ..self }
    }

    /// The same line, whose rest begins this many columns beyond its indent if it is wrapped.
    pub(super) fn with_hang(self, hang: usize) -> Self {
        Self { hang, ..self }
    }

    /// The same line, which is never wrapped: a command, a path or an address that people copy.
    pub(super) fn unbroken(self) -> Self {
        Self { is_unbroken: true, ..self }
    }

    /// A line that begins with a green check mark: what a command did.
    pub(super) fn success(spans: impl IntoIterator<Item = Span>) -> Self {
        Self::with_mark(good("✓"), spans)
    }

    /// A line that begins with a yellow exclamation mark: what needs attention.
    pub(super) fn attention(spans: impl IntoIterator<Item = Span>) -> Self {
        Self::with_mark(caution("!"), spans)
    }

    /// A line that begins with a red cross: what failed.
    pub(super) fn failure(spans: impl IntoIterator<Item = Span>) -> Self {
        Self::with_mark(bad("✗"), spans)
    }

    fn with_mark(mark: Span, spans: impl IntoIterator<Item = Span>) -> Self {
        Self::new([mark, plain(" ")].into_iter().chain(spans))
    }

    /// A line of prose, whose quoted parts and whose command at the end are never wrapped.
    pub(super) fn from_prose(text: &str) -> Self {
        Self::new(split_quoted(text))
    }

    /// A line of prose behind a label such as `error:`.
    pub(super) fn with_label(label: Span, text: &str) -> Self {
        Self::new([label, plain(" ")].into_iter().chain(split_quoted(text)))
    }

    /// A line of plain text, whose leading blanks are its indent and whose label, such as `next:`, has its colour.
    fn parse(text: &str) -> Self {
        let body = text.trim_start_matches(' ');
        let labels = [
            ("next", SpanMeaning::Next),
            ("help", SpanMeaning::Next),
            ("warning", SpanMeaning::Caution),
            ("error", SpanMeaning::Bad),
        ];
        let label = labels.into_iter().find(|(label, _)| {
            let rest = body.strip_prefix(label);
            rest.is_some_and(|rest| rest.starts_with(": ") || rest.starts_with(" ("))
        });
        let mut spans = Vec::new();
        // A label such as `next (this was a rehearsal): ` ends behind its bracket.
        let behind = |(label, _): (&str, _)| if body[label.len()..].starts_with(" (") { "): " } else { ": " };
        let end = label.and_then(|label| body.find(behind(label)).map(|at| at + behind(label).len() - 2));
        let rest = match label.zip(end.map(|end| (&body[..end], &body[end + 2..]))) {
            Some(((_, meaning), (label, rest))) => {
                spans.extend([span(meaning, format!("{label}:")), plain(" ")]);
                rest
            }
            None => body,
        };
        spans.extend(split_quoted(rest));
        let line = Self::new(spans).with_indent(text.len() - body.len());
        let is_copied = label.is_some_and(|(label, _)| label == "next") || body.starts_with("results: ");
        if is_copied { line.unbroken() } else { line }
    }

    /// The line on a terminal of so many columns, without a line break at its end.
    pub(super) fn render(&self, columns: Option<usize>, color: bool) -> String {
        let (indent, rest) = (" ".repeat(self.indent), " ".repeat(self.indent + self.hang));
        match columns.filter(|_| !self.is_unbroken) {
            Some(columns) => {
                let text: String = self.spans.iter().map(|span| span.render_to_wrap(color)).collect();
                let options = Options::new(columns.min(PROSE_WIDTH))
                    .initial_indent(&indent)
                    .subsequent_indent(&rest)
                    .break_words(false)
                    .word_separator(WordSeparator::AsciiSpace)
                    .word_splitter(WordSplitter::NoHyphenation)
                    .wrap_algorithm(WrapAlgorithm::FirstFit);
                textwrap::fill(&text, options).replace(KEPT_BLANK, " ")
            }
            None => {
                let text: String = self.spans.iter().map(|span| span.render(color)).collect();
                if text.is_empty() { text } else { indent + &text }
            }
        }
    }
}

impl StyledText {
    /// No lines.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds a line.
    pub(super) fn push(&mut self, line: StyledLine) {
        self.0.push(TextBlock::Line(line));
    }

    /// Adds a line of these spans, this many columns in.
    pub(super) fn add_line(&mut self, indent: usize, spans: impl IntoIterator<Item = Span>) {
        self.push(StyledLine::new(spans).with_indent(indent));
    }

    /// Adds an empty line.
    pub(super) fn add_blank(&mut self) {
        self.push(StyledLine::new([]));
    }

    /// Whether there are no lines.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds these lines.
    pub(super) fn extend(&mut self, text: impl Into<StyledText>) {
        self.0.extend(text.into().0);
    }

    /// The text on a terminal of so many columns; without a width, no line is wrapped.
    pub(super) fn render(&self, columns: Option<usize>, color: bool) -> String {
        let block = |block: &TextBlock| match block {
            TextBlock::Line(line) => line.render(columns, color) + "\n",
            TextBlock::Table(table) => table.render(columns, color),
        };
        self.0.iter().map(block).collect()
    }
}

impl From<&str> for StyledText {
    fn from(text: &str) -> Self {
        Self(text.lines().map(|line| TextBlock::Line(StyledLine::parse(line))).collect())
    }
}

impl From<&String> for StyledText {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<String> for StyledText {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<StyledLine> for StyledText {
    fn from(line: StyledLine) -> Self {
        Self(vec![TextBlock::Line(line)])
    }
}

impl From<TerminalTable> for StyledText {
    fn from(table: TerminalTable) -> Self {
        Self(vec![TextBlock::Table(table)])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn summary_is_wrapped_at_words_and_keeps_commands_whole() {
        let text = "spring@1 · production · sync · finished\n  8 rows: 7 accepted by the gateway · 1 rejected\n  \
                    results: results/spring of the year.csv\nnext: campaign retry spring --gateways my.yaml\n";
        assert_eq!(StyledText::from(text).render(Some(80), false), text);
        let narrow = "spring@1 · production · sync ·\n  finished\n  8 rows: 7 accepted by the\n    gateway · 1 rejected\n  \
                      results: results/spring of the year.csv\nnext: campaign retry spring --gateways my.yaml\n";
        assert_eq!(StyledText::from(text).render(Some(30), false), narrow);
    }

    #[test]
    fn command_in_prose_is_not_broken() {
        let text = StyledText::from(
            "  to retry rejected messages, once the cause is fixed: campaign retry sale@1 --state failed\n",
        );
        assert_eq!(
            text.render(Some(45), false),
            "  to retry rejected messages, once the cause\n    is fixed:\n    campaign retry sale@1 --state failed\n"
        );
        let quoted = StyledLine::from_prose("run `campaign check a.yaml` first").render(Some(20), false);
        assert_eq!(quoted, "run\n  `campaign check a.yaml`\n  first");
    }

    #[test]
    fn span_escapes_control_characters() {
        let line = StyledLine::new([bad("\u{1b}[2Jgone\n"), plain("\u{202e}")]);
        assert_eq!(line.render(None, true), "\u{1b}[1m\u{1b}[31m\\u{1b}[2Jgone⏎\u{1b}[0m\\u{202e}");
    }

    #[test]
    fn label_is_coloured_only_if_colours_are_enabled() {
        let text = StyledText::from("next: campaign status\n");
        assert_eq!(text.render(None, false), "next: campaign status\n");
        assert_eq!(text.render(None, true), "\u{1b}[36mnext:\u{1b}[0m campaign status\n");
    }

    proptest! {
        #[test]
        fn wrapping_loses_no_word_and_keeps_the_width(
            words in prop::collection::vec("[a-zйї·]{1,12}", 1..30),
            indent in 0_usize..4,
            columns in 20_usize..140,
            color in any::<bool>(),
        ) {
            let line = StyledLine::new([strong(words.join(" "))]).with_indent(indent);
            let text = line.render(Some(columns), color);
            prop_assert!(text.lines().all(|line| textwrap::core::display_width(line) <= columns.min(PROSE_WIDTH)), "{}", text);
            let bare = console::strip_ansi_codes(&text).into_owned();
            prop_assert_eq!(bare.split_whitespace().collect::<Vec<_>>(), words);
        }
    }
}
