//! Styled terminal text: lines of spans, tables, and inline charts, coloured by meaning and wrapped at words.
//!
//! Rendering escapes every span, so that no cell of a list can control the terminal. Colour alone never carries
//! meaning.

use anstyle::{AnsiColor, Style};
use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

use campaign_core::finding::{KEPT_BLANK, PROSE_WIDTH, escape_to_one_line, is_kept_whole, keep_digit_groups};

/// The additional indent of the rest of a wrapped line.
const HANGING_INDENT: usize = 2;

/// The meaning of a span, which decides its colour.
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
    /// The next step.
    Next,
}

/// A part of a line with a single meaning.
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
    /// The additional indent of the rest if the line is wrapped.
    hang: usize,
    /// Whether the line is never wrapped, because people copy it.
    is_unbroken: bool,
    spans: Vec<Span>,
}

/// Lines and tables.
#[derive(Clone, Debug, Default)]
pub(super) struct StyledText(Vec<TextBlock>);

#[derive(Clone, Debug)]
enum TextBlock {
    Line(StyledLine),
    Table(TerminalTable),
}

/// Creates a span with a meaning.
pub(super) fn span(meaning: SpanMeaning, text: impl Into<String>) -> Span {
    Span { text: text.into(), meaning, is_unbroken: false }
}

/// Creates a span of ordinary text.
pub(super) fn plain(text: impl Into<String>) -> Span {
    span(SpanMeaning::Plain, text)
}

/// Creates a span about a success.
pub(super) fn good(text: impl Into<String>) -> Span {
    span(SpanMeaning::Good, text)
}

/// Creates a span about a failure.
pub(super) fn bad(text: impl Into<String>) -> Span {
    span(SpanMeaning::Bad, text)
}

/// Creates a span for a warning or a message in doubt.
pub(super) fn caution(text: impl Into<String>) -> Span {
    span(SpanMeaning::Caution, text)
}

/// Creates a span for a detail.
pub(super) fn dim(text: impl Into<String>) -> Span {
    span(SpanMeaning::Dim, text)
}

/// Creates a span for a name or a figure.
pub(super) fn strong(text: impl Into<String>) -> Span {
    span(SpanMeaning::Strong, text)
}

/// Creates a span for a command, path or address that people copy, which is never wrapped.
pub(super) fn copyable(text: impl Into<String>) -> Span {
    Span { is_unbroken: true, ..plain(text) }
}

/// Joins spans with a separator.
pub(super) fn join_spans(parts: impl IntoIterator<Item = Vec<Span>>, separator: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    for part in parts {
        if !spans.is_empty() {
            spans.push(dim(separator));
        }
        spans.extend(part);
    }
    spans
}

/// Splits a text into spans, in which quoted parts and a command at the end are not wrapped.
fn split_quoted(text: &str) -> Vec<Span> {
    let command = if text.starts_with("campaign ") { Some(0) } else { text.find(": campaign ").map(|at| at + 2) };
    let (prose, command) = text.split_at(command.unwrap_or(text.len()));
    // Parts with an odd index are quoted.
    let to_span = |(index, part): (usize, &str)| match index % 2 {
        1 if is_kept_whole(part) => copyable(format!("`{part}`")),
        1 => plain(format!("`{part}`")),
        _ => plain(part),
    };
    let mut spans: Vec<Span> = match prose.matches('`').count() % 2 {
        0 => prose.split('`').enumerate().map(to_span).collect(),
        _ => vec![plain(prose)],
    };
    spans.push(copyable(command));
    spans.retain(|span| !span.text.is_empty());
    spans
}

impl Span {
    /// Prevents wrapping, for example of a time.
    pub(super) fn unbroken(self) -> Self {
        Self { is_unbroken: true, ..self }
    }

    /// The text of the span as it is displayed, without colour.
    pub(super) fn plain_text(&self) -> String {
        escape_to_one_line(&self.text)
    }

    /// Renders the span, with its colour if `color` is set.
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
    /// A line that consists of `spans`.
    pub(super) fn new(spans: impl IntoIterator<Item = Span>) -> Self {
        Self { indent: 0, hang: HANGING_INDENT, is_unbroken: false, spans: spans.into_iter().collect() }
    }

    /// A `next:` line with a command, which is never wrapped.
    pub(super) fn next_step(command: impl Into<String>) -> Self {
        Self::new([span(SpanMeaning::Next, "next:"), plain(" "), plain(command)]).unbroken()
    }

