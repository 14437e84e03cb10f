//! Rules for gateway profiles.

use super::{Rule, RuleText};

rules! {
    error PROFILE_NAME = "profile-name" {
        cause: "A profile name is not valid. Campaigns and commands refer to the profile by its name.",
        example: ["gateways.yaml: \"My gateway\": { base_url: \"https://gateway.example\" }"],
        fix: "use 1 to 64 characters from a-z, 0-9 and `-`",
    }
    error RESERVED_NAME = "reserved-name" {
        cause: "A profile is called `sandbox`. This name is reserved for the built-in test gateway, which needs no \
                profile.",
        example: ["gateways.yaml: sandbox: { base_url: \"https://gateway.example\" }"],
        fix: "give the profile another name",
    }
    error UNKNOWN_GATEWAY = "unknown-gateway" {
        cause: "A campaign uses a profile that does not exist. The campaign cannot be sent without a profile.",
        example: ["gateway: prodution"],
        fix: "correct the name, or add a profile with `gateway add NAME`",
    }
    error GATEWAY_ADDRESS = "gateway-address" {
        cause: "A gateway address is not secure or not valid. The API key is sent with every request.",
        example: ["gateways.yaml: production: { base_url: \"http://gateway.example\" }"],
        fix: "write an `https://` address without a path or a password",
    }
    error PROXY_ADDRESS = "proxy-address" {
        cause: "A proxy address is not valid. All requests go through the proxy.",
        example: ["gateways.yaml: production: { proxy: \"proxy.example\" }"],
        fix: "write the full address, for example `http://proxy.example:3128`",
    }
    error GATEWAYS_FORM = "gateways-form" {
        cause: "A profile cannot be added to gateways.yaml. `gateway add` works only if each profile is on its own \
            lines.",
        example: ["gateways.yaml: { production: { base_url: \"https://gateway.example\" } }"],
        fix: "write each profile on its own lines, or add the new profile by hand",
    }
    error APPROVER_KEY = "approver-key" {
        cause: "An approver's public key is not valid. Large runs must be signed with the key of an approver.",
        example: ["gateways.yaml: production: { approval: { above: 1000, by: { Olha: \"ed25519:abc\" } } }"],
        fix: "write `ed25519:` and the 43 characters that `campaign approve --new-key NAME` prints",
    }
    error OPT_OUT_WORDS = "opt-out-words" {
        cause: "A line in an opt-out words file is not valid. Recipients who reply with an opt-out word get no more \
            marketing messages.",
        example: [
            "gateways.yaml: production: { opt_out_words: words.txt }",
            "words.txt: please do not send me anything again",
        ],
        fix: "write a word, or a phrase of two or three words, on each line",
    }
    error UNLIMITED_RATE = "unlimited-rate" {
        cause: "A remote gateway has an unlimited rate. The gateway rejects messages that arrive too fast.",
        example: ["gateways.yaml: production: { rate: unlimited }"],
        fix: "write the rate that your account allows, for example `rate: 10/s`",
    }
}
