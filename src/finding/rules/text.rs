//! Texts, as templates and as what a channel takes.

use super::Rule;

rules! {
    error TEXT_SYNTAX = "text-syntax":
        "A text that cannot be read as a template cannot be filled.", "Close every tag, and check names and quotes.";
    error TEXT_FAILS = "text-fails":
        "A text that fails for everybody gives nobody a message.", "Mend the text where it is shown.";
    error TEXT_TOO_LONG = "text-too-long":
        "No channel takes a message of that size.", "Shorten it, and look for a missing quote.";
    error TEXT_REFUSED = "text-refused":
        "The gateway takes, charges and then drops texts that no phone will show.",
        "Bring the text within the limits of its channel.";
    error UNKNOWN_VARIABLE = "unknown-variable":
        "A name that nothing has would leave a hole in every message.",
        "Correct the name, or add the column or the var.";
    error UNKNOWN_COLUMN = "unknown-column":
        "A header that the list does not have would leave a hole in every message.",
        "Write the header as it stands in the list.";
    error DATA_LOOKUP = "data-lookup":
        "A table is looked into by a row and a column; anything else would show all of it, or nothing.",
        "Write `stores[city].address`: the table, the column of the list that says which row, the column of the table.";
    error CONDITION = "condition":
        "A condition that takes a cell for something else than a text means everybody, or nobody.",
        "Compare with the text that stands in the list, or write `NAME | int` for a number.";
    error UNKNOWN_FILTER = "unknown-filter":
        "Only some filters make sense in a message.", "Use one of those that are named.";
    error UNKNOWN_FUNCTION = "unknown-function":
        "Only some functions make sense in a message.", "Use one of those that are named.";
    error UNKNOWN_TEST = "unknown-test":
        "Only some tests make sense in a message.", "Use one of those that are named.";
    error UNKNOWN_BLOCK = "unknown-block":
        "A block that no parent has would be seen by nobody.", "Correct its name, or remove it.";
    error UNSUPPORTED = "unsupported":
        "Messages do not have everything that the template language has.", "Write it without that.";
    error MISSING_INCLUDE = "missing-include":
        "A text that is included has to be beside the campaign or in `templates/`.", "Check its name.";
    error INCLUDE_CYCLE = "include-cycle":
        "A text that includes itself has no end.", "Remove one of the inclusions.";
    error WHOLE_RECIPIENT = "whole-recipient":
        "The whole recipient printed into a message shows columns that are not meant for it.",
        "Name the column that is meant.";
}
