//! The keys of a campaign file.

use super::{Key, Shape};
use crate::domain::{Language, State};

const MOST: u32 = u32::MAX;

/// The keys at the top of a campaign file.
pub(crate) static CAMPAIGN: &[Key] = &[
    Key::new("name", Shape::Line, "autumn-sale")
        .doc("The campaign's name, 1 to 64 of a-z, 0-9 and -; without it, the file's name."),
    Key::new("edition", Shape::Template, "\"{{ today }}\"")
        .doc("What makes a repeated campaign a new one; within one edition nobody gets a second message."),
    Key::new("purpose", Shape::OneOf(&["marketing", "service"]), "marketing")
        .doc("What the messages are for: `marketing` leaves out who opted out, `service` (codes, orders) does not. Without it lookups and code calls are service, the rest is marketing."),
    Key::new("gateway", Shape::Line, "production")
        .doc("The profile of gateways.yaml to send through; `sandbox` is the built-in rehearsal.")
        .default("sandbox"),
    Key::new("endpoint", Shape::OneOf(&["sync", "async"]), "async")
        .doc("The gateway's endpoint: `sync` answers per message, `async` queues the request.")
        .default("sync"),
    Key::new("timezone", Shape::Line, "Europe/Kyiv")
        .doc("The time zone of every local time in this file and of `today`."),
    Key::new("language", Shape::OneOf(&Language::CODES), "uk")
        .doc("The language of the filters `money` and `date`. The default is the language of `recipients.region`, or English."),
    Key::new("recipients", Shape::Map(RECIPIENTS), "{ file: autumn-sale.csv }")
        .doc("Who gets the campaign.")
        .required(),
    Key::new("vars", Shape::Texts, "{ shop: \"Olena & Co\" }")
        .doc("Constants for the texts, used by their bare names; `0501234567` keeps its zero."),
    Key::new("channels", Shape::Channels, "[ sms: { signature: OlenaCo, message: \"Hello\" } ]")
        .doc("What is said, channel by channel, in the order in which they are tried.")
        .required(),
    Key::new("operation", Shape::OneOf(&["pipeline"]), "pipeline")
        .doc("Sends as a `pipeline` even where the channels have a type of their own."),
    Key::new("delivery", Shape::Map(DELIVERY), "{ rate: 10/s }")
        .doc("How fast and how carefully the campaign is sent."),
    Key::new("schedule", Shape::Map(SCHEDULE), "{ every: Mon 10:00 }")
        .doc("When the campaign runs by itself, once it was armed by `campaign schedule add`; needs `timezone`."),
    Key::new("receipts", Shape::OneOf(&["auto", "webhook", "poll", "off"]), "auto")
        .doc("How it is learned what became of messages: `webhook` needs `hook` in the profile, `poll` asks for it, `auto` takes what there is.")
        .default("auto"),
    Key::new("limits", Shape::Map(LIMITS), "{ cost: 5000 }")
        .doc("The most that all runs of an edition may use together; the run stops before it would be more."),
    Key::new("notify", Shape::Map(NOTIFY), "{ url: { env: SLACK_URL }, preset: slack }")
        .doc("Who is told how live runs went, and what became of a schedule."),
    Key::new("variants", Shape::Each(&VARIANT), "{ a: { share: 50% }, b: { share: 50% } }")
        .doc("Messages that are tried against each other; who gets which follows from the number. The shares make 100%, with `holdout`."),
    Key::new("holdout", Shape::Or { alone: &SHARE, keys: HOLDOUT }, "10%")
        .doc("The share of people who get nothing, to compare with; with `group` the same people in every campaign of the group."),
    Key::new("data", Shape::Each(&TABLE), "{ stores: { file: stores.csv, key: city } }")
        .doc("Small tables that texts look something up in: `{{ stores[city].address }}`."),
    Key::new("results", Shape::Line, "results/autumn-sale.csv")
        .doc("Where the results go; without it results/<name>.csv, of what a schedule began results/<name>-<edition>.csv. Those of a rehearsal stand beside it, as <name>.sandbox.csv."),
];

static SHARE: Key = Key::new("share", Shape::Share, "10%").doc("A part of the people.");

static VARIANT: Key = Key::new("variant", Shape::Map(VARIANT_KEYS), "{ share: 50% }").doc("A variant.");

/// The keys of a variant.
pub(crate) static VARIANT_KEYS: &[Key] = &[
    Key::new("share", Shape::Share, "50%").doc("The part of the people who get it.").required(),
    Key::new("channels", Shape::Channels, "[ sms: { signature: OlenaCo, message: \"Hello\" } ]")
        .doc("What it says, in the place of `channels` of the campaign."),
    Key::new("vars", Shape::Texts, "{ discount: \"20%\" }")
        .doc("Constants of its own, in the place of those of the campaign or beside them."),
];

