//! Profiles of gateways.

use super::Rule;

rules! {
    error PROFILE_NAME = "profile-name":
        "A profile's name is written in campaigns and commands.", "Use 1 to 64 of a-z, 0-9 and `-`.";
    error RESERVED_NAME = "reserved-name":
        "`sandbox` is the built-in gateway and needs no profile.", "Give the profile another name.";
    error UNKNOWN_GATEWAY = "unknown-gateway":
        "A campaign can only be sent through a profile that exists.",
        "Correct the name, or add the profile to gateways.yaml.";
    error GATEWAY_ADDRESS = "gateway-address":
        "The key travels with every request, so the address has to be one that keeps it secret.",
        "Write an `https://` address without a path or a password.";
    error PROXY_ADDRESS = "proxy-address":
        "Requests go through the proxy, so its address has to be one.", "Write it like `http://proxy.example:3128`.";
    error GATEWAYS_FORM = "gateways-form":
        "A profile is put behind what stands in the file, which has to be a map of profiles in lines of their own.",
        "Mend the file, or write the profile by hand.";
    error APPROVER_KEY = "approver-key":
        "A large run waits for a signature, which only somebody with the other half of one of these keys can give.",
        "Write `ed25519:` and the 43 letters that `approve --new-key NAME` prints.";
    error OPT_OUT_WORDS = "opt-out-words":
        "Whoever answers with one of these words gets no marketing any more, so it has to be a word that is meant so.",
        "Write one word into each line, or two or three that belong together.";
    error UNLIMITED_RATE = "unlimited-rate":
        "A gateway that others use takes only so much.", "Write the account's allowance, such as `rate: 10/s`.";
}
