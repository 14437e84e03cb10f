//! Tables of the keys of campaign files, channels and gateway profiles.
//!
//! The keys of channels and prices are derived from the channels' own tables in the domain.

use super::{KeyPresence, KeySpec, ValueShape};
use crate::campaign_tests::{MAX_TESTS, TEST};
use campaign_core::domain::{Card, Channel, ChannelField, FieldKind, FieldRequirement, Language, RowState};

const MAX_COUNT: u32 = u32::MAX;

/// The keys at the top of a campaign file.
pub(crate) static CAMPAIGN: &[KeySpec] = &[
    KeySpec::new("version", ValueShape::Integer { least: 1, most: 1 }, "1")
        .with_doc("The version of this file's format. Defaults to 1."),
    KeySpec::new("name", ValueShape::Line, "autumn-sale")
        .with_doc("The campaign's name: 1 to 64 characters from a-z, 0-9 and -. Defaults to the file name."),
    KeySpec::new("title", ValueShape::Line, "Autumn sale")
        .with_doc("A human-readable name for the campaign, shown in the dashboard and in reports. It has no effect on sending."),
    KeySpec::new("edition", ValueShape::Template, "\"{{ today }}\"")
        .with_doc("Distinguishes repeats of the campaign. Each number gets at most one message per edition."),
    KeySpec::new("purpose", ValueShape::OneOf(&["marketing", "service"]), "marketing")
        .with_doc("What the messages are for. `marketing` skips recipients who opted out of marketing or of all \
            messages; `service` (codes, orders) skips only those who opted out of all messages. Defaults to `service` \
            for number lookups and verification calls, otherwise to `marketing`."),
    KeySpec::new("mandatory", ValueShape::Bool, "true")
        .with_doc("Sends messages that must arrive, such as security warnings, even to recipients who opted out of all \
            messages. Needs `purpose: service`.")
        .default("false"),
    KeySpec::new("consent", ValueShape::OneOf(&["required"]), "required")
        .with_doc("Sends marketing messages only to recipients with consent recorded in `recipients.consent`. Service messages need no consent."),
    KeySpec::new("gateway", ValueShape::Line, "production")
        .with_doc("The gateway profile in gateways.yaml to use. `sandbox` is the built-in gateway for rehearsals.")
        .default("sandbox"),
    KeySpec::new("endpoint", ValueShape::OneOf(&["sync", "async"]), "async")
        .with_doc("The gateway's endpoint. `sync` returns a result for each message; `async` queues the request.")
        .default("sync"),
    KeySpec::new("timezone", ValueShape::Line, "Europe/Kyiv")
        .with_doc("The time zone for all local times in this file and for `today`."),
    KeySpec::new("language", ValueShape::OneOf(&Language::CODES), "uk")
        .with_doc("The language of the `money` and `date` filters. Defaults to the language of `recipients.region`, or English."),
    KeySpec::new("recipients", ValueShape::Map(RECIPIENTS), "{ file: autumn-sale.csv }")
        .with_doc("The list of recipients.")
        .mark_required(),
    KeySpec::new("countries", COUNTRIES, "[UA, PL]").with_doc(
        "The countries that messages may reach, as ISO 3166 codes. Numbers from other or unknown countries are skipped.",
    ),
    KeySpec::new("vars", ValueShape::Texts, "{ shop: \"Olena & Co\" }")
        .with_doc("Constants that templates can refer to by name. A value such as `0501234567` keeps its leading \
                   zero."),
    KeySpec::new("channels", ValueShape::Channels, "[ sms: { signature: OlenaCo, message: \"Hello\" } ]")
        .with_doc("The message for each channel, in the order in which the channels are tried.")
        .mark_required(),
    KeySpec::new("operation", ValueShape::OneOf(&["pipeline"]), "pipeline")
        .with_doc("Always uses the `pipeline` operation, even if the gateway has a dedicated one for these channels."),
    KeySpec::new("delivery", ValueShape::Map(DELIVERY), "{ rate: 10/s }")
        .with_doc("Rate limit, batching, error handling and sending hours."),
    KeySpec::new("schedule", ValueShape::Map(SCHEDULE), "{ every: Mon 10:00 }")
        .with_doc("When the campaign runs automatically, once `campaign schedule add` has activated the schedule. Needs `timezone`."),
    KeySpec::new("receipts", ValueShape::OneOf(&["auto", "webhook", "poll", "off"]), "auto")
        .with_doc("How delivery statuses arrive. `webhook` needs `hook` in the profile, and `poll` asks the gateway. \
                   `auto` uses webhooks if the profile has `hook`, and otherwise polls.")
        .default("auto"),
    KeySpec::new("limits", ValueShape::Map(LIMITS), "{ cost: 5000 }")
        .with_doc("Combined limits for all runs of an edition. A run stops before it exceeds a limit."),
    KeySpec::new("notify", ValueShape::Map(NOTIFY), "{ url: { env: SLACK_URL }, preset: slack }")
        .with_doc("Where to send notifications about live runs and schedules."),
    KeySpec::new("variants", ValueShape::Each(&VARIANT), "{ a: { share: 50% }, b: { share: 50% } }")
        .with_doc("The variants of an A/B test. A recipient's number determines the variant. The shares and \
            `holdout` must add up to 100%."),
    KeySpec::new("holdout", ValueShape::Or { alone: &SHARE, keys: HOLDOUT }, "10%")
        .with_doc("The share of recipients who get no message, for comparison. Campaigns with the same `group` hold out the same recipients."),
    KeySpec::new("data", ValueShape::Each(&TABLE), "{ stores: { file: stores.csv, key: city } }")
        .with_doc("Small lookup tables for templates: `{{ stores[city].address }}`."),
    KeySpec::new(
        "tests",
        ValueShape::List { item: &TEST, least: 1, most: MAX_TESTS },
        "[ { name: a gold customer, given: { plan: gold }, expect: { channels: [sms] } } ]",
    )
    .with_doc("Tests: what must be true for made-up recipients, or for random rows of the list."),
    KeySpec::new("results", ValueShape::Line, "results/autumn-sale.csv")
        .with_doc("Where to write the results. Defaults to results/<name>.csv, and to results/<name>-<edition>.csv for scheduled runs. A rehearsal writes <name>.sandbox.csv in the same folder."),
];

