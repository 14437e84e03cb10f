//! The list of runs: a table if it fits the terminal, else a paragraph for each run. Pure.

use super::clock::minute;
use super::states;
use super::table::{Cell, Table};
use super::text::{Line, dim, joined, plain, strong};
use crate::report::{RunView, thousands};

/// The columns of the table.
const HEADER: [&str; 6] = ["run", "gateway", "began", "rows", "state", "counts"];

/// The table of these runs.
pub(super) fn listing<'v>(views: impl IntoIterator<Item = &'v RunView>) -> Table {
    Table::new(HEADER, views.into_iter().map(row)).or(paragraph)
}

fn row(RunView { run, status, counts, .. }: &RunView) -> [Cell; 6] {
    [
        strong(run.name()).into(),
        run.gateway.as_str().into(),
        dim(minute(run.began_at)).into(),
        thousands(run.recipients).into(),
        states::status(status, counts).into(),
        states::counts(counts, 0).into(),
    ]
}

fn paragraph(cells: &[Cell]) -> Vec<Line> {
    let [run, gateway, began, rows, state, counts] = cells else { return Vec::new() };
    let noun = if rows.shown() == "1" { " row: " } else { " rows: " };
    let heading = joined([run, gateway, began, state].map(|cell| cell.0.clone()), " · ");
    vec![Line::new(heading), Line::new([&rows.0[..], &[plain(noun)], &counts.0].concat()).indented(2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let stopped = "! stopped: the gateway took nothing for 30m: connection refused";
        let rows = [
            ["autumn-sale@12", "production", "2026-11-21 10:00", "200 000", "✓ finished", "199 000 accepted"],
            ["welcome@1", "sandbox", "2026-11-20 10:00", "25", stopped, "5 accepted · 20 planned"],
        ];
        Table::new(HEADER, rows).or(paragraph)
    }

    #[test]
    fn list_that_does_not_fit_has_a_paragraph_for_each_run() {
        let wide = table().render(None, false);
        assert_eq!((wide.lines().count(), table().render(Some(200), false)), (3, wide));
        let narrow = table().render(Some(80), false);
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
