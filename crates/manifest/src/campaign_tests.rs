//! Tests that a campaign file declares: their key tables, and the code that reads them.
//!
//! A test names recipients and states what must be true of their messages.

use std::collections::BTreeSet;
use std::ops::Range;

use jiff::civil::DateTime;
use regex::Regex;

use super::document::{ConfigSection, FindingCollector};
use super::keys::{KeySpec, ValueShape};
use super::yaml::{Node, Scalar};
use campaign_core::calendar::Timing;
use campaign_core::domain::{Amount, Channel};
use campaign_core::finding::{Finding, rules};

/// An item of `tests`: recipients, and what must be true for their messages.
#[derive(Clone, Debug)]
pub struct CampaignTest {
    /// The name, unique in the file.
    pub name: String,
    /// The path of the test's keys in the file, such as `tests[0]`.
    pub path: String,
    /// The recipients of the test.
    pub subject: TestSubject,
    /// The local time of sending, in the time zone of the campaign.
    pub at: Option<DateTime>,
    /// The expectation of the test.
    pub expect: TestExpectation,
}

/// The recipients of a test.
#[derive(Clone, Debug)]
pub enum TestSubject {
    /// A made-up recipient: the cells of its row by name or header.
    Given(Vec<(String, String)>),
    /// This number of random rows of the list.
    Each(usize),
}

/// The expectation for a recipient.
#[derive(Clone, Debug, Default)]
pub struct TestExpectation {
    /// The reason why the recipient is skipped. `None` if there must be a message.
    pub skipped: Option<&'static str>,
    /// The channels of the message.
    pub channels: Option<Vec<Channel>>,
    /// The texts of the message.
    pub texts: Vec<ExpectedText>,
    /// The maximum cost of the message.
    pub max_cost: Option<Amount>,
}

/// The expectation for the text of a message on one channel.
#[derive(Clone, Debug)]
pub struct ExpectedText {
    /// The channel; a test has at most one such expectation per channel.
    pub channel: Channel,
    /// The whole text.
    pub text: Option<String>,
    /// The exact number of SMS parts.
    pub parts: Option<usize>,
    /// The maximum number of SMS parts.
    pub max_parts: Option<usize>,
    /// Parts that the text must contain.
    pub contains: Vec<String>,
    /// Parts that the text must not contain.
    pub not_contains: Vec<String>,
    /// A regular expression that the text must match.
    pub matches: Option<Regex>,
}

/// The reasons for skipping a recipient that need no ledger, as results files show them.
static TESTABLE_REASONS: [&str; 4] = ["filtered", "holdout", "country", "expired"];

/// The maximum number of tests in a campaign file.
pub(super) const MAX_TESTS: usize = 1_000;

pub(super) static TEST: KeySpec = KeySpec::new(
    "test",
    ValueShape::Map(TEST_KEYS),
    "{ name: a gold customer, given: { plan: gold }, expect: { channels: [sms] } }",
)
.with_doc("A test.");

static TEST_KEYS: &[KeySpec] = &[
    KeySpec::new("name", ValueShape::Line, "a gold customer gets the discount")
        .with_doc("The name of the test in reports. Each name must be unique.")
        .mark_required(),
    KeySpec::new("given", ValueShape::Texts, "{ first_name: Olena, plan: gold }")
        .with_doc(
            "A made-up recipient: the cells of its row, under the names that templates use. Only the columns that \
             the campaign uses are needed. Without `phone`, the recipient has a mobile number of the campaign's \
             region.",
        )
        .mark_choice(),
    KeySpec::new("each", ValueShape::Integer { least: 1, most: 10_000 }, "50")
        .with_doc(
            "Tests the messages for this number of random rows from the list. The same rows are selected each time, \
             unless the list changes.",
        )
        .mark_choice(),
    KeySpec::new("at", ValueShape::Line, "2026-12-01 10:00").with_doc(
        "The local time of sending. Required if a text uses `today`, or if the campaign has a sending window.",
    ),
    KeySpec::new("expect", ValueShape::Map(EXPECT_KEYS), "{ channels: [viber, sms] }")
        .with_doc("What must be true for the recipient.")
        .mark_required(),
];

const CHANNELS_COUNT: usize = Channel::ALL.len();
/// The number of keys of `expect` that are not channels.
const OWN_COUNT: usize = 3;

/// The names of all channels.
static CHANNEL_NAMES: [&str; CHANNELS_COUNT] = {
    let mut names = [""; CHANNELS_COUNT];
    let mut at = 0;
    while at < CHANNELS_COUNT {
        names[at] = Channel::ALL[at].name();
        at += 1;
    }
    names
};

