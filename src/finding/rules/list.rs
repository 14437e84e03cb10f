//! Lists of recipients that cannot be read for sure: what is damaged is not sent to.

use super::Rule;

rules! {
    error RECIPIENTS_UNREADABLE = "recipients-unreadable":
        "A list that breaks off would be sent to in part.", "Check the file and its permissions.";
    error RECIPIENTS_SOURCE = "recipients-source":
        "A list that does not come whole from where it is fetched is not sent to.",
        "Mend what the source says, or name a file.";
    error SUPPRESS_FILE = "suppress-file":
        "A list of people who opted out that cannot be read would hold nobody back.",
        "Restore the file, or name its column of numbers. If you remove the file from `suppress`, its recipients get messages.";
    warning SUPPRESS_ROW = "suppress-row":
        "Whoever is meant by a row of a list of opt-outs that holds no number gets messages.",
        "Mend the rows that are named.";
    error EXCLUDE = "exclude":
        "Where it is not known what became of an earlier message, whoever was to be left out would get this one.",
        "Name a run that was sent and is through, as `campaign status` shows it.";
    error DATA_FILE = "data-file":
        "A table that cannot be read, or has two rows of one key, would leave holes in messages, or fill them wrongly.",
        "Mend the file, or name its column of keys under `key`.";
    error LIST_ADDRESS = "list-address":
        "People's numbers are fetched over a connection that nobody else reads, and secrets stand elsewhere.",
        "Write an address with `https://`, and secrets as `{ env: NAME }`.";
    warning RECIPIENTS_UNSEEN = "recipients-unseen":
        "A list that a program, an address, a database or an earlier run gives is fetched when a run begins, and by a look only if that is wanted.",
        "Add `--fetch` if the campaign file is yours.";
    error RECIPIENTS_ENCODING = "recipients-encoding":
        "In another encoding than its own a list has garbage for names.",
        "Save it as CSV in UTF-8, or name the encoding: `encoding: windows-1251`.";
    error RECIPIENTS_NOT_CSV = "recipients-not-csv":
        "Another format read as a list would give wrong numbers.", "Save it as a workbook or as CSV in UTF-8.";
    error RECIPIENTS_FORM_OF_ANOTHER = "recipients-form-of-another":
        "What the campaign says of how its list is written is true of another file.",
        "Delete the key; how a list is written is found without it.";
    error RECIPIENTS_SHEET = "recipients-sheet":
        "Only what stands in the sheet that is meant is sent to.", "Write the name of the sheet as its tab shows it.";
    warning RECIPIENTS_HIDDEN_ROWS = "recipients-hidden-rows":
        "Rows that were hidden in a sheet, by hand or by a filter, are sent to like all others.",
        "Copy what is visible into a sheet of its own, or delete the hidden rows.";
    warning RECIPIENTS_CELL_ERRORS = "recipients-cell-errors":
        "Where a formula failed, its cell holds the error and no value.", "Mend the formulas that show an error.";
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
    warning RECIPIENTS_TITLE = "recipients-title":
        "If a title is read as the headers, columns have wrong names and the row of the headers counts as a recipient.",
        "Name the row of the headers: `header_row: 4`. Or delete the rows above it.";
    error RECIPIENTS_QUOTED_LINES = "recipients-quoted-lines":
        "A line in quotes is a single cell, so no column holds the numbers.",
        "Export the list again, or remove the quotes around each line.";
    error RECIPIENTS_UNKNOWN_COLUMN = "recipients-unknown-column":
        "`columns` names a header that the list does not have.", "Write the header as it stands in the list.";
    error RECIPIENTS_DUPLICATE_COLUMN = "recipients-duplicate-column":
        "Two columns of one name, or two names for one column, leave open which value is meant.",
        "Give each column one name.";
    error RECIPIENTS_PHONE_COLUMN = "recipients-phone-column":
        "The column of the numbers has to be known for sure.", "Name it: `columns: { phone: \"…\" }`.";
}
