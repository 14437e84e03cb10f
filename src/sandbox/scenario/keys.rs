//! The keys of a scenario file.

use super::channels::{CHANNELS, NAMES, PRICES};
use crate::manifest::document::{Key, Shape};

/// The longest time of a scenario, a year.
const YEAR: u32 = 366 * 86_400;

const TIME: Shape = Shape::Seconds { least: 0, most: YEAR };

/// The keys at the top of a scenario file.
pub(super) static SCENARIO: &[Key] = &[
    Key::new("seed", Shape::Integer { least: 0, most: u32::MAX }, "7")
        .doc("The seed for random choices. The same seed produces the same results.")
        .default("0"),
    Key::new("speed", Shape::Integer { least: 1, most: 1_000_000 }, "60")
        .doc("How many seconds pass for messages during one second of real time.")
        .default("1"),
    Key::new("accounts", Shape::List { of: &ACCOUNT_ITEM, least: 1, most: 100 }, "[{ balance: 100 }]")
        .doc("The gateway's accounts."),
    Key::new("limits", Shape::Map(LIMITS), "{ rate: 50/s, burst: 50 }")
        .doc("How many operations each account can send. Requests above the limit get HTTP 429."),
    Key::new("prices", Shape::Map(PRICES), "{ sms: 0.80, viber: 0.50 }")
        .doc("The price of one message part on each channel, in the account's currency."),
    Key::new("charge_undelivered", Shape::Bool, "false")
        .doc("Whether messages that no channel delivered are charged.")
        .default("true"),
    Key::new("channels", Shape::Map(CHANNELS), "{ rcs: { delivered: 40% } }")
        .doc("The delivery results on each channel."),
    Key::new("exceptions", Shape::List { of: &EXCEPTION_ITEM, least: 0, most: 1_000 }, "[{ when: { suffix: 13 }, … }]")
        .doc("Messages that get different results. The first matching exception applies."),
    Key::new(
        "faults",
        Shape::List { of: &FAULT_ITEM, least: 0, most: 1_000 },
        "[{ when: { envelope: 2 }, answer: dropped }]",
    )
    .doc("Faults that the gateway simulates."),
    Key::new("status", Shape::Map(STATUS), "{ lag: 30s }").doc("Which messages `status` does not know."),
    Key::new("webhooks", Shape::Map(WEBHOOKS), "{ retry: [1m, 5m] }").doc("How the sandbox sends webhooks."),
    Key::new("templates", Shape::Map(TEMPLATES), "{ review: 1h }").doc("How Viber templates are reviewed."),
];

static ACCOUNT_ITEM: Key = Key::new("account", Shape::Map(ACCOUNT), "{ balance: 100 }").doc("An account.");

/// The keys of one account.
pub(super) static ACCOUNT: &[Key] = &[
    Key::new("key", Shape::Line, "second-key").doc("The account's API key. Defaults to the sandbox's own key."),
    Key::new("balance", Shape::Amount, "1000.50").doc("The initial balance.").default("100000000.123456"),
    Key::new("currency", Shape::Line, "UAH").doc("The account's currency code.").default("UAH"),
    Key::new("notify", Shape::Line, "http://127.0.0.1:9000/status")
        .doc("The account's notification URL, for statuses that are not sent to a `hook`."),
    Key::new("whatsapp", Shape::Bool, "false").doc("Whether the account has a WhatsApp route.").default("true"),
    Key::new("senders", Shape::Texts, "{ OlenaCo: Checked, Spring: New }")
        .doc("The account's sender names, each `Checked` or `New`. Without this key, every well-formed name is valid."),
];

/// The keys of what each account may send.
static LIMITS: &[Key] = &[
    Key::new("rate", Shape::Rate, "50/s").doc("The average number of operations per second or minute.").required(),
    Key::new("burst", Shape::Integer { least: 1, most: 1_000_000 }, "50")
        .doc("How many operations can arrive at once after a pause. Larger requests are never accepted.")
        .required(),
];

/// The keys of how messages fare.
pub(super) static BEHAVIOUR: &[Key] = &[
    Key::new("delivered", Shape::Share, "97%").doc("The share of delivered messages."),
    Key::new("after", TIME, "8s").doc("The time until the channel delivers the message or fails."),
    Key::new("fails_as", Shape::OneOf(FAILURES), "UNDELIVERABLE").doc("The status of messages that are not delivered."),
    Key::new("read", Shape::Share, "80%").doc("The share of delivered messages that are read."),
    Key::new("read_after", TIME, "1m").doc("The time until a delivered message is read."),
    Key::new("reply", Shape::Map(REPLY), "{ share: 5%, message: STOP }").doc("Replies to messages."),
    Key::new("digit", Shape::Line, "1").doc("The digit that the recipient presses."),
    Key::new("duration", TIME, "12s").doc("The duration of the call."),
];

