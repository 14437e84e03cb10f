//! Links with a slip of the finger in their beginning.

use std::ops::Range;

use crate::check::broken_text::is_escaped_blank;
use crate::domain::NamedTemplate;
use crate::finding::{Rule, RuleText};
use crate::message::{TextProblem, constant_parts, problem_at};

pub(super) static RULE: Rule = Rule::warning(
    "broken-link",
    RuleText {
        cause: "A link starts with a typo. Recipients cannot open it.",
        example: &["message: \"Sale: htps://shop.example\""],
        fix: "write `https://` followed by the address, without a space",
    },
);

/// The links of a text that everybody gets.
pub(super) fn check_broken_links(text: &NamedTemplate) -> Vec<TextProblem> {
    let spans = constant_parts(text).flat_map(|(part, at)| {
        let found = find_broken_links(part).into_iter();
        let more = part.len() + at.start < text.source.len();
        // Behind the last `//` a template may go on.
        let found = found.filter(move |span| !(more && span.end == part.len() && part.ends_with("://")));
        found.map(move |span| at.start + span.start..at.start + span.end)
    });
    let problem = |span: Range<usize>| {
        let broken = text.source[span.clone()].trim_end();
        let message = format!("the link `{broken}` starts with a typo");
        let help = format!("write `{}`", repair_link(broken));
        problem_at(text, span, &RULE, message, &help)
    };
    spans.map(problem).collect()
}

/// The link that was probably meant.
fn repair_link(broken: &str) -> String {
    let address = match broken.find([':', ';', '/', '\\']) {
        Some(end) => broken[end..].trim_start_matches([':', ';', '/', '\\', ' ']),
        None => broken,
    };
    format!("https://{address}")
}

fn find_broken_links(text: &str) -> Vec<Range<usize>> {
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
            found.push(word..find_end(text, start + 2));
        }
    }
    for (start, _) in text.to_ascii_lowercase().match_indices("http") {
        let rest = text[start + 4..].strip_prefix(['s', 'S']).unwrap_or(&text[start + 4..]);
        let one_slash = rest.starts_with(":/") && !rest.starts_with("://");
        if one_slash || rest.starts_with(":\\") || rest.starts_with(";/") && !rest.starts_with(";//") {
            found.push(start..find_end(text, start));
        }
    }
    found
}

fn find_end(text: &str, from: usize) -> usize {
    text[from..].find(char::is_whitespace).map_or(text.len(), |length| from + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_shows_the_repaired_link() {
        for slip in
            ["https:/shop.example/a", "https//shop.example/a", "htps;//shop.example/a", "https:\\\\shop.example/a"]
        {
            assert_eq!(repair_link(slip), "https://shop.example/a", "{slip}");
        }
        assert_eq!(
            (repair_link("https: //a.example"), repair_link("https://")),
            ("https://a.example".into(), "https://".into())
        );
    }

    #[test]
    fn misspelt_link_schemes_are_found_and_links_are_not() {
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
            assert_eq!(find_broken_links(&format!("See {slip} now")).len(), 1, "{slip}");
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
            assert!(find_broken_links(&format!("See {right} now")).is_empty(), "{right}");
        }
        let text = NamedTemplate { name: "t".into(), source: "https://{{ host }}/x".into() };
        assert_eq!(check_broken_links(&text), []);
    }
}