/// A list of countries.
const COUNTRIES: ValueShape = ValueShape::List { item: &COUNTRY, least: 1, most: 300 };

static COUNTRY: KeySpec =
    KeySpec::new("country", ValueShape::Line, "UA").with_doc("The ISO 3166 code of a country, such as UA.");

static SHARE: KeySpec = KeySpec::new("share", ValueShape::Share, "10%").with_doc("A share of the recipients.");

static VARIANT: KeySpec =
    KeySpec::new("variant", ValueShape::Map(VARIANT_KEYS), "{ share: 50% }").with_doc("A variant.");

pub(crate) static VARIANT_KEYS: &[KeySpec] = &[
    KeySpec::new("share", ValueShape::Share, "50%")
        .with_doc("The share of recipients who get this variant.")
        .mark_required(),
    KeySpec::new("channels", ValueShape::Channels, "[ sms: { signature: OlenaCo, message: \"Hello\" } ]")
        .with_doc("The variant's message; replaces the campaign's `channels`."),
    KeySpec::new("vars", ValueShape::Texts, "{ discount: \"20%\" }")
        .with_doc("Constants for this variant. They are merged with the campaign's `vars` and take precedence."),
];

/// The keys of `holdout` as a map.
pub(crate) static HOLDOUT: &[KeySpec] = &[
    KeySpec::new("share", ValueShape::Share, "10%")
        .with_doc("The share of recipients who get no message.")
        .mark_required(),
    KeySpec::new("group", ValueShape::Line, "autumn")
        .with_doc("The group of campaigns that hold out the same recipients."),
];

static TABLE: KeySpec =
    KeySpec::new("table", ValueShape::Map(DATA_KEYS), "{ file: stores.csv, key: city }").with_doc("A table.");

/// The keys of a table.
pub(crate) static DATA_KEYS: &[KeySpec] = &[
    KeySpec::new("file", ValueShape::Line, "stores.csv")
        .with_doc("The file that contains the table, in any format that is supported for lists.")
        .mark_required(),
    KeySpec::new("key", ValueShape::Line, "city")
        .with_doc("The header of the column that identifies a row.")
        .mark_required(),
];

pub(super) static SUPPRESS: KeySpec =
    KeySpec::new("suppress", ValueShape::Or { alone: &SUPPRESS_PATH, keys: SUPPRESS_FILE }, "stop-list.csv")
        .with_doc("A suppression list.");