/// The keys of `expect`: its own, then the channels.
static EXPECT_KEYS: &[KeySpec] = &{
    let mut keys = [SKIPPED; OWN_COUNT + CHANNELS_COUNT];
    keys[1] = CHANNELS;
    keys[2] = MAX_COST;
    let mut at = 0;
    while at < CHANNELS_COUNT {
        let channel = Channel::ALL[at];
        let (text, example) = match channel.facts().billed_by_part {
            true => (SMS_TEXT, "{ parts: 1, contains: [\"-10%\"] }"),
            false => (TEXT, "{ contains: [\"-10%\"] }"),
        };
        keys[OWN_COUNT + at] = KeySpec::new(channel.name(), ValueShape::Map(text), example)
            .with_doc("What the message text on this channel must be.");
        at += 1;
    }
    keys
};

const SKIPPED: KeySpec = KeySpec::new("skipped", ValueShape::OneOf(&TESTABLE_REASONS), "filtered")
    .with_doc("The recipient is skipped for this reason and gets no message.");

const CHANNELS: KeySpec = KeySpec::new("channels", ValueShape::Words(&CHANNEL_NAMES), "[viber, sms]")
    .with_doc("The channels of the message, in the order in which they are tried.");

const MAX_COST: KeySpec = KeySpec::new("max_cost", ValueShape::Amount, "0.50")
    .with_doc("The maximum cost of the message on its most expensive channel, at the prices of the gateway profile.");

static PIECE: KeySpec = KeySpec::new("piece", ValueShape::Template, "\"-10%\"").with_doc("A part of a text.");

const WHOLE_TEXT: KeySpec = KeySpec::new("text", ValueShape::Template, "\"Olena, -10% until Sunday\"")
    .with_doc("The whole text. A trailing line break is ignored.");
const CONTAINS: KeySpec =
    KeySpec::new("contains", ValueShape::List { item: &PIECE, least: 1, most: 100 }, "[\"-10%\"]")
        .with_doc("Strings that the text must contain.");
const NOT_CONTAINS: KeySpec =
    KeySpec::new("not_contains", ValueShape::List { item: &PIECE, least: 1, most: 100 }, "[None, \"  \"]")
        .with_doc("Strings that the text must not contain.");
const MATCHES: KeySpec = KeySpec::new("matches", ValueShape::Line, "'^[^{}]*$'")
    .with_doc("A regular expression that the text must match. `^` and `$` stand for its beginning and end.");

static TEXT: &[KeySpec] = &[WHOLE_TEXT, CONTAINS, NOT_CONTAINS, MATCHES];

/// The keys of a channel that is billed by the parts of its text.
static SMS_TEXT: &[KeySpec] = &[
    WHOLE_TEXT,
    KeySpec::new("parts", ValueShape::Integer { least: 1, most: 255 }, "1").with_doc("The exact number of SMS parts."),
    KeySpec::new("max_parts", ValueShape::Integer { least: 1, most: 255 }, "2")
        .with_doc("The maximum number of SMS parts."),
    CONTAINS,
    NOT_CONTAINS,
    MATCHES,
];

/// Reads the tests of a campaign; errors are reported.
pub(super) fn read_tests(root: ConfigSection<'_>, report: &mut FindingCollector) -> Vec<CampaignTest> {
    let items = root.find_value("tests").and_then(Node::as_items).unwrap_or_default();
    let mut names = BTreeSet::new();
    let tests = items.iter().enumerate().filter_map(|(index, item)| {
        let section = ConfigSection::new(Some(item), TEST_KEYS);
        let (name, span) = section.typed_text("name")?;
        if !names.insert(name) {
            let finding = Finding::new(&rules::CAMPAIGN_TEST, format!("two tests have the name `{name}`"));
            report.add(span, finding.help("give each test its own name"));
        }
        read_test(section, name, format!("tests[{index}]"), report)
    });
    tests.collect()
}