    /// Indents the line.
    pub(super) fn with_indent(self, indent: usize) -> Self {
        Self { indent: self.indent + indent, ..self }
    }

    /// Sets the additional indent of continuation lines.
    pub(super) fn with_hang(self, hang: usize) -> Self {
        Self { hang, ..self }
    }

    /// Prevents wrapping, for lines that people copy.
    pub(super) fn unbroken(self) -> Self {
        Self { is_unbroken: true, ..self }
    }

    /// A line with a green check mark, for a completed change.
    pub(super) fn success(spans: impl IntoIterator<Item = Span>) -> Self {
        Self::with_mark(good("✓"), spans)
    }

    /// A line with a yellow exclamation mark, which needs attention.
    pub(super) fn attention(spans: impl IntoIterator<Item = Span>) -> Self {
        Self::with_mark(caution("!"), spans)
    }

    /// A line with a red cross, for a failure.
    pub(super) fn failure(spans: impl IntoIterator<Item = Span>) -> Self {
        Self::with_mark(bad("✗"), spans)
    }

    fn with_mark(mark: Span, spans: impl IntoIterator<Item = Span>) -> Self {
        Self::new([mark, plain(" ")].into_iter().chain(spans))
    }

    /// A line of prose. Quoted parts and a command at the end of the line are never wrapped.
    pub(super) fn from_prose(text: &str) -> Self {
        Self::new(split_quoted(text))
    }

    /// A line of prose after a label such as `error:`.
    pub(super) fn with_label(label: Span, text: &str) -> Self {
        Self::new([label, plain(" ")].into_iter().chain(split_quoted(text)))
    }

    /// A line of prose after a coloured mark and a label, such as `✓ ledger`.
    pub(super) fn with_mark_and_label(mark: Span, label: Span, text: &str) -> Self {
        Self::new([mark, plain(" "), label, plain(" ")].into_iter().chain(split_quoted(text)))
    }

    /// Parses plain text: leading spaces are the indent, and a label such as `next:` gets its colour.
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
        let label_end = label.and_then(|(label, _)| {
            // A label such as `next (this was a rehearsal): ` ends after the parenthesis.
            let separator = if body[label.len()..].starts_with(" (") { "): " } else { ": " };
            Some(body.find(separator)? + separator.len() - ": ".len())
        });
        let rest = match label.zip(label_end) {
            Some(((_, meaning), end)) => {
                spans.extend([span(meaning, format!("{}:", &body[..end])), plain(" ")]);
                &body[end + ": ".len()..]
            }
            None => body,
        };
        spans.extend(split_quoted(rest));
        let line = Self::new(spans).with_indent(text.len() - body.len());
        let is_copied = label.is_some_and(|(label, _)| label == "next") || body.starts_with("results: ");
        if is_copied { line.unbroken() } else { line }
    }

    /// Renders the line for a terminal width, without a line break at its end.
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
                textwrap::fill(&keep_digit_groups(&text), options).replace(KEPT_BLANK, " ")
            }
            None => {
                let text: String = self.spans.iter().map(|span| span.render(color)).collect();
                if text.is_empty() { text } else { indent + &text }
            }
        }
    }
}

impl StyledText {
    /// An empty text.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds a line.
    pub(super) fn push(&mut self, line: StyledLine) {
        self.0.push(TextBlock::Line(line));
    }

    /// Adds an indented line.
    pub(super) fn add_line(&mut self, indent: usize, spans: impl IntoIterator<Item = Span>) {
        self.push(StyledLine::new(spans).with_indent(indent));
    }

    /// Adds an empty line.
    pub(super) fn add_blank(&mut self) {
        self.push(StyledLine::new([]));
    }

    /// Whether the text is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends a text.
    pub(super) fn extend(&mut self, text: impl Into<StyledText>) {
        self.0.extend(text.into().0);
    }