static SUPPRESS_PATH: KeySpec = KeySpec::new("file", ValueShape::Line, "stop-list.csv").with_doc("The file.");

/// The keys of a file of opted-out numbers as a map.
pub(crate) static SUPPRESS_FILE: &[KeySpec] = &[
    KeySpec::new("file", ValueShape::Line, "stop-list.csv")
        .with_doc("The path to the file, relative to this file.")
        .mark_required(),
    KeySpec::new("phone", ValueShape::Line, "Phone")
        .with_doc("The header of the column with the numbers. Detected by default."),
    KeySpec::new("region", ValueShape::Line, "UA")
        .with_doc("The country of the national numbers in this file. Defaults to the `region` of the recipients."),
];

static CONSENT_WORD: KeySpec = KeySpec::new("word", ValueShape::Line, "yes").with_doc("An answer.");

/// The keys of the recipients' consent.
pub(crate) static CONSENT: &[KeySpec] = &[
    KeySpec::new("column", ValueShape::Line, "Consent").with_doc(
        "The header of the column with the answer. Without this key, every row of a `file` counts as consent.",
    ),
    KeySpec::new("file", ValueShape::Line, "consents.csv").with_doc(
        "A file with consent records, in any format supported for lists. Without this key, the consent columns are \
         in the list itself.",
    ),
    KeySpec::new("phone", ValueShape::Line, "Phone")
        .with_doc("The header of the column in `file` that contains the numbers. Detected by default."),
    KeySpec::new("region", ValueShape::Line, "UA")
        .with_doc("The country of the national numbers in `file`. Defaults to the `region` of the recipients."),
    KeySpec::new("is", ValueShape::List { item: &CONSENT_WORD, least: 1, most: 50 }, "[так, yes, \"1\"]")
        .with_doc("The answers in `column` that mean consent. Case does not matter.")
        .default("[yes, true, 1, так, да]"),
    KeySpec::new("at", ValueShape::Line, "Consent date")
        .with_doc("The header of the column with the date. Consent without a readable date does not count."),
    KeySpec::new("source", ValueShape::Line, "Consent source")
        .with_doc("The header of the column that says where the consent was given."),
    KeySpec::new("wording", ValueShape::Line, "Consent text")
        .with_doc("The header of the column with the text that the recipient agreed to."),
    KeySpec::new("valid_for", ValueShape::Line, "24 months")
        .with_doc("How long consent is valid, in days, weeks, months or years. Needs `at`."),
];

