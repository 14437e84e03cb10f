//! The keys of a campaign file.

use super::{Key, Shape};
use crate::domain::{Language, State};

const MOST: u32 = u32::MAX;

/// The keys at the top of a campaign file.
pub(crate) static CAMPAIGN: &[Key] = &[
    Key::new("name", Shape::Line, "autumn-sale")
        .doc("The campaign's name: 1 to 64 characters from a-z, 0-9 and -. Defaults to the file's name."),
    Key::new("edition", Shape::Template, "\"{{ today }}\"")
        .doc("Distinguishes repeats of the campaign. Each number gets at most one message per edition."),
    Key::new("purpose", Shape::OneOf(&["marketing", "service"]), "marketing")
        .doc("What the messages are for. `marketing` skips recipients who opted out; `service` (codes, orders) \
            does not. Defaults to `service` for number lookups and verification calls, otherwise to \
            `marketing`."),
    Key::new("gateway", Shape::Line, "production")
        .doc("The gateway profile in gateways.yaml to use. `sandbox` is the built-in gateway for rehearsals.")
        .default("sandbox"),
    Key::new("endpoint", Shape::OneOf(&["sync", "async"]), "async")
        .doc("The gateway's endpoint. `sync` returns a result for each message; `async` queues the request.")
        .default("sync"),
    Key::new("timezone", Shape::Line, "Europe/Kyiv")
        .doc("The time zone of every local time in this file and of `today`."),
    Key::new("language", Shape::OneOf(&Language::CODES), "uk")
        .doc("The language of the filters `money` and `date`. Defaults to the language of `recipients.region`, or English."),
    Key::new("recipients", Shape::Map(RECIPIENTS), "{ file: autumn-sale.csv }")
        .doc("The list of recipients.")
        .required(),
    Key::new("vars", Shape::Texts, "{ shop: \"Olena & Co\" }")
        .doc("Constants that templates use by name. `0501234567` keeps its leading zero."),
    Key::new("channels", Shape::Channels, "[ sms: { signature: OlenaCo, message: \"Hello\" } ]")
        .doc("The message for each channel, in the order in which the channels are tried.")
        .required(),
    Key::new("operation", Shape::OneOf(&["pipeline"]), "pipeline")
        .doc("Always uses the `pipeline` operation, even if the gateway has a dedicated one for these channels."),
    Key::new("delivery", Shape::Map(DELIVERY), "{ rate: 10/s }")
        .doc("Rate limit, batching, error handling and sending hours."),
    Key::new("schedule", Shape::Map(SCHEDULE), "{ every: Mon 10:00 }")
        .doc("When the campaign runs automatically, once `campaign schedule add` has activated it. Needs \
            `timezone`."),
    Key::new("receipts", Shape::OneOf(&["auto", "webhook", "poll", "off"]), "auto")
        .doc("How delivery statuses arrive. `webhook` needs `hook` in the profile, `poll` asks the gateway, `auto` uses whichever is available.")
        .default("auto"),
    Key::new("limits", Shape::Map(LIMITS), "{ cost: 5000 }")
        .doc("Combined limits for all runs of an edition. A run stops before it exceeds a limit."),
    Key::new("notify", Shape::Map(NOTIFY), "{ url: { env: SLACK_URL }, preset: slack }")
        .doc("Where to send notifications about live runs and schedules."),
    Key::new("variants", Shape::Each(&VARIANT), "{ a: { share: 50% }, b: { share: 50% } }")
        .doc("The variants of an A/B test. A recipient's number determines the variant. The shares and \
            `holdout` must add up to 100%."),
    Key::new("holdout", Shape::Or { alone: &SHARE, keys: HOLDOUT }, "10%")
        .doc("The share of recipients who get no message, for comparison. Campaigns with the same `group` hold out the same recipients."),
    Key::new("data", Shape::Each(&TABLE), "{ stores: { file: stores.csv, key: city } }")
        .doc("Small lookup tables for templates: `{{ stores[city].address }}`."),
    Key::new("results", Shape::Line, "results/autumn-sale.csv")
        .doc("Where to write the results. Defaults to results/<name>.csv, and to results/<name>-<edition>.csv for scheduled runs. A rehearsal writes <name>.sandbox.csv in the same folder."),
];

