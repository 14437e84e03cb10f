//! Cells that break the link in which they appear.

use crate::finding::{Finding, Rule, RuleText};

pub(super) static RULE: Rule = Rule::warning(
    "cell-in-link",
    RuleText {
        cause: "A cell breaks the link that contains it. A link ends at the first space, and `&` or `#` starts another \
            part of the link.",
        example: &[
            "message: \"https://shop.example/?c={{ code }}\"",
            "list.csv: phone,code",
            "          380501234567,NEW 126",
        ],
        fix: "add a column with URL-encoded values for links: `%20` for a space, `%26` for `&`",
    },
);

/// Cells of a column; `name` is its name in texts.
pub(super) fn report_rows(name: &str, example: &str, rows: &str) -> Finding {
    let end = match example.find(char::is_whitespace) {
        Some(_) => "the link ends at the space",
        None => "`&` or `#` starts another part of the link",
    };
    let message = format!("`{example}` in the column `{name}` breaks a link in {rows}: {end}");
    let help = format!(
        "add a column with URL-encoded values (for example `{}`) to the list, and use that column in the link instead \
            of `{name}`",
        encode_url(example)
    );
    Finding::new(&RULE, message).help(help)
}

/// A URL-encoded value.
fn encode_url(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '&' => encoded += "%26",
            '#' => encoded += "%23",
            '%' => encoded += "%25",
            '+' => encoded += "%2B",
            blank if blank.is_whitespace() => encoded += "%20",
            other => encoded.push(other),
        }
    }
    encoded
}

/// Whether a cell has a character that can break a link.
pub(in crate::check) fn may_break_link(cell: &str) -> bool {
    cell.contains(|c: char| c.is_whitespace() || matches!(c, '&' | '#'))
}

/// Whether a cell breaks a link of a text. `&` and `#` count only after `=`, where a value belongs.
pub(in crate::check) fn breaks_link(text: &str, cell: &str) -> bool {
    text.match_indices(cell).any(|(at, _)| {
        let before = &text[..at];
        let word = before.rsplit(char::is_whitespace).next().unwrap_or(before);
        word.contains("://") && (word.ends_with('=') || cell.contains(char::is_whitespace))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_inside_a_link_breaks_it() {
        for (text, cell) in [
            ("See https://shop.example/?c=NEW 126", "NEW 126"),
            ("https://shop.example/NEW 126 now", "NEW 126"),
            ("https://shop.example/?c=R&B-163", "R&B-163"),
            ("https://shop.example/?c=1#2&d=3", "1#2"),
        ] {
            assert!(may_break_link(cell) && breaks_link(text, cell), "{text}");
        }
    }

    #[test]
    fn cell_beside_a_link_does_not_break_it() {
        for (text, cell) in [
            ("NEW 126: https://shop.example/?c=NEW%20126", "NEW 126"),
            ("https://shop.example/ Olena Ko", "Olena Ko"),
            ("Olena Ko, https://shop.example", "Olena Ko"),
            ("https://shop.example/?a=1&b=2", "a=1&b=2"),
            ("https://shop.example/#sale", "#sale"),
            ("https://shop.example/?a=1&b=2", "https://shop.example/?a=1&b=2"),
        ] {
            assert!(!breaks_link(text, cell), "{text}");
        }
        assert!(!may_break_link("NEW-126") && !may_break_link("https://shop.example/?c=1"));
    }

    #[test]
    fn help_shows_the_url_encoded_value() {
        for (value, shown) in [("NEW 126", "`NEW%20126`"), ("R&B-163", "`R%26B-163`")] {
            assert!(report_rows("code", value, "row 2").help.unwrap().contains(shown), "{value}");
        }
    }
}