static RECIPIENTS: &[KeySpec] = &[
    KeySpec::new("file", ValueShape::Line, "autumn-sale.csv")
        .with_doc("The list: a CSV file or a workbook (.xlsx, .xls, .ods) with a header, relative to this file. `{{ \
                   today }}` in the name stands for the date, and `\"-\"` for standard input.")
        .mark_choice(),
    KeySpec::new("columns", ValueShape::Columns, "{ phone: \"Mobile\", first_name: \"First name\" }")
        .with_doc("Names to use in templates, each with the header of its column. Other columns keep their headers as names. \
            `phone` accepts a list of headers."),
    KeySpec::new("region", ValueShape::Line, "UA")
        .with_doc("The ISO 3166 code of the country that national numbers belong to. Without it, only international numbers are valid."),
    KeySpec::new("where", ValueShape::Line, "plan == \"gold\"")
        .with_doc("Which rows of the list to use: an expression that can use columns and `vars`. Other rows are skipped as \
            `filtered`."),
    KeySpec::new("duplicates", ValueShape::OneOf(&["skip", "refuse", "allow"]), "skip")
        .with_doc("What to do if a number is in the list more than once.")
        .default("skip"),
    KeySpec::new("max_invalid", ValueShape::Share, "10%")
        .with_doc(
            "Sends nothing if more than this share of the rows, and at least five rows, are invalid. With `0%`, one \
             invalid row is enough.",
        )
        .default("10%"),
    KeySpec::new("empty", ValueShape::OneOf(&["refuse", "ok"]), "refuse")
        .with_doc("What to do if the list is empty: `ok` exits with code 0 and sends nothing.")
        .default("refuse"),
    KeySpec::new("suppress", ValueShape::List { item: &SUPPRESS, least: 0, most: 100 }, "[stop-list.csv]")
        .with_doc("Additional suppression lists, in the same formats as the list of recipients. They are read again \
            each time a run starts or resumes."),
    KeySpec::new("consent", ValueShape::Map(CONSENT), "{ column: Consent, at: Consent date }")
        .with_doc("Where the recipients' consent is recorded. It is stored with the run as evidence."),
    KeySpec::new("exclude", ValueShape::Map(EXCLUDE), "{ run: autumn-teaser, state: [delivered, read] }")
        .with_doc("Skips recipients based on the status of an earlier message."),
    KeySpec::new("encoding", ValueShape::Line, "windows-1251")
        .with_doc("The encoding of the list, such as `windows-1251` or `utf-16le`. Detected and reported by default."),
    KeySpec::new("delimiter", ValueShape::Line, "';'")
        .with_doc("The delimiter between the cells of the list: one character, or `tab`. Detected and reported by default."),
    KeySpec::new("sheet", ValueShape::Line, "Sheet1")
        .with_doc("The sheet of a workbook. Defaults to the first visible one."),
    KeySpec::new("header_row", ValueShape::Integer { least: 1, most: 1000 }, "4")
        .with_doc("The number of the header row, as in a spreadsheet. Rows above it are ignored."),
    KeySpec::new("run", ValueShape::Line, "autumn-sale@3")
        .with_doc("Takes recipients from an earlier run instead of from a file. `state` selects them.")
        .mark_choice(),
    KeySpec::new("url", ValueShape::Line, "https://crm.example/people.csv")
        .with_doc("When a run starts, downloads the list from this URL instead of reading a file. The URL must use \
            `https`, or point to this machine.")
        .mark_choice(),
    KeySpec::new("headers", ValueShape::Headers, "{ Authorization: { env: CRM_TOKEN } }")
        .with_doc("HTTP headers for the request to `url`. Write a secret as `{ env: NAME }` or `{ file: PATH }`."),
    KeySpec::new(
        "command",
        ValueShape::List { item: &WORD, least: 1, most: 100 },
        "[bq, query, --format=csv, \"select …\"]",
    )
    .with_doc("A program and its arguments. When a run starts, the list is read from the program's output \
               instead of a file. The program does not run in a shell.")
    .mark_choice(),
    KeySpec::new("sql", ValueShape::Template, "select phone, name from people where since < :today")
        .with_doc("When a run starts, gets the list with this query instead of reading a file. `from` specifies the \
                   database, and `:today` stands for the date.")
        .mark_choice(),
    KeySpec::new("from", ValueShape::Secret, "{ env: CRM_URL }")
        .with_doc("Where to find the database URL for `sql`: `postgres://`, `mysql://` or `sqlite://`."),
    KeySpec::new("timeout", ValueShape::Seconds { least: 1, most: 86_400 }, "60s")
        .with_doc("How long to wait for `url`, `command` or `sql` to return the whole list.")
        .default("10m"),
    KeySpec::new("state", ValueShape::Words(&RowState::STATE_WORDS), "[failed, rejected]")
        .with_doc("Which recipients of `run` to use, by message status. `undelivered` stands for every message that was \
            not delivered."),
];

/// The keys of `exclude`.
static EXCLUDE: &[KeySpec] = &[
    KeySpec::new("run", ValueShape::Line, "autumn-teaser@1")
        .with_doc("The run, or the name of a campaign to select all runs of its latest edition.")
        .mark_required(),
    KeySpec::new("state", ValueShape::Words(&RowState::STATE_WORDS), "[delivered, read]")
        .with_doc("The statuses to skip. Defaults to all statuses of messages that were or might have been sent."),
];

