//! Rules about links: malformed, insecure, reserved for examples, broken by a cell, or the same for all recipients.

use std::ops::Range;

use super::collect_texts;
use super::damaged_text::is_escaped_whitespace;
use crate::check::Survey;
use crate::check::compiled_campaign::to_finding;
use campaign_content::message::{TextProblem, constant_parts, problem_at};
use campaign_core::define_rules;
use campaign_core::domain::NamedTemplate;
use campaign_core::finding::{Finding, join_names};
use campaign_manifest::{Campaign, CampaignBrief, Profile};

define_rules! {
    TEXTS:
    warning BROKEN_LINK = "broken-link" {
        cause: "A link starts with a typo. Recipients cannot open it.",
        example: ["message: \"Sale: htps://shop.example\""],
        fix: "write `https://` followed by the address, without a space",
    }
    warning INSECURE_LINK = "insecure-link" {
        cause: "A link does not start with `https://`. Phones warn about it, or do not show it as a link.",
        example: ["message: \"Sale: http://shop.example\""],
        fix: "write the full address, including `https://`",
    }
    warning EXAMPLE_LINK = "example-link" {
        cause: "A link points to an example domain. Recipients cannot open it. Campaigns created by `campaign init` \
                contain such a link.",
        example: [
            "message: \"Sale: https://shop.example\"",
            "gateways.yaml: production: { base_url: \"https://api.provider.ua\" }",
        ],
        fix: "write the address of your own website",
    }
}

define_rules! {
    RECIPIENTS:
    warning CELL_IN_LINK = "cell-in-link" {
        cause: "A cell breaks the link that contains it. A link ends at the first space, and `&` or `#` starts a new \
                part of the link.",
        example: [
            "message: \"https://shop.example/?c={{ code }}\"",
            "list.csv: phone,code",
            "          380501234567,NEW 126",
        ],
        fix: "add a column with URL-encoded values for links: `%20` for a space, `%26` for `&`",
    }
    note SAME_LINK = "same-link" {
        cause: "All recipients get the same link. The list has codes that no message uses.",
        example: ["message: \"Hi, {{ first_name }}! https://shop.example\""],
        fix: "add the code to the link, for example `https://shop.example/?c={{ code }}`, unless all recipients should \
              get the same link",
    }
}

/// Reports malformed links in the constant parts of a text.
pub(super) fn check_broken_links(text: &NamedTemplate) -> Vec<TextProblem> {
    let spans = constant_parts(text).flat_map(|(part, part_span)| {
        let links = find_broken_links(part).into_iter();
        let has_more_text = part.len() + part_span.start < text.source.len();
        // A template tag can follow the last `//`.
        let links = links.filter(move |span| !(has_more_text && span.end == part.len() && part.ends_with("://")));
        links.map(move |span| part_span.start + span.start..part_span.start + span.end)
    });
    let report_link = |span: Range<usize>| {
        let broken = text.source[span.clone()].trim_end();
        let message = format!("the link `{broken}` starts with a typo");
        let help = format!("write `{}`", repair_link(broken));
        problem_at(text, span, &BROKEN_LINK, message, &help)
    };
    spans.map(report_link).collect()
}

/// The link that the author of a malformed link probably intended.
fn repair_link(broken: &str) -> String {
    let address = match broken.find([':', ';', '/', '\\']) {
        Some(end) => broken[end..].trim_start_matches([':', ';', '/', '\\', ' ']),
        None => broken,
    };
    format!("https://{address}")
}

