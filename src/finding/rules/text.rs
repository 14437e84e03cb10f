//! Rules for texts: templates and the limits of channels.

use super::{Rule, RuleText};

rules! {
    error TEXT_SYNTAX = "text-syntax" {
        cause: "A message is not a valid template. It cannot be filled in.",
        example: ["message: \"Hi {{ first_name }!\""],
        fix: "close every `{{ … }}` and `{% … %}`, and check names and quotes",
    }
    error TEXT_FAILS = "text-fails" {
        cause: "A template fails for all recipients. No messages can be sent.",
        example: ["message: \"{% if code > 5 %}Thank you!{% endif %}\"     # `code` is text"],
        fix: "correct the part of the template that the finding shows, for example `code | int > 5`",
    }
    error TEXT_TOO_LONG = "text-too-long" {
        cause: "A message is too long for any channel. This is often caused by a missing quote.",
        example: ["message: { file: catalogue.txt }            # 200 KiB"],
        fix: "shorten the message, and look for a missing quote",
    }
    error TEXT_REFUSED = "text-refused" {
        cause: "The gateway charges for this message but drops it. Recipients would never see it.",
        example: ["channels: [{ telegram: { message: \"12345678901\" } }]     # more than 8 digits"],
        fix: "keep the message within the limits of its channel",
    }
    error UNKNOWN_VARIABLE = "unknown-variable" {
        cause: "A template uses a name that does not exist. Every message would have a gap.",
        example: ["message: \"Hi, {{ frst_name }}!\""],
        fix: "correct the name, or add the column to the list or the constant to `vars`",
    }
    error UNKNOWN_COLUMN = "unknown-column" {
        cause: "A template uses a column that does not exist. Every message would have a gap.",
        example: ["message: \"Hi, {{ recipient['First nme'] }}!\""],
        fix: "write the header exactly as in the list",
    }
    error DATA_LOOKUP = "data-lookup" {
        cause: "A template uses a table without a row or column. The message would show the whole table, or fail.",
        example: ["data: { stores: { file: stores.csv, key: city } }", "message: \"Our shop: {{ stores }}\""],
        fix: "write `{{ stores[city].address }}`, where `stores` is the table, `city` is the list column that selects \
              the row, and `address` is the table column",
    }
    error CONDITION = "condition" {
        cause: "A condition treats a cell as a number or boolean. Cells are always text, so the condition would select \
            everyone or no one.",
        example: ["recipients: { file: list.csv, where: code == 5 }"],
        fix: "compare with text, for example `code == \"5\"`, or convert the cell: `code | int == 5`",
    }
    error UNKNOWN_FILTER = "unknown-filter" {
        cause: "A template uses a filter that does not exist. Only filters that make sense in a message are \
                available.",
        example: ["message: \"Hi, {{ first_name | captalize }}!\""],
        fix: "use one of the filters listed in the finding",
    }
    error UNKNOWN_FUNCTION = "unknown-function" {
        cause: "A template uses a function that does not exist. Only functions that make sense in a message are \
                available.",
        example: ["message: \"Today is {{ now() }}\""],
        fix: "use the replacement suggested in the finding, such as `{{ today }}` for the date",
    }
    error UNKNOWN_TEST = "unknown-test" {
        cause: "A template uses a test that does not exist. Only tests that make sense in a message are available.",
        example: ["message: \"Hi{% if first_name is filled %}, {{ first_name }}{% endif %}!\""],
        fix: "use one of the tests listed in the finding",
    }
    error UNKNOWN_BLOCK = "unknown-block" {
        cause: "The parent template has no such block. Its content would never be sent.",
        example: [
            "sale.txt: {% extends \"base.txt\" %}",
            "          {% block ofer %}-20%{% endblock %}",
            "base.txt: {% block offer %}{% endblock %}",
        ],
        fix: "correct the name of the block, or remove it",
    }
    error UNSUPPORTED = "unsupported" {
        cause: "Messages do not support this template feature.",
        example: ["message: \"{{ [name for name in first_name] }}\""],
        fix: "rewrite the message with `for`, `if`, `set` or `include`",
    }
    error MISSING_INCLUDE = "missing-include" {
        cause: "An included file cannot be found. It must be in the folder of the campaign file or in \
                `templates/`.",
        example: ["message: \"Hi! {% include 'footr.txt' %}\""],
        fix: "check the file name",
    }
    error INCLUDE_CYCLE = "include-cycle" {
        cause: "A template includes itself. It would never end.",
        example: ["sale.txt: Hi! {% include \"sale.txt\" %}"],
        fix: "remove one of the includes",
    }
    error WHOLE_RECIPIENT = "whole-recipient" {
        cause: "A template inserts the whole row. The message would show columns that are not meant for the \
                recipient.",
        example: ["message: \"Hi, {{ recipient }}!\""],
        fix: "name one column: `{{ first_name }}` or `{{ recipient[\"First name\"] }}`",
    }
}