/// The keys of `holdout` where it is a map.
pub(crate) static HOLDOUT: &[Key] = &[
    Key::new("share", Shape::Share, "10%").doc("The part of the people who get nothing.").required(),
    Key::new("group", Shape::Line, "autumn").doc("The campaigns that leave out the same people."),
];

static TABLE: Key = Key::new("table", Shape::Map(DATA_KEYS), "{ file: stores.csv, key: city }").doc("A table.");

/// The keys of a table.
pub(crate) static DATA_KEYS: &[Key] = &[
    Key::new("file", Shape::Line, "stores.csv").doc("The table: any file that can be a list.").required(),
    Key::new("key", Shape::Line, "city").doc("The header of the column by which a row is found.").required(),
];

pub(super) static SUPPRESS: Key =
    Key::new("suppress", Shape::Or { alone: &SUPPRESS_PATH, keys: SUPPRESS_FILE }, "stop-list.csv")
        .doc("A list of people who opted out.");

static SUPPRESS_PATH: Key = Key::new("file", Shape::Line, "stop-list.csv").doc("The file.");

/// The keys of a file of people who opted out, where it is a map.
pub(crate) static SUPPRESS_FILE: &[Key] = &[
    Key::new("file", Shape::Line, "stop-list.csv").doc("The file, relative to this one.").required(),
    Key::new("phone", Shape::Line, "Phone").doc("The header of the column with the numbers; without it, it is found."),
    Key::new("region", Shape::Line, "UA")
        .doc("The country of its national numbers; without it that of the recipients."),
];

static RECIPIENTS: &[Key] = &[
    Key::new("file", Shape::Line, "autumn-sale.csv")
        .doc("The recipients: a CSV file or a workbook (.xlsx, .xls, .ods) with a header, relative to this file; `{{ today }}` in its name is the date, and `\"-\"` is standard input.")
        .choice(),
    Key::new("columns", Shape::Columns, "{ phone: \"Mobile\", first_name: \"First name\" }")
        .doc("Names for templates, each with its column's header; other headers keep their name. `phone` takes several headers."),
    Key::new("region", Shape::Line, "UA")
        .doc("The ISO 3166 code of the country of national numbers; without it only international ones count."),
    Key::new("where", Shape::Line, "plan == \"gold\"")
        .doc("Who of the list is meant: one expression over columns and vars; the others are skipped as `filtered`."),
    Key::new("duplicates", Shape::OneOf(&["skip", "refuse", "allow"]), "skip")
        .doc("What becomes of a number that stands in the list twice.")
        .default("skip"),
    Key::new("max_invalid", Shape::Share, "10%")
        .doc("If more of the rows than this are invalid, and at least five, nothing is sent.")
        .default("10%"),
    Key::new("empty", Shape::OneOf(&["refuse", "ok"]), "refuse")
        .doc("What becomes of a list without anybody: `ok` ends with 0 and sends nothing.")
        .default("refuse"),
    Key::new("suppress", Shape::List { of: &SUPPRESS, least: 0, most: 100 }, "[stop-list.csv]")
        .doc("Lists of people who opted out, besides the ledger's own, read anew at each start: files as those of recipients."),
    Key::new("exclude", Shape::Map(EXCLUDE), "{ run: autumn-teaser, state: [delivered, read] }")
        .doc("Who of the list is left out because of what became of an earlier message."),
    Key::new("encoding", Shape::Line, "windows-1251")
        .doc("The encoding of the list, such as `windows-1251` or `utf-16le`; without it, it is found and told."),
    Key::new("delimiter", Shape::Line, "';'")
        .doc("What stands between the cells of the list: the sign, or `tab`; without it, it is found and told."),
    Key::new("sheet", Shape::Line, "Sheet1")
        .doc("The sheet of a workbook; without it the first one that is visible."),
    Key::new("header_row", Shape::Integer { least: 1, most: 1000 }, "4")
        .doc("The row with the headers, as a spreadsheet numbers it; rows above it are ignored."),
    Key::new("run", Shape::Line, "autumn-sale@3")
        .doc("An earlier run whose people are meant, instead of a file; `state` says which of them.")
        .choice(),
    Key::new("url", Shape::Line, "https://crm.example/people.csv")
        .doc("The address that the list is fetched from when a run begins, instead of a file; `https`, or this machine.")
        .choice(),
    Key::new("headers", Shape::Headers, "{ Authorization: { env: CRM_TOKEN } }")
        .doc("What `url` is asked with; a secret is `{ env: NAME }` or `{ file: PATH }`."),
    Key::new("command", Shape::List { of: &WORD, least: 1, most: 100 }, "[bq, query, --format=csv, \"select …\"]")
        .doc("A program and its arguments that print the list when a run begins, instead of a file; no shell reads them.")
        .choice(),
    Key::new("sql", Shape::Template, "select phone, name from people where since < :today")
        .doc("One query whose answer is the list when a run begins, instead of a file; `from` says of which database, and `:today` is the date.")
        .choice(),
    Key::new("from", Shape::Secret, "{ env: CRM_URL }")
        .doc("Where the address of the database for `sql` is kept: `postgres://`, `mysql://` or `sqlite://`."),
    Key::new("timeout", Shape::Seconds { least: 1, most: 86_400 }, "60s")
        .doc("How long `url`, `command` or `sql` may take until the whole list is there.")
        .default("10m"),
    Key::new("state", Shape::Words(&State::WORDS), "[failed, rejected]")
        .doc("What became of the people of `run` who are meant; `undelivered` is all that did not arrive."),
];

