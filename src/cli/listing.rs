//! Runs one under the other: as a table where there is room for one, else a paragraph for each. Pure.

use super::table::table;

/// The columns of the table.
pub(super) const HEADER: [&str; 6] = ["run", "gateway", "began", "rows", "state", "counts"];

/// The runs on a terminal of so many columns; without a terminal there is room for everything.
pub(super) fn listing(runs: &[[String; 6]], width: Option<usize>) -> String {
    let table = table(HEADER, runs.iter().cloned());
    match width.filter(|width| table.lines().any(|line| line.chars().count() > *width)) {
        None => table,
        Some(width) => runs.iter().map(|run| paragraph(run, width)).collect(),
    }
}

fn paragraph([run, gateway, began, rows, state, counts]: &[String; 6], width: usize) -> String {
    let rows = if rows == "1" { "1 row".to_owned() } else { format!("{rows} rows") };
    let lines = [format!("{run} · {gateway} · {began} · {state}"), format!("  {rows}: {counts}")];
    lines.map(|line| if width < CUT { wrapped(&line, width) } else { cut(&line, width) }).concat()
}

/// From so many columns on a run has two lines; `status RUN` shows it whole.
const CUT: usize = 80;

fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return format!("{line}\n");
    }
    let kept: String = line.chars().take(width - 1).collect();
    format!("{}…\n", kept.trim_end())
}

/// A summary on a terminal of so many columns: its lines are broken at blanks, but for those that somebody may copy.
pub(super) fn fitted(text: &str, width: usize) -> String {
    let copied = |line: &str| line.starts_with("next") || line.contains("campaign ") || line.contains("results: ");
    let fits = |line: &str| line.chars().count() <= width || copied(line);
    text.lines().map(|line| if fits(line) { format!("{line}\n") } else { wrapped(line, width) }).collect()
}

/// The line broken at blanks where it would be longer than `width`; what is longer by itself stays whole.
fn wrapped(line: &str, width: usize) -> String {
    let indent = line.chars().take_while(|character| *character == ' ').count();
    let (mut text, mut used) = (" ".repeat(indent), indent);
    for (index, word) in line.split_whitespace().enumerate() {
        let length = word.chars().count();
        if index > 0 && used + 1 + length > width {
            // Further in than the line itself, so that a paragraph still begins where it begins.
            text.push('\n');
            text.push_str(&" ".repeat(indent + 2));
            used = indent + 2;
        } else if index > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += length;
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn runs() -> Vec<[String; 6]> {
        let stopped = "stopped: the gateway took nothing for 30m: connection refused";
        [
            ["autumn-sale@12", "production", "2026-11-21T10:00:00Z", "200 000", "finished", "199 000 accepted"],
            ["welcome@1", "sandbox", "2026-11-20T10:00:00Z", "25", stopped, "5 accepted · 20 planned"],
        ]
        .map(|run| run.map(str::to_owned))
        .to_vec()
    }

    #[test]
    fn a_summary_breaks_no_word_and_no_command() {
        let text = "spring@1 · production · sync · finished\n  8 rows: 7 accepted by the gateway · 1 rejected\n  \
                    results: results/spring of the year.csv\nnext: campaign retry spring --gateways my.yaml\n";
        assert_eq!(fitted(text, 80), text);
        let narrow = "spring@1 · production · sync ·\n  finished\n  8 rows: 7 accepted by the\n    gateway · 1 rejected\n  \
                      results: results/spring of the year.csv\nnext: campaign retry spring --gateways my.yaml\n";
        assert_eq!(fitted(text, 30), narrow);
    }

    #[test]
    fn a_table_that_fits_is_shown_and_no_other() {
        let wide = listing(&runs(), None);
        assert_eq!((wide.lines().count(), listing(&runs(), Some(200))), (3, wide));
        let narrow = listing(&runs(), Some(80));
        assert_eq!(
            narrow.lines().collect::<Vec<_>>(),
            [
                "autumn-sale@12 · production · 2026-11-21T10:00:00Z · finished",
                "  200 000 rows: 199 000 accepted",
                "welcome@1 · sandbox · 2026-11-20T10:00:00Z · stopped: the gateway took nothing…",
                "  25 rows: 5 accepted · 20 planned",
            ],
            "two lines a run"
        );
        assert!(listing(&runs(), Some(79)).contains("connection refused"));
    }

    proptest! {
        #[test]
        fn no_word_is_cut_or_lost_and_no_line_is_too_long(
            words in prop::collection::vec("[a-z·]{1,12}", 1..30),
            indent in 0_usize..4,
            width in 20_usize..100,
        ) {
            let line = format!("{}{}", " ".repeat(indent), words.join(" "));
            let wrapped = wrapped(&line, width);
            prop_assert!(wrapped.lines().all(|line| line.chars().count() <= width), "{}", wrapped);
            prop_assert_eq!(wrapped.split_whitespace().collect::<Vec<_>>(), words);
        }
    }
}