/// The spans of links with a typo at the beginning, such as `htps://` or `https:/`.
fn find_broken_links(text: &str) -> Vec<Range<usize>> {
    let mut broken_links = Vec::new();
    for (start, _) in text.match_indices("//") {
        let before = &text[..start];
        // `https: //a` has an extra space.
        let before_space = if before.ends_with(": ") { before.trim_end() } else { before };
        let mut word_start = before_space.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        // Escaped white space is reported as a separate finding.
        while before.get(word_start..word_start + 3).is_some_and(is_escaped_whitespace) {
            word_start += 3;
        }
        let scheme = &before[word_start..];
        let letters: String = scheme.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_ascii_lowercase();
        // At most two typos are tolerated.
        let is_misspelled_https =
            scheme.len() <= 9 && strsim::damerau_levenshtein(&letters, "https") <= 2 && letters.contains('t');
        let is_correct = ["http:", "https:"]
            .iter()
            .any(|correct| scheme.trim_start_matches(|c: char| !c.is_alphanumeric()).eq_ignore_ascii_case(correct));
        let has_space_after = text[start + 2..].starts_with(char::is_whitespace);
        if is_misspelled_https && (!is_correct || has_space_after) {
            broken_links.push(word_start..find_link_end(text, start + 2));
        }
    }
    for (start, _) in text.to_ascii_lowercase().match_indices("http") {
        let rest = text[start + 4..].strip_prefix(['s', 'S']).unwrap_or(&text[start + 4..]);
        let has_one_slash = rest.starts_with(":/") && !rest.starts_with("://");
        if has_one_slash || rest.starts_with(":\\") || rest.starts_with(";/") && !rest.starts_with(";//") {
            broken_links.push(start..find_link_end(text, start));
        }
    }
    broken_links
}

fn find_link_end(text: &str, from: usize) -> usize {
    text[from..].find(char::is_whitespace).map_or(text.len(), |length| from + length)
}

/// The prefixes of insecure links.
const INSECURE_PREFIXES: [&str; 2] = ["http://", "www."];

/// Reports insecure links in the constant parts of a text.
pub(super) fn check_insecure_links(text: &NamedTemplate) -> Vec<TextProblem> {
    let parts = constant_parts(text).flat_map(|(part, part_span)| {
        let lower = part.to_ascii_lowercase();
        let link_starts = INSECURE_PREFIXES.iter().flat_map(|beginning| {
            let starts =
                lower.match_indices(beginning).map(|(start, _)| start).filter(|start| is_word_start(part, *start));
            starts.collect::<Vec<_>>()
        });
        link_starts
            .map(|start| part_span.start + start..part_span.start + start + link_length(&part[start..]))
            .collect::<Vec<_>>()
    });
    let mut spans: Vec<_> = parts.collect();
    spans.sort_by_key(|span| span.start);
    let report_link = |span: std::ops::Range<usize>| {
        let message = format!("the link `{}` does not start with `https://`", &text.source[span.clone()]);
        problem_at(text, span, &INSECURE_LINK, message, "start the link with `https://`, and check that it opens")
    };
    spans.into_iter().map(report_link).collect()
}

/// A finding about insecure links in cells.
pub(super) fn report_insecure_link(column: &str, rows: &str) -> Finding {
    let message = format!("the column `{column}` contains links that do not start with `https://` in {rows}");
    Finding::new(&INSECURE_LINK, message)
        .help("in the list, start these links with `https://`, and check that they open")
}

/// Whether a cell is an insecure link.
pub(in crate::check) fn is_insecure_link(cell: &str) -> bool {
    let has_prefix =
        |beginning: &&str| cell.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning));
    INSECURE_PREFIXES.iter().any(has_prefix)
}

fn is_word_start(text: &str, at: usize) -> bool {
    !text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '=' | '@'))
}

fn link_length(link: &str) -> usize {
    link.find(char::is_whitespace).unwrap_or(link.len())
}

/// Top-level domains that cannot be registered (RFC 2606, section 2).
const RESERVED_TLDS: [&str; 3] = ["example", "invalid", "test"];
/// Domains reserved for documentation (RFC 2606, section 3).
const RESERVED_DOMAINS: [&str; 3] = ["example.com", "example.net", "example.org"];

/// Whether the gateway of a profile has real recipients, because it is neither on this machine nor at an example
/// address.
pub(super) fn has_real_recipients(profile: &Profile) -> bool {
    let gateway = profile.base_url.host_and_port();
    !profile.base_url.is_loopback() && !is_reserved_host(gateway.split(':').next().unwrap_or_default())
}