/// The keys of `exclude`.
static EXCLUDE: &[Key] = &[
    Key::new("run", Shape::Line, "autumn-teaser@1")
        .doc("The run, or the campaign, which means all runs of its latest edition.")
        .required(),
    Key::new("state", Shape::Words(&State::WORDS), "[delivered, read]")
        .doc("What became of the people who are meant; without it whoever has a message of it, or may have one."),
];

static DELIVERY: &[Key] = &[
    Key::new("rate", Shape::Rate, "10/s")
        .doc("How many messages are sent in a time; without it, and at most, what the profile allows."),
    Key::new("batch", Shape::Integer { least: 1, most: 10_000 }, "50")
        .doc("How many messages one request carries.")
        .default("50"),
    Key::new("in_flight", Shape::Integer { least: 1, most: 64 }, "2")
        .doc("How many requests wait for their answers at a time.")
        .default("2"),
    Key::new("timeout", Shape::Seconds { least: 1, most: 600 }, "30s")
        .doc("How long an answer is waited for.")
        .default("30s"),
    Key::new("on_in_doubt", Shape::OneOf(&["hold", "assume_sent", "resend_if_not_found"]), "hold")
        .doc("What becomes of a message of which nobody knows whether it was sent.")
        .default("hold"),
    Key::new("stop_after", Shape::Map(STOP_AFTER), "{ rejected: 20% }").doc("What stops a run before its end."),
    Key::new("window", Shape::Or { alone: &HOURS, keys: WINDOW }, "09:00-20:00")
        .doc("When messages may leave: hours of a day, with `days`, `except` and `zone` where it says more; outside it they wait."),
    Key::new("until", Shape::Line, "2026-12-07 20:00")
        .doc("When nothing leaves any more: a local time, or a time such as `12h` after the run began; who is left is skipped."),
    Key::new("per_day", Shape::Counts, "2000").doc(
        "The most messages of an edition that leave on a day of `timezone`; of a list the first count holds on the first day on which something leaves, and so on.",
    ),
    Key::new("cap", Shape::Cap, "2/7d").doc(
        "The most messages that a number gets in any time of this length from all campaigns; whoever has them is skipped.",
    ),
];

pub(super) static HOURS: Key = Key::new("hours", Shape::Line, "09:00-20:00")
    .doc("The hours of a day; those that end before they begin go over midnight.");

static DATE: Key = Key::new("date", Shape::Line, "2026-12-25").doc("A date.");

/// The keys of `window` where it is a map.
pub(crate) static WINDOW: &[Key] = &[
    Key::new("hours", Shape::Line, "09:00-20:00")
        .doc("The hours of a day; those that end before they begin go over midnight.")
        .required(),
    Key::new("days", Shape::Line, "mon-fri").doc("The days of the week, such as `mon-fri` or `mon, wed`; without it all."),
    Key::new("except", Shape::List { of: &DATE, least: 1, most: 400 }, "[2026-12-25]")
        .doc("Dates on which nothing leaves."),
    Key::new("zone", Shape::Line, "recipient")
        .doc("Whose clocks: `campaign` its `timezone`, `recipient` those of the number's country where it has one zone, or a column with zones.")
        .default("campaign"),
];

static LIMITS: &[Key] = &[
    Key::new("cost", Shape::Amount, "5000")
        .doc("What the messages may cost by their dearest channels, in the currency of the profile's prices."),
    Key::new("recipients", Shape::Integer { least: 1, most: MOST }, "20000").doc("How many messages may go out."),
];

