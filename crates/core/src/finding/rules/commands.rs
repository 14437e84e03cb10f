//! Rules for gateway profiles, sandbox scenarios and commands.

define_rules! {
    PROFILE:
    pub error PROFILE_NAME = "profile-name" {
        cause: "A profile name is not valid. Campaigns and commands refer to the profile by its name.",
        example: ["gateways.yaml: \"My gateway\": { base_url: \"https://gateway.example\" }"],
        fix: "use 1 to 64 characters from a-z, 0-9 and `-`",
    }
    pub error RESERVED_NAME = "reserved-name" {
        cause: "A profile is called `sandbox`. This name is reserved for the built-in test gateway, which needs no \
                profile.",
        example: ["gateways.yaml: sandbox: { base_url: \"https://gateway.example\" }"],
        fix: "give the profile another name",
    }
    pub error UNKNOWN_GATEWAY = "unknown-gateway" {
        cause: "A campaign uses a profile that does not exist. The campaign cannot be sent without a profile.",
        example: ["gateway: prodution"],
        fix: "correct the name, or add a profile with `gateway add NAME`",
    }
    pub error GATEWAY_ADDRESS = "gateway-address" {
        cause: "A gateway address is insecure or invalid. Every request to this address contains the API key.",
        example: ["gateways.yaml: production: { base_url: \"http://gateway.example\" }"],
        fix: "write an `https://` address without a path or a password",
    }
    pub error PROXY_ADDRESS = "proxy-address" {
        cause: "A proxy address is not valid. All requests go through the proxy.",
        example: ["gateways.yaml: production: { proxy: \"proxy.example\" }"],
        fix: "write the full address, for example `http://proxy.example:3128`",
    }
    pub error GATEWAYS_FORM = "gateways-form" {
        cause: "A profile cannot be added to gateways.yaml. `gateway add` works only if each profile starts on its own line.",
        example: ["gateways.yaml: { production: { base_url: \"https://gateway.example\" } }"],
        fix: "start each profile on its own line, or add the new profile by hand",
    }
    pub error APPROVER_KEY = "approver-key" {
        cause: "An approver's public key is not valid. Large runs must be approved with an approver's key.",
        example: ["gateways.yaml: production: { approval: { above: 1000, by: { Olha: \"ed25519:abc\" } } }"],
        fix: "write `ed25519:` followed by the 43 characters that `campaign approve --new-key NAME` prints",
    }
    pub error OPT_IN_WORDS = "opt-in-words" {
        cause: "A line in an opt-in words file is not valid. Recipients who opted out and reply with an opt-in word get \
            messages again.",
        example: [
            "gateways.yaml: production: { opt_in_words: words.txt }",
            "words.txt: stop",
        ],
        fix: "write a word, or a phrase of two or three words, on each line; opt-out words and phrases are not allowed",
    }
    pub error OPT_OUT_WORDS = "opt-out-words" {
        cause: "A line in an opt-out words file is not valid. Recipients who reply with an opt-out word get no more \
            marketing messages.",
        example: [
            "gateways.yaml: production: { opt_out_words: words.txt }",
            "words.txt: please do not send me anything again",
        ],
        fix: "write a word, or a phrase of two or three words, on each line",
    }
    pub error UNLIMITED_RATE = "unlimited-rate" {
        cause: "A remote gateway has an unlimited rate. The gateway rejects messages that arrive too fast.",
        example: ["gateways.yaml: production: { rate: unlimited }"],
        fix: "write the rate that your account allows, for example `rate: 10/s`",
    }
}

define_rules! {
    SCENARIO:
    pub error ACCOUNT_KEY = "account-key" {
        cause: "Two sandbox accounts have the same key. A key must identify a single account.",
        example: ["accounts: [{ key: a }, { key: a }]"],
        fix: "give each account its own `key`",
    }
    pub error ADDRESS = "address" {
        cause: "An address in a scenario is not a web address. The sandbox sends delivery statuses to this \
                address.",
        example: ["accounts: [{ notify: nowhere }]"],
        fix: "write an address such as `http://127.0.0.1:9000/status`",
    }
    pub warning NOTIFY_ELSEWHERE = "notify-elsewhere" {
        cause: "A scenario sends statuses to another machine. By default, the sandbox does not contact other \
                machines.",
        example: ["accounts: [{ notify: \"http://hooks.example/status\" }]"],
        fix: "use an address on this machine, or start the sandbox with `campaign sandbox --any-hook`",
    }
    pub error FAULT_EFFECT = "fault-effect" {
        cause: "A fault must have exactly one effect. Each effect has its own keys.",
        example: ["faults: [{ when: {}, delay: 1s, answer: dropped }]"],
        fix: "keep only one effect and the keys that belong to it",
    }
    pub error NOT_KNOWN = "not-known" {
        cause: "A channel has a key that it does not support. For example, SMS does not report that a message was read.",
        example: ["channels: { sms: { read: 10% } }"],
        fix: "remove the key",
    }
}

define_rules! {
    COMMANDS:
    pub error RECIPIENTS_MISSING = "recipients-missing" {
        cause: "The list does not exist. Its path is relative to the campaign file.",
        example: ["recipients: { file: no-such-list.csv }"],
        fix: "correct `recipients.file`, or move the list to that path",
    }
    pub error NO_PHONES = "no-phones" {
        cause: "The list has no phone number column.",
        example: ["list.csv: name,city", "          Olena,Kyiv"],
        fix: "use the list that contains the phone numbers, or name the phone number column",
    }
    pub error PURCHASES_UNUSABLE = "purchases-unusable" {
        cause: "The purchases file cannot be used. `campaign outcome` needs a phone number and a time for each \
                purchase.",
        example: ["$ campaign outcome autumn-sale --file purchases.csv --at Date     # the file has no column `Date`"],
        fix: "use a file with a phone number column and a time column",
    }
    pub error RESULTS_OVERWRITE = "results-overwrite" {
        cause: "The results would overwrite another file. Only an earlier results file can be overwritten.",
        example: ["results: list.csv"],
        fix: "choose another file under `results`, or move the existing file",
    }
    pub error RUN_REFUSED = "run-refused" {
        cause: "An earlier run blocks this one. `campaign run` would refuse to start.",
        example: ["the list was changed after the run autumn-sale@1 began"],
        fix: "follow the advice in the finding",
    }
    pub error OPT_OUT_ROW = "opt-out-row" {
        cause: "A row in an opt-out file is not valid. The whole file is rejected, so that no opt-out is lost.",
        example: ["opt-outs.csv: phone", "              38050123              # too short"],
        fix: "correct the row, and import the file again",
    }
    pub warning API_KEY = "api-key" {
        cause: "The profile's API key is missing. Without it, no messages can be sent.",
        example: ["gateways.yaml: production: { api_key: { env: CAMPAIGN_API_KEY } }     # the variable is not set"],
        fix: "set the environment variable or create the file that the profile names under `api_key`",
    }
    pub error CHECK = "check" {
        cause: "A problem outside the campaign stops the run.",
        example: ["the ledger cannot be opened"],
        fix: "follow the advice in the finding",
    }
}