/// Reads a test; `None` if it is invalid, which was reported.
fn read_test(
    section: ConfigSection<'_>,
    name: &str,
    path: String,
    report: &mut FindingCollector,
) -> Option<CampaignTest> {
    let subject = match section.entry("given") {
        Some(entry) => {
            let entries = entry.value.as_entries()?;
            let cell = |scalar: &Scalar| if scalar.is_null() { String::new() } else { scalar.text.clone() };
            let cells = entries.iter().filter_map(|entry| Some((entry.key.clone(), cell(entry.value.as_scalar()?))));
            TestSubject::Given(cells.collect())
        }
        None => TestSubject::Each(section.parse_value("each")?),
    };
    let at = match section.typed_text("at") {
        None => None,
        Some((text, span)) => match Timing::parse_at(text) {
            Ok(timing) => timing.single_time(),
            Err(error) => {
                let message = format!("`at: {text}` {}", error.why);
                report.add(span, Finding::new(&rules::CAMPAIGN_TEST, message).help(error.help));
                return None;
            }
        },
    };
    let (entry, expected) = (section.entry("expect")?, section.subsection("expect"));
    let expect = read_expectation(expected, &entry.key_span, report)?;
    if let (Some(_), TestSubject::Each(_)) = (expect.skipped, &subject) {
        let span = expected.typed_text("skipped").map_or(&entry.key_span, |(_, span)| span);
        let message = "`each` tests messages, so it cannot expect that recipients are skipped";
        report.add(span, Finding::new(&rules::CAMPAIGN_TEST, message).help("describe one recipient with `given`"));
        return None;
    }
    Some(CampaignTest { name: name.to_owned(), path, subject, at, expect })
}

/// Reads what a test expects; `None` if it is invalid, which was reported.
fn read_expectation(
    section: ConfigSection<'_>,
    key_span: &Range<usize>,
    report: &mut FindingCollector,
) -> Option<TestExpectation> {
    let skipped = section.typed_text("skipped").and_then(|(word, _)| find_reason(word));
    let channels: Option<Vec<Channel>> = section.find_value("channels").map(|node| {
        let words = node.as_items().unwrap_or(std::slice::from_ref(node));
        words.iter().filter_map(|word| Channel::from_name(word.as_scalar()?.text.trim())).collect()
    });
    let mut texts = Vec::new();
    for channel in Channel::ALL {
        let Some(node) = section.find_value(channel.name()) else { continue };
        texts.push(read_expected_text(channel, ConfigSection::new(Some(node), SMS_TEXT), report)?);
    }
    let max_cost = section.parse_value("max_cost");
    let has_message = channels.is_some() || !texts.is_empty() || max_cost.is_some();
    let problem = match (skipped, has_message) {
        (None, false) => Some(("the test expects nothing", "add, for example, `channels: [sms]` under `expect`")),
        (Some(_), true) => Some((
            "the test expects a message, and also that the recipient is skipped",
            "keep `skipped`, or the keys about the message",
        )),
        _ => None,
    };
    // An unknown key or value was reported already.
    let is_known = section.unknown_entries().next().is_none() && section.has_value("skipped") == skipped.is_some();
    if let Some((message, help)) = problem {
        if is_known {
            report.add(key_span, Finding::new(&rules::CAMPAIGN_TEST, message).help(help));
        }
        return None;
    }
    Some(TestExpectation { skipped, channels, texts, max_cost })
}

fn find_reason(word: &str) -> Option<&'static str> {
    TESTABLE_REASONS.into_iter().find(|reason| *reason == word)
}

/// Reads what a test expects of the text on a channel; `None` if it is invalid, which was reported.
fn read_expected_text(
    channel: Channel,
    section: ConfigSection<'_>,
    report: &mut FindingCollector,
) -> Option<ExpectedText> {
    // Spaces count, so the values are not trimmed.
    let read_string = |key: &str| Some(section.find_value(key)?.as_scalar()?.text.clone());
    let mut read_strings = |key: &str| -> Vec<String> {
        let items = section.find_value(key).and_then(Node::as_items).unwrap_or_default();
        for item in items.iter().filter(|item| item.as_scalar().is_some_and(|scalar| scalar.text.is_empty())) {
            let finding = Finding::new(&rules::CAMPAIGN_TEST, "every text contains an empty string");
            report.add(&item.span, finding.help("write a part of the text, or remove this item"));
        }
        items.iter().filter_map(|item| Some(item.as_scalar()?.text.clone())).collect()
    };
    let (contains, not_contains) = (read_strings("contains"), read_strings("not_contains"));
    let matches = match (read_string("matches"), section.typed_text("matches")) {
        (Some(pattern), Some((_, span))) => match Regex::new(&pattern) {
            Ok(regex) => Some(regex),
            Err(error) => {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
                let message = format!("`matches` is not a regular expression: {reason}");
                let help = "put a backslash before each character that has a special meaning, as in `\\(`";
                report.add(span, Finding::new(&rules::CAMPAIGN_TEST, message).help(help));
                return None;
            }
        },
        _ => None,
    };
    if contains.iter().chain(&not_contains).any(String::is_empty) {
        return None;
    }
    Some(ExpectedText {
        channel,
        text: read_string("text"),
        parts: section.parse_value("parts"),
        max_parts: section.parse_value("max_parts"),
        contains,
        not_contains,
        matches,
    })
}

