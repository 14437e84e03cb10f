//! Rules for files that users write (reading, YAML, keys and values) and for recipient lists.
//!
//! Messages are never sent to a damaged list.

define_rules! {
    FILES:
    pub error FILE_MISSING = "file-missing" {
        cause: "A file does not exist. Paths in a campaign file are relative to that file, not to your current \
                folder.",
        example: ["the command names autum-sale.yaml, but the file is called autumn-sale.yaml"],
        fix: "check the spelling and the folder, for example with `ls`",
    }
    pub error FILE_UNREADABLE = "file-unreadable" {
        cause: "A file cannot be opened or read. It might be a folder, or you might not have permission to read \
                it.",
        example: ["autumn-sale.yaml is readable only by root"],
        fix: "check the path, and give your user read permission: `chmod u+r FILE`",
    }
    pub error FILE_TOO_LARGE = "file-too-large" {
        cause: "A configuration file is larger than 1 MiB. Campaigns, profiles and scenarios are small, so this is \
                probably the wrong file.",
        example: ["clients.yaml is a 40 MiB export of the recipient list"],
        fix: "use the campaign file; keep recipients in a CSV file or workbook, and name it under \
              `recipients.file`",
    }
    pub error FILE_ENCODING = "file-encoding" {
        cause: "A file is not valid UTF-8. In any other encoding, non-ASCII letters would be garbled in messages.",
        example: ["$ file autumn-sale.yaml", "autumn-sale.yaml: Non-ISO extended-ASCII text"],
        fix: "save the file as UTF-8, or convert it: `iconv -f windows-1251 -t utf-8 OLD > NEW`",
    }
    pub error FILE_EMPTY = "file-empty" {
        cause: "A file has no content, or only comments.",
        example: ["# autumn-sale.yaml", "# to do"],
        fix: "fill in the file, or run `campaign init NAME` to create a complete campaign as a starting point",
    }
    pub error FILE_TOO_COMPLEX = "file-too-complex" {
        cause: "A file is nested too deeply or has too many aliases. Reading it could exhaust memory, so it is \
                rejected.",
        example: ["vars: { a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]] }"],
        fix: "write the values out instead of using anchors and aliases, and check the indentation",
    }
    pub error MORE_FINDINGS = "more-findings" {
        cause: "Only the first 100 findings in a file are shown. The others are only counted, but they can still \
                stop the run.",
        example: ["100 findings in autumn-sale.yaml, and 402 more that are not shown"],
        fix: "fix the findings that are shown, then run `campaign check` again",
    }
}

define_rules! {
    YAML:
    pub error YAML_TAB = "yaml-tab" {
        cause: "A line is indented with a tab. YAML allows only spaces.",
        example: ["delivery:", "\trate: 10/s                              # the indentation is a tab"],
        fix: "indent with spaces: as many as the neighbouring lines, or two more than the key above",
    }
    pub error YAML_QUOTE = "yaml-quote" {
        cause: "A value needs quotes, or its quotes are wrong. Characters such as `:`, `*`, `@` or `|` have a special \
                meaning in YAML.",
        example: ["message: Hi: there"],
        fix: "put the whole text in quotes: `\"Hi: there\"`",
    }
    pub warning TYPOGRAPHIC_QUOTES = "typographic-quotes" {
        cause: "A value is in typographic quotes. YAML does not treat them as quotes, so recipients would see \
                them.",
        example: ["message: “Hi, there”"],
        fix: "use `\"` at both ends; to keep “ and ” in the message, enclose the whole text in `\"`",
    }
    pub error YAML_SYNTAX = "yaml-syntax" {
        cause: "A line is not valid YAML. The file cannot be read.",
        example: ["recipients:", "  file:list.csv"],
        fix: "look for a missing space after `:`, a missing quote or a missing bracket on this line or the line above",
    }
    pub error YAML_INDENTATION = "yaml-indentation" {
        cause: "A line has the wrong indentation. Keys at the same level must start in the same column, and their \
                content must be indented further.",
        example: ["delivery:", "    rate: 10/s", "  batch: 50"],
        fix: "align the keys that belong together",
    }
    pub error YAML_DOCUMENTS = "yaml-documents" {
        cause: "A file contains a second document after `---`. The second document would be ignored.",
        example: ["timezone: Europe/Kyiv", "---"],
        fix: "remove the `---` line",
    }
    pub error YAML_DUPLICATE_KEY = "yaml-duplicate-key" {
        cause: "A key is set twice. YAML would silently use only one of the values.",
        example: ["delivery: { rate: 10/s, rate: 20/s }"],
        fix: "remove one of the two",
    }
    pub error YAML_MERGE = "yaml-merge" {
        cause: "YAML merge keys (`<<`) are not supported.",
        example: ["delivery: { <<: { rate: 10/s } }"],
        fix: "write out each key instead",
    }
    pub error YAML_KEY = "yaml-key" {
        cause: "A key is not a plain name.",
        example: ["delivery: { [rate]: 10/s }"],
        fix: "write `key: value`; if text contains `:` or braces, put it in quotes",
    }
    pub error YAML_ALIAS = "yaml-alias" {
        cause: "A YAML alias contains itself. The value would never end.",
        example: ["vars: &all { greeting: *all }"],
        fix: "write out the value instead",
    }
    pub error YAML_TAG = "yaml-tag" {
        cause: "A value starts with `!`, a YAML tag. The message would lose its first word.",
        example: ["message: !Important news"],
        fix: "put the whole text in quotes: `\"!Important news\"`",
    }
    pub error YAML_ANCHOR = "yaml-anchor" {
        cause: "A value starts with `&`, a YAML anchor. The message would lose its first word.",
        example: ["message: &Co says hi"],
        fix: "put the whole text in quotes: `\"&Co says hi\"`",
    }
    pub error UNQUOTED_TEMPLATE = "unquoted-template" {
        cause: "A value starts with `{{` but is not in quotes. YAML reads it as a map instead of text.",
        example: ["message: {{ first_name }}, hi!"],
        fix: "put the whole text in quotes: `\"{{ first_name }}, hi!\"`",
    }
    pub error CUT_TEXT = "cut-text" {
        cause: "` #` starts a comment in unquoted text. YAML cuts the text off there, so only part of it would be \
                used.",
        example: ["message: Sale #1 today"],
        fix: "put the whole text in quotes: `\"Sale #1 today\"`; a comment can follow the closing quote",
    }
}

