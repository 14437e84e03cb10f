//! The keys of a scenario file.

use super::channels::{CHANNELS, NAMES, PRICES};
use crate::manifest::document::{Key, Shape};

/// The longest time of a scenario, a year.
const YEAR: u32 = 366 * 86_400;

const TIME: Shape = Shape::Seconds { least: 0, most: YEAR };

/// The keys at the top of a scenario file.
pub(super) static SCENARIO: &[Key] = &[
    Key::new("seed", Shape::Integer { least: 0, most: u32::MAX }, "7")
        .doc("What chance is drawn from: the same seed plays the same way.")
        .default("0"),
    Key::new("speed", Shape::Integer { least: 1, most: 1_000_000 }, "60")
        .doc("How many seconds pass for messages in one real second.")
        .default("1"),
    Key::new("accounts", Shape::List { of: &ACCOUNT_ITEM, least: 1, most: 100 }, "[{ balance: 100 }]")
        .doc("The accounts of the gateway."),
    Key::new("limits", Shape::Map(LIMITS), "{ rate: 50/s, burst: 50 }")
        .doc("How many operations each account may send; what is above it is answered with HTTP 429."),
    Key::new("prices", Shape::Map(PRICES), "{ sms: 0.80, viber: 0.50 }")
        .doc("What a part costs in each channel, in the account's currency."),
    Key::new("charge_undelivered", Shape::Bool, "false")
        .doc("Whether a message that no channel delivered is charged.")
        .default("true"),
    Key::new("channels", Shape::Map(CHANNELS), "{ rcs: { delivered: 40% } }").doc("How messages fare in each channel."),
    Key::new("exceptions", Shape::List { of: &EXCEPTION_ITEM, least: 0, most: 1_000 }, "[{ when: { suffix: 13 }, … }]")
        .doc("Messages that fare otherwise; the first that applies counts."),
    Key::new(
        "faults",
        Shape::List { of: &FAULT_ITEM, least: 0, most: 1_000 },
        "[{ when: { envelope: 2 }, answer: dropped }]",
    )
    .doc("What goes wrong."),
    Key::new("status", Shape::Map(STATUS), "{ lag: 30s }").doc("What `status` does not see."),
    Key::new("webhooks", Shape::Map(WEBHOOKS), "{ retry: [1m, 5m] }").doc("How webhooks are sent."),
    Key::new("templates", Shape::Map(TEMPLATES), "{ review: 1h }").doc("What becomes of Viber templates."),
];

static ACCOUNT_ITEM: Key = Key::new("account", Shape::Map(ACCOUNT), "{ balance: 100 }").doc("An account.");

/// The keys of one account.
pub(super) static ACCOUNT: &[Key] = &[
    Key::new("key", Shape::Line, "second-key").doc("The key that opens it; without one the sandbox's own does."),
    Key::new("balance", Shape::Amount, "1000.50").doc("The money that it begins with.").default("100000000.123456"),
    Key::new("currency", Shape::Line, "UAH").doc("The code of its currency.").default("UAH"),
    Key::new("notify", Shape::Line, "http://127.0.0.1:9000/status")
        .doc("The account's notification address, for statuses that no `hook` keeps."),
    Key::new("whatsapp", Shape::Bool, "false").doc("Whether it has a WhatsApp route.").default("true"),
    Key::new("senders", Shape::Texts, "{ OlenaCo: Checked, Spring: New }")
        .doc("Its sender names, `Checked` or `New`; without this key every well-formed name is known."),
];

/// The keys of what each account may send.
static LIMITS: &[Key] = &[
    Key::new("rate", Shape::Rate, "50/s").doc("How many operations, in the long run.").required(),
    Key::new("burst", Shape::Integer { least: 1, most: 1_000_000 }, "50")
        .doc("How many at once after a rest; an envelope of more is never taken.")
        .required(),
];

/// The keys of how messages fare.
pub(super) static BEHAVIOUR: &[Key] = &[
    Key::new("delivered", Shape::Share, "97%").doc("How many are delivered."),
    Key::new("after", TIME, "8s").doc("How long after the channel was tried they are delivered, or fail."),
    Key::new("fails_as", Shape::OneOf(FAILURES), "UNDELIVERABLE").doc("The status of those that are not delivered."),
    Key::new("read", Shape::Share, "80%").doc("How many of the delivered ones are read."),
    Key::new("read_after", TIME, "1m").doc("How long after the delivery they are read."),
    Key::new("reply", Shape::Map(REPLY), "{ share: 5%, message: STOP }").doc("Replies to messages."),
    Key::new("digit", Shape::Line, "1").doc("The digit that is pressed in a call."),
    Key::new("duration", TIME, "12s").doc("How long a call takes."),
];