static SHARE: Key = Key::new("share", Shape::Share, "10%").doc("A share of the recipients.");

static VARIANT: Key = Key::new("variant", Shape::Map(VARIANT_KEYS), "{ share: 50% }").doc("A variant.");

/// The keys of a variant.
pub(crate) static VARIANT_KEYS: &[Key] = &[
    Key::new("share", Shape::Share, "50%").doc("The share of recipients who get this variant.").required(),
    Key::new("channels", Shape::Channels, "[ sms: { signature: OlenaCo, message: \"Hello\" } ]")
        .doc("The variant's message; replaces the campaign's `channels`."),
    Key::new("vars", Shape::Texts, "{ discount: \"20%\" }")
        .doc("The variant's constants; added to the campaign's `vars`, which they override."),
];

/// The keys of `holdout` where it is a map.
pub(crate) static HOLDOUT: &[Key] = &[
    Key::new("share", Shape::Share, "10%").doc("The share of recipients who get no message.").required(),
    Key::new("group", Shape::Line, "autumn").doc("The group of campaigns that hold out the same recipients."),
];

static TABLE: Key = Key::new("table", Shape::Map(DATA_KEYS), "{ file: stores.csv, key: city }").doc("A table.");

/// The keys of a table.
pub(crate) static DATA_KEYS: &[Key] = &[
    Key::new("file", Shape::Line, "stores.csv")
        .doc("The file that contains the table, in any format that is supported for lists.")
        .required(),
    Key::new("key", Shape::Line, "city").doc("The header of the column that identifies a row.").required(),
];

pub(super) static SUPPRESS: Key =
    Key::new("suppress", Shape::Or { alone: &SUPPRESS_PATH, keys: SUPPRESS_FILE }, "stop-list.csv")
        .doc("A suppression list.");

static SUPPRESS_PATH: Key = Key::new("file", Shape::Line, "stop-list.csv").doc("The file.");

/// The keys of a file of people who opted out, where it is a map.
pub(crate) static SUPPRESS_FILE: &[Key] = &[
    Key::new("file", Shape::Line, "stop-list.csv").doc("The file, relative to this one.").required(),
    Key::new("phone", Shape::Line, "Phone").doc("The header of the column with the numbers. Detected by default."),
    Key::new("region", Shape::Line, "UA")
        .doc("The country of the national numbers in this file. Defaults to the `region` of the recipients."),
];

