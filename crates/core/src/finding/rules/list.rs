//! Rules for lists of recipients. No messages are sent to a damaged list.

use super::{Rule, RuleText};

rules! {
    LIST:
    error RECIPIENTS_UNREADABLE = "recipients-unreadable" {
        cause: "The list cannot be read completely. Messages are never sent to an incomplete list.",
        example: ["list.csv is on a network drive that was disconnected"],
        fix: "check the file and its permissions",
    }
    error RECIPIENTS_SOURCE = "recipients-source" {
        cause: "The list could not be fetched completely. Messages are never sent to an incomplete list.",
        example: ["recipients: { url: \"https://crm.example/list.csv\" }     # responds with status 500"],
        fix: "fix the problem that the finding reports, or use a file",
    }
    error SUPPRESS_FILE = "suppress-file" {
        cause: "An opt-out list cannot be read. Recipients who opted out would get messages.",
        example: ["recipients: { file: list.csv, suppress: [no-such-file.csv] }"],
        fix: "restore the file, or name its phone column; if you remove the file from `suppress`, the recipients in \
            the file will get messages",
    }
    warning SUPPRESS_ROW = "suppress-row" {
        cause: "An opt-out row has no valid number. The person who opted out still gets messages.",
        example: ["opt-outs.csv row 7: 38050123"],
        fix: "correct the rows listed in the finding",
    }
    error CONSENT = "consent" {
        cause: "It is unclear which recipients consented. Messages would reach people who did not.",
        example: ["consent: required", "recipients: { file: list.csv }     # has no `consent`"],
        fix: "under `recipients`, name the consent column, as in `consent: { column: Consent }`, or use `file` to name a consent file",
    }
    warning CONSENT_ROW = "consent-row" {
        cause: "A consent record has no valid number. The person is treated as not having consented.",
        example: [
            "recipients: { file: list.csv, consent: { file: consents.csv } }",
            "consents.csv: phone",
            "              380501234567",
            "              38050123",
        ],
        fix: "correct the rows listed in the finding",
    }
    error EXCLUDE = "exclude" {
        cause: "The run in `exclude` cannot be used. Recipients who should be excluded would get a message.",
        example: ["recipients: { file: list.csv, exclude: { run: autumn-teaser } }     # no such run"],
        fix: "name a finished run that sent messages; `campaign status` lists the runs",
    }
    error DATA_FILE = "data-file" {
        cause: "A data table cannot be used. Messages would have gaps or wrong values.",
        example: ["data: { stores: { file: no-such-table.csv, key: city } }"],
        fix: "correct the file, remove its duplicate keys, or name its key column under `key`",
    }
    error LIST_ADDRESS = "list-address" {
        cause: "The list's address is not secure. The list contains phone numbers, and the campaign file must not \
                contain secrets.",
        example: ["recipients: { url: \"http://crm.example/list.csv\" }"],
        fix: "write an `https://` address, and store secrets elsewhere: `{ env: NAME }`",
    }
    warning RECIPIENTS_UNSEEN = "recipients-unseen" {
        cause: "The list was not fetched. By default, `check` does not run programs or open URLs from a campaign file.",
        example: ["recipients: { command: [make-list, --csv] }"],
        fix: "if you trust the campaign file, add `--fetch`",
    }
    error RECIPIENTS_ENCODING = "recipients-encoding" {
        cause: "The list is not in the expected encoding. Names would be garbled in the messages.",
        example: ["recipients: { file: list.csv, encoding: utf-8 }     # saved as Windows-1251"],
        fix: "save the list as CSV in UTF-8, or name its encoding: `encoding: windows-1251`",
    }
    error RECIPIENTS_NOT_CSV = "recipients-not-csv" {
        cause: "The list is neither CSV nor a workbook. Its content would be misread as phone numbers.",
        example: ["recipients: { file: list.pdf }"],
        fix: "save the list as a workbook (.xlsx), or as CSV in UTF-8",
    }
    error RECIPIENTS_FORM_OF_ANOTHER = "recipients-form-of-another" {
        cause: "A key does not apply to this list type. It was probably meant for another file.",
        example: ["recipients: { file: list.csv, sheet: Clients }     # CSV has no sheets"],
        fix: "remove the key; the format is detected automatically",
    }
    error RECIPIENTS_SHEET = "recipients-sheet" {
        cause: "The workbook has no such sheet. A campaign uses only one sheet of a workbook.",
        example: ["recipients: { file: list.xlsx, sheet: Clinets }"],
        fix: "write the sheet name exactly as it appears on the tab",
    }
    warning RECIPIENTS_HIDDEN_ROWS = "recipients-hidden-rows" {
        cause: "The sheet has hidden rows. Recipients in hidden or filtered rows also get messages.",
        example: ["list.xlsx: rows 120 to 240 are hidden by a filter"],
        fix: "copy the visible rows to a new sheet, or delete the hidden rows",
    }
    warning RECIPIENTS_CELL_ERRORS = "recipients-cell-errors" {
        cause: "Formulas in the sheet have errors. Their cells contain an error instead of a value.",
        example: ["list.xlsx cell C17: #REF!"],
        fix: "correct the formulas that show an error",
    }
    error RECIPIENTS_EMPTY = "recipients-empty" {
        cause: "The list has no rows. No messages would be sent.",
        example: ["list.csv: phone,first_name"],
        fix: "add a row for each recipient below the header; if an empty list is fine, write `empty: ok`",
    }
    error RECIPIENTS_UNCLOSED_QUOTE = "recipients-unclosed-quote" {
        cause: "A quote in the list is not closed. The rows after it are read as part of the same cell.",
        example: ["list.csv: phone,first_name", "          380501234567,\"Olena", "          380671234567,Taras"],
        fix: "add the closing quote at the end of the cell, or remove the opening quote",
    }
    error RECIPIENTS_STRAY_QUOTE = "recipients-stray-quote" {
        cause: "There is text after a closing quote. It is unclear what the cell contains.",
        example: ["list.csv: phone,first_name", "          380501234567,\"Olena\" K"],
        fix: "to include a quote in the text, write it twice: `\"Olena \"\"Lena\"\" K\"`",
    }
    error RECIPIENTS_RAGGED_ROW = "recipients-ragged-row" {
        cause: "A row has too many or too few cells. Its values could be in the wrong columns.",
        example: ["list.csv: phone,first_name,code", "          380501234567,Kovalenko, Olena,NEW-126"],
        fix: "quote cells that contain the delimiter, and give every row as many cells as the header",
    }
    error RECIPIENTS_TOO_LARGE = "recipients-too-large" {
        cause: "A cell or row is too large. This is often caused by a missing quote.",
        example: ["list.csv row 12: an 80 KiB cell"],
        fix: "look for a missing quote in this row or the one above",
    }
    error RECIPIENTS_TOO_MANY_COLUMNS = "recipients-too-many-columns" {
        cause: "The header has too many columns. This is probably the wrong file.",
        example: ["list.csv: 20,000 columns"],
        fix: "keep only the phone numbers and the columns that the messages use",
    }
    error RECIPIENTS_NO_HEADER = "recipients-no-header" {
        cause: "The list has no header row. The first recipient's row would be read as the column names.",
        example: ["list.csv: 380501234567,Olena", "          380671234567,Taras"],
        fix: "add a header row with the column names, such as `phone,first_name`",
    }
    warning RECIPIENTS_TITLE = "recipients-title" {
        cause: "The first row is probably a title. The header row below it would be read as a recipient.",
        example: [
            "recipients: { file: list.csv, columns: { phone: \"Clients 2031\" } }",
            "list.csv: Clients 2031,",
            "          phone,first_name",
            "          380501234567,Olena",
        ],
        fix: "set the header row, for example `header_row: 2`, or delete the rows above the header",
    }
    error RECIPIENTS_QUOTED_LINES = "recipients-quoted-lines" {
        cause: "Each line of the list is in quotes. A quoted line is read as a single cell, so there is no phone \
                column.",
        example: ["list.csv: \"phone,first_name\"", "          \"380501234567,Olena\""],
        fix: "export the list again, or remove the quotes around each line",
    }
    error RECIPIENTS_UNKNOWN_COLUMN = "recipients-unknown-column" {
        cause: "`columns` refers to a missing header.",
        example: ["recipients: { file: list.csv, columns: { first_name: \"Frist name\" } }"],
        fix: "write the header exactly as in the list",
    }
    error RECIPIENTS_DUPLICATE_COLUMN = "recipients-duplicate-column" {
        cause: "Two columns have the same name. It is unclear which value a message should use.",
        example: [
            "list.csv: phone,name,name",
            "          380501234567,Olena,Kovalenko",
            "message: \"Hi, {{ name }}!\"",
        ],
        fix: "give each column its own name",
    }
    error RECIPIENTS_PHONE_COLUMN = "recipients-phone-column" {
        cause: "The phone column is ambiguous. Messages could go to the wrong numbers.",
        example: ["list.csv: mobile,home", "          380501234567,380671234567"],
        fix: "name the phone column: `columns: { phone: \"…\" }`",
    }
}