impl CampaignTest {
    /// The path of a key under this test's `expect` in the file, such as `tests[0].expect.sms.contains[1]`.
    pub fn expected_key(&self, key: &str) -> String {
        format!("{}.expect.{key}", self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_core::finding::SourceText;

    const TESTS: &str =
        "tests:\n  - name: x\n    given: { plan: gold, nick: ~ }\n    at: 2026-12-01 10:00\n    expect: ";

    fn read(expect: &str) -> (Vec<CampaignTest>, Vec<String>) {
        read_yaml(&format!("{TESTS}{expect}\n"))
    }

    fn read_yaml(yaml: &str) -> (Vec<CampaignTest>, Vec<String>) {
        let mut report = FindingCollector::new(&SourceText::new("a.yaml", yaml));
        let root = crate::yaml::read_tree(&mut report).unwrap();
        let tests = read_tests(ConfigSection::new(Some(&root), crate::keys::CAMPAIGN), &mut report);
        (tests, report.findings.into_iter().map(|finding| finding.message).collect())
    }

    #[test]
    fn test_is_read_with_every_expectation() {
        let (tests, findings) = read(
            "{ channels: [viber, sms], max_cost: 0.50, sms: { parts: 1, max_parts: 2, contains: [\" a\"], \
             not_contains: [None, \"  \"], matches: '^a' }, viber: { text: \"b \" } }",
        );
        assert_eq!(findings, [""; 0]);
        let [test] = tests.as_slice() else { panic!("{tests:?}") };
        let owned_cells = |cells: &[(&str, &str)]| -> Vec<(String, String)> {
            cells.iter().map(|(name, cell)| ((*name).to_owned(), (*cell).to_owned())).collect()
        };
        assert!(
            matches!(&test.subject, TestSubject::Given(cells) if *cells == owned_cells(&[("plan", "gold"), ("nick", "")]))
        );
        assert_eq!(test.at.map(|at| at.to_string()).as_deref(), Some("2026-12-01T10:00:00"));
        assert_eq!(test.expect.channels.as_deref(), Some([Channel::Viber, Channel::Sms].as_slice()));
        let text = |channel| test.expect.texts.iter().find(|text| text.channel == channel).unwrap();
        let (sms, viber) = (text(Channel::Sms), text(Channel::Viber));
        assert_eq!((sms.parts, sms.max_parts), (Some(1), Some(2)));
        assert_eq!((sms.contains.as_slice(), sms.not_contains.len()), ([" a".to_owned()].as_slice(), 2));
        assert!(sms.matches.as_ref().unwrap().is_match("ab"));
        assert_eq!(viber.text.as_deref(), Some("b "), "spaces count");
    }

    #[test]
    fn invalid_tests_are_reported() {
        for (expect, message) in [
            ("{}", "the test expects nothing"),
            (
                "{ skipped: filtered, sms: { parts: 1 } }",
                "the test expects a message, and also that the recipient is skipped",
            ),
            ("{ sms: { contains: [\"\"] } }", "every text contains an empty string"),
            ("{ sms: { not_contains: [a, ''] } }", "every text contains an empty string"),
            ("{ sms: { matches: '(' } }", "`matches` is not a regular expression: unclosed group"),
        ] {
            let (tests, findings) = read(expect);
            assert_eq!((tests.len(), findings), (0, vec![message.to_owned()]), "{expect}");
        }
        let each_skipped = "tests:\n  - { name: x, each: 5, expect: { skipped: filtered } }\n";
        assert_eq!(
            read_yaml(each_skipped).1,
            ["`each` tests messages, so it cannot expect that recipients are skipped"]
        );
        let same_name = "tests:\n  - { name: x, each: 5, expect: { sms: { parts: 1 } } }\n  \
                     - { name: x, each: 5, expect: { channels: sms } }\n";
        let (tests, findings) = read_yaml(same_name);
        assert_eq!((tests.len(), findings), (2, vec!["two tests have the name `x`".to_owned()]));
        assert_eq!(read_yaml("tests: [{ name: x, each: 5, at: soon, expect: { channels: sms } }]").1.len(), 1);
    }
}