static RECIPIENTS: &[Key] = &[
    Key::new("file", Shape::Line, "autumn-sale.csv")
        .doc("The list: a CSV file or a workbook (.xlsx, .xls, .ods) with a header, relative to this file. `{{ today }}` in the name is the date, and `\"-\"` is standard input.")
        .choice(),
    Key::new("columns", Shape::Columns, "{ phone: \"Mobile\", first_name: \"First name\" }")
        .doc("Names for templates, each with the header of its column. Other columns keep their header as the name. \
            `phone` accepts a list of headers."),
    Key::new("region", Shape::Line, "UA")
        .doc("The ISO 3166 code of the country that national numbers belong to. Without it, only international numbers are valid."),
    Key::new("where", Shape::Line, "plan == \"gold\"")
        .doc("Which rows of the list to use: an expression that can use columns and `vars`. Other rows are skipped as \
            `filtered`."),
    Key::new("duplicates", Shape::OneOf(&["skip", "refuse", "allow"]), "skip")
        .doc("What to do if a number is in the list more than once.")
        .default("skip"),
    Key::new("max_invalid", Shape::Share, "10%")
        .doc("Sends nothing if more than this share of the rows, and at least five rows, are invalid.")
        .default("10%"),
    Key::new("empty", Shape::OneOf(&["refuse", "ok"]), "refuse")
        .doc("What to do if the list is empty: `ok` exits with 0 and sends nothing.")
        .default("refuse"),
    Key::new("suppress", Shape::List { of: &SUPPRESS, least: 0, most: 100 }, "[stop-list.csv]")
        .doc("Additional suppression lists, in the same formats as the list of recipients. They are read again \
            each time a run starts or resumes."),
    Key::new("exclude", Shape::Map(EXCLUDE), "{ run: autumn-teaser, state: [delivered, read] }")
        .doc("Skips recipients based on the status of an earlier message."),
    Key::new("encoding", Shape::Line, "windows-1251")
        .doc("The encoding of the list, such as `windows-1251` or `utf-16le`. Detected and reported by default."),
    Key::new("delimiter", Shape::Line, "';'")
        .doc("The delimiter between the cells of the list: one character, or `tab`. Detected and reported by default."),
    Key::new("sheet", Shape::Line, "Sheet1")
        .doc("The sheet of a workbook. Defaults to the first visible one."),
    Key::new("header_row", Shape::Integer { least: 1, most: 1000 }, "4")
        .doc("The number of the header row, as in a spreadsheet. Rows above it are ignored."),
    Key::new("run", Shape::Line, "autumn-sale@3")
        .doc("Uses recipients of an earlier run instead of a file; `state` selects them.")
        .choice(),
    Key::new("url", Shape::Line, "https://crm.example/people.csv")
        .doc("Downloads the list from this URL when a run starts, instead of reading a file. The URL must use \
            `https`, or point to this machine.")
        .choice(),
    Key::new("headers", Shape::Headers, "{ Authorization: { env: CRM_TOKEN } }")
        .doc("HTTP headers for the request to `url`. Write a secret as `{ env: NAME }` or `{ file: PATH }`."),
    Key::new("command", Shape::List { of: &WORD, least: 1, most: 100 }, "[bq, query, --format=csv, \"select …\"]")
        .doc("A program and its arguments. When a run starts, the list is read from the output of the program instead \
            of a file. The program does not run in a shell.")
        .choice(),
    Key::new("sql", Shape::Template, "select phone, name from people where since < :today")
        .doc("Reads the list with this query when a run starts, instead of from a file. `from` specifies the \
            database, and `:today` is the date.")
        .choice(),
    Key::new("from", Shape::Secret, "{ env: CRM_URL }")
        .doc("Where to find the database URL for `sql`: `postgres://`, `mysql://` or `sqlite://`."),
    Key::new("timeout", Shape::Seconds { least: 1, most: 86_400 }, "60s")
        .doc("How long to wait for `url`, `command` or `sql` to return the whole list.")
        .default("10m"),
    Key::new("state", Shape::Words(&State::WORDS), "[failed, rejected]")
        .doc("Which recipients of `run` to use, by message status. `undelivered` stands for every message that was \
            not delivered."),
];

/// The keys of `exclude`.
static EXCLUDE: &[Key] = &[
    Key::new("run", Shape::Line, "autumn-teaser@1")
        .doc("The run, or the name of a campaign to select all runs of its latest edition.")
        .required(),
    Key::new("state", Shape::Words(&State::WORDS), "[delivered, read]")
        .doc("The statuses to skip. Defaults to every status of a message that was or might have been sent."),
];

