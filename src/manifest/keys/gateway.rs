//! The keys of a profile in gateways.yaml.

use super::campaign::{HOURS, NOTIFY, SUPPRESS};
use super::{KeySpec, PRICES, ValueShape, WINDOW};

/// The keys of one profile.
pub(crate) static PROFILE: &[KeySpec] = &[
    KeySpec::new("base_url", ValueShape::Line, "https://gateway.example")
        .with_doc("The URL of the synchronous endpoint, without its path.")
        .mark_required(),
    KeySpec::new("async_url", ValueShape::Line, "https://async.gateway.example")
        .with_doc("The URL of the asynchronous endpoint, without its path."),
    KeySpec::new("api_key", ValueShape::Secret, "{ env: CAMPAIGN_API_KEY }")
        .with_doc("Where to find the API key: in an environment variable or a file.")
        .mark_required(),
    KeySpec::new("rate", ValueShape::Rate, "100/s").with_doc("The account's rate limit, shared by all campaigns."),
    KeySpec::new("batch_limit", ValueShape::Integer { least: 1, most: 10_000 }, "100")
        .with_doc("The maximum number of messages in one request.")
        .default("100"),
    KeySpec::new("limits", ValueShape::Map(LIMITS), "{ recipients: 50000 }")
        .with_doc("Limits that a run can exceed only if the operator explicitly allows it."),
    KeySpec::new("trust_status", ValueShape::List { of: &HTTP_STATUS, least: 0, most: 200 }, "[429, 503]").with_doc(
        "HTTP statuses that mean \"not processed\", as confirmed by the provider. The messages of such a \
            request are retried. After any other error status, messages are in doubt and are not retried.",
    ),
    KeySpec::new("fatal_errors", ValueShape::List { of: &ERROR_TEXT, least: 0, most: 100 }, "[Not enough money]")
        .with_doc("Errors that stop a run as soon as a single message is rejected with one of them.")
        .default("[Not enough money]"),
    KeySpec::new("proxy", ValueShape::Line, "http://proxy.example:3128")
        .with_doc("The proxy for requests. Proxy settings of the environment are ignored."),
    KeySpec::new("account", ValueShape::Line, "main")
        .with_doc("The account's name, if several profiles share one account and its rate limit."),
    KeySpec::new("prices", ValueShape::Map(PRICES), "{ sms: 0.80, viber: 0.50 }")
        .with_doc("The price of a message on each channel, in the account's currency."),
    KeySpec::new("currency", ValueShape::Line, "UAH").with_doc("The currency of the prices."),
    KeySpec::new("sender_verified", ValueShape::List { of: &SENDER_STATUS, least: 1, most: 20 }, "[Checked]")
        .with_doc("The statuses that mark a sender name as verified.")
        .default("[Checked]"),
    KeySpec::new(
        "hook",
        ValueShape::Map(HOOK),
        "{ public_url: https://hooks.example.com, secret: { env: CAMPAIGN_HOOK_SECRET } }",
    )
    .with_doc("Where the gateway sends delivery receipts: the public address of `serve --hooks`."),
    KeySpec::new("opt_out_words", ValueShape::Line, "opt-out-words.txt")
        .with_doc("A file of additional opt-out words, one per line."),
    KeySpec::new("policy", ValueShape::Map(POLICY), "{ cap: 3/7d }")
        .with_doc("Rules for every campaign that uses this profile. A campaign can only make them stricter."),
    KeySpec::new("approval", ValueShape::Map(APPROVAL), "{ above: 1000, by: { Olha: ed25519:… } }").with_doc(
        "Who must approve a run with many recipients. The approval is signed with a key that the person who starts the \
            run does not have.",
    ),
];

static HOOK: &[KeySpec] = &[
    KeySpec::new("public_url", ValueShape::Line, "https://hooks.example.com")
        .with_doc("The address at which the gateway reaches `serve --hooks`.")
        .mark_required(),
    KeySpec::new("secret", ValueShape::Secrets, "{ env: CAMPAIGN_HOOK_SECRET }")
        .with_doc(
            "Where to find the secret that signs receipt URLs (at least 32 bytes). In a list, the first secret signs \
                new URLs, and URLs signed with any of the secrets are accepted.",
        )
        .mark_required(),
];

static POLICY: &[KeySpec] = &[
    KeySpec::new("cap", ValueShape::Cap, "3/7d")
        .with_doc("The maximum number of messages to one number from all campaigns in a period."),
    KeySpec::new("window", ValueShape::Or { alone: &HOURS, keys: WINDOW }, "09:00-20:00")
        .with_doc("When messages can be sent. A campaign's own window can only narrow these hours."),
    KeySpec::new("suppress", ValueShape::List { of: &SUPPRESS, least: 0, most: 100 }, "[stop.csv]")
        .with_doc("Suppression lists for every campaign that uses this profile, relative to this file."),
    KeySpec::new("notify", ValueShape::Map(NOTIFY), "{ url: { env: SLACK_URL }, preset: slack }").with_doc(
        "Notifications about live runs, in addition to those of the campaign. The path of a program is \
            relative to this file.",
    ),
];

static APPROVAL: &[KeySpec] = &[
    KeySpec::new("above", ValueShape::Integer { least: 0, most: u32::MAX }, "1000")
        .with_doc("A run with more recipients than this needs an approval.")
        .mark_required(),
    KeySpec::new("by", ValueShape::Texts, "{ Olha: ed25519:… }")
        .with_doc("The people who can approve a run, each with the public key that `approve --new-key NAME` prints.")
        .mark_required(),
];

static LIMITS: &[KeySpec] = &[KeySpec::new("recipients", ValueShape::Integer { least: 1, most: u32::MAX }, "50000")
    .with_doc("The maximum number of recipients in a run.")];

static HTTP_STATUS: KeySpec =
    KeySpec::new("status", ValueShape::Integer { least: 400, most: 599 }, "429").with_doc("An HTTP status.");

static SENDER_STATUS: KeySpec =
    KeySpec::new("status", ValueShape::Line, "Checked").with_doc("A status of a sender name.");

static ERROR_TEXT: KeySpec =
    KeySpec::new("error", ValueShape::Line, "Not enough money").with_doc("The gateway's error message.");