static DELIVERY: &[KeySpec] = &[
    KeySpec::new("rate", ValueShape::Rate, "10/s")
        .with_doc("The number of messages per second or minute. The profile's rate is the default and the maximum."),
    KeySpec::new("batch", ValueShape::Integer { least: 1, most: 10_000 }, "50")
        .with_doc("The number of messages in one request.")
        .default("50"),
    KeySpec::new("in_flight", ValueShape::Integer { least: 1, most: 64 }, "2")
        .with_doc("The maximum number of requests in flight at the same time.")
        .default("2"),
    KeySpec::new("timeout", ValueShape::Seconds { least: 1, most: 600 }, "30s")
        .with_doc("How long to wait for a response.")
        .default("30s"),
    KeySpec::new("on_in_doubt", ValueShape::OneOf(&["hold", "assume_sent", "resend_if_not_found"]), "hold")
        .with_doc("What to do with a message in doubt, that is, one that might or might not have been sent.")
        .default("hold"),
    KeySpec::new("stop_after", ValueShape::Map(STOP_AFTER), "{ rejected: 20% }").with_doc("What stops a run early."),
    KeySpec::new("window", ValueShape::Or { alone: &HOURS, keys: WINDOW }, "09:00-20:00")
        .with_doc("When messages can be sent: hours of the day, or a map with `days`, `except` and `zone`. Outside \
            these hours, messages wait."),
    KeySpec::new("until", ValueShape::Line, "2026-12-07 20:00")
        .with_doc("When sending ends: a local time, or a duration after the start, such as `12h`. The remaining recipients are skipped."),
    KeySpec::new("per_day", ValueShape::Counts, "2000").with_doc(
        "The maximum number of messages per day for an edition, in the campaign's `timezone`. In a list, the first number is for the first day of sending, and so on.",
    ),
    KeySpec::new("cap", ValueShape::Cap, "2/7d").with_doc(
        "The maximum number of messages that a phone number can get from all campaigns in a period. Recipients at the limit are skipped.",
    ),
];

pub(super) static HOURS: KeySpec = KeySpec::new("hours", ValueShape::Line, "09:00-20:00")
    .with_doc("The hours of the day. If the end is before the start, the window ends the next morning.");

static DATE: KeySpec = KeySpec::new("date", ValueShape::Line, "2026-12-25").with_doc("A date.");

/// The keys of `window` as a map.
pub(crate) static WINDOW: &[KeySpec] = &[
    KeySpec::new("hours", ValueShape::Line, "09:00-20:00")
        .with_doc("The hours of the day. If the end is before the start, the window ends the next morning.")
        .mark_required(),
    KeySpec::new("days", ValueShape::Line, "mon-fri")
        .with_doc("The days of the week, such as `mon-fri` or `mon, wed`. Defaults to every day."),
    KeySpec::new("except", ValueShape::List { item: &DATE, least: 1, most: 400 }, "[2026-12-25]")
        .with_doc("Dates on which no messages are sent."),
    KeySpec::new("zone", ValueShape::Line, "recipient")
        .with_doc(
            "The time zone of the hours: `campaign` for the campaign's `timezone`, or `recipient` for the zone that the number's country or area code indicates. A column name selects the time zones in that column.",
        )
        .default("campaign"),
];

static LIMITS: &[KeySpec] = &[
    KeySpec::new("cost", ValueShape::Amount, "5000").with_doc(
        "The maximum cost, counting the most expensive channel of each message, in the currency of the profile's \
         prices.",
    ),
    KeySpec::new("recipients", ValueShape::Integer { least: 1, most: MAX_COUNT }, "20000")
        .with_doc("The maximum number of messages."),
];

static SCHEDULE: &[KeySpec] = &[
    KeySpec::new("at", ValueShape::Line, "2026-12-01 10:00").with_doc("The date and time of a single run."),
    KeySpec::new("every", ValueShape::Line, "Mon 10:00").with_doc(
        "A repeating schedule: `Mon 10:00`, `Mon, Thu 10:00`, `day 9:30`, `weekdays 18:00`, `1st 10:00`, `last day \
         18:00`.",
    ),
    KeySpec::new("cron", ValueShape::Line, "0 10 * * MON")
        .with_doc("A repeating schedule as a cron expression with five fields."),
    KeySpec::new("grace", ValueShape::Seconds { least: 60, most: 604_800 }, "1h")
        .with_doc("How late a run can start. If it cannot start by then, it is skipped and reported.")
        .default("1h"),
    KeySpec::new("ends", ValueShape::Line, "2027-01-01").with_doc("The last day on which the campaign runs."),
    KeySpec::new("wait_for_file", ValueShape::Seconds { least: 60, most: 604_800 }, "2h")
        .with_doc("How long to wait for the list file. Without this key, the file must exist when a run is due."),
];

/// The names of [`NotificationEvent`](campaign_core::domain::NotificationEvent).
static NOTIFY_EVENT: KeySpec = KeySpec::new(
    "occasion",
    ValueShape::OneOf(&["finished", "stopped", "doubt", "skipped", "waiting", "changed"]),
    "stopped",
)
.with_doc("An event to notify about.");