define_rules! {
    KEYS:
    pub error UNKNOWN_KEY = "unknown-key" {
        cause: "A key is unknown. If the key were ignored, your setting would have no effect.",
        example: ["delivery: { rte: 10/s }"],
        fix: "correct the spelling (see the suggestion in the finding), move the key to where it belongs, or remove \
              it",
    }
    pub error MISSING_KEY = "missing-key" {
        cause: "A required key is missing. It has no default.",
        example: ["channels: [{ sms: { message: \"Hi!\" } }]     # no signature"],
        fix: "add the key that the finding names",
    }
    pub error ONE_OF_TWO = "one-of-two" {
        cause: "Two mutually exclusive keys are both set. It is unclear which one applies.",
        example: ["recipients: { file: list.csv, url: \"https://crm.example/list.csv\" }"],
        fix: "remove one of the two keys",
    }
    pub error WRONG_TYPE = "wrong-type" {
        cause: "A value has the wrong type. The key expects text, a number, a list or a map.",
        example: ["delivery: { rate: 10 }                      # a rate needs a unit"],
        fix: "write the value as shown in the finding, for example `rate: 10/s`",
    }
    pub error OUT_OF_RANGE = "out-of-range" {
        cause: "A number or duration is out of range. It is probably a typo, and the gateway might reject it.",
        example: ["delivery: { batch: 0 }"],
        fix: "use a value within the range shown in the finding",
    }
    pub error UNKNOWN_VALUE = "unknown-value" {
        cause: "A value is not one of the allowed words.",
        example: ["recipients: { file: list.csv, duplicates: skpi }"],
        fix: "use one of the words listed in the finding",
    }
    pub error EMPTY_VALUE = "empty-value" {
        cause: "A key has no value. Leaving the value empty is not the same as omitting the key.",
        example: ["timezone:"],
        fix: "write the value, or remove the key",
    }
    pub error SECRET = "secret" {
        cause: "A secret is written in the file itself. It would be copied, shared and committed with the file.",
        example: ["notify: { url: \"https://hooks.example/T0K3N\", preset: slack }"],
        fix: "specify where the secret is stored: `{ env: NAME }` or `{ file: PATH }`",
    }
}