/// A finding about the example links in the texts, if real recipients would get them.
pub(super) fn check_example_links(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    if !has_real_recipients(profile) {
        return None;
    }
    let texts = collect_texts(campaign);
    let mut hosts: Vec<String> = Vec::new();
    let mut first = None;
    for text in texts.iter().filter(|text| !NamedTemplate::is_placeholder(&text.name)) {
        for (part, part_span) in constant_parts(text) {
            for (start, host) in find_example_hosts(part) {
                first.get_or_insert((text, part_span.start + start..part_span.start + start + host.len()));
                if !hosts.iter().any(|known| known.eq_ignore_ascii_case(host)) {
                    hosts.push(host.to_owned());
                }
            }
        }
    }
    let (text, span) = first?;
    let predicate = match hosts.len() {
        1 => "is an example domain, so the link does not work",
        _ => "are example domains, so the links do not work",
    };
    let message = format!("{} {predicate}", join_names(hosts.iter().map(String::as_str)));
    let problem = problem_at(text, span, &EXAMPLE_LINK, message, EXAMPLE_LINK.text.fix);
    Some(to_finding(problem, Some(&campaign.places)))
}

/// Finds links to reserved hosts, and returns each host with the byte offset at which it starts.
fn find_example_hosts(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_host_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let words = text.split_inclusive(move |c| !is_host_char(c));
    let words_with_offsets = words.scan(0, move |next, word| {
        let start = *next;
        *next += word.len();
        // Excludes the separator and the full stop that ends a sentence.
        Some((start, word.trim_end_matches(|c| c == '.' || !is_host_char(c))))
    });
    words_with_offsets.filter(|(start, word)| {
        let is_link = text[..*start].ends_with("://") || is_subdomain(word, "example") || word.starts_with("www.");
        is_link && is_reserved_host(word)
    })
}

/// Whether a host is in a reserved domain, which cannot be registered.
fn is_reserved_host(host: &str) -> bool {
    let is_within = |domain: &&str| host.eq_ignore_ascii_case(domain) || is_subdomain(host, domain);
    RESERVED_TLDS.iter().any(|domain| is_subdomain(host, domain)) || RESERVED_DOMAINS.iter().any(is_within)
}