static SCHEDULE: &[Key] = &[
    Key::new("at", Shape::Line, "2026-12-01 10:00").doc("The one time at which it runs."),
    Key::new("every", Shape::Line, "Mon 10:00").doc(
        "The times at which it runs, in words: `Mon 10:00`, `Mon, Thu 10:00`, `day 9:30`, `weekdays 18:00`, `1st 10:00`, \
         `last day 18:00`.",
    ),
    Key::new("cron", Shape::Line, "0 10 * * MON").doc("The times at which it runs, as a cron line of five fields."),
    Key::new("grace", Shape::Seconds { least: 60, most: 604_800 }, "1h")
        .doc("How late it may begin; what is missed by more is skipped and told.")
        .default("1h"),
    Key::new("ends", Shape::Line, "2027-01-01").doc("The last day on which it runs."),
    Key::new("wait_for_file", Shape::Seconds { least: 60, most: 604_800 }, "2h")
        .doc("How long the list is waited for; without it the list has to be there."),
];

/// The words of [`Occasion`](crate::domain::Occasion).
static OCCASION: Key =
    Key::new("occasion", Shape::OneOf(&["finished", "stopped", "doubt", "skipped", "waiting", "changed"]), "stopped")
        .doc("An occasion to tell somebody.");

static WORD: Key = Key::new("word", Shape::Line, "notify-send").doc("A program or one of its arguments.");

/// The keys of `notify`.
pub(super) static NOTIFY: &[Key] = &[
    Key::new("when", Shape::List { of: &OCCASION, least: 1, most: 6 }, "[stopped, doubt]")
        .doc("What is told: of runs `finished`, `stopped`, `doubt`, of schedules `skipped`, `waiting`, `changed`.")
        .default("[finished, stopped, doubt, skipped, waiting, changed]"),
    Key::new("url", Shape::Secret, "{ env: SLACK_URL }")
        .doc("Where the secret address is kept that the message is posted to."),
    Key::new("preset", Shape::OneOf(&["slack", "teams", "telegram", "json"]), "slack")
        .doc("The form that the receiver wants; without `preset` and `body` it is `json`."),
    Key::new("body", Shape::Template, "\"{{ text }}\"")
        .doc("What is posted instead: a text that may use `text`, `occasion`, `campaign`, `run`, `counts` and others."),
    Key::new("local", Shape::Bool, "true")
        .doc("Whether the address may be one of this machine or of its own network, and may begin with http.")
        .default("false"),
    Key::new("command", Shape::List { of: &WORD, least: 1, most: 50 }, "[notify-send, \"{{ text }}\"]")
        .doc("The program that is started instead, without a shell; its arguments are texts like `body`."),
];

static STOP_AFTER: &[Key] = &[
    Key::new("doubtful_envelopes", Shape::Integer { least: 1, most: 1_000_000 }, "3")
        .doc("Requests in a row whose outcome is not known.")
        .default("3"),
    Key::new("same_error_in_a_row", Shape::Integer { least: 1, most: MOST }, "50")
        .doc("Messages in a row that the gateway rejects with the same words.")
        .default("50"),
    Key::new("rejected", Shape::Share, "20%")
        .doc("The part of the answered messages that may be rejected.")
        .default("20%"),
    Key::new("unreachable", Shape::Seconds { least: 1, most: 604_800 }, "30m").doc(
        "How long a gateway that cannot be reached is tried; without it 30m, on this machine and in rehearsals 10s.",
    ),
];

/// The keys of a message that stands in a text file, or that is chosen by a column.
pub(super) static TEXT_FILE: &[Key] = &[
    Key::new("file", Shape::Line, "autumn-sale.sms.txt")
        .doc("The text file, looked for beside this file, then in templates/; `{{ today }}` in its name is the date.")
        .choice(),
    Key::new("by", Shape::Line, "lang").doc("The column by which the text is chosen; it needs `texts`.").choice(),
    Key::new("texts", Shape::Each(&CHOSEN_TEXT), "{ uk: { file: promo.uk.txt }, en: Hello }")
        .doc("The texts by what stands in the column; capitals and spaces around it do not matter."),
    Key::new("else", Shape::Line, "uk")
        .doc("Which of the texts it is where the column names none; without it such a row is invalid."),
];

static CHOSEN_TEXT: Key =
    Key::new("text", Shape::Or { alone: &TEXT, keys: CHOSEN_FILE }, "Hello").doc("One of the texts.");

static TEXT: Key = Key::new("text", Shape::Template, "Hello").doc("A text in the file itself.");

static CHOSEN_FILE: &[Key] = &[Key::new("file", Shape::Line, "promo.uk.txt")
    .doc("The text file, looked for beside this file, then in templates/.")
    .required()];