static REPLY: &[Key] = &[
    Key::new("share", Shape::Share, "5%").doc("How many of the delivered ones are replied to.").default("100%"),
    Key::new("after", TIME, "1m").doc("How long after it was read, or else delivered.").default("1m"),
    Key::new("message", Shape::Line, "STOP").doc("What the reply says.").required(),
];

/// The final statuses of a message that was not delivered.
static FAILURES: &[&str] = &[
    "UNDELIVERABLE",
    "EXPIRED",
    "REJECTED",
    "DELETED",
    "FILTERED",
    "INVALID DESTINATION ADDRESS",
    "INVALID SOURCE ADDRESS",
    "NO ROUTE",
    "SIM FULL",
    "UNKNOWN",
];

static EXCEPTION_ITEM: Key =
    Key::new("exception", Shape::Map(EXCEPTION), "{ when: { suffix: 13 }, then: { delivered: 0% } }")
        .doc("Messages that fare otherwise.");

/// The keys of an exception.
pub(super) static EXCEPTION: &[Key] = &[
    Key::new("when", Shape::Map(WHEN), "{ suffix: 13 }").doc("Which messages.").required(),
    Key::new("channel", Shape::OneOf(NAMES), "rcs").doc("In which channel; else in all."),
    Key::new("then", Shape::Map(BEHAVIOUR), "{ delivered: 0% }").doc("How they fare there.").required(),
];

/// The keys of a condition.
pub(super) static WHEN: &[Key] = &[
    Key::new("suffix", Shape::Line, "13").doc("Numbers that end in these digits."),
    Key::new("share", Shape::Share, "1%").doc("A part of all, drawn from the seed."),
    Key::new("envelope", Shape::Line, "2-5").doc("Envelopes that hold sends, counted from 1."),
    Key::new("endpoint", Shape::OneOf(&["sync", "async"]), "async").doc("The endpoint."),
];

static FAULT_ITEM: Key = Key::new("fault", Shape::Map(FAULT), "{ when: { envelope: 2 }, answer: dropped }")
    .doc("Something that goes wrong.");

/// The keys of a fault: `when`, one effect, and what the effect may need.
pub(super) static FAULT: &[Key] = &[
    Key::new("when", Shape::Map(WHEN), "{ envelope: 2 }").doc("When; without conditions always.").required(),
    Key::new("item_error", Shape::Line, "No route").doc("Messages are refused with this error."),
    Key::new("top_error", Shape::Line, "Access denied").doc("Envelopes are refused with this error."),
    Key::new("delay", TIME, "40s").doc("The answer comes so much later."),
    Key::new("connection", Shape::OneOf(&["refused", "closed"]), "refused")
        .doc("Nobody listens, or the connection is closed before anything is read."),
    Key::new("lasts", TIME, "3s").doc("How long connections are refused.").default("3s"),
    Key::new("answer", Shape::OneOf(ANSWERS), "dropped").doc("What is wrong with the answer."),
    Key::new("http", Shape::Integer { least: 300, most: 599 }, "502").doc("An HTML page with this HTTP status."),
    Key::new("retry_after", TIME, "5s").doc("The header `Retry-After` of the page."),
    Key::new("executed", Shape::Bool, "true").doc("Whether the envelope is executed nevertheless.").default("false"),
    Key::new("webhook", Shape::OneOf(&["twice", "late", "reordered", "lost"]), "lost")
        .doc("What is wrong with the message's webhooks."),
    Key::new("by", TIME, "10m").doc("How late a webhook is.").default("10m"),
];

static ANSWERS: &[&str] = &["dropped", "truncated", "reordered", "missing", "foreign"];

static STATUS: &[Key] = &[
    Key::new("lag", TIME, "30s").doc("How long it does not know a message that was taken.").default("0"),
    Key::new("blind", Shape::OneOf(&["denies", "affirms"]), "denies").doc("It denies, or affirms, whatever is asked."),
];

/// The keys of how webhooks are sent.
pub(super) static WEBHOOKS: &[Key] = &[
    Key::new("retry", Shape::List { of: &WAIT, least: 0, most: 50 }, "[1m, 3m, 5m]")
        .doc("The waits before a webhook that was not answered with 200 is tried again.")
        .default("[1m, 3m, 5m, 10m, 15m, 20m, 30m, 60m, 120m]"),
    Key::new("async_pipeline", Shape::Bool, "true")
        .doc("Whether an asynchronous pipeline reports every final status to its `hook`, and not only a refusal.")
        .default("false"),
    Key::new("intermediate", Shape::Bool, "true")
        .doc("Whether a webhook also reports the failure of each earlier channel.")
        .default("false"),
];

static WAIT: Key = Key::new("wait", TIME, "1m").doc("A wait.");

static TEMPLATES: &[Key] = &[
    Key::new("review", TIME, "1h").doc("How long a Viber template waits for each step of its review.").default("10s"),
    Key::new("approved", Shape::Bool, "false").doc("Whether Viber templates are approved.").default("true"),
];
