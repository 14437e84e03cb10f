//! What stands in the way of a command.

use super::Rule;

rules! {
    error RECIPIENTS_MISSING = "recipients-missing":
        "The list has to be where the campaign says.", "Check `recipients.file`; it is relative to the campaign file.";
    error NO_PHONES = "no-phones":
        "A campaign is written for a list that has numbers.", "Name the list that has a column of phone numbers.";
    error PURCHASES_UNUSABLE = "purchases-unusable":
        "What a campaign brought is counted by numbers and times.", "Name a file with a column of each.";
    error RESULTS_OVERWRITE = "results-overwrite":
        "Only results are ever replaced by results.", "Name another file under `results`, or move what is there.";
    error RUN_REFUSED = "run-refused":
        "What was sent before stands against it: `run` would refuse it.", "Do what the message says.";
    error OPT_OUT_ROW = "opt-out-row":
        "A list of opt-outs is imported whole or not at all, so that nobody on it is missed.", "Mend the row, and import the file again.";
    warning API_KEY = "api-key":
        "Without its key a profile sends nothing.", "Put the key where the profile says.";
    error CHECK = "check":
        "Something besides the campaign stands in the way.", "Do what the message says.";
}
