//! The list of runs: a table if it fits the terminal, else a paragraph for each run. Pure.

use super::clock::minute;
use super::states;
use super::table::{TableCell, TerminalTable};
use super::text::{StyledLine, dim, join_spans, plain, strong};
use crate::report::{RunView, format_thousands};

/// The columns of the table.
const HEADER: [&str; 6] = ["run", "gateway", "began", "rows", "state", "counts"];

/// The table of these runs.
pub(super) fn run_table<'v>(views: impl IntoIterator<Item = &'v RunView>) -> TerminalTable {
    TerminalTable::new(HEADER, views.into_iter().map(run_cells)).with_paragraph(run_paragraph)
}

fn run_cells(RunView { run, status, counts, .. }: &RunView) -> [TableCell; 6] {
    [
        strong(run.name()).into(),
        run.gateway.as_str().into(),
        dim(minute(run.began_at)).into(),
        format_thousands(run.recipients).into(),
        states::run_status_span(status, counts).into(),
        states::count_spans(counts, 0).into(),
    ]
}

fn run_paragraph(cells: &[TableCell]) -> Vec<StyledLine> {
    let [run, gateway, began, rows, state, counts] = cells else { return Vec::new() };
    let noun = if rows.plain_text() == "1" { " row: " } else { " rows: " };
    let heading = join_spans([run, gateway, began, state].map(|cell| cell.0.clone()), " · ");
    vec![StyledLine::new(heading), StyledLine::new([&rows.0[..], &[plain(noun)], &counts.0].concat()).with_indent(2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_table() -> TerminalTable {
        let stopped = "! stopped: the gateway took nothing for 30m: connection refused";
        let rows = [
            ["autumn-sale@12", "production", "2026-11-21 10:00", "200 000", "✓ finished", "199 000 accepted"],
            ["welcome@1", "sandbox", "2026-11-20 10:00", "25", stopped, "5 accepted · 20 planned"],
        ];
        TerminalTable::new(HEADER, rows).with_paragraph(run_paragraph)
    }

    #[test]
    fn run_list_becomes_paragraphs_if_it_does_not_fit() {
        let wide = sample_table().render(None, false);
        assert_eq!((wide.lines().count(), sample_table().render(Some(200), false)), (3, wide));
        let narrow = sample_table().render(Some(80), false);
        assert_eq!(
            narrow.lines().collect::<Vec<_>>(),
            [
                "autumn-sale@12 · production · 2026-11-21 10:00 · ✓ finished",
                "  200 000 rows: 199 000 accepted",
                "welcome@1 · sandbox · 2026-11-20 10:00 · ! stopped: the gateway took nothing for",
                "  30m: connection refused",
                "  25 rows: 5 accepted · 20 planned",
            ]
        );
    }
}