static WORD: KeySpec =
    KeySpec::new("word", ValueShape::Line, "notify-send").with_doc("A program or one of its arguments.");

/// The keys of `notify`.
pub(super) static NOTIFY: &[KeySpec] = &[
    KeySpec::new("when", ValueShape::List { item: &NOTIFY_EVENT, least: 1, most: 6 }, "[stopped, doubt]")
        .with_doc(
            "Which events to notify about: `finished`, `stopped` and `doubt` for runs; `skipped`, `waiting` and \
             `changed` for schedules.",
        )
        .default("[finished, stopped, doubt, skipped, waiting, changed]"),
    KeySpec::new("url", ValueShape::Secret, "{ env: SLACK_URL }")
        .with_doc("Where to find the secret URL to which notifications are posted."),
    KeySpec::new("preset", ValueShape::OneOf(&["slack", "teams", "telegram", "json"]), "slack")
        .with_doc("The format that the receiving service expects. Defaults to `json`, unless `body` is set."),
    KeySpec::new("body", ValueShape::Template, "\"{{ text }}\"").with_doc(
        "A template for the request body, instead of `preset`. It can use `text`, `occasion`, `campaign`, `run` and `counts`, among others.",
    ),
    KeySpec::new("local", ValueShape::Bool, "true")
        .with_doc("Allows a URL on this machine or its local network, and plain http.")
        .default("false"),
    KeySpec::new("command", ValueShape::List { item: &WORD, least: 1, most: 50 }, "[notify-send, \"{{ text }}\"]")
        .with_doc(
            "A program to start instead of posting to a URL. The program does not run in a shell. Its arguments are \
            templates, like `body`.",
        ),
];

static STOP_AFTER: &[KeySpec] = &[
    KeySpec::new("doubtful_envelopes", ValueShape::Integer { least: 1, most: 1_000_000 }, "3")
        .with_doc("The number of consecutive requests with an unknown outcome.")
        .default("3"),
    KeySpec::new("same_error_in_a_row", ValueShape::Integer { least: 1, most: MAX_COUNT }, "50")
        .with_doc("The number of consecutive messages that the gateway rejects with the same error.")
        .default("50"),
    KeySpec::new("rejected", ValueShape::Share, "20%")
        .with_doc("The share of rejected messages among those that the gateway has responded to.")
        .default("20%"),
    KeySpec::new("opted_out", ValueShape::Share, "1%").with_doc(
        "The share of recipients who opt out because of the run, by replying or through a rejection with one of \
         `opt_out_errors`. Applies once 200 messages have been sent.",
    ),
    KeySpec::new("unreachable", ValueShape::Seconds { least: 1, most: 604_800 }, "30m").with_doc(
        "How long to retry if the gateway cannot be reached. Defaults to 30m, or to 10s for a gateway on this \
         machine and in rehearsals.",
    ),
];

/// The keys of a message in a text file, or with texts chosen by a column.
pub(super) static TEXT_FILE: &[KeySpec] = &[
    KeySpec::new("file", ValueShape::Line, "autumn-sale.sms.txt")
        .with_doc(
            "The text file, in this file's folder or in templates/. `{{ today }}` in the name stands for the \
                   date.",
        )
        .mark_choice(),
    KeySpec::new("by", ValueShape::Line, "lang")
        .with_doc("The column that selects the message text. Needs `texts`.")
        .mark_choice(),
    KeySpec::new("texts", ValueShape::Each(&CHOSEN_TEXT), "{ uk: { file: promo.uk.txt }, en: Hello }")
        .with_doc("The message text for each value of the column. Case and surrounding spaces do not matter."),
    KeySpec::new("else", ValueShape::Line, "uk").with_doc(
        "The entry in `texts` to use if the column's value matches no entry. Without this key, such a row is invalid.",
    ),
];

static CHOSEN_TEXT: KeySpec = KeySpec::new("text", ValueShape::Or { alone: &TEXT, keys: CHOSEN_FILE }, "Hello")
    .with_doc("One of the message texts.");

static TEXT: KeySpec =
    KeySpec::new("text", ValueShape::Template, "Hello").with_doc("A message text in the campaign file itself.");