    /// Renders the text for a terminal width. Without a width, no line is wrapped.
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

/// The space between two columns.
const COLUMN_GAP: usize = 2;

#[derive(Clone, Debug, Default)]
pub(super) struct TableCell(pub(super) Vec<Span>);

/// A function that formats a row as a paragraph.
type Paragraph = fn(&[TableCell]) -> Vec<StyledLine>;

/// A table of short cells. If it does not fit the terminal, each row becomes a paragraph, so that no cell is lost.
#[derive(Clone, Debug)]
pub(super) struct TerminalTable {
    header: Vec<&'static str>,
    rows: Vec<Vec<TableCell>>,
    paragraph: Option<Paragraph>,
}

impl TerminalTable {
    /// A table with a header and rows.
    pub(super) fn new<const N: usize>(
        header: [&'static str; N],
        rows: impl IntoIterator<Item = [impl Into<TableCell>; N]>,
    ) -> Self {
        let row = |row: [_; N]| row.into_iter().map(Into::into).collect();
        Self { header: header.to_vec(), rows: rows.into_iter().map(row).collect(), paragraph: None }
    }

    /// Sets how rows become paragraphs if the table does not fit.
    pub(super) fn with_paragraph(self, paragraph: Paragraph) -> Self {
        Self { paragraph: Some(paragraph), ..self }
    }

    /// Renders the table for a terminal width.
    pub(super) fn render(&self, columns: Option<usize>, color: bool) -> String {
        let widths = self.column_widths();
        let width = widths.iter().sum::<usize>() + COLUMN_GAP * widths.len().saturating_sub(1);
        if columns.is_some_and(|columns| width > columns) {
            return self.render_paragraphs().render(columns, color);
        }
        let header: Vec<TableCell> = self.header.iter().map(|name| dim(*name).into()).collect();
        std::iter::once(&header).chain(&self.rows).map(|row| render_row(row, &widths, color)).collect()
    }

    fn column_widths(&self) -> Vec<usize> {
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column)).map(TableCell::width);
        let headers = self.header.iter().enumerate();
        headers.map(|(column, name)| cells(column).max().unwrap_or_default().max(name.chars().count())).collect()
    }

    fn render_paragraphs(&self) -> StyledText {
        let mut text = StyledText::new();
        for row in &self.rows {
            match self.paragraph {
                Some(paragraph) => paragraph(row).into_iter().for_each(|line| text.push(line)),
                None => self.labelled_lines(row).for_each(|line| text.push(line)),
            }
        }
        text
    }

    /// Formats a row as a line with the first cell, and a labelled line for each further cell that is not empty.
    fn labelled_lines<'r>(&'r self, row: &'r [TableCell]) -> impl Iterator<Item = StyledLine> {
        let others = self.header.iter().zip(row).skip(1).filter(|(_, cell)| cell.width() > 0);
        let others = others.map(|(name, cell)| {
            let label = dim(format!("{name}: "));
            StyledLine::new([label].into_iter().chain(cell.0.iter().cloned())).with_indent(2)
        });
        row.first().map(|first| StyledLine::new(first.0.clone())).into_iter().chain(others)
    }
}

impl TableCell {
    /// The text of the cell, without colours.
    pub(super) fn plain_text(&self) -> String {
        self.0.iter().map(Span::plain_text).collect()
    }

    fn width(&self) -> usize {
        display_width(&self.plain_text())
    }
}

impl From<Vec<Span>> for TableCell {
    fn from(spans: Vec<Span>) -> Self {
        Self(spans)
    }
}

impl From<Span> for TableCell {
    fn from(span: Span) -> Self {
        Self(vec![span])
    }
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        Self(vec![plain(text)])
    }
}

impl From<&str> for TableCell {
    fn from(text: &str) -> Self {
        Self(vec![plain(text)])
    }
}

fn render_row(row: &[TableCell], widths: &[usize], color: bool) -> String {
    let mut line = String::new();
    let mut blanks = 0;
    for (cell, column) in row.iter().zip(widths) {
        let cell_width = cell.width();
        // The last cell is not padded.
        if cell_width > 0 {
            line.push_str(&" ".repeat(blanks));
            cell.0.iter().for_each(|span| line.push_str(&span.render(color)));
            blanks = 0;
        }
        blanks += column - cell_width + COLUMN_GAP;
    }
    line.push('\n');
    line
}

/// Renders records with long texts: the short cells on a line, and the text below.
pub(super) fn render_records(records: impl IntoIterator<Item = (Vec<Span>, String)>) -> StyledText {
    let mut text = StyledText::new();
    for (cells, body) in records {
        let cells = cells.into_iter().filter(|cell| !cell.plain_text().is_empty()).map(|cell| vec![cell]);
        text.push(StyledLine::new(join_spans(cells, " · ")));
        for line in body.lines() {
            text.push(StyledLine::new([plain(line)]).with_indent(2).with_hang(0));
        }
    }
    text
}

/// The characters of a sparkline, from the lowest to the highest value.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The character for zero.
const ZERO_SIGN: char = '·';

