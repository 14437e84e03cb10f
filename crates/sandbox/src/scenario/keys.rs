//! The keys of a scenario file.

use campaign_core::domain::Channel;
use campaign_manifest::document::{KeySpec, ValueShape};

/// The maximum time in a scenario, a year.
const YEAR: u32 = 366 * 86_400;

const TIME: ValueShape = ValueShape::Seconds { least: 0, most: YEAR };

/// The keys at the top of a scenario file.
pub(super) static SCENARIO: &[KeySpec] = &[
    KeySpec::new("seed", ValueShape::Integer { least: 0, most: u32::MAX }, "7")
        .with_doc("The seed for random choices. The same seed produces the same results.")
        .default("0"),
    KeySpec::new("speed", ValueShape::Integer { least: 1, most: 1_000_000 }, "60")
        .with_doc("How many seconds pass for messages during one second of real time.")
        .default("1"),
    KeySpec::new("accounts", ValueShape::List { item: &ACCOUNT_ITEM, least: 1, most: 100 }, "[{ balance: 100 }]")
        .with_doc("The gateway's accounts."),
    KeySpec::new("limits", ValueShape::Map(LIMITS), "{ rate: 50/s, burst: 50 }")
        .with_doc("How many operations each account can send. Requests above the limit get HTTP 429."),
    KeySpec::new("prices", ValueShape::Map(PRICES), "{ sms: 0.80, viber: 0.50 }")
        .with_doc("The price of one message part on each channel, in the account's currency."),
    KeySpec::new("charge_undelivered", ValueShape::Bool, "false")
        .with_doc("Whether undelivered messages are charged.")
        .default("true"),
    KeySpec::new("channels", ValueShape::Map(CHANNELS), "{ rcs: { delivered: 40% } }")
        .with_doc("The delivery results on each channel."),
    KeySpec::new(
        "exceptions",
        ValueShape::List { item: &EXCEPTION_ITEM, least: 0, most: 1_000 },
        "[{ when: { suffix: 13 }, … }]",
    )
    .with_doc("Messages that get different results. The first matching exception applies."),
    KeySpec::new(
        "faults",
        ValueShape::List { item: &FAULT_ITEM, least: 0, most: 1_000 },
        "[{ when: { envelope: 2 }, answer: dropped }]",
    )
    .with_doc("Faults that the gateway simulates."),
    KeySpec::new("status", ValueShape::Map(STATUS), "{ lag: 30s }").with_doc("Which messages are unknown to `status`."),
    KeySpec::new("webhooks", ValueShape::Map(WEBHOOKS), "{ retry: [1m, 5m] }")
        .with_doc("How the sandbox sends webhooks."),
    KeySpec::new("templates", ValueShape::Map(TEMPLATES), "{ review: 1h }")
        .with_doc("How Viber templates are reviewed."),
];

static ACCOUNT_ITEM: KeySpec =
    KeySpec::new("account", ValueShape::Map(ACCOUNT), "{ balance: 100 }").with_doc("An account.");

/// The keys of one account.
pub(super) static ACCOUNT: &[KeySpec] = &[
    KeySpec::new("key", ValueShape::Line, "second-key")
        .with_doc("The account's API key. Defaults to the sandbox's own key."),
    KeySpec::new("balance", ValueShape::Amount, "1000.50").with_doc("The initial balance.").default("100000000.123456"),
    KeySpec::new("currency", ValueShape::Line, "UAH").with_doc("The account's currency code.").default("UAH"),
    KeySpec::new("notify", ValueShape::Line, "http://127.0.0.1:9000/status")
        .with_doc("The account's notification URL, for statuses that are not sent to a `hook`."),
    KeySpec::new("whatsapp", ValueShape::Bool, "false")
        .with_doc("Whether the account has a WhatsApp route.")
        .default("true"),
    KeySpec::new("senders", ValueShape::Texts, "{ OlenaCo: Checked, Spring: New }").with_doc(
        "The account's sender names, each `Checked` or `New`. Without this key, every well-formed name is valid.",
    ),
];

/// The keys of rate limits.
static LIMITS: &[KeySpec] = &[
    KeySpec::new("rate", ValueShape::Rate, "50/s")
        .with_doc("The average number of operations per second or minute.")
        .mark_required(),
    KeySpec::new("burst", ValueShape::Integer { least: 1, most: 1_000_000 }, "50")
        .with_doc("How many operations can arrive at once after a pause. Larger requests are never accepted.")
        .mark_required(),
];

/// The keys of a behaviour.
pub(super) static BEHAVIOUR: &[KeySpec] = &[
    KeySpec::new("delivered", ValueShape::Share, "97%").with_doc("The share of messages that are delivered."),
    KeySpec::new("after", TIME, "8s").with_doc("The time until the channel delivers the message or fails."),
    KeySpec::new("fails_as", ValueShape::OneOf(FAILURES), "UNDELIVERABLE")
        .with_doc("The status of messages that are not delivered."),
    KeySpec::new("read", ValueShape::Share, "80%").with_doc("The share of delivered messages that are read."),
    KeySpec::new("read_after", TIME, "1m").with_doc("The time until a delivered message is read."),
    KeySpec::new("reply", ValueShape::Map(REPLY), "{ share: 5%, message: STOP }").with_doc("Replies to messages."),
    KeySpec::new("digit", ValueShape::Line, "1").with_doc("The digit that the recipient presses."),
    KeySpec::new("duration", TIME, "12s").with_doc("The duration of the call."),
];