static CHOSEN_FILE: &[KeySpec] = &[KeySpec::new("file", ValueShape::Line, "promo.uk.txt")
    .with_doc("The text file, in this file's folder or in templates/.")
    .mark_required()];

const CHANNELS_COUNT: usize = Channel::ALL.len();
/// The maximum number of keys of a channel.
const MAX_KEYS: usize = 16;
/// Fills unused elements of a table.
const NO_KEY: KeySpec = KeySpec::new("", ValueShape::Line, "");

/// The channels, each with its keys.
pub(crate) static CHANNELS: &[KeySpec] = &{
    let mut channels = [NO_KEY; CHANNELS_COUNT];
    let mut at = 0;
    while at < CHANNELS_COUNT {
        let (channel, facts) = (Channel::ALL[at], Channel::ALL[at].facts());
        let (keys, _) = KEYS[at].split_at(facts.fields.len());
        channels[at] = KeySpec::new(channel.name(), ValueShape::Map(keys), facts.example).with_doc(facts.doc);
        at += 1;
    }
    channels
};

/// A price for each channel.
pub(super) static PRICES: &[KeySpec] = &{
    let mut prices = [NO_KEY; CHANNELS_COUNT];
    let mut at = 0;
    while at < CHANNELS_COUNT {
        let (channel, facts) = (Channel::ALL[at], Channel::ALL[at].facts());
        prices[at] = KeySpec::new(channel.name(), ValueShape::Price, facts.price_example).with_doc(facts.price_doc);
        at += 1;
    }
    prices
};

/// The keys of each channel, in the order of [`Channel::ALL`]. Unused elements are [`NO_KEY`].
static KEYS: [[KeySpec; MAX_KEYS]; CHANNELS_COUNT] = {
    let mut channels = [[NO_KEY; MAX_KEYS]; CHANNELS_COUNT];
    let mut at = 0;
    while at < CHANNELS_COUNT {
        channels[at] = field_keys(Channel::ALL[at].facts().fields);
        at += 1;
    }
    channels
};

static CARD: KeySpec = KeySpec::new("card", ValueShape::Map(CARD_KEYS), "{ image: …, url: …, button: … }")
    .with_doc("One card of a carousel.");

static CARD_KEYS: &[KeySpec] = field_keys::<{ Card::<()>::FIELDS.len() }>(&Card::<()>::FIELDS).as_slice();

/// The keys that these fields have in a file.
const fn field_keys<const N: usize>(fields: &[ChannelField]) -> [KeySpec; N] {
    assert!(fields.len() <= N, "there is no room for that many keys");
    let mut keys = [NO_KEY; N];
    let mut at = 0;
    while at < fields.len() {
        keys[at] = field_key(&fields[at]);
        at += 1;
    }
    keys
}

const fn field_key(field: &ChannelField) -> KeySpec {
    let presence =
        if matches!(field.need, FieldRequirement::Always) { KeyPresence::Required } else { KeyPresence::Optional };
    let ChannelField { key: name, example, doc, default, .. } = *field;
    KeySpec { name, shape: field_shape(field.kind), example, doc, default, presence }
}

