//! Findings about marketing messages without a working way to opt out.

use crate::examples::{empty, files, repository, with_examples};
use crate::support::{Folder, campaign, live};

const PROFILE: &str =
    "production: { base_url: \"https://api.provider.ua\", api_key: { env: NO_SUCH_KEY }, rate: 1/s }\n";

/// The rules about opt-outs that `check` reports for a campaign.
fn check_rules(folder: &Folder, file: &str) -> Vec<String> {
    let checked = folder.campaign(&["check", file, "--gateway", "production", "--json"]).json();
    let findings = checked["findings"].as_array().expect("findings").iter();
    let rules = findings.map(|finding| finding["rule"].as_str().expect("a rule").to_owned());
    rules.filter(|rule| ["no-way-out", "replies-impossible"].contains(&rule.as_str())).collect()
}

#[test]
fn marketing_without_a_working_opt_out_is_reported() {
    let folder = campaign().write();
    folder.write("gateways.yaml", PROFILE);
    for (top, sms, rules) in [
        ("", "signature: OlenaCo, message: \"Sale, {{ name }}\"", &["no-way-out"][..]),
        ("purpose: service", "signature: OlenaCo, message: \"Sale, {{ name }}\"", &[]),
        ("", "signature: OlenaCo, message: \"Sale\", unsubscribe_link: true", &[]),
        ("", "signature: OlenaCo, message: \"Sale: https://shop.ua\"", &[]),
        ("", "signature: OlenaCo, message: \"Sale. Reply STOP to opt out\"", &["replies-impossible"]),
        ("", "signature: OlenaCo, message: \"Знижки. Надішліть СТОП\"", &["replies-impossible"]),
        ("", "signature: \"4545\", message: \"Sale. Reply STOP to opt out\"", &[]),
    ] {
        campaign().top(top).channels(&format!("  - sms: {{ {sms} }}")).rewrite(&folder);
        assert_eq!(check_rules(&folder, "sale.yaml"), rules, "{sms}");
    }
}

#[test]
fn opt_out_warnings_appear_only_for_a_real_gateway() {
    for folder in [campaign().write(), live()] {
        let checked = folder.campaign(&["check", "sale.yaml"]);
        assert!(!checked.details().contains("no-way-out"), "{}", checked.details());
    }
}

#[test]
fn examples_tell_recipients_how_to_opt_out() {
    let folder = with_examples();
    folder.write("gateways.yaml", PROFILE);
    for file in files(&repository().join("campaigns")) {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        if name.ends_with(".yaml") {
            assert_eq!(check_rules(&folder, &format!("campaigns/{name}")), [""; 0], "{name}");
        }
    }
    for example in ["birthday", "code", "debt", "newsletter", "reminder", "sale", "survey"] {
        let folder = empty();
        folder.campaign(&["init", "news", "--example", example]).exits(0);
        folder.write("gateways.yaml", PROFILE);
        assert_eq!(check_rules(&folder, "news.yaml"), [""; 0], "{example}");
    }
}