/// Returns the filled and the empty part of a bar that is `cells` characters wide.
pub(super) fn draw_bar(done: u64, total: u64, cells: usize) -> (String, String) {
    let filled = (u128::from(done) * cells as u128).checked_div(u128::from(total)).unwrap_or(cells as u128);
    let filled = usize::try_from(filled).unwrap_or(cells).min(cells);
    ("█".repeat(filled), "░".repeat(cells - filled))
}

/// Draws a sparkline: one character for each number, in order.
pub(super) fn draw_sparkline(numbers: &[u64]) -> String {
    let max = numbers.iter().copied().max().unwrap_or_default();
    let height = |number: u64| {
        let steps = (u128::from(number) * HEIGHTS.len() as u128).div_ceil(u128::from(max.max(1)));
        usize::try_from(steps).ok().and_then(|step| HEIGHTS.get(step.checked_sub(1)?)).copied().unwrap_or(ZERO_SIGN)
    };
    numbers.iter().map(|number| height(*number)).collect()
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
    fn command_in_prose_is_not_split_across_lines() {
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
        fn wrapping_keeps_every_word_and_respects_the_width(
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

    #[test]
    fn number_is_not_wrapped_between_its_digits() {
        let line = StyledLine::from_prose("the gateway has 526 of 1 000 messages, and 12 345 678 parts");
        for columns in 20..60 {
            let text = line.render(Some(columns), false);
            assert!(text.contains("1 000") && text.contains("12 345 678"), "{text}");
        }
    }

    #[test]
    fn cell_escapes_control_characters() {
        let table = TerminalTable::new(["x"], [["\u{1b}[2J\rgone".to_owned()]]);
        let record = render_records([(vec![plain("\u{7}a")], "b\r\u{1b}[2J".to_owned())]);
        for text in [table.render(None, false), table.render(Some(3), false), record.render(None, false)] {
            assert!(!text.contains(['\u{1b}', '\r', '\u{7}']), "{text:?}");
        }
    }

    #[test]
    fn table_becomes_paragraphs_if_it_does_not_fit() {
        let rows =
            [[strong("INFO"), good("approved"), plain("")], [strong("Знижки"), bad("declined"), plain("no company")]];
        let table = TerminalTable::new(["sender", "status", "note"], rows);
        let fits = "sender  status    note\nINFO    approved\nЗнижки  declined  no company\n";
        assert_eq!(table.render(None, false), fits);
        assert_eq!(table.render(Some(28), false), fits);
        assert_eq!(
            table.render(Some(20), false),
            "INFO\n  status: approved\nЗнижки\n  status: declined\n  note: no company\n"
        );
        let coloured = table.render(Some(80), true);
        assert_eq!(console::strip_ansi_codes(&coloured), fits);
        assert!(coloured.contains("\u{1b}[32mapproved\u{1b}[0m"), "{coloured:?}");
    }

    #[test]
    fn record_keeps_the_lines_of_its_text() {
        let text = render_records([(vec![plain("7"), plain(""), plain("Sale")], "Hello\nBye".to_owned())]);
        assert_eq!(text.render(Some(80), false), "7 · Sale\n  Hello\n  Bye\n");
    }

    #[test]
    fn sparkline_marks_zero_and_scales_to_the_maximum() {
        assert_eq!(draw_sparkline(&[0, 1, 4, 8, 7]), "·▁▄█▇");
        assert_eq!(draw_sparkline(&[0, 0]), "··");
        assert_eq!(draw_sparkline(&[]), "");
    }

    #[test]
    fn progress_bar_is_full_only_at_the_end() {
        let bar = |done, total| {
            let (done, open) = super::draw_bar(done, total, 10);
            done + &open
        };
        assert_eq!(bar(0, 3), "░░░░░░░░░░");
        assert_eq!(bar(2_999, 3_000), "█████████░");
        assert_eq!((bar(3, 3), bar(0, 0)), ("██████████".to_owned(), "██████████".to_owned()));
    }

    proptest! {
        #[test]
        fn sparkline_keeps_length_and_order(numbers in proptest::collection::vec(any::<u64>(), 1..40)) {
            let signs: Vec<char> = draw_sparkline(&numbers).chars().collect();
            prop_assert_eq!(signs.len(), numbers.len());
            let level = |sign: char| HEIGHTS.iter().position(|height| *height == sign).map_or(0, |index| index + 1);
            for (number, sign) in numbers.iter().zip(&signs) {
                prop_assert_eq!(*number == 0, *sign == ZERO_SIGN);
                prop_assert!(numbers.iter().zip(&signs).all(|(other, high)| other > number || level(*high) <= level(*sign)));
            }
        }
    }
}