const fn field_shape(kind: FieldKind) -> ValueShape {
    match kind {
        FieldKind::Template | FieldKind::Choice(_) => ValueShape::Template,
        FieldKind::Message => ValueShape::Message,
        FieldKind::Form(words) | FieldKind::Word(words) => ValueShape::OneOf(words),
        FieldKind::Seconds { least, most } => ValueShape::Seconds { least, most },
        FieldKind::Number { least, most } => ValueShape::Integer { least, most },
        FieldKind::Flag => ValueShape::Bool,
        FieldKind::Cards { least, most } => ValueShape::List { item: &CARD, least, most },
        FieldKind::Extra => ValueShape::Properties,
    }
}

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
    KeySpec::new("limits", ValueShape::Map(PROFILE_LIMITS), "{ recipients: 50000 }")
        .with_doc("Limits that a run can exceed only if the operator explicitly allows it."),
    KeySpec::new("home", COUNTRIES, "[UA]").with_doc(
        "The countries that you usually send to, as ISO 3166 codes. Recipients outside these countries are reported \
         before a run.",
    ),
    KeySpec::new("trust_status", ValueShape::List { item: &HTTP_STATUS, least: 0, most: 200 }, "[429, 503]").with_doc(
        "HTTP statuses that mean \"not processed\", as confirmed by the provider. Messages in requests with such a \
         status are retried. After any other error status, messages are in doubt and are not retried.",
    ),
    KeySpec::new("fatal_errors", ValueShape::List { item: &ERROR_TEXT, least: 0, most: 100 }, "[Not enough money]")
        .with_doc("Errors that stop a run as soon as a single message is rejected with one of them.")
        .default("[Not enough money]"),
    KeySpec::new(
        "opt_out_errors",
        ValueShape::List { item: &ERROR_TEXT, least: 0, most: 100 },
        "[Number is in stop list]",
    )
    .with_doc(
        "Errors that mean that a recipient opted out. If a message is rejected with one of these errors, its recipient is opted out.",
    ),
    KeySpec::new("proxy", ValueShape::Line, "http://proxy.example:3128")
        .with_doc("The proxy for requests. Proxy settings in the environment are ignored."),
    KeySpec::new("account", ValueShape::Line, "main")
        .with_doc("The account's name, if several profiles share an account and its rate limit."),
    KeySpec::new("prices", ValueShape::Map(PRICES), "{ sms: 0.80, viber: 0.50 }").with_doc(
        "The price of a message on each channel, in the account's currency: an amount, or amounts by country with \
             `else` for all others.",
    ),
    KeySpec::new("currency", ValueShape::Line, "UAH").with_doc("The currency of the prices."),
    KeySpec::new("sender_verified", ValueShape::List { item: &SENDER_STATUS, least: 1, most: 20 }, "[Checked]")
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
    KeySpec::new("opt_in_words", ValueShape::Line, "opt-in-words.txt")
        .with_doc("A file of additional words that recipients can use to opt in again, one per line."),
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
        .with_doc("The maximum number of messages that a phone number can get from all campaigns in a period."),
    KeySpec::new("window", ValueShape::Or { alone: &HOURS, keys: WINDOW }, "09:00-20:00")
        .with_doc("When messages can be sent. A campaign's own window can only narrow these hours."),
    KeySpec::new("consent", ValueShape::OneOf(&["required"]), "required").with_doc(
        "Sends marketing messages only to recipients with consent, as in a campaign with `consent: required`.",
    ),
    KeySpec::new("countries", COUNTRIES, "[UA, PL]")
        .with_doc("The countries that messages may reach, as ISO 3166 codes. A campaign can only narrow this list."),
    KeySpec::new("suppress", ValueShape::List { item: &SUPPRESS, least: 0, most: 100 }, "[stop.csv]")
        .with_doc("Suppression lists for every campaign that uses this profile. Paths are relative to this file."),
    KeySpec::new("mandatory", ValueShape::OneOf(&["never"]), "never")
        .with_doc("Forbids campaigns with `mandatory: true`, so that every message respects opt-outs."),
    KeySpec::new("notify", ValueShape::Map(NOTIFY), "{ url: { env: SLACK_URL }, preset: slack }").with_doc(
        "Notifications about live runs, in addition to those set in the campaign. Program paths are \
            relative to this file.",
    ),
];

static APPROVAL: &[KeySpec] = &[
    KeySpec::new("above", ValueShape::Integer { least: 0, most: u32::MAX }, "1000")
        .with_doc("A run with more recipients than this needs approval.")
        .mark_required(),
    KeySpec::new("by", ValueShape::Texts, "{ Olha: ed25519:… }")
        .with_doc("The people who can approve a run, each with the public key that `approve --new-key NAME` prints.")
        .mark_required(),
];

static PROFILE_LIMITS: &[KeySpec] = &[
    KeySpec::new("recipients", ValueShape::Integer { least: 1, most: u32::MAX }, "50000")
        .with_doc("The maximum number of recipients in a run."),
    KeySpec::new("abroad", ValueShape::Integer { least: 0, most: u32::MAX }, "100")
        .with_doc("The maximum number of recipients outside `home` in an edition of a campaign. Needs `home`."),
];

static HTTP_STATUS: KeySpec =
    KeySpec::new("status", ValueShape::Integer { least: 400, most: 599 }, "429").with_doc("An HTTP status.");

static SENDER_STATUS: KeySpec =
    KeySpec::new("status", ValueShape::Line, "Checked").with_doc("A status of a sender name.");

static ERROR_TEXT: KeySpec =
    KeySpec::new("error", ValueShape::Line, "Not enough money").with_doc("The gateway's error message.");
