//! Links with a slip of the finger in their beginning.

use std::ops::Range;

use crate::check::broken_text::is_escaped_blank;
use crate::domain::Text;
use crate::finding::{Rule, RuleText};
use crate::message::{TextProblem, problem_at, said};

pub(super) static RULE: Rule = Rule::warning(
    "broken-link",
    RuleText {
        cause: "A link starts with a typo. Recipients cannot open it.",
        example: &["message: \"Sale: htps://shop.example\""],
        fix: "write `https://` followed by the address, without a space",
    },
);

/// The links of a text that everybody gets.
pub(super) fn judge(text: &Text) -> Vec<TextProblem> {
    let spans = said(text).flat_map(|(part, at)| {
        let found = broken(part).into_iter();
        let more = part.len() + at.start < text.source.len();
        // Behind the last `//` a template may go on.
        let found = found.filter(move |span| !(more && span.end == part.len() && part.ends_with("://")));
        found.map(move |span| at.start + span.start..at.start + span.end)
    });
    let problem = |span: Range<usize>| {
        let broken = text.source[span.clone()].trim_end();
        let message = format!("the link `{broken}` starts with a typo");
        let help = format!("write `{}`", mended(broken));
        problem_at(text, span, &RULE, message, &help)
    };
    spans.map(problem).collect()
}

/// The link that was probably meant.
fn mended(broken: &str) -> String {
    let address = match broken.find([':', ';', '/', '\\']) {
        Some(end) => broken[end..].trim_start_matches([':', ';', '/', '\\', ' ']),
        None => broken,
    };
    format!("https://{address}")
}

fn broken(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices("//") {
        let before = &text[..start];
        let word = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        // `https: //a` has a blank too many.
        let word = if before.ends_with(": ") {
            before.trim_end().rfind(char::is_whitespace).map_or(0, |at| at + 1)
        } else {
            word
        };
        // Escaped line breaks have their own finding.
        let mut word = word;
        while before.get(word..word + 3).is_some_and(is_escaped_blank) {
            word += 3;
        }
        let scheme = &before[word..];
        let letters: String = scheme.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_ascii_lowercase();
        let meant = scheme.len() <= 9 && strsim::damerau_levenshtein(&letters, "https") <= 2 && letters.contains('t');
        let right = ["http:", "https:"]
            .iter()
            .any(|right| scheme.trim_start_matches(|c: char| !c.is_alphanumeric()).eq_ignore_ascii_case(right));
        let blank = text[start + 2..].starts_with(char::is_whitespace);
        if meant && (!right || blank) {
            found.push(word..end(text, start + 2));
        }
    }
    for (start, _) in text.to_ascii_lowercase().match_indices("http") {
        let rest = text[start + 4..].strip_prefix(['s', 'S']).unwrap_or(&text[start + 4..]);
        let one_slash = rest.starts_with(":/") && !rest.starts_with("://");
        if one_slash || rest.starts_with(":\\") || rest.starts_with(";/") && !rest.starts_with(";//") {
            found.push(start..end(text, start));
        }
    }
    found
}

fn end(text: &str, from: usize) -> usize {
    text[from..].find(char::is_whitespace).map_or(text.len(), |length| from + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_that_was_meant_is_shown() {
        for slip in
            ["https:/shop.example/a", "https//shop.example/a", "htps;//shop.example/a", "https:\\\\shop.example/a"]
        {
            assert_eq!(mended(slip), "https://shop.example/a", "{slip}");
        }
        assert_eq!((mended("https: //a.example"), mended("https://")), ("https://a.example".into(), "https://".into()));
    }

    #[test]
    fn a_slip_in_the_beginning_of_a_link_is_found_and_links_are_not() {
        for slip in [
            "https:/shop.example",
            "https//shop.example",
            "htps://shop.example",
            "hhtps://shop.example",
            "https;//shop.example",
            "https: //shop.example",
            "https:// shop.example",
            "https:\\\\shop.example",
            "ttps://shop.example",
            "http//:shop.example",
        ] {
            assert_eq!(broken(&format!("See {slip} now")).len(), 1, "{slip}");
        }
        for right in [
            "https://shop.example",
            "(http://a.example//x)",
            "use https",
            "and // or",
            "tg://resolve",
            "https://a.example/?u=https://b",
            "%0Ahttps://a.example",
            "%0d%0ahttps://a.example",
        ] {
            assert!(broken(&format!("See {right} now")).is_empty(), "{right}");
        }
        let text = Text { name: "t".into(), source: "https://{{ host }}/x".into() };
        assert_eq!(judge(&text), []);
    }
}