static REPLY: &[KeySpec] = &[
    KeySpec::new("share", ValueShape::Share, "5%")
        .with_doc("The share of delivered messages that get a reply.")
        .default("100%"),
    KeySpec::new("after", TIME, "1m")
        .with_doc(
            "The time until the recipient replies after reading the message. If the channel does not report reading, \
             the time is counted from delivery.",
        )
        .default("1m"),
    KeySpec::new("message", ValueShape::Line, "STOP").with_doc("The text of the reply.").mark_required(),
];

/// The possible failure statuses.
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

static EXCEPTION_ITEM: KeySpec =
    KeySpec::new("exception", ValueShape::Map(EXCEPTION), "{ when: { suffix: 13 }, then: { delivered: 0% } }")
        .with_doc("Messages that get different results.");

/// The keys of an exception.
pub(super) static EXCEPTION: &[KeySpec] = &[
    KeySpec::new("when", ValueShape::Map(WHEN), "{ suffix: 13 }")
        .with_doc("Which messages the exception applies to.")
        .mark_required(),
    KeySpec::new("channel", ValueShape::OneOf(NAMES), "rcs").with_doc("The channel. Defaults to all channels."),
    KeySpec::new("then", ValueShape::Map(BEHAVIOUR), "{ delivered: 0% }")
        .with_doc("The results for these messages on that channel.")
        .mark_required(),
];

/// The keys of a condition.
pub(super) static WHEN: &[KeySpec] = &[
    KeySpec::new("suffix", ValueShape::Line, "13").with_doc("Numbers that end with these digits."),
    KeySpec::new("share", ValueShape::Share, "1%")
        .with_doc("A share of all messages, chosen at random using the seed."),
    KeySpec::new("envelope", ValueShape::Line, "2-5")
        .with_doc("The position of the request among those that contain messages, starting at 1."),
    KeySpec::new("endpoint", ValueShape::OneOf(&["sync", "async"]), "async").with_doc("The endpoint."),
];

static FAULT_ITEM: KeySpec =
    KeySpec::new("fault", ValueShape::Map(FAULT), "{ when: { envelope: 2 }, answer: dropped }").with_doc("A fault.");

/// The keys of a fault: `when`, one effect, and the keys of that effect.
pub(super) static FAULT: &[KeySpec] = &[
    KeySpec::new("when", ValueShape::Map(WHEN), "{ envelope: 2 }")
        .with_doc("When the fault occurs. Without conditions, it always occurs.")
        .mark_required(),
    KeySpec::new("item_error", ValueShape::Line, "No route").with_doc("Rejects messages with this error."),
    KeySpec::new("top_error", ValueShape::Line, "Access denied").with_doc("Rejects requests with this error."),
    KeySpec::new("delay", TIME, "40s").with_doc("Delays the response."),
    KeySpec::new("connection", ValueShape::OneOf(&["refused", "closed"]), "refused")
        .with_doc("Refuses the connection, or closes it before reading the request."),
    KeySpec::new("lasts", TIME, "3s").with_doc("How long the sandbox refuses connections.").default("3s"),
    KeySpec::new("answer", ValueShape::OneOf(ANSWERS), "dropped").with_doc("What is wrong with the response."),
    KeySpec::new("http", ValueShape::Integer { least: 300, most: 599 }, "502")
        .with_doc("Responds with an HTML page and this HTTP status."),
    KeySpec::new("retry_after", TIME, "5s").with_doc("The `Retry-After` header sent with the page."),
    KeySpec::new("executed", ValueShape::Bool, "true")
        .with_doc("Whether the request is processed anyway.")
        .default("false"),
    KeySpec::new("webhook", ValueShape::OneOf(&["twice", "late", "reordered", "lost"]), "lost")
        .with_doc("What is wrong with the message's webhooks."),
    KeySpec::new("by", TIME, "10m").with_doc("The delay of a late webhook.").default("10m"),
];

static ANSWERS: &[&str] = &["dropped", "truncated", "reordered", "missing", "foreign"];

static STATUS: &[KeySpec] = &[
    KeySpec::new("lag", TIME, "30s").with_doc("How long an accepted message remains unknown to `status`.").default("0"),
    KeySpec::new("blind", ValueShape::OneOf(&["denies", "affirms"]), "denies")
        .with_doc("Whether `status` reports every message as unknown, or every message as known."),
];

