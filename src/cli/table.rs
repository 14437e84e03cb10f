//! Tables on a terminal. A table that does not fit becomes a paragraph for each row, which loses no cell.

use textwrap::core::display_width;

use super::text::{Line, Span, Text, dim, joined, plain};

/// The blanks between two columns.
const BETWEEN: usize = 2;

/// What a column has in a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell(pub(super) Vec<Span>);

/// Writes a row as a paragraph, from its cells.
type Paragraph = fn(&[Cell]) -> Vec<Line>;

/// A table of short cells.
#[derive(Clone, Debug)]
pub(super) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    paragraph: Option<Paragraph>,
}

impl Table {
    /// A table with these columns.
    pub(super) fn new<const N: usize>(
        header: [&'static str; N],
        rows: impl IntoIterator<Item = [impl Into<Cell>; N]>,
    ) -> Self {
        let row = |row: [_; N]| row.into_iter().map(Into::into).collect();
        Self { header: header.to_vec(), rows: rows.into_iter().map(row).collect(), paragraph: None }
    }

    /// The same table, whose rows become these paragraphs where it does not fit.
    pub(super) fn or(self, paragraph: Paragraph) -> Self {
        Self { paragraph: Some(paragraph), ..self }
    }

    /// The table on a terminal of so many columns.
    pub(super) fn render(&self, columns: Option<usize>, color: bool) -> String {
        let widths = self.widths();
        let width = widths.iter().sum::<usize>() + BETWEEN * widths.len().saturating_sub(1);
        if columns.is_some_and(|columns| width > columns) {
            return self.paragraphs().render(columns, color);
        }
        let header: Vec<Cell> = self.header.iter().map(|name| dim(*name).into()).collect();
        std::iter::once(&header).chain(&self.rows).map(|row| row_line(row, &widths, color)).collect()
    }

    fn widths(&self) -> Vec<usize> {
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column)).map(Cell::width);
        let named = self.header.iter().enumerate();
        named.map(|(column, name)| cells(column).max().unwrap_or_default().max(name.chars().count())).collect()
    }

    fn paragraphs(&self) -> Text {
        let mut text = Text::new();
        for row in &self.rows {
            match self.paragraph {
                Some(paragraph) => paragraph(row).into_iter().for_each(|line| text.push(line)),
                None => self.labelled(row).for_each(|line| text.push(line)),
            }
        }
        text
    }

    /// A row as its first cell and a line for each other one with its label.
    fn labelled<'r>(&'r self, row: &'r [Cell]) -> impl Iterator<Item = Line> {
        let others = self.header.iter().zip(row).skip(1).filter(|(_, cell)| cell.width() > 0);
        let others = others.map(|(name, cell)| {
            let label = dim(format!("{name}: "));
            Line::new([label].into_iter().chain(cell.0.iter().cloned())).indented(2)
        });
        row.first().map(|first| Line::new(first.0.clone())).into_iter().chain(others)
    }
}

impl Cell {
    /// The cell without colours.
    pub(super) fn shown(&self) -> String {
        self.0.iter().map(Span::shown).collect()
    }

    fn width(&self) -> usize {
        display_width(&self.shown())
    }
}

impl From<Vec<Span>> for Cell {
    fn from(spans: Vec<Span>) -> Self {
        Self(spans)
    }
}

impl From<Span> for Cell {
    fn from(span: Span) -> Self {
        Self(vec![span])
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self(vec![plain(text)])
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self(vec![plain(text)])
    }
}

fn row_line(row: &[Cell], widths: &[usize], color: bool) -> String {
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
        blanks += column - cell_width + BETWEEN;
    }
    line.push('\n');
    line
}

/// Records with texts of several lines: their short cells in a line, and their texts below it.
pub(super) fn records(records: impl IntoIterator<Item = (Vec<Span>, String)>) -> Text {
    let mut text = Text::new();
    for (cells, body) in records {
        let cells = cells.into_iter().filter(|cell| !cell.shown().is_empty()).map(|cell| vec![cell]);
        text.push(Line::new(joined(cells, " · ")));
        for line in body.lines() {
            text.push(Line::new([plain(line)]).indented(2).hanging(0));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::text::{bad, good, strong};
    use super::*;

    #[test]
    fn cell_cannot_command_the_terminal() {
        let table = Table::new(["x"], [["\u{1b}[2J\rgone".to_owned()]]);
        let record = records([(vec![plain("\u{7}a")], "b\r\u{1b}[2J".to_owned())]);
        for text in [table.render(None, false), table.render(Some(3), false), record.render(None, false)] {
            assert!(!text.contains(['\u{1b}', '\r', '\u{7}']), "{text:?}");
        }
    }

    #[test]
    fn table_becomes_paragraphs_where_it_does_not_fit() {
        let rows =
            [[strong("INFO"), good("approved"), plain("")], [strong("Знижки"), bad("declined"), plain("no company")]];
        let table = Table::new(["sender", "status", "note"], rows);
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
        let text = records([(vec![plain("7"), plain(""), plain("Sale")], "Hello\nBye".to_owned())]);
        assert_eq!(text.render(Some(80), false), "7 · Sale\n  Hello\n  Bye\n");
    }
}
