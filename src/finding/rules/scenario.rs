//! Rules for sandbox scenarios.

use super::{Rule, RuleText};

rules! {
    error ACCOUNT_KEY = "account-key" {
        cause: "Two sandbox accounts have the same key. A key must identify one account.",
        example: ["accounts: [{ key: a }, { key: a }]"],
        fix: "give each account its own `key`",
    }
    error ADDRESS = "address" {
        cause: "An address in a scenario is not a web address. The sandbox sends delivery statuses to this \
                address.",
        example: ["accounts: [{ notify: nowhere }]"],
        fix: "write an address such as `http://127.0.0.1:9000/status`",
    }
    warning NOTIFY_ELSEWHERE = "notify-elsewhere" {
        cause: "A scenario sends statuses to another machine. By default, the sandbox does not contact other \
                machines.",
        example: ["accounts: [{ notify: \"http://hooks.example/status\" }]"],
        fix: "use an address on this machine, or start the sandbox with `campaign sandbox --any-hook`",
    }
    error FAULT_EFFECT = "fault-effect" {
        cause: "A fault has no effect, two effects or wrong keys. Each fault has one effect, and each effect has \
                its own keys.",
        example: ["faults: [{ when: {}, delay: 1s, answer: dropped }]"],
        fix: "keep one effect, and only the keys that belong to it",
    }
    error NOT_KNOWN = "not-known" {
        cause: "A channel does not report this status. For example, SMS does not report that a message was read.",
        example: ["channels: { sms: { read: 10% } }"],
        fix: "remove the key",
    }
}