define_rules! {
    LIST:
    pub error RECIPIENTS_UNREADABLE = "recipients-unreadable" {
        cause: "The list cannot be read completely. Messages are never sent to an incomplete list.",
        example: ["list.csv is on a network drive that was disconnected"],
        fix: "check the file and its permissions",
    }
    pub error RECIPIENTS_SOURCE = "recipients-source" {
        cause: "The list could not be fetched completely. Messages are never sent to an incomplete list.",
        example: ["recipients: { url: \"https://crm.example/list.csv\" }     # responds with status 500"],
        fix: "fix the problem that the finding reports, or use a file",
    }
    pub error SUPPRESS_FILE = "suppress-file" {
        cause: "An opt-out list cannot be read. Recipients who opted out would get messages.",
        example: ["recipients: { file: list.csv, suppress: [no-such-file.csv] }"],
        fix: "restore the file, or name its phone column; if you remove the file from `suppress`, the recipients in \
            the file will get messages",
    }
    pub warning SUPPRESS_ROW = "suppress-row" {
        cause: "An opt-out row has no valid number. The person who opted out still gets messages.",
        example: ["opt-outs.csv row 7: 38050123"],
        fix: "correct the rows listed in the finding",
    }
    pub error CONSENT = "consent" {
        cause: "It is unclear which recipients consented. Messages would reach people who did not.",
        example: ["consent: required", "recipients: { file: list.csv }     # has no `consent`"],
        fix: "under `recipients`, name the consent column, as in `consent: { column: Consent }`, or use `file` to name a consent file",
    }
    pub warning CONSENT_ROW = "consent-row" {
        cause: "A consent record has no valid number. The person is treated as not having consented.",
        example: [
            "recipients: { file: list.csv, consent: { file: consents.csv } }",
            "consents.csv: phone",
            "              380501234567",
            "              38050123",
        ],
        fix: "correct the rows listed in the finding",
    }
    pub error EXCLUDE = "exclude" {
        cause: "The run in `exclude` cannot be used. Recipients who should be excluded would get a message.",
        example: ["recipients: { file: list.csv, exclude: { run: autumn-teaser } }     # no such run"],
        fix: "name a finished run that sent messages; `campaign status` lists the runs",
    }
    pub error DATA_FILE = "data-file" {
        cause: "A data table cannot be used. Messages would have gaps or wrong values.",
        example: ["data: { stores: { file: no-such-table.csv, key: city } }"],
        fix: "correct the file, remove its duplicate keys, or name its key column under `key`",
    }
    pub error LIST_ADDRESS = "list-address" {
        cause: "The list's address is not secure. The list contains phone numbers, and the campaign file must not \
                contain secrets.",
        example: ["recipients: { url: \"http://crm.example/list.csv\" }"],
        fix: "write an `https://` address, and store secrets elsewhere: `{ env: NAME }`",
    }
    pub warning RECIPIENTS_UNSEEN = "recipients-unseen" {
        cause: "The list was not fetched. By default, `check` does not run programs or open URLs from a campaign file.",
        example: ["recipients: { command: [make-list, --csv] }"],
        fix: "if you trust the campaign file, add `--fetch`",
    }
    pub error RECIPIENTS_ENCODING = "recipients-encoding" {
        cause: "The list is not in the expected encoding. Names would be garbled in the messages.",
        example: ["recipients: { file: list.csv, encoding: utf-8 }     # saved as Windows-1251"],
        fix: "save the list as CSV in UTF-8, or name its encoding: `encoding: windows-1251`",
    }
    pub warning UNCERTAIN_ENCODING = "uncertain-encoding" {
        cause: "The encoding of the list is uncertain. With the wrong encoding, names would be garbled, and `where` \
                would select the wrong recipients.",
        example: ["recipients: { file: list.csv }     # one short word outside ASCII, saved as Windows-1251"],
        fix: "name the encoding of the list: `encoding: windows-1251`; or save the list as CSV in UTF-8",
    }
    pub error RECIPIENTS_NOT_CSV = "recipients-not-csv" {
        cause: "The list is neither CSV nor a workbook. Its content would be misread as phone numbers.",
        example: ["recipients: { file: list.pdf }"],
        fix: "save the list as a workbook (.xlsx), or as CSV in UTF-8",
    }
    pub error RECIPIENTS_KEY_MISMATCH = "recipients-form-of-another" {
        cause: "A key does not apply to this list type. It was probably meant for another file.",
        example: ["recipients: { file: list.csv, sheet: Clients }     # CSV has no sheets"],
        fix: "remove the key; the format is detected automatically",
    }
    pub error RECIPIENTS_SHEET = "recipients-sheet" {
        cause: "The workbook has no such sheet. A campaign uses only one sheet of a workbook.",
        example: ["recipients: { file: list.xlsx, sheet: Clinets }"],
        fix: "write the sheet name exactly as it appears on the tab",
    }
    pub warning RECIPIENTS_HIDDEN_ROWS = "recipients-hidden-rows" {
        cause: "The sheet has hidden rows. Recipients in hidden or filtered rows also get messages.",
        example: ["list.xlsx: rows 120 to 240 are hidden by a filter"],
        fix: "copy the visible rows to a new sheet, or delete the hidden rows",
    }
    pub warning RECIPIENTS_CELL_ERRORS = "recipients-cell-errors" {
        cause: "Formulas in the sheet have errors. Their cells contain an error instead of a value.",
        example: ["list.xlsx cell C17: #REF!"],
        fix: "correct the formulas that show an error",
    }
    pub error RECIPIENTS_EMPTY = "recipients-empty" {
        cause: "The list has no rows. No messages would be sent.",
        example: ["list.csv: phone,first_name"],
        fix: "add a row for each recipient below the header; if an empty list is fine, write `empty: ok`",
    }
    pub error RECIPIENTS_UNCLOSED_QUOTE = "recipients-unclosed-quote" {
        cause: "A quote in the list is not closed. The rows after it are read as part of the same cell.",
        example: ["list.csv: phone,first_name", "          380501234567,\"Olena", "          380671234567,Taras"],
        fix: "add the closing quote at the end of the cell, or remove the opening quote",
    }
    pub error RECIPIENTS_STRAY_QUOTE = "recipients-stray-quote" {
        cause: "There is text after a closing quote. It is unclear what the cell contains.",
        example: ["list.csv: phone,first_name", "          380501234567,\"Olena\" K"],
        fix: "to include a quote in the text, write it twice: `\"Olena \"\"Lena\"\" K\"`",
    }
    pub error RECIPIENTS_RAGGED_ROW = "recipients-ragged-row" {
        cause: "A row has too many or too few cells. Its values could be in the wrong columns.",
        example: ["list.csv: phone,first_name,code", "          380501234567,Kovalenko, Olena,NEW-126"],
        fix: "quote cells that contain the delimiter, and give every row as many cells as the header",
    }
    pub error RECIPIENTS_TOO_LARGE = "recipients-too-large" {
        cause: "A cell or row is too large. This is often caused by a missing quote.",
        example: ["list.csv row 12: an 80 KiB cell"],
        fix: "look for a missing quote in this row or the one above",
    }
    pub error RECIPIENTS_TOO_MANY_COLUMNS = "recipients-too-many-columns" {
        cause: "The header has too many columns. This is probably the wrong file.",
        example: ["list.csv: 20,000 columns"],
        fix: "keep only the phone numbers and the columns that the messages use",
    }
    pub error RECIPIENTS_NO_HEADER = "recipients-no-header" {
        cause: "The list has no header row. The first recipient's row would be read as the column names.",
        example: ["list.csv: 380501234567,Olena", "          380671234567,Taras"],
        fix: "add a header row with the column names, such as `phone,first_name`",
    }
    pub warning RECIPIENTS_TITLE = "recipients-title" {
        cause: "The first row is probably a title. The header row below it would be read as a recipient.",
        example: [
            "recipients: { file: list.csv, columns: { phone: \"Clients 2031\" } }",
            "list.csv: Clients 2031,",
            "          phone,first_name",
            "          380501234567,Olena",
        ],
        fix: "set the header row, for example `header_row: 2`, or delete the rows above the header",
    }
    pub error RECIPIENTS_QUOTED_LINES = "recipients-quoted-lines" {
        cause: "Each line of the list is in quotes. A quoted line is read as a single cell, so there is no phone \
                column.",
        example: ["list.csv: \"phone,first_name\"", "          \"380501234567,Olena\""],
        fix: "export the list again, or remove the quotes around each line",
    }
    pub error RECIPIENTS_UNKNOWN_COLUMN = "recipients-unknown-column" {
        cause: "`columns` refers to a missing header.",
        example: ["recipients: { file: list.csv, columns: { first_name: \"Frist name\" } }"],
        fix: "write the header exactly as in the list",
    }
    pub error RECIPIENTS_DUPLICATE_COLUMN = "recipients-duplicate-column" {
        cause: "Two columns have the same name. It is unclear which value a message should use.",
        example: [
            "list.csv: phone,name,name",
            "          380501234567,Olena,Kovalenko",
            "message: \"Hi, {{ name }}!\"",
        ],
        fix: "give each column its own name",
    }
    pub error RECIPIENTS_PHONE_COLUMN = "recipients-phone-column" {
        cause: "The phone column is ambiguous. Messages could go to the wrong numbers.",
        example: ["list.csv: mobile,home", "          380501234567,380671234567"],
        fix: "name the phone column: `columns: { phone: \"…\" }`",
    }
}
