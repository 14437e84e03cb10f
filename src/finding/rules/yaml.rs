//! Slips of YAML, some of which would send garbage.

use super::Rule;

rules! {
    error YAML_TAB = "yaml-tab":
        "YAML takes no tabs for indentation.", "Begin the line with as many spaces as those beside it, or two more than the key above.";
    error YAML_QUOTE = "yaml-quote":
        "Some characters mean something to YAML, so that a text with them is cut or read as something else.",
        "Put the whole text in quotes.";
    warning TYPOGRAPHIC_QUOTES = "typographic-quotes":
        "YAML knows the quotes of the keyboard alone; others are part of the text, and are sent.",
        "Type `\"` at both ends anew, or put the whole text in them if the others are meant.";
    error YAML_SYNTAX = "yaml-syntax":
        "A file that is not YAML cannot be read.",
        "Look for a missing quote, bracket or `: ` in the line and the one above.";
    error YAML_INDENTATION = "yaml-indentation":
        "What belongs to a key stands deeper than the key, and what stands beside it as deep.",
        "Align the lines that belong together.";
    error YAML_DOCUMENTS = "yaml-documents":
        "One file holds one document; a second one would be ignored.", "Remove the line `---`.";
    error YAML_DUPLICATE_KEY = "yaml-duplicate-key":
        "Of two equal keys YAML silently uses one.", "Keep one of them.";
    error YAML_MERGE = "yaml-merge":
        "Merging maps with `<<` is not supported.", "Write the keys out.";
    error YAML_KEY = "yaml-key":
        "What stands before `:` has to be a name.", "Write `key: value`; a text with `:` or braces needs quotes.";
    error YAML_ALIAS = "yaml-alias":
        "A value that repeats itself has no end.", "Write the value out.";
    error YAML_TAG = "yaml-tag":
        "A text that begins with `!` is read as a tag, and loses its first word.", "Put the whole text in quotes.";
    error YAML_ANCHOR = "yaml-anchor":
        "A text that begins with `&` is read as an anchor, and loses its first word.",
        "Put the whole text in quotes.";
    error UNQUOTED_TEMPLATE = "unquoted-template":
        "A text that begins with `{{` is read as a map, not as a text.", "Put the whole text in quotes.";
    error CUT_TEXT = "cut-text":
        "YAML cuts a text without quotes off at ` #`, as if a comment began, and half a text would be sent.",
        "Put the whole text in quotes; a comment may follow the closing quote.";
}
