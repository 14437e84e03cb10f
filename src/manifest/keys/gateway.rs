//! The keys of a profile in gateways.yaml.

use super::campaign::{HOURS, NOTIFY, SUPPRESS};
use super::{Key, PRICES, Shape, WINDOW};

/// The keys of one profile.
pub(crate) static PROFILE: &[Key] = &[
    Key::new("base_url", Shape::Line, "https://gateway.example")
        .doc("The address of the synchronous endpoint, without its path.")
        .required(),
    Key::new("async_url", Shape::Line, "https://async.gateway.example")
        .doc("The address of the asynchronous endpoint, without its path."),
    Key::new("api_key", Shape::Secret, "{ env: CAMPAIGN_API_KEY }")
        .doc("Where the API key is kept: an environment variable or a file.")
        .required(),
    Key::new("rate", Shape::Rate, "100/s").doc("The account's allowance, shared by every campaign."),
    Key::new("batch_limit", Shape::Integer { least: 1, most: 10_000 }, "100")
        .doc("The most messages in one request.")
        .default("100"),
    Key::new("limits", Shape::Map(LIMITS), "{ recipients: 50000 }")
        .doc("What a run may not exceed without being told to."),
    Key::new("trust_status", Shape::List { of: &HTTP_STATUS, least: 0, most: 200 }, "[429, 503]")
        .doc("HTTP statuses that, as the provider confirmed, mean \"not executed\": the messages of such a request are retried. After other statuses they are in doubt and not retried."),
    Key::new("fatal_errors", Shape::List { of: &ERROR_TEXT, least: 0, most: 100 }, "[Not enough money]")
        .doc("Errors of single messages that stop a run.")
        .default("[Not enough money]"),
    Key::new("proxy", Shape::Line, "http://proxy.example:3128")
        .doc("The proxy that requests go through; those of the environment are not used."),
    Key::new("account", Shape::Line, "main")
        .doc("The account that the rate belongs to, if several profiles share one."),
    Key::new("prices", Shape::Map(PRICES), "{ sms: 0.80, viber: 0.50 }")
        .doc("What a message costs, by channel, in the account's currency."),
    Key::new("currency", Shape::Line, "UAH").doc("The currency of the prices."),
    Key::new("sender_verified", Shape::List { of: &SENDER_STATUS, least: 1, most: 20 }, "[Checked]")
        .doc("The gateway's words for a sender name that is verified.")
        .default("[Checked]"),
    Key::new(
        "hook",
        Shape::Map(HOOK),
        "{ public_url: https://hooks.example.com, secret: { env: CAMPAIGN_HOOK_SECRET } }",
    )
    .doc("Where the gateway brings delivery receipts: the address of `serve --hooks` from outside."),
    Key::new("opt_out_words", Shape::Line, "opt-out-words.txt")
        .doc("A file of further words by which recipients opt out, one in a line."),
    Key::new("policy", Shape::Map(POLICY), "{ cap: 3/7d }")
        .doc("What holds for every campaign through it; a campaign can only be stricter."),
    Key::new("approval", Shape::Map(APPROVAL), "{ above: 1000, by: { Olha: ed25519:… } }").doc(
        "Whose approval a run to many recipients needs; it is signed with a key that whoever sends does not have.",
    ),
];

static HOOK: &[Key] = &[
    Key::new("public_url", Shape::Line, "https://hooks.example.com")
        .doc("The address at which the gateway reaches `serve --hooks`.")
        .required(),
    Key::new("secret", Shape::Secrets, "{ env: CAMPAIGN_HOOK_SECRET }")
        .doc("Where the secret is kept that signs the addresses of receipts, 32 bytes at least; of a list the first signs and all are known.")
        .required(),
];

static POLICY: &[Key] = &[
    Key::new("cap", Shape::Cap, "3/7d")
        .doc("The most messages that a number gets in any time of this length from all campaigns."),
    Key::new("window", Shape::Or { alone: &HOURS, keys: WINDOW }, "09:00-20:00")
        .doc("When messages may leave; of a campaign's own window only what is within it too."),
    Key::new("suppress", Shape::List { of: &SUPPRESS, least: 0, most: 100 }, "[stop.csv]")
        .doc("Lists of people who opted out, which no campaign through it sends to; relative to this file."),
    Key::new("notify", Shape::Map(NOTIFY), "{ url: { env: SLACK_URL }, preset: slack }")
        .doc("Who is told how live runs went, besides whom a campaign names; a program is relative to this file."),
];

static APPROVAL: &[Key] = &[
    Key::new("above", Shape::Integer { least: 0, most: u32::MAX }, "1000")
        .doc("A run to more recipients than this needs an approval.")
        .required(),
    Key::new("by", Shape::Texts, "{ Olha: ed25519:… }")
        .doc("Who can approve, each with the public half of the key that `approve --new-key NAME` made.")
        .required(),
];

static LIMITS: &[Key] =
    &[Key::new("recipients", Shape::Integer { least: 1, most: u32::MAX }, "50000")
        .doc("The most recipients of a run.")];

static HTTP_STATUS: Key = Key::new("status", Shape::Integer { least: 400, most: 599 }, "429").doc("An HTTP status.");

static SENDER_STATUS: Key = Key::new("status", Shape::Line, "Checked").doc("A status of a sender name.");

static ERROR_TEXT: Key = Key::new("error", Shape::Line, "Not enough money").doc("The gateway's text of an error.");
