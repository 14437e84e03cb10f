//! Rules for files that people write: reading them, YAML, keys and their values.

use super::{Rule, RuleText};

rules! {
    FILES:
    error FILE_MISSING = "file-missing" {
        cause: "A file does not exist. Paths in a campaign file are relative to that file, not to your current \
                folder.",
        example: ["the command names autum-sale.yaml, but the file is called autumn-sale.yaml"],
        fix: "check the spelling and the folder, for example with `ls`",
    }
    error FILE_UNREADABLE = "file-unreadable" {
        cause: "A file cannot be opened or read. It might be a folder, or you might not have permission to read \
                it.",
        example: ["autumn-sale.yaml is readable only by root"],
        fix: "check the path, and give your user read permission: `chmod u+r FILE`",
    }
    error FILE_TOO_LARGE = "file-too-large" {
        cause: "A configuration file is larger than 1 MiB. Campaigns, profiles and scenarios are small, so this is \
                probably the wrong file.",
        example: ["clients.yaml is a 40 MiB export of the recipient list"],
        fix: "use the campaign file; keep recipients in a CSV file or workbook, and name it under \
              `recipients.file`",
    }
    error FILE_ENCODING = "file-encoding" {
        cause: "A file is not valid UTF-8. In any other encoding, non-ASCII letters would be garbled in messages.",
        example: ["$ file autumn-sale.yaml", "autumn-sale.yaml: Non-ISO extended-ASCII text"],
        fix: "save the file as UTF-8, or convert it: `iconv -f windows-1251 -t utf-8 OLD > NEW`",
    }
    error FILE_EMPTY = "file-empty" {
        cause: "A file has no content, or only comments.",
        example: ["# autumn-sale.yaml", "# to do"],
        fix: "fill in the file, or run `campaign init NAME` to create a complete campaign as a starting point",
    }
    error FILE_TOO_COMPLEX = "file-too-complex" {
        cause: "A file is nested too deeply or has too many aliases. Reading it could exhaust memory, so it is \
                rejected.",
        example: ["vars: { a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]] }"],
        fix: "write the values out instead of using anchors and aliases, and check the indentation",
    }
    error MORE_FINDINGS = "more-findings" {
        cause: "Only the first 100 findings in a file are shown. The others are only counted, but they can still \
                stop the run.",
        example: ["100 findings in autumn-sale.yaml, and 402 more that are not shown"],
        fix: "fix the findings that are shown, then run `campaign check` again",
    }
}

