//! Tables of the keys of `tests`: a recipient and what must happen to them.
//!
//! The keys of the channels are derived from the channels' own tables in the domain.

use super::{KeySpec, ValueShape};
use campaign_core::domain::Channel;

/// The reasons for skipping a recipient that need no ledger, as results files show them.
pub(crate) static TESTABLE_REASONS: [&str; 4] = ["filtered", "holdout", "country", "expired"];

/// The maximum number of tests in a campaign file.
pub(super) const MAX_TESTS: usize = 1_000;

pub(super) static TEST: KeySpec = KeySpec::new(
    "test",
    ValueShape::Map(TEST_KEYS),
    "{ name: a gold customer, given: { plan: gold }, expect: { channels: [sms] } }",
)
.with_doc("A test.");

/// The keys of a test.
pub(crate) static TEST_KEYS: &[KeySpec] = &[
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
/// The keys of `expect` that are not channels.
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
pub(crate) static EXPECT_KEYS: &[KeySpec] = &{
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
const CONTAINS: KeySpec = KeySpec::new("contains", ValueShape::List { of: &PIECE, least: 1, most: 100 }, "[\"-10%\"]")
    .with_doc("Strings that the text must contain.");
const NOT_CONTAINS: KeySpec =
    KeySpec::new("not_contains", ValueShape::List { of: &PIECE, least: 1, most: 100 }, "[None, \"  \"]")
        .with_doc("Strings that the text must not contain.");
const MATCHES: KeySpec = KeySpec::new("matches", ValueShape::Line, "'^[^{}]*$'")
    .with_doc("A regular expression that the text must match. `^` and `$` stand for its beginning and end.");

static TEXT: &[KeySpec] = &[WHOLE_TEXT, CONTAINS, NOT_CONTAINS, MATCHES];

/// The keys of a channel that is billed by the parts of its text.
pub(crate) static SMS_TEXT: &[KeySpec] = &[
    WHOLE_TEXT,
    KeySpec::new("parts", ValueShape::Integer { least: 1, most: 255 }, "1").with_doc("The exact number of SMS parts."),
    KeySpec::new("max_parts", ValueShape::Integer { least: 1, most: 255 }, "2")
        .with_doc("The maximum number of SMS parts."),
    CONTAINS,
    NOT_CONTAINS,
    MATCHES,
];