static DELIVERY: &[Key] = &[
    Key::new("rate", Shape::Rate, "10/s")
        .doc("The number of messages per second or minute. The profile's rate is the default and the maximum."),
    Key::new("batch", Shape::Integer { least: 1, most: 10_000 }, "50")
        .doc("The number of messages in one request.")
        .default("50"),
    Key::new("in_flight", Shape::Integer { least: 1, most: 64 }, "2")
        .doc("The maximum number of requests in flight at the same time.")
        .default("2"),
    Key::new("timeout", Shape::Seconds { least: 1, most: 600 }, "30s")
        .doc("How long to wait for a response.")
        .default("30s"),
    Key::new("on_in_doubt", Shape::OneOf(&["hold", "assume_sent", "resend_if_not_found"]), "hold")
        .doc("What to do with a message in doubt, that is, one that might or might not have been sent.")
        .default("hold"),
    Key::new("stop_after", Shape::Map(STOP_AFTER), "{ rejected: 20% }").doc("What stops a run early."),
    Key::new("window", Shape::Or { alone: &HOURS, keys: WINDOW }, "09:00-20:00")
        .doc("When messages can be sent: hours of the day, or a map with `days`, `except` and `zone`. Outside \
            these hours, messages wait."),
    Key::new("until", Shape::Line, "2026-12-07 20:00")
        .doc("When sending ends: a local time, or a duration such as `12h` after the start. The remaining recipients are skipped."),
    Key::new("per_day", Shape::Counts, "2000").doc(
        "The maximum number of messages of an edition per day, in the time zone `timezone`. In a list, the first number is for the first day of sending, and so on.",
    ),
    Key::new("cap", Shape::Cap, "2/7d").doc(
        "The maximum number of messages to one number from all campaigns in a period. Recipients at the limit are skipped.",
    ),
];

pub(super) static HOURS: Key = Key::new("hours", Shape::Line, "09:00-20:00")
    .doc("The hours of the day. If the end is before the start, it means the next morning.");

static DATE: Key = Key::new("date", Shape::Line, "2026-12-25").doc("A date.");

/// The keys of `window` where it is a map.
pub(crate) static WINDOW: &[Key] = &[
    Key::new("hours", Shape::Line, "09:00-20:00")
        .doc("The hours of the day. If the end is before the start, it means the next morning.")
        .required(),
    Key::new("days", Shape::Line, "mon-fri")
        .doc("The days of the week, such as `mon-fri` or `mon, wed`. Defaults to every day."),
    Key::new("except", Shape::List { of: &DATE, least: 1, most: 400 }, "[2026-12-25]")
        .doc("Dates on which no messages are sent."),
    Key::new("zone", Shape::Line, "recipient")
        .doc(
            "The time zone of the hours: `campaign` for the campaign's `timezone`, `recipient` for the time \
            zone of the number's country if it has only one, or the name of a column that contains time zones.",
        )
        .default("campaign"),
];

static LIMITS: &[Key] = &[
    Key::new("cost", Shape::Amount, "5000").doc(
        "The maximum cost, counting the most expensive channel of each message, in the currency of the profile's \
         prices.",
    ),
    Key::new("recipients", Shape::Integer { least: 1, most: MOST }, "20000").doc("The maximum number of messages."),
];

static SCHEDULE: &[Key] = &[
    Key::new("at", Shape::Line, "2026-12-01 10:00").doc("The date and time at which the campaign runs once."),
    Key::new("every", Shape::Line, "Mon 10:00").doc(
        "When the campaign runs repeatedly: `Mon 10:00`, `Mon, Thu 10:00`, `day 9:30`, `weekdays \
         18:00`, `1st 10:00`, `last day 18:00`.",
    ),
    Key::new("cron", Shape::Line, "0 10 * * MON")
        .doc("When the campaign runs repeatedly, as a cron expression with five fields."),
    Key::new("grace", Shape::Seconds { least: 60, most: 604_800 }, "1h")
        .doc("How late a run can start. If it cannot start by then, it is skipped and reported.")
        .default("1h"),
    Key::new("ends", Shape::Line, "2027-01-01").doc("The last day on which the campaign runs."),
    Key::new("wait_for_file", Shape::Seconds { least: 60, most: 604_800 }, "2h")
        .doc("How long to wait for the list file. Without this key, the file must exist when a run is due."),
];

