//! Tables on a terminal. A table that does not fit becomes a paragraph for each row, which loses no cell.

use textwrap::core::display_width;

use super::text::{Span, StyledLine, StyledText, dim, join_spans, plain};

/// The blanks between two columns.
const COLUMN_GAP: usize = 2;

/// What a column has in a row.
#[derive(Clone, Debug, Default)]
pub(super) struct TableCell(pub(super) Vec<Span>);

/// Writes a row as a paragraph, from its cells.
type Paragraph = fn(&[TableCell]) -> Vec<StyledLine>;

/// A table of short cells.
#[derive(Clone, Debug)]
pub(super) struct TerminalTable {
    header: Vec<&'static str>,
    rows: Vec<Vec<TableCell>>,
    paragraph: Option<Paragraph>,
}

impl TerminalTable {
    /// A table with these columns.
    pub(super) fn new<const N: usize>(
        header: [&'static str; N],
        rows: impl IntoIterator<Item = [impl Into<TableCell>; N]>,
    ) -> Self {
        let row = |row: [_; N]| row.into_iter().map(Into::into).collect();
        Self { header: header.to_vec(), rows: rows.into_iter().map(row).collect(), paragraph: None }
    }

    /// The same table, whose rows become these paragraphs where it does not fit.
    pub(super) fn with_paragraph(self, paragraph: Paragraph) -> Self {
        Self { paragraph: Some(paragraph), ..self }
    }

    /// The table on a terminal of so many columns.
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
        let named = self.header.iter().enumerate();
        named.map(|(column, name)| cells(column).max().unwrap_or_default().max(name.chars().count())).collect()
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

    /// A row as its first cell and a line for each other one with its label.
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
    /// The cell without colours.
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
        // Only a cell that is followed by another one is padded.
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

/// Records with texts of several lines: their short cells in a line, and their texts below it.
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

#[cfg(test)]
mod tests {
    use super::super::text::{bad, good, strong};
    use super::*;

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
}
