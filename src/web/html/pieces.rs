//! A text in pieces, as a page shows it: what came from the row, what is a link, where a part of an SMS begins.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::Serialize;

use crate::domain::Phone;
use crate::message::MarkedText;

/// A text, piece by piece.
pub type TextView = Vec<TextPiece>;

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextPiece {
    /// What it says.
    pub text: String,
    /// Whether it came from the recipient's row.
    pub from_row: bool,
    /// Whether it is a link, or a part of one. No page makes one of it that can be clicked: it may be somebody's own.
    pub link: bool,
    /// The part of an SMS that begins here, from 2.
    pub part: Option<usize>,
}

/// A text in pieces; `parts` are the bytes at which parts of an SMS end, and `hide` is a number that is shown masked.
pub(super) fn split_pieces(text: &MarkedText, parts: &[usize], hide: Option<Phone>) -> TextView {
    let (text, marks) = (text.text.as_str(), &text.from_row);
    let links = find_links(text);
    let ends = |ranges: &[Range<usize>]| ranges.iter().flat_map(|range| [range.start, range.end]).collect::<Vec<_>>();
    let mut cuts: BTreeSet<usize> = ends(marks).into_iter().chain(ends(&links)).chain(parts.iter().copied()).collect();
    cuts.insert(text.len());
    cuts.remove(&0);
    let (mut pieces, mut begin) = (Vec::with_capacity(cuts.len()), 0);
    let within = |ranges: &[Range<usize>], at: usize| ranges.iter().any(|range| range.contains(&at));
    for end in cuts {
        let said = &text[begin..end];
        let said = match hide {
            Some(phone) => phone.hide_in_text(said, &phone.format_masked()).into_owned(),
            None => said.to_owned(),
        };
        let part = parts.iter().position(|part| *part == begin && begin > 0).map(|index| index + 2);
        if !said.is_empty() {
            pieces.push(TextPiece { text: said, from_row: within(marks, begin), link: within(&links, begin), part });
        }
        begin = end;
    }
    pieces
}

/// The links of a text, without the point or bracket of the sentence that they stand in.
fn find_links(text: &str) -> Vec<Range<usize>> {
    let (mut links, mut from) = (Vec::new(), 0);
    while let Some(start) = ["https://", "http://"].iter().filter_map(|scheme| text[from..].find(scheme)).min() {
        let start = from + start;
        let end = text[start..]
            .find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"'))
            .map_or(text.len(), |end| start + end);
        let link = text[start..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '»', '\'']);
        links.push(start..start + link.len());
        from = end;
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe_pieces(text: &str, from_row: &[(usize, usize)], parts: &[usize]) -> String {
        let marked =
            MarkedText { text: text.to_owned(), from_row: from_row.iter().map(|(start, end)| *start..*end).collect() };
        let piece = |piece: TextPiece| {
            let part = piece.part.map(|part| format!("{part}|")).unwrap_or_default();
            let text = if piece.link { format!("<{}>", piece.text) } else { piece.text };
            part + &if piece.from_row { format!("[{text}]") } else { text }
        };
        split_pieces(&marked, parts, None).into_iter().map(piece).collect()
    }

    #[test]
    fn text_is_split_into_pieces() {
        assert_eq!(describe_pieces("", &[], &[]), "");
        assert_eq!(describe_pieces("Hi Olia!", &[(3, 7)], &[]), "Hi [Olia]!");
        assert_eq!(
            describe_pieces("See https://a.example/?c=7.", &[(25, 26)], &[]),
            "See <https://a.example/?c=>[<7>]."
        );
        assert_eq!(describe_pieces("(http://a.example) https://b", &[], &[]), "(<http://a.example>) <https://b>");
        assert_eq!(describe_pieces("abcdef", &[(1, 5)], &[2, 4]), "a[b]2|[cd]3|[e]f");
    }

    #[test]
    fn phone_number_in_a_text_is_masked() {
        let phone = Phone::new(380_501_234_567).unwrap();
        let marked = MarkedText { text: "call 0501234567 now".into(), from_row: std::iter::once(5..15).collect() };
        let texts: Vec<String> = split_pieces(&marked, &[], Some(phone)).into_iter().map(|piece| piece.text).collect();
        assert_eq!(texts, ["call ", "0…67", " now"]);
    }
}