/// Whether a host is a subdomain of a domain.
fn is_subdomain(host: &str, domain: &str) -> bool {
    let lower = host.to_ascii_lowercase();
    lower.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

/// A finding that cells of a column break a link; `name` is the column's name in templates.
pub(super) fn report_cell_in_link(name: &str, example: &str, rows: &str) -> Finding {
    let end = match example.find(char::is_whitespace) {
        Some(_) => "the link ends at the space",
        None => "`&` or `#` starts a new part of the link",
    };
    let message = format!("`{example}` in the column `{name}` breaks a link in {rows}: {end}");
    let help = format!(
        "add a column with URL-encoded values (for example `{}`) to the list, and use that column in the link instead \
            of `{name}`",
        encode_url(example)
    );
    Finding::new(&CELL_IN_LINK, message).help(help)
}

/// URL-encodes white space and the characters `&`, `#`, `%` and `+` in a value.
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
pub(in crate::check) fn can_break_link(cell: &str) -> bool {
    cell.contains(|c: char| c.is_whitespace() || matches!(c, '&' | '#'))
}

/// Whether a cell breaks a link in a text. `&` and `#` count only after `=`, where a value belongs.
pub(in crate::check) fn breaks_link(text: &str, cell: &str) -> bool {
    text.match_indices(cell).any(|(at, _)| {
        let before = &text[..at];
        let word = before.rsplit(char::is_whitespace).next().unwrap_or(before);
        word.contains("://") && (word.ends_with('=') || cell.contains(char::is_whitespace))
    })
}

/// Words that occur in the headers of code columns, in lower case.
const CODE_HEADER_WORDS: [&str; 12] =
    ["code", "promo", "coupon", "token", "voucher", "url", "link", "utm", "код", "промо", "купон", "посилання"];

/// A note that all recipients get the same link, although the list has an unused column of codes.
pub(super) fn check_constant_link(survey: &Survey, brief: &CampaignBrief) -> Option<Finding> {
    let mut texts = brief.all_contents().flat_map(|content| &content.stages).flat_map(|stage| stage.texts());
    let column = survey.columns.iter().find(|column| !column.is_used && is_code_header(&column.header))?;
    if survey.count_planned() < 2 || !texts.any(|(_, text)| has_constant_link(&text.source)) {
        return None;
    }
    let message = format!("all recipients get the same link, and no message uses the column `{}`", column.header);
    Some(Finding::new(&SAME_LINK, message).help("to see who opens the link, add the value of this column to the link"))
}

/// Whether a template contains a link without a placeholder.
fn has_constant_link(template: &str) -> bool {
    let links = template.split("https://").skip(1);
    links.filter_map(|link| link.split_whitespace().next()).any(|link| !link.contains("{{") && !link.contains("{%"))
}

fn is_code_header(header: &str) -> bool {
    let header = header.to_lowercase();
    CODE_HEADER_WORDS.iter().any(|code| header.contains(code))
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
    fn link_with_a_placeholder_is_not_constant() {
        for constant in ["Go to https://shop.example", "{{ name }}: https://a.example/{{ id }} or https://b.example"] {
            assert!(has_constant_link(constant), "{constant}");
        }
        for other in ["https://shop.example/{{ id }}", "https://a.example/{% if x %}1{% endif %}", "{{ link }}", ""] {
            assert!(!has_constant_link(other), "{other}");
        }
    }

    #[test]
    fn misspelt_schemes_are_found_and_valid_links_are_not() {
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

    #[test]
    fn links_without_https_are_found_and_others_are_not() {
        let found = |source: &str| -> Vec<String> {
            let text = NamedTemplate { name: "t".into(), source: source.into() };
            check_insecure_links(&text).into_iter().map(|problem| problem.message).collect()
        };
        assert_eq!(
            found("see http://a.example/x and www.b.example"),
            [
                "the link `http://a.example/x` does not start with `https://`",
                "the link `www.b.example` does not start with `https://`",
            ]
        );
        assert_eq!(found("https://www.a.example https://a.example/?to=http://b.example {{ 'http://x' }}"), [""; 0]);
        assert!(is_insecure_link("HTTP://a") && !is_insecure_link("https://a") && !is_insecure_link("що"));
    }

    #[test]
    fn reserved_hosts_are_found_in_links_only() {
        let found = |text: &'static str| find_example_hosts(text).map(|(_, host)| host).collect::<Vec<_>>();
        assert_eq!(found("Sale: https://shop.example/a?b=c."), ["shop.example"]);
        assert_eq!(found("see shop.Example."), ["shop.Example"]);
        assert_eq!(found("http://example.com, https://www.example.org/x"), ["example.com", "www.example.org"]);
        assert_eq!(found("https://a.test www.b.invalid"), ["a.test", "www.b.invalid"]);
        for text in [
            "This is an example.",
            "for example.com-like words",
            "https://example.company/ https://myexample.com",
            "the next.test begins",
            ".example",
            "https://shop.ua/example",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
        let text = "A https://shop.example";
        assert_eq!(find_example_hosts(text).next(), Some((10, "shop.example")));
    }

    #[test]
    fn cell_inside_a_link_breaks_it() {
        for (text, cell) in [
            ("See https://shop.example/?c=NEW 126", "NEW 126"),
            ("https://shop.example/NEW 126 now", "NEW 126"),
            ("https://shop.example/?c=R&B-163", "R&B-163"),
            ("https://shop.example/?c=1#2&d=3", "1#2"),
        ] {
            assert!(can_break_link(cell) && breaks_link(text, cell), "{text}");
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
        assert!(!can_break_link("NEW-126") && !can_break_link("https://shop.example/?c=1"));
    }

    #[test]
    fn help_shows_the_url_encoded_value() {
        for (value, expected) in [("NEW 126", "`NEW%20126`"), ("R&B-163", "`R%26B-163`")] {
            assert!(report_cell_in_link("code", value, "row 2").help.unwrap().contains(expected), "{value}");
        }
    }
}
