//! The tag or block of a text that is not closed. Pure.

use super::lex::{TokenKind, tokenize};

/// The tags behind which a block goes on until it is ended.
const BLOCKS: [&str; 4] = ["if", "for", "block", "filter"];

/// What opens in a text and does not close, as it stands there, and what closes it; the innermost of several.
pub(super) fn find_unclosed(source: &str) -> Option<(String, String)> {
    let (mut blocks, mut tag, mut word) = (Vec::new(), None, "");
    for token in tokenize(source) {
        match token.kind {
            TokenKind::Print | TokenKind::Tag => (tag, word) = (Some(token), ""),
            TokenKind::Name(name) if word.is_empty() => word = name,
            TokenKind::End { .. } => {
                let Some(opened) = tag.take().filter(|opened| opened.kind == TokenKind::Tag) else { continue };
                match word.strip_prefix("end") {
                    None if BLOCKS.contains(&word) => blocks.push((&source[opened.span.start..token.span.end], word)),
                    Some(ended) if blocks.last().is_some_and(|(_, word)| *word == ended) => drop(blocks.pop()),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    match tag {
        Some(opened) => {
            let closes = if opened.kind == TokenKind::Tag { "%}" } else { "}}" };
            Some((shorten(&source[opened.span.start..]), closes.to_owned()))
        }
        None => blocks.pop().map(|(tag, word)| (tag.to_owned(), format!("{{% end{word} %}}"))),
    }
}

/// The beginning of what is not closed.
fn shorten(text: &str) -> String {
    const SHOWN: usize = 24;
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unclosed_tag_is_found_with_its_closing() {
        for (source, opened, closes) in [
            ("{% if a %}x{% else %}y", "{% if a %}", "{% endif %}"),
            ("{% if a %}{% for b in c %}x{% endfor %}", "{% if a %}", "{% endif %}"),
            ("{% if a %}{% if b %}x{% endif %}", "{% if a %}", "{% endif %}"),
            ("{%- for b in c -%}{{ b }}", "{%- for b in c -%}", "{% endfor %}"),
            ("Hello, {{ first_name", "{{ first_name", "}}"),
            ("Hello, {{ first_name and many more words", "{{ first_name and many m…", "}}"),
            ("x {% if a", "{% if a", "%}"),
        ] {
            assert_eq!(find_unclosed(source), Some((opened.to_owned(), closes.to_owned())), "{source}");
        }
        for closed in ["", "{{ a }}", "{% if a %}x{% endif %}", "{% raw %}{{ a {% endraw %}{{ b }}", "{# {% if #}"] {
            assert_eq!(find_unclosed(closed), None, "{closed}");
        }
    }
}
