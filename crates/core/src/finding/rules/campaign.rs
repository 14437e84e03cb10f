//! Rules for campaign files and message templates.

define_rules! {
    CAMPAIGN:
    pub error CAMPAIGN_NAME = "campaign-name" {
        cause: "A campaign name is not valid. The name becomes part of file names and commands, so only simple \
                characters are allowed.",
        example: ["name: Autumn Sale"],
        fix: "use 1 to 64 characters from a-z, 0-9 and `-`, starting and ending with a letter or digit: `autumn-sale`",
    }
    pub error CAMPAIGN_TEST = "campaign-test" {
        cause: "A test is incomplete or contradictory. It would prove nothing.",
        example: [
            "tests:",
            "  - { name: no message, given: { first_name: Olena },",
            "      expect: { skipped: filtered, channels: [sms] } }",
        ],
        fix: "give a value for every column the texts use, set `at` if they use the date, and expect either a \
              message or a skipped recipient",
    }
    pub error UNKNOWN_TIMEZONE = "unknown-timezone" {
        cause: "A time zone name is unknown. Local times and `{{ today }}` depend on the time zone.",
        example: ["timezone: Europe/Kiyv"],
        fix: "use a name from the IANA time zone database, such as `Europe/Kyiv`",
    }
    pub error MISSING_TIMEZONE = "missing-timezone" {
        cause: "A key needs `timezone`, which is not set. Without a time zone, it is unclear when a day starts.",
        example: ["delivery: { per_day: 2000 }"],
        fix: "add the campaign's time zone: `timezone: Europe/Kyiv`",
    }
    pub error SCHEDULE = "schedule" {
        cause: "A schedule is incomplete or contradictory. It needs exactly one of `at`, `every` and `cron`.",
        example: ["timezone: Europe/Kyiv", "schedule: { every: \"day 09:30\", cron: \"0 10 * * *\" }"],
        fix: "keep only one of `at`, `every` and `cron`, for example `every: Mon 10:00`, and set `timezone`",
    }
    pub error WINDOW = "window" {
        cause: "A sending window is invalid or never opens. Messages are sent only while the window is open.",
        example: ["timezone: Europe/Kyiv", "delivery: { window: \"9 to 20\" }"],
        fix: "write the hours as `09:00-20:00`, and set `timezone`; to add `days`, `except` or `zone`, write the \
              window as a map",
    }
    pub error UNTIL = "until" {
        cause: "`until` is not valid or is in the past. It sets the time after which no messages are sent.",
        example: ["timezone: Europe/Kyiv", "delivery: { until: \"tomorrow evening\" }"],
        fix: "write a future date and time, such as `2031-12-07 20:00`, or a duration from the start of the run, \
              such as `12h`",
    }
    pub error FILE_NAME = "file-name" {
        cause: "A file name uses a template other than the date. File names cannot depend on the recipient.",
        example: ["recipients: { file: \"{{ name }}.csv\" }"],
        fix: "use a fixed name, or only the date: `list-{{ today }}.csv`",
    }
    pub error PATH_OUTSIDE = "path-outside" {
        cause: "A path points outside the campaigns folder. Assistants can open only files inside it.",
        example: ["recipients: { file: ../../payroll.csv }     # opened by an assistant"],
        fix: "move the file into the campaigns folder, or run the campaign yourself from the command line",
    }
    pub error UNKNOWN_REGION = "unknown-region" {
        cause: "A region is not a valid ISO 3166 country code. Phone numbers without a country code, such as 050 123 45 67, are read as numbers from this country.",
        example: ["recipients: { file: list.csv, region: UK }"],
        fix: "write a two-letter country code, such as `UA`, `PL` or `GB`",
    }
    pub error UNKNOWN_ENCODING = "unknown-encoding" {
        cause: "An encoding name is not recognized. If the list is read in the wrong encoding, names are garbled.",
        example: ["recipients: { file: list.csv, encoding: windows-1521 }"],
        fix: "write a standard name, such as `windows-1251`, or remove the key so that the encoding is detected",
    }
    pub error UNKNOWN_DELIMITER = "unknown-delimiter" {
        cause: "A delimiter is not a single character. The delimiter separates the cells of a CSV list.",
        example: ["recipients: { file: list.csv, delimiter: \"and\" }"],
        fix: "write a single character or `tab`, or remove the key so that the delimiter is detected",
    }
    pub error UNKNOWN_CHANNEL = "unknown-channel" {
        cause: "A channel does not exist. Campaigns can use only the channels that the gateway supports.",
        example: ["channels: [{ email: { message: Hi } }]"],
        fix: "use `sms`, `viber`, `rcs`, `telegram`, `voice`, `whatsapp`, `hlr` or `call/otp`",
    }
    pub error CROWDED_ITEM = "crowded-item" {
        cause: "An item in `channels` contains two channels. Each channel must be a separate item, so that the order \
                is clear.",
        example: [
            "channels:",
            "  - sms: { signature: OlenaCo, message: Hi }",
            "    viber: { signature: OlenaCo, message: Hi }",
        ],
        fix: "start each channel with its own dash",
    }
    pub error REPEATED_CHANNEL = "repeated-channel" {
        cause: "A channel is listed twice. The gateway tries each channel only once per message.",
        example: [
            "channels:",
            "  - sms: { signature: OlenaCo, message: Hi }",
            "  - sms: { signature: OlenaCo, message: \"Hi again\" }",
        ],
        fix: "remove one of the two, or send the second message in a separate campaign",
    }
    pub error STANDS_ALONE = "stands-alone" {
        cause: "A lookup or call must be the only channel. `hlr` and `call/otp` cannot be combined with other \
            channels.",
        example: ["channels:", "  - hlr", "  - sms: { signature: OlenaCo, message: Hi }"],
        fix: "write a separate campaign for the lookup or the verification call",
    }
    pub error SHARES = "shares" {
        cause: "The variants' shares do not add up to 100%. Every recipient either gets one variant or is in the \
                holdout.",
        example: ["variants: { short: { share: 50% }, long: { share: 40% } }"],
        fix: "change the shares so that, together with `holdout`, they add up to 100%",
    }
    pub error NOT_CARRIED = "not-carried" {
        cause: "This type of message does not support the key. The gateway would drop the value without an error.",
        example: ["operation: pipeline", "channels: [{ sms: { signature: OlenaCo, message: Hi, lifetime: 1h } }]"],
        fix: "remove the key, or use a channel combination that supports it",
    }
    pub error SHORT_LINK = "short-link" {
        cause: "Channels have different values for `short_link`. The gateway has only one setting for the whole \
                message.",
        example: [
            "channels:",
            "  - viber: { signature: OlenaCo, message: Hi, short_link: true }",
            "  - sms: { signature: OlenaCo, message: Hi, short_link: false }",
        ],
        fix: "set `short_link` to the same value in all channels",
    }
    pub error FIELD_COLLISION = "field-collision" {
        cause: "A property in `fields` is already set by a key. The gateway would receive it twice.",
        example: ["channels: [{ sms: { signature: OlenaCo, message: Hi, fields: { sms_message: Hello } } }]"],
        fix: "use the channel's own key; use `fields` only for properties that have no key",
    }
    pub error VIBER_TYPE = "viber-type" {
        cause: "The keys do not match the Viber message type. Text, image, button and carousel messages need \
                different keys.",
        example: ["channels: [{ viber: { signature: OlenaCo, message: Hi, image: \"https://a.example/a.png\" } }]"],
        fix: "add or remove the key that the finding names, or change `type`",
    }
    pub error MANDATORY_MARKETING = "mandatory-marketing" {
        cause: "Marketing messages are marked as mandatory. Only service messages can be sent to recipients who opted out.",
        example: ["purpose: marketing", "mandatory: true"],
        fix: "remove `mandatory: true`, or write `purpose: service` if the messages contain no marketing",
    }
    pub error NEVER_RESENT = "never-resent" {
        cause: "This campaign must not resend messages in doubt. A second code or call could do harm, and the first \
                message might still be waiting in the asynchronous queue.",
        example: ["endpoint: async", "delivery: { on_in_doubt: resend_if_not_found }"],
        fix: "write `on_in_doubt: hold`, and use `campaign resolve` to decide what happens to rows in doubt",
    }
    pub error NOTIFY = "notify" {
        cause: "`notify` is incomplete or contradictory. It needs exactly one way to send a notification.",
        example: ["notify: { when: [finished] }"],
        fix: "set `url` with `preset` or `body`, or set `command`",
    }
    pub note NOTIFY_COMMAND = "notify-command" {
        cause: "Assistants cannot run `notify.command`. Otherwise, they could run any program by adding it to the campaign file.",
        example: ["notify: { command: [notify-send, \"{{ text }}\"] }     # opened by an assistant"],
        fix: "use `notify: { url: … }`, or `policy: { notify: { command: … } }` in the gateway profile",
    }
    pub error LOOKS_LIKE_A_FILE = "looks-like-a-file" {
        cause: "A message looks like a file name. The name itself would be sent as the message.",
        example: ["message: welcome.sms.txt"],
        fix: "to send the contents of the file, write `message: { file: welcome.sms.txt }`",
    }
    pub error TEXT_FILE = "text-file" {
        cause: "A text file cannot be found or used. It must be in the same folder as the campaign file or in \
                `templates/`.",
        example: ["message: { file: no-such-text.txt }"],
        fix: "check the file name, and make sure that the file is in one of these folders",
    }
    pub error EMPTY_TEXT = "empty-text" {
        cause: "A message is empty. The gateway would reject it, or charge for an empty message.",
        example: ["message: \"  \""],
        fix: "write the message text",
    }
    pub warning SINGLE_BRACES = "single-braces" {
        cause: "A name in single braces would be sent literally. Recipients would see `{first_name}`.",
        example: ["message: \"Hi {first_name}!\""],
        fix: "write `{{ first_name }}` to insert the recipient's value",
    }
    pub warning FOREIGN_PLACEHOLDER = "foreign-placeholder" {
        cause: "An unsupported placeholder would be sent as is. Other programs use placeholders such as `%name%`, \
            `[name]`, `<name>`, `#name#`, `*|NAME|*` and `${name}`.",
        example: ["message: \"Hi %first_name%!\""],
        fix: "write `{{ first_name }}` to insert the recipient's value",
    }
    pub error NAME_CLASH = "name-clash" {
        cause: "Two values have the same name. Messages could show the wrong value.",
        example: ["recipients: { file: list.csv, columns: { shop: code } }", "vars: { shop: \"Olena & Co\" }"],
        fix: "rename one of them: the column under `columns`, the constant or the table",
    }
    pub error VARIABLE_NAME = "variable-name" {
        cause: "A name cannot be used in templates. It must consist of Latin letters, digits and `_`, and must not be \
                a keyword of the template language.",
        example: ["vars: { \"Ім'я\": Olena }"],
        fix: "choose another name, such as `first_name`",
    }
    pub error TEMPLATE_IN_CONSTANT = "template-in-constant" {
        cause: "A constant contains a template. Constants are inserted as they are, so recipients would see the \
                braces.",
        example: ["vars: { greeting: \"Hello, {{ first_name }}\" }"],
        fix: "move the template into the messages that use the constant",
    }
}

