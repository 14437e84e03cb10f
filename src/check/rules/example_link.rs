//! Links to domains that are reserved for examples.

use crate::check::prepare::to_finding;
use crate::domain::NamedTemplate;
use crate::finding::{Finding, Rule, RuleText, join_names};
use crate::manifest::{Campaign, Profile};
use crate::message::{constant_parts, problem_at};

use super::texts::collect_texts;

pub(super) static RULE: Rule = Rule::warning(
    "example-link",
    RuleText {
        cause: "A link goes to an example domain. Such links do not work. The campaign that `campaign init` creates \
            contains such a link.",
        example: &[
            "message: \"Sale: https://shop.example\"",
            "gateways.yaml: production: { base_url: \"https://api.provider.ua\" }",
        ],
        fix: "write the address of your own website",
    },
);

/// Top-level domains that nobody can register (RFC 2606, section 2).
const TOP_LEVEL: [&str; 3] = ["example", "invalid", "test"];
/// Domains reserved for documentation (RFC 2606, section 3).
const DOMAINS: [&str; 3] = ["example.com", "example.net", "example.org"];

/// The example links of the texts, if recipients would get them.
pub(super) fn check_example_links(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let gateway = profile.base_url.host_and_port();
    let gateway = gateway.split(':').next().unwrap_or_default();
    // No recipient is behind these.
    if profile.base_url.is_loopback() || is_reserved(gateway) {
        return None;
    }
    let texts = collect_texts(campaign);
    let mut hosts: Vec<String> = Vec::new();
    let mut first = None;
    for text in texts.iter().filter(|text| !NamedTemplate::is_stand_in(&text.name)) {
        for (part, at) in constant_parts(text) {
            for (start, host) in find_example_hosts(part) {
                first.get_or_insert((text, at.start + start..at.start + start + host.len()));
                if !hosts.iter().any(|known| known.eq_ignore_ascii_case(host)) {
                    hosts.push(host.to_owned());
                }
            }
        }
    }
    let (text, span) = first?;
    let what = match hosts.len() {
        1 => "is an example domain, so the link does not work",
        _ => "are example domains, so the links do not work",
    };
    let message = format!("{} {what}", join_names(hosts.iter().map(String::as_str)));
    let problem = problem_at(text, span, &RULE, message, RULE.text.fix);
    Some(to_finding(problem, Some(&campaign.places)))
}

/// The reserved hosts of links, with the byte at which each starts.
fn find_example_hosts(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_of_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let words = text.split_inclusive(move |c| !is_of_host(c));
    let placed = words.scan(0, move |next, word| {
        let start = *next;
        *next += word.len();
        // Without the separator, and the full stop of a sentence.
        Some((start, word.trim_end_matches(|c| c == '.' || !is_of_host(c))))
    });
    placed.filter(|(start, word)| {
        let is_link = text[..*start].ends_with("://") || is_under(word, "example") || word.starts_with("www.");
        is_link && is_reserved(word)
    })
}

/// Whether nobody can register this host.
fn is_reserved(host: &str) -> bool {
    let is_one = |domain: &&str| host.eq_ignore_ascii_case(domain) || is_under(host, domain);
    TOP_LEVEL.iter().any(|domain| is_under(host, domain)) || DOMAINS.iter().any(is_one)
}

/// Whether a host is a subdomain of a domain.
fn is_under(host: &str, domain: &str) -> bool {
    let lower = host.to_ascii_lowercase();
    lower.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
