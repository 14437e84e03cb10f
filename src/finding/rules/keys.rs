//! Rules for keys and their values.

use super::{Rule, RuleText};

rules! {
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
        cause: "A number or duration is out of range. The value is a typo, or the gateway would reject it.",
        example: ["delivery: { batch: 0 }"],
        fix: "use a value within the range shown in the finding",
    }
    error UNKNOWN_VALUE = "unknown-value" {
        cause: "A value is not one of the allowed words.",
        example: ["recipients: { file: list.csv, duplicates: skpi }"],
        fix: "use one of the words listed in the finding",
    }
    error EMPTY_VALUE = "empty-value" {
        cause: "A key has no value. An empty value is not the same as omitting the key.",
        example: ["timezone:"],
        fix: "write the value, or remove the key",
    }
    error SECRET = "secret" {
        cause: "A secret is written in the file itself. It would be copied, shared and committed with the file.",
        example: ["notify: { url: \"https://hooks.example/T0K3N\", preset: slack }"],
        fix: "specify where the secret is stored: `{ env: NAME }` or `{ file: PATH }`",
    }
}