/// The keys of webhooks.
pub(super) static WEBHOOKS: &[KeySpec] = &[
    KeySpec::new("retry", ValueShape::List { item: &WAIT, least: 0, most: 50 }, "[1m, 3m, 5m]")
        .with_doc("How long to wait before each retry of a webhook that did not get HTTP 200.")
        .default("[1m, 3m, 5m, 10m, 15m, 20m, 30m, 60m, 120m]"),
    KeySpec::new("async_pipeline", ValueShape::Bool, "true")
        .with_doc("Reports every final status of an asynchronous pipeline to its `hook`, not just rejections.")
        .default("false"),
    KeySpec::new("intermediate", ValueShape::Bool, "true")
        .with_doc("Whether a webhook also reports the failure of each earlier channel.")
        .default("false"),
];

static WAIT: KeySpec = KeySpec::new("wait", TIME, "1m").with_doc("The time to wait.");

static TEMPLATES: &[KeySpec] = &[
    KeySpec::new("review", TIME, "1h")
        .with_doc("The duration of each step in the review of a Viber template.")
        .default("10s"),
    KeySpec::new("approved", ValueShape::Bool, "false")
        .with_doc("Whether Viber templates are approved.")
        .default("true"),
];

/// The default behaviour of a channel, and the documentation of its keys.
#[derive(Clone, Copy)]
pub(super) struct ChannelDefaults {
    /// The price of a part.
    price: &'static str,
    /// The documentation of the price.
    price_doc: &'static str,
    /// An example of the channel's behaviour.
    example: &'static str,
    /// The documentation of the channel.
    doc: &'static str,
    /// Whether the channel reports that a message was read.
    pub(super) reports_reading: bool,
    /// Whether messages are calls, with a duration and key presses.
    pub(super) is_spoken: bool,
}

/// The defaults of a channel in a scenario.
pub(super) const fn channel_defaults(channel: Channel) -> ChannelDefaults {
    match channel {
        Channel::Sms => {
            defaults_without_read_status("0.80", "The price of one part of an SMS.", "{ delivered: 97% }", "SMS.")
        }
        Channel::Viber => defaults_with_read_status(
            "0.50",
            "The price of a Viber message.",
            "{ delivered: 60%, read: 80% }",
            "Viber.",
        ),
        Channel::Rcs => defaults_with_read_status("0.60", "The price of an RCS message.", "{ delivered: 40% }", "RCS."),
        Channel::Telegram => defaults_with_read_status(
            "0.45",
            "The price of a one-time code sent through Telegram.",
            "{ delivered: 70% }",
            "Telegram.",
        ),
        Channel::Voice => {
            let defaults = defaults_without_read_status(
                "1.20",
                "The price of a spoken message.",
                "{ delivered: 80%, digit: 1 }",
                "Voice.",
            );
            ChannelDefaults { is_spoken: true, ..defaults }
        }
        Channel::Whatsapp => {
            defaults_with_read_status("1.50", "The price of a WhatsApp message.", "{ delivered: 60% }", "WhatsApp.")
        }
        Channel::Hlr => {
            defaults_without_read_status("0.05", "The price of a lookup.", "{ delivered: 95% }", "Lookups.")
        }
        Channel::CallOtp => defaults_without_read_status(
            "0.25",
            "The price of a verification call.",
            "{ delivered: 95% }",
            "Verification calls.",
        ),
    }
}

const fn defaults_without_read_status(
    price: &'static str,
    price_doc: &'static str,
    example: &'static str,
    doc: &'static str,
) -> ChannelDefaults {
    ChannelDefaults { price, price_doc, example, doc, reports_reading: false, is_spoken: false }
}

const fn defaults_with_read_status(
    price: &'static str,
    price_doc: &'static str,
    example: &'static str,
    doc: &'static str,
) -> ChannelDefaults {
    ChannelDefaults { reports_reading: true, ..defaults_without_read_status(price, price_doc, example, doc) }
}

const CHANNEL_COUNT: usize = Channel::ALL.len();

/// The keys of the prices.
pub(super) static PRICES: &[KeySpec] = &{
    let mut keys = [KeySpec::new("", ValueShape::Amount, ""); CHANNEL_COUNT];
    let mut at = 0;
    while at < CHANNEL_COUNT {
        let (channel, defaults) = (Channel::ALL[at], channel_defaults(Channel::ALL[at]));
        keys[at] = KeySpec::new(channel.name(), ValueShape::Amount, defaults.price)
            .with_doc(defaults.price_doc)
            .default(defaults.price);
        at += 1;
    }
    keys
};

/// The keys of the channels' behaviours.
pub(super) static CHANNELS: &[KeySpec] = &{
    let mut keys = [KeySpec::new("", ValueShape::Map(BEHAVIOUR), ""); CHANNEL_COUNT];
    let mut at = 0;
    while at < CHANNEL_COUNT {
        let (channel, defaults) = (Channel::ALL[at], channel_defaults(Channel::ALL[at]));
        keys[at] = KeySpec::new(channel.name(), ValueShape::Map(BEHAVIOUR), defaults.example).with_doc(defaults.doc);
        at += 1;
    }
    keys
};

/// The names of the channels.
pub(super) static NAMES: &[&str] = &{
    let mut names = [""; CHANNEL_COUNT];
    let mut at = 0;
    while at < CHANNEL_COUNT {
        names[at] = Channel::ALL[at].name();
        at += 1;
    }
    names
};
