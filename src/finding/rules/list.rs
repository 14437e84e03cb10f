//! Lists of recipients that cannot be read for sure: what is damaged is not sent to.

use super::Rule;

rules! {
    error RECIPIENTS_UNREADABLE = "recipients-unreadable":
        "A list that breaks off would be sent to in part.", "Check the file and its permissions.";
    error RECIPIENTS_ENCODING = "recipients-encoding":
        "A list is read as UTF-8; in another encoding names would arrive as garbage.",
        "Save it as CSV in UTF-8.";
    error RECIPIENTS_NOT_CSV = "recipients-not-csv":
        "Another format read as CSV would give wrong numbers.", "Save it as CSV in UTF-8.";
    error RECIPIENTS_EMPTY = "recipients-empty":
        "Nobody would get anything.", "Add a row for each recipient below the header.";
    error RECIPIENTS_UNCLOSED_QUOTE = "recipients-unclosed-quote":
        "A quote that is not closed swallows the rows behind it.", "Close it at the end of its cell, or remove it.";
    error RECIPIENTS_STRAY_QUOTE = "recipients-stray-quote":
        "Behind the closing quote of a cell nothing can follow, so the cell may be another than it seems.",
        "Write a quote that is part of the text twice.";
    error RECIPIENTS_RAGGED_ROW = "recipients-ragged-row":
        "In a row with more or fewer cells than the header, values may stand under wrong names.",
        "Quote cells that hold the delimiter, and give every row as many cells as the header.";
    error RECIPIENTS_TOO_LARGE = "recipients-too-large":
        "No recipient's cell or row is that large, so the file is another one or is damaged.",
        "Look for a missing quote in or above that line.";
    error RECIPIENTS_TOO_MANY_COLUMNS = "recipients-too-many-columns":
        "A header of that many columns is that of another file.", "Keep the numbers and what the texts use.";
    error RECIPIENTS_NO_HEADER = "recipients-no-header":
        "Without a header the first recipient is taken for the names of the columns.",
        "Put a row with names above, and nothing above that row.";
    error RECIPIENTS_UNKNOWN_COLUMN = "recipients-unknown-column":
        "`columns` names a header that the list does not have.", "Write the header as it stands in the list.";
    error RECIPIENTS_DUPLICATE_COLUMN = "recipients-duplicate-column":
        "Two columns of one name, or two names for one column, leave open which value is meant.",
        "Give each column one name.";
    error RECIPIENTS_PHONE_COLUMN = "recipients-phone-column":
        "The column of the numbers has to be known for sure.", "Name it: `columns: { phone: \"…\" }`.";
}