static REPLY: &[Key] = &[
    Key::new("share", Shape::Share, "5%").doc("The share of delivered messages that get a reply.").default("100%"),
    Key::new("after", TIME, "1m")
        .doc(
            "The time until the recipient replies, after reading the message or, if the channel does not report \
            that, after its delivery.",
        )
        .default("1m"),
    Key::new("message", Shape::Line, "STOP").doc("The message text of the reply.").required(),
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
        .doc("Messages that get different results.");

/// The keys of an exception.
pub(super) static EXCEPTION: &[Key] = &[
    Key::new("when", Shape::Map(WHEN), "{ suffix: 13 }").doc("Which messages the exception applies to.").required(),
    Key::new("channel", Shape::OneOf(NAMES), "rcs").doc("The channel. Defaults to all channels."),
    Key::new("then", Shape::Map(BEHAVIOUR), "{ delivered: 0% }")
        .doc("The results of these messages on that channel.")
        .required(),
];

/// The keys of a condition.
pub(super) static WHEN: &[Key] = &[
    Key::new("suffix", Shape::Line, "13").doc("Numbers that end with these digits."),
    Key::new("share", Shape::Share, "1%").doc("A share of all messages, chosen at random from the seed."),
    Key::new("envelope", Shape::Line, "2-5")
        .doc("The position of the request among those that contain messages, starting at 1."),
    Key::new("endpoint", Shape::OneOf(&["sync", "async"]), "async").doc("The endpoint."),
];

static FAULT_ITEM: Key =
    Key::new("fault", Shape::Map(FAULT), "{ when: { envelope: 2 }, answer: dropped }").doc("A fault.");

/// The keys of a fault: `when`, one effect, and what the effect may need.
pub(super) static FAULT: &[Key] = &[
    Key::new("when", Shape::Map(WHEN), "{ envelope: 2 }")
        .doc("When the fault occurs. Without conditions, it always occurs.")
        .required(),
    Key::new("item_error", Shape::Line, "No route").doc("Rejects messages with this error."),
    Key::new("top_error", Shape::Line, "Access denied").doc("Rejects requests with this error."),
    Key::new("delay", TIME, "40s").doc("Delays the response."),
    Key::new("connection", Shape::OneOf(&["refused", "closed"]), "refused")
        .doc("Refuses the connection, or closes it before reading the request."),
    Key::new("lasts", TIME, "3s").doc("How long the sandbox refuses connections.").default("3s"),
    Key::new("answer", Shape::OneOf(ANSWERS), "dropped").doc("What is wrong with the response."),
    Key::new("http", Shape::Integer { least: 300, most: 599 }, "502")
        .doc("Responds with an HTML page and this HTTP status."),
    Key::new("retry_after", TIME, "5s").doc("The header `Retry-After` of the page."),
    Key::new("executed", Shape::Bool, "true").doc("Whether the request is still processed.").default("false"),
    Key::new("webhook", Shape::OneOf(&["twice", "late", "reordered", "lost"]), "lost")
        .doc("What is wrong with the message's webhooks."),
    Key::new("by", TIME, "10m").doc("The delay of a late webhook.").default("10m"),
];

static ANSWERS: &[&str] = &["dropped", "truncated", "reordered", "missing", "foreign"];

static STATUS: &[Key] = &[
    Key::new("lag", TIME, "30s").doc("How long `status` does not know an accepted message.").default("0"),
    Key::new("blind", Shape::OneOf(&["denies", "affirms"]), "denies")
        .doc("Whether `status` claims to know no message, or every message."),
];

/// The keys of how webhooks are sent.
pub(super) static WEBHOOKS: &[Key] = &[
    Key::new("retry", Shape::List { of: &WAIT, least: 0, most: 50 }, "[1m, 3m, 5m]")
        .doc("How long to wait before each retry of a webhook that did not get HTTP 200.")
        .default("[1m, 3m, 5m, 10m, 15m, 20m, 30m, 60m, 120m]"),
    Key::new("async_pipeline", Shape::Bool, "true")
        .doc("Reports every final status of an asynchronous pipeline to its `hook`, not just rejections.")
        .default("false"),
    Key::new("intermediate", Shape::Bool, "true")
        .doc("Whether a webhook also reports the failure of each earlier channel.")
        .default("false"),
];

static WAIT: Key = Key::new("wait", TIME, "1m").doc("The time to wait.");

static TEMPLATES: &[Key] = &[
    Key::new("review", TIME, "1h").doc("The duration of each step in the review of a Viber template.").default("10s"),
    Key::new("approved", Shape::Bool, "false").doc("Whether Viber templates are approved.").default("true"),
];