rules! {
    YAML:
    error YAML_TAB = "yaml-tab" {
        cause: "A line is indented with a tab. YAML allows only spaces.",
        example: ["delivery:", "\trate: 10/s                              # the indentation is a tab"],
        fix: "indent with spaces: as many as the neighbouring lines, or two more than the key above",
    }
    error YAML_QUOTE = "yaml-quote" {
        cause: "A value needs quotes, or its quotes are wrong. Characters such as `:`, `*`, `@` or `|` have a special \
                meaning in YAML.",
        example: ["message: Hi: there"],
        fix: "put the whole text in quotes: `\"Hi: there\"`",
    }
    warning TYPOGRAPHIC_QUOTES = "typographic-quotes" {
        cause: "A value is in typographic quotes. YAML does not treat them as quotes, so recipients would see \
                them.",
        example: ["message: “Hi, there”"],
        fix: "use `\"` at both ends; to keep “ and ” in the message, enclose the whole text in `\"`",
    }
    error YAML_SYNTAX = "yaml-syntax" {
        cause: "A line is not valid YAML. The file cannot be read.",
        example: ["recipients:", "  file:list.csv"],
        fix: "look for a missing space after `:`, a missing quote or a missing bracket on this line or the line above",
    }
    error YAML_INDENTATION = "yaml-indentation" {
        cause: "A line has the wrong indentation. Keys at the same level must start in the same column, and their \
                content must be indented further.",
        example: ["delivery:", "    rate: 10/s", "  batch: 50"],
        fix: "align the keys that belong together",
    }
    error YAML_DOCUMENTS = "yaml-documents" {
        cause: "A file contains a second document after `---`. The second document would be ignored.",
        example: ["timezone: Europe/Kyiv", "---"],
        fix: "remove the `---` line",
    }
    error YAML_DUPLICATE_KEY = "yaml-duplicate-key" {
        cause: "A key is set twice. YAML would silently use only one of the values.",
        example: ["delivery: { rate: 10/s, rate: 20/s }"],
        fix: "remove one of the two",
    }
    error YAML_MERGE = "yaml-merge" {
        cause: "YAML merge keys (`<<`) are not supported.",
        example: ["delivery: { <<: { rate: 10/s } }"],
        fix: "write out each key instead",
    }
    error YAML_KEY = "yaml-key" {
        cause: "A key is not a plain name.",
        example: ["delivery: { [rate]: 10/s }"],
        fix: "write `key: value`; if text contains `:` or braces, put it in quotes",
    }
    error YAML_ALIAS = "yaml-alias" {
        cause: "A YAML alias contains itself. The value would never end.",
        example: ["vars: &all { greeting: *all }"],
        fix: "write out the value instead",
    }
    error YAML_TAG = "yaml-tag" {
        cause: "A value starts with `!`, a YAML tag. The message would lose its first word.",
        example: ["message: !Important news"],
        fix: "put the whole text in quotes: `\"!Important news\"`",
    }
    error YAML_ANCHOR = "yaml-anchor" {
        cause: "A value starts with `&`, a YAML anchor. The message would lose its first word.",
        example: ["message: &Co says hi"],
        fix: "put the whole text in quotes: `\"&Co says hi\"`",
    }
    error UNQUOTED_TEMPLATE = "unquoted-template" {
        cause: "A value starts with `{{` but is not in quotes. YAML reads it as a map instead of text.",
        example: ["message: {{ first_name }}, hi!"],
        fix: "put the whole text in quotes: `\"{{ first_name }}, hi!\"`",
    }
    error CUT_TEXT = "cut-text" {
        cause: "` #` starts a comment in unquoted text. YAML cuts the text off there, so only part of it would be \
                used.",
        example: ["message: Sale #1 today"],
        fix: "put the whole text in quotes: `\"Sale #1 today\"`; a comment can follow the closing quote",
    }
}

rules! {
    KEYS:
    error UNKNOWN_KEY = "unknown-key" {
        cause: "A key is unknown. If the key were ignored, your setting would have no effect.",
        example: ["delivery: { rte: 10/s }"],
        fix: "correct the spelling (see the suggestion in the finding), move the key to where it belongs, or remove \
              it",
    }
    error MISSING_KEY = "missing-key" {
        cause: "A required key is missing. It has no default.",
        example: ["channels: [{ sms: { message: \"Hi!\" } }]     # no signature"],
        fix: "add the key that the finding names",
    }
    error ONE_OF_TWO = "one-of-two" {
        cause: "Two mutually exclusive keys are both set. It is unclear which one applies.",
        example: ["recipients: { file: list.csv, url: \"https://crm.example/list.csv\" }"],
        fix: "remove one of the two keys",
    }
    error WRONG_TYPE = "wrong-type" {
        cause: "A value has the wrong type. The key expects text, a number, a list or a map.",
        example: ["delivery: { rate: 10 }                      # a rate needs a unit"],
        fix: "write the value as shown in the finding, for example `rate: 10/s`",
    }
    error OUT_OF_RANGE = "out-of-range" {
        cause: "A number or duration is out of range. It is probably a typo, and the gateway might reject it.",
        example: ["delivery: { batch: 0 }"],
        fix: "use a value within the range shown in the finding",
    }
    error UNKNOWN_VALUE = "unknown-value" {
        cause: "A value is not one of the allowed words.",
        example: ["recipients: { file: list.csv, duplicates: skpi }"],
        fix: "use one of the words listed in the finding",
    }
    error EMPTY_VALUE = "empty-value" {
        cause: "A key has no value. Leaving the value empty is not the same as omitting the key.",
        example: ["timezone:"],
        fix: "write the value, or remove the key",
    }
    error SECRET = "secret" {
        cause: "A secret is written in the file itself. It would be copied, shared and committed with the file.",
        example: ["notify: { url: \"https://hooks.example/T0K3N\", preset: slack }"],
        fix: "specify where the secret is stored: `{ env: NAME }` or `{ file: PATH }`",
    }
}
