//! Rules for YAML mistakes.

use super::{Rule, RuleText};

rules! {
    error YAML_TAB = "yaml-tab" {
        cause: "A line is indented with a tab. YAML allows only spaces.",
        example: ["delivery:", "\trate: 10/s                              # the indentation is a tab"],
        fix: "indent with spaces: as many as the neighboring lines, or two more than the key above",
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
        fix: "look for a missing space after `:`, a missing quote or a missing bracket in this line or the line \
              above",
    }
    error YAML_INDENTATION = "yaml-indentation" {
        cause: "A line has the wrong indentation. Keys on the same level start in the same column, and their content \
                is indented further.",
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
        cause: "A value starts with `!`, a tag in YAML. The message would lose its first word.",
        example: ["message: !Important news"],
        fix: "put the whole text in quotes: `\"!Important news\"`",
    }
    error YAML_ANCHOR = "yaml-anchor" {
        cause: "A value starts with `&`, an anchor in YAML. The message would lose its first \
                word.",
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
                sent.",
        example: ["message: Sale #1 today"],
        fix: "put the whole text in quotes: `\"Sale #1 today\"`; a comment can follow the closing quote",
    }
}
