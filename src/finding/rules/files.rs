//! Files that cannot be read.

use super::Rule;

rules! {
    error FILE_MISSING = "file-missing":
        "A file that is named has to be there.", "Check its name and the folder that you are in.";
    error FILE_UNREADABLE = "file-unreadable":
        "A file that is named has to be readable.", "Check the file and its permissions.";
    error FILE_TOO_LARGE = "file-too-large":
        "A campaign, a profile or a scenario of more than 1 MiB is another file by mistake.",
        "Name the right file; recipients belong into a CSV file.";
    error FILE_ENCODING = "file-encoding":
        "Every file is read as UTF-8; in another encoding, texts would arrive as garbage.", "Save the file as UTF-8.";
    error FILE_EMPTY = "file-empty":
        "An empty file says nothing.", "Write it, or have `campaign init` write one to start from.";
    error FILE_TOO_COMPLEX = "file-too-complex":
        "A file that repeats or nests itself beyond measure would take all memory.",
        "Write the values out, and check the indentation.";
    error MORE_FINDINGS = "more-findings":
        "Of a great many findings about one file only the first hundred are told.",
        "Mend those that are shown, then check again.";
}