/// The words of [`Occasion`](crate::domain::Occasion).
static OCCASION: Key =
    Key::new("occasion", Shape::OneOf(&["finished", "stopped", "doubt", "skipped", "waiting", "changed"]), "stopped")
        .doc("An event to notify about.");

static WORD: Key = Key::new("word", Shape::Line, "notify-send").doc("A program or one of its arguments.");

/// The keys of `notify`.
pub(super) static NOTIFY: &[Key] = &[
    Key::new("when", Shape::List { of: &OCCASION, least: 1, most: 6 }, "[stopped, doubt]")
        .doc(
            "Which events to notify about: `finished`, `stopped` and `doubt` for runs; `skipped`, `waiting` and \
             `changed` for schedules.",
        )
        .default("[finished, stopped, doubt, skipped, waiting, changed]"),
    Key::new("url", Shape::Secret, "{ env: SLACK_URL }")
        .doc("Where to find the secret URL to which notifications are posted."),
    Key::new("preset", Shape::OneOf(&["slack", "teams", "telegram", "json"]), "slack")
        .doc("The format that the receiving service expects. Defaults to `json`, unless `body` is set."),
    Key::new("body", Shape::Template, "\"{{ text }}\"").doc(
        "A template for the request body, instead of `preset`. It can use `text`, `occasion`, `campaign`, \
         `run`, `counts` and others.",
    ),
    Key::new("local", Shape::Bool, "true")
        .doc("Allows a URL on this machine or in its local network, and plain http.")
        .default("false"),
    Key::new("command", Shape::List { of: &WORD, least: 1, most: 50 }, "[notify-send, \"{{ text }}\"]").doc(
        "A program to start instead of posting to a URL. The program does not run in a shell. Its arguments are \
            templates, like `body`.",
    ),
];

static STOP_AFTER: &[Key] = &[
    Key::new("doubtful_envelopes", Shape::Integer { least: 1, most: 1_000_000 }, "3")
        .doc("The number of consecutive requests with an unknown outcome.")
        .default("3"),
    Key::new("same_error_in_a_row", Shape::Integer { least: 1, most: MOST }, "50")
        .doc("The number of consecutive messages that the gateway rejects with the same error.")
        .default("50"),
    Key::new("rejected", Shape::Share, "20%")
        .doc("The share of rejected messages among those that the gateway has responded to.")
        .default("20%"),
    Key::new("unreachable", Shape::Seconds { least: 1, most: 604_800 }, "30m").doc(
        "How long to retry if the gateway cannot be reached. Defaults to 30m, or to 10s for a gateway on this \
         machine and in rehearsals.",
    ),
];

/// The keys of a message that stands in a text file, or that is chosen by a column.
pub(super) static TEXT_FILE: &[Key] = &[
    Key::new("file", Shape::Line, "autumn-sale.sms.txt")
        .doc("The text file, in this file's folder or in templates/. `{{ today }}` in the name is the date.")
        .choice(),
    Key::new("by", Shape::Line, "lang").doc("The column that selects the message text. Needs `texts`.").choice(),
    Key::new("texts", Shape::Each(&CHOSEN_TEXT), "{ uk: { file: promo.uk.txt }, en: Hello }")
        .doc("The message text for each value of the column. Case and surrounding spaces do not matter."),
    Key::new("else", Shape::Line, "uk").doc(
        "The entry of `texts` to use if the column's value matches none of them. Without this key, such a \
            row is invalid.",
    ),
];

static CHOSEN_TEXT: Key =
    Key::new("text", Shape::Or { alone: &TEXT, keys: CHOSEN_FILE }, "Hello").doc("One of the message texts.");

static TEXT: Key = Key::new("text", Shape::Template, "Hello").doc("A message text in the campaign file itself.");

static CHOSEN_FILE: &[Key] = &[Key::new("file", Shape::Line, "promo.uk.txt")
    .doc("The text file, in this file's folder or in templates/.")
    .required()];