define_rules! {
    TEMPLATES:
    pub error TEXT_SYNTAX = "text-syntax" {
        cause: "A message is not a valid template. It cannot be rendered.",
        example: ["message: \"Hi {{ first_name }!\""],
        fix: "close every `{{ … }}` and `{% … %}`, and check names and quotes",
    }
    pub error TEXT_FAILS = "text-fails" {
        cause: "A template fails for all recipients. No messages can be sent.",
        example: ["message: \"{% if code > 5 %}Thank you!{% endif %}\"     # `code` is text"],
        fix: "correct the part of the template that the finding shows, for example `code | int > 5`",
    }
    pub error TEXT_TOO_LONG = "text-too-long" {
        cause: "A message is too long for any channel. This is often caused by a missing quote.",
        example: ["message: { file: catalogue.txt }            # 200 KiB"],
        fix: "look for a missing quote, or shorten the message",
    }
    pub error TEXT_REFUSED = "text-refused" {
        cause: "The gateway charges for this message but drops it. Recipients would never see it.",
        example: ["channels: [{ telegram: { message: \"12345678901\" } }]     # more than 8 digits"],
        fix: "keep the message within the limits of its channel",
    }
    pub error UNKNOWN_VARIABLE = "unknown-variable" {
        cause: "A template uses a name that does not exist. Every message would have a gap.",
        example: ["message: \"Hi, {{ frst_name }}!\""],
        fix: "correct the name, add the column to the list, or add the constant to `vars`",
    }
    pub error UNKNOWN_COLUMN = "unknown-column" {
        cause: "A template uses a column that does not exist. Every message would have a gap.",
        example: ["message: \"Hi, {{ recipient['First nme'] }}!\""],
        fix: "write the header exactly as in the list",
    }
    pub error DATA_LOOKUP = "data-lookup" {
        cause: "A template uses a table without selecting a value. The message would show the whole table, or fail.",
        example: ["data: { stores: { file: stores.csv, key: city } }", "message: \"Our shop: {{ stores }}\""],
        fix: "write `{{ stores[city].address }}`, where `stores` is the table, `city` is the list column that selects \
              the row, and `address` is the table column",
    }
    pub error CONDITION = "condition" {
        cause: "A condition treats a cell as a number or boolean. Cells are always text, so the condition would select \
            everyone or no one.",
        example: ["recipients: { file: list.csv, where: code == 5 }"],
        fix: "compare the cell with text, for example `code == \"5\"`, or convert it: `code | int == 5`",
    }
    pub error UNKNOWN_FILTER = "unknown-filter" {
        cause: "A template uses a filter that does not exist. Only filters that make sense in a message are \
                available.",
        example: ["message: \"Hi, {{ first_name | captalize }}!\""],
        fix: "use one of the filters listed in the finding",
    }
    pub error UNKNOWN_FUNCTION = "unknown-function" {
        cause: "A template uses a function that does not exist. Only functions that make sense in a message are \
                available.",
        example: ["message: \"Today is {{ now() }}\""],
        fix: "use the replacement suggested in the finding, such as `{{ today }}` for the date",
    }
    pub error UNKNOWN_TEST = "unknown-test" {
        cause: "A template uses a test that does not exist. Only tests that make sense in a message are available.",
        example: ["message: \"Hi{% if first_name is filled %}, {{ first_name }}{% endif %}!\""],
        fix: "use one of the tests listed in the finding",
    }
    pub error UNKNOWN_BLOCK = "unknown-block" {
        cause: "A template defines a block that its parent lacks. The block's content would never be sent.",
        example: [
            "sale.txt: {% extends \"base.txt\" %}",
            "          {% block ofer %}-20%{% endblock %}",
            "base.txt: {% block offer %}{% endblock %}",
        ],
        fix: "correct the block name, or remove the block",
    }
    pub error UNSUPPORTED = "unsupported" {
        cause: "Messages do not support this template feature.",
        example: ["message: \"{{ [name for name in first_name] }}\""],
        fix: "rewrite the message with `for`, `if`, `set` or `include`",
    }
    pub error MISSING_INCLUDE = "missing-include" {
        cause: "An included file cannot be found. It must be in the same folder as the campaign file or in \
                `templates/`.",
        example: ["message: \"Hi! {% include 'footr.txt' %}\""],
        fix: "check the file name",
    }
    pub error INCLUDE_CYCLE = "include-cycle" {
        cause: "A template includes itself. The message would never end.",
        example: ["sale.txt: Hi! {% include \"sale.txt\" %}"],
        fix: "remove one of the includes",
    }
    pub error WHOLE_RECIPIENT = "whole-recipient" {
        cause: "A template inserts the whole row. The message would show columns that are not meant for the \
                recipient.",
        example: ["message: \"Hi, {{ recipient }}!\""],
        fix: "name one column: `{{ first_name }}` or `{{ recipient[\"First name\"] }}`",
    }
}
