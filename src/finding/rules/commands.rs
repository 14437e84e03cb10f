//! Rules for problems that stop a command.

use super::{Rule, RuleText};

rules! {
    error RECIPIENTS_MISSING = "recipients-missing" {
        cause: "The list does not exist. Its path is relative to the campaign file.",
        example: ["recipients: { file: no-such-list.csv }"],
        fix: "correct `recipients.file`, or move the list to that path",
    }
    error NO_PHONES = "no-phones" {
        cause: "The list has no phone number column.",
        example: ["list.csv: name,city", "          Olena,Kyiv"],
        fix: "use the list that contains the phone numbers, or name the phone number column",
    }
    error PURCHASES_UNUSABLE = "purchases-unusable" {
        cause: "The purchases file cannot be used. `campaign outcome` needs a phone number and a time for each \
                purchase.",
        example: ["$ campaign outcome autumn-sale --file purchases.csv --at Date     # the file has no column `Date`"],
        fix: "use a file with a phone number column and a time column",
    }
    error RESULTS_OVERWRITE = "results-overwrite" {
        cause: "The results would overwrite another file. Only an earlier results file can be overwritten.",
        example: ["results: list.csv"],
        fix: "choose another file under `results`, or move the existing file",
    }
    error RUN_REFUSED = "run-refused" {
        cause: "An earlier run blocks this one. `campaign run` would refuse to start.",
        example: ["the list was changed after the run autumn-sale@1 began"],
        fix: "follow the help in the finding",
    }
    error OPT_OUT_ROW = "opt-out-row" {
        cause: "A row of an opt-out file is not valid. The whole file is rejected, so that no opt-out is lost.",
        example: ["opt-outs.csv: phone", "              38050123              # too short"],
        fix: "correct the row, and import the file again",
    }
    warning API_KEY = "api-key" {
        cause: "The API key of the profile is missing. Without it, no messages can be sent.",
        example: ["gateways.yaml: production: { api_key: { env: CAMPAIGN_API_KEY } }     # the variable is not set"],
        fix: "set the environment variable or create the file that the profile names under `api_key`",
    }
    error CHECK = "check" {
        cause: "A problem outside the campaign stops the run.",
        example: ["the ledger cannot be opened"],
        fix: "follow the help in the finding",
    }
}
