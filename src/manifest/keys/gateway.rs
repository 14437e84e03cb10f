//! The keys of a profile in gateways.yaml.

use super::campaign::{HOURS, NOTIFY, SUPPRESS};
use super::{Key, PRICES, Shape, WINDOW};

/// The keys of one profile.
pub(crate) static PROFILE: &[Key] = &[
    Key::new("base_url", Shape::Line, "https://gateway.example")
        .doc("The URL of the synchronous endpoint, without its path.")
        .required(),
    Key::new("async_url", Shape::Line, "https://async.gateway.example")
        .doc("The URL of the asynchronous endpoint, without its path."),
    Key::new("api_key", Shape::Secret, "{ env: CAMPAIGN_API_KEY }")
        .doc("Where to find the API key: in an environment variable or a file.")
        .required(),
    Key::new("rate", Shape::Rate, "100/s").doc("The account's rate limit, shared by all campaigns."),
    Key::new("batch_limit", Shape::Integer { least: 1, most: 10_000 }, "100")
        .doc("The maximum number of messages in one request.")
        .default("100"),
    Key::new("limits", Shape::Map(LIMITS), "{ recipients: 50000 }")
        .doc("Limits that a run can exceed only if the operator explicitly allows it."),
    Key::new("trust_status", Shape::List { of: &HTTP_STATUS, least: 0, most: 200 }, "[429, 503]").doc(
        "HTTP statuses that mean \"not processed\", as confirmed by the provider. The messages of such a \
            request are retried. After any other error status, messages are in doubt and are not retried.",
    ),
    Key::new("fatal_errors", Shape::List { of: &ERROR_TEXT, least: 0, most: 100 }, "[Not enough money]")
        .doc("Errors that stop a run as soon as a single message is rejected with one of them.")
        .default("[Not enough money]"),
    Key::new("proxy", Shape::Line, "http://proxy.example:3128")
        .doc("The proxy for requests. Proxy settings of the environment are ignored."),
    Key::new("account", Shape::Line, "main")
        .doc("The account's name, if several profiles share one account and its rate limit."),
    Key::new("prices", Shape::Map(PRICES), "{ sms: 0.80, viber: 0.50 }")
        .doc("The price of a message on each channel, in the account's currency."),
    Key::new("currency", Shape::Line, "UAH").doc("The currency of the prices."),
    Key::new("sender_verified", Shape::List { of: &SENDER_STATUS, least: 1, most: 20 }, "[Checked]")
        .doc("The statuses that mark a sender name as verified.")
        .default("[Checked]"),
    Key::new(
        "hook",
        Shape::Map(HOOK),
        "{ public_url: https://hooks.example.com, secret: { env: CAMPAIGN_HOOK_SECRET } }",
    )
    .doc("Where the gateway sends delivery receipts: the public address of `serve --hooks`."),
    Key::new("opt_out_words", Shape::Line, "opt-out-words.txt")
        .doc("A file of additional opt-out words, one per line."),
    Key::new("policy", Shape::Map(POLICY), "{ cap: 3/7d }")
        .doc("Rules for every campaign that uses this profile. A campaign can only make them stricter."),
    Key::new("approval", Shape::Map(APPROVAL), "{ above: 1000, by: { Olha: ed25519:… } }").doc(
        "Who must approve a run with many recipients. The approval is signed with a key that the person who starts the \
            run does not have.",
    ),
];

static HOOK: &[Key] = &[
    Key::new("public_url", Shape::Line, "https://hooks.example.com")
        .doc("The address at which the gateway reaches `serve --hooks`.")
        .required(),
    Key::new("secret", Shape::Secrets, "{ env: CAMPAIGN_HOOK_SECRET }")
        .doc(
            "Where to find the secret that signs receipt URLs (at least 32 bytes). In a list, the first secret signs \
                new URLs, and URLs signed with any of the secrets are accepted.",
        )
        .required(),
];

static POLICY: &[Key] = &[
    Key::new("cap", Shape::Cap, "3/7d")
        .doc("The maximum number of messages to one number from all campaigns in a period."),
    Key::new("window", Shape::Or { alone: &HOURS, keys: WINDOW }, "09:00-20:00")
        .doc("When messages can be sent. A campaign's own window can only narrow these hours."),
    Key::new("suppress", Shape::List { of: &SUPPRESS, least: 0, most: 100 }, "[stop.csv]")
        .doc("Suppression lists for every campaign that uses this profile, relative to this file."),
    Key::new("notify", Shape::Map(NOTIFY), "{ url: { env: SLACK_URL }, preset: slack }").doc(
        "Notifications about live runs, in addition to those of the campaign. The path of a program is \
            relative to this file.",
    ),
];

static APPROVAL: &[Key] = &[
    Key::new("above", Shape::Integer { least: 0, most: u32::MAX }, "1000")
        .doc("A run with more recipients than this needs an approval.")
        .required(),
    Key::new("by", Shape::Texts, "{ Olha: ed25519:… }")
        .doc("The people who can approve a run, each with the public key that `approve --new-key NAME` prints.")
        .required(),
];

static LIMITS: &[Key] = &[Key::new("recipients", Shape::Integer { least: 1, most: u32::MAX }, "50000")
    .doc("The maximum number of recipients in a run.")];

static HTTP_STATUS: Key = Key::new("status", Shape::Integer { least: 400, most: 599 }, "429").doc("An HTTP status.");

static SENDER_STATUS: Key = Key::new("status", Shape::Line, "Checked").doc("A status of a sender name.");

static ERROR_TEXT: Key = Key::new("error", Shape::Line, "Not enough money").doc("The gateway's error message.");
